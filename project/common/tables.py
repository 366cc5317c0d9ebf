"""Brings the tables of the projects' READMEs up to date with what the commands have written, and says
which cells change.

A project's documents are the Markdown files beside its README, and those in its folder metrics. A table
of the README belongs to that table of a document which has the same header, and of several to the one
with the most in common; its rows are found by the first columns, as many as it takes to tell the
document's rows apart, so that a README may show some of them only.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

PROJECTS = Path(__file__).parents[1]
Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table in Markdown."""

    heading: str  # the last one before it
    line: int  # of the text, where the first row is
    header: Row
    rows: tuple[Row, ...]

    @property
    def n_keys(self) -> int:
        """Of how many columns the first ones tell all rows apart; all of them if that is not enough."""
        for n in range(1, len(self.header)):
            if len({row[:n] for row in self.rows}) == len(self.rows):
                return n
        return len(self.header)


class Change(NamedTuple):
    """A cell that is another one now."""

    row: Row  # its first cells
    column: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{', '.join(self.row)} | {self.column}: {self.old} → {self.new}"


class Update(NamedTuple):
    """What a table becomes."""

    table: Table  # as the README has it
    source: str  # name of the document, "" for none
    rows: tuple[Row, ...]  # new ones

    @property
    def changes(self) -> list[Change]:
        """The cells that are other ones."""
        return [
            Change(new[:1], column, was, now)
            for old, new in zip(self.table.rows, self.rows)
            for column, was, now in zip(self.table.header, old, new)
            if was != now
        ]


def main(
    projects: Annotated[
        list[str] | None, typer.Argument(help="Names of projects. By default all")
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="First run this workflow or command of each of them")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change no file; fail if a cell would change")
    ] = False,
) -> None:
    """Update the READMEs, and print every cell that changes."""
    n_changes = 0
    for name in projects or sorted(path.parent.name for path in PROJECTS.glob("*/project.yml")):
        folder = PROJECTS / name
        if run:
            # in the project's folder: `python -m` would take a package that lies in this one
            command = [sys.executable, "-m", "spacy", "project", "run", run, "."]
            subprocess.run(command, check=True, cwd=folder)
        readme = folder / "README.md"
        updates = list(update(readme, documents(folder)))
        known = sum(bool(each.source) for each in updates)
        print(f"{name}: {known} of {len(updates)} tables are in a document")
        for each in updates:
            for change in each.changes:
                print(f"  {each.source}, {each.table.heading}: {change}")
                n_changes += 1
        if not check:
            rewrite(readme, updates)
    print(f"{n_changes} cells {'differ' if check else 'changed'}")
    if check and n_changes:
        raise typer.Exit(1)


def documents(folder: Path) -> list[Path]:
    """What the commands of a project have written."""
    files = [*sorted(folder.glob("*.md")), *sorted((folder / "metrics").glob("*.md"))]
    return [file for file in files if file.name != "README.md"]


def update(readme: Path, sources: Iterable[Path]) -> Iterator[Update]:
    """What becomes of the tables of a README, in order.

    sources (Iterable[Path]): documents; of equal tables, the first counts.
    """
    ours = list(tables(readme.read_text(encoding="utf8")))
    theirs = [
        (source.name, table)
        for source in sources
        for table in tables(source.read_text(encoding="utf8"))
    ]
    pairs = sorted(
        (
            (likeness(table, other), -i, -j)
            for i, table in enumerate(ours)
            for j, (_, other) in enumerate(theirs)
            if table.header == other.header
        ),
        reverse=True,
    )
    found: dict[int, int] = {}
    for (shared, *_), i, j in pairs:
        if shared and -i not in found and -j not in found.values():
            found[-i] = -j
    for i, table in enumerate(ours):
        name, other = theirs[found[i]] if i in found else ("", table)
        n = other.n_keys
        rows = {row[:n]: row for row in other.rows}
        yield Update(table, name, tuple(rows.get(row[:n], row) for row in table.rows))


def likeness(table: Table, other: Table) -> tuple[int, bool, int]:
    """How much two tables have in common: rows by their first cells, the heading, cells."""
    n = other.n_keys
    rows = {row[:n]: row for row in other.rows}
    pairs = [(row, rows[row[:n]]) for row in table.rows if row[:n] in rows]
    equal = sum(a == b for pair in pairs for a, b in zip(*pair))
    return len(pairs), table.heading == other.heading, equal


def rewrite(readme: Path, updates: Sequence[Update]) -> None:
    """Write the new rows into a README."""
    lines = readme.read_text(encoding="utf8").split("\n")
    for each in updates:
        for number, (old, new) in enumerate(zip(each.table.rows, each.rows), each.table.line):
            if old != new:
                lines[number] = "| " + " | ".join(new) + " |"
    readme.write_text("\n".join(lines), encoding="utf8")


def tables(text: str) -> Iterator[Table]:
    """The tables of a text."""
    lines = text.split("\n")
    heading, number = "", 0
    while number < len(lines):
        heading = re.sub("^#+ ", "", lines[number]) if lines[number][:1] == "#" else heading
        end = number
        while end < len(lines) and lines[end][:1] == "|":
            end += 1
        if end - number > 2:
            header, _, *rows = map(cells, lines[number:end])
            yield Table(heading, number + 2, header, tuple(rows))
        number = max(end, number + 1)


def cells(line: str) -> Row:
    """The cells of a row."""
    return tuple(cell.strip() for cell in line.split("|")[1:-1])


if __name__ == "__main__":
    typer.run(main)
