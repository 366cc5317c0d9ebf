"""Files of JSON: their entries, each with its place, and what an entry says besides its text and spans."""

import ast
import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NoReturn

from spacy_hocrf.cli.convert.records import (
    CharSpan,
    ConvertSettings,
    Report,
    lines_in,
    refuse,
    text_of,
)

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

Entries = Sequence[tuple[str, Any]]
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
"""What tools and models call the parts of a span; the first that is there, and is nothing else, counts."""
UNITS: Mapping[str, Callable[[str], int]] = {
    "UTF-16": lambda sign: 1 + (sign > "\uffff"),
    "bytes of UTF-8": lambda sign: len(sign.encode()),
    "characters with \\r\\n as one": lambda sign: sign != "\r",
    "characters with line ends as two": lambda sign: 1 + (sign == "\n"),
}
"""What else places are counted in, and how many of it a character has."""
OTHERWISE = "spans that are said to have another text"
HALF = re.compile("[\ud800-\udfff]")
"""Half of a character, which JSON can spell and no encoding can write."""
SPELT = re.compile(r"\\u[dD][89a-fA-F]")
NAMED = re.compile(r"(?:\s*#.*\n)*\s*(?:[A-Za-z_]\w* *= *)?(?=[\[({])")
"""What is in front of a value in Python."""
WHOLE = 2**63
"""Whole numbers from here on cannot be saved."""
DEEP = 50
"""Lists and objects in each other that are kept of metadata."""


def entries_of(path: Path, settings: ConvertSettings, report: Report) -> Iterator[tuple[str, Any]]:
    """The entries of a list, a lone object, or what is in each line. Halves of characters are replaced.

    RAISES (ValueError): H290 for what is no JSON, H291 for bytes that the encoding does not have.
    """
    text = text_of(path, settings.encoding)
    spelt = SPELT.search(text) is not None
    for place, entry in _read(path, text):
        try:
            whole = _whole(entry) if spelt else entry
        except RecursionError:
            refuse(path, place, "too many lists and objects in each other", "an object with a text")
        report.lose("halves of characters (lone surrogates): replaced", place, whole != entry)
        yield place, whole


def named_id(entry: Mapping[str, Any]) -> str:
    """The id of an entry, "" if it has none."""
    found = entry.get("id")
    return str(found) if type(found) in (int, str) else ""


def about_text(entry: Mapping[str, Any], used: Collection[str]) -> dict[str, Any]:
    """Members of an entry that were not used otherwise, those of its "meta" like all others."""
    found = {name: value for name, value in entry.items() if name not in used}
    if "id" in found and named_id(entry):
        del found["id"]
    if isinstance(found.get("meta"), Mapping):
        found |= found.pop("meta")
    return {name: _saved(value) for name, value in found.items() if value is not None}


def first_key(entry: Mapping[str, Any], keys: Sequence[str], kind: type) -> str:
    """The first of some keys of an entry whose value is of a kind, or ""."""
    return next((key for key in keys if isinstance(entry.get(key), kind)), "")


def span_of(path: Path, place: str, span: Any) -> CharSpan:
    """A span. RAISES (ValueError): H290 unless it is start, end and label."""
    if isinstance(span, Mapping):
        span = [span.get("start"), span.get("end"), span.get("label")]
    if isinstance(span, list | tuple) and len(span) > 2:
        start, end, label = *map(whole_number, span[:2]), span[2]
        if isinstance(label, str) and label.strip() and type(start) is type(end) is int:
            return start, end, label.strip()
        refuse_span(path, place, span, label)
    refuse_span(path, place, span, None)


def named_span(row: Any) -> Any:
    """A span of JSON with its parts under the first of SPAN_NAMES; a pair of texts is words and a label."""
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


