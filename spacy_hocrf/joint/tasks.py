"""Jointly decoded documents as learning tasks for joint weights.

An output is a segmentation of each document. Its features are the joint ones, and the last one is
the local score with the fixed weight 1: the model of single documents computes it, and it is not learnt
here. The loss of an output is the number of tokens with a wrong label
(Tsochantaridis et al., JMLR 6, 2005): a sum over tokens, so the semi-CRF can decode with it as well.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.joint.chain import SegmentationSubproblem
from spacy_hocrf.joint.decoding import DualDecomposition
from spacy_hocrf.joint.problems import JointProblem
from spacy_hocrf.types import Potentials, Segments

__all__ = ["JointOutput", "JointTask"]


class JointOutput(NamedTuple):
    """Segmentations of all documents, as features and loss."""

    features: NDArray[np.int32]  # [n] features that fire, the local score last
    counts: NDArray[np.float64]  # [n]
    loss: float


class JointTask:
    """Documents that joint patterns connect, with their annotation: a `graph.learning.Task`.

    problem (JointProblem): the patterns.
    potentials (Potentials): local scores of the documents `problem.sequences`, in order.
    automaton (Automaton): automaton of the local model.
    annotated (uint8 [N, Y]): bits that allow only the annotated segmentation.
    decoder (DualDecomposition): how they are decoded.
    n_features (int): number of joint features G.
    RAISES (ValueError): H092 if the annotation is not possible.
    """

    def __init__(
        self,
        problem: JointProblem,
        potentials: Potentials,
        automaton: Automaton,
        annotated: NDArray[np.uint8],
        decoder: DualDecomposition,
        n_features: int,
    ) -> None:
        self._problem = problem
        self._potentials = potentials
        self._automaton = automaton
        self._decoder = decoder
        self._n_features = n_features
        # weight of the loss, and the subproblem with that loss
        self._latest: tuple[float, SegmentationSubproblem] | None = None
        subproblem = self._subproblem(replace(potentials, allowed=annotated))
        local, assignment = subproblem.maximise(np.zeros(int(subproblem.offsets[-1])))
        subproblem.keep()
        self._labels = _labels_of(subproblem.best.segments)
        self.gold = self._output(*problem.counts(assignment), local, 0.0)

    def decode(
        self, weights: NDArray[np.float64], loss_weight: float = 0.0
    ) -> tuple[JointOutput, float, float]:
        """Return segmentations with a high score, the score, and an upper bound.

        weights (float64 [G + 1]): weights of the joint features, and 1.
        """
        assert weights[self._n_features] == 1.0
        if self._latest is None or self._latest[0] != loss_weight:
            with_loss = replace(self._potentials, token=self._with_loss(loss_weight))
            self._latest = (loss_weight, self._subproblem(with_loss))
        subproblem = self._latest[1]
        decoding = self._decoder.decode(self._problem.instance(weights[:-1]), subproblem)
        loss = float((_labels_of(subproblem.best.segments) != self._labels).sum())
        features, counts = self._problem.counts(decoding.assignment)
        local = decoding.primal - loss_weight * loss - float(weights[features] @ counts)
        return self._output(features, counts, local, loss), decoding.primal, decoding.bound

    def counts(self, output: JointOutput) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the features of an output, the local score being the last, and their counts."""
        return output.features, output.counts

    def loss(self, output: JointOutput) -> float:
        """Return the number of tokens with a wrong label."""
        return output.loss

    def _subproblem(self, potentials: Potentials) -> SegmentationSubproblem:
        return SegmentationSubproblem(potentials, self._automaton, self._problem.vertices)

    def _with_loss(self, loss_weight: float) -> NDArray[np.float64]:
        """Return the scores of the tokens, float64 [N, Y], plus the loss of each label."""
        scores = self._potentials.token + loss_weight
        scores[np.arange(len(scores)), self._labels] -= loss_weight
        return scores

    def _output(
        self,
        features: NDArray[np.int32],
        counts: NDArray[np.float64],
        local: float,
        loss: float,
    ) -> JointOutput:
        return JointOutput(
            np.append(features, np.int32(self._n_features)), np.append(counts, local), loss
        )


def _labels_of(segments: Segments) -> NDArray[np.int32]:
    """Return the label of every token, int32 [N], given segments that cover all."""
    return np.repeat(segments.label, segments.end - segments.start)
