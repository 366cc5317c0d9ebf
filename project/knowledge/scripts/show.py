"""The results as tables and a plot: F1 by task and number of texts, what each kind of knowledge adds,
and what it costs.
"""

import math
import sys
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Annotated

import typer
from knowledge import DEFAULT
from wasabi import MarkdownRenderer, msg

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from differences import Draws, by_row, differences, percent
from report import COLOURS, Suite, draw_task, interval, mean_of
from tasks import ALL

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import DocumentArgument, LinesArgument, Result, read_lines, table
from common.scores import gain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
MEANS = (
    *("told", "rows", "mean", "95 % interval", "ahead", "worst row", "", "training time", "speed"),
)


TYPICAL = ("msm2013", "400")
"""The task and the number of texts of which costs are told."""


def main(
    results: LinesArgument,
    output: DocumentArgument,
    part: Annotated[str, typer.Option(help="The parts that were scored, dev or test")] = "dev",
) -> None:
    """Write the tables and the plot."""
    lines = read_lines(results)
    scored = suite_of(lines, part)
    if not any(DEFAULT in systems for systems in scored.rows.values()):
        msg.fail(f"{results} has no results of {DEFAULT} on the {part} parts", exits=1)
    plot.publish((scored, suite_of(lines, "official")), output, render, draw)


def suite_of(lines: list[Result], part: str) -> Suite:
    """The results of a part, `ours` without knowledge and `peers` with some."""
    rows = by_row(lines, part)
    named = {system: None for systems in rows.values() for system in systems}
    return Suite(part, DEFAULT, [name for name in named if name != DEFAULT], [], rows)


def render(suites: tuple[Suite, Suite], plot_name: str) -> str:
    """The whole document."""
    dev, official = suites
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(1, "What outside knowledge gives"))
    sizes = [size if size == ALL else f"{size} texts" for size in dev.sizes]
    markdown.add(markdown.title(2, "What to choose by"))
    costs = ("CPU s of training", "tokens a CPU second", "MB saved")
    markdown.add(table(choice_rows(dev), ("told", *sizes, *costs)))
    name = f"F1 on the {dev.part} parts by number of training texts"
    markdown.add(plot.image(name, plot_name))
    markdown.add(markdown.title(2, f"Points of F1 more than {DEFAULT}"))
    markdown.add(table(mean_rows(dev), (*MEANS, *sizes)))
    for suite, title in (dev, f"F1, {dev.part} parts"), (official, "F1, the dev file of WNUT-17"):
        if suite.rows:
            markdown.add(markdown.title(2, title))
            less = [f"{name}, more than {DEFAULT} (p)" for name in suite.peers]
            markdown.add(table(score_rows(suite), (*head(suite), *less), "lr"))
    for title, key, digits in (
        ("CPU seconds of training", "learning", 1),
        ("Tokens of a CPU second, with scores", "speed", 0),
        ("Tokens of a CPU second, read by the other pipeline", "reading", 0),
        ("Tokens of a CPU second, read by the encoder", "encoding", 0),
        ("Bytes of the component, saved", "bytes", 0),
        ("Bytes that are saved beside it", "beside", 0),
    ):
        if rows := cost_rows(dev, key, digits):
            markdown.add(markdown.title(2, title))
            markdown.add(table(rows, head(dev), "lr"))
    return markdown.text + "\n"


def head(suite: Suite) -> tuple[str, ...]:
    """The header of a table with a column for each system."""
    return ("task", "texts", DEFAULT, *suite.peers)


def choice_rows(suite: Suite) -> list[tuple[str, ...]]:
    """Of each system the mean F1 of all tasks by size, nothing where it lacks one; and of TYPICAL texts the
    training time, the speed of all that reads a text, and what is saved, means of the draws.
    """
    rows = []
    for name in (DEFAULT, *suite.peers):
        cells = []
        for size in suite.sizes:
            draws = [systems.get(name) for (_, each), systems in suite.rows.items() if each == size]
            whole = [percent(each) for each in draws if each]
            cells.append(f"{mean(whole):.1f}" if len(whole) == len(draws) else "")
        results = list(suite.rows.get(TYPICAL, {}).get(name, {}).values())
        costs = ("", "", "")
        if results and all("bytes" in result for result in results):
            saved = mean(result["bytes"] + result["beside"] for result in results) / 1e6
            speed = mean(map(whole_speed, results))
            learning = mean(result["learning"] for result in results)
            costs = (f"{learning:.1f}", f"{speed:,.0f}", f"{saved:.1f}")
        rows.append((name, *cells, *costs))
    return rows


