"""L-BFGS by reverse communication: the caller passes f and g, and gets the next point to evaluate.

    optimiser = LBFGS(x0)
    while optimiser.status == "running":
        f, g = objective(optimiser.x)
        optimiser.tell(f, g)

The direction is that of BFGS over the last m pairs s = x' - x, y = g' - g (Nocedal and Wright,
Numerical Optimization, 2nd ed., chapter 7). It starts from H0 = E⁻¹ with a diagonal E, which begins
as y·y / s·y (7.20) and is then updated with every pair (Gilbert and Lemaréchal, Mathematical
Programming 45, 1989): weights of rare and of frequent features differ in curvature by orders of
magnitude, and this takes a fifth fewer evaluations than a multiple of I.

If the caller knows how they differ at the start, a second diagonal begins in proportion to the
cube root of that, and H0 is the mean of both inverses, in which the share of the second falls by a
hundredth with every pair. (The curvature itself is good at first, but too large later: of features
that fire together one is enough to learn what they have in common, and along weights that have
learnt it the loss is flat. Exponents from 0.3 to 0.5 are about equally good.) Then f is within a hundredth
of the optimum after 0.6 to 0.9 of the evaluations, and the last digits take as many, give or take 6 %;
fewer where features have different scales.

The step satisfies the strong Wolfe conditions (Algorithms 3.5 and 3.6, cubic interpolation 3.59).
Step 1 is tried first and nearly always taken: one evaluation per iteration.

With the products R_ij = s_i·y_j (i ≤ j, oldest first) and D_ii = s_i·y_i stored, the two loops of
Algorithm 7.4 are two triangular systems (as Byrd, Nocedal and Schnabel, Mathematical Programming 63,
1994, write H as one product of matrices):

    R a = -S'g
    r = E⁻¹ (-g - Y a)
    R'b = D a - Y'r
    direction = r + S b

so that three passes over the vectors replace 2m consecutive ones: one for the new pair and all
products with it and with g, one for r and Y'r, one for the direction.
"""

import math
from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.engine.descent import MIN_CURVATURE, RUNNING, Descent
from spacy_hocrf.engine.line_search import Probe, strong_wolfe
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.engine.vectors import BLOCK, dot, sweep
from spacy_hocrf.types import TINY, Vector

__all__ = ["LBFGS"]


FADING = 0.99
"""Factor, per pair, of the share of the diagonal that began with the given curvature."""
NO_RENEWAL = 1.0, 0.0, 0.0, 0.0


