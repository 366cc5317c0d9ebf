"""The parts of a dual decomposition: a first subproblem that has the structure, and others that
have some patterns each.

Letters: V vertices, E cells of the instance, X cells that a subproblem has copies of, n edges or
variables.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.forest import MaxSum, spanning_forest
from spacy_hocrf.graph.instance import GraphInstance

__all__ = [
    "Decomposition",
    "FirstSubproblem",
    "ForestSubproblem",
    "Maximiser",
    "Subproblem",
    "choose_edges",
    "pattern_rows",
]


class FirstSubproblem(Protocol):
    """The subproblem that has the structure, and whose assignments are always valid: a
    forest, or a whole semi-CRF.

    It has a score of its own for every assignment of states to the V vertices, and can be rewarded
    for each of the E cells. If several solutions have the same assignment (a segmentation decides more than
    the vertices' states), the best of them counts.
    """

    @property
    def offsets(self) -> NDArray[np.int64]:
        """First cell of each vertex, int64 [V + 1]."""
        ...

    @property
    def slack(self) -> float:
        """How far the last returned score, which may be an upper bound, lies above the score of the
        assignment; 0 if they are equal.
        """
        ...

    def maximise(self, rewards: NDArray[np.float64]) -> tuple[float, NDArray[np.int32]]:
        """Return the highest score, rewards included, and an assignment that has it, or `slack` less.

        rewards (float64 [E]): added to the subproblem's score for every cell of the assignment; finite.
        RETURNS (tuple[float, int32 [V]]): the score in nats, and the state of each vertex, which later
            calls must not change.
        """
        ...

    def keep(self) -> None:
        """Keep the solution behind the last assignment, which is the best so far."""
        ...


class Maximiser(Protocol):
    """A solver that chooses the best set of some cells, under changing scores."""

    def maximise(self, scores: NDArray[np.float64], chosen: NDArray[np.uint8]) -> float:
        """Return the highest score.

        scores (float64 [X]): scores of the subproblem's cells.
        chosen (uint8 [X]): set to 1 for the cells that are on.
        RETURNS (float): the score in nats, or an upper bound that exceeds it by rounding errors only.
        """
        ...


class Subproblem:
    """Some patterns, and the cells that they contain.

    cells (int64 [X]): cells of the instance.
    maximiser (Maximiser): maximises the score of cells and patterns.
    """

    def __init__(self, cells: NDArray[np.int64], maximiser: Maximiser) -> None:
        self.cells = cells
        self.maximise = maximiser.maximise


class Decomposition(NamedTuple):
    """All subproblems of an instance, with the distribution of patterns among them."""

    first: FirstSubproblem
    subproblems: tuple[Subproblem, ...]
    outside: NDArray[np.int64]  # [m] patterns that the first subproblem does not have
    constant: float  # subtracted from the sum of all subproblems' maxima


class ForestSubproblem:
    """A forest over the vertices of an instance.

    instance (GraphInstance): has V vertices.
    edges (int64 [n]): factors of two vertices, as numbers in `instance.factors`, without a cycle.
    """

    slack = 0.0

    def __init__(self, instance: GraphInstance, edges: NDArray[np.int64]) -> None:
        factors = instance.factors
        # [n, 2]
        ends = instance.vertices[factors.first[edges][:, None] + np.arange(2)].astype(np.int32)
        self.offsets = instance.offsets
        left, right = np.ascontiguousarray(ends.T)
        order, parent, edge = spanning_forest(left, right, instance.n_vertices)
        # a table of scores for each vertex with a parent, and that vertex for each edge
        widths = instance.n_states
        sizes = np.where(parent >= 0, widths * widths[parent], 0)
        table_offsets = offsets_of(sizes)
        child = np.zeros(len(edges), dtype=np.int64)
        child[edge[parent >= 0]] = np.flatnonzero(parent >= 0)
        patterns, owner = pattern_rows(instance, edges)
        # where each pattern's weight belongs in them
        at = instance.pattern_offsets[patterns][:, None] + np.arange(2)
        states = instance.states[at].astype(np.int64)
        below = np.where(ends[owner, 0] == child[owner], 0, 1)
        rows = np.arange(len(patterns))
        place = (
            table_offsets[child[owner]]
            + states[rows, below] * widths[parent[child[owner]]]
            + states[rows, 1 - below]
        )
        tables = np.zeros(int(table_offsets[-1]))
        tables[place] = instance.weights[patterns]
        self._max_sum = MaxSum(instance.offsets, order, parent, table_offsets, tables)

    def maximise(self, rewards: NDArray[np.float64]) -> tuple[float, NDArray[np.int32]]:
        """Return the best assignment for these rewards, which are the cells' whole scores, and the edges'
        patterns.
        """
        assignment = np.empty(len(self.offsets) - 1, dtype=np.int32)
        return self._max_sum.maximise(rewards, assignment), assignment

    def losses(self, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how much the score of the best assignment with each cell is below the highest score,
        float64 [E].
        """
        best = np.empty(len(rewards))
        self._max_sum.max_marginals_into(rewards, best)
        if not len(best):
            return best
        return np.repeat(np.maximum.reduceat(best, self.offsets[:-1]), np.diff(self.offsets)) - best

    def keep(self) -> None:
        """Do nothing: the assignment is the whole solution."""


def choose_edges(
    instance: GraphInstance, wanted: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Choose factors for a forest: those of the wanted pairs, or a spanning forest of the heaviest
    pairs.

    wanted (Optional[int64 [n, 2]]): pairs of vertices; those without a pattern are ignored. None
        chooses by the sum of absolute weights, the lower vertices among equals.
    RETURNS (int64 [n']): numbers in `instance.factors`.
    RAISES (ValueError): H086 for pairs that close a cycle, or are not pairs of the instance's vertices.
    """
    factors = instance.factors
    pairs = np.flatnonzero(factors.sizes == 2)
    ends = instance.vertices[factors.first[pairs][:, None] + np.arange(2)]
    if wanted is None:
        weight = np.zeros(0)
        if len(pairs):
            weight = np.add.reduceat(np.abs(instance.weights), factors.offsets[:-1])[pairs]
        order = np.argsort(-weight, kind="stable")
        left, right = np.ascontiguousarray(ends[order].T)
        return pairs[order[_taken(left, right, instance.n_vertices)]]
    edges = np.sort(np.asarray(wanted, dtype=np.int64).reshape(-1, 2), axis=1)
    n = instance.n_vertices
    outside = np.flatnonzero((edges[:, 0] < 0) | (edges[:, 1] >= n) | (edges[:, 0] == edges[:, 1]))
    if len(outside):
        pair, reason = edges[outside[0]].tolist(), f"is no pair of {n} vertices"
        raise ValueError(Errors.H086.format(pair=pair, reason=reason))
    left, right = np.ascontiguousarray(edges.T.astype(np.int32))
    closing = np.setdiff1d(np.arange(len(edges)), _taken(left, right, n))
    if len(closing):
        pair, reason = edges[closing[0]].tolist(), "closes a cycle with those before it"
        raise ValueError(Errors.H086.format(pair=pair, reason=reason))
    keys = ends[:, 0].astype(np.int64) * max(1, n) + ends[:, 1]
    return pairs[np.isin(keys, edges[:, 0] * max(1, n) + edges[:, 1])]


def pattern_rows(
    instance: GraphInstance, factors: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the patterns of some factors.

    factors (int64 [B]): numbers in `instance.factors`.
    RETURNS (tuple[int64 [m], int64 [m]]): the patterns, and for each the position of its factor in
        `factors`.
    """
    first = instance.factors.offsets[factors]
    counts = instance.factors.offsets[factors + 1] - first
    return ranges(first, counts), np.repeat(np.arange(len(factors)), counts)


def _taken(one: NDArray[np.int32], other: NDArray[np.int32], n_vertices: int) -> NDArray[np.int64]:
    edge = spanning_forest(one, other, n_vertices)[2]
    return np.sort(edge[edge >= 0]).astype(np.int64)
