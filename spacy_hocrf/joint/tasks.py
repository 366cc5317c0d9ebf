"""What learners of joint weights see of documents that are decoded together.

An output is a segmentation of each document. Its features are the joint ones, and as the last one
the local score, whose weight is 1: a model of the single documents has it, and it is not learnt
here. The loss of an output is the number of tokens whose label is not the annotated one
(Tsochantaridis et al., JMLR 6, 2005): a sum over tokens, so that the semi-CRF decodes with it as without.
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
    """Segmentations of all documents, as far as learners look at them."""

    features: NDArray[np.int32]  # [n] those that fire, the local score last
    counts: NDArray[np.float64]  # [n]
    loss: float


class JointTask:
    """Documents that joint patterns connect, with their annotation: a `graph.learning.Task`.

    problem (JointProblem): the patterns.
    potentials (Potentials): local scores of the documents, those of `problem.sequences` in order.
    automaton (Automaton): of the local model.
    annotated (uint8 [N, Y]): what is allowed of each token where the segmentation is the annotated
        one.
    decoder (DualDecomposition): how they are decoded.
    n_features (int): G joint features.
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
        # with the weight of the loss in it
        self._latest: tuple[float, SegmentationSubproblem] | None = None
        subproblem = self._subproblem(replace(potentials, allowed=annotated))
        local, assignment = subproblem.maximise(np.zeros(int(subproblem.offsets[-1])))
        subproblem.keep()
        self._labels = _labels_of(subproblem.best.segments)
        self.gold = self._output(*problem.counts(assignment), local, 0.0)

    def decode(
        self, weights: NDArray[np.float64], loss_weight: float = 0.0
    ) -> tuple[JointOutput, float, float]:
        """Segmentations with a high score, the score, and an upper bound.

        weights (float64 [G + 1]): of the joint features, and 1.
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
        """Joint features, and the local score."""
        return output.features, output.counts

    def loss(self, output: JointOutput) -> float:
        """Tokens with a wrong label."""
        return output.loss

    def _subproblem(self, potentials: Potentials) -> SegmentationSubproblem:
        return SegmentationSubproblem(potentials, self._automaton, self._problem.vertices)

    def _with_loss(self, loss_weight: float) -> NDArray[np.float64]:
        """Scores of the tokens, float64 [N, Y], plus the loss of each label."""
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
    """The label of every token, int32 [N], of segments that cover all."""
    return np.repeat(segments.label, segments.end - segments.start)
