"""Constraints on single texts as structural zeros of their log potentials.

Most constraints restrict which segments may begin, continue or end at the tokens of a stretch: they clear
bits of `allowed`, for all constraints at once. A span that must not occur instead becomes a score of -inf for
a segment or a label pattern.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.annotation import Annotation, constrain_batch
from spacy_hocrf.annotation.text_constraints import (
    INSIDE,
    NOT,
    ONLY,
    OUTSIDE,
    SPAN,
    TextConstraints,
    of_annotations,
)
from spacy_hocrf.annotation.whitespace import with_whitespace
from spacy_hocrf.arrays import ranges
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forbidden import Forbidden, ForbiddenPattern, Observed
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.types import CONTINUE, FIRST, LabelPattern

__all__ = ["Masks", "agreeing", "forbidden_by", "span_patterns"]

HEAD, INNER, TAIL, SINGLE, BEFORE, BEHIND = range(6)
"""Positions of a token in a stretch, or beside it."""

FREE = np.uint8(255)


class Masks:
    """The bits that constraints leave to each token.

    scheme (LabelScheme): the model's labels.
    """

    def __init__(self, scheme: LabelScheme) -> None:
        self._scheme = scheme
        self._cached_masks: dict[tuple[int, int], NDArray[np.uint8]] = {}

    def take_from(
        self, bits: NDArray[np.uint8], constraints: TextConstraints, offsets: NDArray[np.int64]
    ) -> None:
        """Clear the bits of segmentations that break constraints, for a batch; constraints of the kind "not"
        are not handled here.

        bits (uint8 [N, Y]): changed in place. offsets (int64 [D + 1]): first token of each Doc.
        """
        is_only = constraints.kind == ONLY
        others = constraints.only(~is_only & (constraints.kind != NOT))
        if len(others.text):
            _take(bits, *self._rows(others, offsets))
        if is_only.any():
            _take(bits, *self._rows_of_only(constraints.only(is_only), offsets))

    def _rows(
        self, constraints: TextConstraints, offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return the constrained tokens of the batch, int64 [m], and the bits left to each, uint8 [m, Y]."""
        text, start, end, label, kind = constraints
        first, lengths = offsets[text] + start, end - start
        # the tokens of each constraint, the constraint's number, and the position in its stretch
        tokens = ranges(first, lengths)
        owner, ends = np.repeat(np.arange(len(first)), lengths), np.cumsum(lengths)
        position = np.full(len(tokens), INNER)
        position[ends - lengths], position[ends - 1] = HEAD, TAIL
        position[(ends - 1)[lengths == 1]] = SINGLE
        # the neighbours of known spans, which must not continue them
        spans = np.flatnonzero(kind == SPAN)
        if len(spans) and self._scheme.encoding != "tags":
            begin, stop, doc = first[spans], (first + lengths)[spans], text[spans]
            behind, before = stop < offsets[doc + 1], begin > offsets[doc]
            tokens = np.concatenate([tokens, stop[behind], begin[before] - 1])
            owner = np.concatenate([owner, spans[behind], spans[before]])
            beside = np.repeat([BEHIND, BEFORE], [behind.sum(), before.sum()])
            position = np.concatenate([position, beside])
        # one row of masks for each pair of kind and label
        n_labels = len(self._scheme.labels) + 1
        codes, row = np.unique(kind * n_labels + label + 1, return_inverse=True)
        table = np.stack([self._mask(*divmod(code, n_labels)) for code in codes.tolist()])
        return tokens, table[row[owner], position]

    def _rows_of_only(
        self, constraints: TextConstraints, offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return tokens and masks for the kind "only"; labels for the same stretch are alternatives."""
        text, start, end, label, _ = constraints
        start, end = offsets[text] + start, offsets[text] + end
        order = np.lexsort((end, start))
        start, end, label = start[order], end[order], label[order]
        first = np.flatnonzero((np.diff(start, prepend=-1) != 0) | (np.diff(end, prepend=-1) != 0))
        # the union of the masks of equal stretches
        labels, number = np.unique(label, return_inverse=True)
        table = np.stack([self._mask(ONLY, y + 1)[INNER] for y in labels.tolist()])
        masks = np.bitwise_or.reduceat(table[number], first, axis=0)
        lengths = (end - start)[first]
        return ranges(start[first], lengths), np.repeat(masks, lengths, axis=0)

    def _mask(self, kind: int, label: int) -> NDArray[np.uint8]:
        """Return the bits that a constraint leaves to the tokens of its stretch and to its neighbours, uint8
        [6, Y].

        label (int): index in the scheme's labels, from 1 on; 0 for none.
        """
        if (kind, label) not in self._cached_masks:
            name = self._scheme.labels[label - 1] if label else ""
            self._cached_masks[kind, label] = self._new_mask(kind, name)
        return self._cached_masks[kind, label]

    def _new_mask(self, kind: int, label: str) -> NDArray[np.uint8]:
        scheme = self._scheme
        mask = np.full((6, scheme.n_labels), FREE)
        if kind == SPAN:
            mask[[HEAD, INNER, TAIL]] = scheme.span_bits(0, 3, label)
            mask[SINGLE] = scheme.span_bits(0, 1, label)
            if scheme.encoding == "segments":
                mask[BEHIND] &= ~np.uint8(CONTINUE)
            elif scheme.encoding != "tags":
                mask[BEHIND, scheme.continuing(label)] = 0
                if scheme.encoding == "io":
                    mask[BEFORE, scheme.continuing(label)] = 0
            return mask
        allowed = set() if kind == OUTSIDE else set(_labels(scheme, label))
        if kind in (OUTSIDE, ONLY):
            allowed.add(scheme.outside)
        mask[:BEFORE, _others(scheme, allowed)] = 0
        if kind == INSIDE and scheme.encoding == "segments":
            mask[[INNER, TAIL]] &= ~np.uint8(FIRST)
        elif kind == INSIDE and scheme.encoding in ("bio", "bieso"):
            mask[np.ix_([INNER, TAIL], _others(scheme, set(scheme.continuing(label))))] = 0
        return mask


def forbidden_by(
    scheme: LabelScheme,
    constraints: TextConstraints,
    offsets: NDArray[np.int64],
    blank: NDArray[np.bool_] | None,
) -> Forbidden:
    """Return the segments and label patterns that constraints of the kind "not" forbid.

    constraints (TextConstraints): of all kinds. offsets (int64 [D + 1]): first token of each Doc.
    blank (Optional[bool [N]]): whitespace that spans are shown without, if there is any.
    """
    text, start, end, label, _ = constraints.of_kind(NOT)
    first = offsets[text]
    if scheme.encoding == "segments" and blank is None:
        segments = np.stack([first + start, first + end, scheme.rules[label, 3]], axis=1)
        order = np.lexsort((segments[:, 1], segments[:, 0]))
        return Forbidden(segments[order])
    forbidden = list[ForbiddenPattern]()
    rows = zip(
        first.tolist(), offsets[text + 1].tolist(), *(x.tolist() for x in (start, end, label))
    )
    for low, high, a, b, y in rows:
        spans = [(a, b, scheme.labels[y])]
        if blank is not None:
            spans = with_whitespace(blank[low:high], *spans[0])
        for span in spans:
            forbidden += span_patterns(scheme, (low, high), span)
    forbidden.sort()
    single = [(i, j, pattern[0]) for i, j, pattern, _ in forbidden if len(pattern) == 1]
    segments = np.array(single, dtype=np.int64).reshape(-1, 3)
    patterns = tuple(row for row in forbidden if len(row.pattern) > 1)
    if scheme.encoding == "segments":
        return Forbidden(segments, patterns)
    return Forbidden(segments[:0], patterns, tokens=segments[:, [0, 2]])


def agreeing(
    scheme: LabelScheme,
    patterns: Sequence[LabelPattern],
    compiled: Callable[[Sequence[LabelPattern]], Automaton],
    bits: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    annotations: Sequence[Annotation],
) -> Observed:
    """Return the segmentations that agree with the annotation of each text of a batch.

    patterns (Sequence[LabelPattern]): the model's patterns. compiled (Callable): compiles an automaton for
        others.
    bits (uint8 [N, Y]): what is allowed without annotation; not changed.
    offsets (int64 [D + 1]): first token of each text.
    """
    allowed = constrain_batch(scheme, bits, offsets, annotations)
    constraints = of_annotations(scheme, annotations)
    if constraints is None:
        return Observed(allowed)
    Masks(scheme).take_from(allowed, constraints, offsets)
    forbidden = forbidden_by(scheme, constraints, offsets, None)
    allowed[tuple(forbidden.tokens.T)] = 0
    if not len(forbidden.segments) and not forbidden.patterns:
        return Observed(allowed)
    wider = forbidden.added_to(patterns)
    return Observed(allowed, forbidden, None if wider is patterns else compiled(wider))


def span_patterns(
    scheme: LabelScheme, text: tuple[int, int], span: tuple[int, int, str]
) -> Iterator[ForbiddenPattern]:
    """Yield the label patterns that must be forbidden so that a span of a text cannot be shown: exactly one
    of them occurs in a segmentation if and only if the span does.

    text (tuple[int, int]): the text's first token in the batch, and one past its last; the positions that are
        yielded also refer to the batch.
    """
    start, end, label = span
    if scheme.encoding == "tags" and end - start > 1:
        return  # with tags there are none
    path = tuple(segment.label for segment in scheme.encode_span(start, end, label))
    start, end = text[0] + start, text[0] + end
    if scheme.encoding == "segments":
        yield ForbiddenPattern(start, end, path)
        return
    continuing = scheme.continuing(label) if scheme.encoding in ("io", "bio") else []
    others = [(y,) for y in range(scheme.n_labels) if y not in continuing]
    before = others if scheme.encoding == "io" and start > text[0] else [()]
    behind = others if continuing and end < text[1] else [()]
    for first, last in product(before, behind):
        at = end if last else end - 1
        yield ForbiddenPattern(at, at + 1, (*first, *path, *last))


def _take(bits: NDArray[np.uint8], tokens: NDArray[np.int64], masks: NDArray[np.uint8]) -> None:
    """Intersect the bits of each token with all of its masks, in place.

    tokens (int64 [m]): in any order, with repetitions. masks (uint8 [m, Y])
    """
    order = np.argsort(tokens, kind="stable")
    new = np.flatnonzero(np.diff(tokens[order], prepend=-1))
    if len(new) < len(tokens):
        masks = np.bitwise_and.reduceat(masks[order], new, axis=0)
        tokens = tokens[order[new]]
    bits[tokens] &= masks


def _labels(scheme: LabelScheme, label: str) -> list[int]:
    """Return the engine's labels that tokens of a span with this label may have."""
    number = scheme.labels.index(label)
    return [
        y for y in range(scheme.n_labels) if y != scheme.outside and scheme.user_label(y) == number
    ]


def _others(scheme: LabelScheme, labels: set[int]) -> list[int]:
    return [y for y in range(scheme.n_labels) if y not in labels]
