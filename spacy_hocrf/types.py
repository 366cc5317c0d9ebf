"""Types shared by all layers: segments, label patterns, and the arrays that are passed between them.

    Doc → token attributes → Observations → Potentials → Expectations → gradient
                                                     └→ segmentation

Every class here describes a *batch* of D sequences whose N tokens are laid end to end;
`offsets[i]:offsets[i + 1]` are the tokens of sequence i. Extents: N tokens, Y labels, Z label patterns, R
rows, S spans, G patterns with length scores, M lengths.
"""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AUTO",
    "CONST",
    "CONTINUE",
    "END",
    "FIRST",
    "INNER",
    "LAST",
    "LENGTH",
    "MAX_ORDER",
    "MAX_SIGMA",
    "SIGMA_RANGE",
    "SPAN",
    "START",
    "TINY",
    "TOKEN",
    "Expectations",
    "LabelPattern",
    "Matrix",
    "Observations",
    "Potentials",
    "Rows",
    "Scratch",
    "Segment",
    "Segmentation",
    "Segments",
    "Spans",
    "Vector",
    "is_number",
    "is_sigma",
    "is_whole",
]

# float64, of one dimension and of two
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

LabelPattern = tuple[int, ...]
"""Labels of consecutive segments, oldest first."""

AUTO = "auto"
"""Value of a setting that is chosen by the corpus."""

MAX_ORDER = 1000
"""Largest number of earlier segments that a setting may name; each order has its own features."""

TINY = float(np.finfo(np.float64).tiny)
"""The smallest normal float64; 1 divided by it is finite."""

MAX_SIGMA = 1e9
"""A larger one is as good as infinity, 1 over it as good as 0; a smaller one leaves no finite loss."""
SIGMA_RANGE = f"above 0, from {1 / MAX_SIGMA:g} to {MAX_SIGMA:g}"
"""What an error says that it expected."""


class Segment(NamedTuple):
    """A labelled half-open stretch of tokens."""

    start: int
    end: int
    label: int


Segmentation = list[Segment]


class Segments(NamedTuple):
    """Segmentations of D sequences as arrays, n segments in all; positions are within the sequence."""

    offsets: NDArray[np.int64]  # [D + 1] first segment of each sequence
    start: NDArray[np.int32]  # [n]
    end: NDArray[np.int32]  # [n]
    label: NDArray[np.int32]  # [n]

    def only(self, keep: NDArray[np.bool_]) -> "Segments":
        """Return a selection of the segments.

        keep (bool [n]): which segments to keep.
        """
        return self.at(keep.nonzero()[0])

    def at(self, places: NDArray[np.int64]) -> "Segments":
        """Return the segments with some indices, int64 [m], ascending."""
        return Segments(
            places.searchsorted(self.offsets),
            self.start[places],
            self.end[places],
            self.label[places],
        )


# The part of a segment [u, v) where an observation is made:
# token u; token v - 1; every token u..v - 1; every token but the first
START, END, TOKEN, INNER = range(4)
PARTS = ("start", "end", "token", "inner")  # their names
SPAN, LENGTH, CONST = 4, 5, 6  # the whole segment; its length; its mere presence

# Position that a token may have in a segment with some label: bits of `Potentials.allowed`.
FIRST, CONTINUE, LAST = 1, 2, 4


class Rows(NamedTuple):
    """Observations per token."""

    offsets: NDArray[np.int64]  # [N + 1]
    ids: NDArray[np.int32]  # [R] observation numbers
    values: NDArray[np.float32] | None  # [R] None if all are 1


class Spans(NamedTuple):
    """Observations on whole segments, sorted by start and end; positions refer to the batch."""

    start: NDArray[np.int64]  # [S]
    end: NDArray[np.int64]  # [S]
    ids: NDArray[np.int32]  # [S]
    values: NDArray[np.float32] | None  # [S] None if all are 1


@dataclass(frozen=True)
class Observations:
    """Observations of a batch that are in the index, whatever features they have."""

    offsets: NDArray[np.int64]  # [D + 1]
    tokens: Rows
    spans: Spans
    inputs: tuple[NDArray[Any], ...] = ()  # [N, …] of each dense score


