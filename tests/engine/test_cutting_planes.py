"""Cutting planes on functions with known minima, and the quadratic programme against all its
supports.
"""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spacy_hocrf.engine import cutting_planes
from spacy_hocrf.engine.cutting_planes import CuttingPlanes, maximise_on_simplex


def minimise(planes, precision, mean=None, x0=None, tolerance=1e-9):
    """Minimise ½ (x - mean)' P (x - mean) + max(0, offset + slope · x of some planes); all states
    of the optimiser's numbers.
    """
    precision = np.asarray(precision, dtype=float)
    mean = np.zeros(len(precision)) if mean is None else np.asarray(mean, dtype=float)
    optimiser = CuttingPlanes(
        np.zeros(len(precision)) if x0 is None else x0, precision, mean, tolerance
    )
    history = []
    while optimiser.status == "running" and optimiser.evaluations < 2000:
        x = optimiser.x.copy()
        offset, slope = max(
            [(0.0, np.zeros(len(x))), *planes], key=lambda plane: plane[0] + plane[1] @ x
        )
        optimiser.tell(offset, slope)
        history.append((optimiser.best_f, optimiser.bound))
    return optimiser, history


def test_a_hinge_has_its_minimum_where_the_penalty_pulls_as_hard():
    # ½ p x² + max(0, 1 - x): at x = 1/p for p ≥ 1, else at the hinge
    for p, x, value in ((2.0, 0.5, 0.75), (4.0, 0.25, 0.875), (0.5, 1.0, 0.25)):
        optimiser, _ = minimise([(1.0, np.array([-1.0]))], [p])
        assert_allclose(optimiser.best_x, [x], rtol=1e-4)
        assert_allclose(optimiser.best_f, value, rtol=1e-8)
        assert optimiser.status == "converged: gap"


@pytest.mark.slow
def test_without_risk_the_mean_is_best():
    optimiser, history = minimise([], [1.0, 4.0], mean=[2.0, -1.0], x0=[5.0, 5.0])
    assert_allclose(optimiser.best_x, [2.0, -1.0], atol=1e-4)
    assert history[-1][0] == pytest.approx(0.0, abs=1e-8)
    optimiser, history = minimise([], [1.0, 4.0])
    assert (optimiser.status, optimiser.best_f, len(history)) == ("converged: gap", 0.0, 1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("idle", [cutting_planes.IDLE, 3])
def test_the_bound_rises_to_the_best_value(seed, idle, monkeypatch):
    monkeypatch.setattr(cutting_planes, "IDLE", idle)
    rng = np.random.default_rng(seed)
    planes = [
        (float(offset), slope)
        for offset, slope in zip(rng.normal(size=60), 5 * rng.normal(size=(60, 8)))
    ]
    precision, mean = rng.uniform(0.1, 10.0, 8), rng.normal(size=8)
    optimiser, history = minimise(planes, precision, mean)
    values, bounds = map(list, zip(*history))
    assert optimiser.status == "converged: gap"
    assert values == sorted(values, reverse=True)
    assert bounds == sorted(bounds)
    assert max(bounds) <= values[-1] * (1 + 1e-12)
    assert optimiser.gap <= 1e-9

    def value(x):
        return 0.5 * float(precision @ (x - mean) ** 2) + max(
            0.0, *(offset + slope @ x for offset, slope in planes)
        )

    assert value(optimiser.best_x) == pytest.approx(optimiser.best_f, rel=1e-12)
    for scale in (1e-4, 1e-2, 1.0):  # no point nearby is better
        for _ in range(50):
            assert value(optimiser.best_x + scale * rng.normal(size=8)) >= optimiser.best_f * (
                1 - 1e-8
            )


def test_planes_that_are_not_used_are_dropped(monkeypatch):
    rng = np.random.default_rng(0)
    planes = [
        (float(offset), slope)
        for offset, slope in zip(rng.normal(size=60), 5 * rng.normal(size=(60, 8)))
    ]
    kept, _ = minimise(planes, np.ones(8))
    monkeypatch.setattr(cutting_planes, "IDLE", 3)
    dropped, _ = minimise(planes, np.ones(8))
    assert dropped.planes < kept.planes
    assert dropped.best_f == pytest.approx(kept.best_f, rel=1e-8)


@pytest.mark.parametrize("offset, slope", [(np.nan, 0.0), (np.inf, 1.0), (0.0, np.nan)])
def test_a_plane_that_is_not_finite_is_a_failure(offset, slope):
    optimiser = CuttingPlanes(np.ones(2), np.ones(2), np.zeros(2))
    optimiser.tell(offset, np.full(2, slope))
    assert optimiser.status.startswith("failed")
    assert optimiser.best_x.tolist() == [1.0, 1.0]


def best_by_support(products, heights):
    """The largest value of e·α - ½ α'Gα on the simplex, over the stationary points of all supports."""
    best = -np.inf
    for size in range(1, len(heights) + 1):
        for support in map(list, combinations(range(len(heights)), size)):
            system = np.ones((size + 1, size + 1))
            system[:size, :size] = products[np.ix_(support, support)]
            system[size, size] = 0.0
            shares = np.linalg.lstsq(system, np.append(heights[support], 1.0), rcond=None)[0][:size]
            if (shares >= -1e-12).all() and abs(shares.sum() - 1) < 1e-9:
                best = max(
                    best,
                    heights[support] @ shares
                    - 0.5 * shares @ products[np.ix_(support, support)] @ shares,
                )
    return best


@pytest.mark.parametrize("seed", range(30))
def test_the_programme_is_solved_like_by_trying_all_supports(seed):
    rng = np.random.default_rng(seed)
    n, rank = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    slopes = 10.0 ** rng.integers(-1, 3) * rng.normal(size=(n, rank))
    slopes[0] = 0.0
    if seed % 3 == 0 and n > 2:
        slopes[-1] = slopes[1]  # the same plane twice, perhaps at another height
    if seed % 4 == 0:
        slopes[1:2] = 0.0  # a risk that no weights can lower
    products, heights = slopes @ slopes.T, np.append(0.0, 5 * rng.normal(size=n - 1))
    start = np.zeros(n)
    start[rng.integers(n)] = 1.0
    shares = maximise_on_simplex(products, heights, start)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1.0, abs=1e-12)
    value = heights @ shares - 0.5 * shares @ products @ shares
    assert value == pytest.approx(best_by_support(products, heights), rel=1e-9, abs=1e-9)
