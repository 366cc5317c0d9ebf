"""The engine's labels at the ends of users' spans: how a pair of user labels translates into transitions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.rules import DEAD, JoinedRules
from spacy_hocrf.model.scheme import OUTSIDE, LabelScheme
from spacy_hocrf.types import Segments

__all__ = ["EDGE", "Ends", "follows"]

EDGE = ""
"""Stands for the beginning or the end of a text."""


class Ends(NamedTuple):
    """The engine's labels at the ends of spans."""

    scheme: LabelScheme

    def place(self, label: str) -> int:
        """Return the index of a label in the table of allowed transitions."""
        labels = self.scheme.labels
        return labels.index(label) if label in labels else len(labels) + (label == EDGE)

    def firsts(self, label: str) -> list[int]:
        """Return the engine's labels that the first segment of a span may have."""
        return self._each(label, 0)

    def lasts(self, label: str) -> list[int]:
        """Return the engine's labels that the last segment of a span may have."""
        return self._each(label, -1)

    def chain(self, labels: Sequence[str]) -> JoinedRules:
        """Return a rule that exactly the segments of consecutive spans with these labels satisfy.

        labels (Sequence[str]): oldest first; OUTSIDE for a segment of unlabelled text.
        """
        size = len(labels) + 1
        after = np.full((size, self.scheme.n_labels), DEAD, dtype=np.int32)
        for i in reversed(range(len(labels))):
            after[i, self.firsts(labels[i])] = i + 1
            after[i + 1, self.going_on(labels[i])] = i + 1  # "io": the span goes on
        return JoinedRules(after, np.arange(size)[:, None] < size - 1)

    def going_on(self, label: str) -> list[int]:
        """Return the engine's labels that continue a span after its first segment."""
        return self.scheme.continuing(label) if label in self.scheme.labels else []

    def one(self, before: int, behind: int) -> bool:
        """Would these two neighbouring labels be in the same span, or in the same stretch without spans?"""
        return before == behind and (self.scheme.encoding == "io" or before == self.scheme.outside)

    def _each(self, label: str, place: int) -> list[int]:
        if label == OUTSIDE and label not in self.scheme.labels:
            return [self.scheme.outside] if self.scheme.outside >= 0 else []
        lengths = (1,) if self.scheme.encoding in ("segments", "tags") else (1, 2, 3)
        return sorted({self.scheme.encode_span(0, n, label)[place].label for n in lengths})


def follows(
    allowed: NDArray[np.bool_], spans: Segments, lengths: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Are all neighbouring spans, stretches in no span and edges of D texts in an allowed order? bool [D]

    allowed (bool [L + 2, L + 2]): may the second follow the first? L labels, text in no span, edge.
    """
    outside, edge = len(allowed) - 2, len(allowed) - 1
    # [2, L + 2, L + 2] without and with text between the two
    through = np.stack([allowed, allowed[:, outside, None] & allowed[outside]])
    counts = np.diff(spans.offsets)
    some, none = np.flatnonzero(counts), np.flatnonzero((counts == 0) & (lengths > 0))
    first, last = spans.offsets[some], spans.offsets[some + 1] - 1
    before, end = np.empty_like(spans.label), np.empty_like(spans.end)
    before[1:], end[1:] = spans.label[:-1], spans.end[:-1]
    before[first], end[first] = edge, 0
    fine = np.ones(len(lengths), dtype=bool)
    wrong = ~through[(spans.start > end).view(np.int8), before, spans.label]
    if wrong.any():
        fine[np.searchsorted(spans.offsets, np.flatnonzero(wrong), side="right") - 1] = False
    rest = (spans.end[last] < lengths[some]).astype(np.int8)
    fine[some] &= through[rest, spans.label[last], edge]
    fine[none] = through[1, edge, edge]
    return fine
