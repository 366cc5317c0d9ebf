"""Exact decoding by an integer linear program, which SciPy solves with HiGHS.

Variables, of which only the cells must be 0 or 1:

    cells       one for each cell; those of a vertex sum to 1
    tables      for a factor, one for each combination of states of its vertices; the sum over the
                combinations with a cell equals that cell
    patterns    t for each pattern of other factors. Weight > 0: the sum of t over the patterns of a
                factor with a cell is at most that cell. Weight < 0: t ≥ Σ cells - (K - 1) for a
                pattern of K cells

Tables are, for pairs, the local polytope of Qian and Liu, TACL 2 (2014) §4.1.4, and tighter than
separate patterns.

Letters: V vertices, E cells, M vertex patterns, B factors, K vertices of a factor.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.result import Decoding
from spacy_hocrf.graph.subproblems import pattern_rows

__all__ = ["solve_ilp"]

MAX_TABLE = 400
"""Factors with more combinations than this get patterns instead of a table."""
MIN_FILLED = 0.25
"""So do factors of more than two vertices with patterns for less than this fraction of the combinations.
"""

TOLERANCE = 1e-6
"""Largest gap of a certificate, nats."""
ROUNDING = 1e-6  # error of a slack, relative to the score


def solve_ilp(
    instance: GraphInstance, decoding: Decoding, losses: NDArray[np.float64], seconds: float
) -> Decoding:
    """Return the best assignment if the time suffices; else the best that was found, and an upper bound.

    instance (GraphInstance): unary scores and patterns.
    decoding (Decoding): the result of dual decomposition.
    losses (float64 [E]): by how much the bound on assignments with each cell is below the bound on all, nats:
        cells that cannot be in a better assignment are left out of the program.
    seconds (float): time limit of the solver.
    RAISES (ValueError): H090 without SciPy.
    """
    program, tables = _Program(instance), _suits_table(instance)
    program.add_tables(np.flatnonzero(tables))
    program.add_patterns(np.flatnonzero(~tables))
    slack = decoding.gap + ROUNDING * (1.0 + abs(decoding.primal))
    solution = program.solve(np.flatnonzero(losses > slack), seconds)
    primal, assignment = decoding.primal, decoding.assignment
    if solution.variables is not None:
        chosen = np.split(solution.variables[: len(instance.unary)], instance.offsets[1:-1])
        assigned = np.array([row.argmax() for row in chosen], dtype=np.int32)
        if instance.score(assigned) > primal:
            primal, assignment = instance.score(assigned), assigned
    bound = max(min(decoding.bound, solution.bound), primal)
    certificate = bound - primal <= TOLERANCE
    return replace(
        decoding, assignment=assignment, primal=primal, bound=bound, certificate=certificate
    )


def _suits_table(instance: GraphInstance) -> NDArray[np.bool_]:
    """Which factors have two vertices, or patterns for a sufficient fraction of their combinations, and not
    too many of these? (bool [B])
    """
    factors = instance.factors
    vertices = instance.vertices[ranges(factors.first, factors.sizes)]
    widths = instance.n_states[vertices].astype(np.float64)
    choices = np.multiply.reduceat(widths, np.cumsum(factors.sizes) - factors.sizes)
    filled = np.diff(factors.offsets) / choices
    suits: NDArray[np.bool_] = (factors.sizes == 2) | (filled >= MIN_FILLED)
    return suits & (choices <= MAX_TABLE)


class _Solution(NamedTuple):
    bound: float  # inf if the solver has none
    variables: NDArray[np.float64] | None  # None if it has found no solution


class _Program:
    """An integer linear program, built part by part; the first E variables are the cells."""

    def __init__(self, instance: GraphInstance) -> None:
        self._instance = instance
        self._n_columns = self._n_rows = 0
        self._scores: list[NDArray[np.float64]] = []
        self._rows: list[NDArray[np.int64]] = []
        self._columns: list[NDArray[np.int64]] = []
        self._values: list[NDArray[np.float64]] = []
        self._low: list[NDArray[np.float64]] = []
        self._high: list[NDArray[np.float64]] = []
        self._add_variables(instance.unary)
        one = np.ones(instance.n_vertices)
        vertex = np.repeat(np.arange(instance.n_vertices), instance.n_states)
        self._add_rows((vertex, np.arange(len(instance.unary)), 1.0), low=one, high=one)

    def add_tables(self, factors: NDArray[np.int64]) -> None:
        """Add a variable for each combination of states of these factors' vertices, int64 [n]."""
        instance = self._instance
        sizes = instance.factors.sizes[factors]
        for size in np.unique(sizes).tolist():
            chosen = factors[sizes == size]
            vertices = instance.vertices[instance.factors.first[chosen][:, None] + np.arange(size)]
            widths, group = np.unique(instance.n_states[vertices], axis=0, return_inverse=True)
            for i, width in enumerate(widths):
                equal = group.ravel() == i
                self._add_equal_tables(chosen[equal], vertices[equal], width)

    def _add_equal_tables(
        self, factors: NDArray[np.int64], vertices: NDArray[np.int32], width: NDArray[np.int64]
    ) -> None:
        """Add tables of factors whose vertices, int32 [n, K], have the same numbers of states,
        int64 [K].
        """
        instance, n_choices, n_marginals = self._instance, int(width.prod()), int(width.sum())
        patterns, owner = pattern_rows(instance, factors)
        # score of each combination of states, from the patterns of the factor
        at = instance.pattern_offsets[patterns][:, None] + np.arange(len(width))
        combination = np.ravel_multi_index(tuple(instance.states[at].T), tuple(width))
        scores = np.zeros((len(factors), n_choices))
        scores[owner, combination] = instance.weights[patterns]
        choice = self._n_columns + np.arange(scores.size).reshape(scores.shape)
        self._add_variables(scores.ravel())
        # rows: the combinations with a cell sum to that cell's variable
        states = np.array(np.unravel_index(np.arange(n_choices), tuple(width)))  # [K, choices]
        inside = (np.cumsum(width) - width)[:, None] + states
        first_row = n_marginals * np.arange(len(factors))
        rows = first_row[:, None, None] + inside
        columns = np.broadcast_to(choice[:, None, :], rows.shape)
        cells = np.concatenate(
            [instance.offsets[vertices[:, k], None] + np.arange(n) for k, n in enumerate(width)],
            axis=1,
        )
        zero = np.zeros(cells.size)
        self._add_rows(
            (rows.ravel(), columns.ravel(), 1.0),
            (np.arange(cells.size), cells.ravel(), -1.0),
            low=zero,
            high=zero,
        )

    def add_patterns(self, factors: NDArray[np.int64]) -> None:
        """Add a variable for each pattern of these factors; those of one factor exclude each other."""
        instance = self._instance
        patterns, owner = pattern_rows(instance, factors)
        variable = self._n_columns + np.arange(len(patterns))
        weights = instance.weights[patterns]
        self._add_variables(weights)
        sizes = np.diff(instance.pattern_offsets)[patterns]
        cells = instance.cells[ranges(instance.pattern_offsets[patterns], sizes)]
        of = np.repeat(np.arange(len(patterns)), sizes)  # pattern of each of these cells
        # rows: the patterns of positive weight with a cell, in one factor, sum to that cell at most
        likes = weights[of] > 0
        n_cells = len(instance.unary)
        together = owner[of[likes]] * n_cells + cells[likes]
        limited, row = np.unique(together, return_inverse=True)
        never = np.full(len(limited), -np.inf)
        self._add_rows(
            (row.ravel(), variable[of[likes]], 1.0),
            (np.arange(len(limited)), limited % n_cells, -1.0),
            low=never,
            high=np.zeros(len(limited)),
        )
        # rows: a pattern of negative weight fires if all its cells are chosen
        disliked = np.flatnonzero(weights < 0)
        row = np.searchsorted(disliked, of[~likes])
        never = np.full(len(disliked), -np.inf)
        self._add_rows(
            (row, cells[~likes], 1.0),
            (np.arange(len(disliked)), variable[disliked], -1.0),
            low=never,
            high=sizes[disliked] - 1.0,
        )

    def solve(self, excluded: NDArray[np.int64], seconds: float) -> _Solution:
        """Return the highest score without the excluded cells, or a bound on it, and the best solution found
        within the time limit.
        """
        try:
            from scipy.optimize import Bounds, LinearConstraint, milp
            from scipy.sparse import csc_array
        except ImportError as error:
            raise ValueError(Errors.H090) from error
        extents = (self._n_rows, self._n_columns)
        entries = (
            np.concatenate(self._values),
            (np.concatenate(self._rows), np.concatenate(self._columns)),
        )
        is_integer = np.zeros(self._n_columns)
        is_integer[: len(self._instance.unary)] = 1.0
        most = np.ones(self._n_columns)
        most[excluded] = 0.0
        result = milp(
            -np.concatenate(self._scores),
            integrality=is_integer,
            bounds=Bounds(0.0, most),
            constraints=LinearConstraint(
                csc_array(entries, shape=extents),
                np.concatenate(self._low),
                np.concatenate(self._high),
            ),
            options={"mip_rel_gap": 0.0, "time_limit": seconds},
        )
        # there is always a solution, and none is unbounded
        assert result.status in (0, 1, 4), result.message
        bound = np.inf if result.mip_dual_bound is None else -result.mip_dual_bound
        return _Solution(float(bound), result.x)

    def _add_variables(self, scores: NDArray[np.float64]) -> None:
        self._scores.append(scores)
        self._n_columns += len(scores)

    def _add_rows(
        self, *entries: tuple[Any, Any, Any], low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> None:
        """Add rows with entries (row, column, value), in several parts; rows are numbered from the next free
        row.
        """
        for rows, columns, values in entries:
            self._rows.append(self._n_rows + rows)
            self._columns.append(columns)
            self._values.append(np.broadcast_to(values, rows.shape))
        self._low.append(low)
        self._high.append(high)
        self._n_rows += len(low)
