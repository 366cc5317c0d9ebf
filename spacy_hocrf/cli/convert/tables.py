"""Tables with a header (CSV, TSV): a row is a span, a token, or a text with its spans or labels.

text,start,end,label            a row for each span; without offsets, the text is not annotated
sentence_id,token,tag           a row for each token; a text ends where the number changes
tokens,tags                     a row for each text: a list of its tokens, and one of their labels
text,entities                   spans in a cell: [[0, 3, "PER"]], or as in Label Studio and spaCy
text,labels                     as many labels as words, separated by blanks
"""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import srsly

from spacy_hocrf.cli.convert.entries import SPAN_NAMES, of_python, span_of, spans_inside
from spacy_hocrf.cli.convert.labels import TokenRow, records_of
from spacy_hocrf.cli.convert.lines import read_texts
from spacy_hocrf.cli.convert.listed import read_tags
from spacy_hocrf.cli.convert.records import (
    CharSpan,
    ConvertedText,
    Place,
    SourceFile,
    named_attribute,
)

__all__ = ["is_table", "read_table"]

NAMES = {
    "text": ("text", "sentence", "content", "body"),
    "start": SPAN_NAMES["start"],
    "end": SPAN_NAMES["end"],
    "label": SPAN_NAMES["label"],
    "id": ("id", "text_id", "doc_id", "document_id", "doc", "document"),
    "token": ("token", "word", "tokens", "words", "form"),
    "tag": ("ner_tag", "ner_tags", "ner", "tag", "tags", "label", "labels", "bio", "iob", "entity"),
    "sentence": (
        "sentence_id", "sentence #", "sent_id", "sentence_idx", "sentence", "doc_id", "text_id", "id"
    ),
    "spans": ("spans", "entities", "annotations", "label", "labels"),
}  # fmt: skip
"""Possible names of each kind of column, in lower case; the first one that exists counts."""
EXPECTED = (
    "a first line that names the columns: text, start, end, label (a row for each span); token, tag and "
    "perhaps sentence_id (a row for each token); or text, entities (spans in a cell); without such a line, "
    "see hocrf convert --format columns and --delimiter"
)
EXCEL = re.compile(r"\Asep=.(?=[\r\n])")
"""Line that tells Excel the delimiter."""
WITHOUT_COMMA = re.compile(r"(?<=[^\[,\s])['\"]\s+['\"]")
"""Matches adjacent strings of an array as NumPy prints it, which Python would join."""
DELIMITERS = ",\t;|"
MAX_CELL = 1 << 24
"""Largest number of characters of a cell."""


class _Row(NamedTuple):
    """The line where a row begins, and its cells by column name, in lower case."""

    place: Place
    cells: Mapping[str, str]


def is_table(text: str) -> bool:
    """Does the first line have names of known columns?"""
    return _kind(_header(text)[0]) is not None


def read_table(source: SourceFile) -> Iterator[ConvertedText]:
    """Read the texts of a table.

    RAISES (ValueError): H290 for unknown columns, for a row with another number of them, or a span outside of
        its text; H291 for bytes that the encoding does not have.
    """
    text = source.text()
    names, delimiter = _header(text, source.settings.delimiter)
    text = EXCEL.sub("", text)
    kind = _kind(names)
    if kind is None:
        source.at("line 1").refuse(f"the columns {', '.join(names)}"[:200], EXPECTED)
    # a token is on one line, so an unpaired quotation mark in a line is a token
    lines = re.split(r"\r\n|\r|\n", text) if kind is _of_tokens else []
    is_quoted = not any(line.count('"') % 2 for line in lines)
    rows = list(_rows(source, text, names, delimiter, is_quoted=is_quoted))
    yield from kind(source, names, rows)


def _header(text: str, delimiter: str | None = None) -> tuple[list[str], str]:
    """Return the names of the columns, in lower case, and the delimiter."""
    line = re.split(r"[\r\n]", EXCEL.sub("", text).lstrip("\r\n"), maxsplit=1)[0]
    delimiter = (delimiter or max(DELIMITERS, key=line.count))[0]
    cells = [cell.strip().strip('"').lower() for cell in line.split(delimiter)]
    return cells, delimiter


