"""Texts with one token per line, separated by empty lines. In columns (CoNLL, CRF++, Wapiti) one column has
the label; CRFsuite's data have the label and attributes.
"""

import re
from collections.abc import Iterator

from spacy_hocrf.cli.convert.labels import TokenRow, records_of
from spacy_hocrf.cli.convert.records import (
    ConvertedText,
    ConvertSettings,
    Place,
    SourceFile,
    named_attribute,
)

__all__ = ["DOCUMENTS", "read_attributes", "read_columns"]

DOCUMENTS = ("-DOCSTART-", "#begin document", "#end document")
"""What lines that separate documents begin with, in CoNLL-2003 and CoNLL-2012."""
SEPARATOR = re.compile(r"(?<!\\)((?:\\\\)*):")
"""Separates an attribute from its value: a colon that is not escaped by a backslash."""


def read_columns(source: SourceFile) -> Iterator[ConvertedText]:
    """Read the texts of a file with columns.

    RAISES (ValueError): H290 for a line with another number of columns than the first one of its text, or of
        the file unless all columns in the settings are counted from the left; H291 for bytes that the
        encoding does not have.
    """
    texts, columns = list(_texts(source)), source.settings
    if not texts:
        return
    place, _ = texts[0][0]
    width = max(len(rows[0][1]) for rows in texts)
    names = _names(place, columns, width)
    label = columns.label % width
    if label == columns.word % width:
        expected = (
            "a column of its own for the label; see hocrf convert --delimiter, --word and --label"
        )
        place.refuse("one column for both token and label", expected)
    rows = (
        [
            TokenRow(
                place,
                row[label].strip(),
                row[columns.word],
                {n: row[i] for n, i in names.items() if i < len(row)},
            )
            for place, row in text
        ]
        for text in texts
    )
    yield from records_of(rows, names, columns.scheme)


def _texts(source: SourceFile) -> Iterator[list[tuple[Place, list[str]]]]:
    """Yield each text as a list of places and columns. A line that begins like a comment is a token if
    it has as many columns as others, and one of their labels.
    """
    lines, columns = source.lines(), source.settings
    mark = columns.comment
    plain = [each for each in lines if not _is_break(each) and not (mark and each.startswith(mark))]
    usual = ["\t", None] if plain and "\t" in plain[0] else [None]
    delimiters = [columns.delimiter] if columns.delimiter else usual
    fitting = (d for d in delimiters if len({len(_parted(line, d)) for line in plain}) == 1)
    delimiter = next(fitting, delimiters[0])
    first = next((line for line in plain if not line[0].isspace()), plain[0] if plain else "")
    width = len(_parted(first, delimiter)) if plain else 0
    parted = (_parted(line, delimiter) for line in plain) if mark else ()
    labels = {row[columns.label % width].strip() for row in parted if len(row) == width}
    named = (columns.word, columns.label, *columns.attributes.values())
    rows = list[tuple[Place, list[str]]]()
    for number, line in enumerate([*lines, ""], start=1):
        place = source.at(f"line {number}")
        row = [] if _is_break(line) else _parted(line, delimiter)
        if row and mark and line.startswith(mark):
            is_wide = len(row) == width
            if not is_wide or row[columns.label % width].strip() not in labels:
                place.lose("comments with as many columns as tokens: left out", is_wide)
                row = []
        if not row:
            if rows:
                yield rows
            rows = []
            continue
        begins = delimiter is None and line[0] in " \t" and columns.word % width == 0
        if begins and len(row) == width - 1:
            row = ["", *row]  # the token is white space
        if not rows and min(named) >= 0 and max(named) < len(row):
            width = len(row)
        if len(row) != width:
            expected = f"{width} columns, as in the lines before; see hocrf convert --delimiter and --comment"
            place.refuse(f"{len(row)} columns", expected)
        if row[columns.word % width].strip(" \t"):
            rows.append((place, row))
        else:
            place.lose("lines with an empty token: left out")


def _is_break(line: str) -> bool:
    """Does a line end a text?"""
    return line.startswith(DOCUMENTS) or not line.strip()


def _parted(line: str, delimiter: str | None) -> list[str]:
    """Split a line into columns; only blanks and tabs are white space, no other Unicode characters."""
    return re.split(r"[ \t]+", line.strip(" \t")) if delimiter is None else line.split(delimiter)


def _names(place: Place, columns: ConvertSettings, width: int) -> dict[str, int]:
    """Name the further columns. RAISES (ValueError): H290 for a column that does not exist."""
    for option, i in {"word": columns.word, "label": columns.label, **columns.attributes}.items():
        if not -width <= i < width:
            place.refuse(f"{width} columns", f"a column {i} ({option})")
    if columns.attributes:
        return {named_attribute(name): i % width for name, i in columns.attributes.items()}
    used = {columns.word % width, columns.label % width}
    return {f"c{i}": i for i in range(width) if i not in used}


def read_attributes(source: SourceFile) -> Iterator[ConvertedText]:
    """Read the texts of a file of CRFsuite. "name=value" sets the attribute "name"; without "=" the value
    is "1".

    RAISES (ValueError): H290 for a line without a token, H291 for bytes that the encoding does not have.
    """
    texts = list(_items(source))
    names = dict.fromkeys(name for rows in texts for row in rows for name in row.attributes)
    yield from records_of(texts, names, source.settings.scheme)


def _items(source: SourceFile) -> Iterator[list[TokenRow]]:
    """Yield the items of each text."""
    rows = list[TokenRow]()
    word = source.settings.word_prefix
    for number, line in enumerate([*source.lines(), ""], start=1):
        place = source.at(f"line {number}")
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
                place.lose("values of attributes: left out")
            if token is None and text.startswith(word):
                token = text.removeprefix(word)
                continue
            name, equals, value = text.partition("=")
            attributes[named_attribute(name)] = value if equals else "1"
        if not token:
            found = "no attribute that begins so" if token is None else "an empty token"
            place.refuse(found, f"a token behind {word!r}; see hocrf convert --word-prefix")
        rows.append(TokenRow(place, label, token, attributes))


def _unescaped(field: str) -> tuple[str, str]:
    """Split a field into attribute and value, and remove backslashes."""
    separator = SEPARATOR.search(field)
    text, weight = (
        (field[: separator.end(1)], field[separator.end() :]) if separator else (field, "")
    )
    return re.sub(r"\\(.)", r"\1", text), weight
