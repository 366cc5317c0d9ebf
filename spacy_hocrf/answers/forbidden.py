"""What constraints on single texts mean for a model: structural zeros of the texts' log potentials.

Most say which segments may have a token of their stretch, beginning, going on or ending there: they take
bits of `allowed` away, all of them at once. That a span is not there is the score -inf of a segment, or
of a label pattern.
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
"""Places of a token in a stretch, or beside it."""

FREE = np.uint8(255)


class Masks:
    """The bits that constraints leave to tokens.

    scheme (LabelScheme): the model's.
    """

    def __init__(self, scheme: LabelScheme) -> None:
        self._scheme = scheme
        self._known: dict[tuple[int, int], NDArray[np.uint8]] = {}

    def take_from(
        self, bits: NDArray[np.uint8], found: TextConstraints, offsets: NDArray[np.int64]
    ) -> None:
        """Take away, from the bits of a batch, the segmentations that break constraints; but for those of
        the kind "not".

        bits (uint8 [N, Y]): changed. offsets (int64 [D + 1]): first token of each Doc.
        """
        only = found.kind == ONLY
        rest = found.only(~only & (found.kind != NOT))
        if len(rest.text):
            _take(bits, *self._rows(rest, offsets))
        if only.any():
            _take(bits, *self._rows_of_only(found.only(only), offsets))

    def _rows(
        self, found: TextConstraints, offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Tokens of the batch, int64 [m], and what is left to each, uint8 [m, Y]."""
        start, lengths = offsets[found.text] + found.start, found.end - found.start
        tokens = ranges(start, lengths)
        owner, ends = np.repeat(np.arange(len(start)), lengths), np.cumsum(lengths)
        place = np.full(len(tokens), INNER)
        place[ends - lengths], place[ends - 1] = HEAD, TAIL
        place[(ends - 1)[lengths == 1]] = SINGLE
        spans = np.flatnonzero(found.kind == SPAN)
        if len(spans) and self._scheme.encoding != "tags":
            first, end, text = start[spans], (start + lengths)[spans], found.text[spans]
            behind, before = end < offsets[text + 1], first > offsets[text]
            tokens = np.concatenate([tokens, end[behind], first[before] - 1])
            owner = np.concatenate([owner, spans[behind], spans[before]])
            beside = np.repeat([BEHIND, BEFORE], [behind.sum(), before.sum()])
            place = np.concatenate([place, beside])
        n_labels = len(self._scheme.labels) + 1
        pairs, pair = np.unique(found.kind * n_labels + found.label + 1, return_inverse=True)
        table = np.stack([self._mask(*divmod(each, n_labels)) for each in pairs.tolist()])
        return tokens, table[pair[owner], place]

    def _rows_of_only(
        self, found: TextConstraints, offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Tokens and masks as in `_rows`, where labels of constraints on the same stretch are
        allowed together.
        """
        start, end = offsets[found.text] + found.start, offsets[found.text] + found.end
        order = np.lexsort((end, start))
        start, end, label = start[order], end[order], found.label[order]
        new = np.flatnonzero((np.diff(start, prepend=-1) != 0) | (np.diff(end, prepend=-1) != 0))
        labels, number = np.unique(label, return_inverse=True)
        table = np.stack([self._mask(ONLY, each + 1)[INNER] for each in labels.tolist()])
        masks = np.bitwise_or.reduceat(table[number], new, axis=0)
        lengths = (end - start)[new]
        return ranges(start[new], lengths), np.repeat(masks, lengths, axis=0)

    def _mask(self, kind: int, label: int) -> NDArray[np.uint8]:
        """Labels that a constraint leaves to the tokens of its stretch and beside it, uint8 [6,
        Y].

        label (int): place in the scheme's labels, from 1 on.
        """
        if (kind, label) not in self._known:
            name = self._scheme.labels[label - 1] if label else ""
            self._known[kind, label] = self._new_mask(kind, name)
        return self._known[kind, label]

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
    found: TextConstraints,
    offsets: NDArray[np.int64],
    blank: NDArray[np.bool_] | None,
) -> Forbidden:
    """Segments and label patterns that constraints of the kind "not" forbid.

    found (TextConstraints): of all kinds. offsets (int64 [D + 1]): first token of each Doc.
    blank (Optional[bool [N]]): white space that spans are shown without, if there is any.
    """
    text, start, end, label, _ = found.of_kind(NOT)
    first = offsets[text]
    if scheme.encoding == "segments" and blank is None:
        segments = np.stack([first + start, first + end, scheme.rules[label, 3]], axis=1)
        order = np.lexsort((segments[:, 1], segments[:, 0]))
        return Forbidden(np.zeros((0, 2), dtype=np.int64), segments[order], ())
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
    alone = [each for each in sorted(forbidden) if len(each.pattern) == 1]
    segments = np.array([(i, j, y) for i, j, (y,), _ in alone], dtype=np.int64).reshape(-1, 3)
    patterns = tuple(each for each in sorted(forbidden) if len(each.pattern) > 1)
    if scheme.encoding == "segments":
        return Forbidden(np.zeros((0, 2), dtype=np.int64), segments, patterns)
    return Forbidden(segments[:, [0, 2]], segments[:0], patterns)


def agreeing(
    scheme: LabelScheme,
    patterns: Sequence[LabelPattern],
    compiled: Callable[[Sequence[LabelPattern]], Automaton],
    bits: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    annotations: Sequence[Annotation],
) -> Observed:
    """Segmentations that agree with the annotation of each text of a batch.

    patterns (Sequence[LabelPattern]): of the model. compiled (Callable): the automaton of others.
    bits (uint8 [N, Y]): what is allowed anyway; not changed.
    offsets (int64 [D + 1]): first token of each text.
    """
    allowed = constrain_batch(scheme, bits, offsets, annotations)
    found = of_annotations(scheme, annotations)
    if found is None:
        return Observed(allowed)
    Masks(scheme).take_from(allowed, found, offsets)
    forbidden = forbidden_by(scheme, found, offsets, None)
    allowed[tuple(forbidden.tokens.T)] = 0
    if not len(forbidden.segments) and not forbidden.patterns:
        return Observed(allowed)
    more = forbidden.added_to(patterns)
    return Observed(allowed, forbidden, None if more is patterns else compiled(more))


def _take(bits: NDArray[np.uint8], tokens: NDArray[np.int64], masks: NDArray[np.uint8]) -> None:
    """Leave to each token what all of its masks do.

    tokens (int64 [m]): in any order, also several times. masks (uint8 [m, Y])
    """
    order = np.argsort(tokens, kind="stable")
    new = np.flatnonzero(np.diff(tokens[order], prepend=-1))
    if len(new) < len(tokens):
        masks = np.bitwise_and.reduceat(masks[order], new, axis=0)
        tokens = tokens[order[new]]
    bits[tokens] &= masks


def span_patterns(
    scheme: LabelScheme, text: tuple[int, int], span: tuple[int, int, str]
) -> Iterator[ForbiddenPattern]:
    """Label patterns one of which is there exactly if a span of a text is, which are forbidden so that it
    cannot be shown.

    text (tuple[int, int]): the text's first token in the batch, and one past its last; places that
        are returned are in the batch, too.
    """
    start, end, label = span
    if scheme.encoding == "tags" and end - start > 1:
        return  # there is none
    path = tuple(segment.label for segment in scheme.encode_span(start, end, label))
    start, end = text[0] + start, text[0] + end
    if scheme.encoding == "segments":
        yield ForbiddenPattern(start, end, path)
        return
    on = scheme.continuing(label) if scheme.encoding in ("io", "bio") else []
    others = [(y,) for y in range(scheme.n_labels) if y not in on]
    before = others if scheme.encoding == "io" and start > text[0] else [()]
    behind = others if on and end < text[1] else [()]
    for first, last in product(before, behind):
        at = end if last else end - 1
        yield ForbiddenPattern(at, at + 1, (*first, *path, *last))


def _labels(scheme: LabelScheme, label: str) -> list[int]:
    """The engine's labels that tokens of such a span may have."""
    number = scheme.labels.index(label)
    return [
        y for y in range(scheme.n_labels) if y != scheme.outside and scheme.user_label(y) == number
    ]


def _others(scheme: LabelScheme, labels: set[int]) -> list[int]:
    return [y for y in range(scheme.n_labels) if y not in labels]
