"""All label patterns beside those that pay: a table of sizes, times and accuracies."""

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import srsly
import typer
from tasks import TASKS

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table

EVERY = "counts"
HEADER = (
    "corpus",
    "patterns",
    "how many",
    "of all",
    "of 1, 2, 3 labels",
    "states",
    "an evaluation, CPU ms",
    "as fast",
    "initialise and train, CPU s",
    "dev",
    "test",
)


def main(
    training: Annotated[Path, typer.Argument(help="Folder of the pipelines", exists=True)],
    metrics: Annotated[Path, typer.Argument(help="Folder of times and test accuracies")],
    output: Annotated[Path, typer.Argument(help="Markdown file")],
) -> None:
    """Write a row for each pipeline of each corpus; what has not been measured is empty."""
    found = [row for task in TASKS for row in rows(training / task, metrics)]
    show(f"# Label patterns that pay\n\n{table(found, HEADER, 'll')}", output)


def rows(folder: Path, metrics: Path) -> Iterator[tuple[str, ...]]:
    """Those of one corpus, all patterns first."""
    results = {path.stem: srsly.read_json(path) for path in sorted(folder.glob("*.json"))}
    times, test = (known(metrics / f"{folder.name}-{what}.json") for what in ("speed", "test"))
    medians = {name: statistics.median(found) for name, found in times.items()}
    every = results[EVERY]
    for name, result in results.items():
        yield (
            folder.name,
            name,
            f"{result['patterns']:,}",
            f"{100 * result['patterns'] / every['patterns']:.1f} %",
            " + ".join(f"{n:,}" for n in result["lengths"]),
            f"{result['states']:,}",
            f"{medians[name]:.0f}" if name in medians else "",
            f"{medians[EVERY] / medians[name]:.1f}" if name in medians else "",
            f"{result['seconds']:.0f}",
            beside(result["dev"], every["dev"], name),
            beside(test[name], test[EVERY], name) if name in test else "",
        )


def known(path: Path) -> dict:
    """What a file has, nothing if it is not there."""
    return srsly.read_json(path) if path.exists() else {}


def beside(accuracy: float, every: float, name: str) -> str:
    """Per cent of the tags, and how much more that is than with all patterns."""
    more = "" if name == EVERY else f" ({accuracy - every:+.3f})"
    return f"{accuracy:.3f}{more}"


if __name__ == "__main__":
    typer.run(main)
