"""How an evaluation grows with the length of a text, of a segment, with label patterns and labels, beside
the bounds of Nguyen et al. (JMLR 15, 2014, §2.5).

An evaluation is log Z and all expected counts of a batch with random potentials. With T tokens of a text, Y
labels, Z label patterns, P forward states and S backward states the paper has

    forward     O(T² Y P)
    backward    O(T² Y S),  S = O(P Y)
    marginals   O(T² Z P)

for segments of any length; with at most L tokens, one T of T² is L, since its sums over d end there. Both
the times and this bound, at the same extents, get an exponent by least squares.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import typer
from machine import describe_machine
from wasabi import MarkdownRenderer

from spacy_hocrf.engine.automaton import Automaton, compile_automaton
from spacy_hocrf.engine.forward_backward import Buffers, expectations
from spacy_hocrf.types import CONTINUE, FIRST, LAST, Potentials

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import DocumentArgument, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS = 7
LEAST_SECONDS = 0.01
"""So long an evaluation is repeated in a round."""
TEXTS = 8
"""Of a batch, all of one length."""
FOLLOWERS = 4
"""Labels that may follow a label where pairs are sparse."""
LABELS = 50
"""Where triples are patterns."""

Patterns = list[tuple[int, ...]]


class Problem(NamedTuple):
    """Something to evaluate."""

    tokens: int  # of each text
    labels: int
    patterns: Patterns  # of two labels and more
    limit: int = 1  # longest segment, 0 for none


@dataclass(frozen=True)
class Curve:
    """One thing grows, all else stays."""

    name: str
    letter: str  # what grows
    sizes: tuple[int, ...]
    problem: Callable[[int], Problem]


class Point(NamedTuple):
    """An evaluation."""

    size: int
    states: int  # P
    patterns: int  # Z
    seconds: float  # CPU time of a batch, the least of all rounds
    bound: float  # the paper's, operations


def sparse_pairs(labels: int) -> Patterns:
    """Each label, and FOLLOWERS others, at random, behind it."""
    random = np.random.default_rng(labels)
    return [
        (y, int(other))
        for y in range(labels)
        for other in np.sort(random.choice(labels, min(FOLLOWERS, labels), replace=False))
    ]


def all_pairs(labels: int) -> Patterns:
    """Every label behind every label."""
    return [(y, other) for y in range(labels) for other in range(labels)]


def triples(number: int) -> Patterns:
    """Random triples of LABELS labels, and the pairs that they begin with."""
    random = np.random.default_rng(0)
    chosen = np.sort(random.choice(LABELS**3, number, replace=False))
    found = [tuple(map(int, each)) for each in np.transpose(np.unravel_index(chosen, [LABELS] * 3))]
    return sorted({each[:2] for each in found}) + found


CURVES = (
    Curve(
        "CRF, order 1",
        "T",
        (50, 100, 200, 400, 800, 1600, 3200),
        lambda size: Problem(size, 10, sparse_pairs(10)),
    ),
    Curve(
        "semi-CRF, order 1, segments of any length",
        "T",
        (50, 100, 200, 400, 800, 1600, 3200),
        lambda size: Problem(size, 10, sparse_pairs(10), 0),
    ),
    Curve(
        "semi-CRF, order 1, T = 400",
        "L",
        (2, 4, 8, 16, 32, 64, 128, 256),
        lambda size: Problem(400, 10, sparse_pairs(10), size),
    ),
    Curve(
        f"CRF, order 2, {LABELS} labels",
        "Z",
        (250, 500, 1000, 2000, 4000, 8000, 16000),
        lambda size: Problem(200, LABELS, triples(size)),
    ),
    Curve(
        "CRF, order 1, 4 labels may follow each",
        "Y",
        (8, 16, 32, 64, 128, 256),
        lambda size: Problem(200, size, sparse_pairs(size)),
    ),
    Curve(
        "CRF, order 1, any label may follow",
        "Y",
        (8, 16, 32, 64, 128),
        lambda size: Problem(200, size, all_pairs(size)),
    ),
)


def main(
    output: DocumentArgument,
    rounds: Annotated[int, typer.Option(help="The least time of so many counts")] = ROUNDS,
    points: Annotated[int, typer.Option(help="Of each curve, the smallest; 0 for all")] = 0,
) -> None:
    """Measure all curves, and write a table and the plot."""
    measured = {curve: measure(curve, rounds, points) for curve in CURVES}

    def render(_: object, plot_name: str) -> str:
        return document(measured, plot_name)

    plot.publish(measured, output, render, draw)


def measure(curve: Curve, rounds: int, points: int = 0) -> list[Point]:
    """The points of a curve: in every round each of them has its turn."""
    problems = {size: curve.problem(size) for size in curve.sizes[: points or None]}
    tasks = [prepare(problem) for problem in problems.values()]
    best = np.full(len(tasks), np.inf)
    for _ in range(rounds):
        for i, (potentials, automaton, buffers) in enumerate(tasks):
            best[i] = min(best[i], seconds(potentials, automaton, buffers))
    found = []
    for (size, problem), (_, automaton, _), least in zip(problems.items(), tasks, best):
        states, patterns = len(automaton.states), len(automaton.patterns)
        found.append(Point(size, states, patterns, float(least), bound(problem, states, patterns)))
    return found


def bound(problem: Problem, states: int, patterns: int) -> float:
    """Forward, backward and marginals of a batch, as the paper has them."""
    labels, longest = problem.labels, problem.limit or problem.tokens
    each = labels * states + labels * labels * states + patterns * states
    return float(TEXTS * problem.tokens * longest * each)


def prepare(problem: Problem) -> tuple[Potentials, Automaton, Buffers]:
    """A batch of texts with random potentials."""
    random = np.random.default_rng(0)
    patterns = [(y,) for y in range(problem.labels)] + problem.patterns
    automaton = compile_automaton(patterns, [problem.limit] * problem.labels)
    n_tokens = TEXTS * problem.tokens
    potentials = Potentials.zero(
        np.arange(TEXTS + 1) * problem.tokens,
        np.full((n_tokens, problem.labels), FIRST | CONTINUE | LAST, dtype=np.uint8),
        len(patterns),
    )
    potentials.const[:] = random.normal(size=len(patterns))
    potentials.token[:] = random.normal(size=potentials.token.shape)
    return potentials, automaton, Buffers(automaton)


def seconds(potentials: Potentials, automaton: Automaton, buffers: Buffers) -> float:
    """CPU time of an evaluation, a mean over as many as take LEAST_SECONDS."""
    times, begun = 0, time.process_time()
    while (spent := time.process_time() - begun) < LEAST_SECONDS or not times:
        expectations(potentials, automaton, buffers=buffers)
        times += 1
    return spent / times


def exponent(points: Sequence[Point], measure: str) -> float:
    """Of the size, in "seconds" or "bound": by least squares over the larger half of the points, where
    what does not grow with it hardly counts.
    """
    half = points[(len(points) - 1) // 2 :]
    size, value = np.log([[point.size, getattr(point, measure)] for point in half]).T
    return round(float(np.polyfit(size, value, 1)[0]), 2) + 0.0  # not -0.00


HEADER = (
    "grows",
    "model",
    "from",
    "forward states",
    "label patterns",
    "CPU ms",
    "grows by",
    "exponent",
    "the bound grows by",
    "its exponent",
)


def document(measured: dict[Curve, list[Point]], plot_name: str) -> str:
    """The table and the plot."""
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(1, "Growth of an evaluation"))
    rows = [
        (
            curve.letter,
            curve.name,
            *(f"{first:,} to {last:,}" for first, last in zip(points[0][:3], points[-1][:3])),
            f"{1000 * points[0].seconds:.2f} to {1000 * points[-1].seconds:.2f}",
            *(
                cell
                for measure in ("seconds", "bound")
                for cell in (
                    f"{getattr(points[-1], measure) / getattr(points[0], measure):,.0f}",
                    f"{exponent(points, measure):.2f}",
                )
            ),
        )
        for curve, points in measured.items()
    ]
    markdown.add(table(rows, HEADER, "ll"))
    markdown.add(plot.image("CPU time of an evaluation as one thing grows", plot_name))
    known = describe_machine()
    markdown.add(
        f"{known['measured']}; {known['CPU']}, {known['instruction set']}; load {known['load average']}."
    )
    return markdown.text


def draw(measured: dict[Curve, list[Point]]) -> "Figure":
    """A panel for each curve: measured times, and the paper's bound as a line from the first."""
    figure = plot.figure(11, 6.4)
    panels = figure.subplots(2, 3).ravel()
    for axes, (curve, points) in zip(panels, measured.items()):
        size, spent = np.array([[point.size, 1000 * point.seconds] for point in points]).T
        bounds = np.array([point.bound for point in points])
        axes.plot(
            size,
            spent[0] * bounds / bounds[0],
            "--",
            color=plot.GREY,
            linewidth=1,
            label="the paper's bound",
        )
        axes.plot(size, spent, "o-", color=plot.BLUE, markersize=4, label="measured")
        axes.set_title(curve.name, fontsize=9)
        axes.set_xlabel(curve.letter)
        plot.log_scale(axes, "y")
        axes.set_xscale("log", base=2)
        axes.set_xticks(size, [f"{each:.0f}" for each in size])
        axes.minorticks_off()
        axes.set_ylim(spent.min() / 2, 4 * spent.max())
        axes.text(
            0.97,
            0.06,
            f"exponent {exponent(points, 'seconds'):.2f}, of the bound {exponent(points, 'bound'):.2f}",
            transform=axes.transAxes,
            ha="right",
            fontsize=8,
        )
        plot.tidy(axes)
    for axes in panels[::3]:
        axes.set_ylabel("CPU milliseconds")
    plot.legend_above(figure, panels)
    return figure


if __name__ == "__main__":
    typer.run(main)