def whole_speed(result: Result) -> float:
    """Tokens of a CPU second, of hocrf and of what reads the texts before it."""
    speeds = [result[name] for name in ("speed", "reading", "encoding") if name in result]
    return 1 / sum(1 / speed for speed in speeds)


def mean_rows(suite: Suite) -> list[tuple[str, ...]]:
    """What each system has more than the default, over all rows and by size."""
    rows = []
    for name in suite.peers:
        if summary := suite.compared(name, DEFAULT):
            worst = summary.worst_row
            rows.append(
                (
                    *(name, str(summary.rows), *interval(summary)),
                    *(f"{worst.points:+.2f}", ", ".join(worst.row)),
                    *(f"{ratio(suite, name, key):.2f} ×" for key in ("learning", "speed")),
                    *(mean_of(suite.compared(name, DEFAULT, size)) for size in suite.sizes),
                )
            )
    return rows


def ratio(suite: Suite, name: str, key: str) -> float:
    """A number of results as a multiple of the default's: the geometric mean over the rows that have
    both.
    """
    logs = [
        math.log(average(systems[name], key) / average(systems[DEFAULT], key))
        for systems in suite.rows.values()
        if DEFAULT in systems and name in systems
    ]
    return math.exp(mean(logs))


def score_rows(suite: Suite) -> list[tuple[str, ...]]:
    """F1 of each row, and differences with their p-values; nothing where a system is missing."""
    gains = {
        (name, each.row): gain(each.points, each.p)
        for name in suite.peers
        for each in differences(suite.rows, name, DEFAULT)
    }
    rows = []
    for row, systems in suite.rows.items():
        scores = [
            f"{percent(systems[name]):.2f}" if name in systems else ""
            for name in (DEFAULT, *suite.peers)
        ]
        more = [gains.get((name, row), "") for name in suite.peers]
        rows.append((*label(row, systems), *scores, *more))
    return rows


def cost_rows(suite: Suite, key: str, digits: int) -> list[tuple[str, ...]]:
    """A number of each row's results, the mean of its draws; nothing where a system has none."""
    rows = []
    for row, systems in suite.rows.items():
        means = {
            name: f"{average(draws, key):,.{digits}f}"
            for name, draws in systems.items()
            if all(key in result for result in draws.values())
        }
        if means:
            cells = [means.get(name, "") for name in (DEFAULT, *suite.peers)]
            rows.append((*label(row, systems), *cells))
    return rows


def average(draws: Draws, key: str) -> float:
    """Mean of a number of some draws."""
    return mean(result[key] for result in draws.values())


def label(row: tuple[str, str], systems: dict[str, Draws]) -> tuple[str, str]:
    """Task and number of texts."""
    task, size = row
    texts = next(iter(next(iter(systems.values())).values()))["texts"]
    return task, f"{ALL}, {texts:,}" if size == ALL else size


def draw(suites: tuple[Suite, Suite]) -> "Figure":
    """A learning curve for each task, and what is added on average, on the dev parts."""
    suite = suites[0]
    tasks = list(dict.fromkeys(task for task, _ in suite.rows))
    height = len(tasks) // COLUMNS + 1
    figure = plot.figure(10.5, 2.9 * height + 0.4)
    grid = figure.add_gridspec(height, COLUMNS)
    panels: list[Axes] = []
    for i, task in enumerate(tasks):
        shared = panels[0] if panels else None
        axes = figure.add_subplot(grid[divmod(i, COLUMNS)], sharex=shared)
        panels.append(axes)
        draw_task(axes, suite, task)
        axes.set_xlabel("training texts")
        if i % COLUMNS == 0:
            axes.set_ylabel("F1 (per cent)")
    draw_gains(figure.add_subplot(grid[divmod(len(tasks), COLUMNS)]), suite)
    plot.legend_above(figure, panels)
    return figure


def draw_gains(axes: "Axes", suite: Suite) -> None:
    """The mean of what each system adds by size, and tasks as points."""
    for number, (name, colour) in enumerate(zip(suite.peers, COLOURS[1:])):
        compared = differences(suite.rows, name, DEFAULT)
        for place, size in enumerate(suite.sizes):
            points = [difference.points for difference in compared if difference.row[1] == size]
            x = place + 0.8 * (number - (len(suite.peers) - 1) / 2) / len(suite.peers)
            axes.scatter([x] * len(points), points, color=colour, s=14, alpha=0.35, linewidths=0)
            if points:
                axes.scatter([x], [mean(points)], color=colour, s=30, marker="D")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(suite.sizes)), suite.sizes)
    axes.set_xlabel("training texts")
    axes.set_ylabel("points of F1")
    axes.set_title(f"more than {DEFAULT}: tasks, and their mean", fontsize=10)
    plot.tidy(axes, "y")


if __name__ == "__main__":
    typer.run(main)
