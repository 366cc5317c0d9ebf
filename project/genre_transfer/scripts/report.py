"""F1 of every pair of genres at order 1 and 2, with p-values, and the improvement as bars (Ye et
al., NIPS 2009, Figure 3).
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import srsly
import typer
from transfer import GENRES, GOLD, KINDS, ORDERS, PAIRS, Kind
from wasabi import MarkdownRenderer

from spacy_hocrf.api import EntsScorer, compare

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import table
from common.scores import LEVEL, gain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (plot.BLUE, "#8fb6dd", "#9a9a9a", plot.ORANGE)


CorpusFolder = Annotated[
    Path, typer.Argument(help="Folder with a .spacy file for each genre", exists=True)
]
PredictionsFolder = Annotated[
    Path, typer.Argument(help="What transfer.py has written", exists=True)
]
MetricsFolder = Annotated[Path, typer.Argument(help="Sizes and times of the models", exists=True)]
TrialsOption = Annotated[int, typer.Option(help="Shuffles of each test")]


class Comparison(NamedTuple):
    """Order 1 against order 2 on one test set."""

    first: float  # F1 of order 1, per cent
    second: float  # F1 of order 2, per cent
    p_value: float

    @property
    def difference(self) -> float:
        """What order 2 adds, in points."""
        return self.second - self.first


def main(
    corpus_dir: CorpusFolder,
    predictions_dir: PredictionsFolder,
    metrics_dir: MetricsFolder,
    plot_path: Annotated[Path, typer.Argument(help="Where the plot goes (PNG)")],
    trials: TrialsOption = 10_000,
) -> None:
    """Print the tables and draw the plot."""
    results, together = compare_all(corpus_dir, predictions_dir, trials)
    print(render(results, together, read_models(metrics_dir)))
    plot.save(plot_path, draw, results)


def compare_all(
    corpus_dir: Path, predictions_dir: Path, trials: int
) -> tuple[dict[str, dict[tuple[str, str], Comparison]], dict[str, Comparison]]:
    """Order 1 and 2 of each kind of model, by the kind's name: for every pair of genres, and for all
    twelve together.
    """
    results = {}
    for kind in KINDS:
        results[kind.name] = {
            (source, target): compare_orders(
                predictions_dir,
                kind,
                f"{source}-{target}.spacy",
                corpus_dir / f"{target}.spacy",
                trials,
            )
            for source, target in PAIRS
        }
    together = {
        kind.name: compare_orders(
            predictions_dir, kind, "all.spacy", predictions_dir / GOLD, trials
        )
        for kind in KINDS
    }
    return results, together


def read_models(metrics_dir: Path) -> list[dict[str, Any]]:
    """Sizes and times of all models."""
    return [
        row
        for kind in KINDS
        for order in ORDERS
        for row in srsly.read_json(metrics_dir / f"{kind.folder(order)}.json")
    ]


def compare_orders(
    predictions_dir: Path, kind: Kind, name: str, gold: Path, trials: int
) -> Comparison:
    """What `spacy hocrf compare` finds between the two orders of a kind of model."""
    first, second = (predictions_dir / kind.folder(order) / name for order in ORDERS)
    row = compare(first, second, gold, EntsScorer(), trials=trials)["all"]
    return Comparison(100 * row["a"]["f"], 100 * row["b"]["f"], row["p_value"])


Results = Mapping[tuple[str, str], Comparison]


def render(
    results: Mapping[str, Results],
    together: Mapping[str, Comparison],
    models: Sequence[Mapping[str, Any]],
) -> str:
    """The tables in Markdown: every pair, the kinds of model, their sizes."""
    markdown = MarkdownRenderer()
    header = ["train", "test"]
    for name in results:
        header += [f"{name}: order 1, 2", "adds (p)"]
    rows = [
        (*pair, *(cell for comparisons in results.values() for cell in cells(comparisons[pair])))
        for pair in PAIRS
    ]
    means = [cell for comparisons in results.values() for cell in averages(comparisons)]
    rows.append(("**average**", "", *means))
    every = [cell for comparison in together.values() for cell in cells(comparison)]
    rows.append(("**all twelve, micro**", "", *every))
    markdown.add(table(rows, header, "ll"))
    markdown.add(markdown.list(summary(name, pairs) for name, pairs in results.items()))
    header = ["model", "order", "features", "patterns", "evaluations", "CPU s of the four"]
    markdown.add(table(size_rows(models), header))
    return markdown.text


def cells(comparison: Comparison) -> tuple[str, str]:
    """A comparison as text."""
    scores = f"{comparison.first:.2f}, {comparison.second:.2f}"
    return scores, gain(comparison.difference, comparison.p_value)


def averages(comparisons: Results) -> tuple[str, str]:
    """The means over the pairs."""
    first, second = (
        sum(comparison[i] for comparison in comparisons.values()) / len(comparisons) for i in (0, 1)
    )
    return f"{first:.2f}, {second:.2f}", f"{second - first:+.2f}"


def summary(name: str, comparisons: Results) -> str:
    """How many pairs order 2 is better in."""
    better = [comparison for comparison in comparisons.values() if comparison.difference > 0]
    worse = [comparison for comparison in comparisons.values() if comparison.difference < 0]
    sure, unsure = (
        sum(comparison.p_value < LEVEL for comparison in side) for side in (better, worse)
    )
    return (
        f"{name}: order 2 is better in {len(better)} of {len(comparisons)} pairs ({sure} with "
        f"p < {LEVEL}), worse in {len(worse)} ({unsure} with p < {LEVEL})"
    )


def size_rows(models: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Sizes of each kind of model, the range over the genres, and the time to train on all."""
    rows = []
    for kind in KINDS:
        for order in ORDERS:
            chosen = [row for row in models if row["kind"] == kind.name and row["order"] == order]
            ranges = (
                f"{min(row[key] for row in chosen):,}-{max(row[key] for row in chosen):,}"
                for key in SIZES
            )
            rows.append(
                (kind.name, str(order), *ranges, f"{sum(row['seconds'] for row in chosen):.0f}")
            )
    return rows


SIZES = ("features", "patterns", "evaluations")


def draw(results: Mapping[str, Results]) -> "Figure":
    """Bars of what order 2 adds, a group for each pair."""
    figure = plot.figure(11, 4.4)
    axes = figure.subplots()
    width = 0.8 / len(results)
    for number, (name, comparisons) in enumerate(results.items()):
        places = [place + (number - (len(results) - 1) / 2) * width for place in range(len(PAIRS))]
        mean = sum(comparisons[pair].difference for pair in PAIRS) / len(PAIRS)
        heights = [comparisons[pair].difference for pair in PAIRS]
        axes.bar(
            places, heights, width, color=COLOURS[number], label=f"{name} (average {mean:+.2f})"
        )
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(
        range(len(PAIRS)), [f"{source}\n→ {target}" for source, target in PAIRS], fontsize=8
    )
    axes.set_ylabel("F1 of order 2 minus F1 of order 1 (points)")
    plot.tidy(axes, "y")
    axes.legend(frameon=False, title=f"{len(GENRES)} genres of GUM, train → test")
    return figure


if __name__ == "__main__":
    typer.run(main)
