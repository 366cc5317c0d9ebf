"""Readings of a text in characters, which keep what a person has said of it."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from spacy.tokens import Doc

from spacy_hocrf.annotation.annotation import TextConstraint
from spacy_hocrf.annotation.spans import words_of
from spacy_hocrf.annotation.text_constraints import put
from spacy_hocrf.answers.reading import Reading
from spacy_hocrf.cli.label.store import Chars
from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = ["PlacedText", "Readings", "ScoredChars", "Stretch", "TokenPlaces", "read"]

ScoredChars = tuple[int, int, str, float]
"""A span with its probability, whatever else there is."""
Stretch = tuple[int, int]
"""First token, or character, and one past the last."""
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


class TokenPlaces:
    """Tokens of a text by characters. words (Sequence[str]): each with the white space behind it."""

    def __init__(self, words: Sequence[str]) -> None:
        self.text = "".join(words)
        self.ends = [*accumulate(map(len, words))]
        self.starts = [0, *self.ends[:-1]]

    def chars(self, first: int, last: int) -> Stretch:
        """Characters of tokens, without white space at either end. RAISES (ValueError): for no tokens."""
        if not 0 <= first < last <= len(self.ends):
            raise ValueError(f"there are no tokens from {first} to {last}")
        return self.bare(self.starts[first], self.ends[last - 1])

    def bare(self, start: int, end: int) -> Stretch:
        """A stretch without white space at either end."""
        within = self.text[start:end]
        return start + len(within) - len(within.lstrip()), start + len(within.rstrip())

    def tokens(self, start: int, end: int) -> Stretch:
        """Tokens that have any of these characters."""
        return bisect_right(self.ends, start), bisect_left(self.starts, end)


class PlacedText(TokenPlaces):
    """A text that is annotated: its Doc, as earlier components leave it, and where its tokens are.

    words (Tuple[str, …]): lower-cased, without white space around them.
    """

    def __init__(self, doc: Doc) -> None:
        words = words_of(doc)
        super().__init__(words)
        self.doc = doc
        self.words = tuple(word.strip().lower() for word in words)


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
    labels = defaultdict[Stretch, list[tuple[str, float]]](list)  # of stretches
    for (start, end, label), p in chance.items():
        labels[start, end].append((label, p))
    for start, end, label in next(iter(found)):
        same = [(y, p) for y, p in labels[start, end] if y != label]
        same.append(("", float(nothing[start:end].min())))
        likely = [pair for pair in same if pair[1] >= LEAST_PROBABLE]
        others.append((*text.chars(start, end), sorted(likely, key=lambda pair: -pair[1])))
    rows = [(tuple(scored(*span) for span in spans), p) for spans, p in found.items()]
    return Readings(rows, others, version)


def _constrained(
    pipe: SegmentationPipe, doc: Doc, said: Sequence[Chars]
) -> tuple[Reading, Collection[Chars]]:
    """What the model knows if some spans are there, without a label none; and those that it cannot have."""
    reading, kept = _beside(pipe, doc, (), said)
    return reading, {*said} - {*kept}


def _beside(
    pipe: SegmentationPipe, doc: Doc, kept: Sequence[Chars], more: Sequence[Chars]
) -> tuple[Reading, Sequence[Chars]]:
    """What the model knows if these are there, and of `more` those that it can have; which it then has."""
    try:
        return pipe.reading(_with(pipe, doc, [*kept, *more])), [*kept, *more]
    except ValueError:
        if len(more) > 1:
            half = len(more) // 2
            _, kept = _beside(pipe, doc, kept, more[:half])
            return _beside(pipe, doc, kept, more[half:])
        return pipe.reading(_with(pipe, doc, kept)), kept


def _with(pipe: SegmentationPipe, doc: Doc, said: Sequence[Chars]) -> Doc:
    copy = doc.copy()
    kinds = (TextConstraint(*span, "span" if span[2] else "outside") for span in said)
    put(copy, pipe.rules.constraints.spans_key, kinds)
    return copy


def _laid_over(spans: Spans, over: Collection[Chars]) -> tuple[Chars, ...]:
    """Spans, with others in the place of those that they overlap."""
    kept = [s for s in spans if not any(s[0] < o[1] and o[0] < s[1] for o in over)]
    return tuple(sorted([*kept, *(span for span in over if span[2])]))
