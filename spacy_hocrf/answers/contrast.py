"""The best readings of a text with a given span and without it.

A segmentation without the span differs from it somewhere: at its first token, at a later token that begins
something else, or just before or after it, where the same label continues. Each of these cases forbids some
labels at a few tokens and is decoded separately; the best result is the best segmentation without the span.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, NoReturn, cast

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span

from spacy_hocrf.annotation.annotation import (
    Annotation,
    NamedSpan,
    NamedSpans,
    constrain,
    covered,
    trim,
)
from spacy_hocrf.annotation.errors import ReadingErrors
from spacy_hocrf.annotation.spans import row_of
from spacy_hocrf.annotation.whitespace import spans_shown, variants_of, with_whitespace
from spacy_hocrf.answers.part import Part
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.engine.selection import select_segments
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.features.tokens import beginning
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.types import CONTINUE, FIRST, LAST, Segments

__all__ = ["Asked", "Contrast", "ScoredSegmentation", "departures"]

MAX_TOKENS = 20_000
"""Number of tokens that are decoded at once."""

Asked = Span | NamedSpan | Iterable[Span | NamedSpan]
"""A span, or all spans of a reading."""
Bits = NDArray[np.uint8]


class ScoredSegmentation(NamedTuple):
    """A segmentation and its score."""

    segments: Segments
    score: float  # nats; -inf if there is none


@dataclass(frozen=True)
class Contrast:
    """One Doc with its potentials, for comparing its best readings."""

    doc: Doc
    part: Part  # the Doc alone
    pool: BufferPool

    def checked(self, span: Span | NamedSpan) -> NamedSpan:
        """Return a span as it is shown, trimmed of whitespace.

        RAISES (ValueError): H224 unless it is a non-blank span of the Doc with one of the model's labels,
            H569 if it is no span at all.
        """
        start, end, label = row = row_of(span)
        inside = 0 <= start < end <= len(self.doc)
        if inside and self.part.scheme.encoding != "tags":
            start, end = trim(self.doc, start, end)
        if not inside or start == end or label not in self.part.scheme.labels:
            self._refuse(row)
        return start, end, label

    def compare(
        self, span: NamedSpan, instead: Asked | None
    ) -> tuple[ScoredSegmentation, ScoredSegmentation]:
        """Return the best segmentation with a span, and the best one with the given alternative instead.

        RAISES (ValueError): H224 to H227, see `explaining.Explainer.explain`.
        """
        free, spans = self._free
        chosen = free if span in spans else self._best(self._with([span]))
        if chosen.score == -np.inf:
            self._refuse(span)
        if instead is not None:
            return chosen, self._instead(span, instead)
        if span not in spans:
            return chosen, free
        other = self._best(self._without(span, self.part.potentials.allowed))
        if other.score == -np.inf:
            text = beginning(self.doc)
            raise ValueError(ReadingErrors.H225.format(span=self._words(span), text=text))
        return chosen, other

    def shown(self, segments: Segments) -> tuple[NamedSpan, ...]:
        """Return the spans of a segmentation, without whitespace at their ends."""
        part, spans = self.part, self.part.scheme.spans(segments)
        if part.blank is not None:
            spans = spans_shown(spans, part.blank, part.potentials.offsets)
        (named,) = part.scheme.named(spans)
        return tuple(named)

    @cached_property
    def _free(self) -> tuple[ScoredSegmentation, frozenset[NamedSpan]]:
        """The best of all segmentations, and its spans."""
        best = self._best([self.part.potentials.allowed])
        return best, frozenset(self.shown(best.segments))

    def _instead(self, span: NamedSpan, asked: Asked) -> ScoredSegmentation:
        """Return the best segmentation that has what is asked for instead of the span."""
        single = _one_span(asked)
        if single is not None:
            other = self.checked(single)
            if other == span:
                raise ValueError(ReadingErrors.H227.format(span=self._words(span)))
            cases = [case for bits in self._with([other]) for case in self._without(span, bits)]
            text = self._words(other)
        else:
            spans = sorted(map(self.checked, cast("Iterable[Span | NamedSpan]", asked)))
            if span in spans:
                raise ValueError(ReadingErrors.H227.format(span=self._words(span)))
            cases = list(self._with(spans, complete=True))
            text = f"exactly {', '.join(map(self._words, spans)) or 'no span'}"
        best = self._best(cases)
        if best.score == -np.inf:
            text = f"{text} and without {self._words(span)}"
            raise ValueError(ReadingErrors.H226.format(found=text, text=beginning(self.doc)))
        return best

    def _with(self, spans: NamedSpans, *, complete: bool = False) -> Iterator[Bits]:
        """Yield the `allowed` bits of segmentations with some spans, once for each way to add whitespace."""
        for chosen in variants_of(self.part.blank, spans, beginning(self.doc)):
            if not self.part.scheme.can_have(chosen):
                continue
            in_span = covered(chosen, len(self.doc))
            unknown = ~in_span
            if complete:  # a span of whitespace alone is not shown
                unknown &= False if self.part.blank is None else self.part.blank
            if self.part.scheme.outside < 0 and not (unknown | in_span).all():
                continue
            allowed = self.part.potentials.allowed
            yield constrain(self.part.scheme, allowed, Annotation(tuple(chosen), unknown)) & allowed

    def _without(self, span: NamedSpan, allowed: Bits) -> Iterator[Bits]:
        """Yield `allowed` bits of cases that together cover every segmentation without the span."""
        start, end, label = span
        first, last = start, end
        if self.part.blank is not None:
            longest = with_whitespace(self.part.blank, start, end, label)
            first, last = longest[0][0], longest[-1][1]
        return departures(self.part.scheme, allowed, (first, start, end, last), label)

    def _best(self, cases: Iterable[Bits]) -> ScoredSegmentation:
        """Return the best segmentation over all cases that keeps the rules of the text."""
        all_cases, part = list(cases), self.part
        while True:
            best = self._best_of(all_cases, part.automaton)
            (spans,) = self.part.scheme.named(self.part.scheme.spans(best.segments))
            stricter = part.stricter(spans) if best.score > -np.inf else None
            if stricter is None:
                return best
            part = stricter

    def _best_of(self, cases: Sequence[Bits], automaton: Automaton) -> ScoredSegmentation:
        """Return the best segmentation over all cases under one automaton."""
        batch_size = max(1, MAX_TOKENS // max(1, len(self.doc)))
        segmentations = [
            self._decode(np.stack(cases[i : i + batch_size]), automaton)
            for i in range(0, len(cases), batch_size)
        ]
        empty = Segments(np.zeros(2, dtype=np.int64), *[np.zeros(0, dtype=np.int32)] * 3)
        none = ScoredSegmentation(empty, -np.inf)
        return max(segmentations, key=lambda each: each.score, default=none)

    def _decode(self, bits: NDArray[np.uint8], automaton: Automaton) -> ScoredSegmentation:
        """Return the best segmentation over some cases, uint8 [n, T, Y]."""
        asked = self.part.potentials.repeated(len(bits))
        asked = replace(asked, allowed=np.ascontiguousarray(bits.reshape(-1, bits.shape[-1])))
        with self.pool.lend(automaton) as buffers:
            best = viterbi(asked, automaton, buffers=buffers)
        case = int(best.scores.argmax())
        segments = select_segments(best.segments, np.array([case]))
        return ScoredSegmentation(segments, float(best.scores[case]))

    def _words(self, span: NamedSpan) -> str:
        start, end, label = span
        return f"{label} at tokens {start} to {end}"

    def _refuse(self, span: NamedSpan) -> NoReturn:
        known, text = ", ".join(self.part.scheme.labels), beginning(self.doc)
        found = self._words(span)
        raise ValueError(
            ReadingErrors.H224.format(found=found, expected=len(self.doc), text=text, known=known)
        )


def departures(
    scheme: LabelScheme, allowed: Bits, places: tuple[int, int, int, int], label: str
) -> Iterator[Bits]:
    """Split the segmentations without a span into cases: together they cover all of these and none with the
    span.

    allowed (uint8 [T, Y]): bits of the segmentations to split; the cases are subsets of them.
    places (Tuple[int, int, int, int]): the span may begin anywhere from the first to the second of these
        tokens, and end anywhere from the third to the last (surrounding whitespace is not shown).
    RETURNS (Iterator[uint8 [T, Y]]): bits of each case; a case that leaves some token no label is omitted.
    """
    first, start, end, last = places
    anything = np.uint8(FIRST | CONTINUE | LAST)
    member = np.zeros(scheme.n_labels, dtype=np.uint8)  # bits of a token in a span of the label
    later = np.zeros(scheme.n_labels, dtype=np.uint8)  # bits of any but its first token
    goes_on = np.zeros(scheme.n_labels, dtype=np.uint8)  # bits that continue the span
    for y in range(scheme.n_labels):
        if y != scheme.outside and scheme.labels[scheme.user_label(y)] == label:
            member[y] = anything
            if scheme.encoding == "segments":
                later[y], goes_on[y] = CONTINUE | LAST, CONTINUE
    for y in scheme.continuing(label) if scheme.encoding not in ("segments", "tags") else ():
        later[y] = goes_on[y] = anything
    # with "io" a span continues from the token before if that has the same label
    before = first - (scheme.encoding == "io")
    cases: list[tuple[slice, NDArray[np.uint8]]] = [(slice(start, start + 1), ~member)]
    cases += [(slice(t, t + 1), ~goes_on) for t in range(start + 1, end)]
    if first > 0:
        cases.append((slice(before, start + 1), later))
    if last < len(allowed):
        cases.append((slice(end, last + 1), later))
    for tokens, keep in cases:
        bits = allowed.copy()
        bits[tokens] &= keep
        if bits[tokens].any(axis=1).all():
            yield bits


def _one_span(asked: Asked) -> Span | NamedSpan | None:
    """Return the span that is asked for; None if several are."""
    if isinstance(asked, Span) or not isinstance(asked, Iterable):
        return asked
    if isinstance(asked, tuple) and len(asked) == 3 and isinstance(asked[2], str):
        return asked
    return None
