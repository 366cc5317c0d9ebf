"""Joint decoding of Docs: the exact semi-CRF is the first subproblem of a dual decomposition, the
joint patterns are the others.

Afterwards it is known whether an answer is the best one: bound ≥ optimum ≥ score, and with a
certificate they are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.prediction import Trace
from spacy_hocrf.answers.predictor import Revised
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.engine.selection import joined_segments, select_segments, select_sequences
from spacy_hocrf.engine.viterbi import Best
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.graph.dual import dual_decompose
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.result import Decoding
from spacy_hocrf.graph.settings import DualSettings
from spacy_hocrf.graph.subproblems import FirstSubproblem
from spacy_hocrf.joint.chain import SegmentationSubproblem
from spacy_hocrf.joint.features import JointFeatures
from spacy_hocrf.joint.problems import JointProblem
from spacy_hocrf.joint.rewards import RewardedPotentials
from spacy_hocrf.rules.compiled import CompiledRules
from spacy_hocrf.rules.search import BoundedBest, RuledSearch
from spacy_hocrf.types import Potentials

__all__ = ["DualDecomposition", "JointDecoder"]

CHAIN = "chain"
"""The kind of decoder that ignores joint features."""


@dataclass(frozen=True, kw_only=True)
class DualDecomposition(DualSettings):
    """`spacy-hocrf.DualDecomposition.v1`: how Docs that joint patterns connect are decoded (Qian
    and Liu, TACL 2 (2014) §3).

    kind (str): as in `DualSettings`, or "chain", which ignores the patterns.
    max_group_tokens (int): larger groups are split between Docs, with a warning; single Docs are never
        split.
    trace (bool): set `doc._.hocrf_trace` to the lowest bound and the highest score so far, after each
        iteration.
    All other settings are those of `DualSettings`.
    RAISES (ValueError): H087 for an unknown word, H088 for a number out of range.
    """

    max_iterations: int = 200
    max_group_tokens: int = 5000
    trace: bool = False

    kinds: ClassVar[Sequence[str]] = (*DualSettings.kinds, CHAIN)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_count("max_group_tokens")

    @property
    def ignores_patterns(self) -> bool:
        """Is every Doc decoded by itself?"""
        return self.kind == CHAIN

    def decode(self, instance: GraphInstance, first: FirstSubproblem) -> Decoding:
        """Return the best assignment found; `first` has kept the segmentations that belong to it."""
        return dual_decompose(instance, self, first=first)


@dataclass(frozen=True)
class JointDecoder:
    """Joint features with their weights, and decoding settings.

    weights (float64 [G]): weights of the features.
    rules (CompiledRules): rules on segmentations. pool (BufferPool): buffers for the searches.
    """

    features: JointFeatures
    weights: NDArray[np.float64]
    settings: DualDecomposition
    rules: CompiledRules
    pool: BufferPool

    def decode(
        self,
        groups: NDArray[np.int64],
        batch: TokenBatch,
        potentials: Potentials,
        automaton: Automaton,
        best: Best | BoundedBest,
    ) -> Revised:
        """Find better segmentations than those that ignore the patterns; and reward potentials of each Doc
        for the patterns that agree with the decoded states of all other places.

        groups (int64 [D]): number of each Doc's group, ascending.
        batch (TokenBatch): D Docs.
        potentials (Potentials): potentials of the Docs; each has an allowed segmentation, except those
            without words whose rules demand a span.
        best (Best): the best segmentation of each Doc alone, under the rules.
        """
        n = len(batch.offsets) - 1
        gap = np.zeros(n)
        if isinstance(best, BoundedBest):
            np.subtract(best.bounds, best.scores, out=gap, where=best.bounds > -np.inf)
        certificate = gap <= self.settings.tolerance
        traces: list[Trace] = [()] * n
        decoded: list[tuple[NDArray[np.int64], Best | BoundedBest]] = []
        patterns = self.features.patterns(batch, groups, self.weights != 0)
        finite = np.where(np.isinf(self.weights), 0.0, self.weights)
        with self.pool.lend(automaton) as buffers:
            for problem in patterns.divided():
                subproblem = SegmentationSubproblem(
                    select_sequences(potentials, problem.sequences),
                    automaton,
                    problem.vertices,
                    buffers,
                    self._search(len(problem.sequences)),
                )
                weights = self._finite(problem, subproblem)
                finite = np.where(np.abs(weights) > np.abs(finite), weights, finite)
                decoding = self.settings.decode(problem.instance(weights), subproblem)
                gap[problem.sequences] = decoding.gap
                certificate[problem.sequences] = decoding.certificate
                for sequence in problem.sequences.tolist():
                    traces[sequence] = decoding.trace
                decoded.append((problem.sequences, subproblem.best))
        joint = _replaced(best, decoded)
        if decoded:
            problem = patterns.undivided()
            rewarded = RewardedPotentials(potentials, automaton.limits, problem.vertices)
            rewarded.put(problem.rewards(problem.vertices.states_in(joint.segments), finite))
            potentials = rewarded.potentials
        keeps_best = bool(np.isinf(self.weights).any())
        shown = traces if self.settings.trace else [None] * n
        return Revised(joint, potentials, keeps_best, gap, certificate, shown)

    def _finite(
        self, problem: JointProblem, subproblem: SegmentationSubproblem
    ) -> NDArray[np.float64]:
        """Replace infinite weights by numbers that outweigh everything else together: then the best
        segmentations satisfy as many of these patterns as possible.
        """
        weights, endless = self.weights, np.isinf(self.weights)
        if not endless[problem.feature].any():
            return weights
        others = np.abs(weights[problem.feature][~endless[problem.feature]]).sum()
        others += self.rules.prices[~self.rules.hard].sum() * len(problem.sequences)
        large = 1.0 + others + subproblem.spread()
        return np.where(endless, np.copysign(large, weights), weights)

    def _search(self, n: int) -> RuledSearch | None:
        needed = np.zeros((n, len(self.rules.rules)), dtype=bool)
        return RuledSearch(self.rules, needed, self.pool) if self.rules.prices.any() else None


def _replaced(
    best: Best | BoundedBest, decoded: Sequence[tuple[NDArray[np.int64], Best | BoundedBest]]
) -> Best:
    """Replace the best segmentations of some sequences.

    decoded (Sequence[Tuple[int64 [n], Best]]): numbers of sequences, and their segmentations; every
        sequence at most once.
    """
    # where the segments of each sequence are, among those of all parts
    place, scores = np.arange(len(best.scores)), best.scores.copy()
    n_parts = len(place)
    for numbers, part in decoded:
        place[numbers] = n_parts + np.arange(len(numbers))
        scores[numbers] = part.scores
        n_parts += len(numbers)
    segments = joined_segments([best.segments, *(part.segments for _, part in decoded)])
    return Best(select_segments(segments, place), scores)
