"""Improves assignments through the first subproblem: coordinate ascent whose block is everything that the
first subproblem decides.

Given an assignment, a pattern whose other cells are on is worth its weight to the remaining cell. The first
subproblem is maximised with these rewards; the true score of its assignment is computed, and the assignment
is taken if that is higher. Patterns of positive weight that do not occur are tried one by one in the same
way, with a reward that makes them occur if possible.

Letters: V vertices, E cells, M vertex patterns.
"""

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.subproblems import FirstSubproblem

__all__ = ["PATIENCE", "ascend"]

PATIENCE = 12
"""The search ends after this many patterns in a row without improvement."""


def ascend(
    instance: GraphInstance,
    first: FirstSubproblem,
    assignment: NDArray[np.int32],
    primal: float,
    tries: int,
) -> tuple[float, NDArray[np.int32]]:
    """Search for a better assignment; the first subproblem keeps the solution that belongs to it.

    instance (GraphInstance): unary scores and patterns in addition to the first subproblem's.
    assignment (int32 [V]), primal (float): the initial assignment and its score.
    tries (int): number of patterns that are tried one by one, the heaviest first, until PATIENCE of them in a
        row do not help; each takes a few calls of the first subproblem.
    RETURNS (tuple[float, int32 [V]]): score of the best assignment, and the assignment.
    """
    primal, assignment = _climb(instance, first, primal, assignment)
    idle = 0
    missing = np.flatnonzero((instance.weights > 0) & ~instance.fires(assignment))
    for pattern in missing[np.argsort(-instance.weights[missing], kind="stable")][:tries].tolist():
        if idle == PATIENCE:
            break
        if instance.fires(assignment)[pattern]:
            continue
        cells = instance.cells[
            instance.pattern_offsets[pattern] : instance.pattern_offsets[pattern + 1]
        ]
        rewards = _linear(instance, assignment)
        rewards[cells] += np.abs(rewards).sum() + instance.weights[pattern]
        better, candidate = _climb(instance, first, primal, assignment, rewards)
        idle = 0 if better > primal else idle + 1
        primal, assignment = better, candidate
    return primal, assignment


def _climb(
    instance: GraphInstance,
    first: FirstSubproblem,
    primal: float,
    assignment: NDArray[np.int32],
    forced: NDArray[np.float64] | None = None,
) -> tuple[float, NDArray[np.int32]]:
    """Move from assignment to assignment as long as they improve; the one found with forced rewards need
    not be better yet.
    """
    rewards = _linear(instance, assignment) if forced is None else forced
    while True:
        value, candidate = first.maximise(rewards)
        rewarded = float(rewards[instance.offsets[:-1] + candidate].sum())
        score = value - first.slack - rewarded + instance.score(candidate)
        if score > primal + 1e-12 * (1.0 + abs(primal)):
            primal, assignment = score, candidate
            first.keep()
        elif forced is None:
            return primal, assignment
        forced, rewards = None, _linear(instance, candidate)


def _linear(instance: GraphInstance, assignment: NDArray[np.int32]) -> NDArray[np.float64]:
    """Change of score for each cell if it is chosen and all other vertices stay as they are, float64 [E]."""
    linear: NDArray[np.float64] = instance.unary.copy()
    if len(instance.weights):
        # a cell gains the weight of a pattern if no other cell of it is missing
        on = assignment[instance.vertices] == instance.states
        sizes, begins = np.diff(instance.pattern_offsets), instance.pattern_offsets[:-1]
        missing = np.repeat(np.add.reduceat(~on, begins, dtype=np.int64), sizes)
        gains = np.where(missing == ~on, np.repeat(instance.weights, sizes), 0.0)
        linear += np.bincount(instance.cells, weights=gains, minlength=len(linear))
    return linear
