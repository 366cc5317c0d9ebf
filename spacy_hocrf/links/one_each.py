"""Links where each source has one at most: a vertex for each source, whose states are its targets,
and state 0 for none.

A factor over m vertices of the grid, x in {0, 1}^m, is a sum over the subsets of these,

    f(x) = Σ_S c(S) Π_{v in S} x_v,    c(S) = Σ_{R ⊆ S} (-1)^|S - R| f(R)

of which those with two vertices of one row are never on, and those with one are a score of a state.
So factors join rows alone: the 2D grid becomes a chain of its rows, whose best path is exact, and
the 3-wise one a chain of the second order.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.links.grid import Grid

__all__ = ["OneEach", "thinned"]


@dataclass(frozen=True)
class OneEach:
    """The vertices of a grid as states of its rows."""

    grid: Grid

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Row of each vertex, int64 [V]; rows without a vertex do not count."""
        return np.unique(self.grid.source, return_inverse=True)[1].ravel().astype(np.int64)

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """First vertex of each row, and V; int64 [rows + 1]."""
        return offsets_of(np.bincount(self.rows) if len(self.rows) else [])

    @cached_property
    def states(self) -> NDArray[np.int64]:
        """State of its row that each vertex is, from 1; int64 [V]."""
        states: NDArray[np.int64] = np.arange(len(self.rows)) - self.firsts[self.rows] + 1
        return states

    def instance(self, tables: tuple[NDArray[np.float64], ...]) -> GraphInstance:
        """The decoding problem; the score of an answer is that of the grid's.

        tables (tuple of float64 [n, P]): as `Grid.instance` has them.
        """
        scores = tables[0].reshape(-1).copy()  # [V]
        constant = 0.0
        cells, sizes, weights = [np.zeros(0, dtype=np.int64)], [0], [np.zeros(0)]
        for section, table in zip(self.grid.sections(len(tables))[1:], tables[1:]):
            width = section.vertices.shape[1]
            coefficients = _coefficients(table, width)
            constant += float(coefficients[:, 0].sum())
            for size in range(1, width + 1):
                for chosen in combinations(range(width), size):
                    subset = sum(1 << (width - 1 - v) for v in chosen)
                    members, values = section.vertices[:, chosen], coefficients[:, subset]
                    if size == 1:
                        np.add.at(scores, members[:, 0], values)
                        continue
                    rows = np.sort(self.rows[members], axis=1)
                    apart = (np.diff(rows, axis=1) > 0).all(axis=1)
                    cells.append(members[apart].ravel())
                    sizes += [size] * int(apart.sum())
                    weights.append(values[apart])
        every = np.concatenate(cells)
        offsets = self.firsts + np.arange(len(self.firsts))  # one state more in each row
        unary = np.zeros(int(offsets[-1]))
        unary[offsets[self.rows] + self.states] = scores
        unary[: int(offsets[1]) if len(offsets) > 1 else 0] += constant
        return GraphInstance.from_arrays(
            offsets=offsets,
            unary=unary,
            pattern_offsets=np.cumsum(sizes),
            vertices=self.rows[every],
            states=self.states[every],
            weights=np.concatenate(weights),
        )

    def on(self, assignment: NDArray[np.int32]) -> NDArray[np.int32]:
        """Which vertices of the grid are on, int32 [V], where the rows have these states."""
        found = np.zeros(len(self.rows), dtype=np.int32)
        linked = np.flatnonzero(assignment)
        found[self.firsts[linked] + assignment[linked] - 1] = 1
        return found


def thinned(grid: Grid, states: NDArray[np.int32]) -> NDArray[np.int32]:
    """Annotated states of vertices, of each source the nearest link alone, the earlier of two;
    int32 [V].
    """
    on = np.flatnonzero(states)
    distance = np.abs(grid.source[on] - grid.target[on])
    order = np.lexsort((distance, grid.source[on]))
    first = np.flatnonzero(np.diff(grid.source[on][order], prepend=-1))
    found = np.zeros_like(states)
    found[on[order[first]]] = 1
    return found


def _coefficients(table: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """c(S) of each factor, S read as a binary number, float64 [n, 2^width]."""
    found: NDArray[np.float64] = table.reshape(-1, *(2,) * width)
    for axis in range(1, width + 1):
        off, on = (np.take(found, state, axis=axis) for state in (0, 1))
        found = np.stack([off, on - off], axis=axis)
    return found.reshape(table.shape)
