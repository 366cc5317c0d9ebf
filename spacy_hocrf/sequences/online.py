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

The result is the average of w over all sequences that were gone through, of every epoch, the last one's w
included (Collins, EMNLP 2002). It is kept lazily: with u = Σ (k - 1) · update over the sequences k = 1 … n,

    average of w_1 … w_n = w_n - u / n

A labelling that scores as much as the annotation is a mistake, too, if Viterbi prefers it: among equals,
always the same one.
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
from spacy_hocrf.types import Segments

__all__ = ["Arow", "AveragedPerceptron", "PassiveAggressive"]

Vector = NDArray[np.float64]


class AveragedPerceptron:
    """The weights, and the sequences that they are learnt from.

    shards (Sequence[CompiledShard]): the sequences, all completely annotated.
    layout (CompiledIndex): how the shards want the weights.
    automaton (Automaton): states and arcs of all of them.
    weights (ArrayLike): where to start, float64 [F]; copied.

    weights (float64 [F]): those of the last update.
    seen (int): sequences gone through, n.
    loss (float): of all mistakes of the last epoch.
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
            self._sequences += [(each, each.gold()) for each in alone]
        self._placed = layout.place_weights(self.weights)
        self._counts = layout.nothing()
        self._weighted = np.zeros_like(self.weights)  # u
        self._all_right = False

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self._sequences)

    @property
    def average(self) -> Vector:
        """The averaged weights, float64 [F]; those of the start before there is anything to
        average.
        """
        return self.weights - self._weighted / max(1, self.seen)

    def epoch(self, order: Iterable[int]) -> int:
        """Go through all sequences.

        order (Iterable[int]): their numbers, each once.
        RETURNS (int): mistakes, each of which was an update.
        """
        if self._all_right:  # as it would be in any order
            self.seen += len(self)
            return 0
        learnt = [self._learn(*self._sequences[number]) for number in order]
        losses = [loss for loss in learnt if loss is not None]
        self.loss, self._all_right = sum(losses), not losses
        return len(losses)

    def _learn(self, sequence: CompiledShard, gold: Segments) -> float | None:
        """The loss of a sequence, None for no mistake."""
        found, loss = self._best(sequence), None
        if not _equal(found, gold):
            sequence.add_segments_into(gold, 1.0, self._counts)
            sequence.add_segments_into(found, -1.0, self._counts)
            features, difference = self._layout.take(self._counts)
            amounts, loss = self._step(features, difference, gold, found)
            self._layout.add_into(self._placed, features, amounts)
            self.weights[features] += amounts
            self._weighted[features] += self.seen * amounts
        self.seen += 1
        return loss

    def _step(
        self, features: NDArray[np.int32], difference: Vector, gold: Segments, found: Segments
    ) -> tuple[Vector, float]:
        """Change of the weights after one sequence, and its loss.

        features (int32 [n]): that fire more or less often in the annotation than in what was found.
        difference (float64 [n]): how much more often.
        """
        return difference, _errors(gold, found) / len(gold.label)

    def _best(self, sequence: CompiledShard) -> Segments:
        potentials = sequence.potentials(self._placed, self._buffers)
        return viterbi(potentials, self._buffers.automaton, buffers=self._buffers).segments


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


def _equal(one: Segments, other: Segments) -> bool:
    """Are two segmentations of one sequence the same?"""
    return np.array_equal(one.start, other.start) and np.array_equal(one.label, other.label)


def _errors(gold: Segments, found: Segments) -> int:
    """Segments of the annotation that are not there; where each is one item, wrong labels."""
    places = {*zip(found.start.tolist(), found.end.tolist(), found.label.tolist())}
    return sum(
        each not in places
        for each in zip(gold.start.tolist(), gold.end.tolist(), gold.label.tolist())
    )
