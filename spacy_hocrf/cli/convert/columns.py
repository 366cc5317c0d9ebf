"""Texts with one token per line, separated by empty lines. In columns (CoNLL, CRF++, Wapiti) one column has
the label; CRFsuite's data have the label and attributes.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from spacy_hocrf.cli.convert.labels import TokenRow, records_of
from spacy_hocrf.cli.convert.records import (
    ConvertedText,
    ConvertSettings,
    Report,
    lines_of,
    named_attribute,
    refuse,
)

__all__ = ["read_attributes", "read_columns"]

DOCSTART = "-DOCSTART-"
SEPARATOR = re.compile(r"(?<!\\)((?:\\\\)*):")
"""Separates an attribute from its value: a colon that is not escaped by a backslash."""


def read_columns(path: Path, columns: ConvertSettings, report: Report) -> Iterator[ConvertedText]:
    """Read the texts of a file with columns.

    RAISES (ValueError): H290 for a line with another number of columns than the first one, H291 for bytes
        that the encoding does not have.
    """
    texts = list(_texts(path, lines_of(path, columns.encoding), columns, report))
    if not texts:
        return
    first, row = texts[0][0]
    width, place = len(row), f"line {first}"
    names = _names(path, place, columns, width)
    label = columns.label % width
    if label == columns.word % width:
        expected = (
            "a column of its own for the label; see hocrf convert --delimiter, --word and --label"
        )
        refuse(path, place, "one column for both token and label", expected)
    rows = (
        [
            TokenRow(
                f"line {line}",
                row[label].strip(),
                row[columns.word],
                {n: row[i] for n, i in names.items()},
            )
            for line, row in text
        ]
        for text in texts
    )
    yield from records_of(rows, names, columns.scheme, report)


def _texts(
    path: Path, lines: Sequence[str], columns: ConvertSettings, report: Report
) -> Iterator[list[tuple[int, list[str]]]]:
    """Yield each text as a list of line numbers and columns. A line that begins like a comment is a token if
    it has as many columns as others, and one of their labels.
    """
    mark = columns.comment
    plain = [each for each in lines if not _is_break(each) and not (mark and each.startswith(mark))]
    delimiter = columns.delimiter or ("\t" if plain and "\t" in plain[0] else None)
    whole = next((line for line in plain if not line[0].isspace()), plain[0] if plain else "")
    width = len(_parted(whole, delimiter)) if plain else 0
    parted = (_parted(line, delimiter) for line in plain) if mark else ()
    labels = {row[columns.label % width].strip() for row in parted if len(row) == width}
    rows = list[tuple[int, list[str]]]()
    for number, line in enumerate([*lines, ""], start=1):
        row = [] if _is_break(line) else _parted(line, delimiter)
        if row and mark and line.startswith(mark):
            is_wide = len(row) == width
            if not is_wide or row[columns.label % width].strip() not in labels:
                what = "comments with as many columns as tokens: left out"
                report.lose(what, f"line {number}", is_wide)
                row = []
        if not row:
            if rows:
                yield rows
            rows = []
            continue
        begins = delimiter is None and line[0] in " \t" and columns.word % width == 0
        if begins and len(row) == width - 1:
            row = ["", *row]  # the token is white space
        if len(row) != width:
            expected = f"{width} columns, as in the lines before; see hocrf convert --delimiter and --comment"
            refuse(path, f"line {number}", f"{len(row)} columns", expected)
        if row[columns.word % width].strip(" \t"):
            rows.append((number, row))
        else:
            report.lose("lines with an empty token: left out", f"line {number}")


def _is_break(line: str) -> bool:
    """Does a line end a text?"""
    return line.startswith(DOCSTART) or not line.strip()


def _parted(line: str, delimiter: str | None) -> list[str]:
    """Split a line into columns; only blanks and tabs are white space, no other Unicode characters."""
    return re.split(r"[ \t]+", line.strip(" \t")) if delimiter is None else line.split(delimiter)


def _names(path: Path, place: str, columns: ConvertSettings, width: int) -> dict[str, int]:
    """Name the further columns. RAISES (ValueError): H290 for a column that does not exist."""
    for option, i in {"word": columns.word, "label": columns.label, **columns.attributes}.items():
        if not -width <= i < width:
            expected = f"a column {i} ({option})"
            refuse(path, place, f"{width} columns", expected)
    if columns.attributes:
        return {named_attribute(name): i % width for name, i in columns.attributes.items()}
    known = {columns.word % width, columns.label % width}
    return {f"c{i}": i for i in range(width) if i not in known}


def read_attributes(
    path: Path, settings: ConvertSettings, report: Report
) -> Iterator[ConvertedText]:
    """Read the texts of a file of CRFsuite. "name=value" sets the attribute "name"; without "=" the value
    is "1".

    RAISES (ValueError): H290 for a line without a token, H291 for bytes that the encoding does not have.
    """
    texts = list(_items(path, settings, report))
    names = dict.fromkeys(name for rows in texts for row in rows for name in row.attributes)
    yield from records_of(texts, names, settings.scheme, report)


def _items(path: Path, settings: ConvertSettings, report: Report) -> Iterator[list[TokenRow]]:
    """Yield the items of each text."""
    rows = list[TokenRow]()
    word = settings.word_prefix
    for number, line in enumerate([*lines_of(path, settings.encoding), ""], start=1):
        if line.startswith("#") and f"\t{word}" not in line:
            continue
        if not line.strip():
            if rows:
                yield rows
            rows = []
            continue
        label, *fields = line.split("\t")
        token, attributes = None, dict[str, str]()
        for each in fields:
            text, weight = _unescaped(each)
            if weight not in ("", "1", "1.0"):
                report.lose("values of attributes: left out", f"line {number}")
            if token is None and text.startswith(word):
                token = text.removeprefix(word)
                continue
            name, equals, value = text.partition("=")
            attributes[named_attribute(name)] = value if equals else "1"
        if not token:
            found = "no attribute that begins so" if token is None else "an empty token"
            refuse(
                path,
                f"line {number}",
                found,
                f"a token behind {word!r}; see hocrf convert --word-prefix",
            )
        rows.append(TokenRow(f"line {number}", label, token, attributes))


def _unescaped(field: str) -> tuple[str, str]:
    """Split a field into attribute and value, and remove backslashes."""
    found = SEPARATOR.search(field)
    text, weight = (field[: found.end(1)], field[found.end() :]) if found else (field, "")
    return re.sub(r"\\(.)", r"\1", text), weight
