"""The results as tables and the plot of Figure 2: accuracy against the order of the CRF; and Table
2 beside the paper's.
"""

import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from wasabi import MarkdownRenderer

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import DocumentArgument, LinesArgument, Result, read_lines, table
from common.scores import spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (plot.BLUE, plot.ORANGE, plot.GREEN, plot.PURPLE, plot.GREY)
# Table 2 of Nguyen et al. (2014): exclusive and all patterns, by order of the Markov model and
# training sequences
PAPER = {
    (2, 300): ("16/173", "13/170"),
    (2, 400): ("17/175", "12/170"),
    (2, 500): ("17/177", "10/170"),
    (3, 300): ("34/393", "58/417"),
    (3, 400): ("37/406", "48/417"),
    (3, 500): ("42/424", "35/417"),
}


def main(results: LinesArgument, output: DocumentArgument) -> None:
    """Write the tables and the plot."""
    plot.publish(read_lines(results), output, render, draw)


def render(results: Sequence[Result], plot_name: str) -> str:
    """The whole document."""
    draws = len(values(results, "draw"))
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(1, "Synthetic data"))
    markdown.add(
        f"Labels right, per cent, as means over {draws} Markov models of each order k; after ± "
        "the standard deviation over them."
    )
    for k in values(results, "k"):
        markdown.add(markdown.title(2, f"Markov models of order {k}"))
        orders = values(of(results, what="CRF", k=k), "order")
        header = ("σ", "sequences", *(f"order {order}" for order in orders), "the model itself")
        markdown.add(table(accuracy_rows(results, k), header, ""))
        markdown.add(table(gain_rows(results, k), GAINS, ""))
    spent = sum(result.get("seconds", 0.0) for result in results)
    markdown.add(f"Training all of these CRFs took {spent / 60:.1f} CPU minutes.")
    markdown.add(plot.image("Accuracy by order", plot_name))
    markdown.add(markdown.title(2, "Patterns of five labels that are in one part only"))
    markdown.add(
        "Exclusive and all patterns of the first Markov model, and in brackets the mean share of "
        'the exclusive ones over all models. "Most often" is how often the most frequent '
        "exclusive pattern of any model occurs."
    )
    header = ("k", "sequences", "train", "test", "paper, train", "paper, test", "most often")
    markdown.add(table(pattern_rows(results), header, ""))
    return markdown.text + "\n"


GAINS = (
    *("σ", "sequences", "order k less k - 1", "a gain in", "order k + 1 less k"),
    *("highest order less k", "a gain in"),
)


def accuracy_rows(results: Sequence[Result], k: int) -> list[tuple[str, ...]]:
    """Mean accuracy by σ, training sequences and order, beside that of the Markov model itself."""
    trained = of(results, what="CRF", k=k)
    rows = []
    for noise in values(trained, "noise"):
        ceiling = [result["accuracy"] for result in of(results, what="ceiling", k=k, noise=noise)]
        for size in values(trained, "size"):
            some = of(trained, noise=noise, size=size)
            means = (
                statistics.mean(r["accuracy"] for r in of(some, order=order))
                for order in values(some, "order")
            )
            rows.append(
                (f"{noise:g}", str(size), *(f"{mean:.2f}" for mean in means), spread(ceiling))
            )
    return rows


def gain_rows(results: Sequence[Result], k: int) -> list[tuple[str, ...]]:
    """What the last order up to the generator's adds, and those beyond it add, draw by draw."""
    trained = of(results, what="CRF", k=k)
    highest = max(values(trained, "order"))
    rows = []
    for noise in values(trained, "noise"):
        for size in values(trained, "size"):
            some = of(trained, noise=noise, size=size)
            last, next_one, beyond = (
                gains(some, k, k - 1),
                gains(some, k + 1, k),
                gains(some, highest, k),
            )
            cells = (
                spread(last, sign="+"),
                more(last),
                spread(next_one, sign="+"),
                spread(beyond, sign="+"),
                more(beyond),
            )
            rows.append((f"{noise:g}", str(size), *cells))
    return rows


def pattern_rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Table 2: our first draw as the paper writes it, then all draws together."""
    rows = []
    for k in values(results, "k"):
        for size in values(of(results, what="patterns"), "size"):
            some = of(results, what="patterns", k=k, size=size)
            cells = [
                f"{some[0][part][0]}/{some[0][part][1]} ({shares(r[part] for r in some)})"
                for part in ("train", "test")
            ]
            often = max(r[part][2] for r in some for part in ("train", "test"))
            rows.append((str(k), str(size), *cells, *PAPER.get((k, size), ("", "")), str(often)))
    return rows


def gains(results: Sequence[Result], order: int, other: int) -> list[float]:
    """Accuracy of one order less that of another, for each draw; nothing where one of them was not
    trained.
    """
    pairs = zip(of(results, order=order), of(results, order=other))
    return [one["accuracy"] - two["accuracy"] for one, two in pairs]


def more(differences: Sequence[float]) -> str:
    """In how many draws there is a gain."""
    return (
        f"{sum(difference > 0 for difference in differences)} of {len(differences)}"
        if differences
        else ""
    )


def shares(counts: Iterable[Sequence[int]]) -> str:
    """The mean share of exclusive patterns."""
    return f"{100 * statistics.mean(exclusive / every for exclusive, every, _ in counts):.1f}%"


def of(results: Iterable[Result], **wanted: Any) -> list[Result]:
    """The results that have these values."""
    return [
        result
        for result in results
        if all(result.get(key) == value for key, value in wanted.items())
    ]


def values(results: Iterable[Result], key: str) -> list[Any]:
    """The values of a key, each once, ascending."""
    return sorted({result[key] for result in results if key in result})


def draw(results: Sequence[Result]) -> "Figure":
    """Accuracy against the order: a row of panels for each k, a panel for each number of training
    sequences, a line for each σ.
    """
    generators, sizes = values(results, "k"), values(of(results, what="CRF"), "size")
    shape = len(generators), len(sizes)
    figure = plot.figure(3.7 * len(sizes), 3.6 * len(generators))
    panels = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False)
    for row, k in zip(panels, generators):
        for axes, size in zip(row, sizes):
            draw_panel(axes, results, k, size)
            axes.set_title(f"Markov models of order {k}, {size} sequences", fontsize=10)
        row[0].set_ylabel("accuracy (per cent)")
    for axes in panels[-1]:
        axes.set_xlabel("order of the CRF")
    plot.legend_above(figure, panels[0])
    return figure


def draw_panel(axes: "Axes", results: Sequence[Result], k: int, size: int) -> None:
    """Lines of the CRFs; dotted levels of the Markov model itself."""
    trained = of(results, what="CRF", k=k, size=size)
    orders = values(trained, "order")
    for noise, colour in zip(values(trained, "noise"), COLOURS):
        means = [
            statistics.mean(r["accuracy"] for r in of(trained, noise=noise, order=order))
            for order in orders
        ]
        axes.plot(orders, means, color=colour, marker="o", markersize=4, label=f"σ = {noise:g}")
        ceiling = statistics.mean(
            r["accuracy"] for r in of(results, what="ceiling", k=k, noise=noise)
        )
        axes.axhline(ceiling, color=colour, linestyle=":")
    axes.axvline(k, color="#cccccc", linewidth=0.8, zorder=0)
    axes.set_xticks(orders)
    plot.tidy(axes, "y")


if __name__ == "__main__":
    typer.run(main)
