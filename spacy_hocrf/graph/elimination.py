"""Exact decoding of graphs that are nearly trees: vertices are eliminated one by one, by max-sum
over the cliques that this creates.

Eliminating a vertex takes a table over its states and those of all vertices that share a factor with it at
that time, and leaves a factor on these other vertices (Bertelè and Brioschi 1972;
Dechter, Artificial Intelligence 113 (1999), bucket elimination). The cost is the size of the
tables. The order is greedy: always the vertex with the smallest table.
"""

import heapq
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.subproblems import pattern_rows

__all__ = ["best_by_elimination"]

MAX_DIMENSIONS = 24
"""Most vertices of a table; NumPy limits the dimensions of arrays, too."""

Table = tuple[tuple[int, ...], NDArray[np.float64]]
"""Vertices, those eliminated last first, and a score for each combination of their states.
"""


def best_by_elimination(
    instance: GraphInstance, most_entries: int
) -> tuple[float, NDArray[np.int32]] | None:
    """Return the best assignment, if tables with this many entries in all are enough.

    RETURNS (Optional[tuple[float, int32 [V]]]): its score, up to rounding errors from another order of
        summation, and the state of each vertex; None if more entries are needed.
    """
    order = _order(instance, most_entries)
    return None if order is None else _eliminate(instance, order)


def _order(instance: GraphInstance, most_entries: int) -> list[int] | None:
    """Order in which vertices are eliminated; None if their tables have more entries."""
    widths = instance.n_states.tolist()
    neighbours: list[set[int]] = [set() for _ in widths]
    for vertices in _scopes(instance):
        for v in vertices:
            neighbours[v].update(vertices)
    for v, others in enumerate(neighbours):
        others.discard(v)

    def entries(v: int) -> int:
        return int(math.prod((widths[w] for w in neighbours[v]), start=widths[v]))

    sizes = [entries(v) for v in range(len(widths))]
    queue = list(zip(sizes, range(len(widths))))
    heapq.heapify(queue)
    order: list[int] = []
    total = 0
    while queue:
        size, v = heapq.heappop(queue)
        if size != sizes[v]:  # eliminated already, or in the queue again
            continue
        total += size
        if total > most_entries or len(neighbours[v]) >= MAX_DIMENSIONS:
            return None
        sizes[v] = 0
        order.append(v)
        for w in neighbours[v]:
            neighbours[w] |= neighbours[v]
            neighbours[w] -= {v, w}
            sizes[w] = entries(w)
            heapq.heappush(queue, (sizes[w], w))
    return order


def _eliminate(instance: GraphInstance, order: Sequence[int]) -> tuple[float, NDArray[np.int32]]:
    place = np.argsort(order) if len(order) else np.zeros(0, dtype=np.int64)
    # tables of each vertex that is the first of the table's vertices to be eliminated
    waiting: list[list[Table]] = [[] for _ in order]

    def wait(vertices: tuple[int, ...], scores: NDArray[np.float64]) -> None:
        waiting[vertices[-1]].append((vertices, scores))

    for members, scores in zip(_scopes(instance), _factor_tables(instance)):
        late_first = np.argsort(-place[list(members)])
        wait(tuple(members[i] for i in late_first), scores.transpose(late_first))
    total = 0.0
    choices: list[tuple[tuple[int, ...], NDArray[np.int64]]] = []
    for v in order:
        scope = sorted(
            {w for vertices, _ in waiting[v] for w in vertices} - {v}, key=lambda w: -place[w]
        )
        axes = {w: i for i, w in enumerate([*scope, v])}
        joint = np.zeros([*(int(instance.n_states[w]) for w in scope), int(instance.n_states[v])])
        joint += instance.unary[instance.offsets[v] : instance.offsets[v + 1]]
        for vertices, scores in waiting[v]:
            missing = tuple(axes[w] for w in scope if w not in vertices)
            joint += np.expand_dims(scores, missing)
        waiting[v] = []
        choices.append((tuple(scope), joint.argmax(axis=-1)))
        best = joint.max(axis=-1)
        if scope:
            wait(tuple(scope), best)
        else:
            total += float(best)
    assignment = np.zeros(len(order), dtype=np.int32)
    for v, (others, choice) in zip(reversed(order), reversed(choices)):
        assignment[v] = choice[tuple(assignment[list(others)])]
    return total, assignment


def _scopes(instance: GraphInstance) -> list[tuple[int, ...]]:
    """Return the vertices of each factor."""
    factors = instance.factors
    return [
        tuple(instance.vertices[first : first + size].tolist())
        for first, size in zip(factors.first, factors.sizes)
    ]


def _factor_tables(instance: GraphInstance) -> list[NDArray[np.float64]]:
    """Return a table of each factor's pattern weights, 0 for all other states of its vertices."""
    tables = []
    for b, (vertices, size) in enumerate(zip(_scopes(instance), instance.factors.sizes.tolist())):
        patterns = pattern_rows(instance, np.array([b]))[0]
        scores = np.zeros(instance.n_states[list(vertices)])
        states = instance.states[instance.pattern_offsets[patterns][:, None] + np.arange(size)]
        scores[tuple(states.T)] = instance.weights[patterns]
        tables.append(scores)
    return tables
