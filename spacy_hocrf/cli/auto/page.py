"""What `auto` has found, as one HTML file that needs no other."""

from collections.abc import Iterable, Sequence
from html import escape

from thinc.api import Config

from spacy_hocrf.cli.auto.doubts import Doubt, Mark
from spacy_hocrf.cli.auto.drawing import curve_svg, interval_svg
from spacy_hocrf.cli.auto.estimates import Score
from spacy_hocrf.cli.auto.report import (
    RULE,
    Results,
    by_label,
    describe,
    explain,
    notes_of,
    percent,
    tried,
    within,
)

__all__ = ["page"]

STYLE = """
:root { --ink: #1c2430; --soft: #667085; --line: #e4e7ec; --accent: #2f6fde; --warm: #d9822b; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.5rem 5rem; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.8rem 0 .6rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); font-size: .9rem; }
.headline { display: flex; gap: 1.5rem; align-items: baseline; margin-top: 1.2rem; }
.headline b { font-size: 3.4rem; line-height: 1; color: var(--accent); }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { padding: .32rem .6rem; border-bottom: 1px solid var(--line); text-align: right; }
th { color: var(--soft); font-weight: 500; } th:first-child, td:first-child, .left { text-align: left; }
tr.chosen td { background: #eef4ff; font-weight: 600; } tr.all td { font-weight: 600; }
.bar { vertical-align: middle; } .bar .scale { fill: #f2f4f7; } .bar .range { fill: #b8d0fa; }
.bar .f { fill: var(--accent); }
.curve { width: 100%; max-width: 44rem; font-size: 12px; } .curve text { fill: var(--soft); }
.curve .x { text-anchor: middle; } .curve .y { text-anchor: end; dominant-baseline: middle; }
.curve .grid { stroke: var(--line); } .curve .axis { stroke: var(--soft); }
.curve polyline { fill: none; stroke: var(--accent); stroke-width: 2; }
.curve .more { stroke: var(--warm); stroke-dasharray: 5 4; }
.curve .measured * { stroke: var(--accent); } .curve .measured circle { fill: var(--accent); }
.curve .expected * { stroke: var(--warm); stroke-width: 2; } .curve .expected circle { fill: #fff; }
.doubt { border: 1px solid var(--line); border-radius: 8px; padding: .7rem 1rem; margin: .8rem 0; }
.doubt p { line-height: 2.1; } .doubt .who { display: inline-block; width: 6rem; color: var(--soft);
  font-size: .85rem; }
mark { padding: .18rem .35rem; border-radius: 5px; color: var(--ink); box-decoration-break: clone;
  -webkit-box-decoration-break: clone; }
mark small { margin-left: .35rem; font-size: .68rem; font-weight: 600; letter-spacing: .02em;
  white-space: nowrap; }
mark.differs { outline: 2px solid #c4320a; }
pre { background: #f9fafb; border: 1px solid var(--line); border-radius: 8px; padding: 1rem;
  overflow-x: auto; font-size: .82rem; }
"""


def page(results: Results) -> str:
    """The page. What is from the user's texts and labels is escaped."""
    score = results.scores[0]
    parts = [
        f"<h1>{escape(results.setup.train.name)}</h1>",
        f'<div class="headline"><b>{percent(score.f)}</b><div>F1 on new texts<br>between '
        f"{within(score.interval)} in 90 of 100 cases</div></div>",
        *(_paragraph(line) for line in explain(results)),
        "<h2>By label</h2>",
        _labels(by_label(results)),
        "<h2>How much more texts would give</h2>",
        curve_svg(results.curve),
        *(_paragraph(line) for line in describe(results.curve)),
        "<h2>What was tried</h2>",
        _paragraph(RULE),
        _tried(results),
        *(_paragraph(f"Note: {note}") for note in notes_of(results)),
        "<h2>Texts whose annotation the model doubts</h2>",
        _paragraph(
            "Read by models that have not seen the text, with the probability that they give each span. "
            "Where both differ, there is a red frame: an error of the annotation, or of the model?"
        ),
        *_doubts(results),
        "<h2>Settings of the component</h2>",
        f"<pre>{escape(_component(results))}</pre>",
    ]
    head = f"<title>{escape(results.setup.train.name)}: F1 {percent(score.f)}</title>"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{head}<style>{STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _paragraph(text: str) -> str:
    return f'<p class="soft">{escape(text)}</p>'


def _labels(scores: Iterable[tuple[str, Score]]) -> str:
    rows: list[str] = []
    for name, score in scores:
        cells = (percent(score.measured), percent(score.precision), percent(score.recall))
        numbers = "".join(f"<td>{cell}</td>" for cell in (*cells, score.gold, score.texts))
        f = percent(score.f)
        low, high = percent(score.interval.low), percent(score.interval.high)
        kind = ' class="all"' if not rows else ""
        rows.append(
            f"<tr{kind}><td>{escape(name)}</td>{numbers}<td>{interval_svg(score)}</td>"
            f"<td>{f}</td><td>{low} to {high}</td></tr>"
        )
    header = ("", "F1", "precision", "recall", "spans", "texts", "", "F1 on new texts", "90 %")
    return _table(header, rows)


def _tried(results: Results) -> str:
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


def _table(header: Sequence[str], rows: Sequence[str]) -> str:
    cells = "".join(f"<th>{cell}</th>" for cell in header)
    return f"<table><tr>{cells}</tr>{''.join(rows)}</table>"


def _doubts(results: Results) -> list[str]:
    hues = {
        label: 360 * i // len(results.texts.labels) for i, label in enumerate(results.texts.labels)
    }
    return [_doubt(doubt, results.texts.words(doubt.text), hues) for doubt in results.doubts] or [
        _paragraph("None.")
    ]


def _doubt(doubt: Doubt, words: Sequence[str], hues: dict[str, int]) -> str:
    lines = (("annotated", doubt.annotated), ("the model", doubt.read))
    body = "".join(
        f'<p><span class="who">{who}</span>{_marked(words, marks, hues)}</p>'
        for who, marks in lines
    )
    return (
        f'<div class="doubt"><span class="soft">doubt {percent(doubt.degree)} %</span>{body}</div>'
    )


def _marked(words: Sequence[str], marks: Sequence[Mark], hues: dict[str, int]) -> str:
    """The text with its spans; of spans that overlap, the first."""
    parts, done = [], 0
    for mark in marks:
        if mark.start < done:
            continue
        parts.append(escape("".join(words[done : mark.start])))
        kind = "" if mark.agreed else ' class="differs"'
        inside = escape("".join(words[mark.start : mark.end]).rstrip())
        chance = f"{escape(mark.label)} {100 * mark.chance:.0f} %"
        colour = f"hsl({hues[mark.label]} 80% 88%)"
        parts.append(
            f'<mark{kind} style="background:{colour}">{inside}<small>{chance}</small></mark> '
        )
        done = mark.end
    return "".join(parts) + escape("".join(words[done:]))


def _component(results: Results) -> str:
    name = results.setup.factory
    return Config({"components": {name: results.config["components"][name]}}).to_str()
