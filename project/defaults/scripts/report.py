"""The results as tables and a plot: F1 by task and number of texts, differences from the peers, and
what the candidates for the defaults are worth.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from differences import Draws, Row, Summary, by_row, differences, order, percent, summarize
from systems import PEERS
from tasks import ALL, TASKS
from wasabi import MarkdownRenderer, msg

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import DocumentArgument, LinesArgument, read_lines, table
from common.scores import gain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 4
COLOURS = (
    *(plot.BLUE, plot.ORANGE, plot.GREEN, plot.PURPLE, plot.GREY),
    *(plot.RED, plot.CYAN, plot.OLIVE, plot.PINK),
)
LOSS = -0.3
"""By the rule, no task may lose more than this on average."""


@dataclass(frozen=True)
class Suite:
    """What is reported."""

    part: str
    ours: str
    peers: list[str]
    candidates: list[str]
    rows: dict[Row, dict[str, Draws]]

    def compared(self, system: str, other: str, size: str = "") -> Summary | None:
        """The summary of the rows of a size, or of all; None where no row has both."""
        every = differences(self.rows, system, other)
        some = [difference for difference in every if size in ("", difference.row[1])]
        return summarize(some) if some else None

    @property
    def sizes(self) -> list[str]:
        """Numbers of training texts, ALL last."""
        return sorted({size for _, size in self.rows}, key=order)


def main(
    results: LinesArgument,
    output: DocumentArgument,
    part: Annotated[str, typer.Option(help="dev or test")] = "dev",
    ours: Annotated[str, typer.Option(help="The system that others are compared with")] = "default",
) -> None:
    """Write the tables and the plot."""
    rows = by_row(read_lines(results), part)
    named = {system: None for systems in rows.values() for system in systems}
    if ours not in named:
        msg.fail(f"{results} has no results of {ours} on the {part} parts", exits=1)
    peers = [name for name in PEERS if name in named]
    candidates = [name for name in named if name not in (ours, *PEERS)]
    plot.publish(Suite(part, ours, peers, candidates, rows), output, render, draw)


def render(suite: Suite, plot_name: str) -> str:
    """The whole document."""
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(1, f"The suite, {suite.part} parts"))
    if suite.peers:
        markdown.add(markdown.title(2, "Mean differences"))
        markdown.add(table(summary_rows(suite), SUMMARY, "lr"))
    markdown.add(plot.image("F1 by number of training texts", plot_name))
    if suite.candidates:
        markdown.add(markdown.title(2, "Candidates"))
        names = [size if size == ALL else f"{size} texts" for size in suite.sizes]
        markdown.add(table(candidate_rows(suite), (*CANDIDATE, *names)))
    markdown.add(markdown.title(2, "Rows"))
    less = [f"{suite.ours} less {peer} (p)" for peer in suite.peers]
    markdown.add(table(score_rows(suite), ("task", "texts", suite.ours, *suite.peers, *less), "lr"))
    return markdown.text + "\n"


SUMMARY = ("less", "texts", "rows", "mean", "95 % interval", "ahead", "worst row", "")
CANDIDATE = (
    *("candidate", "rows", "mean", "95 % interval", "ahead", "worst task", "", "best task", ""),
    *("training time", "by the rule"),
)


def summary_rows(suite: Suite) -> list[tuple[str, ...]]:
    """By peer and size, and over all sizes: what we have more."""
    rows = []
    for peer in suite.peers:
        for size in (*suite.sizes, ""):
            if summary := suite.compared(suite.ours, peer, size):
                worst = summary.worst_row
                place = f"{worst.row[0]}, {worst.row[1]}"
                head = (peer, size or "any number", str(summary.rows), *interval(summary))
                rows.append((*head, f"{worst.points:+.2f}", place))
    return rows


def candidate_rows(suite: Suite) -> list[tuple[str, ...]]:
    """What each candidate has more than ours, and whether it is to be the default by the rule; its
    time as a multiple of ours, and the means by size.
    """
    rows = []
    for name in suite.candidates:
        if summary := suite.compared(name, suite.ours):
            head = (name, str(summary.rows), *interval(summary), f"{summary.worst_mean:+.2f}")
            better = summary.mean > 0 and summary.worst_mean >= LOSS
            ratio = f"{time_ratio(suite, name):.2f} ×"
            verdict = "better" if better else "no"
            means = [mean_of(suite.compared(name, suite.ours, size)) for size in suite.sizes]
            best = (f"{summary.best_mean:+.2f}", summary.best_task)
            rows.append((*head, summary.worst_task, *best, ratio, verdict, *means))
    return rows


def interval(summary: Summary) -> tuple[str, str, str]:
    """The mean, its interval and how many rows are ahead."""
    return (
        mean_of(summary),
        f"{summary.low:+.2f} to {summary.high:+.2f}",
        f"{summary.ahead} of {summary.rows}",
    )


def mean_of(summary: Summary | None) -> str:
    """Nothing where there are no rows."""
    return f"{summary.mean:+.2f}" if summary else ""


def time_ratio(suite: Suite, name: str) -> float:
    """CPU time of training, of the draws of both systems, as a multiple of ours."""
    times = [
        (systems[name][number]["seconds"], result["seconds"])
        for systems in suite.rows.values()
        for number, result in systems.get(suite.ours, {}).items()
        if number in systems.get(name, {})
    ]
    theirs, ours = map(sum, zip(*times))
    return theirs / ours if ours else float("nan")


def score_rows(suite: Suite) -> list[tuple[str, ...]]:
    """F1 of each row, and differences with their p-values; nothing where a system is missing."""
    gains = {
        (peer, each.row): gain(each.points, each.p)
        for peer in suite.peers
        for each in differences(suite.rows, suite.ours, peer)
    }
    rows = []
    for row, systems in suite.rows.items():
        task, size = row
        texts = next(iter(next(iter(systems.values())).values()))["texts"]
        scores = [
            f"{percent(systems[name]):.2f}" if name in systems else ""
            for name in (suite.ours, *suite.peers)
        ]
        less = [gains.get((peer, row), "") for peer in suite.peers]
        rows.append((task, f"all, {texts:,}" if size == ALL else size, *scores, *less))
    return rows


def draw(suite: Suite) -> "Figure":
    """A panel for each task, F1 against the number of texts; below them the mean differences from
    the peers.
    """
    tasks = [name for name in TASKS if any(task == name for task, _ in suite.rows)]
    height, below = -(-len(tasks) // COLUMNS), bool(suite.peers)
    figure = plot.figure(11.5, 2.3 * height + (2.9 if below else 0.4))
    ratios = [*[1.0] * height, *[1.25] * below]
    grid = figure.add_gridspec(len(ratios), COLUMNS, height_ratios=ratios)
    panels: list[Axes] = []
    for i, task in enumerate(tasks):
        panels.append(
            figure.add_subplot(grid[divmod(i, COLUMNS)], sharex=panels[0] if panels else None)
        )
        draw_task(panels[i], suite, task)
        if i % COLUMNS == 0:
            panels[i].set_ylabel("F1 (per cent)")
        if i + COLUMNS >= len(tasks):
            panels[i].set_xlabel("training texts")
    if below:
        draw_means(figure.add_subplot(grid[height, :]), suite)
    plot.legend_above(figure, panels)
    return figure


def draw_task(axes: "Axes", suite: Suite, task: str) -> None:
    """Means as lines, draws as points."""
    for name, colour in zip((suite.ours, *suite.peers), COLOURS):
        means, single = [], []
        for row, systems in suite.rows.items():
            if row[0] == task and name in systems:
                results = list(systems[name].values())
                means.append((results[0]["texts"], percent(systems[name])))
                single += [(result["texts"], 100 * result["f"]) for result in results]
        axes.plot(*columns(means), color=colour, marker="o", markersize=3.5, label=name)
        axes.scatter(*columns(single), color=colour, s=9, alpha=0.35, linewidths=0)
    plot.log_scale(axes, "x")
    axes.set_title(task, fontsize=10)
    plot.tidy(axes)


def columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """All x and all y."""
    return [x for x, _ in points], [y for _, y in points]


def draw_means(axes: "Axes", suite: Suite) -> None:
    """The mean difference from each peer by size, with its interval; tasks as points."""
    for number, (peer, colour) in enumerate(zip(suite.peers, COLOURS[1:])):
        every = differences(suite.rows, suite.ours, peer)
        for place, size in enumerate(suite.sizes):
            some = [difference for difference in every if difference.row[1] == size]
            if some:
                x = place + 0.16 * (number - (len(suite.peers) - 1) / 2)
                summary, points = summarize(some), [difference.points for difference in some]
                axes.scatter([x] * len(some), points, color=colour, s=14, alpha=0.35, linewidths=0)
                radius = summary.high - summary.mean
                axes.errorbar(x + 0.03, summary.mean, radius, color=colour, marker="D", capsize=3)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(suite.sizes)), [f"{size} texts" for size in suite.sizes])
    axes.set_xlim(-0.5, len(suite.sizes) - 0.5)
    axes.set_ylabel("points of F1")
    title = f"{suite.ours} less each peer: tasks as points, their mean and its 95 % interval"
    axes.set_title(title, fontsize=10)
    plot.tidy(axes, "y")


if __name__ == "__main__":
    typer.run(main)
