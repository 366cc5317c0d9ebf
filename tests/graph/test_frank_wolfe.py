"""Max-margin weights against other optimisers on tasks that are enumerated, and what the bounds
promise.
"""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_tasks import GraphTask, random_tasks

from spacy_hocrf.graph.frank_wolfe import MAX_IDLE, Block, FrankWolfe
from spacy_hocrf.graph.learning import Comparison

TIGHT = 1e-7


def objective(tasks, weights, variance, mean):
    learnt = variance > 0
    penalty = 0.5 * float(((weights - mean)[learnt] ** 2 / variance[learnt]).sum())
    return penalty + sum(task.violation(weights) for task in tasks)


def by_scipy(tasks, variance, mean, least):
    """The quadratic programme in w and one slack for each task."""
    minimize = pytest.importorskip("scipy.optimize").minimize
    n = len(mean)
    rows, heights = [], []
    for i, task in enumerate(tasks):
        for y in task.outputs:
            slack = np.zeros(len(tasks))
            slack[i] = 1.0
            rows.append(np.concatenate([task.dense(task.gold) - task.dense(y), slack]))
            heights.append(task.loss(y))
    rows, heights = np.array(rows), np.array(heights)
    start = np.concatenate([mean, [task.violation(mean) for task in tasks]])
    result = minimize(
        lambda x: 0.5 * ((x[:n] - mean) ** 2 / variance).sum() + x[n:].sum(),
        start,
        jac=lambda x: np.concatenate([(x[:n] - mean) / variance, np.ones(len(tasks))]),
        constraints={"type": "ineq", "fun": lambda x: rows @ x - heights, "jac": lambda _: rows},
        bounds=[(low if np.isfinite(low) else None, None) for low in least]
        + [(0, None)] * len(tasks),
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert result.success, result.message
    return result.x[:n]


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_a_quadratic_programme(seed, sigma):
    tasks = random_tasks(seed, noise=0.4)
    n = tasks[0].n_features
    variance, mean = np.full(n, sigma**2), np.random.default_rng(seed).normal(size=n)
    learner = FrankWolfe(tasks, variance, mean=mean, tolerance=TIGHT)
    value = learner.learn(500)
    expected = by_scipy(tasks, variance, mean, np.full(n, -np.inf))
    assert learner.status == "converged: gap"
    assert value.value == pytest.approx(
        objective(tasks, learner.weights, variance, mean), rel=1e-10
    )
    assert value.value == pytest.approx(objective(tasks, expected, variance, mean), rel=3 * TIGHT)
    assert_allclose(learner.weights, expected, atol=3e-3 * sigma)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_with_weights_kept_at_zero_or_above_is_that_of_a_quadratic_programme(seed):
    tasks = random_tasks(seed, noise=0.7)
    n = tasks[0].n_features
    rng = np.random.default_rng(seed)
    variance, mean = rng.uniform(0.5, 2.0, n), np.abs(rng.normal(size=n)) * (rng.random(n) < 0.5)
    nonnegative = np.ones(n, dtype=bool)
    nonnegative[0] = False
    learner = FrankWolfe(tasks, variance, mean=mean, nonnegative=nonnegative, tolerance=TIGHT)
    value = learner.learn(1000)
    expected = by_scipy(tasks, variance, mean, np.where(nonnegative, 0.0, -np.inf))
    assert learner.status == "converged: gap"
    assert (learner.weights[nonnegative] >= 0).all()
    assert (learner.weights[nonnegative] == 0).any()  # else the test says nothing
    assert value.value == pytest.approx(objective(tasks, expected, variance, mean), rel=1e-5)
    assert_allclose(learner.weights, expected, atol=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize("slack", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_rises_and_stays_below_every_value(seed, slack):
    tasks = random_tasks(seed, noise=0.5, slack=slack)
    n = tasks[0].n_features
    variance, mean = np.full(n, 2.0), np.zeros(n)
    nonnegative = np.arange(n) >= n - 3
    learner = FrankWolfe(tasks, variance, nonnegative=nonnegative)
    bounds, values = [learner.bound], []
    for _ in range(30):
        learner.epoch()
        bounds.append(learner.bound)
        values.append(objective(tasks, learner.current, variance, mean))
        evaluated = learner.evaluate()
        assert (
            evaluated.lower
            <= objective(tasks, learner.weights, variance, mean) * (1 + 1e-12)
            <= evaluated.value * (1 + 2e-12)
        )
    assert all(b >= a - 1e-12 for a, b in pairwise(bounds))
    assert max(bounds) <= min(values) * (1 + 1e-12)
    assert bounds[0] == 0.0 and bounds[-1] > 0


def test_what_the_decoder_leaves_open_is_told_apart():
    tasks = random_tasks(0, noise=0.5, slack=0.25)
    learner = FrankWolfe(tasks, np.ones(tasks[0].n_features), tolerance=0.01)
    value = learner.learn(200)
    assert learner.status == "converged: up to the decoder's bounds"
    assert value.value - value.lower == pytest.approx(0.25 * len(tasks))
    assert value.gap > 0.01 > (value.lower - value.bound) / value.value


def test_outputs_that_the_search_misses_do_no_harm_to_the_bounds():
    tasks = random_tasks(3, n_tasks=8, noise=0.5, blind=lambda y: sum(y) % 2)
    n = tasks[0].n_features
    learner = FrankWolfe(tasks, np.ones(n))
    value = learner.learn(100)
    assert (
        value.lower
        <= objective(tasks, learner.weights, np.ones(n), np.zeros(n))
        <= value.value * (1 + 1e-12)
    )
    assert value.bound <= value.lower
    assert any(
        task.decode(learner.weights, 1.0)[1] < task.decode(learner.weights, 1.0)[2]
        for task in tasks
    )


def test_weights_of_variance_zero_are_fixed():
    tasks = random_tasks(4, n_tasks=10, noise=0.5)
    n = tasks[0].n_features
    variance, mean = np.ones(n), np.zeros(n)
    variance[[0, n - 1]], mean[[0, n - 1]] = 0.0, [-0.7, 1.0]
    learner = FrankWolfe(tasks, variance, mean=mean, tolerance=TIGHT)
    value = learner.learn(500)
    assert learner.weights[[0, n - 1]].tolist() == [-0.7, 1.0]
    assert learner.status == "converged: gap"
    assert value.value == pytest.approx(
        objective(tasks, learner.weights, variance, mean), rel=1e-10
    )
    # hardly a variance is nearly none
    stiff = by_scipy(tasks, np.maximum(variance, 1e-9), mean, np.full(n, -np.inf))
    assert_allclose(learner.weights, stiff, atol=5e-3)


def test_outputs_that_differ_in_fixed_features_only_are_no_trouble():
    tasks = [
        GraphTask([0], (0,), [], 1, 2, base=np.array([[0.0, base]])) for base in (-3.0, -0.5, 2.0)
    ]
    variance, mean = np.zeros(5), np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    learner = FrankWolfe(tasks, variance, mean=mean, tolerance=TIGHT)
    value = learner.learn(5)
    # 0, 1 - 0.5 and 1 + 2
    assert (learner.status, value.value, value.bound) == ("converged: gap", 3.5, 3.5)


def test_outputs_are_gone_through_again_without_decoding():
    tasks = random_tasks(1, n_tasks=10, noise=0.5)
    learner = FrankWolfe(tasks, np.ones(tasks[0].n_features), tolerance=0.001)
    learner.learn(100)
    assert learner.epochs <= 10
    assert sum(task.decoded for task in tasks) <= 2 * learner.epochs * len(tasks)


def test_without_a_task_the_prior_is_all():
    learner = FrankWolfe([], [1.0, 2.0], mean=[3.0, -1.0])
    assert learner.learn().value == 0.0
    assert_array_equal(learner.weights, [3.0, -1.0])


def test_learning_stops_after_so_many_epochs_and_goes_on():
    tasks = random_tasks(2, n_tasks=10, noise=0.5)
    learner = FrankWolfe(tasks, np.full(tasks[0].n_features, 25.0), tolerance=TIGHT)
    first = learner.learn(1)
    assert learner.status == "stopped after 1 epochs"
    assert learner.learn(1000).gap <= TIGHT < first.gap
    assert learner.status == "converged: gap"


def test_a_block_keeps_what_has_a_share_and_the_latest():
    block = Block()
    for i in range(MAX_IDLE + 20):
        block.keep(
            Comparison(np.array([i % 3, 5], dtype=np.int32), np.array([1.0, i]), float(i), 0.0, 0.0)
        )
        block.keep(
            Comparison(np.array([i % 3, 5], dtype=np.int32), np.array([1.0, i]), float(i), 0.0, 0.0)
        )
    assert len(block.losses) == MAX_IDLE + 21
    block.shares[[0, 3]] = 0.5
    block.drop()
    assert block.losses.tolist() == [0.0, 2.0, *range(20, MAX_IDLE + 20)]
    assert block.shares[:2].tolist() == [0.5, 0.5]
    assert_array_equal(block.differences[1], [0.0, 0.0, 1.0, 2.0])
    assert_array_equal(block.features, [0, 1, 2, 5])


@pytest.mark.parametrize(
    "settings, name",
    [
        ({"variance": -np.ones(9)}, "variance"),
        ({"variance": np.full(9, np.inf)}, "variance"),
        ({"mean": np.zeros(3)}, "mean"),
        ({"mean": -np.ones(9), "nonnegative": np.ones(9, dtype=bool)}, "mean"),
        ({"nonnegative": [True]}, "nonnegative"),
        ({"tolerance": 0.0}, "tolerance"),
    ],
)
def test_settings_out_of_range_are_errors(settings, name):
    with pytest.raises(ValueError, match=f"H107.*{name}"):
        FrankWolfe(random_tasks(0), **{"variance": np.ones(9), **settings})
