"""Selects sequences of a batch as a batch of their own, and joins the segments of several batches."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.types import Potentials, Segments

__all__ = ["joined_segments", "select_segments", "select_sequences"]


def select_sequences(potentials: Potentials, sequences: NDArray[np.int64]) -> Potentials:
    """Return the log potentials of chosen sequences.

    potentials (Potentials): D sequences.
    sequences (int64 [n]): their numbers, in any order.
    RETURNS (Potentials): n sequences; arrays of tokens, rows and spans are copied.
    """
    # tokens, rows and spans of the sequences, and how far the tokens of each span move
    first = potentials.offsets[sequences]
    lengths = potentials.offsets[sequences + 1] - first
    tokens = ranges(first, lengths)
    row_counts = np.diff(potentials.row_offsets)[tokens]
    rows = ranges(potentials.row_offsets[tokens], row_counts)
    span_first = np.searchsorted(potentials.span_start, first)
    span_counts = np.searchsorted(potentials.span_start, first + lengths) - span_first
    spans = ranges(span_first, span_counts)
    offsets = offsets_of(lengths).astype(potentials.offsets.dtype)
    shift = np.repeat(offsets[:-1] - first, span_counts)
    return replace(
        potentials,
        offsets=offsets,
        start=None if potentials.start is None else potentials.start[tokens],
        end=None if potentials.end is None else potentials.end[tokens],
        token=potentials.token[tokens],
        inner=None if potentials.inner is None else potentials.inner[tokens],
        row_offsets=offsets_of(row_counts).astype(potentials.row_offsets.dtype),
        row_part=potentials.row_part[rows],
        row_pattern=potentials.row_pattern[rows],
        row_score=potentials.row_score[rows],
        span_start=potentials.span_start[spans] + shift,
        span_end=potentials.span_end[spans] + shift,
        span_pattern=potentials.span_pattern[spans],
        span_score=potentials.span_score[spans],
        allowed=potentials.allowed[tokens],
    )


def select_segments(segments: Segments, sequences: NDArray[np.int64]) -> Segments:
    """Return the segments of chosen sequences, int64 [n], in any order."""
    sizes = np.diff(segments.offsets)[sequences]
    places = ranges(segments.offsets[sequences], sizes)
    return Segments(offsets_of(sizes), *(column[places] for column in segments[1:]))


def joined_segments(parts: Sequence[Segments]) -> Segments:
    """Return the segments of several batches as those of one batch; of no sequence without any."""
    none = Segments(np.zeros(1, dtype=np.int64), *[np.zeros(0, dtype=np.int32)] * 3)
    offsets, *columns = zip(none, *parts)
    sizes = np.concatenate([np.diff(each) for each in offsets])
    return Segments(offsets_of(sizes), *map(np.concatenate, columns))
