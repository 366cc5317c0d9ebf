"""Figure 1 of Ye et al. (NIPS 2009) at its own noise and orders: a table of every accuracy, one of
what the paper says beside what we find, and the plot.
"""

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import typer
from report import draw, gains, more, of, values
from wasabi import MarkdownRenderer

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import DocumentArgument, LinesArgument, Result, read_lines, table
from common.scores import spread

AXES = {2: (82, 98), 3: (79, 95)}
"""The ends of Figure 1's axes by k, per cent: all of its accuracies that the paper's text has."""

ENOUGH = "less important: features of the observations are enough"
GROWS = "beneficial, and more so the less the observations tell"
BEYOND = "not helpful"
"""What §4.1 says: of order k at little and at much noise, and of the orders above k."""

BUG = (
    "unexplained: footnote 3 of Nguyen et al. (2014) says that a bug in the decoder of 2009 made its "
    "figures significantly lower, not by how much"
)


def main(results: LinesArgument, output: DocumentArgument) -> None:
    """Write the tables and the plot."""
    plot.publish(read_lines(results), output, render, draw)


def render(results: Sequence[Result], plot_name: str) -> str:
    """The whole document."""
    trained = of(results, what="CRF")
    draws, orders = len(values(results, "draw")), values(trained, "order")
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(1, "Figure 1 of Ye et al. (2009)"))
    markdown.add(
        f"Labels right, per cent, as means over {draws} Markov models of each order k; after ± "
        "the standard deviation over them."
    )
    header = ("k", "σ", *(f"order {order}" for order in orders), "the model itself")
    markdown.add(table(accuracy_rows(results), header, "ll"))
    markdown.add(table(comparison_rows(trained), ("", "paper", "ours", "why"), "llll"))
    spent = sum(result["seconds"] for result in trained)
    markdown.add(f"Training these {len(trained)} CRFs took {spent / 60:.1f} CPU minutes.")
    markdown.add(plot.image("Accuracy by order, at the noise of the paper", plot_name))
    return markdown.text + "\n"


def accuracy_rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Accuracy by k, σ and order, beside that of the Markov model itself."""
    trained = of(results, what="CRF")
    rows = []
    for k in values(trained, "k"):
        for noise in values(trained, "noise"):
            some = of(trained, k=k, noise=noise)
            cells = [
                spread([result["accuracy"] for result in of(some, order=order)])
                for order in values(trained, "order")
            ]
            ceiling = of(results, what="ceiling", k=k, noise=noise)
            cells.append(spread([result["accuracy"] for result in ceiling]))
            rows.append((str(k), f"{noise:g}", *cells))
    return rows


def comparison_rows(trained: Sequence[Result]) -> list[tuple[str, str, str, str]]:
    """What the paper says of Figure 1, what we find, and why they differ."""
    noises, generators = values(trained, "noise"), values(trained, "k")
    rows = []
    for k in generators:
        low, high = AXES[k]
        rows.append(
            (f"accuracies, k = {k}", f"axis from {low} to {high}", reach(of(trained, k=k)), BUG)
        )
    for noise in reversed(noises):
        claim = {noises[0]: ENOUGH, noises[-1]: GROWS}.get(noise, "not said")
        for k in generators:
            some = of(trained, k=k, noise=noise)
            last = gains(some, k, k - 1)
            lost = 100 - statistics.mean(r["accuracy"] for r in of(some, order=k - 1))
            rows.append(
                (
                    f"order {k} less order {k - 1} at σ = {noise:g}",
                    claim,
                    f"{spread(last, sign='+')}, a gain in {more(last)}; the first model {last[0]:+.2f}",
                    f"established: order {k - 1} leaves {lost:.2f} to be gained, see the table",
                )
            )
    for k in generators:
        beyond = [
            statistics.mean(gains(of(trained, k=k, noise=noise), order, k))
            for noise in noises
            for order in values(trained, "order")
            if order > k
        ]
        cell = f"means of {min(beyond):+.2f} to {max(beyond):+.2f}"
        rows.append((f"orders above {k} less order {k}, k = {k}", BEYOND, cell, ""))
    return rows


def reach(trained: Sequence[Result]) -> str:
    """The lowest and the highest mean over the Markov models, and those of single models."""
    means = [
        statistics.mean(result["accuracy"] for result in of(trained, noise=noise, order=order))
        for noise in values(trained, "noise")
        for order in values(trained, "order")
    ]
    single = values(trained, "accuracy")
    return (
        f"means from {min(means):.1f} to {max(means):.1f}, single models from {single[0]:.1f} to "
        f"{single[-1]:.1f}"
    )


if __name__ == "__main__":
    typer.run(main)
