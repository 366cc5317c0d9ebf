"""Which subproblem has which pattern: the kinds of dual decomposition.

The first subproblem has the structure: a forest and the patterns on its edges, or a whole semi-CRF.
All other patterns go to

    two_slave  one minimum cut. Negative weights are made non-negative by adding a constant to all patterns of a pair of vertices
               (Qian and Liu, TACL 2 (2014) §3.2, §3.3 and appendix A). Its bound is loose as soon
               as there are any.
    naive      spanning forests over the pairs that are left, until all are covered, and one subproblem for every larger factor
               (ibid. §4.1.4, each subproblem being exact here).
    hybrid     one minimum cut for what is non-negative and no tighter by itself, and one subproblem for every other factor.

A factor by itself is tighter than its patterns in a cut if they exclude each other and share cells,
or if one is negative.

Extents: N vertices, V cells, L cells of a subproblem, m patterns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.graph.cut import MinimumCut
from spacy_hocrf.graph.factors import FactorMaxima
from spacy_hocrf.graph.forest import spanning_forest
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.reductions import Extra, pairs_less_product, product
from spacy_hocrf.graph.settings import HYBRID, TWO_SLAVE
from spacy_hocrf.graph.subproblems import (
    FirstSubproblem,
    ForestSubproblem,
    Subproblem,
    choose_edges,
    pattern_rows,
)

__all__ = ["Decomposition", "decompose"]


@dataclass(frozen=True)
class Decomposition:
    """A first subproblem, the others, and what a shift of weights has added to all assignments'
    scores.
    """

    first: FirstSubproblem
    subproblems: tuple[Subproblem, ...]
    outside: NDArray[np.int64]  # [m] patterns that the first subproblem does not have
    constant: float  # to be subtracted from the subproblems' sum


def decompose(
    instance: GraphInstance,
    kind: str,
    first: FirstSubproblem | None,
    edges: NDArray[np.int64] | None = None,
) -> Decomposition:
    """The subproblems of an instance.

    kind (str): one of `settings.KINDS`.
    first (Optional[FirstSubproblem]): knows the structure; None for a forest.
    edges (Optional[int64 [B, 2]]): the forest's pairs of vertices, none at all for independent
        vertices (§3.1); None chooses them.
    RAISES (ValueError): H086 for edges that are no forest.
    """
    everything = np.arange(len(instance.factors))
    inside = everything[:0] if first is not None else choose_edges(instance, edges)
    outside = np.setdiff1d(everything, inside)
    if kind == TWO_SLAVE:
        return _two_slave(instance, first, inside, outside)
    first = ForestSubproblem(instance, inside) if first is None else first
    subproblems = _hybrid(instance, outside) if kind == HYBRID else _naive(instance, outside)
    return Decomposition(first, subproblems, pattern_rows(instance, outside)[0], 0.0)


def _hybrid(instance: GraphInstance, factors: NDArray[np.int64]) -> tuple[Subproblem, ...]:
    tighter = _tighter_alone(instance, factors)
    together, alone = factors[~tighter], factors[tighter]
    cut = [_positive_cut(instance, pattern_rows(instance, together)[0])] if len(together) else []
    return (*cut, *([_maxima(instance, alone)] if len(alone) else []))


def _naive(instance: GraphInstance, factors: NDArray[np.int64]) -> tuple[Subproblem, ...]:
    is_pair = instance.factors.sizes[factors] == 2
    pairs, larger = factors[is_pair], factors[~is_pair]
    subproblems = [_maxima(instance, larger)] if len(larger) else []
    while len(pairs):
        ends = instance.vertices[instance.factors.first[pairs][:, None] + np.arange(2)]
        one, other = np.ascontiguousarray(ends.T)
        edge = spanning_forest(one, other, instance.n_vertices)[2]
        taken = np.isin(np.arange(len(pairs)), edge)
        subproblems.append(_forest(instance, pairs[taken]))
        pairs = pairs[~taken]
    return tuple(subproblems)


def _two_slave(
    instance: GraphInstance,
    first: FirstSubproblem | None,
    inside: NDArray[np.int64],
    outside: NDArray[np.int64],
) -> Decomposition:
    """Everything outside the forest in one cut.

    A pattern of negative weight and more than two cells is |w| (Σ pairs - Π) - |w| Σ pairs. The
    former is for the cut; its pairs join the other pairs, those of an edge of the forest too. Then
    every pair of vertices outside the forest that has a negative coefficient gets ψ, the least that
    makes all its coefficients non-negative, in each of its |S|² patterns.
    """
    patterns = pattern_rows(instance, outside)[0]
    sizes = np.diff(instance.pattern_offsets)
    large = patterns[sizes[patterns] > 2]
    negative, positive = large[instance.weights[large] < 0], large[instance.weights[large] > 0]
    quadratic = _pairs_of(instance, negative)
    edges = instance.vertices[instance.factors.first[inside][:, None] + np.arange(2)]
    kept = choose_edges(quadratic, edges)
    first = ForestSubproblem(quadratic, kept) if first is None else first
    pairs, constant = _lifted(quadratic, np.setdiff1d(np.arange(len(quadratic.factors)), kept))
    terms = [
        *pairs,
        *(
            _Term(cells, weights, product(cells.shape[1]))
            for cells, weights in _by_size(instance, positive)
        ),
        *(
            _Term(cells, -weights, pairs_less_product(cells.shape[1]))
            for cells, weights in _by_size(instance, negative)
        ),
    ]
    subproblems = (_cut(terms),) if sum(len(term.weights) for term in terms) else ()
    return Decomposition(first, subproblems, patterns, constant)


def _tighter_alone(instance: GraphInstance, factors: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which factors have a negative weight, or patterns that share a cell, bool [B]."""
    patterns, owner = pattern_rows(instance, factors)
    negative = (
        np.bincount(owner, weights=instance.weights[patterns] < 0, minlength=len(factors)) > 0
    )
    sizes = np.diff(instance.pattern_offsets)[patterns]
    cells = instance.cells[ranges(instance.pattern_offsets[patterns], sizes)]
    of_factor = np.repeat(owner, sizes) * len(instance.unary) + cells
    distinct = np.bincount(
        np.unique(of_factor) // max(1, len(instance.unary)), minlength=len(factors)
    )
    return negative | (distinct < np.bincount(owner, weights=sizes, minlength=len(factors)))


