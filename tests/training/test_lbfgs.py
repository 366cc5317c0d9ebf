"""L-BFGS as its trainer paces it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spacy_hocrf.training.lbfgs import LBFGSRun, LBFGSTrainer


class Quadratic:
    """½ (w - 1)' diag(curvature) (w - 1) + 3, counting its evaluations."""

    def __init__(self, curvature=(1.0, 2.0, 4.0)):
        self.curvature = np.array(curvature)
        self.evaluations = 0

    def __call__(self, weights):
        self.evaluations += 1
        gradient = self.curvature * (weights - 1.0)
        return 3.0 + 0.5 * float(gradient @ (weights - 1.0)), gradient


def test_the_loss_is_known_before_the_first_step_at_the_price_of_one_evaluation():
    objective = Quadratic()
    run = LBFGSRun(LBFGSTrainer(), objective, np.zeros(3))
    assert run.loss == 6.5
    assert run.loss == 6.5
    assert objective.evaluations == 1
    assert run.running
    assert run.iterations == 0
    assert run.weights.tolist() == [0, 0, 0]


@pytest.mark.parametrize("iterations", [1, 2])
def test_a_step_is_so_many_iterations(iterations):
    objective = Quadratic()
    run = LBFGSRun(LBFGSTrainer(iterations=iterations), objective, np.zeros(3))
    run.step()
    assert run.iterations == iterations
    assert run.loss < 6.5
    assert run.evaluations == objective.evaluations


def test_steps_converge_and_then_cost_nothing():
    objective = Quadratic()
    run = LBFGSRun(
        LBFGSTrainer(gradient_tolerance=1e-9, improvement_tolerance=0.0), objective, np.zeros(3)
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
    objective = Quadratic([value] * 3)
    run = LBFGSRun(LBFGSTrainer(), objective, np.zeros(3))
    with pytest.raises(ValueError, match=r"H046.*sigma"):
        run.step()


def test_runs_that_are_only_compared_are_not_told_the_curvature():
    """What is chosen by them does not depend on how fast they come down."""
    settings = {"gradient_tolerance": 1e-9, "improvement_tolerance": 1e-4}
    told, quick = (
        LBFGSRun(each, Quadratic(), np.zeros(3))
        for each in (LBFGSTrainer(**settings), LBFGSTrainer(**settings).quick())
    )
    told.step()
    quick.step()
    downhill = np.array([1.0, 2.0, 4.0])
    for run, direction in ((quick, downhill), (told, downhill / np.cbrt(downhill))):
        length = np.linalg.norm(run.weights)
        assert_allclose(run.weights / length, direction / np.linalg.norm(direction), rtol=1e-12)
