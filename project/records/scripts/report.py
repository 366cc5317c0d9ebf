"""How many texts are right as a whole, and what is accepted unread: what was promised, and what was found.

A random half of the texts finds the threshold, as `hocrf calibrate --accept` does, and the other half is
accepted by it, or not; many times.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

sys.path.append(str(Path(__file__).parents[2]))
from common.plot import BLUE, GREY, ORANGE, figure, image, publish, tidy
from common.report import DocumentArgument, LinesArgument, Result, read_lines, table
from common.scores import ratios

from spacy_hocrf.api import WholeTexts, accept

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SYSTEMS = ("fields", "texts", "memory", "reranked", "crfsuite", "ner")
SURE = ("texts", "memory", "reranked", "product", "crfsuite")
"""Systems that say how sure they are, and by which texts are accepted."""
LEVEL, CONFIDENCE = 0.95, 0.9
LEVELS = (0.85, 0.9, LEVEL, 0.98)
PLOTTED = ("addresses", "anystyle", "cora")


def main(
    lines: LinesArgument,
    output: DocumentArgument,
    splits: Annotated[int, typer.Option(help="Random halves")] = 1000,
) -> None:
    """Write the tables and the plot."""
    results = dict[str, dict[str, list[Result]]]()
    for row in read_lines(lines):
        results.setdefault(row["task"], {}).setdefault(row["system"], []).append(row)
    publish(results, output, partial(render, splits=splits), draw)


def render(results: Mapping[str, Mapping[str, Sequence[Result]]], plot: str, splits: int) -> str:
    """The document."""
    parts = [
        "# Whole records",
        "## Texts that are right as a whole",
        table(
            list(whole_rows(results)), ("task", "texts", *SYSTEMS, *(f"F1, {s}" for s in SYSTEMS))
        ),
        "## How sure of a whole text",
        table(list(ece_rows(results)), ECE),
        f"## Accepted unread: at least {LEVEL:.0%} right, confidence {CONFIDENCE:.0%}",
        image("Share of texts accepted, and of those the share that is wrong", plot),
        table(list(promise_rows(results, splits)), PROMISE),
    ]
    return "\n\n".join(parts)


ECE = (
    "task",
    *(name for s in SYSTEMS[:4] for name in (s, f"by chance, {s}", f"corrected, {s}")),
)
PROMISE = (
    "task",
    *(f"accepted, {system}" for system in SURE),
    *(f"broken, {system}" for system in SURE),
    *(f"wrong, {system}" for system in SURE),
)


def whole_rows(results: Mapping[str, Mapping[str, Sequence[Result]]]) -> list[tuple[str, ...]]:
    """Shares of texts that are right, and F1, per cent."""
    rows = []
    for task, systems in results.items():
        known = [systems.get(system, ()) for system in SYSTEMS]
        shares = [
            percent(np.mean([row["right"] for row in each])) if each else "" for each in known
        ]
        f = [percent(f_of(each)) if each else "" for each in known]
        rows.append((task, f"{max(map(len, known)):,}", *shares, *f))
    return rows


def ece_rows(results: Mapping[str, Mapping[str, Sequence[Result]]]) -> list[tuple[str, ...]]:
    """Calibration errors of P(all of a text is right), before and after the correction."""
    rows = []
    for task, systems in results.items():
        cells = []
        for system in SYSTEMS[:4]:
            if system in systems:
                texts = texts_of(systems[system])
                errors = texts.errors
                cells += [f"{error:.3f}" for error in (*errors, texts.corrected().errors.ece)]
            else:
                cells += [""] * 3
        rows.append((task, *cells))
    return rows


def promise_rows(
    results: Mapping[str, Mapping[str, Sequence[Result]]], splits: int
) -> list[tuple[str, ...]]:
    """Of each system what `try_halves` finds."""
    rows = []
    for task, systems in results.items():
        tried = [
            try_halves(texts_of(systems[system]), LEVEL, splits) if system in systems else None
            for system in SURE
        ]
        rows.append((task, *(percent(x[i]) if x else "" for i in range(3) for x in tried)))
    return rows


def try_halves(texts: WholeTexts, level: float, splits: int) -> tuple[float, float, float]:
    """Of many random halves, with the threshold of the other half: the share of texts that is accepted, on
    average; the share of halves in which more of the accepted texts are wrong than was promised; and of all
    accepted texts the share that is wrong.
    """
    rng, n = np.random.default_rng(0), len(texts.right)
    accepted = wrong = broken = 0
    for _ in range(splits):
        seen = np.isin(np.arange(n), rng.permutation(n)[: n // 2])
        try:
            threshold = accept(texts.only(seen), level, CONFIDENCE)[0].threshold
        except ValueError:  # none is accepted
            continue
        taken = ~seen & (texts.probability >= threshold)
        errors = int((taken & ~texts.right).sum())
        accepted += int(taken.sum())
        wrong += errors
        broken += errors > (1 - level) * taken.sum()
    return accepted / (splits * (n - n // 2)), broken / splits, wrong / max(1, accepted)


def texts_of(rows: Sequence[Result]) -> WholeTexts:
    """The texts of a system that says how sure it is."""
    right = np.array([row["right"] for row in rows], dtype=bool)
    chances = np.array([row["probability"] for row in rows], dtype=np.float64)
    return WholeTexts(chances, right, np.full(len(rows), ""))


def f_of(rows: Sequence[Result]) -> float:
    """F1 of all spans."""
    return float(ratios(*map(sum, zip(*(row["counts"] for row in rows))))["f"])


def percent(share: float) -> str:
    """In per cent."""
    return f"{100 * share:.1f}"


def draw(results: Mapping[str, Mapping[str, Sequence[Result]]]) -> "Figure":
    """For each task: of the surest texts the share that is wrong, and what is accepted at LEVELS."""
    tasks = [task for task in PLOTTED if task in results]
    drawn = figure(4.2 * len(tasks), 3.6)
    axes = np.atleast_1d(drawn.subplots(1, len(tasks), sharey=True))
    for place, task in zip(axes, tasks):
        for system, colour, name in (("texts", BLUE, "hocrf"), ("product", ORANGE, "CRFsuite")):
            if system not in results[task]:
                continue
            texts = texts_of(results[task][system])
            order = np.argsort(-texts.probability, kind="stable")
            wrong = np.cumsum(~texts.right[order]) / np.arange(1, len(order) + 1)
            share = np.arange(1, len(order) + 1) / len(order)
            place.plot(100 * share, 100 * wrong, color=colour, linewidth=1.8, label=name)
        for level in LEVELS:
            place.axhline(100 * (1 - level), color=GREY, linewidth=0.6, linestyle=":")
        tidy(place)
        place.set(title=task, xlabel="accepted, % of all texts", xlim=(0, 100), ylim=(0, 35))
    axes[0].set(ylabel="wrong, % of the accepted texts")
    axes[-1].legend(frameon=False, loc="upper left")
    return drawn


if __name__ == "__main__":
    typer.run(main)
