"""Distributes the patterns of an instance among subproblems.

The first subproblem has the structure: a forest and the patterns on its edges, or a model of its
own, such as a whole semi-CRF. The distribution of all other patterns depends on the kind:

    hybrid     one minimum cut for factors with non-negative patterns that would not be tighter alone; a
               subproblem for every other factor
    two_slave  one minimum cut, see `paper`
    naive      spanning forests, and a subproblem for every larger factor, see `paper`

A factor alone is tighter than its patterns in a cut if they exclude each other and share cells,
or if one is negative.

Letters: V vertices, E cells, B factors.
"""

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.paper import naive, two_slave
from spacy_hocrf.graph.parts import cut_of, maxima_of, positive_terms
from spacy_hocrf.graph.settings import NAIVE, TWO_SLAVE
from spacy_hocrf.graph.subproblems import (
    Decomposition,
    FirstSubproblem,
    ForestSubproblem,
    Subproblem,
    choose_edges,
    pattern_rows,
)

__all__ = ["decompose"]


def decompose(
    instance: GraphInstance,
    kind: str,
    first: FirstSubproblem | None,
    edges: NDArray[np.int64] | None = None,
) -> Decomposition:
    """Return the subproblems of an instance.

    kind (str): one of `settings.KINDS`.
    first (Optional[FirstSubproblem]): has the structure; None for a forest.
    edges (Optional[int64 [n, 2]]): the forest's pairs of vertices, empty for independent
        vertices (Qian and Liu §3.1); None chooses a spanning forest of the heaviest pairs.
    RAISES (ValueError): H086 for edges that do not form a forest.
    """
    everything = np.arange(len(instance.factors))
    inside = everything[:0] if first is not None else choose_edges(instance, edges)
    outside = np.setdiff1d(everything, inside)
    patterns = pattern_rows(instance, outside)[0]
    if kind == TWO_SLAVE:
        return two_slave(instance, first, inside, patterns)
    first = ForestSubproblem(instance, inside) if first is None else first
    others = naive(instance, outside) if kind == NAIVE else _hybrid(instance, outside)
    return Decomposition(first, others, patterns, 0.0)


def _hybrid(instance: GraphInstance, factors: NDArray[np.int64]) -> tuple[Subproblem, ...]:
    """Make a cut for some of the factors, int64 [B], and a subproblem for each of the others."""
    tighter = _tighter_alone(instance, factors)
    together, alone = factors[~tighter], factors[tighter]
    subproblems = []
    if len(together):
        subproblems.append(cut_of(positive_terms(instance, pattern_rows(instance, together)[0])))
    if len(alone):
        subproblems.append(maxima_of(instance, alone))
    return tuple(subproblems)


def _tighter_alone(instance: GraphInstance, factors: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which factors have a negative weight, or patterns that share a cell? (bool [B])"""
    patterns, owner = pattern_rows(instance, factors)
    is_negative = instance.weights[patterns] < 0
    negatives = np.bincount(owner, weights=is_negative, minlength=len(factors))
    sizes = np.diff(instance.pattern_offsets)[patterns]
    cells = instance.cells[ranges(instance.pattern_offsets[patterns], sizes)]
    # factors whose patterns have fewer distinct cells than cells
    n_cells = max(1, len(instance.unary))
    owner_of_distinct = np.unique(np.repeat(owner, sizes) * n_cells + cells) // n_cells
    distinct = np.bincount(owner_of_distinct, minlength=len(factors))
    return (negatives > 0) | (distinct < np.bincount(owner, weights=sizes, minlength=len(factors)))
