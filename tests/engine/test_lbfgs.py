"""The optimiser on functions whose minimum is known, and the promises that it makes about every
accepted point.
"""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from bfloat16 import rounded
from smooth_functions import (
    linear_chain_crf,
    log_barrier,
    logistic_regression,
    quadratic,
    rosenbrock,
)

from spacy_hocrf.engine.lbfgs import LBFGS, _Memory
from spacy_hocrf.engine.line_search import CURVATURE, DECREASE
from spacy_hocrf.engine.owlqn import OWLQN
from spacy_hocrf.engine.threads import Threads


def minimise(objective, x0, max_evaluations=5000, **settings):
    """Run to the end; returns the optimiser and the accepted points [(x, f, g), …], the start
    first.
    """
    optimiser = LBFGS(x0, **settings)
    accepted = []
    while optimiser.status == "running" and optimiser.evaluations < max_evaluations:
        x = optimiser.x.copy()
        f, g = objective(optimiser.x)
        if optimiser.tell(f, g):
            accepted.append((x, f, np.array(g)))
    return optimiser, accepted


CONVEX = {
    "quadratic": (quadratic(np.logspace(0, 3, 20), np.arange(20.0)), np.zeros(20)),
    "logistic": (logistic_regression(1)[0], np.zeros(30)),
    "crf": (linear_chain_crf(1)[0], np.zeros(linear_chain_crf(1)[1])),
    "barrier": (log_barrier, np.linspace(1e-3, 0.999, 7)),
}
SMOOTH = {
    **CONVEX,
    "rosenbrock": (rosenbrock, np.array([-1.2, 1.0])),
    "long rosenbrock": (rosenbrock, np.full(30, -1.0)),
}


@pytest.mark.parametrize("memory", [1, 3, 10])
@pytest.mark.parametrize("size", [1, 2, 20])
def test_finds_the_minimum_of_a_quadratic(size, memory):
    minimum = np.arange(1.0, size + 1.0)
    objective = quadratic(np.linspace(1.0, 50.0, size), minimum)
    optimiser, _ = minimise(objective, np.zeros(size), memory=memory, gradient_tolerance=1e-10)
    assert optimiser.status == "converged: gradient"
    assert optimiser.best_x == pytest.approx(minimum, rel=1e-8)


@pytest.mark.parametrize("start", [(-1.2, 1.0), (2.0, -3.0), (0.0, 0.0), (-1.0,) * 10])
def test_finds_the_minimum_of_rosenbrock_to_1e_8(start):
    optimiser, _ = minimise(rosenbrock, start, gradient_tolerance=1e-10)
    assert optimiser.status == "converged: gradient"
    assert optimiser.best_x == pytest.approx(np.ones(len(start)), abs=1e-8)
    assert optimiser.best_f < 1e-16


@pytest.mark.parametrize("seed", range(5))
def test_finds_the_minimum_of_a_logistic_regression(seed):
    """The gradient at x is at most ε, and the Hessian at least I / sigma²: so x is within ε sigma²
    of the minimum.
    """
    objective, size = logistic_regression(seed)
    optimiser, _ = minimise(
        objective, np.zeros(size), gradient_tolerance=1e-9, improvement_tolerance=-1.0
    )
    assert optimiser.status == "converged: gradient"
    x = newton(objective, np.zeros(size))
    assert optimiser.best_x == pytest.approx(x, abs=1e-8)
    assert optimiser.best_f <= objective(x)[0] + 1e-12


def newton(objective, x, step=1e-5):
    """Minimum by Newton's method with a Hessian from central differences."""
    for _ in range(20):
        columns = [
            (objective(x + e)[1] - objective(x - e)[1]) / (2.0 * step)
            for e in np.eye(x.size) * step
        ]
        x = x - np.linalg.solve(np.array(columns), objective(x)[1])
    return x


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("memory", [1, 5])
def test_accepted_points_satisfy_the_strong_wolfe_conditions(name, memory):
    objective, x0 = SMOOTH[name]
    optimiser, accepted = minimise(objective, x0, memory=memory)
    assert len(accepted) == optimiser.iterations + 1 > 5
    for (x, f, g), (next_x, next_f, next_g) in itertools.pairwise(accepted):
        s = next_x - x
        rounding = 1e-14 * abs(f)
        assert g @ s < 0.0
        assert next_f <= f + DECREASE * (g @ s) + rounding
        assert abs(next_g @ s) <= CURVATURE * abs(g @ s) + 1e-14 * np.linalg.norm(
            g
        ) * np.linalg.norm(x)
        assert (next_g - g) @ s > 0.0


