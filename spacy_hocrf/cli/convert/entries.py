"""Read the entries of JSON files: values with their places, spans in various notations, ids and metadata."""

import ast
import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NoReturn

from spacy_hocrf.cli.convert.records import CharSpan, Place, SourceFile, lines_in

__all__ = [
    "OTHERWISE",
    "SPAN_NAMES",
    "WHOLE",
    "Entries",
    "about_text",
    "by_characters",
    "counted",
    "entries_of",
    "first_key",
    "named_id",
    "named_span",
    "of_python",
    "refuse_span",
    "span_of",
    "spans_inside",
    "whole_number",
]

Entries = Sequence[tuple[Place, Any]]
"""JSON values, each with its place."""

SPAN_NAMES = {
    "start": ("start", "start_offset", "start_char", "begin", "start_pos"),
    "end": ("end", "end_offset", "end_char", "stop", "end_pos"),
    "label": (
        "label",
        "labels",
        "entity_group",
        "type",
        "entity_type",
        "category",
        "tag",
        "entity",
    ),
    "text": ("text", "word", "span", "value", "entity", "name"),
}
"""Keys that tools and models use for the parts of a span; the first one that exists and is unused counts."""
UNITS: Mapping[str, Callable[[str], int]] = {
    "UTF-16": lambda sign: 1 + (sign > "\uffff"),
    "bytes of UTF-8": lambda sign: len(sign.encode()),
    "characters with \\r\\n as one": lambda sign: sign != "\r",
    "characters with line ends as two": lambda sign: 1 + (sign == "\n"),
}
"""Other units of offsets, and how many units a character has."""
OTHERWISE = "spans that are said to have another text"
HALF = re.compile("[\ud800-\udfff]")
"""A lone surrogate, which JSON can escape but no encoding can write."""
SPELT = re.compile(r"\\u[dD][89a-fA-F]")
NAMED = re.compile(r"(?:\s*#.*\n)*\s*(?:[A-Za-z_]\w* *= *)?(?=[\[({])")
"""Comments and an assignment before a value in Python."""
WHOLE = 2**63
"""Integers from here on cannot be saved."""
DEEP = 50
"""Greatest depth of nested lists and objects that is kept of metadata."""


def entries_of(source: SourceFile) -> Iterator[tuple[Place, Any]]:
    """Yield the entries of a JSON list, a single object, or the value in each line, with their places. Lone
    surrogates are replaced.

    RAISES (ValueError): H290 for invalid JSON, H291 for bytes that the encoding does not have.
    """
    text = source.text()
    spelt = SPELT.search(text) is not None
    for name, entry in _read(source, text):
        place = source.at(name)
        try:
            whole = _whole(entry) if spelt else entry
        except RecursionError:
            place.refuse("too many lists and objects in each other", "an object with a text")
        place.lose("halves of characters (lone surrogates): replaced", whole != entry)
        yield place, whole


def named_id(entry: Mapping[str, Any]) -> str:
    """Return the id of an entry, "" if it has none."""
    id_ = entry.get("id")
    return str(id_) if type(id_) in (int, str) else ""


def about_text(entry: Mapping[str, Any], used: Collection[str]) -> dict[str, Any]:
    """Collect the unused members of an entry as metadata, merged with those of its "meta"."""
    others = {name: value for name, value in entry.items() if name not in used}
    if "id" in others and named_id(entry):
        del others["id"]
    if isinstance(others.get("meta"), Mapping):
        others |= others.pop("meta")
    return {name: _saved(value) for name, value in others.items() if value is not None}


def first_key(entry: Mapping[str, Any], keys: Sequence[str], kind: type) -> str:
    """Return the first of some keys whose value is of a type, or ""."""
    return next((key for key in keys if isinstance(entry.get(key), kind)), "")


def span_of(place: Place, span: Any) -> CharSpan:
    """Parse a span. RAISES (ValueError): H290 unless it has start, end and label."""
    if isinstance(span, Mapping):
        span = [span.get("start"), span.get("end"), span.get("label")]
    if isinstance(span, list | tuple) and len(span) > 2:
        start, end, label = *map(whole_number, span[:2]), span[2]
        if isinstance(label, str) and label.strip() and type(start) is type(end) is int:
            return start, end, label.strip()
        refuse_span(place, span, label)
    refuse_span(place, span, None)


def named_span(row: Any) -> Any:
    """Rename the parts of a JSON span to the keys of SPAN_NAMES; a pair of strings is words and a label."""
    if isinstance(row, list) and len(row) == 2 and all(isinstance(each, str) for each in row):
        return {"text": row[0], "label": row[1]}
    if not isinstance(row, Mapping):
        return row
    parts, taken = dict[str, Any](), set[str]()
    for name, keys in SPAN_NAMES.items():
        key = next((key for key in keys if row.get(key) is not None and key not in taken), "")
        if key:
            parts[name] = row[key]
            taken.add(key)
    return {**row, **parts}