def _kind(names: Sequence[str]) -> Any:
    """Find the reader of a table by its columns; None for others."""
    if len(set(names)) != len(names) or not names:
        return None
    if _has(names, "token", "tag"):
        return _of_tokens
    if _has(names, "text", "start", "end", "label"):
        return _of_spans
    return _of_cells if _has(names, "text", "spans") else None


def _has(names: Sequence[str], *kinds: str) -> bool:
    """Is there a different column for each kind?"""
    found = [_column(names, kind) for kind in kinds]
    return all(found) and len(set(found)) == len(found)


def _column(names: Sequence[str], kind: str, *used: str) -> str:
    """Find the column of a kind, other than those that are used; "" for none."""
    return next((name for name in NAMES[kind] if name in names and name not in used), "")


def _rows(
    source: SourceFile, text: str, names: Sequence[str], delimiter: str, *, is_quoted: bool
) -> Iterator[_Row]:
    csv.field_size_limit(MAX_CELL)
    quoting: Any = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    file = io.StringIO(text, newline="")
    reader = csv.reader(file, delimiter=delimiter, quoting=quoting, strict=True)
    is_header, before = True, 0
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            place = source.at(f"line {before + 1}")
            place.refuse(str(error), f"cells with {delimiter!r} between two")
        place, before = source.at(f"line {before + 1}"), reader.line_num
        if cells is None:
            return
        if is_header and any(cells):
            is_header = False
        elif cells and len(cells) != len(names):
            expected = f"{len(names)}, as in the first line"
            place.refuse(f"{len(cells)} columns", expected)
        elif not is_header:
            yield _Row(place, dict(zip(names, cells)))


def _of_spans(
    source: SourceFile, names: Sequence[str], rows: Sequence[_Row]
) -> Iterator[ConvertedText]:
    """Read rows of spans: rows with the same id, or the same text if there is no id, are one text."""
    text, start, end, label = (_column(names, kind) for kind in ("text", "start", "end", "label"))
    id_ = _column(names, "id", text, label)
    others = [name for name in names if name and name not in (text, start, end, label, id_)]
    rows = [row for row in rows if row.cells]
    texts = _grouped(rows, id_ or text)
    if id_ and len(texts) == len(rows) > len(_grouped(rows, text)):
        id_ = ""  # these are ids of rows, since one text has several
        texts = _grouped(rows, text)
    for key, found in texts.items():
        content, spans = found[0].cells[text], list[CharSpan]()
        for row in found:
            place, cells = row.place, row.cells
            if cells[text] != content:
                place.refuse(f"another text with the {id_} {key!r}", "one text for each")
            said = [_number(cells[start]), _number(cells[end]), cells[label].strip()]
            if said != ["", "", ""]:
                span = span_of(place, said)
                spans += spans_inside(place, content, [span])
        place = found[0].place
        if not spans:
            place.lose("texts without spans: these are unknown")
        values = {name: {row.cells[name] for row in found} for name in others}
        meta = {name: its.pop() for name, its in values.items() if len(its) == 1}
        contradictory = len(others) - len(meta)
        place.lose("columns that say several things of a text: left out", contradictory)
        yield ConvertedText(
            place,
            text=content,
            spans=spans or None,
            id=key if id_ else "",
            meta=_said(meta),
        )


def _grouped(rows: Sequence[_Row], name: str) -> dict[str, list[_Row]]:
    """Group rows by their cells in a column."""
    found = defaultdict[str, list[_Row]](list)
    for row in rows:
        found[row.cells[name]].append(row)
    return found


def _of_tokens(
    source: SourceFile, names: Sequence[str], rows: Sequence[_Row]
) -> Iterator[ConvertedText]:
    """Read rows of tokens. A text ends at an empty line, or where its number changes; an empty number repeats
    the last one.
    """
    token, tag = _column(names, "token"), _column(names, "tag")
    number = _column(names, "sentence", token, tag)
    its_rows = [row for row in rows if row.cells]
    if number == "id" and len({row.cells["id"] for row in its_rows}) == len(its_rows):
        number = ""  # they are numbers of rows
    if its_rows and all(isinstance(_value(row.cells[token].strip()), list) for row in its_rows):
        yield from _of_lists(source, token, tag, its_rows)
        return
    others = {n: named_attribute(n) for n in names if n and n not in (token, tag, number)}
    texts = list[list[TokenRow]]()
    last, is_new = "", True
    for row in rows:
        if not row.cells:
            is_new = True
            continue
        its = row.cells[number].strip() if number else ""
        if is_new or (its and its != last):
            texts.append([])
        last, is_new = its or last, False
        if row.cells[token].strip():
            attributes = {attribute: row.cells[name] for name, attribute in others.items()}
            label = row.cells[tag].strip()
            texts[-1].append(TokenRow(row.place, label, row.cells[token], attributes))
        else:
            row.place.lose("rows with an empty token: left out")
    yield from records_of(filter(None, texts), others.values(), source.settings.scheme)


