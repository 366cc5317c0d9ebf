"""The results of all folds as a table by order, and the plot of Figure 3: accuracy, label patterns
and time against the order.
"""

import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from wasabi import MarkdownRenderer

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import DocumentArgument, LinesArgument, Result, group, read_lines, table
from common.scores import spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PEER, UNBOUNDED = "CRFsuite", "unbounded"
HEADER = (
    *("order", "letters right", "words right", "gain in letters", "in folds", "patterns"),
    *("features", "iterations", "training, CPU s", "an iteration, CPU ms"),
)

Results = Mapping[str, Sequence[Result]]  # by model, a result for each fold


def main(results: LinesArgument, output: DocumentArgument) -> None:
    """Write the table and the plot."""
    plot.publish(by_model(results), output, render, draw)


def by_model(path: Path) -> Results:
    """The results of each model, in the order in which the models were trained; all have the same
    folds.
    """
    read = group(read_lines(path), "model")
    folds = [[result["fold"] for result in rows] for rows in read.values()]
    assert all(rows == folds[0] for rows in folds), f"{path}: the models do not have the same folds"
    return read


def render(results: Results, plot_name: str) -> str:
    """The whole document."""
    first = next(iter(results.values()))
    words, letters = (spread([result[key] for result in first], 0) for key in ("words", "letters"))
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(1, "Handwriting"))
    markdown.add(
        f"Trained on one fold and tested on the other nine, for {len(first)} folds of {words} "
        f"words and {letters} letters. Mean and standard deviation over the folds, per cent; "
        "times are CPU times of one thread. Of the test words, "
        f"{spread([r['known'] for r in first])} per cent are spelt like one in training."
    )
    markdown.add(table(table_rows(results), HEADER))
    if PEER in results:
        markdown.add(beside_crfsuite(results["1"], results[PEER]))
    spent = sum(result["seconds"] for rows in results.values() for result in rows)
    markdown.add(f"Training all of these models took {spent / 60:.1f} CPU minutes.")
    markdown.add(plot.image("Accuracy, label patterns and time by order", plot_name))
    return markdown.text + "\n"


def table_rows(results: Results) -> list[tuple[str, ...]]:
    """A line for each order, with what it adds to the one before, fold by fold."""
    rows = []
    before: Sequence[Result] | None = None
    for name, found in results.items():
        if name == PEER:
            continue
        gains = [new["accuracy"] - old["accuracy"] for new, old in zip(found, before or ())]
        order = f"{name} ({span([r['order'] for r in found])})" if name == UNBOUNDED else name
        rows.append(
            (
                order,
                spread([r["accuracy"] for r in found]),
                spread([r["word_accuracy"] for r in found]),
                f"{statistics.mean(gains):+.2f}" if gains else "",
                f"{sum(gain > 0 for gain in gains)} of {len(gains)}" if gains else "",
                *(
                    f"{statistics.mean(r[key] for r in found):,.0f}"
                    for key in ("patterns", "features", "iterations")
                ),
                f"{statistics.mean(r['seconds'] for r in found):.2f}",
                f"{statistics.mean(r['iteration_ms'] for r in found):.2f}",
            )
        )
        before = found
    return rows


def beside_crfsuite(ours: Sequence[Result], theirs: Sequence[Result]) -> str:
    """Order 1 on both sides, fold by fold."""
    differences = [a["accuracy"] - b["accuracy"] for a, b in zip(ours, theirs)]
    losses = [(b["objective"] - a["objective"]) / a["objective"] for a, b in zip(ours, theirs)]
    letters, words = (spread([r[key] for r in theirs]) for key in ("accuracy", "word_accuracy"))
    seconds = statistics.mean(r["seconds"] for r in theirs)
    return (
        f"CRFsuite, order 1, the same features and prior: {letters} of the letters, {words} of "
        f"the words, {seconds:.2f} CPU s. Our letter accuracy less CRFsuite's is "
        f"{statistics.mean(differences):+.3f} on average, from {min(differences):+.3f} to "
        f"{max(differences):+.3f}; where CRFsuite stops, its objective is above ours by a share "
        f"of {max(losses):.1e} at most."
    )


def span(values: Sequence[int]) -> str:
    """One number, or the least and the greatest."""
    return str(values[0]) if min(values) == max(values) else f"{min(values)}-{max(values)}"


def draw(results: Results) -> "Figure":
    """Accuracy on top, label patterns and time below, as in the paper's figure; the unbounded model
    at the order that it has.
    """
    from matplotlib.ticker import MaxNLocator

    figure = plot.figure(9.6, 7.6)
    panels = figure.subplot_mosaic([["top", "top"], ["left", "right"]])
    top, left, right = (panels[name] for name in ("top", "left", "right"))
    ours = {name: rows for name, rows in results.items() if name != PEER}
    draw_line(top, ours, "accuracy", plot.BLUE, "letters", bars=True)
    draw_line(top, ours, "word_accuracy", plot.ORANGE, "whole words", bars=True)
    if PEER in results:
        level = statistics.mean(r["accuracy"] for r in results[PEER])
        top.plot(
            [1],
            [level],
            marker="D",
            markersize=9,
            linestyle="",
            color=plot.GREY,
            fillstyle="none",
            label="letters, CRFsuite",
        )
    top.set_ylabel("accuracy (per cent)")
    top.legend(frameon=False, loc="lower right")
    draw_line(left, ours, "patterns", plot.BLUE, "label patterns")
    left.set_ylabel("label patterns")
    draw_line(right, ours, "seconds", plot.BLUE, "training (s)")
    right.set_ylabel("training, CPU s", color=plot.BLUE)
    other = right.twinx()
    draw_line(other, ours, "iteration_ms", plot.ORANGE, "an iteration (ms)")
    other.set_ylabel("an iteration, CPU ms", color=plot.ORANGE)
    for axes in (left, right, other):
        axes.set_ylim(bottom=0)
    for axes in (top, left, right):
        axes.set_xlabel(
            "order of the model; the last is unbounded"
            if UNBOUNDED in ours
            else "order of the model"
        )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        plot.tidy(axes, "y")
    other.spines["top"].set_visible(False)
    return figure


def draw_line(
    axes: "Axes", results: Results, key: str, colour: str, label: str, *, bars: bool = False
) -> None:
    """Means against the order, with standard deviations if they are wanted."""
    orders = [statistics.mean(r["order"] for r in rows) for rows in results.values()]
    values = [[r[key] for r in rows] for rows in results.values()]
    means = [statistics.mean(rows) for rows in values]
    deviations = [statistics.stdev(rows) if len(rows) > 1 else 0.0 for rows in values]
    axes.errorbar(
        orders,
        means,
        deviations if bars else None,
        color=colour,
        marker="o",
        capsize=3,
        label=label,
        linewidth=1.8,
    )


if __name__ == "__main__":
    typer.run(main)
