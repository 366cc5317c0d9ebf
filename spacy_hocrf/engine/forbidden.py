"""Structural zeros beyond the bits of `allowed`: forbidden segments, and label patterns forbidden at
certain places, which get the score -inf, or some other score; and sums over the segmentations that agree
with such annotation:

    log Z(w; segmentations that agree),   and how often every entry of the potentials then fires

With scores that do not depend on the weights w, these are *soft targets*, a distribution q.
Their loss is a cross-entropy, which except for log Z is linear in w, and so convex:

    -Σ_s q(s) log p(s; w) = log Z(w) - w · E_q[counts],    q(s) ∝ exp(score of s) if s agrees
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, expectations, log_partition
from spacy_hocrf.types import START, Expectations, LabelPattern, Potentials

__all__ = ["Forbidden", "ForbiddenPattern", "Observed", "without"]

NO_TOKENS = np.zeros((0, 2), dtype=np.int64)


class ForbiddenPattern(NamedTuple):
    """Forbidden labels of consecutive segments, the last of which is [start, end)."""

    start: int
    end: int
    pattern: LabelPattern
    score: float = -np.inf  # added to the pattern's score; -inf forbids it


class Forbidden(NamedTuple):
    """Labels, segments and label patterns that are forbidden in a batch, so that no text has a span that
    is forbidden; tokens are counted across the batch.
    """

    segments: NDArray[np.int64]  # [m, 3] start, end and label, by start
    patterns: tuple[ForbiddenPattern, ...] = ()  # patterns of two or more labels, by end
    tokens: NDArray[np.int64] = NO_TOKENS  # [n, 2] token and label, where segments have one token
    # [m] scores that are added to segments; -inf forbids them
    scores: NDArray[np.float64] | float = -np.inf

    def added_to(self, patterns: Sequence[LabelPattern]) -> Sequence[LabelPattern]:
        """Return a model's label patterns, followed by those that it lacks."""
        new = {zero.pattern for zero in self.patterns}.difference(patterns)
        return (*patterns, *sorted(new, key=lambda z: (len(z), z))) if new else patterns


@dataclass(frozen=True)
class Observed:
    """The segmentations of a batch that agree with what is known about it.

    allowed (uint8 [N, Y]): bits of what they may have.
    forbidden (Optional[Forbidden]): what they must not have beyond these bits; None for nothing.
    automaton (Optional[Automaton]): automaton whose last label patterns are those of the zeros; None if the
        model has all of these patterns.
    scores (Optional[Potentials]): log scores that replace the batch's potentials, with the same entries;
        None for the model's.
    """

    allowed: NDArray[np.uint8]
    forbidden: Forbidden | None = None
    automaton: Automaton | None = None
    scores: Potentials | None = None

    def log_partition(self, potentials: Potentials, automaton: Automaton) -> NDArray[np.float64]:
        """Return the log of their total score, float64 [D]; -inf where none agrees.

        potentials (Potentials): unconstrained potentials of the batch. automaton (Automaton): theirs.
        """
        extended = self.automaton or automaton
        return log_partition(self._restricted(potentials, extended), extended)

    def expectations(
        self,
        potentials: Potentials,
        automaton: Automaton,
        buffers: Buffers | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> Expectations:
        """Return their log Z, and the expected count of every entry of the potentials.

        potentials (Potentials): unconstrained potentials of the batch. automaton (Automaton): theirs.
        buffers (Optional[Buffers]): buffers of this automaton, see `engine.forward_backward.expectations`.
        weights (Optional[float64 [D]]): factor of the counts of each sequence.
        """
        extended = self.automaton or automaton
        restricted = self._restricted(potentials, extended)
        reused = buffers if extended is automaton else None
        expected = expectations(restricted, extended, buffers=reused, weights=weights)
        if self.forbidden is None:
            return expected
        spans, rows = _places(potentials, self.forbidden)
        return replace(
            expected,
            const=expected.const[: len(potentials.const)],
            row=np.delete(expected.row, rows + np.arange(len(rows))),
            span=np.delete(expected.span, spans + np.arange(len(spans))),
        )

    def _restricted(self, potentials: Potentials, automaton: Automaton) -> Potentials:
        """The potentials, or the scores, with log 0 for all other segmentations."""
        potentials = potentials if self.scores is None else self.scores
        restricted = replace(potentials, allowed=self.allowed)
        if self.forbidden is None:
            return restricted
        # new offsets make it another batch for caches
        restricted = replace(restricted, offsets=restricted.offsets.copy())
        return without(restricted, self.forbidden, automaton.patterns)


def without(
    potentials: Potentials, forbidden: Forbidden, patterns: Sequence[LabelPattern]
) -> Potentials:
    """Insert the structural zeros, except those of single tokens, into the potentials of a batch.

    patterns (Sequence[LabelPattern]): patterns of the potentials, followed by the forbidden ones.
    """
    starts, ends, labels = forbidden.segments.T
    spans, rows = _places(potentials, forbidden)
    potentials = replace(
        potentials,
        span_start=np.insert(potentials.span_start, spans, starts),
        span_end=np.insert(potentials.span_end, spans, ends),
        span_pattern=np.insert(potentials.span_pattern, spans, labels.astype(np.int32)),
        span_score=np.insert(potentials.span_score, spans, forbidden.scores),
    )
    if not forbidden.patterns:
        return potentials
    number = {pattern: z for z, pattern in enumerate(patterns)}
    numbers = np.array([number[zero.pattern] for zero in forbidden.patterns], dtype=np.int32)
    tokens = np.array([zero.start for zero in forbidden.patterns])
    inserted = np.searchsorted(tokens, np.arange(len(potentials.allowed) + 1))
    return replace(
        potentials,
        const=np.append(potentials.const, np.zeros(len(patterns) - len(potentials.const))),
        row_offsets=potentials.row_offsets + inserted,
        row_part=np.insert(potentials.row_part, rows, np.uint8(START)),
        row_pattern=np.insert(potentials.row_pattern, rows, numbers),
        row_score=np.insert(
            potentials.row_score, rows, [zero.score for zero in forbidden.patterns]
        ),
    )


def _places(
    potentials: Potentials, forbidden: Forbidden
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where scores are inserted among those of whole segments, and among rows, int64 [n], ascending."""
    spans = np.searchsorted(potentials.span_start, forbidden.segments[:, 0], side="right")
    tokens = np.array([zero.start for zero in forbidden.patterns], dtype=np.int64)
    return spans.astype(np.int64), potentials.row_offsets[tokens + 1]
