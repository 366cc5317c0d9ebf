"""What a model has learnt of a new label, and lost of the others: F1, averages over labels and draws."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import typer

sys.path.append(str(Path(__file__).parents[2]))
from common.report import DocumentArgument, LinesArgument, Result, group, read_lines, show, table

SYSTEMS = ("extend", "extend all", "alone", "again", "everything", "ner")
SHOWN = ("extend", "extend all", "again", "ner")
"""Systems that know the other labels from the same annotation."""


def main(lines: LinesArgument, output: DocumentArgument) -> None:
    """Write the tables."""
    rows = read_lines(lines)
    parts = ["# One more label"]
    for part, some in group(rows, "part").items():
        header = ("task", "new texts", "labels", "draws", "spans", *SYSTEMS)
        parts += [f"## F1 of the new label, {part} part", table(list(learnt(some)), header)]
        header = ("task", "new texts", "before", *SHOWN, "extend, worst", "CPU s")
        parts += [f"## F1 of the other labels, {part} part", table(list(lost(some)), header)]
    show("\n\n".join(parts), output)


def learnt(rows: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """F1 of the new label, by task and number of texts."""
    for (task, new), some in group(rows, "task", "new").items():
        systems = group(some, "system")
        cells = [mean([f1(row["counts"]) for row in systems.get(each, ())]) for each in SYSTEMS]
        labels, draws = ({row[key] for row in some} for key in ("label", "seed"))
        spans = np.mean([row["spans"] for row in systems["extend"]])
        yield task, str(new), str(len(labels)), str(len(draws)), f"{spans:.0f}", *cells


def lost(rows: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """F1 of the other labels before, and the difference that the new one makes."""
    for (task, new), some in group(rows, "task", "new").items():
        systems = group(some, "system")
        extended = systems["extend"]
        cells = [
            mean([difference(row) for row in systems.get(each, ())], sign="+") for each in SHOWN
        ]
        before = mean([f1(row["before"]) for row in extended])
        worst = min(map(difference, extended))
        seconds = np.mean([row["cpu"] for row in extended])
        yield task, str(new), before, *cells, f"{worst:+.1f}", f"{seconds:.1f}"


def difference(row: Result) -> float:
    """F1 of the other labels, less what it was."""
    return f1(row["others"]) - f1(row["before"])


def f1(counts: Sequence[int]) -> float:
    """Per cent, of spans that are right, found and annotated."""
    right, found, annotated = counts
    return 200 * right / (found + annotated) if found + annotated else 0.0


def mean(values: Sequence[float], sign: str = "") -> str:
    """For a cell; empty without values."""
    return f"{np.mean(values):{sign}.1f}" if values else ""


if __name__ == "__main__":
    typer.run(main)
