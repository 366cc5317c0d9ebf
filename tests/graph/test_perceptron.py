"""The perceptron with approximate decoding: what it does, and above all what it does not do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_tasks import GraphTask, random_tasks

from spacy_hocrf.graph.perceptron import GraphPerceptron


def trained(tasks, epochs, start=None, **settings):
    start = np.zeros(tasks[0].n_features) if start is None else start
    perceptron = GraphPerceptron(tasks, start, **settings)
    return perceptron, [perceptron.epoch() for _ in range(epochs)]


@pytest.mark.parametrize("seed", range(4))
def test_separable_data_are_separated(seed):
    tasks = random_tasks(seed, noise=0.0)
    perceptron, history = trained(tasks, 60)
    assert history[0] > 0 == history[-1]
    assert all(task.decode(perceptron.weights)[0] == task.gold for task in tasks)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_updates_and_average_are_those_of_a_plain_perceptron(seed, nonnegative):
    tasks = random_tasks(seed)
    n = tasks[0].n_features
    mask = np.arange(n) >= n - 3 if nonnegative else np.zeros(n, dtype=bool)
    start = np.abs(np.random.default_rng(seed).normal(size=n))
    weights, everything = start.copy(), []
    order = np.random.default_rng(7)
    for _ in range(5):
        for number in order.permutation(len(tasks)).tolist():
            task = tasks[number]
            found, _, _ = task.decode(weights)
            weights = weights + task.dense(task.gold) - task.dense(found)
            weights[mask] = np.maximum(weights[mask], 0.0)
            everything.append(weights)
    perceptron, _ = trained(tasks, 5, start, nonnegative=mask, seed=7)
    assert_allclose(perceptron.weights, weights, rtol=1e-12)
    assert_allclose(perceptron.average, np.mean(everything, axis=0), rtol=1e-12)
    assert (perceptron.weights[mask] >= 0).all()


def test_an_error_of_the_search_is_no_update():
    task = GraphTask([0, 1], (0, 0), [(0, 1)], 2, 2, blind=lambda y: y == (0, 0))
    start = np.zeros(task.n_features)
    # equal states: the right output has the highest score, but so has (1, 1), which is found
    start[-3] = 5.0
    perceptron, _ = trained([task], 1, start)
    assert (perceptron.weights != start).any()
    start[0] = 1.0  # now the right output alone
    perceptron, missed = trained([task], 1, start)
    assert missed == [1]
    assert_array_equal(perceptron.weights, start)
    assert_array_equal(perceptron.average, start)


def test_a_start_below_zero_is_lifted():
    [task] = random_tasks(0, n_tasks=1)
    perceptron = GraphPerceptron(
        [task], -np.ones(task.n_features), nonnegative=np.arange(task.n_features) == 2
    )
    assert perceptron.weights.tolist() == [-1.0, -1.0, 0.0, *[-1.0] * (task.n_features - 3)]


def test_a_seed_gives_an_order():
    results = [trained(random_tasks(6, noise=0.5), 3, seed=seed)[0].weights for seed in (0, 0, 1)]
    assert_array_equal(results[0], results[1])
    assert (results[0] != results[2]).any()


def test_a_mask_of_another_extent_is_an_error():
    with pytest.raises(ValueError, match=r"H107.*nonnegative"):
        GraphPerceptron(random_tasks(0), np.zeros(9), nonnegative=[True])
