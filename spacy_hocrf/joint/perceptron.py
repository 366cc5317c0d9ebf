"""The averaged perceptron over local and joint weights, all in one, as in Qian and Liu, TACL 2 (2014)
§4: `spacy-hocrf.FullPerceptron.v1`.

Documents that joint patterns connect are decoded together, all others by themselves. One update for
each wrong decoding moves the weights of all features, local and joint, by what the annotation has
more of. An update needs a violation, see `graph.perceptron`.

Extents: F local weights, then G joint ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.data_set import Compiled
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.perceptron import best_of
from spacy_hocrf.graph.perceptron import GraphPerceptron
from spacy_hocrf.joint.chain import SegmentationSubproblem
from spacy_hocrf.joint.corpus import documents_together
from spacy_hocrf.joint.decoding import DualDecomposition
from spacy_hocrf.joint.learning import JointModel, LearntWeights
from spacy_hocrf.joint.problems import JointProblem
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.learning.shards import CorpusShard
from spacy_hocrf.model.outline import Placed
from spacy_hocrf.model.placement import CompiledIndex
from spacy_hocrf.training.base import Run, Trainer
from spacy_hocrf.training.perceptron import PerceptronRun, epochs_of
from spacy_hocrf.types import Segments

__all__ = [
    "FullPerceptron",
    "LabelledDocuments",
    "LabelledSegments",
    "LocalWeights",
    "PerceptronOfAll",
]

Vector = NDArray[np.float64]

BATCH_DOCUMENTS = 500
"""Documents whose features are extracted together."""


@dataclass(frozen=True, kw_only=True)
class FullPerceptron:
    """`spacy-hocrf.FullPerceptron.v1`: local and joint weights in one perceptron, as in the paper;
    its epochs and its seed are those of the local trainer, `spacy-hocrf.AveragedPerceptron.v1`.

    nonnegative (bool): joint weights below 0 are not allowed for places that should agree, which never
        count less for it; those of `Pattern.v1` have either sign. Without any of these, decoding is
        nearly exact then.
    bounded (bool): an update goes no further than to where the annotation is ahead by the number of
        wrong segments; false for the updates of the paper, which large groups make very large.
    """

    nonnegative: bool = True
    bounded: bool = True

    def lacks(self, trainer: Trainer) -> str | None:
        """Reason why it cannot learn beside a local trainer: it is the local trainer's perceptron,
        with more weights.
        """
        return "spacy-hocrf.AveragedPerceptron.v1" if epochs_of(trainer) is None else None

    def begin(self, learner: Learner, joint: JointModel) -> PerceptronRun:
        """The local trainer's epochs, from the weights on that there are."""
        epochs = epochs_of(learner.trainer)
        assert epochs is not None  # else `lacks` has said so
        return PerceptronRun(epochs, PerceptronOfAll(self, learner, joint))

    def learnt(self, run: Run, learner: Learner, joint: JointModel) -> LearntWeights | None:
        """The average so far."""
        perceptron = cast(PerceptronOfAll, cast(PerceptronRun, run).perceptron)
        return LearntWeights(perceptron.joint_average)


class PerceptronOfAll:
    """The data of a `PerceptronRun` over documents that are decoded together.

    settings (FullPerceptron): how updates are made.
    learner (Learner): the local model; its completely annotated documents are learnt from.
    joint (JointModel): what connects them, and how they are decoded.
    """

    def __init__(self, settings: FullPerceptron, learner: Learner, joint: JointModel) -> None:
        structure, corpus, weights = learner.structure, learner.corpus, learner.weights
        self._n_local = len(weights)
        local = LocalWeights(structure.compiled, self._n_local)
        buffers = Buffers(learner.automaton)
        features = joint.features(learner.scheme)
        groups, alone = documents_together(corpus, features, most=joint.most)
        shards: list[tuple[Compiled, JointProblem | None]] = [
            (CorpusShard(structure, corpus, part.documents).compiled, part.problem)
            for group in groups
            for part in group
        ]
        for first in range(0, len(alone), BATCH_DOCUMENTS):
            batch = alone[first : first + BATCH_DOCUMENTS]
            together = CorpusShard(structure, corpus, batch).compiled
            shards += ((together.only(i), None) for i in range(len(batch)))
        self._tasks = [
            LabelledDocuments(shard, problem, joint.decoder, local, buffers)
            for shard, problem in shards
        ]
        start = np.concatenate([weights, np.where(features.hard, 0.0, joint.weights())])
        never_negative = np.append(np.zeros(self._n_local, dtype=bool), features.agree)
        self._perceptron = GraphPerceptron(
            self._tasks,
            start,
            nonnegative=never_negative if settings.nonnegative else None,
            bounded=settings.bounded,
        )

    def __len__(self) -> int:
        """Number of decodings in an epoch."""
        return len(self._tasks)

    @property
    def average(self) -> Vector:
        """The averaged local weights, float64 [F]."""
        return self._perceptron.average[: self._n_local]

    @property
    def joint_average(self) -> Vector:
        """The averaged joint weights, float64 [G]."""
        return self._perceptron.average[self._n_local :]

    def epoch(self, order: Iterable[int]) -> int:
        """Go through all of them in this order. RETURNS (int): how many were wrong."""
        return self._perceptron.epoch(order).errors

    def mistakes(self) -> int:
        """How many the weights of the last update get wrong; nothing is learnt."""
        return sum(task.loss(task.decode(self._perceptron.weights)[0]) > 0 for task in self._tasks)


