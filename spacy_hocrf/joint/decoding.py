"""Decoding Docs together: the exact semi-CRF is the first subproblem of a dual decomposition, the
global patterns are the others.

Whether an answer is the best one is known afterwards: bound ≥ optimum ≥ score, and with a
certificate they are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.selection import select_sequences
from spacy_hocrf.engine.viterbi import Best
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.graph.decomposition import KINDS
from spacy_hocrf.graph.dual import ILP, check_settings, dual_decompose
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.graph.result import Decoding
from spacy_hocrf.graph.subproblems import FirstSubproblem
from spacy_hocrf.joint.chain import SegmentationSubproblem
from spacy_hocrf.joint.features import GlobalFeatures
from spacy_hocrf.types import Potentials, Segments

__all__ = ["DualDecomposition", "Joint", "JointDecoder", "make_dual_decomposition"]

CHAIN = "chain"
"""The kind of decoder that ignores global features."""


@dataclass(frozen=True)
class DualDecomposition:
    """How documents are decoded together; see `make_dual_decomposition`."""

    kind: str
    max_iterations: int
    step: str
    step_size: float | None
    tolerance: float
    local_search: bool
    fallback: str | None
    time_limit: float
    max_group_tokens: int

    @property
    def ignores_patterns(self) -> bool:
        """Is every Doc decoded by itself?"""
        return self.kind == CHAIN

    def decode(self, instance: GraphInstance, first: FirstSubproblem) -> Decoding:
        """The best assignment found; `first` has kept what belongs to it."""
        return dual_decompose(
            instance,
            kind=self.kind,
            step=self.step,
            step_size=self.step_size,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
            local_search=self.local_search,
            fallback=self.fallback,
            time_limit=self.time_limit,
            first=first,
        )


class Joint(NamedTuple):
    """Best segmentations of D Docs, and what is proved about them: of the Docs that were decoded
    together.
    """

    best: Best
    # [D] no segmentations score higher by more, nats; 0 for Docs without a pattern
    gap: NDArray[np.float64]
    certificate: NDArray[np.bool_]  # [D] proved to be the best ones?


@dataclass(frozen=True)
class JointDecoder:
    """Global features with their weights, and how to decode.

    weights (float64 [G]): of the features.
    """

    features: GlobalFeatures
    weights: NDArray[np.float64]
    settings: DualDecomposition

    def decode(
        self,
        batch: TokenBatch,
        groups: NDArray[np.int64],
        potentials: Potentials,
        automaton: Automaton,
        best: Best,
    ) -> Joint:
        """Put better segmentations in the place of those that ignore the patterns.

        batch (TokenBatch): D Docs.
        groups (int64 [D]): number of each Doc's group, ascending.
        potentials (Potentials): of the Docs; each has an allowed segmentation.
        best (Best): the Docs' best segmentations, each by itself.
        """
        n = len(batch.offsets) - 1
        gap, certificate = np.zeros(n), np.ones(n, dtype=bool)
        found: list[tuple[NDArray[np.int64], Best]] = []
        for problem in self.features.problems(batch, groups, self.weights != 0):
            subproblem = SegmentationSubproblem(
                select_sequences(potentials, problem.sequences),
                automaton,
                segments=problem.segments,
                tokens=problem.tokens,
            )
            decoding = self.settings.decode(problem.instance(self.weights), subproblem)
            gap[problem.sequences], certificate[problem.sequences] = (
                decoding.gap,
                decoding.certificate,
            )
            found.append((problem.sequences, subproblem.best))
        return Joint(_replaced(best, found), gap, certificate)


def make_dual_decomposition(
    kind: str = "hybrid",
    max_iterations: int = 200,
    step: str = "harmonic",
    step_size: float | None = None,
    tolerance: float = 1e-6,
    local_search: bool = True,
    fallback: str | None = None,
    time_limit: float = 10.0,
    max_group_tokens: int = 5000,
) -> DualDecomposition:
    """`spacy-hocrf.DualDecomposition.v1`: how Docs that global patterns connect are decoded (Qian
    and Liu, TACL 2 (2014) §3).

    kind (str): "hybrid", "two_slave" as in the paper, "naive", "ilp" for integer linear programming
        (extra `ilp`), or "chain", which ignores the patterns.
    max_iterations (int): at most; decoding ends earlier with a certificate.
    step (str): "harmonic", "geometric" or "polyak".
    step_size (Optional[float]): first step; null: the mean absolute weight of the patterns.
    tolerance (float): a gap below it, in nats, is a certificate.
    local_search (bool): improve the best segmentations found by small changes.
    fallback (Optional[str]): "ilp" solves exactly what has no certificate (extra `ilp`); null
        leaves it.
    time_limit (float): of each integer linear program, seconds.
    max_group_tokens (int): larger groups are split between Docs, with a warning; a Doc by itself
        never is.
    RETURNS (DualDecomposition): the settings.
    RAISES (ValueError): H087 for an unknown word, H088 for a number out of range.
    """
    settings = DualDecomposition(
        kind=kind,
        max_iterations=max_iterations,
        step=step,
        step_size=step_size,
        tolerance=tolerance,
        local_search=local_search,
        fallback=fallback,
        time_limit=time_limit,
        max_group_tokens=max_group_tokens,
    )
    check_settings(
        kind=kind,
        step=step,
        step_size=step_size,
        max_iterations=max_iterations,
        tolerance=tolerance,
        fallback=fallback,
        time_limit=time_limit,
        kinds=(*KINDS, ILP, CHAIN),
    )
    if max_group_tokens < 1:
        raise ValueError(
            Errors.H088.format(
                name="max_group_tokens", found=max_group_tokens, expected="at least 1"
            )
        )
    return settings


def _replaced(best: Best, found: Sequence[tuple[NDArray[np.int64], Best]]) -> Best:
    """The same segmentations with those of some sequences exchanged.

    found (Sequence[Tuple[int64 [n], Best]]): numbers of sequences, and their segmentations; every
        sequence at most once.
    """
    if not found:
        return best
    counts = np.diff(best.segments.offsets)
    stays = np.ones(len(counts), dtype=bool)
    scores = best.scores.copy()
    sequence, parts = [np.repeat(np.arange(len(counts)), counts)], [best.segments]
    for numbers, part in found:
        stays[numbers] = False
        scores[numbers] = part.scores
        sequence.append(np.repeat(numbers, np.diff(part.segments.offsets)))
        parts.append(part.segments)
    kept = np.concatenate(
        [stays[sequence[0]], *(np.ones(len(each), dtype=bool) for each in sequence[1:])]
    )
    owner = np.concatenate(sequence)[kept]
    start, end, label = (
        np.concatenate([getattr(part, name) for part in parts])[kept]
        for name in ("start", "end", "label")
    )
    order = np.argsort(owner, kind="stable")
    offsets = np.searchsorted(owner[order], np.arange(len(counts) + 1))
    return Best(Segments(offsets, start[order], end[order], label[order]), scores)
