"""A line search by reverse communication: it yields steps, and is sent probes.

    search = strong_wolfe(f, slope, first_step, max_probes)
    step = next(search)
    while …:
        step = search.send(Probe(step, f, slope))

It ends in a step with the strong Wolfe conditions, for probes (step, f, slope) along a direction:

    f(step) ≤ f(0) + c1 · step · slope(0)    and    |slope(step)| ≤ c2 · |slope(0)|

Nocedal and Wright, Numerical Optimization, 2nd ed., Algorithms 3.5 and 3.6 with cubic
interpolation (3.59).
"""

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np

__all__ = ["Probe", "strong_wolfe"]

DECREASE, CURVATURE = 1e-4, 0.9  # c1 and c2 of the Wolfe conditions
# relative to f: a smaller difference of two values of f is not significant, since f is a difference
# of sums of larger numbers
ROUNDING = 64 * float(np.finfo(np.float64).eps)


class Probe(NamedTuple):
    """Value and slope of the function at x + step · direction."""

    step: float
    f: float
    slope: float  # derivative by the step: g · direction


def strong_wolfe(
    f: float, slope: float, first_step: float, max_probes: int
) -> Generator[float, Probe, bool]:
    """Line search (Nocedal and Wright, Algorithm 3.5): yields steps, and is sent a `Probe` of each.

    f, slope (float): value and derivative at step 0; slope < 0.
    RETURNS (bool): whether the last probe satisfies the strong Wolfe conditions, up to the rounding
        error of f. (Requiring a true decrease would end the search when f no longer changes, though
        the gradient still improves.)
    """
    search = _Wolfe(f, slope)
    previous, step = Probe(0.0, f, slope), first_step
    for count in range(1, max_probes + 1):
        probe = search.read((yield step))
        if search.is_too_high(probe, previous):
            return (yield from _zoom(search, previous, probe, max_probes - count))
        if search.is_flat(probe):
            return True
        if probe.slope >= 0.0:
            return (yield from _zoom(search, probe, previous, max_probes - count))
        step = _clip(_cubic_minimum(previous, probe), 2.0 * probe.step, 10.0 * probe.step)
        previous = probe
    return False


def _zoom(
    search: "_Wolfe", low: Probe, high: Probe, max_probes: int
) -> Generator[float, Probe, bool]:
    """Shrink an interval that contains a good step (Algorithm 3.6). At its end `low`, f is lower, and
    decreases inwards.

    The cubic's minimum is kept away from both ends; an interval that two probes did not shrink by a
    third is halved.
    """
    widths = [math.inf, math.inf]
    for _ in range(max_probes):
        width = abs(high.step - low.step)
        step = 0.5 * (low.step + high.step)
        if width <= 0.66 * widths[-2]:
            near, far = sorted((low.step, high.step))
            step = _clip(
                _cubic_minimum(low, high), near + 0.1 * width, far - 0.1 * width, otherwise=step
            )
        widths.append(width)
        probe = search.read((yield step))
        if search.is_too_high(probe, low):
            if search.is_noise(probe):
                return False
            high = probe
            continue
        if search.is_flat(probe):
            return True
        if probe.slope * (high.step - low.step) >= 0.0:
            high = low
        low = probe
    return False


class _Wolfe:
    """The strong Wolfe conditions (3.7) for a search that starts with the value f and the
    derivative slope < 0.
    """

    def __init__(self, f: float, slope: float) -> None:
        self._f, self._slope = f, slope
        self._rounding = ROUNDING * abs(f)

    def read(self, probe: Probe) -> Probe:
        """Treat a point without a finite value and gradient as infinitely high, so that the search turns
        back.
        """
        finite = math.isfinite(probe.f) and math.isfinite(probe.slope)
        return probe if finite else Probe(probe.step, math.inf, math.nan)

    def is_too_high(self, probe: Probe, other: Probe) -> bool:
        line = self._f + DECREASE * probe.step * self._slope
        return probe.f > min(line, other.f) + self._rounding

    def is_flat(self, probe: Probe) -> bool:
        return abs(probe.slope) <= -CURVATURE * self._slope

    def is_noise(self, probe: Probe) -> bool:
        """Is the step so short that it cannot change f by more than its rounding error?"""
        return -probe.step * self._slope <= self._rounding


def _cubic_minimum(a: Probe, b: Probe) -> float:
    """Minimiser of the cubic through two probes (3.59), nan if there is none."""
    d1 = a.slope + b.slope - 3.0 * (a.f - b.f) / (a.step - b.step) if a.step != b.step else math.nan
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0.0:
        return math.nan
    d2 = math.copysign(math.sqrt(square), b.step - a.step)
    denominator = b.slope - a.slope + 2.0 * d2
    return (
        b.step - (b.step - a.step) * (b.slope + d2 - d1) / denominator if denominator else math.nan
    )


def _clip(x: float, low: float, high: float, otherwise: float | None = None) -> float:
    if math.isnan(x):
        return high if otherwise is None else otherwise
    return min(max(x, low), high)