def _of_lists(
    source: SourceFile, token: str, tag: str, rows: Sequence[_Row]
) -> Iterator[ConvertedText]:
    """Read rows of texts, with tokens and labels as lists in JSON or Python."""
    entries = list[tuple[Place, Any]]()
    for row in rows:
        cells = [row.cells[name].strip() for name in (token, tag)]
        words, labels = map(_value, cells)
        are_words = all(isinstance(word, str) for word in words)
        if not are_words or labels is None or any(map(WITHOUT_COMMA.search, cells)):
            expected = "two lists of Python or JSON, with commas"
            row.place.refuse(f"{cells[0]!r} and {cells[1]!r}"[:150], expected)
        others = {name: row.cells[name] for name in row.cells if name not in ("", token, tag)}
        entries.append((row.place, {**_said(others), "tokens": words, "tags": labels}))
    yield from read_tags(source, entries)


def _of_cells(
    source: SourceFile, names: Sequence[str], rows: Sequence[_Row]
) -> Iterator[ConvertedText]:
    """Read rows with a text in one cell; in another its spans in JSON or Python, or a label for each word."""
    text = _column(names, "text")
    spans, id_ = _column(names, "spans", text), _column(names, "id")
    others = [name for name in names if name and name not in (text, spans, id_)]
    entries = list[tuple[Place, Any]]()
    for row in rows:
        if not row.cells:
            continue
        said, content = row.cells[spans].strip(), row.cells[text]
        meta = _said({other: row.cells[other] for other in others})
        entry: dict[str, Any] = {"id": row.cells[id_] if id_ else "", "meta": meta}
        value = _value(said)
        if not said or value is not None:
            entry |= {"text": content} | ({"spans": value} if said else {})
        elif len(said.split()) == len(content.split()):
            entry |= {"tokens": content.split(), "tags": said.split()}
        else:
            expected = f'spans such as [[0, 3, "PER"]], or {len(content.split())} labels, one for each word'
            row.place.refuse(f"{said!r} under {spans}"[:100], expected)
        entries.append((row.place, entry))
    tagged = [(place, entry) for place, entry in entries if "tags" in entry]
    untagged = [(place, entry) for place, entry in entries if "text" in entry]
    if (
        tagged
        and not any(entry.get("spans") for _, entry in untagged)
        and all(len(entry["tags"]) == 1 and entry["tags"] != ["O"] for _, entry in tagged)
    ):
        expected = 'spans such as [[0, 3, "PER"]], or a label for each word; no text has two words'
        tagged[0][0].refuse(f"a label of a whole text under {spans}", expected)
    of_tags = read_tags(source, tagged)
    of_texts = read_texts(source, untagged)
    for _, entry in entries:
        yield next(of_tags if "tags" in entry else of_texts)


def _said(cells: Mapping[str, str]) -> dict[str, str]:
    """Select the cells that are not empty."""
    return {name: cell for name, cell in cells.items() if cell.strip()}


def _number(cell: str) -> Any:
    """Parse an integer, also 3.0 as pandas may write 3; return other cells as strings."""
    try:
        return int(cell.strip().removesuffix(".0"))
    except ValueError:
        return cell.strip()


def _value(cell: str) -> Any:
    """Parse a list in JSON or Python, or the list of spans in an object; None for anything else."""
    if cell[:1] not in ("[", "{", "("):
        return None
    try:
        value = srsly.json_loads(cell)
    except (ValueError, RecursionError):
        value = of_python(cell)
        if value is None:
            return None
    if isinstance(value, Mapping):
        value = value.get("entities", value.get("spans"))
    return value if isinstance(value, list) else [value]
