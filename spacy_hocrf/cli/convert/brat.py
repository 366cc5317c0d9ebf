"""brat's standoff annotation: NAME.ann beside NAME.txt, which has the text.

A line for a span is T1, tab, type and offsets, tab, its words. The offsets are two numbers, or for a
discontinuous span several pairs separated by semicolons. Other lines are relations, events, attributes or
notes.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from spacy_hocrf.cli.convert.entries import by_characters
from spacy_hocrf.cli.convert.records import CharSpan, ConvertedText, SourceFile, text_of

__all__ = ["TEXT", "read_brat"]

ANNOTATION, TEXT = ".ann", ".txt"
SPAN = re.compile(r"(\S+) (\d{1,15} \d{1,15}(?:;\d{1,15} \d{1,15})*)")
OTHERS = {
    "R": "relations",
    "E": "events",
    "A": "attributes of spans",
    "M": "attributes of spans",
    "N": "normalizations of spans",
    "#": "notes",
    "*": "relations that have no direction",
}
"""Kinds of lines other than spans, by their first letter."""


def read_brat(source: SourceFile) -> Iterator[ConvertedText]:
    """Read an annotation file and its text. An empty file counts as not annotated, since brat makes such
    files before anybody has looked at the text.

    RAISES (ValueError): H290 for a file without its text, an invalid line, or offsets outside of the text;
        H291 for bytes that the encoding does not have.
    """
    name = source.path.name.removesuffix(".gz").removesuffix(ANNOTATION)
    beside = source.path.with_name(name + TEXT)
    if not beside.is_file():
        source.at().refuse(f"no text: there is no {beside.name} beside it", f"{name}{TEXT}")
    text = text_of(beside, source.settings.encoding)
    spans, unknown, is_empty = list[CharSpan](), list[tuple[int, int]](), True
    for number, line in enumerate(source.lines(), start=1):
        place = source.at(f"line {number}")
        if not line.strip():
            continue
        is_empty = False
        kind = OTHERS.get(line[:1])
        if kind is not None and "\t" in line:
            place.lose(f"{kind}: left out")
            continue
        fields = line.split("\t")
        match = SPAN.fullmatch(fields[1]) if line[0] == "T" and len(fields) > 1 else None
        if match is None:
            expected = "T1, tab, a type and two numbers, tab, the text between them"
            place.refuse(repr(line)[:80], f"a line of brat's annotation, such as {expected}")
        pieces = [tuple(map(int, piece.split(" "))) for piece in match[2].split(";")]
        gaps = ((end, start) for (_, end), (start, _) in pairwise(pieces))
        if all(end <= start and not text[end:start].strip() for end, start in gaps):
            pieces = [(pieces[0][0], pieces[-1][1])]  # brat splits spans at line breaks
        if len(pieces) == 1 and len(fields) > 2:
            placed = {"text": fields[2], "start": pieces[0][0], "end": pieces[0][1]}
            counted = by_characters(placed, text, place)
            pieces = [(counted["start"], counted["end"])]
        for start, end in pieces:
            if not 0 <= start < end <= len(text):
                expected = f"some inside {beside.name}, which has {len(text)}"
                place.refuse(f"the characters {start} to {end}", expected)
        if len(pieces) > 1:
            place.lose("spans in several pieces: left out, what they cover is unknown")
            unknown += [(start, end) for start, end in pieces]
            continue
        ((start, end),) = pieces
        spans.append((start, end, match[1]))
    if is_empty:
        source.at().lose("files of annotation without a line: their texts are unknown")
    annotated = None if is_empty else spans
    yield ConvertedText(source.at(), text=text, spans=annotated, unknown=unknown, id=name)
