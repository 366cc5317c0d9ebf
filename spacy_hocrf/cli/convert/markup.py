"""Texts whose spans are XML elements: the data of parserator (usaddress, probablepeople) and of AnyStyle."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from spacy_hocrf.cli.convert.labels import spans_of
from spacy_hocrf.cli.convert.records import Record, Report, Settings, bytes_of, refuse
from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["read_markup"]

ANYSTYLE = "dataset"
"""Its root element; parserator's may have any other name."""
DECLARED = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z][\w.:-]*)[\"']"
)
"""The encoding that a file says it has."""


def read_markup(path: Path, settings: Settings, report: Report) -> Iterator[Record]:
    """The texts of a file.

    RAISES (ValueError): H290 for what is no XML, H291 for bytes that its encoding does not have.
    """
    try:
        root = ElementTree.fromstring(_content(path))
    except ElementTree.ParseError as error:
        refuse(path, f"line {error.position[0]}", str(error), "XML")
    for number, element in enumerate(root, start=1):
        place = f"{element.tag} {number}"
        inside = sum(len(child) for child in element)
        report.lose("elements inside of spans: left out, but not their text", place, inside)
        is_anystyle = root.tag == ANYSTYLE
        yield _fields(element, place, report) if is_anystyle else _tokens(element, place)


def _content(path: Path) -> bytes | str:
    """A file as the parser takes it, which knows few encodings by itself."""
    content = bytes_of(path)
    declared = DECLARED.match(content)
    if declared is None:
        return content
    name = declared[1].decode("ascii")
    try:
        text = content.decode(name)
        text.encode("utf8")
    except (UnicodeError, LookupError) as error:
        raise ValueError(CommandErrors.H291.format(path=path, found=error, name=name)) from None
    return text


def _fields(element: ElementTree.Element, place: str, report: Report) -> Record:
    """AnyStyle: each element is a span, with a space between two."""
    text, spans = "", []
    between = [element.text, *(child.tail for child in element)]
    outside = sum(bool(each and each.strip()) for each in between)
    report.lose("text outside of all fields: left out", place, outside)
    for child in element:
        content = " ".join("".join(child.itertext()).split())
        if content:
            text += " " if text else ""
            spans.append((len(text), len(text) + len(content), child.tag))
            text += content
    return Record(place, text=text, spans=spans)


def _tokens(element: ElementTree.Element, place: str) -> Record:
    """parserator: each element is a token, neighbours of one name are one span; other text is in none."""
    words, spaces, labels = list[str](), list[bool](), list[str]()
    parts = [(element.text, "O")]
    for child in element:
        parts += [("".join(child.itertext()), child.tag), (child.tail, "O")]
    for text, label in parts:
        if not text:
            continue
        if spaces:
            spaces[-1] = spaces[-1] or text[0].isspace()
        found = text.split()
        words += found
        spaces += [i + 1 < len(found) or text[-1].isspace() for i in range(len(found))]
        labels += [label] * len(found)
    return Record(place, words, spaces, spans=spans_of(labels, "io"), tags=labels)
