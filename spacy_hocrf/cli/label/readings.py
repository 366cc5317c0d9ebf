"""Readings of a text in characters, consistent with a person's annotation."""

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

__all__ = ["PlacedText", "Readings", "ScoredChars", "Stretch", "TokenPlaces", "read_text"]

ScoredChars = tuple[int, int, str, float]
"""A span in characters with its marginal probability."""
Stretch = tuple[int, int]
"""First token, or character, and one past the last one."""

MIN_PROBABILITY = 0.01
"""Smallest probability of an alternative that is shown."""


class Readings(NamedTuple):
    """Possible readings of a text, the most probable first.

    readings: sorted spans of each reading, and its probability given the fixed spans; [] before there is a
        model.
    others: for each span of the first reading, alternative labels of its words with their probabilities, the
        most probable first; "" is no span.
    version: number of the model, 0 before the first.
    """

    readings: list[tuple[tuple[ScoredChars, ...], float]]
    others: list[tuple[int, int, list[tuple[str, float]]]]
    version: int


class TokenPlaces:
    """Character offsets of a text's tokens. words (Sequence[str]): tokens with trailing white space."""

    def __init__(self, words: Sequence[str]) -> None:
        self.text = "".join(words)
        self.ends = [*accumulate(map(len, words))]
        self.starts = [0, *self.ends[:-1]]

    def chars(self, first: int, last: int) -> Stretch:
        """Convert tokens to characters, without white space at the ends. RAISES (ValueError): for none."""
        if not 0 <= first < last <= len(self.ends):
            raise ValueError(f"there are no tokens from {first} to {last}")
        return self.bare(self.starts[first], self.ends[last - 1])

    def bare(self, start: int, end: int) -> Stretch:
        """Strip a stretch of characters of white space at both ends."""
        within = self.text[start:end]
        return start + len(within) - len(within.lstrip()), start + len(within.rstrip())

    def tokens(self, start: int, end: int) -> Stretch:
        """Find the tokens that overlap a stretch of characters."""
        return bisect_right(self.ends, start), bisect_left(self.starts, end)


class PlacedText(TokenPlaces):
    """A text with its Doc, as earlier components leave it, and the character offsets of its tokens.

    words (Tuple[str, …]): tokens, lower-cased and stripped of white space.
    """

    def __init__(self, doc: Doc) -> None:
        words = words_of(doc)
        super().__init__(words)
        self.doc = doc
        self.words = tuple(word.strip().lower() for word in words)


def read_text(
    pipe: SegmentationPipe,
    text: PlacedText,
    fixed: Iterable[Chars],
    outside: Iterable[Stretch],
    n: int,
    version: int,
) -> Readings:
    """Compute the n best readings that agree with the person's annotation, for `LabelLoop.readings`."""
    constraints = [(*text.tokens(start, end), label) for start, end, label in fixed]
    constraints += [(*text.tokens(start, end), "") for start, end in outside]
    reading, kept = _constrained(pipe, text.doc, (), constraints)
    impossible = {*constraints} - {*kept}  # for the model
    chance = {span[:3]: span.probability for span in reading.spans(MIN_PROBABILITY)}

    def scored(start: int, end: int, label: str) -> ScoredChars:
        span = start, end, label
        if span in impossible:
            probability = 1.0
        elif span in chance:
            probability = chance[span]
        else:
            probability = reading.probability(*span)
        return *text.chars(start, end), label, probability

    readings = dict[Sequence[Chars], float]()
    for best in reading.best(n):
        readings.setdefault(_laid_over(best.spans, impossible), best.probability)
    no_span, others = reading.tokens()[:, -1], []
    labels = defaultdict[Stretch, list[tuple[str, float]]](list)  # alternatives by stretch
    for (start, end, label), p in chance.items():
        labels[start, end].append((label, p))
    for start, end, label in next(iter(readings)):
        alternatives = [(y, p) for y, p in labels[start, end] if y != label]
        alternatives.append(("", float(no_span[start:end].min())))
        likely = [pair for pair in alternatives if pair[1] >= MIN_PROBABILITY]
        others.append((*text.chars(start, end), sorted(likely, key=lambda pair: -pair[1])))
    rows = [(tuple(scored(*span) for span in spans), p) for spans, p in readings.items()]
    return Readings(rows, others, version)


def _constrained(
    pipe: SegmentationPipe, doc: Doc, kept: Sequence[Chars], more: Sequence[Chars]
) -> tuple[Reading, Sequence[Chars]]:
    """Constrain a reading to the spans `kept`, and as many of `more` as the model can have; return both.

    If they are impossible together, halves of `more` are added one after the other.
    """
    try:
        return pipe.reading(_constrained_doc(pipe, doc, [*kept, *more])), [*kept, *more]
    except ValueError:
        if len(more) > 1:
            half = len(more) // 2
            _, kept = _constrained(pipe, doc, kept, more[:half])
            return _constrained(pipe, doc, kept, more[half:])
        return pipe.reading(_constrained_doc(pipe, doc, kept)), kept


def _constrained_doc(pipe: SegmentationPipe, doc: Doc, spans: Sequence[Chars]) -> Doc:
    copy = doc.copy()
    kinds = (TextConstraint(*span, "span" if span[2] else "outside") for span in spans)
    put(copy, pipe.rules.constraints.spans_key, kinds)
    return copy


def _laid_over(spans: Sequence[Chars], over: Collection[Chars]) -> tuple[Chars, ...]:
    """Replace spans by others that overlap them."""
    kept = [s for s in spans if not any(s[0] < o[1] and o[0] < s[1] for o in over)]
    return tuple(sorted([*kept, *(span for span in over if span[2])]))
