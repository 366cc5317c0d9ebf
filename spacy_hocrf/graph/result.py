"""What decoding a graph found, and what it proved."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Decoding"]


@dataclass(frozen=True)
class Decoding:
    """An assignment, and an upper bound of all assignments' scores: bound ≥ optimum ≥ primal.

    In the traces of n iterations, entry i is the best after i + 1 of them.
    """

    assignment: NDArray[np.int32]  # [V] state of each vertex
    primal: float  # its score
    bound: float  # no assignment has a higher score
    certificate: bool  # is the assignment proved optimal, up to the tolerance?
    bounds: NDArray[np.float64]  # [n] lowest bound so far
    primals: NDArray[np.float64]  # [n] highest score so far, before any local search

    @property
    def gap(self) -> float:
        """Bound less primal, nats: how far from the optimum the assignment can be."""
        return max(0.0, self.bound - self.primal)

    @property
    def trace(self) -> tuple[tuple[float, float], ...]:
        """Bound and primal after each iteration, and, if they got better after the last, as they are."""
        steps = list(zip(self.bounds.tolist(), self.primals.tolist()))
        if steps and steps[-1] != (self.bound, self.primal):
            steps.append((self.bound, self.primal))
        return tuple(steps)

    @property
    def iterations(self) -> int:
        """Iterations of dual decomposition."""
        return len(self.bounds)
