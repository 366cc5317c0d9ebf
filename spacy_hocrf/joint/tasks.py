"""What learners of joint weights see of documents that are decoded together.

An output is a segmentation of each document. Its features are the joint ones, and as the last one
the local score, whose weight is 1: a model of the single documents has it, and it is not learnt
here. The loss of an output is the number of tokens whose label is not the annotated one, as in
`engine.margin`: a sum over tokens, so that the semi-CRF decodes with it as without.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.margin import labels_of
from spacy_hocrf.joint.chain import SegmentationSubproblem
from spacy_hocrf.joint.decoding import DualDecomposition
from spacy_hocrf.joint.problems import JointProblem
from spacy_hocrf.joint.remembered import SpanRules
from spacy_hocrf.joint.ruled import RuledSearch
from spacy_hocrf.types import Potentials, Segments

__all__ = ["JointOutput", "JointTask", "with_rules"]


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
    rules (Optional[SpanRules]): those of them that are rules about all spans of a Doc.

    breaks_hard (bool): does the annotation break a rule that no reading may break?
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
        rules: SpanRules | None = None,
    ) -> None:
        self._problem = problem
        self._potentials = potentials
        self._automaton = automaton
        self._decoder = decoder
        self._n_features = n_features
        self._rules = rules
        # with the weight of the loss in it
        self._latest: tuple[float, SegmentationSubproblem] | None = None
        self._search: RuledSearch | None = None
        subproblem = self._subproblem(replace(potentials, allowed=annotated))
        local, assignment = subproblem.maximise(np.zeros(int(subproblem.offsets[-1])))
        subproblem.keep()
        self._labels = labels_of(subproblem.best.segments)
        features, counts = self._counts(assignment, subproblem.best.segments)
        self.gold = self._output(features, counts, local, 0.0)
        hard = np.zeros(0, dtype=np.int64) if rules is None else rules.feature[rules.hard]
        self.breaks_hard = bool(np.isin(features, hard).any())

    def decode(
        self, weights: NDArray[np.float64], loss_weight: float = 0.0
    ) -> tuple[JointOutput, float, float]:
        """Segmentations with a high score, the score, and an upper bound.

        weights (float64 [G + 1]): of the joint features, and 1.
        """
        assert weights[self._n_features] == 1.0
        search = self._priced(weights)
        if self._latest is None or self._latest[0] != loss_weight:
            with_loss = replace(self._potentials, token=self._with_loss(loss_weight))
            self._latest = (loss_weight, self._subproblem(with_loss, search))
        subproblem = self._latest[1]
        decoding = self._decoder.decode(self._problem.instance(weights[:-1]), subproblem)
        loss = float((labels_of(subproblem.best.segments) != self._labels).sum())
        features, counts = self._counts(decoding.assignment, subproblem.best.segments)
        local = decoding.primal - loss_weight * loss - float(weights[features] @ counts)
        return self._output(features, counts, local, loss), decoding.primal, decoding.bound

    def counts(self, output: JointOutput) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Joint features, and the local score."""
        return output.features, output.counts

    def loss(self, output: JointOutput) -> float:
        """Tokens with a wrong label."""
        return output.loss

    def _subproblem(
        self, potentials: Potentials, search: RuledSearch | None = None
    ) -> SegmentationSubproblem:
        vertices = self._problem.vertices
        return SegmentationSubproblem(potentials, self._automaton, vertices, search=search)

    def _priced(self, weights: NDArray[np.float64]) -> RuledSearch | None:
        """The search with these weights, which knows which rules it has needed so far."""
        rules = self._rules
        if rules is None:
            return None
        prices = np.where(rules.hard, np.inf, weights[rules.feature])
        if self._search is None:
            self._search = RuledSearch(rules, prices, len(self._problem.sequences))
        self._search.set_prices(prices)
        return self._search

    def _with_loss(self, loss_weight: float) -> NDArray[np.float64]:
        """Scores of the tokens, float64 [N, Y], plus the loss of each label."""
        scores = self._potentials.token + loss_weight
        scores[np.arange(len(scores)), self._labels] -= loss_weight
        return scores

    def _counts(
        self, assignment: NDArray[np.int32], segments: Segments
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Joint features that fire, each once, and their values."""
        return with_rules(self._rules, segments, *self._problem.counts(assignment))

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


def with_rules(
    rules: SpanRules | None,
    segments: Segments,
    features: NDArray[np.int32],
    counts: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Features with counts, and those of rules that some segmentations break, with as many less than 0."""
    if rules is None:
        return features, counts
    broken = rules.broken(segments).sum(axis=0)
    some = np.flatnonzero(broken)
    return (
        np.concatenate([features, rules.feature[some].astype(np.int32)]),
        np.concatenate([counts, -broken[some].astype(np.float64)]),
    )
