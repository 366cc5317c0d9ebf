"""Scores of the spans that a filter has picked: dense scores of whole segments.

A picked span has a row of K numbers, and each label a weight for each of them:

    score_y(span) = row · weights[:, y]        d_row = Σ_y expectation_y · weights[:, y]'

They are spans of the log potentials like those that have features, among which they lie.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.features.products import multiply, multiply_transposed

__all__ = ["Picked", "PickedScores", "Places", "with_picked"]

Matrix = NDArray[np.float64]


class Picked(NamedTuple):
    """Spans of a batch that a filter has picked, sorted by start and end."""

    start: NDArray[np.int64]  # [S] counted over the batch
    end: NDArray[np.int64]  # [S]
    rows: Matrix  # [S, K] numbers of each, and a 1


class Places(NamedTuple):
    """Spans of a batch that have scores, with the label patterns for which they have them."""

    start: NDArray[np.int64]  # [S] ascending
    end: NDArray[np.int64]  # [S]
    pattern: NDArray[np.int32]  # [S]


@dataclass(frozen=True)
class PickedScores:
    """The scores of picked spans among all S spans that have some."""

    rows: Matrix  # [n, K] of the picked spans
    first: int  # of their weights among the dense ones
    n_labels: int
    row: NDArray[np.int64]  # [E] picked span of each score
    label: NDArray[np.int32]  # [E]
    place: NDArray[np.int64]  # [E] among all spans, ascending
    others: NDArray[np.int64]  # [S - E] places of those that features score, ascending

    def joined(self, by_features: NDArray[np.float64], dense: Matrix) -> NDArray[np.float64]:
        """Scores of all spans, float64 [S].

        by_features (float64 [S - E]): of the others. dense (float64 [H]): all dense weights.
        """
        scores = np.empty(len(self.place) + len(self.others))
        scores[self.others] = by_features
        scores[self.place] = multiply(self.rows, self._weights(dense))[self.row, self.label]
        return scores

    def add_counts_into(
        self, dense: Matrix, expected: NDArray[np.float64], scale: float
    ) -> NDArray[np.float64]:
        """Add scale times their counts to those of all dense weights, float64 [H].

        expected (float64 [S]): of all spans.
        RETURNS (float64 [S - E]): of those that features score.
        """
        weights = self._weights(dense)
        weights += scale * multiply_transposed(self.rows, self._by_label(expected))
        return expected[self.others]

    def gradient(self, dense: Matrix, expected: NDArray[np.float64]) -> Matrix:
        """The derivative by the rows, float64 [n, K].

        dense (float64 [H]): all dense weights. expected (float64 [S]): the derivative by the scores.
        """
        return multiply(self._by_label(expected), self._weights(dense).T)

    def only(self, first: int, last: int) -> "PickedScores":
        """Of the spans from `first` up to `last`, which are those of some neighbouring Docs."""
        mine = slice(*np.searchsorted(self.place, [first, last]).tolist())
        return replace(
            self,
            row=self.row[mine],
            label=self.label[mine],
            place=self.place[mine] - first,
            others=self.others[slice(*self.featured(first, last))] - first,
        )

    def featured(self, first: int, last: int) -> tuple[int, int]:
        """Which of the others are among these, from the one up to the other."""
        low, high = np.searchsorted(self.others, [first, last]).tolist()
        return low, high

    def _weights(self, dense: Matrix) -> Matrix:
        """Its own of all dense weights, float64 [K, Y]; a view."""
        width = self.rows.shape[1]
        last = self.first + width * self.n_labels
        return dense[self.first : last].reshape(width, self.n_labels)

    def _by_label(self, expected: NDArray[np.float64]) -> Matrix:
        """What belongs to each picked span and label, float64 [n, Y]."""
        grid = np.zeros((len(self.rows), self.n_labels))
        grid[self.row, self.label] = expected[self.place]
        return grid


def with_picked(
    places: Places, picked: Picked, longest: NDArray[np.int64], first: int
) -> tuple[Places, PickedScores]:
    """Spans that features score, with picked spans among them.

    longest (int64 [Y]): tokens of the longest span of each label, 0 for a label that has none.
    first (int): of the weights among the dense ones.
    """
    fits = np.nonzero((picked.end - picked.start)[:, None] <= longest)
    row, label = fits[0].astype(np.int64), fits[1].astype(np.int32)
    start = np.concatenate([places.start, picked.start[row]])
    end = np.concatenate([places.end, picked.end[row]])
    order = np.lexsort((end, start))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    others = len(places.start)
    pattern = np.concatenate([places.pattern, label])
    scores = PickedScores(
        picked.rows, first, len(longest), row, label, place[others:], place[:others]
    )
    return Places(start[order], end[order], pattern[order]), scores
