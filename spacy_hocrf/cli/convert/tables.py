"""Tables with a header (CSV, TSV): a row is a span, a token, or a text with its spans or labels.

text,start,end,label            a row for each span; one without places says that nothing is known
sentence_id,token,tag           a row for each token; a text ends where the number changes
text,entities                   spans in a cell: [[0, 3, "PER"]], or Label Studio's and spaCy's like
text,labels                     as many labels as words, with blanks between
"""

import ast
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import srsly

from spacy_hocrf.cli.convert.entries import by_characters, span_of, spans_inside
from spacy_hocrf.cli.convert.labels import LabelledTokens, TokenRow, records_of, spans_by_text
from spacy_hocrf.cli.convert.records import (
    CharSpan,
    ConvertedText,
    ConvertSettings,
    Report,
    named_attribute,
    refuse,
    text_of,
)

__all__ = ["is_table", "read_table"]

NAMES = {
    "text": ("text", "sentence", "content", "body"),
    "start": ("start", "start_offset", "start_char", "begin", "start_pos"),
    "end": ("end", "end_offset", "end_char", "stop", "end_pos"),
    "label": ("label", "entity", "type", "tag", "category", "entity_type", "labels"),
    "id": ("id", "text_id", "doc_id", "document_id", "doc", "document"),
    "token": ("token", "word", "tokens", "words", "form"),
    "tag": ("ner_tag", "ner", "tag", "label", "labels", "bio", "iob", "entity"),
    "sentence": ("sentence_id", "sentence #", "sent_id", "sentence", "doc_id", "text_id", "id"),
    "spans": ("spans", "entities", "annotations", "label", "labels"),
}  # fmt: skip
"""Names of columns, in lower case, by what they are; the first that is there counts."""
EXPECTED = (
    "a first line that names the columns: text, start, end, label (a row for each span); token, tag and "
    "perhaps sentence_id (a row for each token); or text, entities (spans in a cell); without such a line, "
    "see --format columns and --delimiter"
)
DELIMITERS = ",\t;|"
LONGEST = 1 << 24
"""Characters of a cell."""


class _Row(NamedTuple):
    """The line where a row begins, and its cells by the names of columns, in lower case."""

    line: int
    cells: Mapping[str, str]

    @property
    def place(self) -> str:
        """Place of the row, for people."""
        return f"line {self.line}"


def is_table(text: str) -> bool:
    """Does the first line name columns that are read?"""
    return _kind(_header(text)[0]) is not None


def read_table(path: Path, settings: ConvertSettings, report: Report) -> Iterator[ConvertedText]:
    """The texts of a table.

    RAISES (ValueError): H290 for other columns than are expected, for a row that does not have them, or a
        span that is not in its text; H291 for bytes that the encoding does not have.
    """
    text = text_of(path, settings.encoding)
    names, delimiter = _header(text, settings.delimiter)
    kind = _kind(names)
    if kind is None:
        refuse(path, "line 1", f"the columns {', '.join(names)}"[:200], EXPECTED)
    # a token is in one line: where a quotation mark has no second one there, it is a word
    lines = re.split(r"\r\n|\r|\n", text) if kind is _of_tokens else []
    is_quoted = not any(line.count('"') % 2 for line in lines)
    rows = list(_rows(path, text, names, delimiter, is_quoted=is_quoted))
    yield from kind(path, names, rows, settings, report)


def _header(text: str, delimiter: str | None = None) -> tuple[list[str], str]:
    """Names of the columns, in lower case, and what is between two."""
    line = re.split(r"[\r\n]", text.lstrip("\r\n"), maxsplit=1)[0]
    delimiter = (delimiter or max(DELIMITERS, key=line.count))[0]
    cells = [cell.strip().strip('"').lower() for cell in line.split(delimiter)]
    return cells, delimiter


def _kind(names: Sequence[str]) -> Any:
    """Reader of a table with such columns; None for others."""
    if len(set(names)) != len(names) or not names:
        return None
    if _has(names, "token", "tag"):
        return _of_tokens
    if _has(names, "text", "start", "end", "label"):
        return _of_spans
    return _of_cells if _has(names, "text", "spans") else None


