"""An HTML page that shows what a model finds in texts: how sure it is, what else the spans could be, and why.

The page is a single file that needs no network. Its script draws JSON data, so that no word of a text is ever
interpreted as markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from math import exp, inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.best_readings import ScoredReading, ScoredSpan
from spacy_hocrf.annotation.spans import words_of

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from spacy_hocrf.answers.explaining import Explanation

__all__ = ["Answers", "as_frame", "make_page", "plain_page", "surety", "tag_of", "text_on_page"]

MIN_ALTERNATIVE = 0.05
"""Alternatives less probable than this are left out."""
MIN_UNFOUND = 0.2
"""Spans of at least this probability are marked where nothing is found."""
N_REASONS = 8
"""Number of reasons listed for a span."""
MIN_NATS = 0.05
"""Words that contribute less than this, in nats, are not listed."""
MIN_TOKEN_LABEL = 0.005
"""Labels of tokens less probable than this are left out."""
MAX_TOKENS_READ = 1_000_000
"""Limit on tokens × explained spans of a text: each explanation decodes the text again."""
UNKNOWN, WRONG, RIGHT, MISSED = -1, 0, 1, 2
SCRIPTS = ("shared.js", "page.js")
"""Scripts of the page, in this order."""
HEIGHT = 480
"""Height of a page in a notebook, in pixels."""


class Answers(Protocol):
    """The members of `answers.reading.Reading` that a page needs."""

    doc: Doc
    labels: tuple[str, ...]

    def spans(self, at_least: float) -> Sequence[ScoredSpan]: ...

    def log_probability(self, spans: Iterable[tuple[int, int, str]]) -> float: ...

    def best(self, n: int) -> Sequence[ScoredReading]: ...

    def tokens(self) -> NDArray[np.float64]: ...

    def explain(self, span: tuple[int, int, str]) -> Explanation: ...


def text_on_page(
    reading: Answers,
    shown: Sequence[ScoredSpan],
    labels: Sequence[str],
    gold: Sequence[ScoredSpan] | None = None,
    unknown: NDArray[np.bool_] | None = None,
) -> dict[str, Any]:
    """Collect the data of one text for the page.

    shown (Sequence[ScoredSpan]): what the model finds.
    labels (Sequence[str]): labels of the page, including those of the reading.
    gold (Optional[Sequence[ScoredSpan]]): the annotation, if there is one, with the model's probabilities.
    unknown (Optional[bool [T]]): tokens that the annotation says nothing about.
    """
    place = {label: number for number, label in enumerate(labels)}
    annotated = sorted(gold or ())
    found_spans, gold_spans = ({span[:3] for span in spans} for spans in (shown, annotated))
    others = [span for span in reading.spans(MIN_ALTERNATIVE) if span[:3] not in found_spans]
    perhaps = _perhaps(others, shown)
    missed = [span for span in annotated if span[:3] not in found_spans]
    explained = _explained(reading, [*shown, *missed, *perhaps])

    def reasons(span: ScoredSpan) -> dict[str, Any]:
        if span[2] not in reading.labels and span[:3] in found_spans:
            return {"refused": "set"}  # set by another component
        explainable = span[2] not in reading.labels or span[:3] in explained
        return _reasons(reading, span[:3], place) if explainable else {"refused": "long"}

    def row(span: ScoredSpan, verdict: int, asked: bool) -> list[Any]:
        start, end, label, p = span
        why = reasons(span) if asked else None
        return [start, end, place[label], _rounded(p), verdict, why]

    def verdict(span: ScoredSpan) -> int:
        start, end, _, _ = span
        silent = gold is None or (unknown is not None and unknown[start:end].any())
        return UNKNOWN if silent else RIGHT if span[:3] in gold_spans else WRONG

    def gold_row(span: ScoredSpan) -> list[Any]:
        lost = span[:3] not in found_spans
        return row(span, MISSED if lost else RIGHT, lost)

    return {
        "words": words_of(reading.doc),
        "spans": [row(span, verdict(span), True) for span in sorted(shown)],
        "gold": None if gold is None else [gold_row(span) for span in annotated],
        "perhaps": [row(span, UNKNOWN, True) for span in perhaps],
        "others": [row(span, UNKNOWN, False)[:4] for span in others],
        "heat": _heat(reading.tokens(), [*(place[label] for label in reading.labels), -1]),
        "sure": _rounded(surety(reading, shown)),
    }


def surety(reading: Answers, spans: Sequence[ScoredSpan]) -> float:
    """Return how sure the model is of a text: P(exactly these spans). If that is 0 (because every token must
    be in a span, but the decoder leaves out uncertain ones), the probability of the best reading. If spans
    overlap, or whitespace allows too many segmentations, the probability of the least certain span.
    """
    try:
        complete = reading.log_probability(s[:3] for s in spans if s[2] in reading.labels)
        return exp(complete) if complete > -inf else reading.best(1)[0].probability
    except ValueError:
        return min([p for *_, p in spans], default=1.0)


def make_page(
    texts: Sequence[Mapping[str, Any]],
    labels: Sequence[str],
    title: str,
    about: str = "",
    *,
    lang: str = "",
    bins: Sequence[Mapping[str, float]] = (),
    scores: Sequence[Mapping[str, float]] = (),
    curve: Mapping[str, Any] | None = None,
) -> str:
    """Return the HTML of the page.

    texts (Sequence[Dict]): texts as made by `text_on_page`. Optional keys: `doubt`, how doubtful their
        annotation is, and `number` in their file, to sort by doubt; `id`, a name; `accepted`, whether nobody
        needs to read them.
    labels (Sequence[str]): labels of their spans.
    title, about (str): headline, and a line below it.
    lang (str): language of the texts, as spaCy names it.
    bins (Sequence[Dict]): `from`, `to`, `spans`, `right` and `mean` of intervals of probability.
    scores (Sequence[Dict]): `found`, `annotated`, `right`, `precision`, `recall` and `f` of all labels
        together, then of each label.
    curve (Optional[Dict]): F1 by number of training texts.
    """
    data = {
        "lang": tag_of(lang),
        "labels": list(labels),
        "least": MIN_ALTERNATIVE,
        "gold": any(text["gold"] is not None for text in texts),
        "texts": list(texts),
        "bins": list(bins),
        "scores": list(scores),
        "curve": curve,
    }
    folder = files("spacy_hocrf.answers")
    # no "<", so that nothing ends the script that the data is in
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    fields = {
        "title": escape(title),
        "about": escape(about),
        "lang": escape(tag_of(lang)),
        "style": _style(),
        "script": "".join(folder.joinpath(name).read_text(encoding="utf8") for name in SCRIPTS),
        "data": text,
    }
    page = folder.joinpath("page.html").read_text(encoding="utf8")
    return re.sub(r"{{(\w+)}}", lambda match: fields[match[1]], page)


def plain_page(title: str, body: str, lang: str, style: str = "") -> str:
    """Return a page without a script; title, body and style must be escaped already.

    body (str): in English; words of texts in it have the attributes lang and dir.
    lang (str): language of the texts, as spaCy names it.
    style (str): style sheet added after that of all pages.
    """
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(tag_of(lang))}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'unsafe-inline'\"><title>{title}</title>\n<style>\n{_style()}{style}</style></head>\n"
        f'<body lang="en"><main>\n{body}\n</main></body></html>\n'
    )


def tag_of(lang: str) -> str:
    """Return the HTML code of a spaCy language: "" for the multi-language "xx"."""
    return "" if lang == "xx" else lang


def _style() -> str:
    return files("spacy_hocrf.answers").joinpath("page.css").read_text(encoding="utf8")


def as_frame(page: str) -> str:
    """Embed the page in another one, such as a notebook, isolated from it."""
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" title="What the model finds" '
        f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
    )


def _perhaps(others: Sequence[ScoredSpan], shown: Sequence[ScoredSpan]) -> list[ScoredSpan]:
    """Return the most probable of the other spans, at positions where nothing is found."""
    taken, chosen = set[int](), list[ScoredSpan]()
    for start, end, *_ in shown:
        taken.update(range(start, end))
    for span in sorted(others, key=lambda span: -span[3]):
        tokens = range(span[0], span[1])
        if span[3] >= MIN_UNFOUND and taken.isdisjoint(tokens):
            taken.update(tokens)
            chosen.append(span)
    return sorted(chosen)


def _explained(reading: Answers, spans: Sequence[ScoredSpan]) -> set[tuple[int, int, str]]:
    """Return the spans to explain: the least probable ones, as many as MAX_TOKENS_READ allows."""
    own = sorted((span for span in spans if span[2] in reading.labels), key=itemgetter(3, 0, 1))
    return {span[:3] for span in own[: max(1, MAX_TOKENS_READ // max(1, len(reading.doc)))]}


def _reasons(
    reading: Answers, span: tuple[int, int, str], place: Mapping[str, int]
) -> dict[str, Any]:
    """Return the reasons for a span, in words; or why there are none."""
    try:
        explanation = reading.explain(span)
    except ValueError as error:  # the span is certain, or impossible
        return {"refused": "set" if str(error).startswith("[H225]") else "impossible"}
    observations = explanation.observations()
    top, others = observations[:N_REASONS], observations[N_REASONS:]
    chosen = {*explanation.chosen}
    instead = [span for span in explanation.instead if span not in chosen]
    return {
        "odds": round(explanation.log_odds, 4),
        "top": [[words, round(value, 4)] for words, value in top],
        "rest": round(sum(value for _, value in others), 4) if others else None,
        "more": len(others),
        "instead": [[start, end, place[label]] for start, end, label in instead],
        **_words(explanation),
    }


def _words(explanation: Explanation) -> dict[str, Any]:
    """Return the contributions of the words of the text, largest first."""
    shares = explanation.words
    order = np.argsort(-np.abs(shares), kind="stable")[:N_REASONS]
    words = [[t, round(float(shares[t]), 4)] for t in order.tolist() if abs(shares[t]) >= MIN_NATS]
    total = float(shares.sum())
    return {
        "words": words,
        "others": round(total - sum(value for _, value in words), 4),
        "beside": round(explanation.log_odds - total, 4),
    }


def _heat(chances: NDArray[np.float64], columns: Sequence[int]) -> list[list[int]]:
    """Return the probable labels of every token, each followed by its probability in thousandths.

    chances (float64 [T, L + 1]), columns (Sequence[int]): label of each column.
    """
    return [
        [
            number
            for column in np.flatnonzero(row >= MIN_TOKEN_LABEL).tolist()
            for number in (columns[column], round(1000 * row[column]))
        ]
        for row in chances
    ]


def _rounded(p: float) -> float:
    return float(f"{p:.4g}")
