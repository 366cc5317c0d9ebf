"""The decompositions of Qian and Liu (TACL 2 (2014)), for comparison; nothing else uses them.

**two_slave** (§3.2, §3.3, appendix A) has one minimum cut for everything that is not on the forest. A
product of negative weight and more than two variables becomes |w| (Σ pairs - Π) - |w| Σ pairs. The
former goes to the cut, with extra variables as in `parts`:

    (8)  Σ_{i<j} x_i x_j - Π x_i, K = 3   one extra variable, slope 1, threshold 1
    (9)  Σ_{i<j} x_i x_j - Π x_i, K > 3   one with slope 2 and threshold 3, and K - 4 with slope 1
                                          and thresholds 3, 4, …, K - 2

The latter is added to the pairs: those of an edge of the forest go there, every other pair of vertices
gets ψ, the least number ≥ 0 that makes all its |S|² coefficients non-negative. Σ ψ is subtracted from the
bound again. The relaxation is loose as soon as there are negative weights. In print, g3 and h3 of
the paper range over |c| ≥ 4; they must range over |c| = 3, and ψ over the sums of the coefficients
on a pair, whether or not it is an edge of the graph.

**naive** (§4.1.4) has spanning forests over the remaining pairs, until all are covered, and a
subproblem for every larger factor, each solved exactly.

Letters: E cells, B factors, S states of a vertex, K cells of a pattern.
"""

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.graph.forest import spanning_forest
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.parts import Extra, Terms, by_size, cut_of, maxima_of, positive_terms
from spacy_hocrf.graph.subproblems import (
    Decomposition,
    FirstSubproblem,
    ForestSubproblem,
    Subproblem,
    choose_edges,
    pattern_rows,
)

__all__ = ["naive", "pairs_less_product", "two_slave"]


def two_slave(
    instance: GraphInstance,
    first: FirstSubproblem | None,
    inside: NDArray[np.int64],
    patterns: NDArray[np.int64],
) -> Decomposition:
    """Return the first subproblem and a minimum cut.

    first (Optional[FirstSubproblem]): has the structure; None for a forest.
    inside (int64 [n]): factors on the forest's edges; empty if `first` is given.
    patterns (int64 [m]): all other patterns.
    RETURNS (Decomposition): without a cut if no patterns are left for it.
    """
    sizes = np.diff(instance.pattern_offsets)
    large = patterns[sizes[patterns] > 2]
    negative, positive = large[instance.weights[large] < 0], large[instance.weights[large] > 0]
    quadratic = _pairs_of(instance, negative)
    edges = instance.vertices[instance.factors.first[inside][:, None] + np.arange(2)]
    kept = choose_edges(quadratic, edges)
    first = ForestSubproblem(quadratic, kept) if first is None else first
    pairs, constant = _lifted(quadratic, np.setdiff1d(np.arange(len(quadratic.factors)), kept))
    terms = [*pairs, *positive_terms(instance, positive)]
    for cells, weights in by_size(instance, negative):
        terms.append(Terms(cells, -weights, pairs_less_product(cells.shape[1])))
    subproblems = (cut_of(terms),) if sum(len(term.weights) for term in terms) else ()
    return Decomposition(first, subproblems, patterns, constant)


def pairs_less_product(size: int) -> tuple[Extra, ...]:
    """Σ_{i<j} x_i x_j - Π x_i of `size` variables, at least 3: equations 8 and 9."""
    if size == 3:
        return (Extra(1, 1),)
    return (Extra(2, 3), *(Extra(1, j + 2) for j in range(1, size - 3)))


def naive(instance: GraphInstance, factors: NDArray[np.int64]) -> tuple[Subproblem, ...]:
    """Return the subproblems other than the first.

    factors (int64 [B]): factors that the first subproblem does not have.
    """
    is_pair = instance.factors.sizes[factors] == 2
    pairs, larger = factors[is_pair], factors[~is_pair]
    subproblems = [maxima_of(instance, larger)] if len(larger) else []
    while len(pairs):
        ends = instance.vertices[instance.factors.first[pairs][:, None] + np.arange(2)]
        left, right = np.ascontiguousarray(ends.T)
        edge = spanning_forest(left, right, instance.n_vertices)[2]
        in_tree = np.isin(np.arange(len(pairs)), edge)
        subproblems.append(_forest(instance, pairs[in_tree]))
        pairs = pairs[~in_tree]
    return tuple(subproblems)


def _pairs_of(instance: GraphInstance, negative: NDArray[np.int64]) -> GraphInstance:
    """An instance with the patterns of two cells and, for each of the negative patterns, int64 [m], its
    weight on every pair of its cells.
    """
    sizes = np.diff(instance.pattern_offsets)
    of_two = np.flatnonzero(sizes == 2)
    rows = [instance.pattern_offsets[of_two][:, None] + np.arange(2)]
    weights = [instance.weights[of_two]]
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


def _lifted(quadratic: GraphInstance, factors: NDArray[np.int64]) -> tuple[list[Terms], float]:
    """Terms of pairs without negative coefficients, and the sum of the ψ that are added for this."""
    patterns, owner = pattern_rows(quadratic, factors)
    psi = np.zeros(len(factors))
    np.maximum.at(psi, owner, -quadratic.weights[patterns])
    plain = psi[owner] == 0
    terms = positive_terms(quadratic, patterns[plain])
    for b in np.flatnonzero(psi).tolist():
        v, w = quadratic.vertices[quadratic.factors.first[factors[b]] + np.arange(2)].tolist()
        table = np.full((quadratic.n_states[v], quadratic.n_states[w]), psi[b])
        of_factor = patterns[owner == b]
        at = quadratic.pattern_offsets[of_factor]
        table[quadratic.states[at], quadratic.states[at + 1]] += quadratic.weights[of_factor]
        left, right = np.indices(table.shape).reshape(2, -1)
        cells = np.stack([quadratic.offsets[v] + left, quadratic.offsets[w] + right], axis=1)
        terms.append(Terms(cells, table.ravel(), ()))
    return terms, float(psi.sum())


def _forest(instance: GraphInstance, edges: NDArray[np.int64]) -> Subproblem:
    """A forest over the vertices of its edges only, int64 [n] numbers of factors."""
    ends = instance.vertices[instance.factors.first[edges][:, None] + np.arange(2)]
    # the vertices, which are numbered anew, their cells, and the cells of the patterns
    vertices = np.unique(ends)
    cells = ranges(instance.offsets[vertices], instance.n_states[vertices])
    patterns = pattern_rows(instance, edges)[0]
    at = (instance.pattern_offsets[patterns][:, None] + np.arange(2)).ravel()
    part = GraphInstance.from_arrays(
        offsets_of(instance.n_states[vertices]),
        np.zeros(len(cells)),
        2 * np.arange(len(patterns) + 1),
        np.searchsorted(vertices, instance.vertices[at]),
        instance.states[at],
        instance.weights[patterns],
    )
    return Subproblem(cells, _ForestMaximiser(ForestSubproblem(part, np.arange(len(part.factors)))))


class _ForestMaximiser:
    """A forest as a subproblem other than the first."""

    def __init__(self, forest: ForestSubproblem) -> None:
        self._forest = forest

    def maximise(self, scores: NDArray[np.float64], chosen: NDArray[np.uint8]) -> float:
        score, assignment = self._forest.maximise(scores)
        chosen[:] = 0
        chosen[self._forest.offsets[:-1] + assignment] = 1
        return score
