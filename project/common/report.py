"""Results as lines of JSON, and what is made of them: tables in Markdown and a plot."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wasabi import MarkdownRenderer

from . import plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Result = Mapping[str, Any]


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


def publish(
    results: Any, output: Path, render: Callable[..., str], draw: Callable[..., "Figure"]
) -> None:
    """Write and print the document `render(results, plot)`, and the plot `draw(results)` beside it.

    output (Path): the Markdown file; the plot has its name and ends in .png.
    render (Callable[[Any, str], str]): takes the plot's file name, "" without matplotlib; see
        `image`.
    """
    path = output.with_suffix(".png")
    drawn = plot.save(path, draw, results)
    show(render(results, path.name if drawn else ""), output)


def show(text: str, output: Path | None = None) -> None:
    """Print a text, and write it to a file if there is one; both end in one line break."""
    text = text.rstrip("\n")
    print(text)
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text + "\n", encoding="utf8")


def image(caption: str, file: str) -> str:
    """An image in Markdown; a sentence where there is none."""
    return f"![{caption}]({file})" if file else f"{caption}: not drawn, matplotlib was missing."


def table(rows: Iterable[Sequence[str]], header: Sequence[str], left: int = 1) -> str:
    """A table in Markdown, the first `left` columns aligned to the left, the others to the right."""
    aligns = ["l"] * left + ["r"] * (len(header) - left)
    return MarkdownRenderer().table(list(rows), header, aligns=aligns)


def group(results: Iterable[Result], *keys: str) -> dict[Any, list[Result]]:
    """Results by the value of a key, or by the values of several, in the order in which they come."""
    found: dict[Any, list[Result]] = {}
    for result in results:
        values = tuple(result[key] for key in keys)
        found.setdefault(values if len(keys) > 1 else values[0], []).append(result)
    return found
