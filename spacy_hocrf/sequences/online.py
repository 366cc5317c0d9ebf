"""Learning from one sequence after the other as CRFsuite does: the averaged perceptron, passive-aggressive
learning (Crammer et al., JMLR 7, 2006) and AROW (Crammer, Kulesza and Dredze, NIPS 2009).

With the difference d of the counts of the annotation and of what Viterbi found, which scores -w·d more, and e
wrong items:

    perceptron            w ← w + d                 loss = e / items
    passive-aggressive    w ← w + tau · d           loss = -w·d + sqrt(e), or -w·d + 1
        tau = loss / |d|²                           no slack
        tau = min(c, loss / |d|²)                   a linear one
        tau = loss / (|d|² + 1 / (2 c))             a quadratic one
    AROW                  w ← w + alpha · S d       loss = -w·d + e
        alpha = loss / (gamma + d·S d),   1/S ← 1/S + d² / gamma    S is diagonal
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.perceptron import AveragedPerceptron
from spacy_hocrf.types import Segments

__all__ = ["Arow", "ItemPerceptron", "PassiveAggressive"]

Vector = NDArray[np.float64]


class ItemPerceptron(AveragedPerceptron):
    """An averaged perceptron whose loss of a sequence is the share of its items that are wrong."""

    def _step(
        self, features: NDArray[np.int32], difference: Vector, gold: Segments, found: Segments
    ) -> tuple[Vector, float]:
        return difference, _errors(gold, found) / len(gold.label)


class PassiveAggressive(AveragedPerceptron):
    """Each update is as large as it must be. The arguments before these are those of `AveragedPerceptron`.

    slack (int): how far an update may leave a sequence wrong: 0 for not at all, 1 and 2 for a linear and a
        quadratic slack.
    c (float): aggressiveness, the price of slack.
    errors (bool): does the loss grow with the number of errors?
    """

    def __init__(self, *data: Any, slack: int, c: float, errors: bool) -> None:
        super().__init__(*data)
        self._slack, self._c, self._counts_errors = slack, c, errors

    def _step(
        self, features: NDArray[np.int32], difference: Vector, gold: Segments, found: Segments
    ) -> tuple[Vector, float]:
        norm = float(difference @ difference)
        margin = math.sqrt(_errors(gold, found)) if self._counts_errors else 1.0
        loss = margin - float(self.weights[features] @ difference)
        if self._slack == 2:
            tau = self._c * loss / (self._c * norm + 0.5)
        else:
            tau = loss / norm if norm else 0.0  # no weight tells the two apart
            tau = min(self._c, tau) if self._slack == 1 else tau
        return tau * difference, loss


class Arow(AveragedPerceptron):
    """Weights that have been updated often move less. The arguments before these are those of
    `AveragedPerceptron`.

    variance (float): of all weights before training.
    gamma (float): above 0, how little a mistake weighs against the variance.
    """

    def __init__(self, *data: Any, variance: float, gamma: float) -> None:
        super().__init__(*data)
        self._variance, self._gamma = np.full(len(self.weights), variance), gamma

    def _step(
        self, features: NDArray[np.int32], difference: Vector, gold: Segments, found: Segments
    ) -> tuple[Vector, float]:
        squares, variance, gamma = difference**2, self._variance[features], self._gamma
        loss = _errors(gold, found) - float(self.weights[features] @ difference)
        self._variance[features] = variance * gamma / (gamma + variance * squares)
        return loss / (gamma + variance @ squares) * variance * difference, loss


def _errors(gold: Segments, found: Segments) -> int:
    """Segments of the annotation that are not there; where each is one item, wrong labels."""
    places = {*zip(found.start.tolist(), found.end.tolist(), found.label.tolist())}
    return sum(
        each not in places
        for each in zip(gold.start.tolist(), gold.end.tolist(), gold.label.tolist())
    )
