"""The engine's labels at the ends of users' spans: how a pair of user labels translates into transitions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.rules import DEAD, JoinedRules
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.scheme import OUTSIDE, LabelScheme
from spacy_hocrf.types import Segments

__all__ = ["EDGE", "Ends", "Successions", "follows"]

EDGE = ""
"""Stands for the beginning or the end of a text."""

LabelPairs = Sequence[Sequence[str]]


class Ends(NamedTuple):
    """The engine's labels at the ends of spans."""

    scheme: LabelScheme

    def place(self, label: str) -> int:
        """Return the index of a label in the table of allowed transitions."""
        labels = self.scheme.labels
        return labels.index(label) if label in labels else len(labels) + (label == EDGE)

    def firsts(self, label: str) -> list[int]:
        """Return the engine's labels that the first segment of a span may have."""
        return self._labels_at(label, 0)

    def lasts(self, label: str) -> list[int]:
        """Return the engine's labels that the last segment of a span may have."""
        return self._labels_at(label, -1)

    def chain(self, labels: Sequence[str]) -> JoinedRules:
        """Return a rule that exactly the segments of consecutive spans with these labels satisfy.

        labels (Sequence[str]): oldest first; OUTSIDE for a segment of unlabelled text.
        """
        size = len(labels) + 1
        after = np.full((size, self.scheme.n_labels), DEAD, dtype=np.int32)
        for i in reversed(range(len(labels))):
            after[i, self.firsts(labels[i])] = i + 1
            after[i + 1, self.continuing(labels[i])] = i + 1  # "io": the span goes on
        return JoinedRules(after, np.arange(size)[:, None] < size - 1)

    def continuing(self, label: str) -> list[int]:
        """Return the engine's labels that continue a span after its first segment."""
        return self.scheme.continuing(label) if label in self.scheme.labels else []

    def in_one_span(self, before: int, behind: int) -> bool:
        """Would these two neighbouring labels be in the same span, or in the same stretch without spans?"""
        return before == behind and (self.scheme.encoding == "io" or before == self.scheme.outside)

    def _labels_at(self, label: str, position: int) -> list[int]:
        if label == OUTSIDE and label not in self.scheme.labels:
            return [self.scheme.outside] if self.scheme.outside >= 0 else []
        lengths = (1,) if self.scheme.encoding in ("segments", "tags") else (1, 2, 3)
        return sorted({self.scheme.encode_span(0, n, label)[position].label for n in lengths})


class Successions(NamedTuple):
    """Which labels may follow one another, and begin or end a text."""

    allowed: NDArray[np.bool_]  # [L + 2, L + 2] of users' labels, see `follows`
    first: NDArray[np.bool_]  # [Y] may a segment with this label be the first of a text?
    last: NDArray[np.bool_]  # [Y] may it be the last?
    forbidden: frozenset[tuple[int, int]]  # pairs of the engine's labels

    @classmethod
    def of(cls, scheme: LabelScheme, forbidden: LabelPairs, required: LabelPairs) -> "Successions":
        """Translate forbidden and required pairs of users' labels, see `Constraints`."""
        ends, pairs = Ends(scheme), [(a, b) for a, b in forbidden]
        for a, b in required:
            pairs += [(a, y) for y in (*scheme.labels, OUTSIDE, EDGE) if y != b and (a or y)]
        allowed = np.ones((len(scheme.labels) + 2,) * 2, dtype=bool)
        first, last = np.ones((2, scheme.n_labels), dtype=bool)
        transitions = set[tuple[int, int]]()
        for a, b in pairs:
            allowed[ends.place(a), ends.place(b)] = False
            if a == EDGE:
                first[ends.firsts(b)] = False
            elif b == EDGE:
                last[ends.lasts(a)] = False
            else:
                transitions |= {(x, y) for x in ends.lasts(a) for y in ends.firsts(b)}
        separate = frozenset((x, y) for x, y in transitions if not ends.in_one_span(x, y))
        return cls(allowed, first, last, separate)

    def clear_edges(self, bits: NDArray[np.uint8], tokens: TokenBatch) -> None:
        """Clear the bits of a batch, uint8 [N, Y], for labels that must not be first or last in a text, where
        whitespace is ignored.
        """
        if self.first.all() and self.last.all():
            return
        solid = np.flatnonzero(~tokens.blank)
        places = np.searchsorted(solid, tokens.offsets)
        texts = np.flatnonzero(places[:-1] < places[1:])
        # the segment of the first solid token begins there
        bits[np.ix_(solid[places[texts]], ~self.first)] = 0
        bits[np.ix_(solid[places[texts + 1] - 1], ~self.last)] = 0


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
    with_spans = np.flatnonzero(counts)
    without_spans = np.flatnonzero((counts == 0) & (lengths > 0))
    # label and end of the span before each span; the edge before the first span of a text
    first, last = spans.offsets[with_spans], spans.offsets[with_spans + 1] - 1
    before, end = np.empty_like(spans.label), np.empty_like(spans.end)
    before[1:], end[1:] = spans.label[:-1], spans.end[:-1]
    before[first], end[first] = edge, 0
    in_order = np.ones(len(lengths), dtype=bool)
    violated = ~through[(spans.start > end).view(np.int8), before, spans.label]
    if violated.any():
        in_order[np.searchsorted(spans.offsets, np.flatnonzero(violated), side="right") - 1] = False
    goes_on = (spans.end[last] < lengths[with_spans]).astype(np.int8)
    in_order[with_spans] &= through[goes_on, spans.label[last], edge]
    in_order[without_spans] = through[1, edge, edge]
    return in_order
