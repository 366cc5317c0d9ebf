"""Maximum likelihood of labelled sequences by stochastic gradient descent: CRFsuite's `l2sgd`."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.stochastic import Calibration, StochasticGradient
from spacy_hocrf.sequences.dataset import Labelled
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.features import Features
from spacy_hocrf.sequences.learning import Progress, laid_out

__all__ = ["StochasticSettings", "learn_stochastic"]


@dataclass(frozen=True)
class StochasticSettings:
    """Under the names that CRFsuite has for them.

    c2 (float): above 0, coefficient of the squares of the weights.
    max_iterations (int): times that it goes through all sequences.
    delta, period: it ends when the loss has fallen by less than the part delta of itself in `period` epochs;
        never with a period of 0.
    eta, rate, samples, candidates, max_trials: as in `Calibration`.
    """

    c2: float = 1.0
    max_iterations: int = 1000
    period: int = 10
    delta: float = 1e-6
    eta: float = 0.1
    rate: float = 2.0
    samples: float = 1000.0
    candidates: int = 10
    max_trials: int = 20

    @property
    def calibration(self) -> Calibration:
        """How the first learning rate is found."""
        return Calibration(self.eta, self.rate, self.samples, self.candidates, self.max_trials)


def learn_stochastic(
    data: Labelled,
    features: Features,
    settings: StochasticSettings,
    watch: Callable[[Progress], object] = lambda _: None,
    calibrated: Callable[[float], object] = lambda _: None,
) -> tuple[NDArray[np.float64], str]:
    """Weights of the features, float64 [F], those of the epoch with the lowest loss; and why it ended.

    watch (Callable): told about each epoch. calibrated (Callable): told the first learning rate.
    RAISES (ValueError): H308 if c2 is 0, H309 without a learning rate, H285 if the loss is not finite.
    """
    if not settings.c2:
        raise ValueError(SequenceErrors.H308)
    if not len(features):
        return np.zeros(0), "converged"
    learner = StochasticGradient(*laid_out(data, features), len(features), settings.c2)
    random = np.random.default_rng(0)
    eta = learner.calibrate(_shuffled(learner, random), settings.calibration)
    if np.isnan(eta):
        raise ValueError(SequenceErrors.H309.format(found=settings.eta))
    calibrated(eta)
    best, best_loss, losses = learner.weights.copy(), float("inf"), list[float]()
    status, began, period = "the maximum number of iterations", perf_counter(), settings.period
    for epoch in range(1, settings.max_iterations + 1):
        learner.epoch(_shuffled(learner, random))
        loss, improvement = learner.loss, float("nan")
        if not np.isfinite(loss):
            raise ValueError(
                SequenceErrors.H285.format(status=f"the loss of epoch {epoch} is {loss}")
            )
        if loss < best_loss:
            best, best_loss = learner.weights.copy(), loss
        if 0 < period <= len(losses):
            improvement = (losses[-period] - loss) / loss
        losses.append(loss)
        now, at = perf_counter(), learner.last_eta
        watch(
            Progress(
                epoch, loss, learner.weights, np.nan, learner.seen, now - began, at, improvement
            )
        )
        began = now
        if improvement < settings.delta:
            status = "the stopping criteria"
            break
    return best, status


def _shuffled(learner: StochasticGradient, random: np.random.Generator) -> list[int]:
    order: list[int] = random.permutation(len(learner)).tolist()
    return order
