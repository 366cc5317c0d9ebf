"""A model of links: the numbers that templates have seen in training, and a weight for each with
each pattern of states.

    score = Σ over factors, over their templates: scale · w[number, pattern of states]

Features lie section after section, vertices, edges, triples: in each number by number, and of each
number 1, 4 or 8 patterns. What was not seen in training has no feature.

Letters: F features, K numbers of a section, P patterns of its factors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.links.grid import Grid, GridSection, pattern_of

__all__ = ["PATTERNS", "LinkModel", "ObservedThread", "known_keys"]

PATTERNS = (1, 4, 8)
"""Patterns of a vertex, which has a score in state 1 alone, an edge and a triple."""

Vector = NDArray[np.float64]
Keys = NDArray[np.uint64]
Rows = NDArray[np.int64]


class ObservedThread(NamedTuple):
    """Features of a thread: its grid, and for the factors of each section the rows of the numbers
    that its templates gave, -1 for unknown ones; int64 [n, templates] each.
    """

    grid: Grid
    sections: tuple[GridSection, ...]
    rows: tuple[Rows, ...]


@dataclass(frozen=True)
class LinkModel:
    """Numbers and weights; the weights may be exchanged."""

    keys: tuple[Keys, ...]  # [K] of each section, ascending
    scales: tuple[float, ...]  # value of a feature that fires, by sections
    weights: Vector  # [F]

    @property
    def order(self) -> int:
        """Vertices of the largest factors."""
        return len(self.keys)

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """One past the last feature of each section; the last is F."""
        sizes = [len(keys) * n for keys, n in zip(self.keys, PATTERNS)]
        return np.cumsum(sizes, dtype=np.int64)

    def observed(
        self, grid: Grid, sections: tuple[GridSection, ...], seen: Sequence[Keys]
    ) -> ObservedThread:
        """The rows of what templates have seen."""
        return ObservedThread(grid, sections, tuple(map(_rows, self.keys, seen)))

    def tables(
        self, observed: ObservedThread, weights: Vector, extra: Vector | float = 0.0
    ) -> tuple[Vector, ...]:
        """Scores of the patterns of all factors at some weights, as `Grid.instance` has them.

        extra (float64 [V]): added to the scores of state 1.
        """
        tables = []
        for section, rows in enumerate(observed.rows):
            first, end = self._bounds(section)
            n_patterns = PATTERNS[section]
            table = weights[first:end].reshape(-1, n_patterns)
            table = np.concatenate([table, np.zeros((1, n_patterns))])  # row -1: not known
            tables.append(table[rows].sum(axis=1) * self.scales[section])
        tables[0] = tables[0] + np.reshape(extra, (-1, 1))
        return tuple(tables)

    def counts(
        self, observed: ObservedThread, assignment: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], Vector]:
        """The features that fire in an assignment, ascending, and how often, times their value."""
        features, counts = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for number, (section, rows) in enumerate(zip(observed.sections, observed.rows)):
            pattern = pattern_of(section.vertices, assignment)
            fires = rows >= 0
            if number == 0:
                fires &= (pattern == 1)[:, None]
                pattern = np.zeros_like(pattern)
            fired = (rows * PATTERNS[number] + pattern[:, None])[fires]
            distinct, times = np.unique(fired, return_counts=True)
            features.append(self._bounds(number)[0] + distinct)
            counts.append(times * self.scales[number])
        return np.concatenate(features).astype(np.int32), np.concatenate(counts)

    def _bounds(self, section: int) -> tuple[int, int]:
        """First feature of a section, and one past its last."""
        return int(self.ends[section - 1]) if section else 0, int(self.ends[section])


def known_keys(seen: Sequence[Keys], min_count: int) -> Keys:
    """Numbers that occur at so many factors, ascending, uint64 [K].

    seen (Sequence[uint64 [n, templates]]): of all threads.
    """
    every = np.concatenate([np.zeros(0, dtype=np.uint64), *(keys.ravel() for keys in seen)])
    keys, counts = np.unique(every, return_counts=True)
    known: Keys = keys[counts >= min_count]
    return known


def _rows(keys: Keys, seen: Keys) -> Rows:
    """Place of each number among those that are known, -1 for none."""
    if not len(keys):
        return np.full(seen.shape, -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(keys, seen), len(keys) - 1)
    return np.where(keys[place] == seen, place, -1)
