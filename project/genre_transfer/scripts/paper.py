"""Ye et al. (NIPS 2009, §4.3) with the paper's features: what the paper says beside what we find, then
every pair of genres, as a document and a plot.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer
from report import (
    Comparison,
    CorpusFolder,
    MetricsFolder,
    PredictionsFolder,
    Results,
    TrialsOption,
    averages,
    compare_all,
    draw,
    read_models,
    render,
)
from transfer import PAIRS
from wasabi import MarkdownRenderer

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import DocumentArgument, table
from common.scores import gain

Compared = tuple[Mapping[str, Results], Mapping[str, Comparison]]


def main(
    corpus_dir: CorpusFolder,
    predictions_dir: PredictionsFolder,
    metrics_dir: MetricsFolder,
    output: DocumentArgument,
    trials: TrialsOption = 10_000,
) -> None:
    """Write the tables and the plot."""

    def document(compared: Compared, plot_name: str) -> str:
        markdown = MarkdownRenderer()
        markdown.add(markdown.title(1, "The features of Ye et al. (2009)"))
        markdown.add(table(comparison_rows(*compared), ("", "paper", "ours", "why"), "llll"))
        markdown.add(render(*compared, read_models(metrics_dir)))
        markdown.add(plot.image("What order 2 adds, for each pair", plot_name))
        return markdown.text

    compared = compare_all(corpus_dir, predictions_dir, trials)
    plot.publish(compared, output, document, lambda found: draw(found[0]))


def comparison_rows(
    results: Mapping[str, Results], together: Mapping[str, Comparison]
) -> list[tuple[str, str, str, str]]:
    """Figure 3 and what the paper says of it, ours, and why they differ."""
    scores = [
        score
        for comparisons in results.values()
        for comparison in comparisons.values()
        for score in (comparison.first, comparison.second)
    ]
    return [
        (
            "pairs of genres in which order 2 is better",
            "10 of 12",
            by_kind(results, lambda pairs: f"{better(pairs)} of {len(PAIRS)}"),
            "unexplained: the corpus is another one, and how the paper writes entities as labels is not "
            "said",
        ),
        (
            "what order 2 adds, on average",
            "+0.62",
            by_kind(results, lambda pairs: averages(pairs)[1]),
            "unexplained, as above",
        ),
        (
            "on all twelve together (p)",
            "not tested",
            by_kind(together, lambda found: gain(found.difference, found.p_value)),
            "",
        ),
        (
            "F1",
            "axis from 25 to 70",
            f"{min(scores):.2f} to {max(scores):.2f}",
            "unexplained: corpus and types of mention are others",
        ),
    ]


def better(comparisons: Results) -> int:
    """In how many pairs order 2 is better."""
    return sum(comparison.difference > 0 for comparison in comparisons.values())


def by_kind(results: Mapping[str, Any], describe: Callable[[Any], str]) -> str:
    """A cell for all kinds of model, from what each has found."""
    return "; ".join(f"{name}: {describe(each)}" for name, each in results.items())


if __name__ == "__main__":
    typer.run(main)
