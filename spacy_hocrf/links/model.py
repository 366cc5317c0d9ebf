"""A model of links: a weight for each feature that occurred in training.

    s(i, j) = w · f(i, j),    P(i, j) = exp s(i, j) / (1 + Σ exp s(i', j'))

for a pair (i, j) of items, with the sum over the pairs (i', j') of its choice: all pairs of source i if
each source has one link at most, or (i, j) alone. The 1 stands for no link. Features that did not occur in
training have no weight.

Letters: F features, P pairs, C choices, K templates.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.types import Vector

__all__ = ["Choices", "Keys", "LinkModel", "best_pairs", "known_keys", "normalized"]

Keys = NDArray[np.uint64]
Rows = NDArray[np.int32]
Choices = NDArray[np.int64]


class LinkModel(NamedTuple):
    """F features, as the hashes that templates compute, and their weights."""

    keys: Keys  # [F] ascending
    weights: Vector  # [F]

    def rows(self, seen: Keys) -> Rows:
        """Return the feature for each template's hash of a pair, F for an unknown one, int32 [P, K]."""
        if not len(self.keys):
            return np.zeros(seen.shape, dtype=np.int32)
        place = np.minimum(np.searchsorted(self.keys, seen), len(self.keys) - 1)
        return np.where(self.keys[place] == seen, place, len(self.keys)).astype(np.int32)

    def scores(self, seen: Keys) -> Vector:
        """Return the score of each pair in nats, float64 [P]. seen (uint64 [P, K]): templates' hashes."""
        scores: Vector = np.append(self.weights, 0.0)[self.rows(seen)].sum(axis=1)
        return scores


def known_keys(seen: Sequence[Keys], min_count: int) -> Keys:
    """Return the hashes that occur in at least min_count pairs, ascending, uint64 [F].

    seen (Sequence[uint64 [P, K]]): hashes of all threads.
    """
    every = np.concatenate([np.zeros(0, dtype=np.uint64), *(keys.ravel() for keys in seen)])
    keys, counts = np.unique(every, return_counts=True)
    frequent: Keys = keys[counts >= min_count]
    return frequent


def normalized(scores: Vector, choices: Choices) -> tuple[Vector, Vector]:
    """Return the log of the sum over each choice, including "no link", float64 [C], and the probability of
    each pair, float64 [P].

    scores (float64 [P]), choices (int64 [C + 1]): scores and choices of pairs; no choice is empty.
    """
    first, sizes = choices[:-1], np.diff(choices)
    largest = np.maximum(np.maximum.reduceat(scores, first), 0.0)
    values = np.exp(scores - np.repeat(largest, sizes))
    total = np.exp(-largest) + np.add.reduceat(values, first)
    return largest + np.log(total), values / np.repeat(total, sizes)


def best_pairs(scores: Vector, choices: Choices) -> NDArray[np.int64]:
    """Return the most probable links: the best pair of each choice, the first of equals, if it is more
    probable than no link; ascending, int64 [links].
    """
    number = np.repeat(np.arange(len(choices) - 1), np.diff(choices))
    best = np.lexsort((-scores, number))[choices[:-1]]
    links: NDArray[np.int64] = best[scores[best] > 0.0]
    return links
