"""The texts whose annotation the model doubts most, read by models that have not seen them.

The annotation and the model differ in two ways. Where the model shows a span that is not annotated, its
doubt is the probability of that span. Where it shows nothing in place of an annotated span, its doubt
is the probability that nothing is there; but what a label's spans are like may be hard to learn, so
this is multiplied by the share of that label's spans in whose place it does show something.
"""

from dataclasses import dataclass

import numpy as np

from spacy_hocrf.cli.auto.reading import Reading, Spans
from spacy_hocrf.cli.auto.texts import Texts

__all__ = ["Doubt", "Mark", "doubts"]

LEAST = 0.5
"""Doubt that is worth a look."""
MOST = 25
"""Texts."""


@dataclass(frozen=True)
class Mark:
    """A span of a text."""

    start: int
    end: int
    label: str
    chance: float  # probability, for a model that has not seen the text
    agreed: bool  # annotated, and shown by the model?


@dataclass(frozen=True)
class Doubt:
    """A text with its annotation and with what the model would have said."""

    text: int  # number
    degree: float  # from 0 to 1
    annotated: tuple[Mark, ...]
    read: tuple[Mark, ...]


def doubts(texts: Texts, reading: Reading, cost: float | None) -> list[Doubt]:
    """The texts with the largest doubts, those first.

    cost (Optional[float]): of `ExpectedF`; None for `Viterbi`.
    """
    probable = _by_text(reading.probable, texts)
    shown = _by_text(reading.shown(cost), texts)
    found = []
    held = np.flatnonzero(reading.held).tolist()
    seen = _seen(texts, held, shown)
    for text in held:
        chances = {(m.label, m.start, m.end): m.chance for m in probable[text]}
        read = {(m.label, m.start, m.end) for m in shown[text]}
        annotated = tuple(
            Mark(
                start,
                end,
                label,
                chances.get((label, start, end), 0.0),
                (label, start, end) in read,
            )
            for label, start, end in sorted(texts.gold[text], key=lambda item: item[1:])
        )
        degree = max((m.chance for m in shown[text] if not m.agreed), default=0.0)
        for mark in annotated:
            if not any(_overlap(mark, other) for other in shown[text]):
                there = sum(m.chance for m in probable[text] if _overlap(mark, m))
                degree = max(degree, (1.0 - there) * seen[mark.label])
        if degree >= LEAST:
            found.append(Doubt(text, degree, annotated, tuple(shown[text])))
    return sorted(found, key=lambda doubt: (-doubt.degree, doubt.text))[:MOST]


def _by_text(spans: Spans, texts: Texts) -> dict[int, list[Mark]]:
    marks: dict[int, list[Mark]] = {text: [] for text in range(len(texts))}
    for text, start, end, label, chance, right in zip(*(c.tolist() for c in vars(spans).values())):
        marks[text].append(Mark(start, end, texts.labels[label], chance, right))
    return marks


def _seen(texts: Texts, held: list[int], shown: dict[int, list[Mark]]) -> dict[str, float]:
    """Share of each label's annotated spans in whose place something is shown."""
    there, all_of_them = dict.fromkeys(texts.labels, 0), dict.fromkeys(texts.labels, 0)
    for text in held:
        for label, start, end in texts.gold[text]:
            all_of_them[label] += 1
            there[label] += any(m.start < end and start < m.end for m in shown[text])
    return {label: there[label] / max(1, number) for label, number in all_of_them.items()}


def _overlap(one: Mark, other: Mark) -> bool:
    return one.start < other.end and other.start < one.end
