"""OWL-QN: L-BFGS for a smooth function plus a sum of absolute values, by reverse communication.

    F(x) = f(x) + Σ c_i |x_i|

    optimiser = OWLQN(x0, c)
    while optimiser.status == "running":
        f, g = smooth(optimiser.x)
        optimiser.tell(f, g)

F is smooth where no x_i changes its sign. So every step stays in one orthant: that of x, and of steepest
descent where x_i = 0 (Andrew and Gao, ICML 2007, §3). Variables that are 0 and have no descent stay;
the direction is that of L-BFGS among the others, with the pairs of f restricted to these, applied to the
pseudo-gradient of F, and 0 wherever it disagrees with steepest descent. (All of H, instead of the
inverse of the free part of the Hessian, takes more evaluations.) A point of the line is projected onto the
orthant, which produces the zeros. Backtracking ends with

    F(x') ≤ F(x) + c1 · pseudo-gradient · (x' - x),

and begins with 1 or, if that is less, with twice the last step: after a step of 1 that was too long, the
next one usually is, too.
"""

import math
from collections import deque

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.engine.descent import MIN_CURVATURE, RUNNING, Descent
from spacy_hocrf.engine.line_search import DECREASE, ROUNDING
from spacy_hocrf.types import TINY, Vector

__all__ = ["OWLQN", "pseudo_gradient"]


GROWTH = 2.0
"""A step may be at most this much longer than the last one, up to 1."""


class OWLQN(Descent):
    """Minimise a smooth function of F variables plus Σ c_i |x_i|.

    x0 (ArrayLike): where to start, float64 [F]; copied.
    absolute (Union[float, float64 [F]]): c_i ≥ 0.
    The other settings, and the attributes, are those of `LBFGS`; `best_f` is F, `best_g` the
    gradient of f, and convergence is judged by the pseudo-gradient.
    """

    def __init__(
        self,
        x0: ArrayLike,
        absolute: float | Vector,
        memory: int = 10,
        gradient_tolerance: float = 1e-5,
        improvement_tolerance: float = 1e-9,
        improvement_period: int = 10,
        max_line_search: int = 40,
    ) -> None:
        limits = gradient_tolerance, improvement_tolerance, improvement_period, max_line_search
        super().__init__(x0, *limits)
        self._absolute = absolute
        self._pairs = _Pairs(memory, self.x.size)
        self._pseudo = np.zeros_like(self.x)
        self._direction = np.zeros_like(self.x)
        self._orthant = np.zeros(self.x.size, dtype=np.int8)
        self._tries = 0
        self._longest = 1.0

    def tell(self, f: float, g: Vector) -> bool:
        """Receive the value and the gradient of f at `x`, and move `x` to the next point.

        f (float): a value or gradient that is not finite makes the line search back off.
        g (NDArray): float64 [F]; read, not kept.
        RETURNS (bool): whether the point was accepted, which ends an iteration; the start
            counts as accepted.
        """
        assert self.status == RUNNING, f"tell() after the end: {self.status}"
        self.evaluations += 1
        value = float(f) + self._penalty(self.x)
        finite = math.isfinite(value) and math.isfinite(float(g @ g))
        if self.evaluations == 1:
            return self._accept_start(value, g, finite)
        moved = self.x - self.best_x
        promised = float(self._pseudo @ moved)
        limit = self.best_f + DECREASE * promised + ROUNDING * abs(self.best_f)
        if finite and value <= limit and moved.any():
            self._accept(value, g, moved)
            return True
        self._back_off(value if finite else math.inf, promised)
        return False

    def _accept_start(self, value: float, g: Vector, finite: bool) -> bool:
        if not finite:
            self._fail()
            return False
        self.best_g[:] = g
        self._become(value)
        return True

    def _accept(self, value: float, g: Vector, moved: Vector) -> None:
        """Make the point the best one, and store the step to it."""
        self._longest = min(1.0, GROWTH * self.step) if len(self._pairs) else 1.0
        self._pairs.add(moved, g - self.best_g)
        self.best_g[:] = g
        self.best_x[:] = self.x
        self.iterations += 1
        self._become(value)

    def _become(self, value: float) -> None:
        self.best_f = value
        self._values.append(value)
        self._pseudo = pseudo_gradient(self.best_x, self.best_g, self._absolute)
        lengths = (float(np.linalg.norm(vector)) for vector in (self._pseudo, self.best_x))
        if not self._converges(*lengths):
            self._start_search()

    def _start_search(self) -> None:
        """Choose an orthant and a direction, and try the first point."""
        free = np.flatnonzero((self.best_x != 0.0) | (self._pseudo != 0.0))
        downhill = -self._pseudo[free]
        direction = self._pairs.solve(downhill, free) if len(self._pairs) else downhill
        direction[direction * downhill <= 0.0] = 0.0
        if not 0.0 < float(direction @ downhill) < math.inf:  # rounding has spoilt the pairs
            self._pairs.clear()
            direction = downhill
        self._direction.fill(0.0)
        self._direction[free] = direction
        signs = np.where(self.best_x != 0.0, self.best_x, -self._pseudo)
        self._orthant = np.sign(signs).astype(np.int8)
        self._tries = 0
        steepest = 1.0 / float(np.linalg.norm(self._pseudo))
        first = self._longest if len(self._pairs) else steepest
        self._move(first)

    def _move(self, step: float) -> None:
        """x = best_x + step · direction, with 0 where that leaves the orthant."""
        self.step = step
        np.multiply(self._direction, step, out=self.x)
        self.x += self.best_x
        self.x[np.sign(self.x) != self._orthant] = 0.0

    def _back_off(self, value: float, promised: float) -> None:
        """Try a shorter step, at the minimum of a parabola but from a tenth to half of the length; after too
        many tries restart with steepest descent, unless that is what failed.
        """
        self._tries += 1
        if self._tries < self._max_probes:
            excess = 2.0 * (value - self.best_f - promised)
            part = -promised / excess if 0.0 < excess < math.inf else 0.5
            self._move(self.step * min(max(part, 0.1), 0.5))
        elif len(self._pairs):
            self._pairs.clear()
            self._start_search()
        else:
            self._finish("stopped: line search")

    def _penalty(self, x: Vector) -> float:
        return float(np.sum(self._absolute * np.abs(x)))


