"""The tables of `jmlr.py`'s measures in Markdown, beside the paper's, and the figure: patterns and
training time by order.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import srsly
import typer
from jmlr_tasks import MICRO, MODELS, TASKS, Task
from wasabi import MarkdownRenderer, msg

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import CopyOption, show, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# colour, marker, name
STYLES = {False: (plot.BLUE, "o", "CRF"), True: (plot.ORANGE, "s", "semi-CRF")}


def main(
    task: Annotated[str, typer.Argument(help="references or punctuation")],
    folder: Annotated[
        Path, typer.Argument(help="Where jmlr.py has left its measures", exists=True)
    ],
    output: CopyOption = None,
    plot_path: Annotated[
        Path | None, typer.Option("--plot", help="Draw the figure here (PNG)")
    ] = None,
) -> None:
    """Print the tables of one experiment."""
    results = read_results(TASKS[task], folder)
    if not results:
        msg.fail(f"There is no measure in {folder}: run jmlr.py first", exits=1)
    show(render(TASKS[task], results), output)
    if plot_path and plot.save(plot_path, draw, results):
        msg.good("Drew the figure", plot_path)


def read_results(task: Task, folder: Path) -> dict[str, dict]:
    """Measures by model, in the paper's order; those of its remarks come last."""
    return {
        name: srsly.read_json(folder / f"{name}.json")
        for name in task.released
        if (folder / f"{name}.json").exists()
    }


def render(task: Task, results: Mapping[str, dict]) -> str:
    """Both tables: a row for each model, and F1 by label."""
    markdown = MarkdownRenderer()
    for header, rows in (model_table(task, results), label_table(task, results)):
        markdown.add(table(rows, header))
    return markdown.text


def model_table(
    task: Task, results: Mapping[str, dict]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Sizes, objective, micro F1 and cost of every model. "Early" is where the released code's rule
    stops our training.
    """
    its = "its optimum" if task.at_optimum else "its n·f, early"
    header = ["model", "features", "patterns", "states", "n·f", its, "F1"]
    header += ["its F1"] if task.at_optimum else []
    header += ["n·f, early", "F1, early", "paper", "iterations (early)", "evaluations", "CPU s"]
    rows = []
    for name, result in results.items():
        end, early = result["end"], result["early"]
        row = [name, *(str(result[size]) for size in ("features", "patterns", "states"))]
        row += [f"{end['objective']:.6f}", f"{task.released[name]:.6f}", micro(end)]
        row += [f"{task.released_f[name]:.2f}"] if task.at_optimum else []
        row += [f"{early['objective']:.3f}", micro(early), f"{paper(task, name, MICRO):.2f}"]
        rows.append(
            (
                *row,
                f"{end['iterations']} ({early['iterations']})",
                str(end["evaluations"]),
                f"{result['cpu']:.1f}",
            )
        )
    return tuple(header), rows


def label_table(
    task: Task, results: Mapping[str, dict]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """F1 by label: ours at the optimum, and the paper's; "gold" is how often the test part has a label."""
    results = {name: result for name, result in results.items() if name in MODELS}
    rows = []
    for label in task.paper:
        pairs = [
            f"{percent(result['end'], label)} / {paper(task, name, label):.2f}"
            for name, result in results.items()
        ]
        [wanted] = {result["end"]["scores"][label]["wanted"] for result in results.values()}
        rows.append((f"`{label}`" if label != MICRO else f"**{label}**", str(wanted), *pairs))
    return ("ours / paper", "gold", *results), rows


def percent(stop: Mapping, label: str) -> str:
    """F1 of one label in per cent; 0.00 for one that is never found."""
    return f"{100 * stop['scores'][label]['f']:.2f}"


def micro(stop: Mapping) -> str:
    """Micro-averaged F1 in per cent; what the released scorer makes of it in brackets, if that is
    something else.
    """
    lenient = stop.get("released_scorer_f", stop["scores"][MICRO]["f"])
    strict = percent(stop, MICRO)
    return strict if f"{100 * lenient:.2f}" == strict else f"{strict} ({100 * lenient:.2f})"


def paper(task: Task, model: str, label: str) -> float:
    """F1 in the paper's table, or its text."""
    return task.paper[label][list(MODELS).index(model)] if model in MODELS else task.remark[model]


def draw(results: Mapping[str, dict]) -> "Figure":
    """Number of label patterns, and CPU time of training, by order; of the models of the table
    only.
    """
    results = {name: result for name, result in results.items() if name in MODELS}
    figure = plot.figure(8.5, 3.4)
    axes = figure.subplots(1, 2)
    panels = (("patterns", "label patterns"), ("cpu", "training, CPU seconds"))
    for axis, (key, title) in zip(axes, panels):
        for semi, (colour, marker, name) in STYLES.items():
            line = [
                (result["order"], result[key])
                for result in results.values()
                if result["semi"] == semi
            ]
            axis.plot(*zip(*line), color=colour, marker=marker, label=name)
            for x, y in line:
                above = y == max(result[key] for result in results.values() if result["order"] == x)
                axis.annotate(
                    f"{y:.3g}",
                    (x, y),
                    (0, 6 if above else -14),
                    textcoords="offset points",
                    fontsize=8,
                    ha="center",
                )
        axis.set(ylabel=title, xlabel="maximum order", xticks=_orders(results.values()))
        axis.set_ylim(0, 1.15 * max(result[key] for result in results.values()))
        plot.tidy(axis, "y")
    axes[0].legend(frameon=False)
    return figure


def _orders(results: Iterable[Mapping]) -> list[int]:
    return sorted({result["order"] for result in results})


if __name__ == "__main__":
    typer.run(main)
