"""Texts with spans by characters, as annotation tools export them in JSON: Prodigy, doccano, Label Studio."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import srsly

from spacy_hocrf.cli.convert.records import CharSpan, Record, Report, Settings, bytes_of, refuse

__all__ = ["read_json"]

TEXT_KEYS = ("text", "data", "sentence")


def read_json(path: Path, settings: Settings, report: Report) -> Iterator[Record]:
    """The texts of a file: a JSON object a line, or a JSON list of them.

    RAISES (ValueError): H290 for what is no JSON, or has neither a text nor spans as one of the tools
        writes them.
    """
    for place, entry in _entries(path):
        if not isinstance(entry, Mapping):
            refuse(path, place, f"a {type(entry).__name__}", "an object with a text")
        if entry.get("answer", "accept") != "accept":
            report.lose(f"texts that were answered with {entry['answer']!r}: left out", place)
            continue
        text = _text(path, place, entry)
        spans = list(_spans(path, place, entry, text, report))
        for start, end, _ in spans:
            if not 0 <= start < end <= len(text):
                found = f"a span of the characters {start} to {end}"
                refuse(path, place, found, f"one inside the text, which has {len(text)}")
        words = _words(entry)
        if words is None:
            yield Record(place, text=text, spans=spans)
        else:
            yield Record(place, words[0], words[1], text, spans)


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """All objects, each with its place.

    RAISES (ValueError): H290 for what is no JSON.
    """
    content = bytes_of(path)
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip()[:1] == "[":
            for number, entry in enumerate(srsly.json_loads(text), start=1):
                yield f"entry {number}", entry
            return
        lines = re.split(r"\r\n|\r|\n", text)
    except ValueError as error:
        refuse(path, "it", str(error), "JSON in UTF-8")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield f"line {number}", srsly.json_loads(line)
        except ValueError as error:
            refuse(path, f"line {number}", str(error), "a JSON object")


def _text(path: Path, place: str, entry: Mapping[str, Any]) -> str:
    for key in TEXT_KEYS:
        value = entry.get(key)
        if isinstance(value, Mapping):  # Label Studio: what a task is about
            texts = [each for each in value.values() if isinstance(each, str)]
            value = value.get("text", texts[0] if len(texts) == 1 else None)
        if isinstance(value, str):
            return value
    refuse(path, place, f"the keys {', '.join(map(str, entry))}", "a text under 'text'")


def _spans(
    path: Path, place: str, entry: Mapping[str, Any], text: str, report: Report
) -> Iterator[CharSpan]:
    """The spans of an entry, whichever tool has written it."""
    if isinstance(entry.get("annotations"), list):
        yield from _of_label_studio(path, place, entry["annotations"], text, report)
        return
    for key in ("spans", "label", "labels", "entities"):
        found = entry.get(key)
        if isinstance(found, list):
            for each in found:
                yield from _span(path, place, each)
            return
    report.lose("texts without spans: nothing in them is annotated", place)


def _of_label_studio(
    path: Path, place: str, annotations: Iterable[Any], text: str, report: Report
) -> Iterator[CharSpan]:
    """Those of the first annotation that nobody has cancelled."""
    kept = [each for each in annotations if not each.get("was_cancelled")]
    report.lose("further annotations of a text: left out", place, len(kept) - 1 if kept else 0)
    if not kept:
        report.lose("texts without spans: nothing in them is annotated", place)
    for each in kept[0].get("result", []) if kept else []:
        value = each.get("value", {})
        if "start" in value and value.get("labels"):
            yield from _span(path, place, _by_characters(value, text, place, report))
        else:
            report.lose("results that are no labelled spans: left out", place)


def _by_characters(
    value: Mapping[str, Any], text: str, place: str, report: Report
) -> Mapping[str, Any]:
    """A labelled span; one that is counted in UTF-16, as browsers count, by characters."""
    said, start, end = (value.get(key) for key in ("text", "start", "end"))
    if not isinstance(said, str) or type(start) is not int or type(end) is not int:
        return value
    if _alike(said, text[max(0, start) : end]):
        return value
    widths = (1 + (character > "\uffff") for character in text)
    places = {units: i for i, units in enumerate(accumulate(widths, initial=0))}
    first, last = places.get(start, -1), places.get(end, -1)
    if 0 <= first < last and _alike(said, text[first:last]):
        report.lose("spans that are counted in UTF-16: counted in characters", place)
        return {**value, "start": first, "end": last}
    report.lose("spans that are said to have another text", place)
    return value


def _alike(said: str, found: str) -> bool:
    """The same but for white space? Label Studio writes the two characters \\n for the end of a line."""
    return said.replace("\\n", " ").split() == found.replace("\\n", " ").split()


def _span(path: Path, place: str, entry: Any) -> Iterator[CharSpan]:
    """A list of start, end and label, or an object with them; a span with several labels is several."""
    if isinstance(entry, list) and len(entry) == 3:
        start, end, labels = entry
    elif isinstance(entry, Mapping):
        start = entry.get("start", entry.get("start_offset"))
        end = entry.get("end", entry.get("end_offset"))
        labels = entry.get("label", entry.get("labels"))
    else:
        start = end = labels = None
    names = labels if isinstance(labels, list) else [labels]
    if type(start) is not int or type(end) is not int or not all(isinstance(n, str) for n in names):
        refuse(path, place, f"the span {entry!r}"[:100], "a start, an end and a label")
    for name in names:
        yield start, end, name


def _words(entry: Mapping[str, Any]) -> tuple[list[str], list[bool]] | None:
    """Prodigy's tokens, and whether a space follows each; None without them."""
    tokens = entry.get("tokens")
    if not isinstance(tokens, list) or not all(
        isinstance(each, Mapping) and "text" in each and "ws" in each for each in tokens
    ):
        return None
    return [each["text"] for each in tokens], [bool(each["ws"]) for each in tokens]
