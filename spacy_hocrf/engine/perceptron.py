"""The averaged perceptron (Collins, EMNLP 2002), one exact Viterbi and at most one update for each
sequence.

    w ← w + counts(annotation) - counts(best segmentation)    where the two differ

The result is the average of w over all sequences that were gone through, of every epoch, the last
one's w included. It is kept lazily: with u = Σ (k - 1) · update over the sequences k = 1 … n,

    average of w_1 … w_n = w_n - u / n

A segmentation that scores as much as the annotation is a mistake, too, if Viterbi prefers it: among
equals, always the same one.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.data_set import Compiled, Layout, Shard
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.viterbi import Best, viterbi
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Segments

__all__ = ["AveragedPerceptron", "best_of"]

Vector = NDArray[np.float64]


class AveragedPerceptron:
    """The perceptron's weights, and the sequences that it learns from.

    shards (Sequence[Shard]): the sequences, all completely annotated.
    layout (Layout): how the shards want the weights.
    automaton (Automaton): states and arcs of all of them.
    weights (ArrayLike): where to start, float64 [F]; copied.
    RAISES (ValueError): H521 if some shard has weights of its sequences.

    weights (float64 [F]): those of the last update.
    seen (int): sequences gone through, n.
    loss (float): of all mistakes of the last epoch; of the perceptron their number.
    """

    def __init__(
        self, shards: Sequence[Shard], layout: Layout, automaton: Automaton, weights: ArrayLike
    ) -> None:
        self.weights: Vector = np.array(weights, dtype=np.float64)
        self.seen = 0
        self.loss = 0.0
        self._layout = layout
        self._buffers = Buffers(automaton)
        self._texts: list[tuple[Compiled, Segments]] = []
        for shard in (each.compiled for each in shards):
            if shard.weights is not None:
                raise ValueError(Errors.H521.format(text=shard.describe(0)))
            texts = [shard.only(i) for i in range(len(shard.gold().offsets) - 1)]
            self._texts += [(text, text.gold()) for text in texts]
        self._placed = layout.place_weights(self.weights)
        self._counts = layout.nothing()
        self._weighted = np.zeros_like(self.weights)  # u
        self._all_right = False

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self._texts)

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
        RAISES (ValueError): H007 if some sequence has no allowed segmentation.
        """
        if self._all_right:  # as it would be in any order
            self.seen += len(self)
            return 0
        learnt = [self._learn(*self._texts[number]) for number in order]
        losses = [loss for loss in learnt if loss is not None]
        self.loss, self._all_right = sum(losses), not losses
        return len(losses)

    def mistakes(self) -> int:
        """How many sequences the weights of the last update get wrong; nothing is learnt."""
        return sum(not _equal(self._best(text), gold) for text, gold in self._texts)

    def _learn(self, text: Compiled, gold: Segments) -> float | None:
        """The loss of a sequence, None for no mistake."""
        found, loss = self._best(text), None
        if not _equal(found, gold):
            text.add_segments_into(gold, 1.0, self._counts)
            text.add_segments_into(found, -1.0, self._counts)
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
        return difference, 1.0

    def _best(self, text: Compiled) -> Segments:
        return best_of(text, self._placed, self._buffers).segments


def best_of(shard: Compiled, placed: Any, buffers: Buffers) -> Best:
    """The best segmentation of every sequence of a shard.

    placed (Any): weights as the layout has placed them.
    RAISES (ValueError): H007 if a sequence has no allowed segmentation.
    """
    best = viterbi(shard.potentials(placed, buffers), buffers.automaton, buffers=buffers)
    for bad in np.flatnonzero(np.isneginf(best.scores)).tolist():
        raise ValueError(Errors.H007.format(text=shard.describe(bad)))
    return best


def _equal(one: Segments, other: Segments) -> bool:
    """Are two segmentations of one sequence the same?"""
    return np.array_equal(one.start, other.start) and np.array_equal(one.label, other.label)