class _Term(NamedTuple):
    """Terms of one shape: weight · Σ over the extra variables; a pair needs none."""

    cells: NDArray[np.int64]  # [m, K]
    weights: NDArray[np.float64]  # [m] not negative
    extras: tuple[Extra, ...]


def _positive_cut(instance: GraphInstance, patterns: NDArray[np.int64]) -> Subproblem:
    groups = _by_size(instance, patterns)
    return _cut(
        [
            _Term(cells, weights, product(cells.shape[1]) if cells.shape[1] > 2 else ())
            for cells, weights in groups
        ]
    )


def _cut(terms: Sequence[_Term]) -> Subproblem:
    """Nodes are the cells of the terms, then the extra variables.

    w x y is an arc from x to y and a profit of w at x; w u (slope Σ x_i - threshold) an arc of
    capacity w · slope from u to every x_i, and a profit of w (slope K - threshold) at u.
    """
    cells = np.unique(np.concatenate([term.cells.ravel() for term in terms]))
    constant, tails, heads, capacities = [np.zeros(len(cells))], [], [], []
    n_nodes = len(cells)
    for term in terms:
        m, size = term.cells.shape
        nodes = np.searchsorted(cells, term.cells)
        if not term.extras:
            np.add.at(constant[0], nodes[:, 0], term.weights)
            tails.append(nodes[:, 0])
            heads.append(nodes[:, 1])
            capacities.append(term.weights)
        for extra in term.extras:
            constant.append(term.weights * (extra.slope * size - extra.threshold))
            tails.append(np.repeat(n_nodes + np.arange(m), size))
            heads.append(nodes.ravel())
            capacities.append(np.repeat(term.weights * extra.slope, size))
            n_nodes += m
    arcs = (
        np.concatenate(tails).astype(np.int32),
        np.concatenate(heads).astype(np.int32),
        np.concatenate(capacities),
    )
    return Subproblem(cells, MinimumCut(np.concatenate(constant), *arcs))


