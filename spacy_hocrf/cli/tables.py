"""Tables of results, for the terminal or as a file: LaTeX, CSV or JSON, depending on the file's suffix."""

import csv
import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from wasabi import msg
from wasabi.tables import table

from spacy_hocrf.cli.files import write_json, write_whole

__all__ = ["as_table", "percent", "write_results"]

SPECIAL = {character: "\\" + character for character in "&%$#_{}"}
SPECIAL |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$", "–": "--"}
"""Characters with a meaning in TeX, and how to write them."""
NEGATIVE = re.compile(r"-(?=\.?\d)")


def as_table(header: Sequence[str], rows: Sequence[Sequence[str | int]], max_col: int = 30) -> str:
    """Format a table for a terminal: the first column left-aligned, the others right-aligned.

    rows (Sequence[Sequence[Union[str, int]]]): the cells; whole numbers get commas between thousands.
    max_col (int): largest number of characters of a column.
    """
    cells = [[f"{each:,}" if isinstance(each, int) else each for each in row] for row in rows]
    aligns = ("l", *"r" * (len(header) - 1))
    text: str = table(cells, header=header, aligns=aligns, divider=True, max_col=max_col)
    return text


def percent(share: float) -> str:
    """Write a share as a percentage with one decimal, without the percent sign."""
    return f"{100 * share:.1f}"


def write_results(
    path: Path, results: Any, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Write results to a file.

    path (Path): ends in .tex or .csv for the table as it is printed, in .json for JSON.
    results (Any): the unrounded numbers, for JSON.
    header (Sequence[str]), rows (Sequence[Sequence[str]]): the table.
    """
    kind = path.suffix.lower()
    if kind == ".tex":
        write_whole(path, _latex(header, rows))
    elif kind == ".csv":
        text = StringIO(newline="")
        csv.writer(text).writerows([header, *rows])
        write_whole(path, text.getvalue())
    else:
        write_json(path, results)
    msg.good("Saved results", path)


def _latex(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a tabular with the rules of the package booktabs."""
    first, *others = (" & ".join(map(_escaped, row)) + r" \\" for row in (header, *rows))
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            *(r"\toprule", first, r"\midrule", *others, r"\bottomrule"),
            "\\end{tabular}\n",
        ]
    )


def _escaped(cell: str) -> str:
    """Escape a cell for TeX; a negative number gets a minus sign."""
    minus = NEGATIVE.match(cell)
    text = "".join(SPECIAL.get(character, character) for character in cell)
    return f"$-${text[1:]}" if minus else text
