"""The multipliers of dual decomposition: the scores of copies of cells in the subproblems, and the steps
that change them.

Letters: V vertices, E cells of the instance, X copies of cells, of all subproblems but the first.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.graph.cells import disagree, move
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.subproblems import Subproblem

__all__ = ["Multipliers", "Steps"]


class Multipliers:
    """The scores u of the copies, and the rewards of the first subproblem's cells: the unary scores
    minus Σ u over the copies of a cell.

    instance (GraphInstance): has E cells.
    subproblems (Sequence[Subproblem]): all but the first.

    rewards (float64 [E]): changed by `step`.
    """

    def __init__(self, instance: GraphInstance, subproblems: Sequence[Subproblem]) -> None:
        self.rewards = instance.unary.copy()
        none = np.zeros(0, dtype=np.int64)
        self._cells = np.concatenate([none, *(part.cells for part in subproblems)])
        vertex = np.searchsorted(instance.offsets, self._cells, side="right") - 1
        self._vertex = vertex.astype(np.int32)
        self._state = (self._cells - instance.offsets[vertex]).astype(np.int32)
        self._scores = np.zeros(len(self._cells))
        self._chosen = np.zeros(len(self._cells), dtype=np.uint8)
        self._gradient = np.zeros(len(self._cells), dtype=np.int8)
        ends = np.cumsum([len(part.cells) for part in subproblems])[:-1]
        self._parts = list(
            zip(subproblems, np.split(self._scores, ends), np.split(self._chosen, ends))
        )

    def bound(self, first: float) -> float:
        """Return the sum of the maxima of all subproblems, given that of the first one."""
        for part, scores, chosen in self._parts:
            first += part.maximise(scores, chosen)
        return first

    def disagreements(self, assignment: NDArray[np.int32]) -> int:
        """Count the copies at which the subproblems, when last maximised, chose differently from the first
        one's assignment, int32 [V].
        """
        return disagree(assignment, self._vertex, self._state, self._chosen, self._gradient)

    def step(self, length: float) -> None:
        """Take a step against the last disagreements."""
        move(self._scores, self.rewards, self._cells, self._gradient, length)


class Steps:
    """Step lengths: "harmonic" is c / (1 + n) and "geometric" c / 2ⁿ, n being the number of
    times that the bound has risen (Rush et al., EMNLP 2010).

    rule (str): "harmonic" or "geometric".
    weights (float64 [m]): weights of the patterns that the first subproblem does not have: c is their mean
        absolute value.
    """

    def __init__(self, rule: str, weights: NDArray[np.float64]) -> None:
        self._harmonic = rule == "harmonic"
        self._first = float(np.abs(weights).mean()) if len(weights) else 1.0
        self._before, self._rises = np.inf, 0

    def length(self, bound: float) -> float:
        """Return the length of the next step; to be called once in every iteration.

        bound (float): bound at the current multipliers.
        """
        self._rises += bound > self._before
        self._before = bound
        n = self._rises
        return self._first / (1 + n) if self._harmonic else self._first * 0.5**n