def _has(names: Sequence[str], *kinds: str) -> bool:
    """Is there a column of each kind?"""
    found = [_column(names, kind) for kind in kinds]
    return all(found) and len(set(found)) == len(found)


def _column(names: Sequence[str], kind: str) -> str:
    return next((name for name in NAMES[kind] if name in names), "")


def _rows(
    path: Path, text: str, names: Sequence[str], delimiter: str, *, is_quoted: bool
) -> Iterator[_Row]:
    csv.field_size_limit(LONGEST)
    quoting: Any = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    file = io.StringIO(text, newline="")
    reader = csv.reader(file, delimiter=delimiter, quoting=quoting, strict=True)
    is_header, before = True, 0
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            refuse(path, f"line {before + 1}", str(error), f"cells with {delimiter!r} between two")
        line, before = before + 1, reader.line_num
        if cells is None:
            return
        if is_header and any(cells):
            is_header = False
        elif cells and len(cells) != len(names):
            expected = f"{len(names)}, as in the first line"
            refuse(path, f"line {line}", f"{len(cells)} columns", expected)
        elif not is_header:
            yield _Row(line, dict(zip(names, cells)))


def _of_spans(
    path: Path,
    names: Sequence[str],
    rows: Sequence[_Row],
    settings: ConvertSettings,
    report: Report,
) -> Iterator[ConvertedText]:
    """Rows of one id, or of one text where there is none, are the spans of a text."""
    text, start, end, label = (_column(names, kind) for kind in ("text", "start", "end", "label"))
    id_ = next((name for name in NAMES["id"] if name in names and name not in (text, label)), None)
    others = [name for name in names if name and name not in (text, start, end, label, id_)]
    texts: dict[str, list[_Row]] = {}
    for row in rows:
        if row.cells:
            key = row.cells[text if id_ is None else id_]
            texts.setdefault(key, []).append(row)
    if (
        id_ is not None
        and len(texts) == len(rows)
        and len({r.cells.get(text) for r in rows}) < len(rows)
    ):
        id_ = None  # of rows, since rows of one text have several
        texts = {}
        for row in rows:
            texts.setdefault(row.cells.get(text, ""), []).append(row)
    for key, found in texts.items():
        content, spans = found[0].cells[text], list[CharSpan]()
        for row in found:
            place, cells = row.place, row.cells
            if cells[text] != content:
                refuse(path, place, f"another text with the {id_} {key!r}", "one text for each")
            numbers = [cells[each].strip().removesuffix(".0") for each in (start, end)]
            if not any(numbers) and not cells[label].strip():
                continue
            first, last = (
                int(n) if n.isascii() and n.isdigit() and len(n) < 16 else -1 for n in numbers
            )
            if not 0 <= first < last <= len(content) or not cells[label].strip():
                said = f"the span {', '.join((*numbers, cells[label]))}"[:100]
                expected = (
                    f"a start, an end and a label of the text, which has {len(content)} characters"
                )
                refuse(path, place, said, expected)
            spans.append((first, last, cells[label].strip()))
        place = found[0].place
        if not spans:
            report.lose("texts without spans: these are unknown", place)
        values = {name: {row.cells[name] for row in found} for name in others}
        meta = {name: its.pop() for name, its in values.items() if len(its) == 1}
        what = "columns that say several things of a text: left out"
        report.lose(what, place, len(others) - len(meta))
        yield ConvertedText(
            place,
            text=content,
            spans=spans or None,
            id="" if id_ is None else key,
            meta=_said(meta),
        )


def _of_tokens(
    path: Path,
    names: Sequence[str],
    rows: Sequence[_Row],
    settings: ConvertSettings,
    report: Report,
) -> Iterator[ConvertedText]:
    """A text ends at an empty line, or where its number changes; a row without one has the one before."""
    token, tag = _column(names, "token"), _column(names, "tag")
    number = next(
        (name for name in NAMES["sentence"] if name in names and name not in (token, tag)), None
    )
    its_rows = [row for row in rows if row.cells]
    if number == "id" and len({row.cells["id"] for row in its_rows}) == len(its_rows):
        number = None  # of rows
    if its_rows and all(isinstance(_value(row.cells[token].strip()), list) for row in its_rows):
        expected = "one token; lists of tokens are read from JSON"
        refuse(path, its_rows[0].place, f"a list under {token}", expected)
    others = {n: named_attribute(n) for n in names if n and n not in (token, tag, number)}
    texts = list[list[TokenRow]]()
    last, is_new = "", True
    for row in rows:
        if not row.cells:
            is_new = True
            continue
        its = "" if number is None else row.cells[number].strip()
        if is_new or (its and its != last):
            texts.append([])
        last, is_new = its or last, False
        if row.cells[token].strip():
            attributes = {attribute: row.cells[name] for name, attribute in others.items()}
            label = row.cells[tag].strip()
            texts[-1].append(TokenRow(row.line, label, row.cells[token], attributes))
        else:
            report.lose("rows with an empty token: left out", row.place)
    yield from records_of(filter(None, texts), others.values(), settings.scheme, report)


