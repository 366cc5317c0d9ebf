"""Passive-aggressive learning (Crammer et al., JMLR 7, 2006) and AROW (Crammer, Kulesza and Dredze, NIPS
2009) of whole segmentations, as CRFsuite has them: one exact Viterbi and at most one update for each
sequence; and the averaged perceptron with CRFsuite's loss.

With the difference d of the counts of the annotation and of what was found, which scores -w·d more, and e
wrong segments:

    passive-aggressive    w ← w + tau · d           loss = -w·d + sqrt(e), or -w·d + 1
        tau = loss / |d|²                           no slack
        tau = min(c, loss / |d|²)                   a linear one
        tau = loss / (|d|² + 1 / (2 c))             a quadratic one
    perceptron            w ← w + d                 loss = e / segments of the annotation
    AROW                  w ← w + alpha · S d       loss = -w·d + e
        alpha = loss / (gamma + d·S d),   1/S ← 1/S + d² / gamma    S is diagonal
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.data_set import Layout, Shard
from spacy_hocrf.engine.perceptron import AveragedPerceptron
from spacy_hocrf.types import Segments

__all__ = ["Arow", "ItemPerceptron", "PassiveAggressive", "Slack"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Slack:
    """How far an update may leave a sequence wrong.

    power (int): 0 for not at all, 1 and 2 for a linear and a quadratic slack.
    c (float): aggressiveness, the price of slack.
    errors (bool): does the loss grow with the number of errors?
    """

    power: int = 1
    c: float = 1.0
    errors: bool = True


class ItemPerceptron(AveragedPerceptron):
    """An averaged perceptron whose loss of a sequence is the share of its segments that are wrong."""

    def _step(
        self, features: NDArray[np.int32], difference: Vector, gold: Segments, found: Segments
    ) -> tuple[Vector, float]:
        return difference, _errors(gold, found) / len(gold.label)


class PassiveAggressive(AveragedPerceptron):
    """Each update is as large as it must be.

    slack (Slack): what that is. The other arguments are those of `AveragedPerceptron`.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        layout: Layout,
        automaton: Automaton,
        weights: ArrayLike,
        slack: Slack,
    ) -> None:
        super().__init__(shards, layout, automaton, weights)
        self._slack = slack

    def _step(
        self, features: NDArray[np.int32], difference: Vector, gold: Segments, found: Segments
    ) -> tuple[Vector, float]:
        slack, norm = self._slack, float(difference @ difference)
        margin = math.sqrt(_errors(gold, found)) if slack.errors else 1.0
        loss = margin - float(self.weights[features] @ difference)
        if slack.power == 2:
            tau = slack.c * loss / (slack.c * norm + 0.5)
        else:
            tau = loss / norm if norm else 0.0  # no weight tells the two apart
            tau = min(slack.c, tau) if slack.power == 1 else tau
        return tau * difference, loss


class Arow(AveragedPerceptron):
    """Weights that have been updated often move less.

    variance (float): of all weights before training.
    gamma (float): above 0, how little a mistake weighs against the variance.
    The other arguments are those of `AveragedPerceptron`.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        layout: Layout,
        automaton: Automaton,
        weights: ArrayLike,
        variance: float,
        gamma: float,
    ) -> None:
        super().__init__(shards, layout, automaton, weights)
        self._variance = np.full(len(self.weights), variance)
        self._gamma = gamma

    def _step(
        self, features: NDArray[np.int32], difference: Vector, gold: Segments, found: Segments
    ) -> tuple[Vector, float]:
        squares, variance, gamma = difference**2, self._variance[features], self._gamma
        loss = _errors(gold, found) - float(self.weights[features] @ difference)
        self._variance[features] = variance * gamma / (gamma + variance * squares)
        return loss / (gamma + variance @ squares) * variance * difference, loss


def _errors(gold: Segments, found: Segments) -> int:
    """Segments of the annotation that are not there; where each is one token, wrong labels."""
    places = {*zip(found.start.tolist(), found.end.tolist(), found.label.tolist())}
    return sum(
        each not in places
        for each in zip(gold.start.tolist(), gold.end.tolist(), gold.label.tolist())
    )
