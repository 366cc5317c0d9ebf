"""Find annotation that is probably wrong, by a model that has not seen the text.

For each annotated span, the model's answer is the alternative that contradicts it: the most probable
overlapping span, or no span at all. Where nothing is annotated, each span that the model finds is an answer.
The doubt is the probability of the answer, given that either it or the annotation is right,

    (P(answer) + c) / (P(answer) + P(annotation) + 2c),

so it is large only if the model is sure of something else. A span of probability 0.02 among many others of
0.02 is not doubted: the model does not know.

If a share e of all annotation is wrong, an annotation is right with the probability

    (1 - e) (P(annotation) + c) / ((1 - e) (P(annotation) + c) + e (P(answer) + c)).

e is estimated as 1 minus the mean of these, iterated to a fixed point (expectation maximisation), and the
weight of a text is the smallest of them in it.
"""

from bisect import bisect, bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.best_readings import ScoredSpan
from spacy_hocrf.cli.counts import Item
from spacy_hocrf.cli.shown import ShownText

__all__ = [
    "CALM",
    "MIN_PROBABILITY",
    "WIDTH",
    "WORTH",
    "Doubt",
    "ReadText",
    "contradictions",
    "doubts_of",
    "shortened",
    "text_weights",
]

MIN_PROBABILITY = 0.02
"""Less probable spans are ignored."""
CALM = 0.05
"""Constant c of the doubt: differences between smaller probabilities hardly count."""
WORTH = 0.5
"""Smallest doubt that is worth a look."""
WRONG = 0.1
"""Initial share e of wrong annotation."""
ROUNDS = 50
"""Number of iterations that estimate e."""
WIDTH = 40
"""Number of characters of a span that are shown."""


@dataclass(frozen=True)
class Doubt:
    """An annotation and the model's answer that contradicts it; None stands for no span."""

    text: int  # number
    annotated: ScoredSpan | None
    answer: ScoredSpan | None
    annotated_chance: float  # probability of the annotation
    answer_chance: float  # probability of the answer

    @property
    def degree(self) -> float:
        """How doubtful the annotation is, from 0 to 1."""
        answer, annotated = self.answer_chance + CALM, self.annotated_chance + CALM
        return answer / (answer + annotated)

    def right(self, wrong: float) -> float:
        """Probability that the annotation is right, if this share of all annotation is wrong."""
        annotated = (1.0 - wrong) * (self.annotated_chance + CALM)
        return annotated / (annotated + wrong * (self.answer_chance + CALM))


@dataclass(frozen=True)
class ReadText:
    """An annotated text with the predictions of a model that was not trained on it."""

    number: int  # from 0
    words: tuple[str, ...]  # tokens, each with the white space behind it
    annotated: tuple[ScoredSpan, ...]
    found: tuple[ScoredSpan, ...]  # the pipeline's predictions
    doubts: tuple[Doubt, ...]  # the largest first
    id: str | None = None  # its id in the file

    @property
    def name(self) -> str:
        """The text's id, or its number if it has none."""
        return str(self.number) if self.id is None else self.id

    def worst(self) -> float:
        """Degree of the largest doubt; 0 without one."""
        return self.doubts[0].degree if self.doubts else 0.0

    def spell(self, span: ScoredSpan | None) -> str:
        """Spell out the words of a span and its label."""
        if span is None:
            return "-"
        return f"{shortened(self.words[span.start : span.end], WIDTH)} ({span.label})"


def doubts_of(
    number: int, text: ShownText, items: Collection[Item], unknown: NDArray[np.bool_] | None
) -> list[Doubt]:
    """Make a doubt for each annotated span, and for each probable span where nothing is annotated.

    number (int): number of the text.
    items (Collection[Item]): its annotation.
    unknown (Optional[bool [T]]): tokens with unknown annotation.
    """
    ordered = sorted(items, key=lambda item: item[1:])
    annotated = text.scored((start, end, label) for label, start, end in ordered)
    return contradictions(number, annotated, text.spans(MIN_PROBABILITY), text.outside(), unknown)


def text_weights(texts: Sequence[ReadText]) -> tuple[list[float], float]:
    """Compute weights of training texts, for `doc._.hocrf_weight`.

    RETURNS (tuple[list[float], float]): for each text the smallest probability that one of its annotations is
        right, 1.0 if nothing is annotated or found; and the estimated share of wrong annotation.
    """
    doubts, wrong = [doubt for text in texts for doubt in text.doubts], WRONG
    for _ in range(ROUNDS if doubts else 0):
        wrong = 1.0 - fmean(doubt.right(wrong) for doubt in doubts)
    return [
        min((doubt.right(wrong) for doubt in text.doubts), default=1.0) for text in texts
    ], wrong


def contradictions(
    text: int,
    annotated: Sequence[ScoredSpan],
    probable: Sequence[ScoredSpan],
    outside: NDArray[np.float64],
    unknown: NDArray[np.bool_] | None = None,
) -> list[Doubt]:
    """Make a doubt for each annotated span, and for each probable span where nothing is annotated. Of
    overlapping annotated spans only the longest counts, since a model cannot learn the others.

    text (int): number of the text.
    annotated, probable (Sequence[ScoredSpan]): its annotated spans, and the model's spans of probability
        MIN_PROBABILITY or more.
    outside (float64 [T]): P(the token is in no span).
    unknown (Optional[bool [T]]): tokens with unknown annotation.
    """
    items = {span[:3] for span in annotated}
    others = sorted(span for span in probable if span[:3] not in items)
    starts = [span.start for span in others]
    longest = max((span.end - span.start for span in others), default=0)
    doubts, covered = list[Doubt](), np.zeros(len(outside), dtype=bool)
    learnt = set[ScoredSpan]()
    for span in sorted(annotated, key=lambda s: (s.start - s.end, s.start, -s.probability)):
        if not covered[span.start : span.end].any():
            learnt.add(span)
            covered[span.start : span.end] = True
    for span in annotated:
        covered[span.start : span.end] = True
        if span not in learnt:
            continue
        no_span = _no_span(outside, span)
        near = slice(bisect(starts, span.start - longest), bisect_left(starts, span.end))
        overlapping = [other for other in others[near] if span.start < other.end]
        answer = max(overlapping, key=lambda other: other.probability, default=None)
        if answer is not None and answer.probability >= no_span:
            doubts.append(Doubt(text, span, answer, span.probability, answer.probability))
        else:
            doubts.append(Doubt(text, span, None, span.probability, no_span))
    if unknown is not None:
        covered |= unknown
    for span in _disjoint(others, covered):
        doubts.append(Doubt(text, None, span, _no_span(outside, span), span.probability))
    return doubts


def shortened(words: Sequence[str], width: int) -> str:
    """Join words into one line, cut to `width` characters."""
    line = " ".join("".join(words).split())
    return line if len(line) <= width else f"{line[: width - 2].rstrip()} …"


def _no_span(outside: NDArray[np.float64], span: ScoredSpan) -> float:
    """Upper bound of the probability that there is no span: the least P(outside) of its tokens."""
    return float(outside[span.start : span.end].min())


def _disjoint(spans: Collection[ScoredSpan], covered: NDArray[np.bool_]) -> Iterator[ScoredSpan]:
    """Yield spans that overlap neither a covered token nor each other, the most probable first."""
    free = ~covered
    for span in sorted(spans, key=lambda span: -span.probability):
        if free[span.start : span.end].all():
            free[span.start : span.end] = False
            yield span