class _Pairs:
    """The last m pairs of a step s and the change y of the gradient along it, in single precision, and an
    estimate E of the Hessian's diagonal from all pairs so far (see `LBFGS`).
    """

    def __init__(self, capacity: int, size: int) -> None:
        self._capacity = capacity
        self._e = np.zeros(size)
        self.clear()

    def __len__(self) -> int:
        return len(self._s)

    def clear(self) -> None:
        self._s: deque[NDArray[np.float32]] = deque(maxlen=self._capacity)
        self._y: deque[NDArray[np.float32]] = deque(maxlen=self._capacity)

    def add(self, s: Vector, y: Vector) -> None:
        """Store a pair if the function curves upwards along s."""
        sy, yy = float(s @ y), float(y @ y)
        if not TINY < sy < math.inf or not TINY < yy < math.inf:
            return
        if not len(self):
            self._e.fill(yy / sy)
        es = self._e * s
        ses, factor = float(es @ s), float(y @ (y / self._e)) / sy
        if TINY < ses < math.inf and TINY < factor < math.inf:
            self._e = factor * (self._e - es * es / ses) + y * y / sy
            np.maximum(self._e, MIN_CURVATURE * yy / sy, out=self._e)
        self._s.append(s.astype(np.float32))
        self._y.append(y.astype(np.float32))

    def solve(self, vector: Vector, free: NDArray[np.int64]) -> Vector:
        """Return H · vector, float64 [n], where H is the estimate from the pairs restricted to some variables
        (Nocedal and Wright, Algorithm 7.4).

        free (int64 [n]): the variables.
        """
        pairs = []
        for s, y in zip(self._s, self._y):
            s_free, y_free = s[free].astype(np.float64), y[free].astype(np.float64)
            sy = float(s_free @ y_free)
            if TINY < sy < math.inf:
                pairs.append((s_free, y_free, sy))
        direction: Vector = vector.copy()
        alphas = []
        for s_free, y_free, sy in reversed(pairs):
            alphas.append(float(s_free @ direction) / sy)
            direction -= alphas[-1] * y_free
        direction /= self._e[free]
        for (s_free, y_free, sy), alpha in zip(pairs, reversed(alphas)):
            direction += (alpha - float(y_free @ direction) / sy) * s_free
        return direction


def pseudo_gradient(x: Vector, g: Vector, absolute: float | Vector) -> Vector:
    """Return the pseudo-gradient of f(x) + Σ c_i |x_i|: its negative is the direction of steepest descent
    (Andrew and Gao, 2007, §3.1, where it is ⋄f).

    x, g (float64 [F]): the point, and the gradient of f there. absolute: the c_i.
    """
    at_zero = np.sign(g) * np.maximum(np.abs(g) - absolute, 0.0)
    gradient: Vector = np.where(x == 0.0, at_zero, g + np.sign(x) * absolute)
    return gradient