@pytest.mark.parametrize("name", SMOOTH)
def test_best_is_the_last_accepted_point(name):
    objective, x0 = SMOOTH[name]
    optimiser = LBFGS(x0)
    last = None
    while optimiser.status == "running":
        x = optimiser.x.copy()
        f, g = objective(x)
        if optimiser.tell(f, g):
            last = x, f, g
        g[:] = np.nan  # the caller may reuse its buffer
        if last is not None:
            assert (optimiser.best_x == last[0]).all()
            assert optimiser.best_f == last[1]
            assert (optimiser.best_g == objective(last[0])[1]).all()
    assert (optimiser.x == optimiser.best_x).all()


@pytest.mark.parametrize("seed", range(3))
def test_needs_nearly_one_evaluation_per_iteration_on_a_crf(seed):
    objective, size = linear_chain_crf(seed)
    optimiser, _ = minimise(objective, np.zeros(size))
    assert optimiser.status.startswith("converged")
    assert optimiser.evaluations <= 1.2 * optimiser.iterations + 3
    assert optimiser.iterations < 60


def test_the_first_step_has_length_one_and_later_ones_begin_with_the_newton_step():
    optimiser = LBFGS(np.zeros(3))
    curvature = 7.0
    objective = quadratic(curvature, np.array([30.0, 40.0, 0.0]))
    optimiser.tell(*objective(optimiser.x))
    assert optimiser.x == pytest.approx([0.6, 0.8, 0.0])
    while optimiser.iterations < 1:
        optimiser.tell(*objective(optimiser.x))
    # With one pair of a function of one curvature, gamma is its inverse and the step 1 leads to the
    # minimum.
    assert optimiser.x == pytest.approx([30.0, 40.0, 0.0])


def test_the_first_direction_goes_by_the_cube_root_of_the_curvature():
    optimiser = LBFGS(np.zeros(3), curvature=[1.0, 8.0, 27.0])
    optimiser.tell(*quadratic(1.0, np.array([3.0, 8.0, 0.0]))(optimiser.x))
    assert optimiser.x == pytest.approx([0.6, 0.8, 0.0])


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e9])
def test_a_factor_of_the_curvature_does_not_matter(factor):
    curvature = np.logspace(0, 4, 20)
    objective = quadratic(curvature, np.arange(20.0))
    one, other = (
        LBFGS(np.zeros(20), curvature=curvature),
        LBFGS(np.zeros(20), curvature=curvature * factor),
    )
    while one.iterations < 8:
        one.tell(*objective(one.x))
        other.tell(*objective(other.x))
        assert other.x == pytest.approx(one.x, rel=1e-6, abs=1e-9)


def test_whoever_knows_the_curvature_is_there_sooner():
    rng = np.random.default_rng(0)
    curvature = 10.0 ** rng.uniform(0.0, 4.0, 300)
    objective = quadratic(curvature, rng.normal(size=300))
    settings = {"gradient_tolerance": 1e-6, "improvement_tolerance": -1.0}
    plain, _ = minimise(objective, np.zeros(300), **settings)
    told, _ = minimise(objective, np.zeros(300), curvature=curvature, **settings)
    assert told.status == plain.status == "converged: gradient"
    assert told.evaluations < 0.8 * plain.evaluations


@pytest.mark.parametrize("threads", [2, 3])
def test_the_threads_change_nothing(threads):
    rng = np.random.default_rng(0)
    objective, x0 = (
        quadratic(rng.uniform(1.0, 50.0, 30_000), rng.normal(size=30_000)),
        np.zeros(30_000),
    )
    one, many = (LBFGS(x0, threads=count) for count in (1, threads))
    while one.iterations < 15:
        assert one.tell(*objective(one.x)) == many.tell(*objective(many.x))
        assert (one.x == many.x).all()


