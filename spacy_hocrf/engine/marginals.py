"""Probability of given segments, and of given runs of one-token segments.

A segment of one token, where all are, is one entry of the potentials with score 0: its expected
count is its probability. In a CRF a span is a sequence of labels; its probability is a ratio of two partition
functions, and the constrained one is summed over a window only, between alpha to its left and beta
to its right.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

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
from spacy_hocrf.engine.probable import probabilities
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Potentials, Segmentation

__all__ = ["Window", "segment_marginals", "window_marginals"]


@dataclass(frozen=True)
class Window:
    """A stretch of a sequence in which only some labels are allowed."""

    sequence: int
    start: int  # first token inside the sequence
    allowed: NDArray[np.uint8]  # [length, Y] bits


def segment_marginals(
    potentials: Potentials,
    automaton: Automaton,
    segmentations: Sequence[Segmentation],
    *,
    buffers: Buffers | None = None,
) -> list[NDArray[np.float64]]:
    """P(segment | sequence) of some segments of each sequence (Nguyen et al., JMLR 15, §2.3.2).

    potentials (Potentials): D sequences.
    automaton (Automaton): states and arcs.
    segmentations (Sequence[Segmentation]): D lists of segments, with positions inside the sequence.
    buffers (Optional[Buffers]): of this thread and automaton, to be used again.
    RETURNS (list[float64 [n]]): a probability for each, 0 for a segment that is not allowed.
    RAISES (ValueError): H139 for segments that are outside their sequence, or of no label; H004,
        H005, H006, H009 or H138 for potentials that do not fit.
    """
    buffers = buffers or Buffers(automaton)
    shape, constants = buffers.shape(potentials), buffers.constants
    problem = Problem(potentials, automaton, shape=shape, constants=constants)
    _check_segments(potentials, automaton, segmentations)
    ends = offsets_of([len(segments) for segments in segmentations])
    if (automaton.limits != 1).any():
        flat = chain.from_iterable(chain.from_iterable(segmentations))
        segments = np.fromiter(flat, dtype=np.int64).reshape(-1, 3)
        found = np.clip(probabilities(problem, ends, segments, buffers), 0.0, 1.0)
    else:
        found = _expected(potentials, automaton, segmentations, buffers)
    return [found[a:b] for a, b in pairwise(ends)]


def window_marginals(
    potentials: Potentials,
    automaton: Automaton,
    windows: Sequence[Window],
    *,
    buffers: Buffers | None = None,
) -> NDArray[np.float64]:
    """P(the labels inside the window are allowed ones | sequence), for segments of one token.

    potentials (Potentials): D sequences of a CRF.
    automaton (Automaton): states and arcs; every limit is 1.
    windows (Sequence[Window]): what to ask; they may overlap.
    buffers (Optional[Buffers]): of this thread and automaton, to be used again.
    RETURNS (float64 [len(windows)]): probabilities, 0 in a sequence without an allowed
        segmentation.
    RAISES (ValueError): H139 for windows that are outside their sequence or have other extents, and
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
    segmentations: Sequence[Segmentation],
    buffers: Buffers,
) -> NDArray[np.float64]:
    """Expected counts of the segments as entries of the potentials, float64 [all segments]."""
    firsts = potentials.offsets[:-1]
    asked = [
        (first + s.start, first + s.end, s.label)
        for first, ss in zip(firsts, segmentations)
        for s in ss
    ]
    rows = np.array(asked, dtype=np.int64).reshape(-1, 3)
    start = np.concatenate([potentials.span_start, rows[:, 0]])
    end = np.concatenate([potentials.span_end, rows[:, 1]])
    order = np.lexsort((end, start))
    pattern = np.concatenate([potentials.span_pattern, rows[:, 2].astype(np.int32)])
    score = np.concatenate([potentials.span_score, np.zeros(len(rows))])
    watched = replace(
        potentials,
        span_start=start[order],
        span_end=end[order],
        span_pattern=pattern[order],
        span_score=score[order],
    )
    counts = np.zeros(len(order))
    counts[order] = expectations(watched, automaton, buffers=buffers).span
    return np.asarray(np.clip(counts[len(potentials.span_start) :], 0.0, 1.0))


def _check_segments(
    potentials: Potentials, automaton: Automaton, segmentations: Sequence[Segmentation]
) -> None:
    bounds = potentials.offsets.tolist()
    if len(segmentations) != len(bounds) - 1:
        found, expected = f"{len(segmentations)} segmentations", f"{len(bounds) - 1} sequences"
        raise ValueError(Errors.H139.format(found=found, expected=expected))
    n_labels = len(automaton.limits)
    for (first, last), segments in zip(pairwise(bounds), segmentations):
        for segment in segments:
            start, end, label = segment
            if not (0 <= start < end <= last - first and 0 <= label < n_labels):
                expected = f"{last - first} tokens and {n_labels} labels"
                raise ValueError(Errors.H139.format(found=segment, expected=expected))


def _check_windows(potentials: Potentials, automaton: Automaton, windows: Sequence[Window]) -> None:
    if (automaton.limits != 1).any():
        found, expected = "windows", "segments of several tokens"
        raise ValueError(Errors.H139.format(found=found, expected=expected))
    lengths, n_labels = np.diff(potentials.offsets).tolist(), len(automaton.limits)
    for sequence, start, allowed in ((w.sequence, w.start, w.allowed) for w in windows):
        known = 0 <= sequence < len(lengths)
        if (
            not known
            or not 0 <= start <= lengths[sequence] - len(allowed)
            or (allowed.dtype, allowed.shape[1:]) != (np.dtype(np.uint8), (n_labels,))
        ):
            found = f"a window from {start} of {allowed.dtype} {allowed.shape}"
            inside = f"of {lengths[sequence]} tokens" if known else f"(not one of {len(lengths)})"
            expected = f"{n_labels} labels, sequence {sequence} {inside}"
            raise ValueError(Errors.H139.format(found=found, expected=expected))


def _take(
    potentials: Potentials,
    tokens: NDArray[np.int64],
    lengths: NDArray[np.int64],
    allowed: NDArray[np.uint8],
) -> Potentials:
    """The potentials of chosen tokens, as sequences of the given lengths; tokens may occur several
    times.
    """
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
