"""The result of decoding a graph, and what it proves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Decoding"]


@dataclass(frozen=True)
class Decoding:
    """An assignment, and an upper bound on the scores of all assignments: bound ≥ optimum ≥ primal.

    In the traces of n iterations, entry i is the best value after i + 1 iterations.
    """

    assignment: NDArray[np.int32]  # [V] state of each vertex
    primal: float  # its score
    bound: float  # no assignment has a higher score
    certificate: bool  # is the assignment proved optimal, up to the tolerance?
    bounds: NDArray[np.float64]  # [n] lowest bound so far
    primals: NDArray[np.float64]  # [n] highest score so far, before any local search

    @property
    def gap(self) -> float:
        """Bound minus primal, nats: how far the assignment can be from the optimum."""
        return max(0.0, self.bound - self.primal)

    @property
    def trace(self) -> tuple[tuple[float, float], ...]:
        """Bound and primal after each iteration, and the final ones if they improved after the last."""
        steps = list(zip(self.bounds.tolist(), self.primals.tolist()))
        if steps and steps[-1] != (self.bound, self.primal):
            steps.append((self.bound, self.primal))
        return tuple(steps)

    @property
    def iterations(self) -> int:
        """Number of iterations of dual decomposition."""
        return len(self.bounds)