def refuse_span(path: Path, place: str, span: Any, label: Any) -> NoReturn:
    """Refuse what is no span.

    label (Any): what it has for a label.
    RAISES (ValueError): H290, always.
    """
    if isinstance(label, int | float):
        found = f"the label {label!r} of the span {span!r}"
        refuse(path, place, found[:100], "a start, an end and a label that is a string")
    expected = 'a start, an end and a label, such as [0, 3, "PER"], or words and a label'
    refuse(path, place, f"the span {span!r}"[:100], expected)


def whole_number(value: Any) -> Any:
    """A value; a float that is a whole number, as pandas writes those of a column with gaps, is an int."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def by_characters(
    span: Mapping[str, Any], text: str, place: str, report: Report
) -> Mapping[str, Any]:
    """A span, as `counted` finds it, or as it is if its words are not there."""
    found = counted(span, text, place, report)
    report.lose(OTHERWISE, place, found is None)
    return span if found is None else found


def counted(
    span: Mapping[str, Any], text: str, place: str, report: Report
) -> Mapping[str, Any] | None:
    """A span; one whose words are where it is in UTF-16, as browsers and Java count, or in bytes, is counted
    in characters. None if they are not there, whatever is counted.
    """
    said = span.get("text")
    start, end = (whole_number(span.get(key)) for key in ("start", "end"))
    if not isinstance(said, str) or type(start) is not int or type(end) is not int:
        return span
    if _alike(said, text[max(0, start) : end]):
        return span
    for unit in UNITS:
        first, last = (_character(text, each, unit) for each in (start, end))
        if 0 <= first < last and _alike(said, text[first:last]):
            report.lose(f"spans that are counted in {unit}: counted in characters", place)
            return {**span, "start": first, "end": last}
    if 0 <= start < len(text) and not text[start].isspace() and _alike(said, text[start : end + 1]):
        report.lose("spans whose end is their last character: one more", place)
        return {**span, "end": end + 1}
    return None


def spans_inside(path: Path, place: str, text: str, spans: Sequence[CharSpan]) -> list[CharSpan]:
    """RAISES (ValueError): H290 for a span that is not in the text."""
    for start, end, _ in spans:
        if not 0 <= start < end <= len(text):
            found = f"a span of the characters {start} to {end}"
            expected = f"one inside the text, which has {len(text)}, each a code point of Unicode"
            refuse(path, place, found, expected)
    return list(spans)


def of_python(text: str) -> Any:
    """Value that is written in Python, perhaps with a name, as JSON has it: tuples are lists; None for
    anything else.
    """
    named = NAMED.match(text)
    try:
        value = ast.literal_eval(text[named.end() :].strip()) if named else None
        return json.loads(json.dumps(value))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _read(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        failure = str(error)
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
            found = failure if is_first else str(error)
            refuse(path, f"line {number}", found, "JSON: a list of objects, or an object a line")
        yield f"line {number}", entry
        is_first = False


def _character(text: str, count: int, unit: str) -> int:
    """The character that so many of a unit are before; -1 if there is none."""
    ends = _ends(text, unit)
    at = bisect_left(ends, count)
    return at if at < len(ends) and ends[at] == count else -1


@lru_cache(maxsize=len(UNITS))
def _ends(text: str, unit: str) -> Sequence[int]:
    """How many of a unit are before each character of a text, and in all of it."""
    return array("q", accumulate(map(UNITS[unit], text), initial=0))


def _alike(said: str, found: str) -> bool:
    r"""Are two texts the same but for white space and capitals? The two characters \n may end a line."""
    first, second = ("".join(text.replace("\\n", " ").split()) for text in (said, found))
    return first.casefold() == second.casefold()


def _whole(value: Any) -> Any:
    """A value without unpaired surrogates in its texts."""
    if isinstance(value, str):
        return HALF.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {_whole(name): _whole(each) for name, each in value.items()}
    return value


def _saved(value: Any, depth: int = 0) -> Any:
    """Value that a file of Docs can hold: numbers of 64 bits, others as text, an ellipsis for
    anything nested too deep.
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
