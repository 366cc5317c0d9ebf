"""White space at the ends of spans, which is never shown.

If a model's spans may begin or end with white space, several of them are shown as the same span. They
exclude one another, so the score of the span shown is the sum of their scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.annotation import Annotation, NamedSpan, NamedSpans, constrain, covered
from spacy_hocrf.annotation.errors import ReadingErrors
from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.types import Segments

if TYPE_CHECKING:
    from spacy_hocrf.model.scheme import LabelScheme

__all__ = [
    "cases",
    "most_variants",
    "scores_of_shown",
    "spans_shown",
    "variants_of",
    "ways_to_show",
    "with_whitespace",
    "without_whitespace",
]

MAX_VARIANTS = 4096
"""Most combinations of assigning white space to adjacent spans."""


def without_whitespace(
    blank: NDArray[np.bool_], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Strip white space from both ends of spans; a span of nothing else becomes empty.

    blank (bool [N]): is each token white space?
    start, end (int64 [m]): spans; the result has the same shapes.
    """
    solid = np.flatnonzero(~blank)
    first = np.append(solid, len(blank))[np.searchsorted(solid, start)]
    last = np.append(-1, solid)[np.searchsorted(solid, end)]  # the last one before `end`
    return np.minimum(first, end), np.maximum(last + 1, np.minimum(first, end))


def spans_shown(spans: Segments, blank: NDArray[np.bool_], offsets: NDArray[np.int64]) -> Segments:
    """Return the spans of D sequences as they are shown: stripped, without duplicates or empty ones.

    blank (bool [N]): is each token white space?
    offsets (int64 [D+1]): tokens of the sequences.
    """
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(spans.offsets))
    first_token = offsets[sequence]
    start, end = without_whitespace(blank, first_token + spans.start, first_token + spans.end)
    rows = np.unique(np.stack([sequence, start, end, spans.label])[:, start < end], axis=1)
    sequence, start, end, label = rows
    counts = np.bincount(sequence, minlength=len(offsets) - 1)
    places = (start - offsets[sequence], end - offsets[sequence], label)
    return Segments(offsets_of(counts), *(column.astype(np.int32) for column in places))


def most_variants(blank: NDArray[np.bool_]) -> int:
    """Return an upper bound on how many of a model's spans can be shown as the same span.

    blank (bool [N]): is each token white space?
    """
    edges = np.flatnonzero(np.diff(blank, prepend=False, append=False))
    longest = int((edges[1::2] - edges[::2]).max(initial=0))
    return (longest + 1) ** 2


