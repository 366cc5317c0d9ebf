"""OWL-QN: the optimum has the conditions of a minimum, and is that of another method; every accepted
point is lower.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from smooth_functions import linear_chain_crf, log_barrier, logistic_regression

from spacy_hocrf.engine.lbfgs import LBFGS
from spacy_hocrf.engine.owlqn import OWLQN, pseudo_gradient


def minimise(objective, x0, absolute, most=5000, **settings):
    """Run to the end; the optimiser, and the accepted points."""
    optimiser, accepted = OWLQN(x0, absolute, **settings), []
    while optimiser.status == "running" and optimiser.evaluations < most:
        x = optimiser.x.copy()
        if optimiser.tell(*objective(x)):
            accepted.append(x)
    return optimiser, accepted


def proximal(objective, x0, absolute, steps=6_000, step=0.01):
    """The minimum by small steps of proximal gradient descent, with momentum (FISTA)."""
    x = before = np.array(x0, dtype=np.float64)
    for k in range(steps):
        ahead = x + k / (k + 3) * (x - before)
        moved = ahead - step * objective(ahead)[1]
        before, x = x, np.sign(moved) * np.maximum(np.abs(moved) - step * absolute, 0.0)
    return x


PROBLEMS = {
    "logistic": (logistic_regression(1, sigma=1e6)[0], 30),
    "logistic, with a Gaussian prior": (logistic_regression(2, sigma=3.0)[0], 30),
    "crf": (linear_chain_crf(1, n=20, words=10)[0], 39),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("absolute", [1.5, 3.0])
def test_the_minimum_is_that_of_proximal_gradient_descent(name, absolute):
    objective, size = PROBLEMS[name]
    settings = {"gradient_tolerance": 1e-8, "improvement_tolerance": 0.0}
    optimiser, _ = minimise(objective, np.zeros(size), absolute, **settings)
    assert optimiser.status == "converged: gradient"
    expected = proximal(objective, np.zeros(size), absolute)
    assert_allclose(optimiser.best_x, expected, atol=1e-5)
    assert ((optimiser.best_x == 0) == (expected == 0)).all()
    assert 0 < (expected == 0).sum() < size
    value = objective(expected)[0] + absolute * np.abs(expected).sum()
    assert optimiser.best_f == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_variable_has_the_conditions_of_a_minimum(name):
    objective, size = PROBLEMS[name]
    absolute = np.random.default_rng(0).uniform(0.0, 4.0, size)
    optimiser, _ = minimise(objective, np.ones(size), absolute, gradient_tolerance=1e-7)
    x, g = optimiser.best_x, objective(optimiser.best_x)[1]
    assert_allclose(optimiser.best_g, g)
    near = 1e-5 * max(1.0, np.linalg.norm(x))
    assert_allclose((g + np.sign(x) * absolute)[x != 0], 0.0, atol=near)
    assert (np.abs(g) <= absolute + near)[x == 0].all()
    assert (x == 0).any()


@pytest.mark.parametrize("memory", [1, 3, 10])
def test_accepted_points_go_down_and_stay_in_an_orthant(memory):
    objective, size = PROBLEMS["crf"]
    optimiser, points = minimise(objective, np.zeros(size), 0.5, memory=memory)
    values = [objective(x)[0] + 0.5 * np.abs(x).sum() for x in points]
    assert len(points) == optimiser.iterations + 1 > 10
    assert all(b <= a for a, b in pairwise(values))
    assert optimiser.best_f == pytest.approx(values[-1])
    for before, after in pairwise(points):
        assert (before * after >= 0).all()
        down = -pseudo_gradient(before, objective(before)[1], 0.5)
        assert (after * down >= 0)[before == 0].all()


def test_without_absolute_values_it_finds_the_minimum_of_lbfgs():
    objective, size = PROBLEMS["crf"]
    optimiser, _ = minimise(
        objective, np.zeros(size), 0.0, gradient_tolerance=1e-7, improvement_tolerance=0.0
    )
    other = LBFGS(np.zeros(size), gradient_tolerance=1e-7, improvement_tolerance=0.0)
    while other.status == "running":
        other.tell(*objective(other.x))
    assert optimiser.best_f == pytest.approx(other.best_f, rel=1e-12)
    assert_allclose(optimiser.best_x, other.best_x, atol=1e-6)


def test_where_it_costs_more_than_it_gains_everything_is_zero():
    objective, size = PROBLEMS["logistic"]
    steepest = np.abs(objective(np.zeros(size))[1]).max()
    optimiser, _ = minimise(objective, np.zeros(size), 1.001 * steepest)
    assert (optimiser.status, optimiser.evaluations) == ("converged: gradient", 1)
    optimiser, _ = minimise(objective, np.ones(size), 1.001 * steepest)
    assert not optimiser.best_x.any()


def test_it_backs_off_from_where_the_function_is_not_finite():
    optimiser, _ = minimise(log_barrier, np.full(7, 0.999), 1.0, gradient_tolerance=1e-8)
    # 3x - log x - log(1 - x) + x is least at x = (6 - 2 √5) / 8 …: 4 x² - 6 x + 1 = 0
    assert_allclose(optimiser.best_x, (3 - math.sqrt(5)) / 4, rtol=1e-6)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_start_that_is_not_finite_is_told(value):
    optimiser = OWLQN(np.zeros(2), 1.0)
    assert not optimiser.tell(value, np.zeros(2))
    assert optimiser.status.startswith("failed")
    optimiser = OWLQN(np.zeros(2), 1.0)
    optimiser.tell(1.0, np.array([1.0, value]))
    assert optimiser.status.startswith("failed")


def test_a_gradient_that_is_wrong_ends_the_search():
    optimiser = OWLQN(np.full(3, 5.0), 0.1, max_line_search=8)
    while optimiser.status == "running":
        optimiser.tell(float(optimiser.x @ optimiser.x), -2 * optimiser.x)
        assert optimiser.evaluations < 100
    assert optimiser.status == "stopped: line search"
    assert (optimiser.x == optimiser.best_x).all()


def test_it_ends_when_little_is_gained():
    objective, size = PROBLEMS["logistic"]
    full, _ = minimise(objective, np.zeros(size), 0.3, improvement_tolerance=0.0)
    rough, _ = minimise(
        objective, np.zeros(size), 0.3, improvement_tolerance=1e-3, improvement_period=2
    )
    assert rough.status == "converged: improvement"
    assert full.iterations > rough.iterations


def test_the_pseudo_gradient_is_the_steepest_slope():
    """Its opposite descends, and by its square; no other direction does so more."""
    objective, size = PROBLEMS["crf"]
    rng = np.random.default_rng(3)
    x = rng.normal(size=size) * (rng.random(size) < 0.5)
    absolute = rng.uniform(0, 3, size)

    def value(x):
        return objective(x)[0] + float(absolute @ np.abs(x))

    def slope(direction):
        return (value(x + 1e-7 * direction) - value(x)) / 1e-7

    gradient = pseudo_gradient(x, objective(x)[1], absolute)
    length = np.linalg.norm(gradient)
    assert slope(-gradient / length) == pytest.approx(-length, rel=1e-4)
    for other in rng.normal(size=(20, size)):
        assert slope(other / np.linalg.norm(other)) > -length


def test_a_search_begins_with_twice_the_last_step_at_most():
    objective, size = PROBLEMS["logistic, with a Gaussian prior"]
    optimiser = OWLQN(np.zeros(size), 0.3)
    steps = []  # the first and the last step of each search, and whether it had pairs
    while optimiser.status == "running" and optimiser.iterations < 200:
        first, had_pairs, accepted = optimiser.step, len(optimiser._pairs) > 0, False
        while not accepted and optimiser.status == "running":
            last = optimiser.step
            accepted = optimiser.tell(*objective(optimiser.x))
        steps.append((first, last, had_pairs))
    steps = [each for each in steps if each[2]]
    assert any(last < first for first, last, _ in steps)
    for (_, last, _), (first, *_) in pairwise(steps):
        assert first == min(1.0, 2.0 * last)


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_variable_moves_uphill(name):
    objective, size = PROBLEMS[name]
    optimiser = OWLQN(np.zeros(size), 1.0)
    while optimiser.status == "running":
        optimiser.tell(*objective(optimiser.x))
        pseudo = pseudo_gradient(optimiser.best_x, optimiser.best_g, 1.0)
        assert ((optimiser.x - optimiser.best_x) * pseudo <= 0).all()
        assert (optimiser.x == 0)[(optimiser.best_x == 0) & (pseudo == 0)].all()
