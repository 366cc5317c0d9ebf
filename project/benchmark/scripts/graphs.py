"""How the time of an iteration grows with the size of a graph, for the three decompositions: chains with
random patterns that reach across them.

Qian and Liu (TACL 2014, §3.4): an iteration of two subproblems is cubic in the total length of the patterns
at most, since one of them is a minimum cut.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from spacy_hocrf.api import DualSettings, GraphInstance, dual_decompose, make_instance

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table

KINDS = ("hybrid", "two_slave", "naive")
STATES, ITERATIONS = 5, 30
BASE = {"vertices": 400, "patterns": 400, "length": 4}
GROWN = {
    "vertices": (400, 800, 1600, 3200),
    "patterns": (400, 800, 1600, 3200),
    "length": (2, 4, 8, 16),
}


def main(
    repetitions: Annotated[
        int, typer.Option(help="Decodings of each graph; the fastest counts")
    ] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the graphs")] = 0,
    output: CopyOption = None,
) -> None:
    """Decode, and print a table of CPU milliseconds an iteration."""
    rows = []
    for what, size in sizes():
        shape = {**BASE, what: size}
        graph = random_graph(np.random.default_rng(seed), **shape)
        times = (f"{1000 * seconds(graph, kind, repetitions):.2f}" for kind in KINDS)
        total = shape["patterns"] * shape["length"]
        rows.append((what, *(f"{each:,}" for each in (*shape.values(), total)), *times))
    header = ("grows", *BASE, "total length", *(f"{kind}, ms / iteration" for kind in KINDS))
    show(table(rows, header, "l"), output)


def sizes() -> Iterator[tuple[str, int]]:
    """What grows, and how large it is."""
    for what, grown in GROWN.items():
        for size in grown:
            yield what, size


def random_graph(
    random: np.random.Generator, vertices: int, patterns: int, length: int
) -> GraphInstance:
    """A chain whose neighbours have random scores, and rare patterns of other vertices, which are worth
    something.
    """
    unary = random.normal(size=(vertices, STATES))
    edges = [
        ((v, v + 1), (a, b), float(random.normal()))
        for v in range(vertices - 1)
        for a in range(STATES)
        for b in range(STATES)
    ]
    far = [
        (
            sorted(random.choice(vertices, length, replace=False).tolist()),
            random.integers(STATES, size=length).tolist(),
            float(abs(random.normal())),
        )
        for _ in range(patterns)
    ]
    return make_instance(list(unary), edges + far)


def seconds(graph: GraphInstance, kind: str, repetitions: int) -> float:
    """CPU seconds of an iteration."""
    settings = DualSettings(kind=kind, max_iterations=ITERATIONS, tolerance=0.0, local_search=False)
    best = float("inf")
    for _ in range(repetitions):
        begun = time.process_time()
        found = dual_decompose(graph, settings)
        best = min(best, (time.process_time() - begun) / found.iterations)
    return best


if __name__ == "__main__":
    typer.run(main)
