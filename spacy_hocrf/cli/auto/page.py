"""What `auto` has found, as one HTML file that needs no other."""

from collections.abc import Iterable, Sequence
from html import escape

from thinc.api import Config

from spacy_hocrf.cli.auto.doubts import Doubt, Mark
from spacy_hocrf.cli.auto.drawing import curve_svg, interval_svg
from spacy_hocrf.cli.auto.estimates import Score
from spacy_hocrf.cli.auto.report import (
    RULE,
    AutoResults,
    by_label,
    describe,
    explain,
    notes_of,
    percent,
    tried,
    within,
)
from spacy_hocrf.pipeline.pages import plain_page, tag_of

__all__ = ["page"]

STYLE = """
.headline { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; align-items: baseline; margin-top: 1.2rem; }
.headline b { font-size: 3.4rem; line-height: 1; color: var(--accent); }
section table { width: 100%; }
.left { text-align: left; } tr.all td, tr.chosen td { font-weight: 600; }
tr.chosen td { background: var(--raised); }
svg.bar { width: 10rem; display: inline-block; vertical-align: middle; }
.bar .scale { fill: var(--line); } .bar .range { fill: var(--accent); fill-opacity: .4; }
.bar .f { fill: var(--accent); }
svg.curve { max-width: 44rem; font-size: 12px; } .curve .x { text-anchor: middle; }
.curve .y { text-anchor: end; dominant-baseline: middle; } .curve .axis { stroke: var(--soft); }
.curve polyline { fill: none; stroke: var(--accent); stroke-width: 2; }
.curve .more { stroke-dasharray: 5 4; }
.curve .measured *, .curve .expected * { stroke: var(--accent); stroke-width: 2; }
.curve .measured circle { fill: var(--accent); } .curve .expected circle { fill: var(--paper); }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: 1rem;
  overflow-x: auto; font-size: .82rem; }
@media (max-width: 44rem) { .broad { display: none; }
  .scroll :is(th, td) { padding-inline: .25rem; } svg.curve { font-size: 20px; } }
"""


def page(results: AutoResults) -> str:
    """The page. What is from the user's texts and labels is escaped."""
    score = results.scores[0]
    name = escape(results.setup.train.name)
    parts = [
        f"<h1>{name}</h1>",
        f'<div class="headline"><b>{percent(score.f)}</b><div>F1 on new texts<br>between '
        f"{within(score.interval)} in 90 of 100 cases</div></div>",
        *(_paragraph(line) for line in explain(results)),
        _heading("By label"),
        _labels(by_label(results)),
        _heading("How much more texts would give"),
        curve_svg(results.curve),
        *(_paragraph(line) for line in describe(results.curve)),
        _heading("What was tried"),
        _paragraph(RULE),
        _tried(results),
        *(_paragraph(f"Note: {note}") for note in notes_of(results)),
        _heading("Texts whose annotation the model doubts"),
        _paragraph(
            "Read by models that have not seen the text, with the probability that they give each span. "
            "Where both differ, there is a red frame: an error of the annotation, or of the model?"
        ),
        *_doubts(results),
        _heading("Settings of the component"),
        f"<pre>{escape(_component(results))}</pre>",
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
        f = percent(score.f)
        low, high = percent(score.interval.low), percent(score.interval.high)
        kind = ' class="all"' if not rows else ""
        rows.append(
            f'<tr{kind}><td>{escape(name)}</td>{numbers}<td class="broad">{score.texts}</td>'
            f'<td class="broad">{interval_svg(score)}</td><td>{f}</td><td>{low}–{high}</td></tr>'
        )
    header = ("", "F1", "P", "R", "spans", "texts", "", "new texts", "90 %")
    return _table(header, rows, broad=(5, 6))


def _tried(results: AutoResults) -> str:
    rows = []
    for each in tried(results):
        loss = "" if each.loss is None else f"{100 * each.loss:+.1f} %"
        f = "" if each.f is None else percent(each.f)
        kind = ' class="chosen"' if each.end == "chosen" else ""
        rows.append(
            f"<tr{kind}><td>{escape(each.name)}</td><td>{each.sigma}</td><td>{loss}</td><td>{f}</td>"
            f'<td class="left">{escape(each.end)}</td></tr>'
        )
    return _table(("settings", "sigma", "loss", "F1", ""), rows)


def _table(header: Sequence[str], rows: Sequence[str], broad: Sequence[int] = ()) -> str:
    """broad (Sequence[int]): columns that a narrow screen leaves out."""
    kinds = [' class="broad"' if i in broad else "" for i in range(len(header))]
    cells = "".join(f"<th{kind}>{cell}</th>" for kind, cell in zip(kinds, header))
    return f'<div class="scroll"><table><tr>{cells}</tr>{"".join(rows)}</table></div>'


def _doubts(results: AutoResults) -> list[str]:
    hues = {
        label: 360 * i // len(results.texts.labels) for i, label in enumerate(results.texts.labels)
    }
    lang = escape(tag_of(results.setup.lang))
    return [
        _doubt(doubt, results.texts.words(doubt.text), hues, lang) for doubt in results.doubts
    ] or [_paragraph("None.")]


def _doubt(doubt: Doubt, words: Sequence[str], hues: dict[str, int], lang: str) -> str:
    lines = (("annotated", doubt.annotated), ("the model", doubt.read))
    body = "".join(
        f'<p class="line two"><span class="who">{who}</span>'
        f'<span lang="{lang}" dir="auto">{_marked(words, marks, hues)}</span></p>'
        for who, marks in lines
    )
    return f'<article><span class="soft">doubt {percent(doubt.degree)} %</span>{body}</article>'


def _marked(words: Sequence[str], marks: Sequence[Mark], hues: dict[str, int]) -> str:
    """The text with its spans; of spans that overlap, the first."""
    parts, done = [], 0
    for mark in marks:
        if mark.start < done:
            continue
        parts.append(escape("".join(words[done : mark.start])))
        kind = "" if mark.agreed else " wrong"
        inside = escape("".join(words[mark.start : mark.end]).rstrip())
        chance = f"{escape(mark.label)} {100 * mark.chance:.0f} %"
        look = f"--hue:{hues[mark.label]};--p:{mark.chance:.2f}"
        parts.append(
            f'<mark class="span plain{kind}" style="{look}">{inside}'
            f'<small lang="en" dir="auto">{chance}</small></mark> '
        )
        done = mark.end
    return "".join(parts) + escape("".join(words[done:]))


def _component(results: AutoResults) -> str:
    name = results.setup.factory
    return Config({"components": {name: results.config["components"][name]}}).to_str()
