"""What is known about a Doc's segmentation: spans, and which tokens are unknown.

Misaligned or missing annotation is unknown, never outside: instead of one gold segmentation, the loss
sums over all segmentations that agree with what is known. The same constraints keep entities that were
set before the component runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_hocrf.errors import Errors
from spacy_hocrf.types import CONTINUE, Segment, Segmentation

if TYPE_CHECKING:
    from spacy_hocrf.model.scheme import LabelScheme

__all__ = [
    "CERTAIN",
    "UNKNOWN",
    "Annotation",
    "NamedSpan",
    "NamedSpans",
    "SoftSpan",
    "TextConstraint",
    "constrain",
    "constrain_batch",
    "covered",
    "known_segments",
    "likely_segments",
    "log_odds",
    "most_probable",
    "runs",
    "trim",
]

CERTAIN = 1.0 - 1e-9
"""Probability above which a teacher's span counts as certain."""
UNKNOWN = "unknown"
"""Key in the attrs of an annotated span group: a list of the parts of the text about which nothing is
known, each as first token and one past the last. (In doc.ents these are the tokens without `ent_iob`.)
"""

NamedSpan = tuple[int, int, str]
"""Start, end and label."""
NamedSpans = Sequence[NamedSpan]


class TextConstraint(NamedTuple):
    """A constraint on tokens [start, end) of a text."""

    start: int
    end: int
    label: str
    kind: str  # of text_constraints.KINDS


class SoftSpan(NamedTuple):
    """A span that is present with a probability between 0 and 1, exclusive."""

    start: int
    end: int
    label: str
    score: float


