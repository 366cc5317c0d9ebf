"""Common state of optimisers by reverse communication: the current point, and tests of convergence."""

import math
from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from spacy_hocrf.types import Vector

__all__ = ["MIN_CURVATURE", "RUNNING", "Descent"]


RUNNING = "running"
MIN_CURVATURE = 1e-8  # of a variable, relative to the mean
FIRST_SEARCH = 500
"""Evaluations that the first line search may use, for the scale of x is unknown: values of 1e38 need 130."""


class Descent:
    """Base of the optimisers; attributes as in `LBFGS`."""

    def __init__(
        self,
        x0: ArrayLike,
        gradient_tolerance: float,
        improvement_tolerance: float,
        improvement_period: int,
        max_line_search: int,
    ) -> None:
        self.x: Vector = np.array(x0, dtype=np.float64)
        self.best_x = self.x.copy()
        self.best_g = np.zeros_like(self.x)
        self.best_f = math.inf
        self.status = RUNNING
        self.iterations = self.evaluations = 0
        self.step = 0.0  # step of the line search, from best_x to x
        self._gradient_tolerance = gradient_tolerance
        self._improvement_tolerance = improvement_tolerance
        self._max_line_search = max_line_search
        # f of the last accepted points
        self._values: deque[float] = deque(maxlen=improvement_period + 1)

    @property
    def _max_probes(self) -> int:
        """Evaluations that the current line search may use."""
        return self._max_line_search if self.iterations else FIRST_SEARCH

    def _fail(self) -> None:
        """End at once: the start has no finite value or gradient."""
        self.status = "failed: the value or the gradient is not finite at the start"

    def _converges(self, gradient: float, size: float) -> bool:
        """End if the last accepted point is good enough, given the norms of its gradient and of x."""
        if gradient <= self._gradient_tolerance * max(1.0, size):
            self._finish("converged: gradient")
        elif self._has_stalled():
            self._finish("converged: improvement")
        return self.status != RUNNING

    def _has_stalled(self) -> bool:
        improvement = self._values[0] - self._values[-1]
        full = len(self._values) == self._values.maxlen
        return full and improvement <= self._improvement_tolerance * abs(self._values[-1])

    def _finish(self, status: str) -> None:
        self.status = status
        self.x[:] = self.best_x