@pytest.mark.parametrize(
    ("curvature", "rounding"), [(None, 1e-12), ([1.0, 8.0, 1.0, 27.0, 0.125], 1e-9)]
)
def test_directions_are_those_of_bfgs_as_long_as_nothing_is_forgotten(curvature, rounding):
    """The triangular systems against the dense update of the inverse Hessian (Nocedal and Wright,
    6.17) from H0 = E⁻¹, or the mean of two such.
    """
    optimiser = LBFGS(np.full(5, -1.0), memory=4, curvature=curvature)
    pairs = []
    x = g = None
    while optimiser.iterations < 12:
        told_x = optimiser.x.copy()
        f, told_g = rosenbrock(told_x)
        if not optimiser.tell(f, told_g):
            continue
        if x is not None:
            pairs.append((rounded(told_x - x), rounded(told_g - g)))
            e = diagonal(pairs)
            if curvature is not None:
                share = 0.99 ** len(pairs)
                e = 1.0 / ((1.0 - share) / e + share / diagonal(pairs, np.cbrt(curvature)))
            direction = -dense_inverse_hessian(pairs[-4:], e) @ told_g
            assert optimiser.x - told_x == pytest.approx(direction, rel=1e-6, abs=rounding)
        x, g = told_x, told_g


def diagonal(pairs, first=1.0):
    """The diagonals of dense BFGS updates of the Hessian, each of the last diagonal made as long as
    y is.
    """
    s, y = pairs[0]
    e = np.full(s.size, first) * (y @ (y / first)) / (s @ y)
    for s, y in pairs[1:]:
        e = e * (y @ (y / e)) / (s @ y)
        hessian = np.diag(e)
        hessian += np.outer(y, y) / (s @ y) - np.outer(e * s, e * s) / (s @ (e * s))
        e = np.diag(hessian)
    return e


def dense_inverse_hessian(pairs, e):
    inverse = np.diag(1.0 / e)
    for s, y in pairs:
        update = np.eye(s.size) - np.outer(y, s) / (s @ y)
        inverse = update.T @ inverse @ update + np.outer(s, s) / (s @ y)
    return inverse


@pytest.mark.parametrize("start", [1e-6, 0.5, 1.0 - 1e-9])
def test_backs_off_from_regions_where_the_function_is_not_finite(start):
    optimiser, accepted = minimise(log_barrier, np.full(4, start), gradient_tolerance=1e-9)
    assert optimiser.status == "converged: gradient"
    assert optimiser.best_x == pytest.approx(np.full(4, (5.0 - math.sqrt(13.0)) / 6.0), rel=1e-8)
    assert all(np.isfinite(f) and np.isfinite(g).all() for _, f, g in accepted)


@pytest.mark.parametrize("bad_f", [math.inf, -math.inf, math.nan, 0.0])
@pytest.mark.parametrize("bad_g", [math.inf, math.nan])
def test_survives_a_value_or_a_gradient_that_is_not_finite(bad_f, bad_g):
    objective = quadratic(np.array([1.0, 10.0]), np.array([3.0, 0.5]))
    optimiser = LBFGS(np.zeros(2), gradient_tolerance=1e-9)
    while optimiser.status == "running":
        f, g = objective(optimiser.x)
        if optimiser.evaluations in (1, 4, 5):
            f, g = bad_f, np.array([bad_g, 1.0])
        accepted = optimiser.tell(f, g)
        assert not accepted or np.isfinite(g).all()
    assert optimiser.best_x == pytest.approx([3.0, 0.5], rel=1e-8)


@pytest.mark.parametrize(
    ("f", "g"),
    [(math.nan, 1.0), (math.inf, 1.0), (-math.inf, 1.0), (0.0, math.nan), (0.0, math.inf)],
)
def test_fails_if_the_start_is_not_finite(f, g):
    optimiser = LBFGS([1.0, 2.0])
    assert optimiser.tell(f, np.array([0.0, g])) is False
    assert optimiser.status.startswith("failed: ")
    assert list(optimiser.best_x) == [1.0, 2.0]