def refuse_span(place: Place, span: Any, label: Any) -> NoReturn:
    """Refuse an invalid span.

    label (Any): its label, if any.
    RAISES (ValueError): H290, always.
    """
    if isinstance(label, int | float):
        found = f"the label {label!r} of the span {span!r}"
        place.refuse(found[:100], "a start, an end and a label that is a string")
    expected = 'a start, an end and a label, such as [0, 3, "PER"], or words and a label'
    place.refuse(f"the span {span!r}"[:100], expected)


def whole_number(value: Any) -> Any:
    """Convert integral floats, as pandas writes integers of a column with gaps, to int; keep other values."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def by_characters(span: Mapping[str, Any], text: str, place: Place) -> Mapping[str, Any]:
    """Convert a span's offsets to characters by `counted`; unchanged if its words are not there."""
    by_character = counted(span, text, place)
    place.lose(OTHERWISE, by_character is None)
    return span if by_character is None else by_character


def counted(span: Mapping[str, Any], text: str, place: Place) -> Mapping[str, Any] | None:
    """Convert a span's offsets to characters if its words are at these offsets in another unit, such as
    UTF-16 (browsers, Java) or bytes. None if they are there in no unit.
    """
    words = span.get("text")
    start, end = (whole_number(span.get(key)) for key in ("start", "end"))
    if not isinstance(words, str) or type(start) is not int or type(end) is not int:
        return span
    if _same_words(words, text[max(0, start) : end]):
        return span
    for unit in UNITS:
        first, last = (_character(text, each, unit) for each in (start, end))
        if 0 <= first < last and _same_words(words, text[first:last]):
            place.lose(f"spans that are counted in {unit}: counted in characters")
            return {**span, "start": first, "end": last}
    if (
        0 <= start < len(text)
        and not text[start].isspace()
        and _same_words(words, text[start : end + 1])
    ):
        place.lose("spans whose end is their last character: one more")
        return {**span, "end": end + 1}
    return None


def spans_inside(place: Place, text: str, spans: Sequence[CharSpan]) -> list[CharSpan]:
    """Check and return spans. RAISES (ValueError): H290 for a span outside of the text."""
    for start, end, _ in spans:
        if not 0 <= start < end <= len(text):
            found = f"a span of the characters {start} to {end}"
            expected = f"one inside the text, which has {len(text)}, each a code point of Unicode"
            place.refuse(found, expected)
    return list(spans)


def of_python(text: str) -> Any:
    """Parse a Python literal, perhaps assigned to a name, as a JSON value (tuples become lists); None for
    anything else.
    """
    named = NAMED.match(text)
    try:
        value = ast.literal_eval(text[named.end() :].strip()) if named else None
        return json.loads(json.dumps(value))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _read(source: SourceFile, text: str) -> Iterator[tuple[str, Any]]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        failure = error
    else:
        if isinstance(whole, list):
            yield from ((f"entry {number}", entry) for number, entry in enumerate(whole, start=1))
        else:
            yield f"line {1 + text[: len(text) - len(text.lstrip())].count(chr(10))}", whole
        return
    is_first = True
    for number, line in enumerate(lines_in(text), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            if is_first and isinstance(whole := of_python(text), list):
                yield from (
                    (f"entry {number}", entry) for number, entry in enumerate(whole, start=1)
                )
                return
            first = failure if is_first else error
            found = str(first)
            if isinstance(first, json.JSONDecodeError):
                found = f"no JSON ({first.msg} in column {first.colno})"
                number = first.lineno if is_first else number
            expected = "JSON: a list of objects, or an object a line"
            source.at(f"line {number}").refuse(found, expected)
        yield f"line {number}", entry
        is_first = False


def _character(text: str, count: int, unit: str) -> int:
    """Convert an offset in a unit to characters; -1 if it is not at the beginning of a character."""
    ends = _ends(text, unit)
    at = bisect_left(ends, count)
    return at if at < len(ends) and ends[at] == count else -1


@lru_cache(maxsize=len(UNITS))
def _ends(text: str, unit: str) -> Sequence[int]:
    """Offsets of each character of a text, and of its end, in a unit."""
    return array("q", accumulate(map(UNITS[unit], text), initial=0))


def _same_words(words: str, others: str) -> bool:
    r"""Are two texts equal except for white space and case? The two characters \n may end a line."""
    first, second = ("".join(text.replace("\\n", " ").split()) for text in (words, others))
    return first.casefold() == second.casefold()


def _whole(value: Any) -> Any:
    """Replace lone surrogates in the strings of a value."""
    if isinstance(value, str):
        return HALF.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {_whole(name): _whole(each) for name, each in value.items()}
    return value


def _saved(value: Any, depth: int = 0) -> Any:
    """Convert a value so that a DocBin can hold it: integers beyond 64 bits become strings, and lists or
    objects that are nested too deeply an ellipsis.
    """
    if type(value) is int and not -WHOLE <= value < WHOLE:
        return f"{value:.6g}"
    if depth == DEEP and isinstance(value, (list, dict)):
        return "…"
    if isinstance(value, list):
        return [_saved(each, depth + 1) for each in value]
    if isinstance(value, dict):
        return {name: _saved(each, depth + 1) for name, each in value.items()}
    return value