@dataclass(frozen=True)
class Annotation:
    """Known spans of a Doc, sorted and not overlapping, its unknown tokens, constraints and soft spans; and
    the number of annotated spans that are left out because they overlap longer ones.

    Soft spans are spans with probabilities. The most probable ones that do not overlap are among `spans`;
    every token of a soft span is in one of the soft spans or outside.
    """

    spans: tuple[tuple[int, int, str], ...]  # start, end, label
    unknown: NDArray[np.bool_]  # [T]
    constraints: tuple[TextConstraint, ...] = ()
    left_out: int = 0
    searched: bool = False  # does it have all spans of some labels?
    soft: tuple[SoftSpan, ...] = ()

    @property
    def complete(self) -> bool:
        """Is every token known?"""
        return not self.unknown.any()

    @property
    def empty(self) -> bool:
        """Is nothing known at all?"""
        return not (self.constraints or self.searched) and bool(self.unknown.all())

    @property
    def parts(self) -> tuple[tuple[int, int, str], ...]:
        """Known spans, stretches that are inside a span of their label, and soft spans."""
        inside = (row[:3] for row in self.constraints if row.kind == "inside")
        return (*self.spans, *inside, *(span[:3] for span in self.soft))

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that occur in the annotation."""
        named = [label for _, _, label in self.spans]
        named += [label for _, _, label, _ in (*self.soft, *self.constraints) if label]
        return tuple(dict.fromkeys(named))

    @property
    def has_outside(self) -> bool:
        """Is some known token outside all spans, or may be outside?"""
        return bool(self.soft) or int((~self.unknown).sum()) > sum(
            end - start for start, end, _ in self.spans
        )

    def merged(self) -> Annotation:
        """Merge neighbouring spans of one label, for models that cannot tell them apart."""
        spans: list[tuple[int, int, str]] = []
        for start, end, label in self.spans:
            if spans and spans[-1][1] == start and spans[-1][2] == label:
                spans[-1] = (spans[-1][0], end, label)
            else:
                spans.append((start, end, label))
        soft = self.soft if len(spans) == len(self.spans) else ()
        return replace(self, spans=tuple(spans), soft=soft)

    @property
    def readings(self) -> Iterator[Annotation]:
        """Yield this annotation, then variants, so that each soft span is among the spans of one of them."""
        yield self
        remaining = [span for span in self.soft if span[:3] not in self.spans]
        while remaining:
            chosen, overlapping = [*self.certain.spans], list[SoftSpan]()
            for span in sorted(remaining, key=lambda span: -span.score):
                if all(span.end <= start or end <= span.start for start, end, _ in chosen):
                    chosen.append(span[:3])
                else:
                    overlapping.append(span)
            yield replace(self, spans=tuple(sorted(chosen)), soft=())
            remaining = overlapping

    @property
    def certain(self) -> Annotation:
        """A copy in which the tokens of soft spans are unknown."""
        unknown = self.unknown | covered(self.soft, len(self.unknown))
        spans = tuple(span for span in self.spans if not unknown[span[0] : span[1]].any())
        return replace(self, spans=spans, unknown=unknown, soft=())

    @property
    def positives(self) -> Annotation:
        """A copy in which all tokens outside of spans are unknown; it keeps the most probable soft spans."""
        unknown = ~covered(self.spans, len(self.unknown))
        return replace(self, unknown=unknown, searched=True, soft=())

    def without(self, spans: Collection[tuple[int, int, str]]) -> Annotation:
        """Return a copy without these spans, in which their tokens are unknown."""
        unknown = self.unknown | covered(spans, len(self.unknown))
        return Annotation(tuple(span for span in self.spans if span not in spans), unknown)

    @property
    def repeats(self) -> bool:
        """Do two neighbouring spans share a label?"""
        return any(a[1] == b[0] and a[2] == b[2] for a, b in zip(self.spans, self.spans[1:]))


def covered(spans: Iterable[Sequence[Any]], length: int) -> NDArray[np.bool_]:
    """Is each token in one of some spans? bool [length]

    spans (Iterable[Sequence]): each begins with its first token and one past its last.
    """
    is_covered = np.zeros(length, dtype=bool)
    for start, end, *_ in spans:
        is_covered[start:end] = True
    return is_covered


def trim(doc: Doc, start: int, end: int) -> tuple[int, int]:
    """Strip white space tokens from both ends of a span; it is empty if it has no other tokens."""
    while start < end and doc[start].is_space:
        start += 1
    while start < end and doc[end - 1].is_space:
        end -= 1
    return start, end


def known_segments(scheme: LabelScheme, annotation: Annotation) -> Segmentation:
    """Return all segments that are certain; they cover the Doc if the annotation is complete.

    RAISES (ValueError): H040 for an unknown label, H041 for an unlabelled token where there is no
        outside label.
    """
    if annotation.complete:
        return scheme.encode(annotation.spans, len(annotation.unknown))
    segments = [each for span in annotation.spans for each in scheme.encode_span(*span)]
    in_span = covered(annotation.spans, len(annotation.unknown))
    for start, end in runs(~annotation.unknown & ~in_span):
        if scheme.outside < 0:
            raise ValueError(Errors.H041.format(start=start, end=end))
        if scheme.limits[scheme.outside] != 0:
            segments += [Segment(i, i + 1, scheme.outside) for i in range(start, end)]
        elif not annotation.unknown[max(0, start - 1) : end + 1].any():
            segments.append(Segment(start, end, scheme.outside))
    return sorted(segments)


def likely_segments(
    scheme: LabelScheme, annotation: Annotation, known: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the segments that features are made of: the known ones, and for each stretch inside a span, or
    soft span, a segment of the same extent where nothing is known so far.

    known (int32 [n, 3]): start, end and label of the known segments.
    RETURNS (int32 [m, 3]): sorted by start; none overlap.
    """
    free, likely = annotation.unknown.copy(), Segmentation()
    for start, end, label in annotation.parts[len(annotation.spans) :]:
        if free[start:end].all():
            likely += scheme.encode_span(start, end, label)
            free[start:end] = False
    if not likely:
        return known
    segments = np.concatenate([known, np.array(likely, dtype=np.int32)])
    return segments[np.argsort(segments[:, 0])]


