"""The plots: time of an evaluation by order, and F1 by speed and by training."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from results import three_digits

sys.path.append(str(Path(__file__).parents[2]))
from common import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = {  # colour, marker, where the numbers are, and name in the legend
    "CRF": (plot.BLUE, "o", (6, -12), "spacy-hocrf, CRF"),
    "semi-CRF": (plot.ORANGE, "s", (-6, 8), "spacy-hocrf, semi-CRF"),
}
PEER, PEER_COLOUR = "CRFsuite", plot.GREY
SYSTEMS = {  # colour, marker, line, and are the names of its points above them?
    "spacy-hocrf": (plot.BLUE, "o", "-", True),
    "CRFsuite": (plot.GREY, "D", "", False),
    "ner": (plot.ORANGE, "s", "--", False),
}


def points_of(results: Sequence[dict]) -> dict[tuple[str, str], dict[int, float]]:
    """Milliseconds by corpus and model, and then by order; the least where several bars have
    measured the same.
    """
    points: dict[tuple[str, str], dict[int, float]] = {}
    for result in results:
        for point in result.get("points", ()):
            orders = points.setdefault((point["corpus"], point["model"]), {})
            orders[point["order"]] = min(
                orders.get(point["order"], float("inf")), 1e3 * point["seconds"]
            )
    return points


def draw(results: Sequence[dict]) -> "Figure":
    """Time of an evaluation by order, a panel for each corpus."""
    points = points_of(results)
    corpora = sorted({corpus for corpus, _ in points}) or ["nothing measured"]
    figure = plot.figure(5.2 * len(corpora), 4.6)
    panels = figure.subplots(1, len(corpora), squeeze=False)[0]
    for panel, corpus in zip(panels, corpora):
        draw_panel(
            panel,
            corpus,
            {model: orders for (name, model), orders in points.items() if name == corpus},
        )
    panels[0].set_ylabel("CPU time of an evaluation (ms, log scale)")
    plot.legend_above(figure, panels)
    return figure


def draw_panel(axes: "Axes", corpus: str, models: Mapping[str, Mapping[int, float]]) -> None:
    """One corpus: our models as lines, CRFsuite as the level to compare with."""
    plot.log_scale(axes, "y")
    axes.set_title(corpus)
    axes.set_xlabel("order of the model")
    axes.set_xticks([1, 2, 3])
    axes.set_xlim(0.7, 3.5)
    if PEER in models:
        level = models[PEER][1]
        axes.axhline(level, color=PEER_COLOUR, linestyle=":", linewidth=1.2)
        axes.plot(
            [1], [level], color=PEER_COLOUR, marker="D", linestyle=":", label="CRFsuite, order 1"
        )
        axes.annotate(
            three_digits(level),
            (3.5, level),
            xytext=(-4, 4),
            textcoords="offset points",
            ha="right",
            color=PEER_COLOUR,
        )
    for model, (colour, marker, place, label) in STYLES.items():
        if model in models:
            orders = sorted(models[model])
            times = [models[model][order] for order in orders]
            axes.plot(orders, times, color=colour, marker=marker, label=label, linewidth=1.8)
            for order, milliseconds in zip(orders, times):
                axes.annotate(
                    three_digits(milliseconds),
                    (order, milliseconds),
                    xytext=place,
                    textcoords="offset points",
                    color=colour,
                )
    every = [value for orders in models.values() for value in orders.values()]
    if every:
        axes.set_ylim(min(every) / 1.8, max(every) * 1.8)
    plot.tidy(axes, "y")


def draw_systems(results: Sequence[dict]) -> "Figure":
    """F1 by speed of prediction, and by CPU time of training."""
    systems = [system for result in results for system in result.get("systems", ())]
    figure = plot.figure(10.4, 4.6)
    panels = figure.subplots(1, 2, sharey=True)
    panels[0].set_ylabel("F1 of chunks held back")
    for axes, quantity, label in zip(
        panels,
        ("tokens_per_second", "training"),
        ("speed of nlp.pipe or of features and tagging (tokens/s)", "training (CPU seconds)"),
    ):
        plot.log_scale(axes, "x")
        axes.set_xlabel(f"{label}, log scale")
        for name in SYSTEMS:
            draw_system(axes, [each for each in systems if each["name"] == name], quantity)
        axes.margins(x=0.12, y=0.14)
        plot.tidy(axes)
    plot.legend_above(figure, panels)
    return figure


def draw_system(axes: "Axes", variants: Sequence[dict], quantity: str) -> None:
    """A system's points, joined where there are several, each with the name of the variant."""
    if not variants:
        return
    colour, marker, line, above = SYSTEMS[variants[0]["name"]]
    values = [(each[quantity], each["f1"]) for each in variants]
    name = variants[0]["name"]
    axes.plot(*zip(*values), color=colour, marker=marker, linestyle=line, label=name)
    for each, at in zip(variants, values):
        axes.annotate(
            each["variant"],
            at,
            xytext=(-2, 6) if above else (9, 0),
            textcoords="offset points",
            rotation=40 if above else 0,  # they are close to each other
            rotation_mode="anchor",
            va="bottom" if above else "center",
            color=colour,
        )
