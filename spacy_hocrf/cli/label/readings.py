"""Readings of a text in characters, which keep what a person has said of it."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc

from spacy_hocrf.annotation.spans import words_of
from spacy_hocrf.answers.reading import Reading
from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = ["Chars", "PlacedText", "Readings", "ScoredChars", "Stretch", "read"]

Chars = tuple[int, int, str]
"""First character of a span, one past its last, and its label."""
ScoredChars = tuple[int, int, str, float]
"""A span with its probability, whatever else there is."""
Stretch = tuple[int, int]
Spans = Sequence[Chars]  # of tokens

LEAST_PROBABLE = 0.01
"""What else a stretch could be is named from this probability on."""


class Readings(NamedTuple):
    """What a text could be, the most probable first.

    readings: each with its spans, sorted, and the probability of these and no others given what is fixed;
        [] before there is a model.
    others: for each span of the first, what else its stretch could be, the most probable first; "" is no
        span.
    version: of the model, 0 before any.
    """

    readings: list[tuple[tuple[ScoredChars, ...], float]]
    others: list[tuple[int, int, list[tuple[str, float]]]]
    version: int


class PlacedText:
    """A text that is annotated: its Doc, as earlier components leave it, and where its tokens are.

    text (str): its characters. words (Tuple[str, …]): lower-cased, without white space around them.
    """

    def __init__(self, doc: Doc) -> None:
        words = words_of(doc)
        self.doc, self.text = doc, "".join(words)
        self.words = tuple(word.strip().lower() for word in words)
        self._first = np.cumsum([0, *map(len, words)])
        self._after = self._first[:-1] + [len(word.rstrip()) or len(word) for word in words]

    def tokens(self, start: int, end: int) -> Stretch:
        """The tokens that have some of these characters."""
        first = int(np.searchsorted(self._first, start, side="right")) - 1
        return first, max(first + 1, int(np.searchsorted(self._first, end, side="left")))

    def chars(self, start: int, end: int) -> Stretch:
        """The characters of some tokens, without white space behind them."""
        return int(self._first[start]), int(self._after[end - 1])


def read(
    pipe: SegmentationPipe,
    text: PlacedText,
    fixed: Iterable[Chars],
    outside: Iterable[Stretch],
    n: int,
    version: int,
) -> Readings:
    """The n best readings that keep what a person has said, as `LabelLoop.readings`."""
    said = [(*text.tokens(start, end), label) for start, end, label in fixed]
    said += [(*text.tokens(start, end), "") for start, end in outside]
    reading, over = _constrained(pipe, text.doc, said)
    chance = {span[:3]: span.probability for span in reading.spans(LEAST_PROBABLE)}

    def scored(start: int, end: int, label: str) -> ScoredChars:
        span = start, end, label
        if span in over:
            known = 1.0
        elif span in chance:
            known = chance[span]
        else:
            known = reading.probability(*span)
        return *text.chars(start, end), label, known

    found = dict[Spans, float]()
    for best in reading.best(n):
        found.setdefault(_laid_over(best.spans, over), best.probability)
    nothing, others = reading.tokens()[:, -1], []
    for start, end, label in next(iter(found)):
        same = [(y, p) for (a, b, y), p in chance.items() if (a, b) == (start, end) and y != label]
        same.append(("", float(nothing[start:end].min())))
        likely = [pair for pair in same if pair[1] >= LEAST_PROBABLE]
        others.append((*text.chars(start, end), sorted(likely, key=lambda pair: -pair[1])))
    rows = [(tuple(scored(*span) for span in spans), p) for spans, p in found.items()]
    return Readings(rows, others, version)


def _constrained(
    pipe: SegmentationPipe, doc: Doc, said: Sequence[Chars]
) -> tuple[Reading, Collection[Chars]]:
    """What the model knows if some spans are there, without a label none; and those that it cannot have."""
    try:
        return pipe.reading(_with(pipe, doc, said)), ()
    except ValueError:
        kept, over = list[Chars](), list[Chars]()
        for span in said:
            try:
                pipe.reading(_with(pipe, doc, [*kept, span]))
                kept.append(span)
            except ValueError:
                over.append(span)
        return pipe.reading(_with(pipe, doc, kept)), over


def _with(pipe: SegmentationPipe, doc: Doc, said: Sequence[Chars]) -> Doc:
    copy = doc.copy()
    for span in said:
        pipe.constrain(copy, span, "span" if span[2] else "outside")
    return copy


def _laid_over(spans: Spans, over: Collection[Chars]) -> tuple[Chars, ...]:
    """Spans, with others in the place of those that they overlap."""
    kept = [s for s in spans if not any(s[0] < o[1] and o[0] < s[1] for o in over)]
    return tuple(sorted([*kept, *(span for span in over if span[2])]))
