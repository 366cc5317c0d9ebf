"""Print what `spacy evaluate --output` found, as a table in Markdown: a row a field, and the micro
average.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import srsly
import typer
from wasabi import MarkdownRenderer

sys.path.append(str(Path(__file__).parents[2]))
from common.report import CopyOption, show, table
from common.training import read_docs


def main(
    metrics_path: Annotated[
        Path, typer.Argument(help="What spacy evaluate wrote (JSON)", exists=True)
    ],
    gold: Annotated[
        Path | None, typer.Option(help="What it was evaluated on (.spacy), to count the fields")
    ] = None,
    title: Annotated[str, typer.Option(help="Heading of the table")] = "",
    output: CopyOption = None,
) -> None:
    """Print precision, recall and F1 of every field in per cent."""
    support = count_fields(gold) if gold else None
    show(make_table(srsly.read_json(metrics_path), support, title), output)


def make_table(metrics: dict, support: dict[str, int] | None = None, title: str = "") -> str:
    """The table in Markdown.

    metrics (dict): scores as spaCy writes them: ents_p, ents_r, ents_f, ents_per_type; from 0 to 1,
        None if undefined.
    support (dict[str, int] | None): number of annotated fields by label; without it the column is
        left out.
    RETURNS (str): fields in alphabetical order, then the micro average.
    """
    rows = [
        (label, scores["p"], scores["r"], scores["f"])
        for label, scores in sorted(_per_type(metrics).items())
    ]
    rows.append(("**micro average**", metrics["ents_p"], metrics["ents_r"], metrics["ents_f"]))
    counts = {**(support or {}), "**micro average**": sum((support or {}).values())}
    cells = [
        (name, *map(_percent, scores), *([str(counts.get(name, 0))] if support else []))
        for name, *scores in rows
    ]
    header = ("field", "precision", "recall", "F1", *(["fields"] if support else []))
    markdown = MarkdownRenderer()
    if title:
        markdown.add(markdown.title(3, title))
    markdown.add(table(cells, header))
    return markdown.text


def count_fields(path: Path) -> dict[str, int]:
    """Number of entities by label in a .spacy file."""
    return dict(Counter(ent.label_ for doc in read_docs(path) for ent in doc.ents))


def _per_type(metrics: dict) -> dict[str, dict[str, float]]:
    return metrics.get("ents_per_type") or {}


def _percent(score: float | None) -> str:
    return "-" if score is None else f"{100 * score:.1f}"


if __name__ == "__main__":
    typer.run(main)
