"""The graph of a thread: a vertex for every pair that may be linked, factors over neighbouring ones
(Qian and Liu, TACL 2014, §4.2).

Vertex (i, j) has two states: item i is linked to item j (1), or not (0). Items that may be sources
are the rows, items that may be targets the columns, both in order. Neighbours are vertices of one
row and adjacent columns, or of one column and adjacent rows. The 2D grid has a factor for each such
edge, the 3-wise one also for each pair of edges that share a vertex. All patterns of a factor have
weights of their own.

Letters: V vertices, H edges, B triples of vertices.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.graph.instance import GraphInstance

__all__ = ["Grid", "GridSection", "make_grid", "pattern_of"]

Places = NDArray[np.int64]

LEFT, RIGHT, UP, DOWN = STEPS = ((0, -1), (0, 1), (-1, 0), (1, 0))
ROW, COLUMN = 0, 1
SHAPES = tuple(combinations(range(len(STEPS)), 2))
"""Three vertices: the middle one, and the steps from it to the other two."""


class GridSection(NamedTuple):
    """The factors of one size, n of them with m vertices each."""

    vertices: Places  # [n, m]
    shape: Places  # [n] ROW or COLUMN, or which of SHAPES; 0 for single vertices
    # [n] item of each edge: the two that differ in their order, and the one in common
    first: Places
    second: Places
    common: Places


@dataclass(frozen=True)
class Grid:
    """V pairs of items, and the factors over them."""

    source: Places  # [V] item i of vertex (i, j)
    target: Places  # [V] item j
    neighbours: Places  # [V, 4] vertex a step away, -1 for none, in the order of STEPS

    @property
    def n_vertices(self) -> int:
        """Number of vertices V."""
        return len(self.source)

    @cached_property
    def edges(self) -> GridSection:
        """Vertices and those to the right of them, then vertices and those below."""
        here = np.arange(self.n_vertices)
        right, below = (self.neighbours[:, STEPS.index(step)] for step in (RIGHT, DOWN))
        rows = np.stack([here, right], axis=1)[right >= 0]
        columns = np.stack([here, below], axis=1)[below >= 0]
        pairs = np.concatenate([rows, columns])
        shape = np.repeat([ROW, COLUMN], [len(rows), len(columns)])
        one, other = pairs.T
        first, second = (
            np.where(shape == ROW, self.target[v], self.source[v]) for v in (one, other)
        )
        common = np.where(shape == ROW, self.source[one], self.target[one])
        return GridSection(pairs, shape, first, second, common)

    @cached_property
    def triples(self) -> GridSection:
        """A vertex, and two of those beside it."""
        none = np.zeros(0, dtype=np.int64)
        here = np.arange(self.n_vertices)
        found, shapes = [none.reshape(0, 3)], [none]
        for number, (one, other) in enumerate(SHAPES):
            ends = self.neighbours[:, [one, other]]
            there = (ends >= 0).all(axis=1)
            found.append(np.column_stack([here[there], ends[there]]))
            shapes.append(np.full(int(there.sum()), number))
        return GridSection(np.concatenate(found), np.concatenate(shapes), none, none, none)

    @cached_property
    def single(self) -> GridSection:
        """The vertices by themselves."""
        none = np.zeros(0, dtype=np.int64)
        every = np.arange(self.n_vertices)
        return GridSection(every[:, None], np.zeros_like(every), none, none, none)

    def sections(self, order: int) -> tuple[GridSection, ...]:
        """Factors of up to so many vertices: 1, 2 or 3."""
        found = [self.single]
        if order > 1:
            found.append(self.edges)
        if order > 2:
            found.append(self.triples)
        return tuple(found)

    @cached_property
    def row_edges(self) -> Places:
        """The edges of the spanning forest: the rows, as in the paper; int64 [H', 2]."""
        rows: Places = self.edges.vertices[self.edges.shape == ROW]
        return rows

    def instance(self, tables: tuple[NDArray[np.float64], ...]) -> GraphInstance:
        """The decoding problem.

        tables (tuple of float64 [n, P]): of every section, for each factor: the score of state 1
            of a vertex (P = 1); of all patterns of an edge (P = 4) or a triple (P = 8), the states
            of its vertices read as a binary number.
        """
        scores, *larger = tables
        vertices, states, sizes = [], [], []
        for section, table in zip(self.sections(len(tables))[1:], larger):
            width = section.vertices.shape[1]
            every = np.array(list(product((0, 1), repeat=width)))
            vertices.append(np.repeat(section.vertices, len(every), axis=0).ravel())
            states.append(np.tile(every, (len(section.vertices), 1)).ravel())
            sizes.append(np.full(table.size, width))
        none = np.zeros(0, dtype=np.int64)
        on = scores.reshape(self.n_vertices)
        return GraphInstance.from_arrays(
            offsets=2 * np.arange(self.n_vertices + 1),
            unary=np.stack([np.zeros_like(on), on], axis=1).ravel(),
            pattern_offsets=np.concatenate([[0], *sizes]).cumsum(),
            vertices=np.concatenate([none, *vertices]),
            states=np.concatenate([none, *states]),
            weights=np.concatenate([np.zeros(0), *(table.ravel() for table in larger)]),
        )


def make_grid(rows: Places, columns: Places, possible: NDArray[np.bool_]) -> Grid:
    """The grid of the pairs that may be linked.

    rows, columns (int64 [S], [T]): items that may be sources, and targets, ascending.
    possible (bool [S, T]): which of the pairs are vertices.
    """
    row, column = np.nonzero(possible)
    number = np.full((len(rows) + 2, len(columns) + 2), -1, dtype=np.int64)
    number[row + 1, column + 1] = np.arange(len(row))
    around = [number[row + 1 + down, column + 1 + right] for down, right in STEPS]
    neighbours = np.stack(around, axis=1) if len(row) else np.zeros((0, 4), dtype=np.int64)
    return Grid(rows[row], columns[column], neighbours)


def pattern_of(vertices: Places, assignment: NDArray[np.int32]) -> Places:
    """The pattern of each factor that an assignment has: the states of its vertices read as a
    binary number; int64 [n].
    """
    return assignment[vertices] @ (1 << np.arange(vertices.shape[1])[::-1])
