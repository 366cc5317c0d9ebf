"""Decoding of graphs: how tight, how often exact, how fast; on problems with proved optima, and on
one large made-up graph.

    python project/benchmark/scripts/graphs.py [PROBLEMS]

PROBLEMS is a gzipped JSON file {"instances": [{"id", "family", "unary", "patterns", "optimum"},
…]}, each of the patterns being {"vertices", "states", "weight"}.
"""

import gzip
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from spacy_hocrf.graph.dual import dual_decompose
from spacy_hocrf.graph.ilp import lp_bound
from spacy_hocrf.graph.instance import GraphInstance, make_instance
from spacy_hocrf.graph.settings import DualSettings

sys.path.append(str(Path(__file__).parents[2]))
from common.report import table

OUR_TWO_SLAVE = "two_slave, our steps and local search"
DECODERS = {
    "hybrid": DualSettings(),
    "two_slave": DualSettings(kind="two_slave"),
    OUR_TWO_SLAVE: DualSettings(kind="two_slave", step="harmonic", local_search=True),
    "naive": DualSettings(kind="naive"),
    "hybrid, no local search": DualSettings(local_search=False),
    "hybrid, ILP fallback": DualSettings(fallback="ilp", time_limit=60.0),
    "ilp": DualSettings(kind="ilp", time_limit=60.0),
}
BESIDE_LP = ("two_slave", OUR_TWO_SLAVE, "hybrid")
LARGE = ("hybrid", "two_slave", OUR_TWO_SLAVE, "naive")
"""Those whose bound is compared with the linear program's, and those that decode the large graph.
"""
HEADER = (
    "family",
    "problems",
    "exact",
    "certificates",
    "bound - optimum",
    "optimum - primal",
    "CPU ms",
    "prototype",
)
PROTOTYPE = {"tiny": 13, "skip": 14, "phrase": 15, "mixed": 37, "neg": 4, "grid": 53, "hard": 42}
"""CPU milliseconds of a prototype of hybrid, Python with C kernels, 500 iterations, on twice as
many problems of each family.
"""


def main(
    problems: Annotated[
        Path | None, typer.Argument(help="Problems with proved optima, .json.gz")
    ] = None,
    tokens: Annotated[int, typer.Option(help="Vertices of the large graph")] = 2000,
    states: Annotated[int, typer.Option(help="States of each of them")] = 17,
    patterns: Annotated[int, typer.Option(help="Patterns besides those of the chain")] = 15_000,
    iterations: Annotated[int, typer.Option(help="Iterations on the large graph")] = 300,
) -> None:
    """Print the tables."""
    if problems is not None:
        for name, settings in DECODERS.items():
            print(f"\n{name}\n")
            print(_table(problems, settings))
        for name in BESIDE_LP:
            print(
                f"\nbound of {name} above that of the linear program, largest part of it: "
                f"{_beside_lp(problems, DECODERS[name])}"
            )
    graph = _large(tokens, states, patterns)
    print(
        f"\n{tokens} vertices, {states} states, {patterns} patterns besides "
        f"{len(graph.weights) - patterns} of a chain"
    )
    for name in LARGE:
        settings = replace(DECODERS[name], max_iterations=iterations)
        seconds = time.process_time()
        found = dual_decompose(graph, settings)
        seconds = time.process_time() - seconds
        print(
            f"{name}: {seconds:.2f} CPU s for {found.iterations} iterations, "
            f"relative gap {found.gap / abs(found.primal):.1e}"
        )


def _table(problems: Path, settings: DualSettings) -> str:
    rows = defaultdict(list)
    wrong = 0
    for problem, graph in _read(problems):
        seconds = time.process_time()
        found = dual_decompose(graph, settings)
        seconds = time.process_time() - seconds
        best = problem["optimum"]
        wrong += (
            found.bound < best - 1e-6
            or found.primal > best
            or (found.certificate and found.primal != best)
        )
        rows[problem["family"]].append(
            (
                1000 * seconds,
                found.bound - best,
                best - found.primal,
                found.certificate,
                found.primal == best,
            )
        )
    cells = []
    for family, results in rows.items():
        ms, above, below, certain, exact = np.array(results, dtype=float).T
        cells.append(
            (
                family,
                f"{len(results)}",
                f"{exact.sum():.0f}",
                f"{certain.sum():.0f}",
                f"{above.mean():.3f}",
                f"{below.mean():.3f}",
                f"{ms.mean():.1f}",
                f"{PROTOTYPE.get(family, '')}",
            )
        )
    return f"{table(cells, HEADER)}\n\nwrong bounds, scores or certificates: {wrong}"


def _beside_lp(problems: Path, settings: DualSettings) -> str:
    """Where all patterns besides the chain's are positive, the relaxation of two subproblems is
    that of the linear program.
    """
    worst: dict[str, float] = defaultdict(float)
    for problem, graph in _read(problems):
        if problem["family"] in ("skip", "phrase"):
            relaxed = lp_bound(graph)
            found = dual_decompose(graph, settings, most_entries=0)
            excess = (found.bound - relaxed) / abs(relaxed)
            worst[problem["family"]] = max(worst[problem["family"]], excess)
    return ", ".join(f"{family} {excess:.1e}" for family, excess in worst.items())


def _read(problems: Path) -> Iterator[tuple[dict[str, Any], GraphInstance]]:
    with gzip.open(problems, "rt", encoding="utf8") as file:
        for problem in json.load(file)["instances"]:
            patterns = [(p["vertices"], p["states"], p["weight"]) for p in problem["patterns"]]
            yield problem, make_instance(problem["unary"], patterns)


def _large(n: int, width: int, n_patterns: int) -> GraphInstance:
    """A chain with random scores, and random pairs of vertices that should agree."""
    rng = np.random.default_rng(0)
    table = np.stack(
        np.meshgrid(np.arange(width), np.arange(width), indexing="ij"), axis=-1
    ).reshape(-1, 2)
    chain = (
        np.arange(n - 1)[:, None, None] + np.zeros((1, width * width, 1), dtype=np.int64) + [0, 1]
    )
    pairs = np.zeros((0, 2), dtype=np.int64)
    while len(pairs) < -(-n_patterns // width):
        drawn = np.sort(rng.integers(0, n, (n_patterns, 2)), axis=1)
        drawn = np.unique(np.concatenate([pairs, drawn[drawn[:, 1] - drawn[:, 0] > 1]]), axis=0)
        pairs = rng.permutation(drawn)[: -(-n_patterns // width)]
    agree = np.repeat(np.arange(width), 2).reshape(-1, 2)
    vertices = np.concatenate([chain.reshape(-1, 2), np.repeat(pairs, width, axis=0)[:n_patterns]])
    states = np.concatenate(
        [np.tile(table, (n - 1, 1)), np.tile(agree, (len(pairs), 1))[:n_patterns]]
    )
    weights = np.concatenate(
        [np.tile(rng.normal(size=width * width), n - 1), np.abs(rng.normal(size=n_patterns))]
    )
    unary = 1.5 * rng.normal(size=n * width)
    return GraphInstance.from_arrays(
        np.arange(n + 1) * width,
        unary,
        2 * np.arange(len(weights) + 1),
        vertices.ravel(),
        states.ravel(),
        weights,
    )


if __name__ == "__main__":
    typer.run(main)
