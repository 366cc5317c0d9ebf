"""Table 2 of Nguyen et al. (2014) beside many Markov models drawn as its text says: does another draw have
as many exclusive patterns?
"""

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from markov import count_exclusive, draw, make_generator
from report import PAPER
from sweep import GENERATORS, PATTERN, TEST

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table

SIDES = ("training", "testing")


def main(
    draws: Annotated[int, typer.Option(help="Markov models of each order")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of all of them")] = 0,
    output: CopyOption = None,
) -> None:
    """Draw, count, and print a table."""
    rows = []
    for k in GENERATORS:
        sizes = [size for order, size in PAPER if order == k]
        shares = np.zeros((draws, len(sizes), len(SIDES)))
        for number in range(draws):
            random = np.random.default_rng([seed, number, k])
            generator = make_generator(random, k)
            training, test = draw(random, generator, max(sizes)), draw(random, generator, TEST)
            for place, size in enumerate(sizes):
                states = training.first(size).states, test.states
                for side, (one, other) in enumerate((states, states[::-1])):
                    exclusive, every, _ = count_exclusive(one, other, PATTERN)
                    shares[number, place, side] = 100 * exclusive / every
        for place, size in enumerate(sizes):
            for side, name in enumerate(SIDES):
                ours = shares[:, place, side]
                exclusive, every = map(int, PAPER[k, size][side].split("/"))
                papers = 100 * exclusive / every
                cells = [
                    papers,
                    ours.mean(),
                    np.quantile(ours, 0.99),
                    100 * (ours >= papers).mean(),
                ]
                rows.append((str(k), str(size), name, *(f"{cell:.1f}%" for cell in cells)))
    header = ("k", "sequences", "part", "paper", "mean", "99th percentile", "as many or more")
    show(table(rows, header, "rrl"), output)


if __name__ == "__main__":
    typer.run(main)