def test_a_zero_gradient_at_the_start_converges_at_once():
    optimiser, accepted = minimise(quadratic(1.0, np.ones(3)), np.ones(3), gradient_tolerance=0.0)
    assert (optimiser.status, optimiser.iterations, optimiser.evaluations) == (
        "converged: gradient",
        0,
        1,
    )
    assert len(accepted) == 1


def test_no_variables_converge_at_once():
    optimiser, _ = minimise(lambda x: (3.0, x.copy()), np.zeros(0))
    assert (optimiser.status, optimiser.best_f, optimiser.best_x.shape) == (
        "converged: gradient",
        3.0,
        (0,),
    )


def test_the_gradient_is_measured_against_x():
    objective = quadratic(1.0, np.array([1e6]))
    optimiser, _ = minimise(objective, np.array([1e6 - 0.5]), gradient_tolerance=1e-6)
    assert (optimiser.status, optimiser.iterations) == ("converged: gradient", 0)


@pytest.mark.parametrize("period", [1, 5, 10])
def test_converges_when_the_value_no_longer_improves(period):
    objective, size = linear_chain_crf(0)
    settings = {
        "gradient_tolerance": 0.0,
        "improvement_tolerance": 1e-4,
        "improvement_period": period,
    }
    optimiser, accepted = minimise(objective, np.zeros(size), **settings)
    values = [f for _, f, _ in accepted]
    assert optimiser.status == "converged: improvement"
    assert values[-1 - period] - values[-1] <= 1e-4 * values[-1]
    before = zip(values, values[period:-1], strict=False)
    assert all(old - new > 1e-4 * new for old, new in before)


def test_ends_where_rounding_hides_any_progress():
    """With no tolerance at all the run ends by itself, near the minimum and after few useless
    evaluations.
    """
    objective, size = linear_chain_crf(2)
    settings = {"gradient_tolerance": 0.0, "improvement_tolerance": 0.0}
    optimiser, _ = minimise(objective, np.zeros(size), **settings)
    assert optimiser.status != "running"
    assert np.linalg.norm(optimiser.best_g) < 1e-7  # how near depends on the rounding of a build
    assert optimiser.evaluations < 2 * optimiser.iterations + 20


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e24, 1e38])
@pytest.mark.parametrize("make", [LBFGS, partial(OWLQN, absolute=1e-3)], ids=["lbfgs", "owlqn"])
def test_the_first_line_search_finds_the_scale_of_x(make, scale):
    """log(1 + exp(-scale x)) + x²/2, of a value that an attribute may have."""

    def objective(x):
        away = 1.0 / (1.0 + np.exp(np.minimum(scale * x, 700.0)))
        return float(np.logaddexp(0.0, -scale * x[0]) + x @ x / 2), x - scale * away

    optimiser = make(np.zeros(1), max_line_search=20)
    while optimiser.status == "running" and optimiser.evaluations < 1000:
        optimiser.tell(*objective(optimiser.x))
    assert optimiser.status != "running" and (scale < 1.0 or optimiser.best_f < 0.6)


@pytest.mark.parametrize("noise", [1e-12, 1e-10])
def test_stops_soon_when_the_value_is_noise(noise):
    """Near the minimum the noise of f exceeds what any step can gain: two line searches find that
    out quickly.
    """
    random = np.random.default_rng(0)
    exact = quadratic(np.linspace(1.0, 30.0, 10), np.ones(10))

    def objective(x):
        f, g = exact(x)
        return 1.0 + f + noise * random.random(), g

    optimiser, _ = minimise(
        objective, np.zeros(10), gradient_tolerance=0.0, improvement_tolerance=-1.0
    )
    assert optimiser.status == "stopped: line search"
    assert exact(optimiser.best_x)[0] < 10.0 * noise
    assert optimiser.evaluations < 60  # 2 × max_line_search alone are 80


