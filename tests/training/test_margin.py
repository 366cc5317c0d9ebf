"""The max-margin trainer's settings, and how its run is paced."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from spacy.util import registry
from trainable import model
from word_corpus import AUTOMATON, PLAIN, F, random_texts

from spacy_hocrf.engine.margin import MarginObjective
from spacy_hocrf.training.margin import MaxMarginRun, MaxMarginTrainer


def objective():
    shards = [random_texts(np.random.default_rng(0), 5, known=True)]
    return MarginObjective(shards, PLAIN, AUTOMATON, np.full(F, 1.0), np.zeros(F))


def test_the_trainer_is_registered_with_the_prior_of_the_others():
    trainer = registry.misc.get("spacy-hocrf.MaxMargin.v1")(sigma=[1.0, 2.0], adapt_sigma=0.5)
    assert not trainer.batchwise and trainer.complete_only and not trainer.probabilistic
    assert_allclose(trainer.precision(model([0, 1, 2])), [1.0, 0.25, 0.25])
    adapting, beginning = (model([0, 1, 2], corpus=n, loaded=100) for n in (49, 50))
    assert trainer.adapts(adapting) and not trainer.adapts(beginning)
    assert_allclose(trainer.precision(adapting), [4.0] * 3)
    assert_allclose(trainer.mean(adapting), [0.5] * 3)
    assert_allclose(trainer.mean(beginning), [0.0] * 3)


@pytest.mark.parametrize(
    "arguments, parts",
    [
        ({"prior": "nil"}, ["H047", "'nil'"]),
        ({"sigma": 0.0}, ["H048", "sigma is", "above 0"]),
        ({"sigma": 1e300}, ["H048", "sigma is", "1e+09"]),
        ({"sigma": [1.0, float("inf")]}, ["H048", "sigma is inf", "finite"]),
        ({"adapt_sigma": float("inf")}, ["H048", "adapt_sigma is inf", "finite"]),
        ({"iterations": 0}, ["H048", "iterations is 0", "at least 1"]),
        ({"threads": -1}, ["H048", "threads is -1", "at least 0"]),
        ({"tolerance": -0.1}, ["H048", "tolerance is -0.1", "at least 0"]),
        ({"tolerance": 1.0}, ["H048", "tolerance is 1.0", "below 1"]),
    ],
)
def test_a_bad_setting_is_named_with_what_is_expected(arguments, parts):
    with pytest.raises(ValueError) as caught:
        MaxMarginTrainer(**arguments)
    for part in parts:
        assert part in str(caught.value)


def test_the_loss_is_known_before_the_first_step_at_the_price_of_one_plane():
    at = np.random.default_rng(1).normal(size=F)
    run = MaxMarginRun(MaxMarginTrainer(), objective(), at)
    assert run.loss == pytest.approx(objective()(at)[0])
    assert run.loss == run.loss
    assert run.evaluations == 1
    assert run.running
    assert run.weights.tolist() == at.tolist()


@pytest.mark.parametrize("iterations", [1, 3])
def test_a_step_is_so_many_planes(iterations):
    run = MaxMarginRun(MaxMarginTrainer(iterations=iterations), objective(), np.zeros(F))
    run.step()
    assert run.evaluations == 1 + iterations


def test_steps_close_the_gap_and_then_cost_nothing():
    run = MaxMarginRun(MaxMarginTrainer(tolerance=1e-4), objective(), np.zeros(F))
    losses = []
    while run.running:
        run.step()
        losses.append(run.loss)
    assert losses == sorted(losses, reverse=True)
    assert run.gap <= 1e-4
    assert run.bound <= run.loss <= run.bound / (1 - 1e-4) * (1 + 1e-12)
    assert objective()(run.weights)[0] == pytest.approx(run.loss)
    assert (
        run.status.startswith("converged: gap ")
        and f"after {run.evaluations} evaluations" in run.status
    )
    spent = run.evaluations
    run.step()
    assert run.evaluations == spent


def test_weights_that_are_not_finite_are_an_error():
    run = MaxMarginRun(MaxMarginTrainer(), objective(), np.zeros(F))
    run._objective.plane = lambda weights: (np.nan, np.zeros(F))
    with pytest.raises(ValueError, match="H046"):
        run.step()
