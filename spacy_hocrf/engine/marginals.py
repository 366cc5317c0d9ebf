"""Probabilities of given segments, and of given runs of one-token segments.

If all segments have one token, a segment is an entry of the potentials with score 0, and its expected
count is its probability. In a CRF a span is a sequence of labels; its probability is a ratio of two
partition functions, of which the constrained one is summed only over a window, between alpha to its
left and beta to its right.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import (
    Buffers,
    expectations,
    log_partition,
    log_state_scores,
)
from spacy_hocrf.engine.probable import Starts, probabilities
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Potentials, Segments

__all__ = ["SegmentMarginals", "Window", "segment_marginals", "window_marginals"]


@dataclass(frozen=True)
class Window:
    """A stretch of a sequence in which only some labels are allowed."""

    sequence: int
    start: int  # first token in the sequence
    allowed: NDArray[np.uint8]  # [length, Y] bits


class SegmentMarginals(NamedTuple):
    """Probabilities of n segments of D sequences."""

    probability: NDArray[np.float64]  # [n]
    log_partition: NDArray[np.float64]  # [D] log Z


def segment_marginals(
    potentials: Potentials,
    automaton: Automaton,
    segments: Segments,
    *,
    starts: Starts | None = None,
    buffers: Buffers | None = None,
) -> SegmentMarginals:
    """Return P(segment | sequence) of segments of each sequence (Nguyen et al., JMLR 15, §2.3.2).

    potentials (Potentials): D sequences.
    automaton (Automaton): states and arcs.
    segments (Segments): segments of the D sequences, n in all; they may overlap.
    starts (Optional[Starts]): as in `probable_spans`; None if every segment has one token.
    buffers (Optional[Buffers]): buffers of this thread and automaton, for reuse.
    RETURNS (SegmentMarginals): probabilities, 0 for a segment that is not allowed.
    RAISES (ValueError): H139 for segments that are outside their sequence, or without a valid label; H004,
        H005, H006, H009 or H138 for potentials that do not fit.
    """
    buffers = buffers or Buffers(automaton)
    problem = Problem(potentials, automaton, constants=buffers.constants)
    _check_segments(potentials, automaton, segments)
    if (automaton.limits != 1).any():
        probability, log_z = probabilities(problem, segments, starts, buffers)
    else:
        assert starts is None
        probability, log_z = _expected(potentials, automaton, segments, buffers)
    return SegmentMarginals(np.clip(probability, 0.0, 1.0), log_z)


def window_marginals(
    potentials: Potentials,
    automaton: Automaton,
    windows: Sequence[Window],
    *,
    buffers: Buffers | None = None,
) -> NDArray[np.float64]:
    """Return P(the labels in the window are allowed ones | sequence), for segments of one token.

    potentials (Potentials): D sequences of a CRF.
    automaton (Automaton): states and arcs; every limit is 1.
    windows (Sequence[Window]): the windows; they may overlap.
    buffers (Optional[Buffers]): buffers of this thread and automaton, for reuse.
    RETURNS (float64 [len(windows)]): probabilities, 0 in a sequence without an allowed
        segmentation.
    RAISES (ValueError): H139 for windows that are outside their sequence or have another shape, and
        for an automaton with longer segments; H004, H005, H006, H009 or H138 for potentials that do
        not fit.
    """
    if not windows:
        return np.zeros(0)
    log_alpha, log_beta = log_state_scores(potentials, automaton, buffers=buffers)
    _check_windows(potentials, automaton, windows)
    sequence = np.array([window.sequence for window in windows])
    first = potentials.offsets[sequence] + np.array([window.start for window in windows])
    lengths = np.array([len(window.allowed) for window in windows])
    tokens = np.concatenate([np.arange(a, a + n) for a, n in zip(first, lengths)])
    allowed = potentials.allowed[tokens] & np.concatenate([window.allowed for window in windows])
    initial = log_alpha[first + sequence]
    final = log_beta[first + lengths + sequence]
    inside = log_partition(
        _take(potentials, tokens, lengths, allowed),
        automaton,
        initial=initial,
        final=final,
        buffers=buffers,
    )
    ends = potentials.offsets[sequence + 1] + sequence
    total = np.logaddexp.reduce(log_alpha[ends] + log_beta[ends], axis=1)
    return np.exp(np.minimum(inside - np.where(np.isneginf(total), 0.0, total), 0.0))


def _expected(
    potentials: Potentials,
    automaton: Automaton,
    segments: Segments,
    buffers: Buffers,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Expected counts of segments as entries of the potentials, float64 [n], and log Z of each
    sequence, float64 [D].
    """
    # the segments become spans with score 0 among those of the potentials, sorted by start and end
    first = np.repeat(potentials.offsets[:-1], np.diff(segments.offsets))
    start = np.concatenate([potentials.span_start, first + segments.start])
    end = np.concatenate([potentials.span_end, first + segments.end])
    order = np.lexsort((end, start))
    pattern = np.concatenate([potentials.span_pattern, segments.label])
    score = np.concatenate([potentials.span_score, np.zeros(len(first))])
    watched = replace(
        potentials,
        span_start=start[order],
        span_end=end[order],
        span_pattern=pattern[order],
        span_score=score[order],
    )
    expected, counts = expectations(watched, automaton, buffers=buffers), np.zeros(len(order))
    counts[order] = expected.span
    return counts[len(potentials.span_start) :], expected.log_partition