class LocalWeights:
    """The local weights as shards want them, placed anew only where they have changed.

    compiled (CompiledIndex): the arrangement; n_local (int): F.
    """

    def __init__(self, compiled: CompiledIndex, n_local: int) -> None:
        self.n_local = n_local
        self._compiled = compiled
        self._weights = np.zeros(n_local)
        self._placed = compiled.place_weights(self._weights)
        self._counts = compiled.nothing()

    def placed(self, weights: Vector) -> Placed:
        """The first F of some weights as shards want them; float64 [F + G]."""
        if not np.array_equal(self._weights, weights[: self.n_local]):
            self._weights[:] = weights[: self.n_local]
            self._placed = self._compiled.place_weights(self._weights, self._placed)
        return self._placed

    def counts(self, shard: Compiled, segments: Segments) -> tuple[NDArray[np.int32], Vector]:
        """Local features of segmentations of all documents of a shard, each once, and their counts."""
        shard.add_segments_into(segments, 1.0, self._counts)
        features, counts = self._compiled.take(self._counts)
        fires = counts != 0
        return features[fires], counts[fires]


class LabelledSegments(NamedTuple):
    """An output: segmentations of some documents, and the states of the vertices in them."""

    segments: Segments
    assignment: NDArray[np.int32] | None  # [N] None without a vertex


class LabelledDocuments:
    """Completely annotated documents that are decoded together: a `graph.learning.Task` over all
    features.

    shard (Compiled): the documents.
    problem (Optional[JointProblem]): what connects them; None for a single one.
    decoder (DualDecomposition): how they are decoded.
    local (LocalWeights), buffers (Buffers): of all tasks.
    """

    def __init__(
        self,
        shard: Compiled,
        problem: JointProblem | None,
        decoder: DualDecomposition,
        local: LocalWeights,
        buffers: Buffers,
    ) -> None:
        gold = shard.gold()
        self._shard = shard
        self._problem = problem
        self._decoder = decoder
        self._local = local
        self._buffers = buffers
        self._gold_counts: tuple[NDArray[np.int32], Vector] | None = None
        self.gold = LabelledSegments(
            gold, None if problem is None else problem.vertices.states_in(gold)
        )

    def decode(
        self, weights: Vector, loss_weight: float = 0.0
    ) -> tuple[LabelledSegments, float, float]:
        """Segmentations with a high score, the score, and an upper bound; only without a loss.

        weights (float64 [F + G]): of all features.
        RAISES (ValueError): H007 if a document has no allowed segmentation.
        """
        assert loss_weight == 0.0
        placed = self._local.placed(weights)
        if self._problem is None:
            best = best_of(self._shard, placed, self._buffers)
            score = float(best.scores.sum())
            return LabelledSegments(best.segments, None), score, score
        potentials = self._shard.potentials(placed, self._buffers)
        problem, joint = self._problem, weights[self._local.n_local :]
        subproblem = SegmentationSubproblem(
            potentials, self._buffers.automaton, problem.vertices, self._buffers
        )
        decoding = self._decoder.decode(problem.instance(joint), subproblem)
        return (
            LabelledSegments(subproblem.best.segments, decoding.assignment),
            decoding.primal,
            decoding.bound,
        )

    def counts(self, output: LabelledSegments) -> tuple[NDArray[np.int32], Vector]:
        """Local features, and joint ones with numbers from F on."""
        if output is self.gold:
            self._gold_counts = self._gold_counts or self._counts(output)
            return self._gold_counts
        return self._counts(output)

    def loss(self, output: LabelledSegments) -> float:
        """Segments that are not in the annotation."""
        return float(len(_rows(output.segments) - _rows(self.gold.segments)))

    def _counts(self, output: LabelledSegments) -> tuple[NDArray[np.int32], Vector]:
        features, counts = self._local.counts(self._shard, output.segments)
        if self._problem is None or output.assignment is None:
            return features, counts
        more, how_often = self._problem.counts(output.assignment)
        return np.concatenate([features, more + np.int32(self._local.n_local)]), np.concatenate(
            [counts, how_often]
        )


def _rows(segments: Segments) -> set[tuple[int, ...]]:
    sequence = np.repeat(np.arange(len(segments.offsets) - 1), np.diff(segments.offsets))
    return set(
        zip(
            sequence.tolist(),
            segments.start.tolist(),
            segments.end.tolist(),
            segments.label.tolist(),
        )
    )
