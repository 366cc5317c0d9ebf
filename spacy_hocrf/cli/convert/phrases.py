"""Texts with a list of phrases instead of places: number, tab, TYPE/phrase;TYPE/phrase; and tab, text. So
are the tweets of MSM2013 (Making Sense of Microposts, Concept Extraction Challenge).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from spacy_hocrf.cli.convert.records import CharSpan, Record, Report, Settings, lines_of, refuse

__all__ = ["read_phrases"]

COLUMNS = 3
LOST = "phrases that are not in their texts, the rest of which is unknown"


def read_phrases(path: Path, settings: Settings, report: Report) -> Iterator[Record]:
    """The texts of a file, whose tokens are what white space parts, with a blank between two; each with its
    number as the Doc's extension attribute `number`.

    RAISES (ValueError): H290 for a line that has other columns, or a phrase without a type; H291 for bytes
        that the encoding does not have.
    """
    for number, line in enumerate(lines_of(path, settings.encoding), start=1):
        if not line.strip():
            continue
        place, fields = f"line {number}", line.split("\t")
        if len(fields) != COLUMNS:
            expected = (
                f"{COLUMNS}: a number, TYPE/phrase;TYPE/phrase; and the text, with tabs between"
            )
            refuse(path, place, f"{len(fields)} columns", expected)
        name, annotation, text = fields
        words = text.split()
        text = " ".join(words)
        phrases = [each.strip().partition("/") for each in annotation.split(";") if each.strip()]
        for label, _, phrase in phrases:
            if not label or not phrase.strip():
                found = f"{label!r} without a phrase" if label else f"{phrase!r} without a type"
                refuse(path, place, found, "TYPE/phrase, with ; between two")
        spans = _found(text, [(label, phrase) for label, _, phrase in phrases])
        lost = len(phrases) - len(spans)
        report.lose(LOST, place, lost)
        spaces = [i + 1 < len(words) for i in range(len(words))]
        unknown = [(0, len(text))] if lost else []
        about = {"number": name}
        yield Record(place, words, spaces, text, spans, about=about, unknown=unknown, id=name)


def _found(text: str, phrases: list[tuple[str, str]]) -> list[CharSpan]:
    """Where phrases are, in order. Each has the first place that is free, of whole tokens if it can be, and
    in the same case; long ones choose first, so that John leaves John Lennon to the one that means both.

    White space may be another, and a \\/ stands for a slash.
    """
    free, found = [True] * len(text), list[CharSpan]()
    for label, phrase in sorted(phrases, key=lambda each: -len("".join(each[1].split()))):
        signs = "".join(phrase.replace("\\/", "/").split())
        inside = r"\s*".join(r"(?:\\?\s*/)" if sign == "/" else re.escape(sign) for sign in signs)
        whole = rf"(?<!\S){inside}(?!\S)"
        for pattern, flags in ((whole, 0), (whole, re.IGNORECASE), (inside, re.IGNORECASE)):
            places = (each.span(1) for each in re.finditer(f"(?=({pattern}))", text, flags))
            start, end = next((each for each in places if all(free[slice(*each)])), (0, 0))
            if end:
                free[start:end] = [False] * (end - start)
                found.append((start, end, label))
                break
    return sorted(found)