def scores_of_shown(
    score: Callable[[Segments], NDArray[np.float64]],
    shown: Segments,
    blank: NDArray[np.bool_],
    offsets: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the score of each span shown, float64 [n]: the sum over the model's spans that are shown as it.

    score (Callable): returns the scores of given spans of the model.
    shown (Segments): spans of D sequences, n in all, without white space at either end.
    blank (bool [N]): is each token white space?
    offsets (int64 [D+1]): tokens of the sequences.
    """
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(shown.offsets))
    first, last = offsets[sequence], offsets[sequence + 1]
    solid = np.flatnonzero(~blank)
    start, end = first + shown.start, first + shown.end
    earliest = np.maximum(np.append(0, solid + 1)[np.searchsorted(solid, start)], first)
    latest = np.minimum(np.append(solid, len(blank))[np.searchsorted(solid, end)], last)
    # every pair of a start and an end is a variant: their number, and which span each belongs to
    ends = latest - end + 1
    counts = (start - earliest + 1) * ends
    span, place = np.repeat(np.arange(len(counts)), counts), ranges(np.zeros_like(counts), counts)
    begin = (earliest - first)[span] + place // ends[span]
    behind = shown.end[span] + place % ends[span]
    variants = Segments(
        offsets_of(counts)[shown.offsets],
        begin.astype(np.int32),
        behind.astype(np.int32),
        shown.label[span],
    )
    return np.asarray(np.bincount(span, score(variants), len(counts)), dtype=np.float64)


def with_whitespace(
    blank: NDArray[np.bool_], start: int, end: int, label: str
) -> list[tuple[int, int, str]]:
    """Return all spans of a sequence that equal this one after stripping white space.

    blank (bool [T]): is each token white space?
    """
    first, last = start, end
    while first > 0 and blank[first - 1]:
        first -= 1
    while last < len(blank) and blank[last]:
        last += 1
    return [(i, j, label) for i in range(first, start + 1) for j in range(end, last + 1)]


def variants_of(
    blank: NDArray[np.bool_] | None, spans: NamedSpans, text: str
) -> Iterator[NamedSpans]:
    """Yield combinations of a model's spans that are shown as these, with or without adjacent white space.

    blank (Optional[bool [T]]): is each token white space? None if there is none.
    text (str): beginning of the Doc.
    RAISES (ValueError): H201 if there are too many.
    """
    if blank is None:
        yield spans
        return
    variants = [with_whitespace(blank, *span) for span in spans]
    if prod(map(len, variants)) > MAX_VARIANTS:
        raise ValueError(ReadingErrors.H201.format(most=MAX_VARIANTS, text=text))
    for chosen in product(*variants):
        if all(one[1] <= other[0] for one, other in pairwise(chosen)):
            yield chosen


def ways_to_show(
    scheme: LabelScheme,
    allowed: NDArray[np.uint8],
    blank: NDArray[np.bool_] | None,
    spans: NamedSpans,
) -> tuple[list[int], list[list[NDArray[np.uint8]]]]:
    """Return bits of the segmentations of one sequence that are shown as exactly these spans.

    If two spans of one label have only white space between them, a model's span across both would be a
    different one; so there are several mutually exclusive ways to give that white space to the later span.

    allowed (uint8 [T, Y]): bits of what is allowed anyway.
    blank (Optional[bool [T]]): is each token white space? None if there is none.
    spans (NamedSpans): sorted; without white space at either end.
    RETURNS (tuple[list[int], list[list[uint8 [t, Y]]]]): bounds of the stretches that the sequence is cut
        into; and for each stretch the bits of every way, an empty list if it cannot be shown so.
    """
    length, in_span = len(allowed), covered(spans, len(allowed))
    free = ~in_span & (False if blank is None else blank)
    if not scheme.can_have(spans) or (scheme.outside < 0 and not (in_span | free).all()):
        return [0, length], [[]]
    if not free.any():
        bits = constrain(scheme, allowed, Annotation(tuple(spans), free))
        return [0, length], [[bits & allowed]]
    outside = constrain(scheme, allowed, Annotation((), in_span | free))
    between = [_between(a, b, free) for a, b in pairwise(spans)]
    firsts = [0, *(i for i, gap in enumerate(between, 1) if gap), len(spans)]
    cuts = [0, *(spans[i - 1][1] for i in firsts[1:-1]), length]
    ways = list[list[NDArray[np.uint8]]]()
    for (i, j), (first, last) in zip(pairwise(firsts), pairwise(cuts)):
        gap = between[i - 1] if i else 0
        touching = int(scheme.encoding == "io")  # they would be one span
        ways.append([])
        for before in [*range(gap + 1 - touching)] if gap else [None]:
            bits = outside.copy()
            for number in range(i, j):
                own = before if number == i else None
                _let_be_shown(scheme, bits, spans[number], free, own)
            ways[-1].append((bits & allowed)[first:last])
    return cuts, ways


def cases(ways: Sequence[Sequence[NDArray[np.uint8]]], text: str) -> Iterator[NDArray[np.uint8]]:
    """Yield the bits of a whole sequence for each combination of the stretches' ways.

    text (str): beginning of the Doc.
    RAISES (ValueError): H201 if there are too many.
    """
    if prod(map(len, ways)) > MAX_VARIANTS:
        raise ValueError(ReadingErrors.H201.format(most=MAX_VARIANTS, text=text))
    yield from map(np.concatenate, product(*ways))


def _between(one: NamedSpan, other: NamedSpan, free: NDArray[np.bool_]) -> int:
    """Number of white space tokens between two spans of one label; 0 if they cannot be taken for one span."""
    gap = free[one[1] : other[0]]
    return len(gap) if gap.all() and one[2] == other[2] else 0


def _let_be_shown(
    scheme: LabelScheme,
    bits: NDArray[np.uint8],
    span: NamedSpan,
    free: NDArray[np.bool_],
    before: int | None,
) -> None:
    """Set the bits of a span's tokens so that they allow all spans that are shown as this one.

    before (Optional[int]): number of white space tokens in front that belong to it; None for any.
    """
    start, end, label = span
    early = start > 0 and free[start - 1]
    late = end < len(bits) and free[end]
    first = start - before if before is not None else start
    begins = {first, start - int(early)} if before is None else {first}
    bits[first:end] = 0
    for i, j in product(begins, {end, end + int(late)}):
        at = max(i, first)
        bits[at:end] |= scheme.span_bits(i, j, label)[at - i : end - i]
    if before is not None and scheme.encoding == "io" and first > 0:
        bits[first - 1, scheme.continuing(label)] = 0
