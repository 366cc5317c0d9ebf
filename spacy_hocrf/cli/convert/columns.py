"""Texts in columns: a token a line, its label in one of the columns, an empty line behind each text. So are
CoNLL's corpora, and the data of CRF++ and Wapiti.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from spacy_hocrf.cli.convert.labels import LabelledTokens, spans_by_text
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
    texts = list(_texts(path, lines_of(path, columns.encoding), columns, report))
    if not texts:
        return
    first, row = texts[0][0]
    width, place = len(row), f"line {first}"
    names = _names(path, place, columns, width)
    label = columns.label % width
    if label == columns.word % width:
        expected = "a column of its own for the label; see --delimiter, --word and --label"
        refuse(path, place, "one column for both token and label", expected)
    labels = [
        LabelledTokens([line for line, _ in rows], [row[label] for _, row in rows])
        for rows in texts
    ]
    for rows, text, (spans, unknown) in zip(
        texts, labels, spans_by_text(labels, columns.scheme, report)
    ):
        words, *others = ([row[i] for _, row in rows] for i in (columns.word, *names.values()))
        attributes = dict(zip(names, others))
        place, tags = f"line {text.lines[0]}", text.labels
        yield Record(place, words, spans=spans, tags=tags, attributes=attributes, unknown=unknown)


def _texts(
    path: Path, lines: Sequence[str], columns: Settings, report: Report
) -> Iterator[list[tuple[int, list[str]]]]:
    """Number and columns of each line, text by text. A line that begins as a comment does is a token if it
    has as many columns as others, and one of their labels.
    """
    mark = columns.comment
    plain = [each for each in lines if not _is_break(each) and not (mark and each.startswith(mark))]
    delimiter = columns.delimiter or ("\t" if plain and "\t" in plain[0] else None)
    width = len(_parted(plain[0], delimiter)) if plain else 0
    parted = (_parted(line, delimiter) for line in plain) if mark else ()
    labels = {row[columns.label % width] for row in parted if len(row) == width}
    rows = list[tuple[int, list[str]]]()
    for number, line in enumerate([*lines, ""], start=1):
        row = [] if _is_break(line) else _parted(line, delimiter)
        if row and mark and line.startswith(mark):
            is_wide = len(row) == width
            if not is_wide or row[columns.label % width] not in labels:
                what = "comments with as many columns as tokens: left out"
                report.lose(what, f"line {number}", is_wide)
                row = []
        if not row:
            if rows:
                yield rows
            rows = []
            continue
        if len(row) != width:
            expected = f"{width} columns, as in the lines before; see --delimiter and --comment"
            refuse(path, f"line {number}", f"{len(row)} columns", expected)
        if row[columns.word % width].strip(" \t"):
            rows.append((number, row))
        else:
            report.lose("lines with an empty token: left out", f"line {number}")


def _is_break(line: str) -> bool:
    """Does a line end a text?"""
    return line.startswith(DOCSTART) or not line.strip()


def _parted(line: str, delimiter: str | None) -> list[str]:
    """The columns of a line; white space is blanks and tabs, and nothing else of Unicode."""
    return re.split(r"[ \t]+", line.strip(" \t")) if delimiter is None else line.split(delimiter)


def _names(path: Path, place: str, columns: Settings, width: int) -> dict[str, int]:
    """The further columns by name. RAISES (ValueError): H290 for one that is not there."""
    for option, i in {"word": columns.word, "label": columns.label, **columns.attributes}.items():
        if not -width <= i < width:
            expected = f"a column {i} ({option})"
            refuse(path, place, f"{width} columns", expected)
    if columns.attributes:
        return {named_attribute(name): i % width for name, i in columns.attributes.items()}
    known = {columns.word % width, columns.label % width}
    return {f"c{i}": i for i in range(width) if i not in known}
