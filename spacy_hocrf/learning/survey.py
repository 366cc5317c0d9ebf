"""Facts about the annotation that determine a model before it has features: the longest segment of each
label, whether there is unlabelled text, whether labels repeat, and which label patterns occur.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.annotation import Annotation
from spacy_hocrf.errors import Errors
from spacy_hocrf.model.errors import ModelErrors
from spacy_hocrf.model.pattern_choice import NamedPatterns
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Settings, Structure
from spacy_hocrf.saving.schema import LIMITS
from spacy_hocrf.training.patterns import select_patterns, subpatterns
from spacy_hocrf.types import LabelPattern
from spacy_hocrf.warnings import Warnings

__all__ = ["Survey", "histories_of", "joins", "patterns_of"]

PATTERNS, LABELS = "label patterns", "labels in all label patterns"
"""Keys of `LIMITS` for the number of patterns and for their total length."""


@dataclass
class Survey:
    """Facts about all annotation so far."""

    longest: dict[str, int] = field(default_factory=dict)
    """Tokens of the longest span of each label."""
    has_outside: bool = False
    """Is any token known to be in no span?"""
    repeats: bool = False
    """Do any two neighbouring spans have the same label?"""

    def copy(self) -> "Survey":
        """Return an independent copy."""
        return Survey(dict(self.longest), self.has_outside, self.repeats)

    def note(self, annotations: Iterable[Annotation], settings: Settings) -> bool:
        """Record the longest span of every label, and repeats; warn of spans above a set limit.

        RETURNS (bool): whether anything is new.
        """
        longest_before, repeated_before = dict(self.longest), self.repeats
        for annotation in annotations:
            self.repeats |= annotation.repeats
            for start, end, label in annotation.parts:
                self.longest[label] = max(self.longest.get(label, 0), end - start)
        limit = settings.max_length
        for label, longest in self.longest.items():
            allowed = (limit.get(label, 0) if isinstance(limit, Mapping) else limit) or 0
            if 0 < allowed < longest and longest > longest_before.get(label, 0):
                text = Warnings.W002.format(label=label, found=allowed, longest=longest)
                warnings.warn(text, stacklevel=2)
        return self.longest != longest_before or self.repeats != repeated_before

    def set_labels(self, structure: Structure, labels: list[str]) -> None:
        """Set these labels in a structure, with the limits that the annotation needs."""
        outside = self.has_outside and structure.settings.encoding != "tags"
        structure.set_labels(labels, self.longest, outside=outside, repeats=self.repeats)


def joins(settings: Settings) -> bool:
    """Do models with these settings join neighbouring spans with the same label?"""
    return settings.encoding == "io" or (
        settings.encoding == "segments" and settings.repeats is False
    )


def patterns_of(
    segmentations: Iterable[NDArray[np.int32]], structure: Structure, n_labels: int
) -> tuple[LabelPattern, ...]:
    """Return the label patterns of known segments, those already in the structure first, and all allowed
    pairs of labels if the settings ask for them.

    segmentations (Iterable[int32 [·, 3]]): start, end and label of the known segments of each document.
    n_labels (int): Y.
    RAISES (ValueError): H143 if there are more pairs than a saved model may have patterns, H320 if there are
        too many patterns without a limit of their length, or too many labels in them; H324 or H325 for a
        pattern in the config that the model cannot have.
    """
    settings = structure.settings
    order: int | None = settings.order
    more = {*_all_pairs(structure, n_labels)} if settings.all_pairs else set()
    if isinstance(settings.patterns, tuple):
        more |= {*_named(structure.scheme, settings.patterns)}
        order = 0
    elif settings.endless and not structure.ready:
        order = settings.highest
    seen = select_patterns(
        histories_of(segmentations),
        n_labels,
        order,
        min_counts=settings.min_pattern_counts,
        more=more,
        most=LIMITS[PATTERNS].most,
        most_labels=LIMITS[LABELS].most,
    )
    if settings.endless:
        _check_extent(seen, settings.min_pattern_counts)
    return tuple(dict.fromkeys([*(structure.patterns or seen[:n_labels]), *seen]))


def _check_extent(patterns: Sequence[LabelPattern], counts: Sequence[int]) -> None:
    """RAISES (ValueError): H320 for more patterns, or more labels in them, than a saved model may have."""
    for what, found in ((PATTERNS, len(patterns)), (LABELS, sum(map(len, patterns)))):
        most, longest = LIMITS[what].most, len(patterns[-1])
        if found > most:
            text = ModelErrors.H320.format(counts=[*counts], most=most, what=what, longest=longest)
            raise ValueError(text)


def _all_pairs(structure: Structure, n_labels: int) -> Iterator[LabelPattern]:
    most = LIMITS[PATTERNS].most
    if n_labels**2 > most:
        raise ValueError(Errors.H143.format(labels=n_labels, found=n_labels**2, most=most))
    forbidden = set(structure.scheme.forbidden)
    return (pair for pair in product(range(n_labels), repeat=2) if pair not in forbidden)


def histories_of(segmentations: Iterable[NDArray[np.int32]]) -> Iterator[list[int]]:
    """Yield the labels of each run of adjacent segments.

    segmentations (Iterable[int32 [·, 3]]): start, end and label of the known segments of each document.
    """
    for segments in segmentations:
        labels, at = list[int](), -1
        for start, end, label in segments.tolist():
            if labels and start != at:
                yield labels
                labels = []
            labels.append(label)
            at = end
        if labels:
            yield labels


def _named(scheme: LabelScheme, patterns: NamedPatterns) -> Iterator[LabelPattern]:
    """Yield the patterns named in the config, and all their contiguous parts."""
    numbers, forbidden = {name: y for y, name in enumerate(scheme.names)}, set(scheme.forbidden)
    for names in patterns:
        for name in names:
            if name not in numbers:
                known = ", ".join(scheme.names)
                raise ValueError(ModelErrors.H324.format(label=name, known=known))
        pattern = tuple(numbers[name] for name in names)
        for place, pair in enumerate(pairwise(pattern)):
            if pair in forbidden:
                before, label = names[place : place + 2]
                text = ModelErrors.H325.format(pattern=[*names], label=label, before=before)
                raise ValueError(text)
        yield from subpatterns(pattern)
