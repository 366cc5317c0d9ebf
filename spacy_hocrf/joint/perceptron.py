"""The averaged perceptron over local and global weights together, as in Qian and Liu, TACL 2 (2014)
§4.

Documents that global patterns connect are decoded together, all others by themselves. One update
for each wrong decoding moves the weights of all features, local and global, by what the annotation
has more of. An update needs a violation, see `graph.perceptron`.

Extents: F local weights, then G global ones.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.perceptron import GraphPerceptron
from spacy_hocrf.joint.chain import SegmentationSubproblem
from spacy_hocrf.joint.connected import connected_documents
from spacy_hocrf.joint.decoding import DualDecomposition
from spacy_hocrf.joint.features import GlobalFeatures
from spacy_hocrf.joint.problems import JointProblem
from spacy_hocrf.joint.templates import GlobalTemplate
from spacy_hocrf.model.placement import CompiledIndex, Placed
from spacy_hocrf.model.structure import Structure
from spacy_hocrf.pipeline.corpus import Corpus, CorpusShard
from spacy_hocrf.pipeline.learning import Learner
from spacy_hocrf.training.perceptron import AveragedPerceptronTrainer, PerceptronRun
from spacy_hocrf.types import Scratch, Segments

__all__ = [
    "JointPerceptron",
    "JointRun",
    "JointSettings",
    "LabelledDocuments",
    "LabelledSegments",
    "LocalWeights",
]

Vector = NDArray[np.float64]

BATCH_DOCUMENTS = 500
"""Documents whose features are extracted together."""


class JointPerceptron:
    """What a `PerceptronRun` goes through, with documents that are decoded together.

    structure (Structure): the local model; automaton (Automaton): its arcs.
    corpus (Corpus): the completely annotated documents of it are learnt from.
    features (GlobalFeatures): what connects them.
    decoder (DualDecomposition): how they are decoded.
    weights (float64 [F]), global_weights (float64 [G]): where to start.
    nonnegative (bool): keep the global weights at 0 or above.
    bounded (bool): no update is larger than need be.
    """

    def __init__(
        self,
        structure: Structure,
        automaton: Automaton,
        corpus: Corpus,
        features: GlobalFeatures,
        decoder: DualDecomposition,
        weights: Vector,
        global_weights: Vector,
        *,
        nonnegative: bool,
        bounded: bool,
    ) -> None:
        assert structure.compiled is not None
        self._n_local = len(weights)
        local = LocalWeights(structure.compiled, self._n_local)
        groups, alone = connected_documents(corpus, features, most=decoder.max_group_tokens)
        shards: list[tuple[CorpusShard, JointProblem | None]] = [
            (CorpusShard(structure, corpus, part.documents), part.problem)
            for group in groups
            for part in group
        ]
        for first in range(0, len(alone), BATCH_DOCUMENTS):
            batch = alone[first : first + BATCH_DOCUMENTS]
            together = CorpusShard(structure, corpus, batch)
            shards += ((together.only(i), None) for i in range(len(batch)))
        self._tasks = [
            LabelledDocuments(shard, problem, automaton, decoder, local)
            for shard, problem in shards
        ]
        start = np.concatenate([weights, global_weights])
        mask = np.arange(len(start)) >= self._n_local if nonnegative else None
        self._perceptron = GraphPerceptron(self._tasks, start, nonnegative=mask, bounded=bounded)

    def __len__(self) -> int:
        """Number of decodings in an epoch."""
        return len(self._tasks)

    @property
    def average(self) -> Vector:
        """The averaged local weights, float64 [F]."""
        return self._perceptron.average[: self._n_local]

    @property
    def global_average(self) -> Vector:
        """The averaged global weights, float64 [G]."""
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
        self._collected = compiled.nothing()

    def placed(self, weights: Vector) -> Placed:
        """Of float64 weights [F + G]."""
        if not np.array_equal(self._weights, weights[: self.n_local]):
            self._weights[:] = weights[: self.n_local]
            self._placed = self._compiled.place_weights(self._weights, self._placed)
        return self._placed

    def counts(self, shard: CorpusShard, segments: Segments) -> tuple[NDArray[np.int32], Vector]:
        """Local features of segmentations of all documents of a shard, each once, and their counts."""
        shard.add_segments_into(segments, 1.0, self._counts)
        features, counts = self._compiled.add_into(self._collected, self._counts)
        fires = counts != 0
        return features[fires], counts[fires]


class LabelledSegments(NamedTuple):
    """An output: segmentations of some documents, and the states of the vertices in them."""

    segments: Segments
    assignment: NDArray[np.int32] | None  # [N] None without a vertex


class LabelledDocuments:
    """Completely annotated documents that are decoded together: a `graph.learning.Task` over all
    features.

    shard (CorpusShard): the documents.
    problem (Optional[JointProblem]): what connects them; None for a single one.
    automaton (Automaton), decoder (DualDecomposition): how they are decoded.
    local (LocalWeights): of all tasks.
    """

    def __init__(
        self,
        shard: CorpusShard,
        problem: JointProblem | None,
        automaton: Automaton,
        decoder: DualDecomposition,
        local: LocalWeights,
    ) -> None:
        gold = shard.gold()
        assert gold is not None
        self._shard = shard
        self._problem = problem
        self._automaton = automaton
        self._decoder = decoder
        self._local = local
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
        potentials = self._shard.potentials(self._local.placed(weights), Scratch())
        if self._problem is None:
            best = viterbi(potentials, self._automaton)
            for bad in np.flatnonzero(np.isneginf(best.scores)).tolist():
                raise ValueError(Errors.H007.format(text=self._shard.describe(bad)))
            score = float(best.scores.sum())
            return LabelledSegments(best.segments, None), score, score
        problem = self._problem
        subproblem = SegmentationSubproblem(potentials, self._automaton, problem.vertices)
        decoding = self._decoder.decode(
            problem.instance(weights[self._local.n_local :]), subproblem
        )
        return (
            LabelledSegments(subproblem.best.segments, decoding.assignment),
            decoding.primal,
            decoding.bound,
        )

    def counts(self, output: LabelledSegments) -> tuple[NDArray[np.int32], Vector]:
        """Local features, and global ones with numbers from F on."""
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


class JointSettings(NamedTuple):
    """How the perceptron learns local and global weights together."""

    templates: tuple[GlobalTemplate, ...]
    decoder: DualDecomposition
    nonnegative: bool
    bounded: bool
    global_weights: Callable[[], NDArray[np.float64]]  # where to start, float64 [G]

    def begin(self, learner: Learner) -> "JointRun":
        """The epochs from the learner's weights on."""
        features = GlobalFeatures(self.templates, learner.scheme)
        perceptron = JointPerceptron(
            learner.structure,
            learner.automaton,
            learner.corpus,
            features,
            self.decoder,
            learner.weights,
            self.global_weights(),
            nonnegative=self.nonnegative,
            bounded=self.bounded,
        )
        trainer: Any = learner.trainer  # the component takes no other beside these settings
        return JointRun(trainer, perceptron)


class JointRun(PerceptronRun):
    """The epochs of a perceptron that has global weights, too.

    trainer (AveragedPerceptronTrainer): settings.
    perceptron (JointPerceptron): the corpus, and where to start.
    """

    def __init__(self, trainer: AveragedPerceptronTrainer, perceptron: JointPerceptron) -> None:
        super().__init__(trainer, perceptron)
        self._joint = perceptron

    @property
    def global_weights(self) -> NDArray[np.float64]:
        """The average so far, float64 [G]."""
        return self._joint.global_average
