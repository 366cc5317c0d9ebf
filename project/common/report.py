"""Results as lines of JSON, and tables in Markdown."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from wasabi import MarkdownRenderer

Result = Mapping[str, Any]
LinesArgument = Annotated[
    Path, typer.Argument(help="Results, a line of JSON for each model", exists=True)
]
DocumentArgument = Annotated[Path, typer.Argument(help="Markdown file; the plot goes beside it")]
CopyOption = Annotated[Path | None, typer.Option(help="Write the table here too")]


def write_lines(path: Path, results: Iterable[Result], describe: Callable[[Result], str]) -> None:
    """Write results as they come, a line of JSON each, and print what they say.

    describe (Callable[[Result], str]): a result in words.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf8") as file:
        for result in results:
            file.write(json.dumps(result) + "\n")
            file.flush()
            print(describe(result), flush=True)


def read_lines(path: Path) -> list[Result]:
    """What `write_lines` has written."""
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


def show(text: str, output: Path | None = None) -> None:
    """Print a text, and write it to a file if there is one; both end in one line break."""
    text = text.rstrip("\n")
    print(text)
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text + "\n", encoding="utf8")


def table(rows: Iterable[Sequence[str]], header: Sequence[str], aligns: str = "l") -> str:
    """A table in Markdown.

    aligns (str): "l" or "r" for each of the first columns; the others are aligned to the right.
    """
    return MarkdownRenderer().table(list(rows), header, list(aligns.ljust(len(header), "r")))


def group(results: Iterable[Result], *keys: str) -> dict[Any, list[Result]]:
    """Results by the value of a key, or by the values of several, in the order they come."""
    groups: dict[Any, list[Result]] = {}
    for result in results:
        values = tuple(result[key] for key in keys)
        groups.setdefault(values if len(keys) > 1 else values[0], []).append(result)
    return groups