def _by_size(
    instance: GraphInstance, patterns: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Cells, int64 [m, K], and weights, float64 [m], of some patterns, for each K."""
    sizes = np.diff(instance.pattern_offsets)[patterns]
    found = []
    for size in np.unique(sizes).tolist():
        chosen = patterns[sizes == size]
        found.append(
            (
                instance.cells[instance.pattern_offsets[chosen][:, None] + np.arange(size)],
                instance.weights[chosen],
            )
        )
    return found


def _pairs_of(instance: GraphInstance, negative: NDArray[np.int64]) -> GraphInstance:
    """The patterns of two cells, and for each of the negative patterns its weight on every pair of
    its cells.
    """
    sizes = np.diff(instance.pattern_offsets)
    own = np.flatnonzero(sizes == 2)
    rows, weights = [instance.pattern_offsets[own][:, None] + np.arange(2)], [instance.weights[own]]
    for size in np.unique(sizes[negative]).tolist():
        chosen = negative[sizes[negative] == size]
        pairs = np.stack(np.triu_indices(size, 1), axis=1)
        rows.append((instance.pattern_offsets[chosen][:, None, None] + pairs).reshape(-1, 2))
        weights.append(np.repeat(instance.weights[chosen], len(pairs)))
    at = np.concatenate(rows).ravel()
    return GraphInstance.from_arrays(
        instance.offsets,
        np.zeros(len(instance.unary)),
        2 * np.arange(len(at) // 2 + 1),
        instance.vertices[at],
        instance.states[at],
        np.concatenate(weights),
    )


def _lifted(quadratic: GraphInstance, factors: NDArray[np.int64]) -> tuple[list[_Term], float]:
    """Terms of pairs without a negative coefficient, and the sum of the ψ that this took."""
    patterns, owner = pattern_rows(quadratic, factors)
    psi = np.zeros(len(factors))
    np.maximum.at(psi, owner, -quadratic.weights[patterns])
    plain = psi[owner] == 0
    terms = [_Term(cells, weights, ()) for cells, weights in _by_size(quadratic, patterns[plain])]
    for b in np.flatnonzero(psi).tolist():
        v, w = quadratic.vertices[quadratic.factors.first[factors[b]] + np.arange(2)].tolist()
        table = np.full((quadratic.n_states[v], quadratic.n_states[w]), psi[b])
        mine = patterns[owner == b]
        at = quadratic.pattern_offsets[mine]
        table[quadratic.states[at], quadratic.states[at + 1]] += quadratic.weights[mine]
        one, other = np.indices(table.shape).reshape(2, -1)
        cells = np.stack([quadratic.offsets[v] + one, quadratic.offsets[w] + other], axis=1)
        terms.append(_Term(cells, table.ravel(), ()))
    return terms, float(psi.sum())


def _maxima(instance: GraphInstance, factors: NDArray[np.int64]) -> Subproblem:
    """Every factor by itself."""
    sizes = instance.factors.sizes[factors]
    vertices = instance.vertices[ranges(instance.factors.first[factors], sizes)]
    widths = instance.n_states[vertices]
    patterns, owner = pattern_rows(instance, factors)
    members = ranges(instance.pattern_offsets[patterns], sizes[owner])
    maximiser = FactorMaxima(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(factors)))]).astype(
            np.int64
        ),
        np.ascontiguousarray(instance.states[members]),
        np.ascontiguousarray(instance.weights[patterns]),
    )
    return Subproblem(ranges(instance.offsets[vertices], widths), maximiser)


def _forest(instance: GraphInstance, edges: NDArray[np.int64]) -> Subproblem:
    """A forest over the vertices of its edges alone."""
    ends = instance.vertices[instance.factors.first[edges][:, None] + np.arange(2)]
    vertices = np.unique(ends)
    cells = ranges(instance.offsets[vertices], instance.n_states[vertices])
    patterns = pattern_rows(instance, edges)[0]
    at = (instance.pattern_offsets[patterns][:, None] + np.arange(2)).ravel()
    part = GraphInstance.from_arrays(
        np.concatenate([[0], np.cumsum(instance.n_states[vertices])]),
        np.zeros(len(cells)),
        2 * np.arange(len(patterns) + 1),
        np.searchsorted(vertices, instance.vertices[at]),
        instance.states[at],
        instance.weights[patterns],
    )
    return Subproblem(cells, _ForestMaximiser(ForestSubproblem(part, np.arange(len(part.factors)))))


class _ForestMaximiser:
    """A forest as a subproblem besides the first."""

    def __init__(self, forest: ForestSubproblem) -> None:
        self._forest = forest

    def maximise(self, scores: NDArray[np.float64], chosen: NDArray[np.uint8]) -> float:
        score, assignment = self._forest.maximise(scores)
        chosen[:] = 0
        chosen[self._forest.offsets[:-1] + assignment] = 1
        return score
