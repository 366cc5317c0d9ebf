"""F1 of what was learnt from a part of the spans, beside what is learnt from all of them."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Annotated

import typer

sys.path.append(str(Path(__file__).parents[2]))
from common.report import Result, read_lines, show, table
from common.scores import ratios, spread

SYSTEMS = ("few", "outside", "unknown", "ratio", "0.7 ratio", "1.4 ratio")
HEADER = ("task", "marked", "kept", *SYSTEMS, "full", "ratio, of full")


def main(
    lines: Annotated[Path, typer.Argument(help="What learn.py has written", exists=True)],
    output: Annotated[Path, typer.Argument(help="Markdown file")],
) -> None:
    """Write the table: means over draws, and their standard deviation."""
    show("# Positives only\n\n" + table(list(rows_of(read_lines(lines))), HEADER, "ll"), output)


def rows_of(results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """Rows of the table."""
    scores = dict[tuple[str, str, float], dict[str, list[float]]]()
    full = dict[str, float]()
    for result in results:
        task, _, system, by, share, _ = result["of"]
        f = 100 * ratios(*result["counts"])["f"]
        if system == "full":
            full[task] = f
        else:
            scores.setdefault((task, by, share), {}).setdefault(system, []).append(f)
    for (task, by, share), systems in sorted(scores.items(), key=lambda each: order(each[0], full)):
        cells = (spread(systems.get(system, []), 1) for system in SYSTEMS)
        best = mean(systems["ratio"]) / full[task]
        yield task, by, f"{share:.0%}", *cells, f"{full[task]:.1f}", f"{best:.0%}"


def order(key: tuple[str, str, float], full: dict[str, float]) -> tuple[int, bool, float]:
    """Tasks as they come, random draws first, the fewest spans first."""
    task, by, share = key
    return [*full].index(task), by != "random", share


if __name__ == "__main__":
    typer.run(main)