SCORES = ("const", *PARTS, "row_score", "length_score", "span_score")
"""The scores among the fields of `Potentials`."""


@dataclass(frozen=True)
class Potentials:
    """Log potentials of a batch. The score of a segment [u, v) whose label history, itself included, ends in
    z, is

        const[z] + start_z(u) + end_z(v-1) + Σ_{u≤t<v} token_z(t) + Σ_{u<t<v} inner_z(t) +
        length_z(v-u) + span_z(u, v)

    summed over all patterns z that end the history. Patterns 0..Y-1 are the single labels; their parts are
    dense, those of longer patterns are rows sorted by token.
    """

    offsets: NDArray[np.int64]  # [D + 1] first token of each sequence
    const: NDArray[np.float64]  # [Z]
    start: NDArray[np.float64] | None  # [N, Y]; None, here and below, if all are 0
    end: NDArray[np.float64] | None  # [N, Y]
    token: NDArray[np.float64]  # [N, Y]
    inner: NDArray[np.float64] | None  # [N, Y]
    row_offsets: NDArray[np.int64]  # [N + 1] rows of each token
    row_part: NDArray[np.uint8]  # [R] START, END, TOKEN or INNER
    row_pattern: NDArray[np.int32]  # [R] pattern longer than one label
    row_score: NDArray[np.float64]  # [R]
    length_pattern: NDArray[np.int32]  # [G] patterns that have a length score
    length_score: NDArray[np.float64]  # [G, M] for lengths 1, 2, …, M - 1, and M or more
    # [S] first token of the segment in the batch, ascending
    span_start: NDArray[np.int64]
    span_end: NDArray[np.int64]  # [S] one past its last token
    span_pattern: NDArray[np.int32]  # [S]
    span_score: NDArray[np.float64]  # [S]
    # [N, Y] bits FIRST, CONTINUE, LAST: position that token t may have in a segment with label y
    allowed: NDArray[np.uint8]

    def __str__(self) -> str:
        """Describe the extents, for `spacy debug model`."""
        tokens, labels = self.allowed.shape
        return (
            f"log potentials of {len(self.offsets) - 1:,} texts: {tokens:,} tokens, {labels:,} "
            f"labels, {len(self.const):,} label patterns, {len(self.row_score):,} scores of longer "
            f"patterns, {len(self.span_score):,} of whole segments"
        )

    def only(self, sequence: int) -> "Potentials":
        """Return the potentials of one sequence."""
        first, last = self.offsets[sequence : sequence + 2].tolist()
        tokens, rows = slice(first, last), slice(*self.row_offsets[[first, last]].tolist())
        spans = slice(*np.searchsorted(self.span_start, [first, last]).tolist())
        return replace(
            self,
            offsets=np.array([0, last - first], dtype=np.int64),
            start=None if self.start is None else self.start[tokens],
            end=None if self.end is None else self.end[tokens],
            token=self.token[tokens],
            inner=None if self.inner is None else self.inner[tokens],
            row_offsets=self.row_offsets[first : last + 1] - self.row_offsets[first],
            row_part=self.row_part[rows],
            row_pattern=self.row_pattern[rows],
            row_score=self.row_score[rows],
            span_start=self.span_start[spans] - first,
            span_end=self.span_end[spans] - first,
            span_pattern=self.span_pattern[spans],
            span_score=self.span_score[spans],
            allowed=self.allowed[tokens],
        )

    @classmethod
    def zero(
        cls, offsets: NDArray[np.int64], allowed: NDArray[np.uint8], n_patterns: int
    ) -> "Potentials":
        """Create potentials whose scores are all 0.

        offsets (int64 [D + 1]): first token of each sequence.
        allowed (uint8 [N, Y]): which tokens a segment of each label may begin with (FIRST), go on with
            (CONTINUE) and end with (LAST): a sum of these bits, 7 for all.
        n_patterns (int): Z, the number of label patterns, single labels first.
        """
        nothing = np.zeros(0)
        return cls(
            offsets=offsets,
            const=np.zeros(n_patterns),
            start=None,
            end=None,
            token=np.zeros(allowed.shape),
            inner=None,
            row_offsets=np.zeros(len(allowed) + 1, dtype=np.int64),
            row_part=nothing.astype(np.uint8),
            row_pattern=nothing.astype(np.int32),
            row_score=nothing,
            length_pattern=nothing.astype(np.int32),
            length_score=np.zeros((0, 1)),
            span_start=nothing.astype(np.int64),
            span_end=nothing.astype(np.int64),
            span_pattern=nothing.astype(np.int32),
            span_score=nothing,
            allowed=allowed,
        )

    def unscored(self) -> "Potentials":
        """Return a copy with all scores 0; sequences and allowed bits stay."""
        return Potentials.zero(self.offsets, self.allowed, len(self.const))

    def scaled(self, factor: float) -> "Potentials":
        """Return a copy with all scores multiplied by a factor."""
        scores = ((name, getattr(self, name)) for name in SCORES)
        return replace(self, **{name: each * factor for name, each in scores if each is not None})

    def repeated(self, times: int) -> "Potentials":
        """Repeat the whole batch of sequences a number of times."""
        tokens, rows = int(self.offsets[-1]), len(self.row_part)
        number = np.arange(times)

        def on(array: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
            return None if array is None else np.tile(array, (times, 1))

        def places(array: NDArray[np.int64], extent: int) -> NDArray[np.int64]:
            found: NDArray[np.int64] = (array + extent * number[:, None]).ravel()
            return found

        return replace(
            self,
            offsets=np.append(0, places(self.offsets[1:], tokens)),
            start=on(self.start),
            end=on(self.end),
            token=np.tile(self.token, (times, 1)),
            inner=on(self.inner),
            row_offsets=np.append(0, places(self.row_offsets[1:], rows)),
            row_part=np.tile(self.row_part, times),
            row_pattern=np.tile(self.row_pattern, times),
            row_score=np.tile(self.row_score, times),
            span_start=places(self.span_start, tokens),
            span_end=places(self.span_end, tokens),
            span_pattern=np.tile(self.span_pattern, times),
            span_score=np.tile(self.span_score, times),
            allowed=np.tile(self.allowed, (times, 1)),
        )


@dataclass(frozen=True)
class Expectations:
    """Expected number of times that each entry of the `Potentials` fires, with the same extents."""

    log_partition: NDArray[np.float64]  # [D] nats; -inf if no segmentation is allowed
    const: NDArray[np.float64]  # [Z]
    start: NDArray[np.float64] | None  # [N, Y]; None, here and below, if not requested
    end: NDArray[np.float64] | None  # [N, Y]
    token: NDArray[np.float64] | None  # [N, Y]
    inner: NDArray[np.float64] | None  # [N, Y]
    row: NDArray[np.float64]  # [R]
    length: NDArray[np.float64]  # [G, M]
    span: NDArray[np.float64]  # [S] marginal probability of the segment with its label history


class Scratch:
    """Arrays that one thread reuses: allocating large ones every time is slow, especially with threads."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[np.float64]] = {}

    def array(self, name: str, extents: tuple[int, ...]) -> NDArray[np.float64]:
        """Return an uninitialised array, float64 [extents]; it overwrites the previous one of this name."""
        size = math.prod(extents)
        if name not in self._arrays or len(self._arrays[name]) < size:
            self._arrays[name] = np.empty(size)
        return self._arrays[name][:size].reshape(extents)

    def zeros(self, name: str, extents: tuple[int, ...]) -> NDArray[np.float64]:
        """Return an array like that of `array`, filled with 0."""
        array = self.array(name, extents)
        array.fill(0.0)
        return array


def is_number(value: object) -> TypeGuard[float]:
    """Is it a number, of Python or NumPy? True and False are not, nor is a finite number that a float cannot
    hold, such as 10**400.
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_sigma(value: object) -> TypeGuard[float]:
    """Is it a standard deviation of weights that can be computed with: from 1/MAX_SIGMA to MAX_SIGMA?"""
    return is_number(value) and 1 / MAX_SIGMA <= value <= MAX_SIGMA


def is_whole(value: object) -> TypeGuard[int]:
    """Is it an integer, of Python or NumPy? True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
