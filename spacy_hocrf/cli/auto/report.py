"""The results of `auto`, as text."""

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import fill

from thinc.api import Config

from spacy_hocrf.cli.auto.estimates import NEW, Curve, Interval, Score, proportion
from spacy_hocrf.cli.auto.folds import SettingsTrial
from spacy_hocrf.cli.auto.texts import AnnotatedTexts, AutoSetup
from spacy_hocrf.cli.doubts import WORTH, ReadText
from spacy_hocrf.cli.tables import as_table, percent

__all__ = [
    "AutoResults",
    "by_label",
    "describe",
    "explain",
    "report",
    "whole",
    "within",
]

WIDTH = 100
"""Number of columns of a line."""


@dataclass(frozen=True)
class AutoResults:
    """Results of a run of `hocrf auto`."""

    setup: AutoSetup
    texts: AnnotatedTexts
    chosen: SettingsTrial
    trials: tuple[SettingsTrial, ...]  # the default, and the other settings if they were tried
    config: Config
    curve: Curve
    scores: tuple[Score, ...]  # of all labels together, then of each
    doubted: tuple[ReadText, ...]  # the worst first


def report(results: AutoResults) -> str:
    """Make the report, for a terminal."""
    score = results.scores[0]
    headline = (
        f"F1 on new texts: {percent(score.f)}, between {within(score.interval)} in 90 of 100 cases"
    )
    parts = [
        *_heading("How good it will be"),
        headline,
        whole(results),
        "",
        *_wrapped(explain(results)),
        "",
        _scores(results),
        *_heading("How much more texts would give"),
        *_wrapped(describe(results.curve)),
        *([""] if results.texts.notes else []),
        *_wrapped(f"Note: {note}" for note in results.texts.notes),
        *_heading("Texts whose annotation the model doubts"),
        *_doubts(results),
    ]
    return "\n".join(parts) + "\n"


def whole(results: AutoResults) -> str:
    """Describe the share of entirely right texts."""
    right = results.chosen.counts.whole
    return (
        f"Texts right as a whole: {percent(float(right.mean()))} % of {len(right)} held back, between "
        f"{within(proportion(right))}"
    )


def explain(results: AutoResults) -> list[str]:
    """Explain what is estimated, and on which data."""
    score, held = results.scores[0], len(results.chosen.counts.gold)
    others = [trial for trial in results.trials if trial is not results.chosen]
    return [
        f"That is F1 as you would measure it on {NEW} new texts like these, annotated in the same way.",
        f"Model: {results.chosen}.",
        *(_left_out(trial, results.chosen) for trial in others),
        f"F1, P and R in the table were measured on {held} texts with {score.gold} annotated spans, each "
        "read by a model that had not seen it. The column for new texts adds the gain that the learning "
        f"curve predicts: those models learnt from {results.curve.texts[-1]} texts, this one from all "
        f"{len(results.texts)}, which adds {100 * results.curve.gain:+.1f}.",
    ]


def _left_out(trial: SettingsTrial, chosen: SettingsTrial) -> str:
    counts, more = trial.counts, 100 * (trial.loss / max(chosen.loss, 1e-9) - 1)
    return (
        f"Left out: {trial}. On the same texts its F1 is {percent(counts.f)}, "
        f"{percent(float(counts.whole.mean()))} % are right as a whole, and its loss, which says how "
        f"improbable it finds the annotation, is {abs(more):.1f} % {'higher' if more > 0 else 'lower'}."
    )


def by_label(results: AutoResults) -> list[tuple[str, Score]]:
    """Scores of all labels together, then of each label, the most frequent first."""
    total, *of_labels = zip(("all", *results.texts.labels), results.scores)
    return [total, *sorted(of_labels, key=lambda pair: -pair[1].gold)]


def describe(curve: Curve) -> list[str]:
    """Describe the learning curve in words and numbers."""
    measured = ", ".join(f"{percent(f)} with {n}" for n, f in zip(curve.texts, curve.f))
    expected = percent(curve.at(2 * curve.now))
    return [
        f"F1 by texts learnt from: {measured}.",
        f"With twice as many as now, {2 * curve.now}, it would be about {expected}, between "
        f"{within(curve.doubled)} in 90 of 100 cases, if it goes on as F1 = a - b n^-{curve.c:.1f}. That "
        "is a curve through three points, so take it as a hint.",
    ]


def within(interval: Interval) -> str:
    return f"{percent(interval.low)} and {percent(interval.high)}"


def _heading(title: str) -> list[str]:
    return ["", f" {title} ".center(80, "="), ""]


def _wrapped(paragraphs: Iterable[str]) -> list[str]:
    return [fill(paragraph, WIDTH) for paragraph in paragraphs]


def _scores(results: AutoResults) -> str:
    rows = [
        (
            name,
            percent(score.measured),
            percent(score.precision),
            percent(score.recall),
            str(score.gold),
            str(score.texts),
            percent(score.f),
            f"{percent(score.interval.low)} - {percent(score.interval.high)}",
        )
        for name, score in by_label(results)
    ]
    header = ("", "F1", "P", "R", "spans", "texts", "new texts", "90 % interval")
    return as_table(header, rows, max_col=60).strip("\n")


def _doubts(results: AutoResults) -> list[str]:
    if not results.doubted:
        return ["None."]
    lines = [
        "Where models that have not seen the text disagree with its annotation, with their probabilities.",
        "Is the annotation wrong, or the model? (See hocrf doubt.)",
    ]
    for number, text in enumerate(results.doubted, 1):
        words = "".join(text.words).strip()
        lines += ["", f"{number}. {words}  (doubt {percent(text.worst())} %)"]
        for doubt in text.doubts:
            if doubt.degree >= WORTH:
                annotated, answer = text.spell(doubt.annotated), text.spell(doubt.answer)
                lines.append(f"   annotated  {annotated}  ({100 * doubt.annotated_chance:.0f} %)")
                lines.append(f"   model      {answer}  ({100 * doubt.answer_chance:.0f} %)")
    return lines
