"""The results of `auto` as a self-contained HTML file, and the learning curve as numbers."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from spacy_hocrf.annotation.best_readings import ScoredSpan
from spacy_hocrf.answers.pages import plain_page, tag_of
from spacy_hocrf.cli.auto.estimates import QUANTILE, Curve, Score
from spacy_hocrf.cli.auto.report import AutoResults, by_label, describe, explain, whole, within
from spacy_hocrf.cli.doubts import ReadText
from spacy_hocrf.cli.tables import percent

__all__ = ["curve_numbers", "page"]

STYLE = """
.headline { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; align-items: baseline; margin-top: 1.2rem; }
.headline b { font-size: 3.4rem; line-height: 1; color: var(--accent); }
section table { width: 100%; }
tr.all td { font-weight: 600; }
@media (max-width: 44rem) { .broad { display: none; }
  .scroll :is(th, td) { padding-inline: .2rem; font-size: .93em; } }
"""
STEPS = 60
"""Number of segments of the curve's line."""


def page(results: AutoResults) -> str:
    """Make the page; the user's texts and labels are escaped."""
    score = results.scores[0]
    name = escape(results.setup.train.name)
    parts = [
        f"<h1>{name}</h1>",
        f'<div class="headline"><b>{percent(score.f)}</b><div>F1 on new texts<br>between '
        f"{within(score.interval)} in 90 of 100 cases</div></div>",
        _paragraph(whole(results)),
        *(_paragraph(line) for line in explain(results)),
        _heading("By label"),
        _labels(by_label(results)),
        _heading("How much more texts would give"),
        *(_paragraph(line) for line in describe(results.curve)),
        *(_paragraph(f"Note: {note}") for note in results.texts.notes),
        _heading("Texts whose annotation the model doubts"),
        _paragraph(
            "Read by models that have not seen the text, with their probability of each span. Differences "
            "have a red frame: is the annotation wrong, or the model?"
        ),
        *_doubts(results),
    ]
    title = f"{name}: F1 {percent(score.f)}"
    return plain_page(title, "\n".join(parts), results.setup.lang, STYLE)


def _heading(text: str) -> str:
    return f'<h2 class="apart">{text}</h2>'


def _paragraph(text: str) -> str:
    return f'<p class="soft">{escape(text)}</p>'


def _labels(scores: Iterable[tuple[str, Score]]) -> str:
    rows: list[str] = []
    for name, score in scores:
        cells = (percent(score.measured), percent(score.precision), percent(score.recall))
        numbers = "".join(f"<td>{cell}</td>" for cell in (*cells, score.gold))
        low, high = percent(score.interval.low), percent(score.interval.high)
        kind = ' class="all"' if not rows else ""
        rows.append(
            f'<tr{kind}><td>{escape(name)}</td>{numbers}<td class="broad">{score.texts}</td>'
            f"<td>{percent(score.f)}</td><td>{low}–{high}</td></tr>"
        )
    names = "".join(f"<th>{name}</th>" for name in ("", "F1", "P", "R", "spans"))
    header = f'{names}<th class="broad">texts</th><th>new texts</th><th>90 %</th>'
    return f'<div class="scroll" tabindex="0"><table><tr>{header}</tr>{"".join(rows)}</table></div>'


def _doubts(results: AutoResults) -> list[str]:
    hues = {
        label: 360 * i // len(results.texts.labels) for i, label in enumerate(results.texts.labels)
    }
    lang = escape(tag_of(results.setup.lang))
    return [_doubted(text, hues, lang) for text in results.doubted] or [_paragraph("None.")]


def _doubted(text: ReadText, hues: dict[str, int], lang: str) -> str:
    annotated, predicted = text.annotated, text.found
    lines = (("annotated", annotated, predicted), ("the model", predicted, annotated))
    body = "".join(
        f'<p class="line two"><span class="who">{who}</span>'
        f'<span lang="{lang}" dir="auto">{_marked(text.words, spans, others, hues)}</span></p>'
        for who, spans, others in lines
    )
    return f'<article><p class="soft">doubt {percent(text.worst())} %</p>{body}</article>'


def _marked(
    words: Sequence[str],
    spans: Sequence[ScoredSpan],
    others: Sequence[ScoredSpan],
    hues: dict[str, int],
) -> str:
    """Mark the spans in a text, of overlapping ones the first. Spans that are not in `others` get a frame."""
    parts, done, agreed = [], 0, {span[:3] for span in others}
    for span in spans:
        if span.start < done:
            continue
        parts.append(escape("".join(words[done : span.start])))
        kind = "" if span[:3] in agreed else " wrong"
        inside = escape("".join(words[span.start : span.end]).rstrip())
        chance = f"{escape(span.label)} {100 * span.probability:.0f} %"
        look = f"--hue:{hues[span.label]};--p:{span.probability:.2f}"
        parts.append(
            f'<mark class="span plain{kind}" style="{look}">{inside}'
            f'<small lang="en" dir="auto">{chance}</small></mark> '
        )
        done = span.end
    return "".join(parts) + escape("".join(words[done:]))


def curve_numbers(curve: Curve) -> dict[str, Any]:
    """Convert the curve to the numbers that `hocrf show` draws: `points` with `texts`, `f`, `low` and `high`,
    the last one for twice the texts; a `line` of pairs of texts and F1; and the number of texts `now`.
    """
    doubled = 2 * curve.now
    low = [f - QUANTILE * e for f, e in zip(curve.f, curve.errors)]
    high = [f + QUANTILE * e for f, e in zip(curve.f, curve.errors)]
    rows = [*zip(curve.texts, curve.f, low, high)]
    rows.append((doubled, curve.at(doubled), curve.doubled.low, curve.doubled.high))
    first, names = curve.texts[0], ("texts", "f", "low", "high")
    places = [first + (doubled - first) * i / STEPS for i in range(STEPS + 1)]
    return {
        "points": [dict(zip(names, row)) for row in rows],
        "line": [[n, curve.at(n)] for n in sorted({*places, float(curve.now)})],
        "now": curve.now,
    }
