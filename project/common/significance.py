"""Print which of several systems are significantly better than which: a table like Tables 4, 7 and
9 of Nguyen et al. (2014).

Each cell is the p-value of the approximate randomization test on micro-averaged F1 (see
`spacy_hocrf.cli.randomization`), with `<` where the system of the row is worse than that of the
column, and `>` where it is better.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from spacy_hocrf.api import (
    Counts,
    EntsScorer,
    Scorer,
    SpansScorer,
    TagsScorer,
    compare_counts,
    count_items,
    read_gold,
    read_system,
)

sys.path.append(str(Path(__file__).parents[1]))
from common.report import CopyOption, show, table

LEVEL = 0.01  # bold at or below, as in the paper


def main(
    gold: Annotated[Path, typer.Argument(help="The annotated documents (.spacy)", exists=True)],
    systems: Annotated[
        list[str],
        typer.Argument(help="Predictions (.spacy) or pipelines, the table has their names"),
    ],
    spans_key: Annotated[
        str | None, typer.Option(help="Score doc.spans under this key instead of doc.ents")
    ] = None,
    tags: Annotated[
        bool, typer.Option(help="Score the tags of the tokens instead of doc.ents")
    ] = False,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Label that is none, such as the tag O")
    ] = None,
    trials: Annotated[int, typer.Option(help="Number of random shuffles")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the shuffles")] = 0,
    output: CopyOption = None,
) -> None:
    """Print F1 of every system and the p-value of every pair."""
    scorer: Scorer = (
        TagsScorer() if tags else EntsScorer() if spans_key is None else SpansScorer(spans_key)
    )
    annotated = read_gold(gold, scorer)
    docs = [read_system(system, annotated, gold, scorer) for system in systems]
    counts = count_items(scorer, docs, annotated, ignore=ignore or ())
    names = [Path(system).stem for system in systems]
    show(make_table(names, counts, trials=trials, seed=seed), output)


def make_table(names: list[str], counts: Counts, *, trials: int = 10_000, seed: int = 0) -> str:
    """The table in Markdown: F1 in per cent, then the upper triangle.

    names (list[str]): of the systems, in the order of the counts.
    """
    rows = []
    for i, name in enumerate(names):
        pairs = [
            compare_counts(counts, i, j, trials=trials, seed=seed)["all"]
            for j in range(len(names))
            if j > i
        ]
        f = compare_counts(counts, i, i)["all"]["a"]["f"]
        rows.append(
            (
                name,
                f"{100 * f:.2f}",
                *["–"] * i,
                *(_cell(pair["p_value"], pair["difference"]) for pair in pairs),
            )
        )
    return table(rows, ("", "F1", *names[1:]))


def _cell(p: float, difference: float) -> str:
    sign = "<" if difference > 0 else ">" if difference < 0 else "="
    return f"**{p:.4f} {sign}**" if p <= LEVEL else f"{p:.4f} {sign}"


if __name__ == "__main__":
    typer.run(main)
