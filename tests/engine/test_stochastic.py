"""Stochastic gradient descent against the same with dense vectors and gradients of an objective."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from word_corpus import AUTOMATON, PLAIN, F, random_texts

from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.engine.stochastic import Calibration, StochasticGradient

C2 = 0.3


def corpus(seed):
    """Shards of six texts, and the unpenalised objective of each text."""
    rng = np.random.default_rng(seed)
    shards = [random_texts(rng, 3, known=True) for _ in range(2)]
    for shard in shards:
        shard.bits = None
    zeros = np.zeros(F)
    texts = [
        Objective([s.only(i)], PLAIN, AUTOMATON, zeros, zeros) for s in shards for i in range(3)
    ]
    return shards, texts


def epoch(texts, order, eta):
    """Weights after an epoch from 0 on, and its loss."""
    precision, weights, loss = 2 * C2 / len(order), np.zeros(F), 0.0
    before = 1 / (precision * eta)
    for t, number in enumerate(order):
        step = 1 / (precision * (before + t))
        weights = (1 - step * precision) * weights
        found, gradient = texts[number](weights)
        loss += found
        weights = weights - step * gradient
    return weights, loss + 0.5 * precision * len(order) * weights @ weights


@pytest.mark.parametrize("seed", range(3))
def test_an_epoch_is_that_of_dense_vectors(seed):
    shards, texts = corpus(seed)
    learner = StochasticGradient(shards, PLAIN, AUTOMATON, F, C2)
    eta = learner.calibrate(range(6), Calibration(max_trials=2))
    assert eta == 0.1 and learner.eta == pytest.approx(0.1)
    weights, loss = epoch(texts, [3, 1, 5, 0, 2, 4], eta)
    assert learner.epoch([3, 1, 5, 0, 2, 4]) == 6 == learner.seen
    assert_allclose(learner.weights, weights, rtol=1e-9, atol=1e-9)
    assert learner.loss == pytest.approx(loss, rel=1e-9)
    assert learner.last_eta == pytest.approx(1 / (2 * C2 / 6 * (1 / (2 * C2 / 6 * 0.1) + 5)))


@pytest.mark.parametrize("seed", range(3))
def test_the_learning_rate_is_the_best_of_those_that_are_tried(seed):
    shards, texts = corpus(seed)
    learner = StochasticGradient(shards, PLAIN, AUTOMATON, F, C2)
    found = learner.calibrate(range(6), Calibration(samples=4))
    losses = [epoch(texts, range(4), 0.1 * 2.0**k)[1] for k in range(-9, 6)]
    assert epoch(texts, range(4), found)[1] <= min(losses) + 1e-9


def test_learning_rates_that_leave_nothing_of_the_weights_are_worse():
    shards, _ = corpus(0)
    learner = StochasticGradient(shards, PLAIN, AUTOMATON, F, C2)
    assert np.isnan(learner.calibrate(range(6), Calibration(eta=1000.0, max_trials=6)))
    assert learner.calibrate(range(6), Calibration(eta=1000.0)) < 10.0  # 1 / lambda


def test_it_comes_near_the_minimum():
    shards, texts = corpus(1)
    learner = StochasticGradient(shards, PLAIN, AUTOMATON, F, C2)
    learner.calibrate(range(6), Calibration())
    for _ in range(200):
        learner.epoch(range(6))
    gradient = 2 * C2 * learner.weights + sum(text(learner.weights)[1].copy() for text in texts)
    assert np.linalg.norm(gradient) < 0.1