def _of_cells(
    path: Path,
    names: Sequence[str],
    rows: Sequence[_Row],
    settings: ConvertSettings,
    report: Report,
) -> Iterator[ConvertedText]:
    """A text in a cell; in another its spans as JSON or as Python writes them, or a label for each word."""
    text = _column(names, "text")
    spans = next(name for name in NAMES["spans"] if name in names and name != text)
    id_ = next((name for name in NAMES["id"] if name in names), None)
    others = [name for name in names if name and name not in (text, spans, id_)]
    tagged = list[LabelledTokens]()
    found = list[tuple[_Row, list[CharSpan] | None]]()
    for row in rows:
        if not row.cells:
            continue
        said, content = row.cells[spans].strip(), row.cells[text]
        value = _value(said)
        if not said:
            report.lose("texts without spans: these are unknown", row.place)
            found.append((row, []))
        elif value is not None:
            inside = list(_cell(path, row.place, content, value, report))
            found.append((row, spans_inside(path, row.place, content, inside)))
        elif len(said.split()) == len(content.split()):
            labels = said.split()
            tagged.append(LabelledTokens([row.line] * len(labels), labels))
            found.append((row, None))
        else:
            expected = f'spans such as [[0, 3, "PER"]], or {len(content.split())} labels, one for each word'
            refuse(path, row.place, f"{said!r} under {spans}"[:100], expected)
    has_spans = any(its for _, its in found)
    if (
        tagged
        and not has_spans
        and all(len(each.labels) == 1 and each.labels[0] != "O" for each in tagged)
    ):
        expected = 'spans such as [[0, 3, "PER"]], or a label for each word; no text has two words'
        refuse(
            path, f"line {tagged[0].lines[0]}", f"a label of a whole text under {spans}", expected
        )
    of_tokens = iter(zip(tagged, spans_by_text(tagged, settings.scheme, report)))
    for row, its in found:
        name = "" if id_ is None else row.cells[id_]
        meta = _said({other: row.cells[other] for other in others})
        if its is None:
            (_, tags, _), (places, unknown) = next(of_tokens)
            yield ConvertedText(
                row.place,
                row.cells[text].split(),
                spans=places,
                tags=tags,
                unknown=unknown,
                id=name,
                meta=meta,
            )
        else:
            known = its if row.cells[spans].strip() else None
            yield ConvertedText(row.place, text=row.cells[text], spans=known, id=name, meta=meta)


def _said(cells: Mapping[str, str]) -> dict[str, str]:
    """Cells that are not empty."""
    return {name: cell for name, cell in cells.items() if cell.strip()}


def _value(cell: str) -> Any:
    """Value of a cell in JSON or in Python; None for anything else."""
    if cell[:1] not in ("[", "{", "("):
        return None
    for read in (srsly.json_loads, ast.literal_eval):
        try:
            return read(cell)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
    return None


def _cell(path: Path, place: str, text: str, value: Any, report: Report) -> Iterator[CharSpan]:
    """Spans of a text, as a cell has them."""
    if isinstance(value, Mapping):
        value = value.get("entities", value.get("spans"))
    for each in value if isinstance(value, list | tuple) else [value]:
        span = each
        if isinstance(each, Mapping):
            each = by_characters(each, text, place, report)
            labels = each.get("labels", each.get("label"))
            labels = labels[0] if isinstance(labels, list) and len(labels) == 1 else labels
            span = [*(each.get(key, each.get(f"{key}_offset")) for key in ("start", "end")), labels]
        yield span_of(path, place, span)
