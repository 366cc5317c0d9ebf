"""The registered trainers, and L-BFGS as they pace it."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose
from spacy.util import registry

from spacy_hocrf.engine.objective import STRANDS
from spacy_hocrf.training.trainers import FullBatchRun, make_lbfgs, make_sgd

ORDERS = np.array([0, 1, 2, 3, 0], dtype=np.int32)


@pytest.mark.parametrize("make", [make_lbfgs, make_sgd])
@pytest.mark.parametrize(
    "sigma, expected",
    [
        (2.0, [0.25] * 5),
        (1, [1.0] * 5),
        ([2.0], [0.25] * 5),
        ([1.0, 2.0], [1.0, 0.25, 0.25, 0.25, 1.0]),
        ([1.0, 2.0, 0.5], [1.0, 0.25, 4.0, 4.0, 1.0]),
        ([1.0, 2.0, 0.5, 4.0, 9.0], [1.0, 0.25, 4.0, 0.0625, 1.0]),
        (float("inf"), [0.0] * 5),
    ],
)
def test_sigma_is_one_number_or_one_per_order(make, sigma, expected):
    trainer = make(sigma=sigma)
    assert_allclose(trainer.precision(ORDERS), expected)
    assert trainer.precision(ORDERS[:0]).shape == (0,)


def test_adapting_has_a_sigma_of_its_own():
    assert_allclose(
        make_lbfgs(sigma=[1.0, 3.0], adapt_sigma=0.5).precision(ORDERS, adapting=True), [4.0] * 5
    )
    assert_allclose(
        make_sgd(sigma=[1.0, 2.0]).precision(ORDERS, adapting=True), [1.0, 0.25, 0.25, 0.25, 1.0]
    )


@pytest.mark.parametrize(
    "prior, documents, loaded, centred",
    [
        ("loaded", 100, 1, True),
        ("zero", 1, 100, False),
        ("auto", 49, 100, True),
        ("auto", 50, 100, False),
        ("auto", 200, 100, False),
    ],
)
def test_a_small_corpus_adapts_a_loaded_model(prior, documents, loaded, centred):
    assert make_lbfgs(prior=prior).centre_on_loaded(documents, loaded) is centred


def test_threads_are_those_of_the_machine_unless_they_are_set():
    assert make_lbfgs(threads=3).workers == 3
    assert make_lbfgs().workers == min(STRANDS, os.cpu_count())


@pytest.mark.parametrize(
    "name, batchwise", [("spacy-hocrf.LBFGS.v1", False), ("spacy-hocrf.SGD.v1", True)]
)
def test_trainers_are_registered(name, batchwise):
    assert registry.misc.get(name)().batchwise is batchwise


@pytest.mark.parametrize(
    "arguments, parts",
    [
        ({"prior": "nil"}, ["H047", "'nil'", "auto, zero, loaded"]),
        *(
            ({"sigma": sigma}, ["H048", "sigma is", "above 0"])
            for sigma in (0.0, -1.0, float("nan"), [], [1.0, 0.0])
        ),
        ({"iterations": 0}, ["H048", "iterations is 0", "at least 1"]),
        ({"memory": 0}, ["H048", "memory is 0", "at least 1"]),
        ({"threads": -1}, ["H048", "threads is -1", "at least 0"]),
        ({"adapt_sigma": 0.0}, ["H048", "adapt_sigma is 0.0", "above 0"]),
        ({"improvement_period": 0}, ["H048", "improvement_period is 0", "at least 1"]),
    ],
)
def test_a_bad_setting_is_named_with_what_is_expected(arguments, parts):
    makers = [make_lbfgs, make_sgd] if "sigma" in arguments else [make_lbfgs]
    for make in makers:
        with pytest.raises(ValueError) as caught:
            make(**arguments)
        for part in parts:
            assert part in str(caught.value)


class Quadratic:
    """½ (w - 1)' diag(1, 2, 4) (w - 1) + 3, counting its evaluations."""

    def __init__(self):
        self.evaluations = 0

    def __call__(self, weights):
        self.evaluations += 1
        gradient = np.array([1.0, 2.0, 4.0]) * (weights - 1.0)
        return 3.0 + 0.5 * float(gradient @ (weights - 1.0)), gradient


def test_the_loss_is_known_before_the_first_step_at_the_price_of_one_evaluation():
    objective = Quadratic()
    run = FullBatchRun(make_lbfgs(), objective, np.zeros(3))
    assert run.loss == 6.5
    assert run.loss == 6.5
    assert objective.evaluations == 1
    assert run.running
    assert run.iterations == 0
    assert run.weights.tolist() == [0, 0, 0]


@pytest.mark.parametrize("iterations", [1, 2])
def test_a_step_is_so_many_iterations(iterations):
    objective = Quadratic()
    run = FullBatchRun(make_lbfgs(iterations=iterations), objective, np.zeros(3))
    run.step()
    assert run.iterations == iterations
    assert run.loss < 6.5
    assert run.evaluations == objective.evaluations


def test_steps_converge_and_then_cost_nothing():
    objective = Quadratic()
    run = FullBatchRun(
        make_lbfgs(gradient_tolerance=1e-9, improvement_tolerance=0.0), objective, np.zeros(3)
    )
    losses = []
    while run.running:
        run.step()
        losses.append(run.loss)
    assert_allclose(run.weights, np.ones(3), rtol=1e-7)
    assert_allclose(run.loss, 3.0, rtol=1e-12)
    assert losses == sorted(losses, reverse=True)
    assert f"after {run.iterations} iterations ({objective.evaluations} evaluations)" in run.status
    spent = objective.evaluations
    run.step()
    assert objective.evaluations == spent


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_start_that_is_not_finite_is_an_error(value):
    run = FullBatchRun(make_lbfgs(), lambda weights: (value, np.full(2, value)), np.zeros(2))
    with pytest.raises(ValueError, match=r"H046.*sigma"):
        run.step()
