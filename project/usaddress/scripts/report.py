"""All systems in a table: F1, what each is ahead of CRFsuite, size, time and speed."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from spacy_hocrf.api import Counts, EntsScorer, compare_counts, count_items, read_gold, read_system

sys.path.append(str(Path(__file__).parents[2]))
from common.measured import Measured, name_of, read
from common.report import show, table
from common.scores import gain

PEER = "CRFsuite"


def main(
    gold: Annotated[Path, typer.Argument(help="The annotated texts (.spacy)", exists=True)],
    output: Annotated[Path, typer.Argument(help="Markdown file")],
    results: Annotated[list[Path], typer.Argument(help="Folders of measures and predictions")],
) -> None:
    """Write the table."""
    measured = [(each, folder) for folder in results for each in read(folder)]
    annotated = read_gold(gold, EntsScorer())
    docs = [
        read_system(folder / f"{name_of(each)}.spacy", annotated, gold, EntsScorer())
        for each, folder in measured
    ]
    counts = count_items(EntsScorer(), docs, annotated)
    show(make_table([each for each, _ in measured], counts), output)


def make_table(systems: Sequence[Measured], counts: Counts) -> str:
    """A row for each system, with what it is ahead of each of the peers, where there are others.

    counts (Counts): of the systems, in their order.
    """
    peers = [i for i, each in enumerate(systems) if each.system == PEER]
    peers = [] if len(peers) == len(systems) else peers
    header = ["system", "observations", "order", "F1"]
    header += [f"ahead of {PEER}, {systems[i].observations} (p)" for i in peers]
    header += ["features", "MB on disk", "training, CPU s", "tokens a CPU second", "settings"]
    rows = []
    for i, each in enumerate(systems):
        f = compare_counts(counts, i, i)["all"]["a"]["f"]
        ahead = [_ahead(counts, j, i) if each.system != PEER else "" for j in peers]
        rows.append(
            [
                each.system,
                each.observations,
                str(each.order),
                f"{100 * f:.2f}",
                *ahead,
                f"{each.features:,}",
                f"{each.size / 1e6:.1f}",
                f"{each.seconds:.1f}",
                f"{each.speed / 1000:.0f}k",
                each.settings,
            ]
        )
    return table(rows, header, "ll")


def _ahead(counts: Counts, peer: int, system: int) -> str:
    compared = compare_counts(counts, peer, system)["all"]
    return gain(100 * compared["difference"], compared["p_value"])


if __name__ == "__main__":
    typer.run(main)
