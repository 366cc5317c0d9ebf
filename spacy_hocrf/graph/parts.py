"""The subproblems other than the first: minimum cuts, and single factors.

A cut maximises a quadratic form. With extra variables u, a term of K variables x becomes quadratic; each
contributes max over u in {0, 1} of u · (slope Σ x_i - threshold) (Qian and Liu, TACL 2 (2014)
appendix A):

    (7)  Π x_i     one extra variable, slope 1, threshold K - 1

Letters: E cells of the instance, B factors, K cells of a pattern, m terms.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.graph.cut import MinimumCut
from spacy_hocrf.graph.factors import FactorMaxima
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.subproblems import Subproblem, pattern_rows

__all__ = ["Extra", "Terms", "by_size", "cut_of", "maxima_of", "positive_terms", "product"]


class Extra(NamedTuple):
    """An extra variable of a term."""

    slope: int
    threshold: int


class Terms(NamedTuple):
    """Terms of one shape: weight · Σ over their extra variables; a product of two needs none."""

    cells: NDArray[np.int64]  # [m, K]
    weights: NDArray[np.float64]  # [m] not negative
    extras: tuple[Extra, ...]


def product(size: int) -> tuple[Extra, ...]:
    """Π x_i of `size` variables, at least 2: equation 7."""
    return (Extra(1, size - 1),)


def by_size(
    instance: GraphInstance, patterns: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return cells, int64 [m, K], and weights, float64 [m], of patterns, for each K."""
    sizes = np.diff(instance.pattern_offsets)[patterns]
    groups = []
    for size in np.unique(sizes).tolist():
        chosen = patterns[sizes == size]
        places = instance.pattern_offsets[chosen][:, None] + np.arange(size)
        groups.append((instance.cells[places], instance.weights[chosen]))
    return groups


def positive_terms(instance: GraphInstance, patterns: NDArray[np.int64]) -> list[Terms]:
    """Return the terms of patterns whose weights are not negative.

    patterns (int64 [m]): numbers of patterns of the instance.
    """
    return [
        Terms(cells, weights, product(cells.shape[1]) if cells.shape[1] > 2 else ())
        for cells, weights in by_size(instance, patterns)
    ]


def cut_of(terms: Sequence[Terms]) -> Subproblem:
    """Make a minimum cut over the cells of at least one term.

    Its nodes are the cells, then the extra variables. w x y is an arc from x to y and a profit of w
    at x; w u (slope Σ x_i - threshold) is an arc of capacity w · slope from u to every x_i, and a
    profit of w (slope K - threshold) at u.
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
    maximiser = MinimumCut(
        np.concatenate(constant),
        np.concatenate(tails).astype(np.int32),
        np.concatenate(heads).astype(np.int32),
        np.concatenate(capacities),
    )
    return Subproblem(cells, maximiser)


def maxima_of(instance: GraphInstance, factors: NDArray[np.int64]) -> Subproblem:
    """Make a subproblem that maximises each factor separately, whatever the signs of its patterns.

    factors (int64 [B]): numbers in `instance.factors`.
    """
    sizes = instance.factors.sizes[factors]
    vertices = instance.vertices[ranges(instance.factors.first[factors], sizes)]
    widths = instance.n_states[vertices]
    patterns, owner = pattern_rows(instance, factors)
    members = ranges(instance.pattern_offsets[patterns], sizes[owner])
    maximiser = FactorMaxima(
        offsets_of(sizes),
        offsets_of(widths),
        offsets_of(np.bincount(owner, minlength=len(factors))),
        np.ascontiguousarray(instance.states[members]),
        np.ascontiguousarray(instance.weights[patterns]),
    )
    return Subproblem(ranges(instance.offsets[vertices], widths), maximiser)
