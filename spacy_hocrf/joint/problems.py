"""The patterns of a batch of Docs, divided into problems: what must be decoded together, as small as
can be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import components, offsets_of, ranges
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.joint.patterns import LABEL, SEGMENT, TOKEN, PlacePatterns
from spacy_hocrf.joint.vertices import Vertices

__all__ = ["JointProblem", "divide"]


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
    feature: NDArray[np.int32]  # [M] joint feature of each pattern

    def instance(self, weights: NDArray[np.float64]) -> GraphInstance:
        """The patterns as the decoder takes them, with unary scores of 0: all others are the first
        subproblem's.

        weights (float64 [G]): of the joint features.
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

    def counts(
        self, assignment: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """How often each joint feature fires.

        assignment (int32 [V]): state of each vertex.
        RETURNS (tuple[int32 [n], float64 [n]]): the features that fire, each once, and how often.
        """
        if not len(self.feature):
            return self.feature, np.zeros(0)
        fires = np.logical_and.reduceat(
            assignment[self.cell_vertex] == self.cell_state, self.pattern_offsets[:-1]
        )
        features, counts = np.unique(self.feature[fires], return_counts=True)
        return features, counts.astype(np.float64)


def divide(
    batch: TokenBatch, found: Sequence[tuple[int, PlacePatterns]], n_labels: int
) -> Iterator[JointProblem]:
    """One problem for each connected component of the Docs that patterns are about.

    found (Sequence[Tuple[int, PlacePatterns]]): joint features, and their patterns.
    n_labels (int): Y.
    """
    feature, cells = _joined(found)
    if not len(feature):
        return
    sequence = batch.sequence[cells.start]
    sizes = np.bincount(cells.pattern)
    home = sequence[offsets_of(sizes)[:-1]]  # [M] the Doc of each pattern's first cell
    component = components(len(batch.offsets) - 1, sequence, np.repeat(home, sizes))
    owner = component[home]  # [M]
    order = np.argsort(owner, kind="stable")
    bounds = np.flatnonzero(np.diff(owner[order], prepend=-1))  # first pattern of each component
    first_cell = offsets_of(sizes)[:-1]
    for patterns in np.split(order, bounds[1:]):
        rows = ranges(first_cell[patterns], sizes[patterns])
        yield _problem(
            batch,
            np.flatnonzero(component == owner[patterns[0]]),
            [getattr(cells, name)[rows] for name in ("kind", "start", "end", "label", "state")],
            offsets_of(sizes[patterns]),
            feature[patterns],
            n_labels,
        )


def _joined(
    found: Sequence[tuple[int, PlacePatterns]],
) -> tuple[NDArray[np.int32], PlacePatterns]:
    """The feature of each pattern, int32 [M], and the patterns of all features."""
    counts = [
        int(patterns.pattern[-1]) + 1 if len(patterns.pattern) else 0 for _, patterns in found
    ]
    before = offsets_of(counts)[:-1].tolist()
    none = [np.zeros(0, dtype=np.int64)]
    number = np.concatenate(
        none + [patterns.pattern + shift for (_, patterns), shift in zip(found, before)]
    )
    others = (
        np.concatenate(none + [getattr(patterns, name) for _, patterns in found])
        for name in ("kind", "start", "end", "label", "state")
    )
    feature = np.repeat([g for g, _ in found], counts).astype(np.int32)
    return feature, PlacePatterns(number, *others)


def _problem(
    batch: TokenBatch,
    sequences: NDArray[np.int64],
    cells: Sequence[NDArray[np.int64]],
    pattern_offsets: NDArray[np.int64],
    feature: NDArray[np.int32],
    n_labels: int,
) -> JointProblem:
    """The problem of some Docs.

    sequences (int64 [D]): numbers of the Docs, ascending.
    cells (Sequence[int64 [n]]): kind, start, end, label and state of each cell.
    """
    *where, state = cells
    first, vertex = _distinct(where)
    kind, start, end, label = (column[first] for column in where)
    place = np.searchsorted(sequences, batch.sequence[start])
    base = batch.offsets[sequences[place]]
    start, end = start - base, end - base
    segment, token, labelled = (kind == each for each in (SEGMENT, TOKEN, LABEL))
    lengths = np.diff(batch.offsets)[sequences]
    vertices = Vertices(
        offsets_of(lengths),
        n_labels,
        np.stack([place, start, end], axis=1)[segment],
        np.stack([place, start], axis=1)[token],
        np.stack([place, start, label], axis=1)[labelled],
    )
    return JointProblem(
        sequences, vertices, pattern_offsets, vertex, state.astype(np.int32), feature
    )


def _distinct(
    columns: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different rows of a table in their order: where each stands first, and for every row the
    number of its like; the first column counts most.
    """
    order = np.lexsort(columns[::-1])
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number
