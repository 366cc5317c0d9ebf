"""Print the scores of `spacy evaluate --output` by mark, as a table in Markdown."""

import sys
from pathlib import Path
from typing import Annotated

import srsly
import typer

sys.path.append(str(Path(__file__).parents[2]))
from common.report import table


def main(
    metrics_path: Annotated[
        Path, typer.Argument(help="What spacy evaluate wrote (JSON)", exists=True)
    ],
) -> None:
    """Print precision, recall and F1 of every mark in per cent."""
    print(make_table(srsly.read_json(metrics_path)))


def make_table(metrics: dict) -> str:
    """A row for each mark, then the micro average.

    metrics (dict): marks_p, marks_r, marks_f and marks_per_type, as the component `marks` scores
        them.
    """
    rows = [
        (f"`{mark}`", *(scores[name] for name in "prf"))
        for mark, scores in sorted(metrics["marks_per_type"].items())
    ]
    rows.append(("**micro average**", *(metrics[f"marks_{name}"] for name in "prf")))
    cells = [(name, *(f"{100 * score:.2f}" for score in scores)) for name, *scores in rows]
    return table(cells, ("mark", "precision", "recall", "F1"))


if __name__ == "__main__":
    typer.run(main)
