"""The decoding problem of a generalized higher-order CRF (Qian and Liu, TACL 2 (2014) §2.1,
equations 2 and 3).

Every vertex v takes one of its own states. A vertex in a state, v[s], is a *cell*; a *pattern* is a
set of cells of different vertices, and a *factor* the set of their vertices. Decoding maximises over
all assignments y of a state to every vertex:

    φ(y) = Σ_v unary(v[y_v]) + Σ_patterns weight · [y_v = s for all cells v[s] of the pattern]

Letters: V vertices, E cells, M vertex patterns, B factors, I cells of all patterns in
sequence.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.cells import add_up

__all__ = ["Factors", "GraphInstance", "make_instance"]

Pattern = tuple[Sequence[int], Sequence[int], float]
"""Vertices, their states, and the weight."""

RADIX_LIMIT = 2**62
MAX_SCORE = 1e150
"""Largest size of a score, so that no sum of scores is infinite."""


@dataclass(frozen=True)
class GraphInstance:
    """Unary scores and patterns, checked and sorted; made by `make_instance` or `from_arrays`.

    Patterns have at least two cells, ascending by vertex; those of one factor are consecutive,
    ascending by their states, and no pattern occurs twice.
    """

    offsets: NDArray[np.int64]  # [V + 1] first cell of each vertex
    unary: NDArray[np.float64]  # [E]
    pattern_offsets: NDArray[np.int64]  # [M + 1] first cell of each pattern
    vertices: NDArray[np.int32]  # [I]
    states: NDArray[np.int32]  # [I]
    weights: NDArray[np.float64]  # [M]

    @classmethod
    def from_arrays(
        cls,
        offsets: ArrayLike,
        unary: ArrayLike,
        pattern_offsets: ArrayLike,
        vertices: ArrayLike,
        states: ArrayLike,
        weights: ArrayLike,
    ) -> "GraphInstance":
        """Make an instance from the arrays of the fields, with patterns, and cells in a pattern, in any
        order.

        Patterns of one cell are added to the unary scores, equal patterns to each other; those of
        weight 0 are left out.

        RAISES (ValueError): H082 for a cell that does not exist, H083 for a vertex twice in one
            pattern, H084 for a score out of range, H085 for arrays that do not fit each
            other.
        """
        first = _numbers("offsets", offsets, np.int64)
        scores = _numbers("unary", unary, np.float64)
        bounds = _numbers("pattern_offsets", pattern_offsets, np.int64)
        vertex = _numbers("vertices", vertices, np.int64)
        state = _numbers("states", states, np.int64)
        weight = _numbers("weights", weights, np.float64)
        _check(first, scores, bounds, vertex, state, weight)
        # the cells of each pattern, sorted by vertex
        sizes = np.diff(bounds)
        pattern = np.repeat(np.arange(len(weight)), sizes)
        order = np.argsort(pattern * max(1, len(first) - 1) + vertex, kind="stable")
        vertex, state = vertex[order], state[order]
        twice = np.flatnonzero((np.diff(pattern) == 0) & (np.diff(vertex) == 0))
        if len(twice):
            raise ValueError(
                Errors.H083.format(pattern=int(pattern[twice[0]]), vertex=int(vertex[twice[0]]))
            )
        single = bounds[:-1][sizes == 1]
        np.add.at(scores, first[vertex[single]] + state[single], weight[sizes == 1])
        kept, total = _merged(first, sizes, bounds, vertex, state, weight)
        cells = ranges(bounds[kept], sizes[kept])
        return cls(
            offsets=first,
            unary=scores,
            pattern_offsets=offsets_of(sizes[kept]),
            vertices=vertex[cells].astype(np.int32),
            states=state[cells].astype(np.int32),
            weights=total,
        )

    @property
    def n_vertices(self) -> int:
        """Number of vertices V."""
        return len(self.offsets) - 1

    @cached_property
    def n_states(self) -> NDArray[np.int64]:
        """Number of states of each vertex, int64 [V]."""
        return np.diff(self.offsets)

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Cell of each vertex and state in the patterns, int64 [I]."""
        return self.offsets[self.vertices] + self.states

    @cached_property
    def factors(self) -> "Factors":
        """The patterns, grouped by the set of their vertices."""
        return Factors.of(self)

    def score(self, assignment: NDArray[np.int32]) -> float:
        """Return φ of an assignment.

        assignment (int32 [V]): state of each vertex.
        RETURNS (float): nats.
        """
        chosen = self.unary[self.offsets[:-1] + assignment]
        return float(chosen.sum()) + add_up(
            assignment, self.pattern_offsets, self.vertices, self.states, self.weights
        )

    def fires(self, assignment: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which patterns occur in an assignment, bool [M]."""
        occurs = np.zeros(len(self.weights), dtype=np.uint8)
        add_up(assignment, self.pattern_offsets, self.vertices, self.states, self.weights, occurs)
        return occurs.view(bool)


@dataclass(frozen=True)
class Factors:
    """B sets of vertices that have patterns, in the order of their patterns."""

    offsets: NDArray[np.int64]  # [B + 1] first pattern of each factor
    sizes: NDArray[np.int64]  # [B] number of vertices
    first: NDArray[np.int64]  # [B] place of its first vertex in `GraphInstance.vertices`

    @classmethod
    def of(cls, instance: GraphInstance) -> "Factors":
        """Return the factors of an instance; a new one begins where the vertices of patterns
        change.
        """
        bounds, vertices = instance.pattern_offsets, instance.vertices
        sizes = np.diff(bounds)
        begins = np.ones(len(sizes), dtype=bool)
        same_size = np.flatnonzero(np.diff(sizes) == 0) + 1
        if len(same_size):
            before = vertices[ranges(bounds[same_size - 1], sizes[same_size])]
            after = vertices[ranges(bounds[same_size], sizes[same_size])]
            first_cell = offsets_of(sizes[same_size])[:-1]
            begins[same_size] = np.logical_or.reduceat(before != after, first_cell)
        first = np.flatnonzero(begins)
        return cls(np.append(first, len(sizes)), sizes[first], bounds[first])

    def __len__(self) -> int:
        return len(self.sizes)


def make_instance(unary: Sequence[ArrayLike], patterns: Iterable[Pattern] = ()) -> GraphInstance:
    """Make an instance from lists.

    unary (Sequence[array]): scores of the states of each vertex; at least one each.
    patterns (Iterable[Tuple[vertices, states, weight]]): vertices, states and weight of each
        pattern.
    RAISES (ValueError): as `GraphInstance.from_arrays`; H085 also for a pattern without a weight, or
        with another number of states than of vertices.
    """
    rows = [_numbers(f"unary {v}", row, np.float64).ravel() for v, row in enumerate(unary)]
    listed = list(patterns)
    for i, pattern in enumerate(listed):
        if len(pattern) != 3 or len(pattern[0]) != len(pattern[1]):
            name, found = f"pattern {i}", ascii(pattern)[:60]
            expected = "vertices, as many states, and a weight"
            raise ValueError(Errors.H085.format(name=name, found=found, expected=expected))
    return GraphInstance.from_arrays(
        offsets=offsets_of([len(row) for row in rows]),
        unary=np.concatenate([np.zeros(0), *rows]),
        pattern_offsets=offsets_of([len(vertices) for vertices, _, _ in listed]),
        vertices=[v for vertices, _, _ in listed for v in vertices],
        states=[s for _, states, _ in listed for s in states],
        weights=[weight for _, _, weight in listed],
    )


def _numbers(name: str, values: ArrayLike, dtype: type) -> NDArray[Any]:
    """Return a new array, at least [1]. RAISES (ValueError): H085 for what are no numbers of this type."""
    try:
        numbers: NDArray[Any] = np.array(values, dtype=dtype, ndmin=1)
        if dtype is np.int64 and (numbers != np.asarray(values)).any():
            raise ValueError(values)
        return numbers
    except (OverflowError, TypeError, ValueError) as error:
        expected = "integers" if dtype is np.int64 else "numbers that a float holds"
        text = Errors.H085.format(name=name, found=ascii(values)[:60], expected=expected)
        raise ValueError(text) from error


def _check(
    offsets: NDArray[np.int64],
    unary: NDArray[np.float64],
    bounds: NDArray[np.int64],
    vertices: NDArray[np.int64],
    states: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> None:
    n = len(offsets) - 1
    fits = [
        (
            "offsets",
            n >= 0 and offsets[0] == 0 and (np.diff(offsets) > 0).all(),
            offsets[:5].tolist(),
            "0 and then ascending",
        ),
        ("unary", len(unary) == offsets[-1], len(unary), int(offsets[-1])),
        ("pattern_offsets", len(bounds) == len(weights) + 1, len(bounds), len(weights) + 1),
        (
            "pattern_offsets",
            bounds[0] == 0 and (np.diff(bounds) > 0).all(),
            bounds[:5].tolist(),
            "0 and then ascending",
        ),
        ("vertices", len(vertices) == bounds[-1], len(vertices), int(bounds[-1])),
        ("states", len(states) == bounds[-1], len(states), int(bounds[-1])),
    ]
    for name, right, found, expected in fits:
        if not right:
            raise ValueError(Errors.H085.format(name=name, found=found, expected=expected))
    inside = (vertices >= 0) & (vertices < n)
    inside[inside] &= (states[inside] >= 0) & (states[inside] < np.diff(offsets)[vertices[inside]])
    if not inside.all():
        at = int(np.flatnonzero(~inside)[0])
        pattern = int(np.searchsorted(bounds, at, side="right")) - 1
        v, s = int(vertices[at]), int(states[at])
        known = (
            f"vertex {v} has {int(offsets[v + 1] - offsets[v])} states"
            if 0 <= v < n
            else f"there are {n} vertices"
        )
        raise ValueError(Errors.H082.format(pattern=pattern, vertex=v, state=s, known=known))
    for name, scores in (("unary", unary), ("weights", weights)):
        bad = np.flatnonzero(~(np.abs(scores) <= MAX_SCORE))
        if len(bad):
            raise ValueError(
                Errors.H084.format(name=name, found=float(scores[bad[0]]), where=int(bad[0]))
            )


def _merged(
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    bounds: NDArray[np.int64],
    vertices: NDArray[np.int64],
    states: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the distinct patterns of at least two cells, sorted by size, vertices and states, and the sums
    of their weights.
    """
    chosen, totals = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    most = int(np.diff(offsets).max(initial=1))
    for size in np.unique(sizes[sizes > 1]).tolist():
        members = np.flatnonzero(sizes == size)
        at = bounds[members][:, None] + np.arange(size)
        # rank of each pattern by vertices, then by states: digits of one number, renumbered if it is large
        radices = [(vertices[at[:, j]], len(offsets) - 1) for j in range(size)]
        radices += [(states[at[:, j]], most) for j in range(size)]
        rank, n_ranks = np.zeros(len(members), dtype=np.int64), 1
        for digit, radix in radices:
            if n_ranks > RADIX_LIMIT // radix:
                rank = np.unique(rank, return_inverse=True)[1].ravel()
                n_ranks = int(rank.max()) + 1
            rank, n_ranks = rank * radix + digit, n_ranks * radix
        order = np.argsort(rank, kind="stable")
        begins = np.flatnonzero(np.diff(rank[order], prepend=-1))
        total = np.add.reduceat(weights[members][order], begins)
        chosen.append(members[order][begins][total != 0])
        totals.append(total[total != 0])
    return np.concatenate(chosen), np.concatenate(totals)