def test_a_failed_line_search_is_retried_along_steepest_descent_before_stopping():
    objective = quadratic(np.linspace(1.0, 20.0, 6), np.ones(6))
    optimiser = LBFGS(np.zeros(6), max_line_search=5)
    while optimiser.iterations < 3:
        optimiser.tell(*objective(optimiser.x))
    best, g = optimiser.best_x.copy(), optimiser.best_g.copy()
    directions = []
    while optimiser.status == "running":
        directions.append((optimiser.x - best) / np.linalg.norm(optimiser.x - best))
        optimiser.tell(1e3, g)  # the whole world is a wall
    assert optimiser.status == "stopped: line search"
    assert len(directions) == 10
    downhill = -g / np.linalg.norm(g)
    assert abs(directions[0] - downhill).max() > 1e-3
    assert directions[5] == pytest.approx(downhill)
    assert directions[9] == pytest.approx(downhill)
    assert (optimiser.x == best).all() and (optimiser.best_x == best).all()


def test_a_line_search_that_recovers_goes_on():
    objective = quadratic(np.linspace(1.0, 20.0, 6), np.ones(6))
    optimiser = LBFGS(np.zeros(6), max_line_search=5, gradient_tolerance=1e-9)
    while optimiser.status == "running":
        f, g = objective(optimiser.x)
        optimiser.tell(1e3 if 4 <= optimiser.evaluations < 9 else f, g)
    assert optimiser.status == "converged: gradient"
    assert optimiser.best_x == pytest.approx(np.ones(6), rel=1e-7)


def test_a_function_without_a_minimum_ends_in_a_failed_line_search():
    optimiser, _ = minimise(lambda x: (float(-x.sum()), -np.ones_like(x)), np.zeros(2))
    assert optimiser.status == "stopped: line search"


def test_pairs_that_lead_uphill_are_dropped(monkeypatch):
    objective = quadratic(np.linspace(1.0, 20.0, 6), np.ones(6))
    optimiser = LBFGS(np.zeros(6))
    while optimiser.iterations < 3:
        optimiser.tell(*objective(optimiser.x))
    monkeypatch.setattr(
        optimiser._memory, "descend", lambda g, out: np.copyto(out, g) or float(g @ g)
    )
    while optimiser.iterations < 4:
        optimiser.tell(*objective(optimiser.x))
    step = optimiser.x - optimiser.best_x
    assert step == pytest.approx(-optimiser.best_g / np.linalg.norm(optimiser.best_g))


def test_x0_is_copied():
    x0 = np.zeros(3)
    optimiser, _ = minimise(quadratic(2.0, np.ones(3)), x0)
    assert (x0 == 0.0).all()
    assert optimiser.best_x == pytest.approx(np.ones(3))


def remembered(memory, pairs, g, step=0.5):
    """Add pairs (s, y), after the last of which the gradient is g; returns the descent from there."""
    for s, y in pairs:
        memory.add(step, s / step, float(y @ s), g.copy(), g - y)
        out = np.full(len(g), np.nan)
        slope = memory.descend(g, out=out)
        assert slope == pytest.approx(out @ g)
    return out


@pytest.mark.parametrize("curvature", [0.0, -1.0, 1e-310, math.nan, math.inf])
def test_pairs_without_positive_curvature_are_skipped_and_overwrite_nothing(curvature):
    memory = _Memory(2, 3, Threads())
    g, direction = np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.5, 1.0])
    before = remembered(memory, [(direction, direction), (direction + 1, direction + 1)], g)
    assert memory.add(1.0, direction * 5.0, curvature, g, g * 7.0) == pytest.approx(g @ g)
    after = np.zeros(3)
    memory.descend(g, out=after)
    assert (after == before).all()


@pytest.mark.parametrize("scale", [1e-30, 1e-50, 1e30, 1e50])
def test_pairs_that_are_too_large_or_too_small_to_be_kept_are_dropped(scale):
    memory = _Memory(2, 3, Threads())
    g, direction = np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.5, 1.0])
    remembered(memory, [(direction, direction), (direction + 1, direction + 1)], g)
    with np.errstate(over="ignore", invalid="ignore"):
        memory.add(1.0, direction * scale, 2.25 * scale, g, g - direction)
    assert len(memory) == (1 if scale in (1e-50, 1e50) else 2)
    out = np.zeros(3)
    assert memory.descend(g, out=out) < 0
    assert np.isfinite(out).all()
    again = remembered(memory, [(direction, direction), (direction + 1, direction + 1)], g)
    assert len(memory) == 2
    assert again @ g < 0