def constrain(
    scheme: LabelScheme, bits: NDArray[np.uint8], annotation: Annotation
) -> NDArray[np.uint8]:
    """Return the bits of the segmentations that agree with the annotation.

    bits (uint8 [T, Y]): bits of what is allowed without it; not changed.
    RETURNS (uint8 [T, Y]): they allow exactly the known spans, only the outside label (if the scheme has one)
        on tokens known to be outside, and whatever `bits` allow elsewhere.
    """
    bits = bits.copy()
    in_span = covered(annotation.spans, len(bits))
    outside = ~annotation.unknown & ~in_span
    if scheme.outside >= 0 and outside.any():
        bits[np.ix_(outside, np.arange(scheme.n_labels) != scheme.outside)] = 0
    for start, end, label in annotation.spans:
        bits[start:end] = scheme.span_bits(start, end, label)
        if scheme.encoding == "segments":
            bits[end : end + 1] &= ~np.uint8(CONTINUE)
        elif scheme.encoding != "tags":
            after = scheme.continuing(label)
            if end < len(bits) and not in_span[end]:
                bits[end, after] = 0
            if scheme.encoding == "io" and start > 0 and not in_span[start - 1]:
                bits[start - 1, after] = 0
    return bits


def constrain_batch(
    scheme: LabelScheme,
    bits: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    annotations: Sequence[Annotation],
) -> NDArray[np.uint8]:
    """Return the bits of the segmentations of a batch that agree with the annotation of each Doc.

    bits (uint8 [N, Y]): bits of what is allowed without it; not changed.
    offsets (int64 [D + 1]): where each Doc's tokens begin.
    RETURNS (uint8 [N, Y]): the result of `constrain` for each Doc.
    """
    agreeing: NDArray[np.uint8] = bits.copy()
    for annotation, first, last in zip(annotations, offsets, offsets[1:]):
        agreeing[first:last] = constrain(scheme, bits[first:last], annotation)
    return agreeing


def runs(mask: NDArray[np.bool_]) -> Sequence[tuple[int, int]]:
    """Return start and end of each maximal run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2])]


def log_odds(spans: Sequence[SoftSpan]) -> NDArray[np.float64]:
    """Return scores of spans, nats, for which q(s) ∝ exp(sum of the scores of the spans of s), over sets s of
    spans of which none overlap, gives each span its probability p:

        score = log p - Σ_t log(1 - c_t) + Σ_t log(1 - b_t)

    c_t is the sum of p over the spans with token t, b_t over those with both t and the next one; the sums run
    over the tokens of the span, and over pairs of them. For a span that no other overlaps these are its
    log-odds. These sets of spans are the cliques and separators of a junction tree, so q is the distribution
    of largest entropy with these probabilities. Where the spans of a token add up to more than 1, they are
    scaled down.
    """
    chances = np.array([span.score for span in spans])
    sums, _ = _sums_by_token(spans, chances)
    chances = chances / [max(1.0, sums[s.start : s.end].max() / CERTAIN) for s in spans]
    none, none_of_both = (np.log1p(-sums) for sums in _sums_by_token(spans, chances))
    scores: NDArray[np.float64] = np.log(chances)
    for i, span in enumerate(spans):
        scores[i] += none_of_both[span.start : span.end - 1].sum()
        scores[i] -= none[span.start : span.end].sum()
    return scores


def _sums_by_token(
    spans: Sequence[SoftSpan], chances: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum the probabilities of the spans with each token, and of those with both it and the next one."""
    token, both = np.zeros((2, max((span.end for span in spans), default=0)))
    for span, chance in zip(spans, chances, strict=True):
        token[span.start : span.end] += chance
        both[span.start : span.end - 1] += chance
    return token, both


def most_probable(spans: Sequence[SoftSpan]) -> Sequence[SoftSpan]:
    """Return the most probable set of spans of which none overlap, by their `log_odds`."""
    scored = zip(spans, log_odds(spans).tolist(), strict=True)
    ordered = sorted(scored, key=lambda each: each[0].end)
    ends = [span.end for span, _ in ordered]
    best: list[tuple[float, list[SoftSpan]]] = [(0.0, [])]  # best[i]: of the first i spans
    for i, (span, own) in enumerate(ordered):
        score, before = best[bisect_right(ends, span.start, 0, i)]
        score += own
        best.append((score, [*before, span]) if score > best[i][0] else best[i])
    return best[-1][1]
