"""Stochastic gradient descent against the same with dense vectors and gradients of an objective, of which
each sequence has its own.
"""

import numpy as np
import pytest
from labelled_sequences import dataset, draw
from numpy.testing import assert_allclose

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.sequences.dataset import sequences_at
from spacy_hocrf.sequences.features import FeatureSettings, features_of
from spacy_hocrf.sequences.learning import laid_out
from spacy_hocrf.sequences.steps import Steps
from spacy_hocrf.sequences.stochastic import Calibration, StochasticGradient

C2 = 0.3
ORDER = [3, 1, 5, 0, 2, 4]
SETTINGS = [
    FeatureSettings(order=0),
    FeatureSettings(),
    FeatureSettings(all_states=True, all_transitions=True),
    FeatureSettings(order=2),
    FeatureSettings(order=3),
]


def corpus(seed, settings, n=6, values=True, longest=7):
    """Labelled sequences, one of them empty, their features, and the unpenalised objective of each that is
    not, the short ones first.
    """
    items, names = draw(seed, 20 * n, longest, values=values)
    chosen = [i for i, x in enumerate(items) if x][:n]
    data = dataset([[], *(items[i] for i in chosen)], [[], *(names[i] for i in chosen)])
    labelled = data.take(-1)
    features = features_of(labelled, data.attributes, len(data.labels), settings)
    lengths = np.diff(labelled.items.offsets)
    zeros = np.zeros(len(features))
    objectives = [
        Objective(*laid_out(sequences_at(labelled, np.array([i])), features), zeros, zeros)
        for i in np.argsort(lengths, kind="stable")[1:]
    ]
    return labelled, features, objectives


def epoch(objectives, order, eta, weights):
    """Weights after an epoch, and its loss without the penalty; and the penalty."""
    precision, loss = 2 * C2 / len(order), 0.0
    before = 1 / (precision * eta)
    for t, number in enumerate(order):
        step = 1 / (precision * (before + t))
        weights = (1 - step * precision) * weights
        found, gradient = objectives[number](weights)
        loss += found
        weights = weights - step * gradient
    return weights, loss, 0.5 * precision * len(order) * weights @ weights


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("values", [True, False])
def test_an_epoch_is_that_of_dense_vectors(seed, settings, values):
    data, features, objectives = corpus(seed, settings, values=values)
    learner = StochasticGradient(data, features, C2)
    eta = learner.calibrate(range(6), Calibration(max_trials=2))
    assert eta == 0.1 and learner.eta == pytest.approx(0.1) and len(learner) == 6
    weights, loss, penalty = epoch(objectives, ORDER, eta, np.zeros(len(features)))
    learner.epoch(ORDER)
    assert learner.seen == 6
    assert_allclose(learner.weights, weights, rtol=1e-9, atol=1e-9)
    assert learner.loss == pytest.approx(loss + penalty, rel=1e-9)
    assert learner.last_eta == pytest.approx(1 / (2 * C2 / 6 * (1 / (2 * C2 / 6 * 0.1) + 5)))


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("size", [1.0, 30.0, 300.0, 3000.0])
def test_steps_from_weights_of_any_size(settings, size):
    data, features, objectives = corpus(7, settings, longest=40)
    start = np.random.default_rng(0).normal(size=len(features)) * size
    precision = 2 * C2 / 6
    weights, loss, _ = epoch(objectives, ORDER, 0.01, start)
    automaton = compile_automaton(
        [*((y,) for y in range(3)), *features.patterns], [1] * features.n_labels
    )
    found = start.copy()
    numbers = np.argsort(np.diff(data.items.offsets), kind="stable")[1:][ORDER]
    steps = Steps(data.items, data.label, features, automaton)
    assert steps.take(numbers, found, precision, 1 / (precision * 0.01)) == pytest.approx(loss)
    assert_allclose(found, weights, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bad", [np.inf, np.nan, 1e308])
@pytest.mark.parametrize("at", [0, -1])
def test_weights_that_are_not_finite_have_no_loss(bad, at):
    data, features, _ = corpus(0, SETTINGS[2])
    learner = StochasticGradient(data, features, C2)
    learner.calibrate(range(6), Calibration(max_trials=2))
    learner.weights[at] = bad
    learner.weights[0 if at else -1] = -bad
    learner.epoch(ORDER)
    assert np.isnan(learner.loss)


@pytest.mark.parametrize("seed", range(3))
def test_the_learning_rate_is_the_best_of_those_that_are_tried(seed):
    data, features, objectives = corpus(seed, SETTINGS[1])
    learner = StochasticGradient(data, features, C2)
    found = learner.calibrate(range(6), Calibration(samples=4))

    def loss(eta):
        return sum(epoch(objectives, range(4), eta, np.zeros(len(features)))[1:])

    assert loss(found) <= min(loss(0.1 * 2.0**k) for k in range(-9, 6)) + 1e-9


def test_learning_rates_that_leave_nothing_of_the_weights_are_worse():
    data, features, _ = corpus(0, SETTINGS[1])
    learner = StochasticGradient(data, features, C2)
    assert np.isnan(learner.calibrate(range(6), Calibration(eta=1000.0, max_trials=6)))
    assert learner.calibrate(range(6), Calibration(eta=1000.0)) < 10.0  # 1 / lambda


@pytest.mark.parametrize("settings", SETTINGS)
def test_it_comes_near_the_minimum(settings):
    data, features, objectives = corpus(1, settings)
    learner = StochasticGradient(data, features, C2)
    learner.calibrate(range(6), Calibration())
    for _ in range(500):
        learner.epoch(range(6))
    gradient = 2 * C2 * learner.weights
    gradient = gradient + sum(each(learner.weights)[1].copy() for each in objectives)
    assert np.linalg.norm(gradient) < 0.1


def test_a_repeated_attribute_counts_each_time():
    data = dataset([[["a", "a"], ["b"]]], [["X", "Y"]])
    labelled = data.take(-1)
    features = features_of(labelled, data.attributes, 2, FeatureSettings())
    zeros = np.zeros(len(features))
    objective = Objective(*laid_out(labelled, features), zeros, zeros)
    learner = StochasticGradient(labelled, features, C2)
    learner.calibrate([0], Calibration(max_trials=2))
    learner.epoch([0])
    weights, loss, penalty = epoch([objective], [0], 0.1, zeros)
    assert_allclose(learner.weights, weights, rtol=1e-9)
    assert learner.loss == pytest.approx(loss + penalty)
