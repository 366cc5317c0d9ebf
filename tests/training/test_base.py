"""What the trainers have in common: priors, threads, and how bad settings are named."""

import math
import os

import numpy as np
import pytest
from numpy.testing import assert_allclose
from spacy.util import registry
from trainable import model

from spacy_hocrf.training.base import BaseTrainer, missing_members
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.training.sgd import SGDTrainer

ORDERS = np.array([0, 1, 2, 3, 0], dtype=np.int32)


SIGMAS = [
    (2.0, [0.25] * 5),
    (1, [1.0] * 5),
    ([2.0], [0.25] * 5),
    ([1.0, 2.0], [1.0, 0.25, 0.25, 0.25, 1.0]),
    ([1.0, 2.0, 0.5], [1.0, 0.25, 4.0, 4.0, 1.0]),
    ([1.0, 2.0, 0.5, 4.0, 9.0], [1.0, 0.25, 4.0, 0.0625, 1.0]),
    (float("inf"), [0.0] * 5),
]


@pytest.mark.parametrize("sigma, expected", SIGMAS)
def test_sigma_is_one_number_or_one_per_order(sigma, expected):
    trainer = LBFGSTrainer(sigma=sigma)
    assert_allclose(trainer.precision(model(ORDERS)), expected)
    assert trainer.precision(model(ORDERS[:0])).shape == (0,)


@pytest.mark.parametrize("sigma, expected", SIGMAS)
def test_the_penalty_of_batches_has_the_same_sigma(sigma, expected):
    value, gradient = SGDTrainer(sigma=sigma).penalty(model(ORDERS))  # all weights are 2
    assert_allclose(gradient, 2.0 * np.array(expected))
    assert value == pytest.approx(2.0 * sum(expected))


def test_equal_settings_are_equal_however_sigma_is_written():
    assert LBFGSTrainer(sigma=[1.0]) == LBFGSTrainer(sigma=1) != LBFGSTrainer()
    assert hash(LBFGSTrainer(sigma=[1.0, 2.0])) == hash(LBFGSTrainer(sigma=(1.0, 2.0)))


def test_adapting_has_a_sigma_of_its_own():
    adapting = model(ORDERS, loaded=True)
    assert_allclose(LBFGSTrainer(sigma=[1.0, 3.0], adapt_sigma=0.5).precision(adapting), [4.0] * 5)
    some = model(ORDERS, loaded=True, new=(1, 4))
    expected = [4.0, 1 / 9, 4.0, 4.0, 1.0]
    assert_allclose(LBFGSTrainer(sigma=[1.0, 3.0], adapt_sigma=0.5).precision(some), expected)
    assert_allclose(LBFGSTrainer().mean(adapting), [0.5] * 5)
    assert not SGDTrainer().adapts(adapting)


@pytest.mark.parametrize(
    "prior, loaded, centred",
    [("loaded", True, True), ("loaded", False, False), ("zero", True, False)],
)
def test_a_loaded_model_is_adapted_unless_the_prior_is_zero(prior, loaded, centred):
    trainer, learner = LBFGSTrainer(prior=prior), model(ORDERS, loaded=loaded)
    assert trainer.adapts(learner) is centred
    assert trainer.mean(learner).tolist() == [0.5 * centred] * 5


def test_threads_are_those_of_the_machine_unless_they_are_set():
    assert LBFGSTrainer(threads=3).n_threads == 3
    assert LBFGSTrainer().n_threads == os.cpu_count()
    assert LBFGSTrainer(threads=1000).n_threads == 1000


def test_what_lacks_members_of_the_protocol_is_no_trainer():
    assert missing_members(LBFGSTrainer()) == missing_members(BaseTrainer()) == []
    asked = ["adapts", "batchwise", "begin", "choices", "exact", "objective", "penalty", "quick"]
    assert missing_members(None) == [*asked, "with_sigma"]


