"""Maximum likelihood of labelled sequences by stochastic gradient descent, CRFsuite's `l2sgd` (the steps are
those of Shalev-Shwartz, Singer and Srebro, ICML 2007; how the first is found, of Bottou's programs).

    loss(w) = Σ_i [log Z_i(w) - w·f_i] + n lambda/2 |w|²,    lambda = 2 c2 / n
    w ← (1 - eta lambda) w + eta (f_i - E_i[f]),    eta = 1 / (lambda (t0 + t)),    t = 0, 1, …

f_i are the counts of the annotation of sequence i, and E_i their expectation; `steps.pyx` takes the steps.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.sequences.dataset import Labelled
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.features import Features
from spacy_hocrf.sequences.learning import Progress
from spacy_hocrf.sequences.steps import Steps

__all__ = ["Calibration", "StochasticGradient", "StochasticSettings", "learn_stochastic"]


@dataclass(frozen=True)
class Calibration:
    """How the first learning rate is found: that with which one epoch of some sequences ends best.

    eta (float): the first that is tried. rate (float): by what the next are larger, and then smaller.
    samples (float): so many sequences at most. candidates (int): so many that are larger, and as many
        that are smaller.
    max_trials (int): CRFsuite tries one less.
    """

    eta: float = 0.1
    rate: float = 2.0
    samples: float = 1000.0
    candidates: int = 10
    max_trials: int = 20


class StochasticGradient:
    """One step for each sequence, from weights of 0 on.

    data (Labelled): the sequences; empty ones are left out, and the others numbered by their lengths.
    features (Features): of attributes with single labels, and of label patterns.
    c2 (float): above 0, coefficient of the squares of the weights.

    weights (float64 [F]): those of the last step.
    seen (int): steps.
    loss (float): of the last epoch, of each sequence before its step, with the penalty after the last; nan
        where a learning rate has left nothing of the weights, or they are not finite.
    eta, last_eta (float): the learning rates of the next step, and of the last.
    """

    def __init__(self, data: Labelled, features: Features, c2: float) -> None:
        singles = [(y,) for y in range(features.n_labels)]
        automaton = compile_automaton([*singles, *features.patterns], [1] * len(singles))
        lengths = np.diff(data.items.offsets)
        order = np.argsort(lengths, kind="stable")
        self._sequences = order[lengths[order] > 0]
        self._start = lengths * math.log(max(1, len(singles)))  # losses at weights of 0
        self._steps = Steps(data.items, data.label, features, automaton)
        self._c2, self.loss, self.weights = c2, 0.0, np.zeros(len(features))
        self._restart(1.0, len(self))

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self._sequences)

    @property
    def eta(self) -> float:
        """1 / (lambda (t0 + t))."""
        return 1.0 / (self._precision * (self._before + self.seen))

    @property
    def last_eta(self) -> float:
        """That of the step before."""
        return 1.0 / (self._precision * (self._before + self.seen - 1))

    def calibrate(self, order: Sequence[int], settings: Calibration) -> float:
        """The best first learning rate, with which the training then begins, at weights of 0.

        order (Sequence[int]): numbers of all sequences; the first are tried.
        RETURNS (float): it; nan if all are too large.
        """
        some = order[: max(1, int(settings.samples))]
        worst = float(self._start[self._sequences[some]].sum())
        best, best_loss, eta = float("nan"), float("inf"), settings.eta
        left, growing = settings.candidates, True
        for trial in count(1):
            self._restart(eta, len(some))
            self.epoch(some)
            good = bool(np.isfinite(self.loss)) and self.loss < worst
            left -= good
            if np.isfinite(self.loss) and self.loss < best_loss:
                best, best_loss = eta, self.loss
            if growing and good and left > 0:
                eta *= settings.rate
            elif growing:
                growing, left, eta = False, settings.candidates, settings.eta / settings.rate
            else:
                eta /= settings.rate
            if trial + 1 >= settings.max_trials or (left <= 0 and not growing):
                break
        self._restart(settings.eta if np.isnan(best) else best, len(self))
        return best

    def epoch(self, order: ArrayLike) -> None:
        """Take a step for each sequence.

        order (int64 [n]): their numbers, each once.
        """
        numbers = self._sequences[np.asarray(order, dtype=np.int64)]
        precision = self._precision
        self.loss = self._steps.take(numbers, self.weights, precision, self._before + self.seen)
        self.seen += len(numbers)
        with np.errstate(all="ignore"):  # weights that are nothing any more
            self.loss += 0.5 * precision * float(self.weights @ self.weights) * len(numbers)

    def _restart(self, eta: float, n: int) -> None:
        """Weights of 0, and a first learning rate for n sequences."""
        self.weights[:] = 0.0
        self._precision, self.seen = 2.0 * self._c2 / n, 0
        self._before = 1.0 / (self._precision * eta)  # t0


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
    learner = StochasticGradient(data, features, settings.c2)
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
