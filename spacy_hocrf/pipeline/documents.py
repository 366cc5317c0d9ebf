"""A training document, as the corpus keeps it: what its features are extracted from, and its
annotation, without the Doc where a record of it will do.
"""

import sys
from collections.abc import Hashable

import numpy as np
from spacy.tokens import Doc

from spacy_hocrf.features.records import Record
from spacy_hocrf.model.output import EncoderOutput
from spacy_hocrf.pipeline.annotation import Annotation, TextConstraint

__all__ = ["Document"]


class Document:
    """One training document, as compactly as can be.

    source (Union[Record, Doc]): what features are extracted from.
    text (str): its text, or the beginning of it.
    annotation (Annotation): what is known of it.
    copies (int): how often it is in the corpus.
    group (Hashable): equal for documents of one group; None if it is one by itself.

    output (Optional[EncoderOutput]): what an encoder that has not learnt from it says of it, for a
        model whose own encoder has.
    """

    __slots__ = (
        "_names",
        "_spans",
        "_unknown",
        "constraints",
        "copies",
        "group",
        "output",
        "source",
        "text",
    )

    def __init__(
        self,
        source: Record | Doc,
        text: str,
        annotation: Annotation,
        copies: int,
        group: Hashable = None,
    ) -> None:
        self.source = source
        self.text = text
        self.copies = copies
        self.group = group
        self.output: EncoderOutput | None = None
        self.constraints: tuple[TextConstraint, ...] = ()
        """What is known of it besides spans and tokens."""
        self.annotation = annotation

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self.source)

    @property
    def annotation(self) -> Annotation:
        """What is known of it."""
        rows = np.frombuffer(self._spans, dtype=np.min_scalar_type(len(self))).reshape(-1, 3)
        spans = tuple((start, end, self._names[label]) for start, end, label in rows.tolist())
        unknown = np.zeros(len(self), dtype=bool) if self._unknown is None else self._unknown
        return Annotation(spans, unknown, self.constraints)

    @annotation.setter
    def annotation(self, annotation: Annotation) -> None:
        self._names = tuple(map(sys.intern, annotation.labels))
        self.constraints = annotation.constraints
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
        """The labels that its annotation names."""
        return self._names
