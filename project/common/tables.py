"""Brings the tables of the projects' READMEs up to date with what the commands print, and says which cells
change. `../tables.yml` has the command of each table, what it costs, and how much a figure may differ.

A project's documents are the Markdown files beside its README, and those in its folder metrics; of a
command that is run again, what it has written and printed. A table of the README belongs to a table of
a document that has its columns, and of several to the one with the most in common; its rows are found
by the first columns, as many as it takes to tell the document's rows apart. So a README may show some
rows and some columns only.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import srsly
import typer

PROJECTS = Path(__file__).parents[1]
MADE = ("metrics", "corpus", "output", "training", "predictions", "packages", "project.lock")
"""What commands leave in a project's folder: a run that is to print everything anew begins without."""

OF_THE_RUN = re.compile(
    r"CPU|\bms\b|, s$|/s$|iterations|evaluations|passes|training time|^speed$|^in all$"
)
"""Columns that depend on the machine, and on the way that an optimiser takes: never compared."""

PRINTED = "printed.md"
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table in Markdown."""

    heading: str  # the last one before it
    line: int  # of the text, where the first row is
    header: Row
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        """By what tables.yml knows it: `heading: first column | second | …`."""
        return f"{self.heading}: {' | '.join(self.header)}"

    @property
    def columns(self) -> list[tuple[str, int]]:
        """The columns' names, each with how many before it have the same."""
        return [(name, self.header[:i].count(name)) for i, name in enumerate(self.header)]

    @property
    def n_keys(self) -> int:
        """Of how many columns the first ones tell all rows apart; all of them if that is not enough."""
        for n in range(1, len(self.header)):
            if len({row[:n] for row in self.rows}) == len(self.rows):
                return n
        return len(self.header)


class Change(NamedTuple):
    """A cell that is another one now."""

    row: Row  # as it is now
    column: str
    old: str
    new: str
    cells: Mapping[str, str]  # of the row, by column

    @property
    def gone(self) -> set[str]:
        """Figures, with their decimal places, that the cell has no more."""
        old, new = ({x.lstrip("+-") for x in NUMBER.findall(text)} for text in (self.old, self.new))
        return {figure for figure in old - new if "." in figure}

    def __str__(self) -> str:
        return f"{self.row[0]} | {self.column}: {self.old} → {self.new}"


class Update(NamedTuple):
    """What a table becomes."""

    table: Table  # as the README has it
    source: str  # name of the document, "" for none
    rows: tuple[Row, ...]  # new ones

    @property
    def changes(self) -> list[Change]:
        """The cells that are other ones."""
        return [
            Change(new, column, was, now, dict(zip(self.table.header, new)))
            for old, new in zip(self.table.rows, self.rows)
            for column, was, now in zip(self.table.header, old, new)
            if was != now
        ]


def main(
    projects: Annotated[
        list[str] | None, typer.Argument(help="Names of projects. By default all")
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="Run this workflow or command again, and compare its tables")
    ] = None,
    cheap: Annotated[
        int, typer.Option(help="Run all again that takes so many CPU seconds at most")
    ] = 0,
    check: Annotated[
        bool, typer.Option("--check", help="Change no file; fail if a cell would change")
    ] = False,
) -> None:
    """Update the READMEs, and print every cell that changes. What is run again works in a copy of the
    projects, and a table that it prints changes if a figure differs by more than tables.yml allows.
    """
    n_changes = 0
    for name in projects or sorted(path.parent.name for path in PROJECTS.glob("*/project.yml")):
        costs = declared(name)["runs"]
        again = [run] if run else [w for w, cost in costs.items() if is_cheap(cost, cheap)]
        if not run and not cheap:
            n_changes += compare(name, documents(PROJECTS / name), None, check)
        for workflow in again:
            with TemporaryDirectory() as folder:
                sources = run_again(name, workflow, Path(folder))
                n_changes += compare(name, sources, workflow, check)
    print(f"{n_changes} cells {'differ' if check else 'changed'}")
    if check and n_changes:
        raise typer.Exit(1)


def compare(name: str, sources: Sequence[Path], workflow: str | None, check: bool) -> int:
    """Print the cells of a README that differ from its documents, and write them unless that is a check.

    workflow (Optional[str]): what has been run again; its tables only, and within their tolerance. By
        default all tables, and every cell counts.
    RETURNS (int): how many cells differ; a table that was not printed is one more.
    """
    readme, declaration = PROJECTS / name / "README.md", declared(name)

    def wanted(table: Table) -> bool:
        return workflow in (None, origin_of(declaration, table).get("run"))

    updates = [each for each in update(readme, sources, wanted) if wanted(each.table)]
    ours = [(each, origin_of(declaration, each.table)) for each in updates]
    printed = sum(bool(each.source) for each, _ in ours)
    print(f"{name}: {printed} of {len(ours)} tables are in a document")
    n_wrong, gone = 0, set[str]()
    for each, origin in ours:
        for change in each.changes:
            if workflow is None or not tolerated(change, origin):
                print(f"  {each.source}, {each.table.heading}: {change}")
                n_wrong, gone = n_wrong + 1, gone | change.gone
        if workflow and not each.source:
            print(f"  {each.table.title}: `{workflow}` does not print it")
            n_wrong += 1
    for number, line in enumerate(readme.read_text(encoding="utf8").split("\n"), 1):
        for figure in sorted(gone) if line[:1] != "|" else ():
            if re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", line):
                print(f"  line {number} says {figure}, too: {line}")
    if n_wrong and not check:
        rewrite(readme, [each for each, _ in ours])
        if workflow and " " not in workflow:  # not of a part
            for path in sources[0].parent.glob("*.*"):
                if path.suffix in (".md", ".png") and path.name not in ("README.md", PRINTED):
                    shutil.copy(path, readme.parent)
    return n_wrong