def _check_segments(potentials: Potentials, automaton: Automaton, segments: Segments) -> None:
    lengths, n_labels = np.diff(potentials.offsets), len(automaton.limits)
    offsets, start, end, label = segments
    if len(offsets) != len(lengths) + 1:
        found, expected = f"{len(offsets) - 1} segmentations", f"{len(lengths)} sequences"
        raise ValueError(Errors.H139.format(found=found, expected=expected))
    length = np.repeat(lengths, np.diff(offsets))
    fits = (0 <= start) & (start < end) & (end <= length) & (0 <= label) & (label < n_labels)
    for i in np.flatnonzero(~fits).tolist():
        expected = f"{length[i]} tokens and {n_labels} labels"
        found = f"label {label[i]} from {start[i]} to {end[i]}"
        raise ValueError(Errors.H139.format(found=found, expected=expected))


def _check_windows(potentials: Potentials, automaton: Automaton, windows: Sequence[Window]) -> None:
    if (automaton.limits != 1).any():
        found, expected = "windows", "segments of several tokens"
        raise ValueError(Errors.H139.format(found=found, expected=expected))
    lengths, n_labels = np.diff(potentials.offsets).tolist(), len(automaton.limits)
    for sequence, start, allowed in ((w.sequence, w.start, w.allowed) for w in windows):
        exists = 0 <= sequence < len(lengths)
        if (
            not exists
            or not 0 <= start <= lengths[sequence] - len(allowed)
            or (allowed.dtype, allowed.shape[1:]) != (np.dtype(np.uint8), (n_labels,))
        ):
            found = f"a window from {start} of {allowed.dtype} {allowed.shape}"
            inside = f"of {lengths[sequence]} tokens" if exists else f"(not one of {len(lengths)})"
            expected = f"{n_labels} labels, sequence {sequence} {inside}"
            raise ValueError(Errors.H139.format(found=found, expected=expected))


def _take(
    potentials: Potentials,
    tokens: NDArray[np.int64],
    lengths: NDArray[np.int64],
    allowed: NDArray[np.uint8],
) -> Potentials:
    """Select tokens from potentials, as sequences of the given lengths; tokens may occur several
    times.
    """
    # the rows of the tokens, and the spans that begin at them and have one token
    counts = np.diff(potentials.row_offsets)[tokens]
    rows = ranges(potentials.row_offsets[tokens], counts)
    span_first = np.searchsorted(potentials.span_start, tokens)
    span_counts = np.searchsorted(potentials.span_start, tokens, side="right") - span_first
    spans = ranges(span_first, span_counts)
    span_start = np.repeat(np.arange(len(tokens)), span_counts)
    one = potentials.span_end[spans] - potentials.span_start[spans] == 1
    return Potentials(
        offsets=offsets_of(lengths),
        const=potentials.const,
        start=None if potentials.start is None else potentials.start[tokens],
        end=None if potentials.end is None else potentials.end[tokens],
        token=potentials.token[tokens],
        inner=None if potentials.inner is None else potentials.inner[tokens],
        row_offsets=offsets_of(counts),
        row_part=potentials.row_part[rows],
        row_pattern=potentials.row_pattern[rows],
        row_score=potentials.row_score[rows],
        length_pattern=potentials.length_pattern,
        length_score=potentials.length_score,
        span_start=span_start[one],
        span_end=span_start[one] + 1,
        span_pattern=potentials.span_pattern[spans][one],
        span_score=potentials.span_score[spans][one],
        allowed=allowed,
    )
