"""Texts in columns: a token a line, its label in one of the columns, an empty line behind each text. So are
CoNLL's corpora, and the data of CRF++ and Wapiti.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from spacy_hocrf.cli.convert.labels import spans_by_text
from spacy_hocrf.cli.convert.records import (
    Record,
    Report,
    Settings,
    lines_of,
    named_attribute,
    refuse,
)

__all__ = ["read_columns"]

DOCSTART = "-DOCSTART-"


def read_columns(path: Path, columns: Settings, report: Report) -> Iterator[Record]:
    """The texts of a file.

    RAISES (ValueError): H290 for a line with other columns than the first one, H291 for bytes that the
        encoding does not have.
    """
    texts = list(_rows(path, lines_of(path, columns.encoding), columns, report))
    if not texts:
        return
    width = len(texts[0][1][0])
    names = _names(path, texts[0][0], columns, width)
    label = columns.label % width
    if label == columns.word % width:
        expected = "a column of its own for the label; see --delimiter, --word and --label"
        refuse(path, f"line {texts[0][0]}", "one column for both token and label", expected)
    labels = [(f"line {line}", [row[label] for row in rows]) for line, rows in texts]
    spans = spans_by_text(labels, columns.scheme, report)
    for (_, rows), (place, tags), found in zip(texts, labels, spans):
        words, *others = ([row[i] for row in rows] for i in (columns.word, *names.values()))
        attributes = dict(zip(names, others))
        yield Record(place, words, spans=found, tags=tags, attributes=attributes)


def _rows(
    path: Path, lines: Sequence[str], columns: Settings, report: Report
) -> Iterator[tuple[int, list[list[str]]]]:
    """Number of the first line, and the columns of each line, text by text."""
    rows: list[list[str]] = []
    first, width, tabs = 0, 0, None
    for number, line in enumerate([*lines, ""], start=1):
        is_comment = columns.comment and line.startswith(columns.comment)
        if is_comment or line.startswith(DOCSTART) or not line.strip():
            if rows:
                yield first, rows
            rows = []
            continue
        tabs = "\t" in line if tabs is None else tabs
        row = _parted(line, columns.delimiter or ("\t" if tabs else None))
        width = width or len(row)
        if len(row) != width:
            expected = f"{width} columns, as in the lines before; see --delimiter and --comment"
            refuse(path, f"line {number}", f"{len(row)} columns", expected)
        if not row[columns.word % width].strip(" \t"):
            report.lose("lines with an empty token: left out", f"line {number}")
            continue
        first = first if rows else number
        rows.append(row)


def _parted(line: str, delimiter: str | None) -> list[str]:
    """The columns of a line; white space is blanks and tabs, and nothing else of Unicode."""
    return re.split(r"[ \t]+", line.strip(" \t")) if delimiter is None else line.split(delimiter)


def _names(path: Path, line: int, columns: Settings, width: int) -> dict[str, int]:
    """The further columns by name. RAISES (ValueError): H290 for one that is not there."""
    for option, i in {"word": columns.word, "label": columns.label, **columns.attributes}.items():
        if not -width <= i < width:
            expected = f"a column {i} ({option})"
            refuse(path, f"line {line}", f"{width} columns", expected)
    if columns.attributes:
        return {named_attribute(name): i % width for name, i in columns.attributes.items()}
    known = {columns.word % width, columns.label % width}
    return {f"c{i}": i for i in range(width) if i not in known}