def run_again(name: str, workflow: str, folder: Path) -> list[Path]:
    """Run a workflow in a copy of the projects.

    workflow (str): its name, and options of `spacy project run`.
    folder (Path): where the copy goes.
    RETURNS (List[Path]): what it has printed, and the documents that it has written.
    """
    copy = shutil.copytree(PROJECTS, folder / "project", ignore=shutil.ignore_patterns(*MADE))
    for path in documents(copy / name):
        path.unlink()
    run, *options = shlex.split(workflow)
    # in the project's folder: `python -m` would take a package that lies in this one
    command = [sys.executable, "-m", "spacy", "project", "run", run, ".", *options]
    printed = copy / name / PRINTED
    with printed.open("w", encoding="utf8") as file:
        done = subprocess.run(command, cwd=printed.parent, stdout=file)
    if done.returncode:
        print(printed.read_text(encoding="utf8"))
        raise typer.Exit(done.returncode)
    return [printed, *(path for path in documents(printed.parent) if path != printed)]


def declared(name: str) -> Mapping[str, Any]:
    """What tables.yml says of a project: "runs", CPU seconds by workflow, and "tables"."""
    path = PROJECTS / "tables.yml"
    config = srsly.read_yaml(path) if path.exists() else {}
    ours = config.get(name, {"runs": {}, "tables": {}})
    return {"runs": ours["runs"], "tables": {**config.get("every project", {}), **ours["tables"]}}


def is_cheap(cost: int | str, seconds: int) -> bool:
    """Does a run take so many CPU seconds at most? One whose cost is in words does not."""
    return isinstance(cost, int) and cost <= seconds


def origin_of(declaration: Mapping[str, Any], table: Table) -> Mapping[str, Any]:
    """Where a table comes from: what the first title says with which its own begins, {} if none does."""
    for title, origin in declaration["tables"].items():
        if table.title.startswith(title):
            return origin if isinstance(origin, dict) else {"run": origin}
    return {}


def tolerated(change: Change, origin: Mapping[str, Any]) -> bool:
    """Do two cells say the same? Text has to be the same, p-values, which are those of four places, may
    differ by two fifths, other numbers by what tables.yml says.

    origin (Mapping[str, Any]): "columns" has tolerances by column. For the others whole numbers have to be
        the same; "within" is the tolerance of those with decimal places, "p" if they are p-values. "spans"
        instead, of how many spans they are F1 in per cent, or the column that says it, allows two spans.
    """
    if OF_THE_RUN.search(change.column):
        return True
    texts = [text.replace("*", "") for text in (change.old, change.new)]
    if len({NUMBER.sub("0", text) for text in texts}) > 1:
        return False
    within, counts = origin.get("within", 0.0), 0.0
    if change.column in origin.get("columns", {}):
        within = counts = origin["columns"][change.column]
    elif "spans" in origin:
        n_spans = origin["spans"]
        within = 200 / int(change.cells[n_spans] if isinstance(n_spans, str) else n_spans)
    for old, new in zip(*map(NUMBER.findall, texts)):
        difference = abs(float(old.replace(",", "")) - float(new.replace(",", "")))
        places = len(old.partition(".")[2])
        if places and (within == "p" or places == 4):
            allowed = 0.005 + 0.4 * float(old)
        else:  # what is printed is rounded
            allowed = within + 10.0**-places if places and within else counts
        if difference > allowed + 1e-9:
            return False
    return True


def documents(folder: Path) -> list[Path]:
    """What the commands of a project have written."""
    files = [*sorted(folder.glob("*.md")), *sorted((folder / "metrics").glob("*.md"))]
    return [file for file in files if file.name != "README.md"]


def update(
    readme: Path,
    sources: Iterable[Path],
    wanted: Callable[[Table], bool] = lambda _: True,
) -> Iterator[Update]:
    """What becomes of the tables of a README, in order.

    sources (Iterable[Path]): documents; of equal tables, the first counts.
    wanted (Callable[[Table], bool]): which tables of the README are looked for.
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
            if wanted(table) and {*table.columns} <= {*other.columns}
        ),
        reverse=True,
    )
    partner: dict[int, int] = {}
    for (_, shared, *_), i, j in pairs:
        if shared and -i not in partner and -j not in partner.values():
            partner[-i] = -j
    for i, table in enumerate(ours):
        name, other = theirs[partner[i]] if i in partner else ("", table)
        rows = {row[: other.n_keys]: dict(zip(other.columns, row)) for row in other.rows}
        new = []
        for row in table.rows:
            cells = rows.get(row[: other.n_keys], {})
            new.append(tuple(cells.get(*pair) for pair in zip(table.columns, row)))
        yield Update(table, name, tuple(new))


def likeness(table: Table, other: Table) -> tuple[bool, int, bool, int]:
    """How much two tables have in common: the header, rows by their first cells, the heading, cells."""
    n = other.n_keys
    rows = {row[:n]: row for row in other.rows if table.header[:n] == other.header[:n]}
    pairs = [(row, rows[row[:n]]) for row in table.rows if row[:n] in rows]
    equal = sum(a == b for pair in pairs for a, b in zip(*pair))
    same = table.header == other.header
    return same, len(pairs), table.heading == other.heading, equal


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
