"""The averaged perceptron's settings, and how its run is paced."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from spacy.util import registry
from word_corpus import AUTOMATON, PLAIN, F, random_texts

from spacy_hocrf.engine.perceptron import AveragedPerceptron
from spacy_hocrf.training.perceptron import AveragedPerceptronTrainer, PerceptronRun


def perceptron():
    return AveragedPerceptron(
        [random_texts(np.random.default_rng(0), 6, known=True)], PLAIN, AUTOMATON, np.zeros(F)
    )


def test_the_trainer_is_registered():
    trainer = registry.misc.get("spacy-hocrf.AveragedPerceptron.v1")()
    assert not trainer.batchwise and trainer.complete_only and not trainer.probabilistic


@pytest.mark.parametrize(
    "arguments, parts",
    [
        ({"epochs": 0}, ["H048", "epochs is 0", "at least 1"]),
        ({"seed": -1}, ["H048", "seed is -1", "at least 0"]),
    ],
)
def test_a_bad_setting_is_named_with_what_is_expected(arguments, parts):
    with pytest.raises(ValueError) as caught:
        AveragedPerceptronTrainer(**arguments)
    for part in parts:
        assert part in str(caught.value)


def test_a_step_is_an_epoch_and_after_the_last_there_are_none():
    run = PerceptronRun(AveragedPerceptronTrainer(epochs=3), perceptron())
    assert run.loss == perceptron().mistakes() > 0
    assert run.evaluations == 0
    assert_array_equal(run.weights, np.zeros(F))
    for epoch in (1, 2, 3):
        assert run.running
        run.step()
        assert run.evaluations == epoch
    assert not run.running
    weights = run.weights.copy()
    run.step()
    assert_array_equal(run.weights, weights)
    assert run.status == f"finished: {run.loss:.0f} of 6 documents wrong in the last of 3 epochs"


def test_the_order_of_an_epoch_is_random_and_the_seeds():
    orders = {}
    for seed in (0, 0, 1):
        learner = perceptron()
        seen = []
        learner.epoch = lambda order, seen=seen: seen.append(tuple(order)) or 1
        run = PerceptronRun(AveragedPerceptronTrainer(epochs=3, seed=seed), learner)
        for _ in range(3):
            run.step()
        assert len(set(seen)) == 3 and all(sorted(order) == list(range(6)) for order in seen)
        assert orders.setdefault(seed, seen) == seen
    assert orders[0] != orders[1]