def test_a_sigma_is_chosen_where_it_is_auto_and_by_trainers_that_have_one():
    auto, fixed = LBFGSTrainer(sigma="auto"), LBFGSTrainer(sigma=3.0)
    assert len(auto.choices) > 1 and fixed.choices == BaseTrainer().choices == ()
    assert auto.with_sigma(2.0) == LBFGSTrainer(sigma=2.0) and auto.with_sigma(None) is auto
    assert fixed.with_sigma(2.0) is fixed
    own = BaseTrainer()
    assert own.with_sigma(2.0) is own and own.quick() is None


def test_a_trainer_that_says_nothing_begins_nothing_and_minimises_nothing():
    trainer, learner = BaseTrainer(), model(ORDERS, loaded=100)
    with pytest.raises(ValueError, match=r"H115.*BaseTrainer"):
        trainer.begin(learner)
    with pytest.raises(ValueError, match=r"H081.*BaseTrainer"):
        trainer.objective(learner)
    value, gradient = trainer.penalty(learner)
    assert value == 0 and gradient.tolist() == [0] * 5
    assert not (trainer.adapts(learner) or trainer.batchwise or trainer.exact)


@pytest.mark.parametrize(
    "name, batchwise", [("spacy-hocrf.LBFGS.v1", False), ("spacy-hocrf.SGD.v1", True)]
)
def test_trainers_are_registered(name, batchwise):
    assert registry.misc.get(name)().batchwise is batchwise


def test_below_0_no_improvement_is_too_small():
    assert LBFGSTrainer(improvement_tolerance=-1.0).convergence["improvement_tolerance"] == -1.0


@pytest.mark.parametrize(
    "arguments, parts",
    [
        ({"prior": "nil"}, ["H047", "'nil'", "loaded, zero"]),
        *(
            ({"sigma": sigma}, ["H048", "sigma is", "above 0"])
            for sigma in (
                *(0.0, -1.0, float("nan"), [], [1.0, 0.0], 1e300, 1e-300, [1.0, 1e10], True),
                *(10**400, None, [None], ["1"], [[1.0]], [True]),
            )
        ),
        ({"iterations": 0}, ["H048", "iterations is 0", "at least 1"]),
        ({"memory": 0}, ["H048", "memory is 0", "at least 1"]),
        ({"memory": 10**9}, ["H048", "memory is 1000000000", "at most 1000"]),
        ({"adapt_sigma": 1e300}, ["H048", "adapt_sigma is 1e+300", "1e+09"]),
        ({"adapt_sigma": [1.0]}, ["H048", "adapt_sigma is [1.0]", "above 0"]),
        ({"adapt_sigma": "auto"}, ["H048", "adapt_sigma is auto", "above 0"]),
        ({"gradient_tolerance": 10**400}, ["H048", "gradient_tolerance is 1000", "finite"]),
        *(
            ({"threads": threads}, ["H048", "threads is", "a whole number"])
            for threads in ("3", 2.5, True, None)
        ),
        ({"threads": -1}, ["H048", "threads is -1", "at least 0"]),
        ({"adapt_sigma": 0.0}, ["H048", "adapt_sigma is 0.0", "above 0"]),
        ({"improvement_tolerance": "1e-4"}, ["H048", "improvement_tolerance is '1e-4'"]),
        ({"improvement_tolerance": math.nan}, ["H048", "improvement_tolerance is nan", "finite"]),
        ({"gradient_tolerance": -1.0}, ["H048", "gradient_tolerance is -1.0", "at least 0"]),
        ({"improvement_period": 0}, ["H048", "improvement_period is 0", "at least 1"]),
    ],
)
def test_a_bad_setting_is_named_with_what_is_expected(arguments, parts):
    makers = [LBFGSTrainer, SGDTrainer] if "sigma" in arguments else [LBFGSTrainer]
    for make in makers:
        with pytest.raises(ValueError) as caught:
            make(**arguments)
        for part in parts:
            assert part in str(caught.value)
