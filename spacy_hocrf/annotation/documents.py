"""A training document as the corpus keeps it: the source of its features, and its annotation, without the
Doc if a record of it is enough.
"""

import sys
from collections.abc import Hashable
from functools import lru_cache

import numpy as np
from spacy.tokens import Doc

from spacy_hocrf.annotation.annotation import Annotation, SoftSpan, TextConstraint
from spacy_hocrf.features.records import Record

__all__ = ["Document"]


class Document:
    """One training document, stored compactly.

    source (Union[Record, Doc]): what features are extracted from.
    text (str): its text, or the beginning of it.
    annotation (Annotation): what is known of its segmentation.
    copies (int): how often it is in the corpus.
    weight (float): weight of all copies together, above 0; by default the number of copies.
    group (Hashable): equal for documents of one group; None for a group of its own.
    """

    __slots__ = (
        "_names",
        "_spans",
        "_unknown",
        "constraints",
        "copies",
        "group",
        "soft",
        "source",
        "text",
        "weight",
    )

    def __init__(
        self,
        source: Record | Doc,
        text: str,
        annotation: Annotation,
        copies: int,
        group: Hashable = None,
    ) -> None:
        self.source, self.text = source, text
        self.copies, self.weight = copies, float(copies)
        self.group = group
        self.constraints: tuple[TextConstraint, ...] = ()
        """Constraints besides known spans and tokens."""
        self.soft: tuple[SoftSpan, ...] = ()
        """Spans that are present with a probability."""
        self.annotation = annotation

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self.source)

    @property
    def annotation(self) -> Annotation:
        """What is known of the segmentation."""
        rows = np.frombuffer(self._spans, dtype=np.min_scalar_type(len(self))).reshape(-1, 3)
        spans = tuple((start, end, self._names[label]) for start, end, label in rows.tolist())
        unknown = np.zeros(len(self), dtype=bool) if self._unknown is None else self._unknown
        return Annotation(spans, unknown, self.constraints, soft=self.soft)

    @annotation.setter
    def annotation(self, annotation: Annotation) -> None:
        self._names = _shared(tuple(annotation.labels))
        self.constraints, self.soft = annotation.constraints, annotation.soft
        numbers = {label: i for i, label in enumerate(self._names)}
        rows = [(start, end, numbers[label]) for start, end, label in annotation.spans]
        # start, end, place of the label
        self._spans = np.array(rows, dtype=np.min_scalar_type(len(self))).tobytes()
        self._unknown = None if annotation.complete else annotation.unknown

    @property
    def complete(self) -> bool:
        """Is every token known?"""
        return self._unknown is None

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that occur in its annotation."""
        return self._names


@lru_cache(1_000)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return one shared tuple for equal tuples of labels."""
    return tuple(map(sys.intern, names))
