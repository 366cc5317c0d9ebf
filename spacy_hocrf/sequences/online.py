"""Online learning as in CRFsuite: the averaged perceptron, passive-aggressive
learning (Crammer et al., JMLR 7, 2006) and AROW (Crammer, Kulesza and Dredze, NIPS 2009).

d is the difference between the counts of the annotation and of the labels that Viterbi found, whose score is
higher by -w·d; e is the number of wrong items:

    perceptron            w ← w + d                 loss = e / items
    passive-aggressive    w ← w + tau · d           loss = -w·d + sqrt(e), or -w·d + 1
        tau = loss / |d|²                           no slack
        tau = min(c, loss / |d|²)                   linear slack
        tau = loss / (|d|² + 1 / (2 c))             quadratic slack
    AROW                  w ← w + alpha · S d       loss = -w·d + e
        alpha = loss / (gamma + d·S d),   1/S ← 1/S + d² / gamma    S is diagonal

The result is the average of w over all sequences of every epoch, including the last w
(Collins, EMNLP 2002). It is computed lazily: with u = Σ (k - 1) · update over the sequences k = 1 … n,

    average of w_1 … w_n = w_n - u / n

A labelling with the same score as the annotation is a mistake, too, if Viterbi prefers it; ties are
always broken in the same way.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.model.compiled_shard import CompiledShard
from spacy_hocrf.model.placement import CompiledIndex
from spacy_hocrf.types import Segments, Vector

__all__ = ["Arow", "AveragedPerceptron", "PassiveAggressive"]


class AveragedPerceptron:
    """The averaged perceptron, and the sequences that it learns from.

    shards (Sequence[CompiledShard]): the sequences, all completely annotated.
    layout (CompiledIndex): how the shards arrange weights.
    automaton (Automaton): states and arcs of all shards.
    weights (ArrayLike): initial weights, float64 [F]; copied.

    weights (float64 [F]): the weights after the last update.
    seen (int): number of processed sequences, n.
    loss (float): loss of all mistakes in the last epoch.
    """

    def __init__(
        self,
        shards: Sequence[CompiledShard],
        layout: CompiledIndex,
        automaton: Automaton,
        weights: ArrayLike,
    ) -> None:
        self.weights: Vector = np.array(weights, dtype=np.float64)
        self.seen = 0
        self.loss = 0.0
        self._layout = layout
        self._buffers = Buffers(automaton)
        self._sequences: list[tuple[CompiledShard, Segments]] = []
        for shard in shards:
            alone = [shard.only(i) for i in range(len(shard.gold().offsets) - 1)]
            self._sequences += [(sequence, sequence.gold()) for sequence in alone]
        self._placed = layout.place_weights(self.weights)
        self._counts = layout.nothing()
        self._weighted = np.zeros_like(self.weights)  # u
        self._all_right = False

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self._sequences)

    @property
    def average(self) -> Vector:
        """The averaged weights, float64 [F]; the initial ones before there is anything to
        average.
        """
        return self.weights - self._weighted / max(1, self.seen)

    def epoch(self, order: Iterable[int]) -> int:
        """Process all sequences once.

        order (Iterable[int]): numbers of the sequences, each once.
        RETURNS (int): number of mistakes, each of which caused an update.
        """
        if self._all_right:  # there would be no mistake in any order
            self.seen += len(self)
            return 0
        learnt = [self._learn(*self._sequences[number]) for number in order]
        losses = [loss for loss in learnt if loss is not None]
        self.loss, self._all_right = sum(losses), not losses
        return len(losses)

    def _learn(self, sequence: CompiledShard, gold: Segments) -> float | None:
        """Learn from a sequence. RETURNS: its loss, None if there was no mistake."""
        predicted, loss = self._best(sequence), None
        if not _equal(predicted, gold):
            sequence.add_segments_into(gold, 1.0, self._counts)
            sequence.add_segments_into(predicted, -1.0, self._counts)
            features, difference = self._layout.take(self._counts)
            amounts, loss = self._step(features, difference, gold, predicted)
            self._layout.add_into(self._placed, features, amounts)
            self.weights[features] += amounts
            self._weighted[features] += self.seen * amounts
        self.seen += 1
        return loss

    def _step(
        self, features: NDArray[np.int32], difference: Vector, gold: Segments, predicted: Segments
    ) -> tuple[Vector, float]:
        """Return the change of the weights after one sequence, and its loss.

        features (int32 [n]): features with different counts in the annotation and in what was found.
        difference (float64 [n]): difference of the counts.
        """
        return difference, _errors(gold, predicted) / len(gold.label)

    def _best(self, sequence: CompiledShard) -> Segments:
        potentials = sequence.potentials(self._placed, self._buffers)
        return viterbi(potentials, self._buffers.automaton, buffers=self._buffers).segments


class PassiveAggressive(AveragedPerceptron):
    """Passive-aggressive learning: updates as small as possible. The other arguments are those of
    `AveragedPerceptron`.

    slack (int): may an update leave a sequence wrong? 0 for no, 1 and 2 for linear and
        quadratic slack.
    c (float): aggressiveness, the price of slack.
    errors (bool): does the loss grow with the number of errors?
    """

    def __init__(self, *data: Any, slack: int, c: float, errors: bool) -> None:
        super().__init__(*data)
        self._slack, self._c, self._counts_errors = slack, c, errors

    def _step(
        self, features: NDArray[np.int32], difference: Vector, gold: Segments, predicted: Segments
    ) -> tuple[Vector, float]:
        norm = float(difference @ difference)
        margin = math.sqrt(_errors(gold, predicted)) if self._counts_errors else 1.0
        loss = margin - float(self.weights[features] @ difference)
        if self._slack == 2:
            tau = self._c * loss / (self._c * norm + 0.5)
        else:
            tau = loss / norm if norm else 0.0  # no weight can distinguish the two
            tau = min(self._c, tau) if self._slack == 1 else tau
        return tau * difference, loss


class Arow(AveragedPerceptron):
    """AROW: weights that have been updated often change less. The other arguments are those of
    `AveragedPerceptron`.

    variance (float): variance of all weights before training.
    gamma (float): above 0; the larger it is, the smaller the updates.
    """

    def __init__(self, *data: Any, variance: float, gamma: float) -> None:
        super().__init__(*data)
        self._variance, self._gamma = np.full(len(self.weights), variance), gamma

    def _step(
        self, features: NDArray[np.int32], difference: Vector, gold: Segments, predicted: Segments
    ) -> tuple[Vector, float]:
        squares, variance, gamma = difference**2, self._variance[features], self._gamma
        loss = _errors(gold, predicted) - float(self.weights[features] @ difference)
        self._variance[features] = variance * gamma / (gamma + variance * squares)
        return loss / (gamma + variance @ squares) * variance * difference, loss


def _equal(one: Segments, other: Segments) -> bool:
    """Are two segmentations of one sequence the same?"""
    return np.array_equal(one.start, other.start) and np.array_equal(one.label, other.label)


def _errors(gold: Segments, predicted: Segments) -> int:
    """Count segments of the annotation that were not found; if each is one item, wrong labels."""
    places = {*zip(predicted.start.tolist(), predicted.end.tolist(), predicted.label.tolist())}
    return sum(
        segment not in places
        for segment in zip(gold.start.tolist(), gold.end.tolist(), gold.label.tolist())
    )
