"""Divides the patterns of a batch of Docs into problems: the smallest sets of Docs that must be decoded
together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import components, offsets_of, ranges
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.joint.patterns import FIELDS, LABEL, SEGMENT, TOKEN, PlacePatterns
from spacy_hocrf.joint.vertices import Vertices

__all__ = ["BatchPatterns", "JointProblem"]


@dataclass(frozen=True)
class JointProblem:
    """Docs that patterns connect, to be decoded together: vertices for a `SegmentationSubproblem`,
    and M patterns with n cells in all.
    """

    sequences: NDArray[np.int64]  # [D] numbers of the Docs in their batch
    vertices: Vertices  # on these Docs
    pattern_offsets: NDArray[np.int64]  # [M + 1] first cell of each pattern
    cell_vertex: NDArray[np.int64]  # [n]
    cell_state: NDArray[np.int32]  # [n]
    cell_place: NDArray[np.int64]  # [n] a number for each place of a pattern
    feature: NDArray[np.int32]  # [M] joint feature of each pattern

    def instance(self, weights: NDArray[np.float64]) -> GraphInstance:
        """Make the input of the decoder, with unary scores of 0, since the first subproblem has all other
        scores.

        weights (float64 [G]): weights of the joint features.
        """
        offsets = self.vertices.offsets
        return GraphInstance.from_arrays(
            offsets=offsets,
            unary=np.zeros(int(offsets[-1])),
            pattern_offsets=self.pattern_offsets,
            vertices=self.cell_vertex,
            states=self.cell_state,
            weights=weights[self.feature],
        )

    def rewards(
        self, assignment: NDArray[np.int32], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the reward for each state of each vertex, given the states of vertices elsewhere: the weight
        of a pattern that fires at all its other places, divided equally among the cells of the place,
        float64 [E], nats. If a place is one cell, a segment, this is exact.

        assignment (int32 [V]): state of each vertex.
        weights (float64 [G]): weights of the joint features; finite.
        """
        # for each cell: its pattern, its place in the pattern, and the silent cells at other places
        sizes = np.diff(self.pattern_offsets)
        pattern = np.repeat(np.arange(len(sizes)), sizes)
        keys = pattern * (self.cell_place.max(initial=0) + 1) + self.cell_place
        place = np.unique(keys, return_inverse=True)[1].ravel()
        silent = assignment[self.cell_vertex] != self.cell_state
        elsewhere = np.bincount(pattern, silent)[pattern] - np.bincount(place, silent)[place]
        share = weights[self.feature][pattern] / np.bincount(place)[place]
        cells = self.vertices.offsets[self.cell_vertex] + self.cell_state
        worth = np.where(elsewhere == 0, share, 0.0)
        return np.asarray(
            np.bincount(cells, worth, int(self.vertices.offsets[-1])), dtype=np.float64
        )

    def counts(
        self, assignment: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Count how often each joint feature fires.

        assignment (int32 [V]): state of each vertex.
        RETURNS (tuple[int32 [n], float64 [n]]): the features that fire, without duplicates, and their counts.
        """
        if not len(self.feature):
            return self.feature, np.zeros(0)
        fires = np.logical_and.reduceat(
            assignment[self.cell_vertex] == self.cell_state, self.pattern_offsets[:-1]
        )
        features, counts = np.unique(self.feature[fires], return_counts=True)
        return features, counts.astype(np.float64)


@dataclass(frozen=True)
class BatchPatterns:
    """All patterns of a batch of D Docs.

    patterns (Sequence[Tuple[int, PlacePatterns]]): joint features, and their patterns.
    n_labels (int): number of labels Y.
    """

    batch: TokenBatch
    patterns: Sequence[tuple[int, PlacePatterns]]
    n_labels: int

    def undivided(self) -> JointProblem:
        """Return one problem with all Docs of the batch."""
        feature, cells = self._joined
        every = np.arange(len(self.batch.offsets) - 1)
        return self._problem(every, slice(None), np.bincount(cells.pattern), feature)

    def divided(self) -> Iterator[JointProblem]:
        """Yield a problem for each connected component of the Docs that patterns connect."""
        feature, cells = self._joined
        if not len(feature):
            return
        sequence = self.batch.sequence[cells.start]
        sizes = np.bincount(cells.pattern)
        home = sequence[offsets_of(sizes)[:-1]]  # [M] the Doc of each pattern's first cell
        n_docs = len(self.batch.offsets) - 1
        component = components(n_docs, sequence, np.repeat(home, sizes))
        owner = component[home]  # [M]
        order = np.argsort(owner, kind="stable")
        bounds = np.flatnonzero(np.diff(owner[order], prepend=-1))  # first of each component
        first_cell = offsets_of(sizes)[:-1]
        for patterns in np.split(order, bounds[1:]):
            rows = ranges(first_cell[patterns], sizes[patterns])
            docs = np.flatnonzero(component == owner[patterns[0]])
            yield self._problem(docs, rows, sizes[patterns], feature[patterns])

    @cached_property
    def _joined(self) -> tuple[NDArray[np.int32], PlacePatterns]:
        return _joined(self.patterns)

    def _problem(
        self,
        sequences: NDArray[np.int64],
        rows: NDArray[np.int64] | slice,
        sizes: NDArray[np.int64],
        feature: NDArray[np.int32],
    ) -> JointProblem:
        """Make the problem of some Docs.

        sequences (int64 [D']): numbers of the Docs, ascending.
        rows (int64 [n]): cells of their patterns. sizes (int64 [M]): number of cells of each pattern.
        """
        cells, batch = self._joined[1], self.batch
        # the vertices are the distinct cells, whatever the state, with tokens counted from the Doc's first
        *where, state, cell_place = (getattr(cells, name)[rows] for name in FIELDS)
        first, vertex = _distinct(where)
        kind, start, end, label = (column[first] for column in where)
        place = np.searchsorted(sequences, batch.sequence[start])
        base = batch.offsets[sequences[place]]
        start, end = start - base, end - base
        segment, token, labelled = (kind == number for number in (SEGMENT, TOKEN, LABEL))
        lengths = np.diff(batch.offsets)[sequences]
        vertices = Vertices(
            offsets_of(lengths),
            self.n_labels,
            np.stack([place, start, end], axis=1)[segment],
            np.stack([place, start], axis=1)[token],
            np.stack([place, start, label], axis=1)[labelled],
        )
        arrays = offsets_of(sizes), vertex, state.astype(np.int32), cell_place, feature
        return JointProblem(sequences, vertices, *arrays)


def _joined(
    by_feature: Sequence[tuple[int, PlacePatterns]],
) -> tuple[NDArray[np.int32], PlacePatterns]:
    """Return the feature of each pattern, int32 [M], and the patterns of all features, concatenated."""
    counts = [
        int(patterns.pattern[-1]) + 1 if len(patterns.pattern) else 0 for _, patterns in by_feature
    ]
    before = offsets_of(counts)[:-1].tolist()
    none = [np.zeros(0, dtype=np.int64)]
    number = np.concatenate(
        none + [patterns.pattern + shift for (_, patterns), shift in zip(by_feature, before)]
    )
    others = (
        np.concatenate(none + [getattr(patterns, name) for _, patterns in by_feature])
        for name in FIELDS
    )
    feature = np.repeat([g for g, _ in by_feature], counts).astype(np.int32)
    return feature, PlacePatterns(number, *others)


def _distinct(
    columns: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the distinct rows of a table, sorted by the first column, then the second, and so on: the first
    occurrence of each, and for every row the number of its distinct row.
    """
    order = np.lexsort(columns[::-1])
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number
