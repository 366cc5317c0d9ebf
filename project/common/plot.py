"""Plots of the reports, in one style.

matplotlib is in the extra `benchmark` and is imported where something is drawn: without it a report
loses its plot and says so, and its tables are written.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wasabi import msg

from .report import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, GREY = "#1f5fa8", "#d0661b", "#2a8a4a", "#8a3f8f", "#555555"
RED, CYAN, OLIVE, PINK = "#b8323b", "#2a9aa8", "#9a8a1f", "#e07ba8"
GRID = "#e4e4e4"
DPI = 120


def publish(
    results: Any, output: Path, render: Callable[..., str], draw: Callable[..., "Figure"]
) -> None:
    """Write and print the document `render(results, plot)`, then the plot of `draw(results)`.

    output (Path): the Markdown file; the plot has its name and ends in .png.
    render (Callable[[Any, str], str]): takes the plot's file name, "" without matplotlib; see
        `image`.
    """
    path = output.with_suffix(".png")
    show(render(results, path.name if has_matplotlib() else ""), output)
    save(path, draw, results)


def save(path: Path, draw: Callable[..., "Figure"], *arguments: object) -> bool:
    """Write the figure that `draw(*arguments)` makes.

    path (Path): of the PNG.
    RETURNS (bool): False without matplotlib, after a warning that names the extra.
    """
    if not has_matplotlib():
        msg.warn(
            f"No {path.name}: matplotlib is not installed.",
            'The tables are complete. For the plot: pip install "spacy-hocrf[benchmark]"',
        )
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(*arguments).savefig(path, dpi=DPI)
    return True


def has_matplotlib() -> bool:
    """Can it be imported?"""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def image(caption: str, file: str) -> str:
    """An image in Markdown; a sentence where there is none."""
    return f"![{caption}]({file})" if file else f"{caption}: not drawn, matplotlib was missing."


def figure(width: float, height: float) -> "Figure":
    """An empty figure, which needs no display. Its size is in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def tidy(axes: "Axes", grid: str = "both") -> None:
    """A faint grid behind the lines, and no frame above and on the right.

    grid (str): "both", "x" or "y".
    """
    axes.set_axisbelow(True)
    axes.grid(axis=grid, color=GRID, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def log_scale(axes: "Axes", name: str) -> None:
    """A logarithmic axis, with numbers at 1, 2 and 5 of each power of ten: some of them are there
    even where the data are within one power.

    name (str): "x" or "y".
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set(**{f"{name}scale": "log"})
    axis = {"x": axes.xaxis, "y": axes.yaxis}[name]
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:,g}")
    axis.set_minor_formatter(NullFormatter())


def legend_above(figure: "Figure", panels: Sequence["Axes"]) -> None:
    """One legend for all panels, with each name once, above them: in a row, or in two if there are many."""
    named = {
        label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels())
    }
    if named:
        columns = -(-len(named) // (1 + len(named) // 8))
        figure.legend(
            named.values(), named, loc="outside upper center", ncols=columns, frameon=False
        )
