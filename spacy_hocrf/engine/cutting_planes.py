"""Cutting planes by reverse communication: minimise a penalty plus a convex function that is known
by its planes.

    optimiser = CuttingPlanes(x0, precision, mean)
    while optimiser.status == "running":
        # risk(x) ≥ offset + slope · x, with equality at optimiser.x
        offset, slope = plane(optimiser.x)
        optimiser.tell(offset, slope)

    value(x) = ½ (x - mean)' P (x - mean) + risk(x),   P = diag(precision)

With the planes i told so far, and the plane 0 (risk ≥ 0), the value has a lower bound: a small
quadratic programme, in the dual

    bound = max e·α - ½ α'Gα  over α ≥ 0, Σ α = 1,
    e_i = offset_i + slope_i · mean,  G_ij = slope_i' P⁻¹ slope_j
    lowest = mean - P⁻¹ Σ α_i slope_i

The gap between the best value seen and the bound proves how far from the optimum it is. One plane
stands for all documents: the 1-slack formulation of Joachims, Finley and Yu, Machine Learning 77
(2009). The slopes are kept sparse, and those that have not been in the solution for a while are
dropped.

The next plane is asked for between the best point and the lowest one of the bound, which jumps
about while there are few planes (as Franc and Sonnenburg, ICML 2008, do on a line where they know
the exact value). If the value there is not lower, the plane cuts the lowest point off all the same:
on the line through the three it lies at or below the risk at the best point, so above it beyond.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["CuttingPlanes", "maximise_on_simplex"]

Vector = NDArray[np.float64]

RUNNING = "running"
IDLE = 50
"""Planes outside the solution for so many steps in turn are dropped."""
ROUNDING = 1e-10  # relative to the value: a smaller gap says nothing
STEP = 0.25
"""How far from the best point to the lowest one the next plane is asked for: on Cora this takes
half as many planes as 1.
"""
RIDGE = 1e-13
"""Relative to the diagonal, to 1 for planes without a slope: parallel planes have a solution, too."""


@dataclass
class _Plane:
    """Where a slope is not 0, and what it is there."""

    places: NDArray[np.int32]  # [n]
    values: Vector  # [n]
    idle: int = 0  # steps in turn outside the solution


class CuttingPlanes:
    """Minimise a quadratic penalty plus a convex function of F variables that is nowhere negative.

    x0 (ArrayLike): where the first plane is asked for, float64 [F]; copied.
    precision (float64 [F]): above 0.
    mean (float64 [F]): where the penalty is 0.
    tolerance (float): converged when the gap is at most this part of the value.

    The attributes are for reading.

    x (NDArray): the point to evaluate next, float64 [F].
    best_x, best_f: the best point told, and its value; inf before the first.
    bound (float): no point has a lower value.
    status (str): "running", "converged: gap" or "failed: …".
    evaluations (int): planes told.
    """

    def __init__(
        self, x0: ArrayLike, precision: Vector, mean: Vector, tolerance: float = 1e-3
    ) -> None:
        self.x: Vector = np.array(x0, dtype=np.float64)
        self.best_x = self.x.copy()
        self.best_f, self.bound = math.inf, 0.0
        self.status = RUNNING
        self.evaluations = 0
        self._precision = precision
        self._mean = mean
        self._tolerance = max(tolerance, ROUNDING)
        self._planes = [_Plane(np.zeros(0, dtype=np.int32), np.zeros(0))]  # the first one: risk ≥ 0
        self._heights = np.zeros(1)  # e
        self._products = np.zeros((1, 1))  # G
        self._shares = np.ones(1)  # α

    @property
    def gap(self) -> float:
        """Best value less the bound, as a part of the value; the best point is no farther than this
        from the optimum.
        """
        return (
            math.inf
            if math.isinf(self.best_f)
            else (self.best_f - self.bound) / max(self.best_f, np.finfo(np.float64).tiny)
        )

    @property
    def planes(self) -> int:
        """Planes kept."""
        return len(self._planes) - 1

    def tell(self, offset: float, slope: Vector) -> None:
        """Take the plane at `x`, and move `x` to the next point.

        offset (float), slope (float64 [F]): risk(x) ≥ offset + slope · x, with equality at `x`;
            read, not kept.
        """
        assert self.status == RUNNING, f"tell() after the end: {self.status}"
        self.evaluations += 1
        distance = self.x - self._mean
        value = offset + float(slope @ self.x) + 0.5 * float(self._precision @ distance**2)
        if not math.isfinite(value):
            self.status = "failed: the value or the plane is not finite"
            return
        if value < self.best_f:
            self.best_f = value
            self.best_x[:] = self.x
        self._add(offset, slope)
        self._shares = maximise_on_simplex(self._products, self._heights, self._shares)
        self.bound = max(
            self.bound, float(self._shares @ (self._heights - 0.5 * self._products @ self._shares))
        )
        if self.gap <= self._tolerance:
            self.status = "converged: gap"
        else:
            self._drop()
            self._move()

    def _add(self, offset: float, slope: Vector) -> None:
        scaled = slope / self._precision
        column = np.array([float(plane.values @ scaled[plane.places]) for plane in self._planes])
        places = np.flatnonzero(slope).astype(np.int32)
        self._planes.append(_Plane(places, slope[places]))
        self._heights = np.append(self._heights, offset + float(slope @ self._mean))
        self._shares = np.append(self._shares, 0.0)
        n = len(self._planes)
        products = np.empty((n, n))
        products[:-1, :-1] = self._products
        products[-1, :-1] = products[:-1, -1] = column
        products[-1, -1] = float(slope @ scaled)
        self._products = products

    def _drop(self) -> None:
        """Forget planes that have been idle for long."""
        for plane, share in zip(self._planes, self._shares.tolist()):
            plane.idle = 0 if share > 0 else plane.idle + 1
        keep = np.array([i == 0 or plane.idle < IDLE for i, plane in enumerate(self._planes)])
        if not keep.all():
            self._planes = [plane for plane, kept in zip(self._planes, keep) if kept]
            self._heights, self._shares = self._heights[keep], self._shares[keep]
            self._products = self._products[np.ix_(keep, keep)]

    def _move(self) -> None:
        self.x.fill(0.0)
        for plane, share in zip(self._planes, self._shares.tolist()):
            if share > 0:
                self.x[plane.places] -= share * plane.values
        self.x /= self._precision
        self.x += self._mean
        self.x += (1.0 - STEP) * (self.best_x - self.x)


def maximise_on_simplex(products: Vector, heights: Vector, start: Vector) -> Vector:
    """Maximise e·α - ½ α'Gα over α ≥ 0, Σ α = 1, by an active-set method (Nocedal and Wright, 2nd
    ed., Algorithm 16.3).

    products (float64 [n, n]): G, positive semidefinite.
    heights (float64 [n]): e.
    start (float64 [n]): an α that is allowed.
    RETURNS (float64 [n]): the solution, up to rounding; allowed, and no worse than the start.
    """
    shares = start.copy()
    squares = products.diagonal()
    ridge = RIDGE * np.where(squares > 0, squares, 1.0)
    free = shares > 0  # the others are held at 0
    for _ in range(20 * len(shares) + 100):
        support = np.flatnonzero(free)
        goal, level = _best_of_support(products, heights, ridge, support)
        if (goal >= 0).all():
            shares[:] = 0.0
            shares[support] = goal
            excess = heights - products @ shares - level
            excess[support] = 0.0
            candidate = int(excess.argmax())
            if excess[candidate] <= 1e-12 * (1.0 + abs(level) + np.abs(heights).max()):
                break
            free[candidate] = True
        else:
            current = shares[support]
            falls = goal < 0
            steps = np.full(len(support), np.inf)
            steps[falls] = current[falls] / (current[falls] - goal[falls])
            first = int(steps.argmin())
            shares[support] = np.maximum(current + min(1.0, steps[first]) * (goal - current), 0.0)
            shares[support[first]] = 0.0
            free[support[first]] = False
    normalised: Vector = shares / shares.sum()
    return normalised


def _best_of_support(
    products: Vector, heights: Vector, ridge: Vector, support: NDArray[np.int64]
) -> tuple[Vector, float]:
    """The solution for Σ α = 1 alone, of some planes, and its multiplier: G α + level = e there."""
    n = len(support)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = products[np.ix_(support, support)] + np.diag(ridge[support])
    system[n, n] = 0.0
    solution = np.linalg.solve(system, np.append(heights[support], 1.0))
    return solution[:n], float(solution[n])
