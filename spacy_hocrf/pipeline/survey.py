"""What annotation shows about a model before it has features: the longest segment of each label,
whether there is unlabelled text, whether labels repeat, and which label patterns there are.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.model.structure import Settings, Structure
from spacy_hocrf.pipeline.annotation import Annotation
from spacy_hocrf.pipeline.schema import LIMITS
from spacy_hocrf.training.patterns import select_patterns
from spacy_hocrf.types import LabelPattern
from spacy_hocrf.warnings import Warnings

__all__ = ["Survey", "joins", "patterns_of"]


@dataclass
class Survey:
    """What all annotation so far has shown."""

    longest: dict[str, int] = field(default_factory=dict)
    """Tokens of the longest span of each label."""
    has_outside: bool = False
    """Is some token known to be in no span?"""
    repeats: bool = False
    """Do two neighbouring spans share a label?"""

    def copy(self) -> "Survey":
        """One that goes on by itself."""
        return Survey(dict(self.longest), self.has_outside, self.repeats)

    def note(self, annotations: Iterable[Annotation], settings: Settings) -> bool:
        """Note the longest span of every label, and repeats; warn of spans above a set limit.

        RETURNS (bool): whether something is new.
        """
        before, repeats = dict(self.longest), self.repeats
        for annotation in annotations:
            self.repeats |= annotation.repeats
            for start, end, label in annotation.parts:
                self.longest[label] = max(self.longest.get(label, 0), end - start)
        limit = settings.max_length
        for label, longest in self.longest.items():
            allowed = (limit.get(label, 0) if isinstance(limit, Mapping) else limit) or 0
            if 0 < allowed < longest and longest > before.get(label, 0):
                text = Warnings.W002.format(label=label, found=allowed, longest=longest)
                warnings.warn(text, stacklevel=2)
        return self.longest != before or self.repeats != repeats

    def set_labels(self, structure: Structure, labels: list[str]) -> None:
        """Give a structure these labels, with the limits that the annotation needs."""
        outside = self.has_outside and structure.settings.encoding != "tags"
        structure.set_labels(labels, self.longest, outside=outside, repeats=self.repeats)


def joins(settings: Settings) -> bool:
    """Are neighbouring spans of one label one span to models with these settings?"""
    return settings.encoding == "io" or (
        settings.encoding == "segments" and settings.repeats is False
    )


def patterns_of(
    segmentations: Iterable[NDArray[np.int32]], structure: Structure, n_labels: int
) -> tuple[LabelPattern, ...]:
    """Label patterns of known segments, those that the structure has first, and all pairs of labels
    that may follow one another if the settings want them.

    segmentations (Iterable[int32 [·, 3]]): start, end and label of the known segments of each
        document.
    n_labels (int): Y.
    RAISES (ValueError): H143 if there are more pairs than a saved model may have patterns.
    """
    histories = (labels for segments in segmentations for labels in _histories(segments.tolist()))
    settings = structure.settings
    seen = select_patterns(
        histories,
        n_labels,
        settings.order,
        min_count=settings.min_pattern_count,
        more=_all_pairs(structure, n_labels) if settings.all_pairs else (),
    )
    return tuple(dict.fromkeys([*(structure.patterns or seen[:n_labels]), *seen]))


def _all_pairs(structure: Structure, n_labels: int) -> Iterator[LabelPattern]:
    most = LIMITS["label patterns"].most
    if n_labels**2 > most:
        raise ValueError(Errors.H143.format(labels=n_labels, found=n_labels**2, most=most))
    forbidden = set(structure.scheme.forbidden if structure.scheme is not None else ())
    return (pair for pair in product(range(n_labels), repeat=2) if pair not in forbidden)


def _histories(segments: Iterable[tuple[int, int, int]]) -> Iterator[list[int]]:
    """Labels of the stretches of touching segments."""
    labels: list[int] = []
    at = -1
    for start, end, label in segments:
        if labels and start != at:
            yield labels
            labels = []
        labels.append(label)
        at = end
    if labels:
        yield labels