class LBFGS(Descent):
    """Minimise a smooth function of F variables.

    x0 (ArrayLike): where to start, float64 [F]; copied.
    memory (int): number m ≥ 1 of pairs kept, in bfloat16: 4 m F bytes.
    gradient_tolerance (float): converged when ||g|| ≤ gradient_tolerance · max(1, ||x||).
    improvement_tolerance (float): converged when f fell by no more than this part of |f| …
    improvement_period (int): … in this number of iterations.
    max_line_search (int): evaluations that one line search may use; the first one may use FIRST_SEARCH.
    threads (int): at least 1; no more are used than there are processors and chunks of the vectors;
        the result does not depend on it.
    curvature (Optional[ArrayLike]): rough size of the Hessian's diagonal, up to a factor: float64
        [F], above 0; None for the same everywhere.

    The attributes are for reading. Arrays belong to the optimiser: use them before the next `tell`,
    or copy them.

    x (NDArray): the point to evaluate next, float64 [F]; the best point once the status is no
        longer "running".
    best_x, best_f, best_g: the last accepted point, its value and its gradient. f = inf before the
        start was evaluated.
    status (str): "running", "converged: gradient", "converged: improvement", "stopped: line search"
        or "failed: …".
    iterations, evaluations (int): number of accepted steps, and of points told, since the object was made;
        the start is not an iteration.
    """

    def __init__(
        self,
        x0: ArrayLike,
        memory: int = 10,
        gradient_tolerance: float = 1e-5,
        improvement_tolerance: float = 1e-9,
        improvement_period: int = 10,
        max_line_search: int = 40,
        threads: int = 1,
        curvature: ArrayLike | None = None,
    ) -> None:
        limits = gradient_tolerance, improvement_tolerance, improvement_period, max_line_search
        super().__init__(x0, *limits)
        self._threads = Threads(threads)
        self._direction = np.zeros_like(self.x)
        self._memory = _Memory(memory, self.x.size, self._threads, curvature)
        self._search: Generator[float, Probe, bool] | None = None

    def tell(self, f: float, g: Vector) -> bool:
        """Receive the value and the gradient at `x`, and move `x` to the next point.

        f (float): the value. A value or gradient that is not finite makes the line search back off.
        g (NDArray): float64 [F]; read, not kept.
        RETURNS (bool): whether the point was accepted, which ends an iteration; the start
            counts as accepted.
        """
        assert self.status == RUNNING, f"tell() after the end: {self.status}"
        self.evaluations += 1
        if self._search is None:
            return self._accept_start(float(f), g)
        probe = Probe(self.step, float(f), self._dot(g, self._direction))
        try:
            self._move(self._search.send(probe))
            return False
        except StopIteration as end:
            accepted = end.value
        if accepted:
            self._accept(probe, g)
        else:
            self._retreat()
        return bool(accepted)

    def _accept_start(self, f: float, g: Vector) -> bool:
        self._best_gg, self._best_xx = self._dot(g, g), self._dot(self.best_x, self.best_x)
        if not (math.isfinite(f) and math.isfinite(self._best_gg)):
            self._fail()
            return False
        self.best_f = f
        self.best_g[:] = g
        self._values.append(f)
        self._continue()
        return True

    def _accept(self, probe: Probe, g: Vector) -> None:
        """Make the point the best one, and store the step to it."""
        curvature = probe.step * (probe.slope - self._slope)
        self._best_gg = self._memory.add(probe.step, self._direction, curvature, g, self.best_g)
        self.x, self.best_x, self._best_xx = self.best_x, self.x, self._xx
        self.best_f = probe.f
        self._values.append(probe.f)
        self.iterations += 1
        self._continue()

    def _retreat(self) -> None:
        """After a failed line search: once more along steepest descent, unless that is what failed."""
        if len(self._memory):
            self._memory.clear()
            self._start_search()
        else:
            self._finish("stopped: line search")

    def _continue(self) -> None:
        if not self._converges(math.sqrt(self._best_gg), math.sqrt(self._best_xx)):
            self._start_search()

    def _start_search(self) -> None:
        self._slope = (
            self._memory.descend(self.best_g, out=self._direction)
            if len(self._memory)
            else math.nan
        )
        if not -math.inf < self._slope < 0.0:  # no pairs, or they suffer from rounding errors
            self._memory.clear()
            np.divide(self.best_g, -self._memory.first, out=self._direction)
            self._slope = self._dot(self.best_g, self._direction)
        self._search_along()

    def _search_along(self) -> None:
        # Without pairs the scale of x is unknown: the first step has length 1.
        first_step = 1.0
        if not len(self._memory):
            first_step /= math.sqrt(self._dot(self._direction, self._direction))
        self._search = strong_wolfe(self.best_f, self._slope, first_step, self._max_probes)
        self._move(next(self._search))

    def _move(self, step: float) -> None:
        """x = best_x + step · direction."""
        self.step = step
        arguments = self.x, self.best_x, step, self._direction
        self._xx = float(sweep("move_into", self.x.size, 1, *arguments, threads=self._threads)[0])

    def _dot(self, x: Vector, y: Vector) -> float:
        return dot(x, y, self._threads)


