"""What cross-validation says of all label patterns and of those that pay: a table.

The standard error of the difference is that of a ratio of sums over sentences, of right tags and of
all; p is that of `spacy hocrf compare`, by sentences.
"""

import statistics
import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import srsly
import typer
from numpy.typing import NDArray

from spacy_hocrf.api import randomization_test

sys.path.append(str(Path(__file__).parents[2]))
from common.report import show, table

EVERY = "counts"
HEADER = (
    *("patterns", "how many", "of all", "states", "CPU ms", "as fast", "tags", "accuracy"),
    *("more than with all (standard error)", "p"),
)


class Difference(NamedTuple):
    """By how much a system is better than another one."""

    points: float  # of accuracy, per cent
    error: float  # its standard error
    p: float


def main(
    folder: Annotated[Path, typer.Argument(help="Folder with one of each fold", exists=True)],
    metrics: Annotated[Path, typer.Argument(help="Folder of times")],
    output: Annotated[Path, typer.Argument(help="Markdown file")],
) -> None:
    """Write a row for each choice of patterns; numbers of patterns and states are means of the folds."""
    names = sorted(path.stem for path in folder.glob("0/*.json"))
    results = {name: [srsly.read_json(path) for path in folds_of(folder, name)] for name in names}
    found = [srsly.read_json(path) for path in sorted(metrics.glob("folds-*.json"))]
    medians = {
        name: statistics.mean(statistics.median(times[name]) for times in found) for name in names
    }
    text = table([row(name, results, medians) for name in names], HEADER)
    show(f"# Cross-validation: EWT, train and dev parts\n\n{text}", output)


def folds_of(folder: Path, name: str) -> list[Path]:
    """What one choice of patterns has, fold by fold."""
    return sorted(folder.glob(f"*/{name}.json"))


def row(
    name: str, results: dict[str, list[dict[str, Any]]], medians: dict[str, float]
) -> tuple[str, ...]:
    """That of one choice of patterns."""
    own, every = results[name], results[EVERY]
    patterns, whole = mean(own, "patterns"), mean(every, "patterns")
    tokens, right = joined(own, "tokens"), joined(own, "right")
    versus = difference(joined(every, "right"), right, tokens)
    return (
        name,
        f"{patterns:,.0f}",
        f"{100 * patterns / whole:.1f} %",
        f"{mean(own, 'states'):,.0f}",
        f"{medians[name]:.0f}",
        f"{medians[EVERY] / medians[name]:.1f}",
        f"{tokens.sum():,}",
        f"{100 * right.sum() / tokens.sum():.3f}",
        "" if name == EVERY else f"{versus.points:+.3f} ({versus.error:.3f})",
        "" if name == EVERY else f"{versus.p:.4f}",
    )


def mean(results: list[dict[str, Any]], key: str) -> float:
    """Of all folds."""
    return statistics.mean(result[key] for result in results)


def joined(results: list[dict[str, Any]], key: str) -> NDArray[np.int64]:
    """The sentences of all folds, int64 [D]."""
    return np.concatenate([np.array(result[key], dtype=np.int64) for result in results])


def difference(
    first: NDArray[np.int64], second: NDArray[np.int64], tokens: NDArray[np.int64]
) -> Difference:
    """By how much the second of two systems is better.

    first, second (int64 [D]): right tags of each sentence. tokens (int64 [D]): all of them.
    """
    more = second - first
    share = more.sum() / tokens.sum()
    error = np.sqrt(((more - share * tokens) ** 2).sum()) / tokens.sum()
    right = np.stack([first, second])[..., None]
    tested = randomization_test(right, np.stack([tokens, tokens])[..., None], tokens[:, None])
    return Difference(100 * float(share), 100 * float(error), float(tested.p[0]))


if __name__ == "__main__":
    typer.run(main)
