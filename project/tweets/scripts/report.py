"""The tables of the README, with p-values, and Figure 2 of Qian and Liu (TACL 2014): convergence
against decoding time.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import srsly
import typer
from experiment import GOLD, TRACED
from grouping import find_clusters
from tweets import CORPORA, KINDS, folder_of
from wasabi import MarkdownRenderer

from spacy_hocrf.api import Counts, EntsScorer, compare_counts, count_items, read_gold, read_system

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import CopyOption, show, table
from common.scores import gain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIN_DIFFERENCE = 1e-6  # what a difference of bounds is drawn as if it is less, nats
DRAWN = "CRF, bieso"
COLOURS = {"two_slave": plot.BLUE, "naive": "#9a9a9a", "hybrid": plot.ORANGE}
PANELS = (
    ("micro", "micro F1, per cent"),
    ("bound", "dual objective above\nthe best score, nats"),
    ("certificates", "share of certificates"),
)


def main(
    predictions_dir: Annotated[
        Path, typer.Argument(help="What experiment.py has written", exists=True)
    ],
    metrics_dir: Annotated[Path, typer.Argument(help="What it has measured", exists=True)],
    plot_path: Annotated[Path, typer.Argument(help="Where the plot goes (PNG)")],
    output: CopyOption = None,
    trials: Annotated[int, typer.Option(help="Shuffles of each test")] = 10_000,
) -> None:
    """Print the tables and draw the plot."""
    runs = [srsly.read_json(path) for path in sorted(metrics_dir.glob("*.json"))]
    runs.sort(key=lambda run: (CORPORA.index(run["corpus"]), list(KINDS).index(run["kind"])))
    markdown = MarkdownRenderer()
    for run in runs:
        folder = predictions_dir / folder_of(run["corpus"], run["kind"])
        names = [row["system"] for row in run["systems"]]
        counts = count(folder, names)
        tests = {
            name: compare_counts(counts, 0, number, trials=trials)["all"]
            for number, name in enumerate(names)
        }
        markdown.add(markdown.title(3, f"{run['corpus']}, {run['kind']}"))
        markdown.add(
            f"{run['tweets']:,} tweets, {tests[names[0]]['gold']} entities; "
            f"{counts.gold.shape[0]} clusters for the test. "
            f"{run['training']:.0f} CPU s of training. Learnt weights: "
            + ", ".join(
                f"{name.rpartition(', ')[2]} {weight:.2f}"
                for name, weight in run["weights"].items()
            )
        )
        header = (
            *("decoder", "micro F1", "macro F1", "against the chain (p)", "dual objective"),
            *("certificates", "decoder, CPU s", "in all"),
        )
        rows = [cells(row, tests[row["system"]]) for row in run["systems"]]
        markdown.add(table(rows, header))
    show(markdown.text, output)
    plot.save(plot_path, draw, [run for run in runs if run["kind"] == DRAWN])


def count(folder: Path, names: Sequence[str]) -> Counts:
    """Items of each system by cluster: tweets about one event, or the same tweet again, are not
    independent of each other.
    """
    scorer = EntsScorer()
    gold = read_gold(folder / GOLD, scorer)
    counts = count_items(
        scorer,
        [read_system(folder / f"{name}.spacy", gold, folder / GOLD, scorer) for name in names],
        gold,
    )
    clusters = np.array(find_clusters(gold))
    starts = np.flatnonzero(
        np.diff(clusters[order := np.argsort(clusters, kind="stable")], prepend=-1)
    )
    correct, predicted = (
        np.add.reduceat(array[:, order], starts, axis=1)
        for array in (counts.correct, counts.predicted)
    )
    return Counts(
        counts.labels, correct, predicted, np.add.reduceat(counts.gold[order], starts, axis=0)
    )


def cells(row: Mapping[str, Any], test: Mapping[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    proved = (
        (f"{row['bound']:.3f}", f"{100 * row['certificates']:.1f} %", f"{row['decoding']:.2f}")
        if "bound" in row
        else ("", "", "")
    )
    chain = row["system"] == "chain"
    compared = "" if chain else gain(100 * test["difference"], test["p_value"])
    return (
        row["system"],
        f"{row['micro']:.2f}",
        f"{row['macro']:.2f}",
        compared,
        *proved,
        f"{row['seconds']:.2f}",
    )


def draw(runs: Sequence[Mapping[str, Any]]) -> "Figure":
    """Three panels for each corpus: F1, dual objective and certificates against the time that the
    decoder took.
    """
    figure = plot.figure(11, 3 * len(runs))
    grid = figure.subplots(len(runs), len(PANELS), squeeze=False)
    for run, row in zip(runs, grid):
        chain = next(values for values in run["systems"] if values["system"] == "chain")
        best = max(values["primal"] for values in run["systems"] if "primal" in values)
        for axes, (key, label) in zip(row, PANELS):
            for name in TRACED:
                points = [values for values in run["traces"] if values["system"] == name]
                heights = [
                    max(values[key] - best, MIN_DIFFERENCE) if key == "bound" else values[key]
                    for values in points
                ]
                axes.plot(
                    [values["decoding"] for values in points],
                    heights,
                    ".-",
                    color=COLOURS[name],
                    label=name,
                )
            if key == "bound":
                axes.set_yscale("log")
            if key == "micro":
                axes.axhline(chain[key], color="black", linewidth=0.8, label="chain")
            plot.log_scale(axes, "x")
            axes.set_xlabel("CPU seconds in the decoder")
            axes.set_ylabel(label)
            axes.set_title(run["corpus"], fontsize=10)
            plot.tidy(axes)
    plot.legend_above(figure, grid.ravel())
    return figure


if __name__ == "__main__":
    typer.run(main)
