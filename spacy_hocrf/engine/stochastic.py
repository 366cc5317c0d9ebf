"""Stochastic gradient descent on the penalised likelihood, as CRFsuite's l2sgd has it (the steps are those of
Shalev-Shwartz, Singer and Srebro, ICML 2007; how the first is found, of Bottou's programs).

    loss(w) = Σ_i [log Z_i(w) - w·f_i] + n lambda/2 |w|²,    lambda = 2 c2 / n
    w ← (1 - eta lambda) w + eta (f_i - E_i[f]),    eta = 1 / (lambda (t0 + t)),    t = 0, 1, …

f_i are the counts of the annotation of sequence i, and E_i their expectation. The weights are kept as
decay · v, so that a step changes those of the sequence's features alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.data_set import Layout, Shard
from spacy_hocrf.engine.forward_backward import expectations
from spacy_hocrf.engine.perceptron import AveragedPerceptron
from spacy_hocrf.types import Segments

__all__ = ["Calibration", "StochasticGradient"]

SCORES = ("const", "start", "end", "token", "inner", "row_score", "length_score", "span_score")
"""Of potentials."""


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


class StochasticGradient(AveragedPerceptron):
    """One step for each sequence.

    c2 (float): above 0, coefficient of the squares of the weights. The weights begin at 0.
    The other arguments are those of `AveragedPerceptron`.

    loss (float): of the last epoch, of each sequence before its step, with the penalty after the last.
    eta, last_eta (float): the learning rates of the next step, and of the last.
    """

    def __init__(
        self, shards: Sequence[Shard], layout: Layout, automaton: Automaton, n: int, c2: float
    ) -> None:
        super().__init__(shards, layout, automaton, np.zeros(n))
        self._c2, self._decay = c2, 1.0
        self._gold = [self._counts_of(text, gold) for text, gold in self._texts]
        self._restart(1.0, len(self))

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
        self._restart(settings.eta, len(some))
        worst = sum(self._loss_of(number) for number in some)
        best, best_loss, eta = float("nan"), float("inf"), settings.eta
        left, growing = settings.candidates, True
        for trial in count(1):
            self._restart(eta, len(some))
            with np.errstate(all="ignore"):
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

    def epoch(self, order: Iterable[int]) -> int:
        """Take a step for each sequence.

        order (Iterable[int]): their numbers, each once. RETURNS (int): how many there are.
        """
        order = list(order)
        self.loss = sum(self._step_of(number) for number in order)
        self.weights *= self._decay
        self._decay = 1.0
        self._placed = self._layout.place_weights(self.weights, self._placed)
        self.loss += 0.5 * self._precision * float(self.weights @ self.weights) * len(order)
        return len(order)

    def _restart(self, eta: float, n: int) -> None:
        """Weights of 0, and a first learning rate for n sequences."""
        self.weights[:] = 0.0
        self._placed = self._layout.place_weights(self.weights, self._placed)
        self._precision, self._decay, self.seen = 2.0 * self._c2 / n, 1.0, 0
        self._before = 1.0 / (self._precision * eta)  # t0

    def _counts_of(
        self, text: Shard, gold: Segments
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        text.add_segments_into(gold, 1.0, self._counts)
        features, counts = self._layout.take(self._counts)
        return features.copy(), counts.copy()

    def _step_of(self, number: int) -> float:
        """Take the step of a sequence. RETURNS (float): its loss before."""
        self._decay *= 1.0 - self.eta * self._precision
        if not 0.0 < self._decay < float("inf"):
            return float("nan")  # a learning rate that leaves nothing of the weights
        loss = self._loss_of(number, -1.0)
        gain = self.eta / self._decay
        for features, counts in (self._gold[number], self._layout.take(self._counts)):
            self._layout.add_into(self._placed, features, gain * counts)
            self.weights[features] += gain * counts
        self.seen += 1
        return loss

    def _loss_of(self, number: int, sign: float = 0.0) -> float:
        """log Z less the score of the annotation; adds the expected counts, `sign` times."""
        text, _ = self._texts[number]
        potentials = text.potentials(self._placed, self._buffers)
        scores = {name: getattr(potentials, name) for name in SCORES}
        scaled = {name: each * self._decay for name, each in scores.items() if each is not None}
        potentials = replace(potentials, **scaled)
        expected = expectations(potentials, self._automaton, buffers=self._buffers)
        if sign:
            text.add_counts_into(expected, sign, self._counts)
        features, counts = self._gold[number]
        score = self._decay * float(self.weights[features] @ counts)
        return float(expected.log_partition.sum()) - score
