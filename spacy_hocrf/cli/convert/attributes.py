"""CRFsuite's data: a label and attributes a line, an empty line behind each text."""

import re
from collections.abc import Iterator
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

__all__ = ["read_attributes"]

SEPARATOR = re.compile(r"(?<!\\)((?:\\\\)*):")
"""Of a value behind an attribute: a colon that no backslash escapes."""


def read_attributes(path: Path, settings: Settings, report: Report) -> Iterator[Record]:
    """The texts of a file: of "name=value" the value is that of the attribute "name", of what has no "="
    it is "1".

    RAISES (ValueError): H290 for a line without a token, H291 for bytes that the encoding does not have.
    """
    texts = list(_texts(path, settings, report))
    names = list(dict.fromkeys(name for rows in texts for *_, row in rows for name in row))
    labels = [LabelledTokens(*zip(*(row[:2] for row in rows))) for rows in texts]
    for rows, text, (spans, unknown) in zip(
        texts, labels, spans_by_text(labels, settings.scheme, report)
    ):
        attributes = {name: [row.get(name, "") for *_, row in rows] for name in names}
        words = [token for _, _, token, _ in rows]
        place, tags = f"line {text.lines[0]}", text.labels
        yield Record(place, words, spans=spans, tags=tags, attributes=attributes, unknown=unknown)


def _texts(
    path: Path, settings: Settings, report: Report
) -> Iterator[list[tuple[int, str, str, dict[str, str]]]]:
    """Line, label, token and attributes of each item of a text."""
    rows: list[tuple[int, str, str, dict[str, str]]] = []
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
            text, weight = _parted(each)
            if weight not in ("", "1", "1.0"):
                report.lose("values of attributes: left out", f"line {number}")
            if token is None and text.startswith(word):
                token = text.removeprefix(word)
                continue
            name, equals, value = text.partition("=")
            attributes[named_attribute(name)] = value if equals else "1"
        if not token:
            found = "no attribute that begins so" if token is None else "an empty token"
            refuse(path, f"line {number}", found, f"a token behind {word!r}; see --word-prefix")
        rows.append((number, label, token, attributes))


def _parted(field: str) -> tuple[str, str]:
    """Attribute and value of a field, without backslashes."""
    found = SEPARATOR.search(field)
    text, weight = (field[: found.end(1)], field[found.end() :]) if found else (field, "")
    return re.sub(r"\\(.)", r"\1", text), weight