class _Memory:
    """The last m pairs of a step s and the change of the gradient y along it, len() of them in use,
    and their products.

    In addition, D estimates of the Hessian's diagonal from all pairs so far. The pairs are rounded to
    bfloat16, and all products are computed from the rounded ones, so that H is still positive definite.
    With their 8 significant bits as many evaluations are needed as with 24, down to 1e-8 of the
    optimum, in half the memory.

    capacity (int): m.
    size (int): F.
    curvature (Optional[ArrayLike]): a second diagonal begins as its cube root, up to a factor, the
        first as a multiple of I; None for no second one.
    """

    def __init__(
        self, capacity: int, size: int, threads: Threads, curvature: ArrayLike | None = None
    ) -> None:
        self._capacity, self._size, self._threads = capacity, size, threads
        # [F] or [1]
        self.first = np.cbrt(np.ones(1) if curvature is None else np.asarray(curvature, np.float64))
        self._diagonals = 1 if curvature is None else 2
        # block by block, zeros beyond F
        self._s = np.zeros((-(-size // BLOCK), capacity, BLOCK), dtype=np.uint16)
        self._y = np.zeros_like(self._s)
        self._e = np.ones((self._diagonals, size))
        self._products = np.zeros((capacity, capacity))  # s_i · y_j where i is not younger than j
        self.clear()

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        self._rows: list[int] = []  # in use, oldest first
        self._e[0] = 1.0
        self._e[1:] = self.first
        self._share = 1.0  # share of the second diagonal
        self._renew_nothing()

    def add(
        self, step: float, direction: Vector, curvature: float, g: Vector, previous_g: Vector
    ) -> float:
        """Replace the oldest pair by s = step · direction, y = g - previous_g, if the function
        curves upwards along s.

        curvature (float): s · y, so that a pair that is skipped overwrites nothing.
        g (float64 [F]): copied into previous_g.
        RETURNS (float): g · g.
        """
        newest = self._take_row() if TINY < curvature < math.inf else -1
        first = 1 + 3 * self._diagonals  # first product with a row, after g·g and `weighed`
        sums = self._sweep(
            "remember_into",
            first + 2 * len(self),
            self._s,
            self._y,
            self._used,
            newest,
            step,
            direction,
            g,
            previous_g,
            self._e,
        )
        self._sg = sums[first::2]
        if newest >= 0:
            self._products[self._rows, newest] = sums[first + 1 :: 2]
            self._learn(newest, sums[1:first].reshape(-1, 3))
        return float(sums[0])

    def _take_row(self) -> int:
        """Return a row for a new pair: a free one, or that of the oldest pair."""
        free = set(range(self._capacity)).difference(self._rows)
        self._rows.append(min(free) if free else self._rows.pop(0))
        return self._rows[-1]

    def _learn(self, newest: int, weighed: NDArray[np.float64]) -> None:
        """Compute how to update the diagonals with the newest pair, or drop the pair if rounding has
        spoilt it.

            E' = κ E + y² / s·y - κ (E s)² / s·Es,   κ = y·E⁻¹y / s·y

        This is the diagonal of the BFGS update of κE, the previous estimate scaled to match the length of y
        (Gilbert and Lemaréchal, §4.2).

        weighed (float64 [D, 3]): y·y, s·Es and y·E⁻¹y for each diagonal.
        """
        sy, yy = float(self._products[newest, newest]), float(weighed[0, 0])
        if not (TINY < sy < math.inf and TINY < yy < math.inf):
            self._rows.pop()
            self._sg = self._sg[:-1]
            return
        mean = max(yy / sy, TINY)
        self._share *= FADING
        for diagonal, (_, ses, yey) in enumerate(weighed.tolist()):
            if len(self) == 1:
                self._e[diagonal] *= yey / sy
                self._renewal[diagonal] = NO_RENEWAL
            elif TINY < ses < math.inf and TINY < yey < math.inf:
                self._renewal[diagonal] = yey / sy, 1.0 / sy, yey / sy / ses, MIN_CURVATURE * mean

    def descend(self, g: Vector, *, out: Vector) -> float:
        """Compute out = -H g for the g of the last `add`, both float64 [F]; there must be a pair.

        RETURNS (float): g · out.
        """
        products = self._products[np.ix_(self._rows, self._rows)]
        a = _solve_upper(products, -self._sg)
        dots = self._sweep(
            "solve_into",
            len(self),
            out,
            g,
            self._s,
            self._y,
            self._used,
            -a,
            self._e,
            self._renewal,
            np.array([1.0 - self._share, self._share] if self._diagonals == 2 else [1.0]),
        )
        self._renew_nothing()
        right = products.diagonal() * a - dots
        b = _solve_upper(products.T[::-1, ::-1], right[::-1])[::-1].copy()
        return float(self._sweep("combine_into", 1, out, self._s, self._used, b, g)[0])

    def _renew_nothing(self) -> None:
        self._renewal = np.tile(NO_RENEWAL, (self._diagonals, 1))

    @property
    def _used(self) -> NDArray[np.int32]:
        return np.array(self._rows, dtype=np.int32)

    def _sweep(self, kernel: str, columns: int, *arguments: Any) -> NDArray[np.float64]:
        return sweep(kernel, self._size, columns, *arguments, threads=self._threads)


def _solve_upper(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve matrix · x = right for x, ignoring what is below the diagonal."""
    x = np.zeros_like(right)
    for i in reversed(range(len(x))):
        x[i] = (right[i] - matrix[i, i + 1 :] @ x[i + 1 :]) / matrix[i, i]
    return x
