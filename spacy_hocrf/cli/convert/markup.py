"""Texts whose spans are XML elements: the data of parserator (usaddress, probablepeople) and of AnyStyle, and
inline XML such as TEI.

`--record` names the element that is a text; otherwise the structure decides. AnyStyle's root is `dataset`,
with elements `sequence`, whose child elements are spans. Parserator has three levels of elements without
namespaces and attributes, those of the third level in one line. In other XML the texts are the outermost
elements with mixed content, and all others of the same names; each element inside a text is a span, and white
space is normalized to one blank.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from spacy_hocrf.cli.convert.labels import spans_of
from spacy_hocrf.cli.convert.records import (
    CharSpan,
    ConvertedText,
    Place,
    SourceFile,
    bytes_of,
    decoded,
)

__all__ = ["read_markup"]

ANYSTYLE = ("dataset", "sequence")
"""AnyStyle's root element, and its child elements."""
HEADER = "teiHeader"
"""TEI's element for metadata, which has no texts."""
OTHERS = ("html", "svg")
"""Root elements of documents with mixed content that are no annotation."""
BLANKS = re.compile(r"[ \t\r\n]+")
DECLARED = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z][\w.:-]*)[\"']"
)
"""Matches the encoding that a file declares."""
EXPECTED = (
    "inline XML, in which words stand beside elements that are spans, or the data of parserator or AnyStyle; "
    "name the element that is a text with hocrf convert --record"
)


def read_markup(source: SourceFile) -> Iterator[ConvertedText]:
    """Read the texts of an XML file.

    RAISES (ValueError): H290 for invalid XML, or if no element is a text; H291 for bytes that its encoding
        does not have.
    """
    root, record = _root(source), source.settings.record
    name = _name(root)
    if not record:
        if name.lower() in OTHERS:
            source.at().refuse(name.upper(), EXPECTED)
        if name == ANYSTYLE[0] and len(root) and all(_name(each) == ANYSTYLE[1] for each in root):
            for i, each in enumerate(root, start=1):
                yield _fields(each, source.at(f"{ANYSTYLE[1]} {i}"))
            return
        if _is_parserator(root):
            for i, each in enumerate(root, start=1):
                yield _tokens(each, source.at(f"{each.tag} {i}"))
            return
    names = {record} if record else _mixed(root)
    if not names:
        source.at().refuse(f"the root {name} without words beside elements", EXPECTED)
    texts = _outermost(root, names)
    if not texts:
        found = f"the root {name} without an element {record}"
        source.at().refuse(found, "one; see hocrf convert --record")
    outside = sum(bool(text.strip()) for text in root.itertext()) - sum(
        bool(text.strip()) for each in texts for text in each.itertext()
    )
    source.at().lose(f"pieces of text outside of {', '.join(sorted(names))}: left out", outside)
    for number, element in enumerate(texts, start=1):
        yield _inline(element, source.at(f"{_name(element)} {number}"))


def _root(source: SourceFile) -> Element:
    """Parse a file. RAISES (ValueError): H290 for invalid XML, H291 for bytes not in its encoding."""
    try:
        return ElementTree.fromstring(_content(source.path))
    except ElementTree.ParseError as error:
        source.at(f"line {error.position[0]}").refuse(str(error), "XML")


def _content(path: Path) -> bytes | str:
    """Read a file for the parser, decoded if it declares an encoding, since the parser knows only a few."""
    content = bytes_of(path)
    declared = DECLARED.match(content)
    return content if declared is None else decoded(path, content, declared[1].decode("ascii"))


def _name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _is_parserator(root: Element) -> bool:
    """Are there three levels of elements, with text only in the third, and without attributes? Unlike in XML
    tables, elements of the third level are mostly in one line, with blanks or words between them.
    """
    texts = [each for each in root if len(each)]
    below = [field for each in root for field in each]
    if not texts or any(len(field) for field in below) or not any(field.text for field in below):
        return False
    if any("}" in str(each.tag) or each.attrib for each in (root, *root, *below)):
        return False
    gaps = [[field.tail or "" for field in each[:-1]] for each in texts if len(each) > 1]
    inline = sum(any(of_text) and not any("\n" in gap for gap in of_text) for of_text in gaps)
    return (root.text or "").strip() == "" and 2 * inline >= len(gaps)


def _mixed(root: Element) -> set[str]:
    """Find the names of the outermost elements with mixed content: words next to elements with words."""
    names, waiting = set[str](), [root]
    while waiting:
        element = waiting.pop()
        if _name(element) == HEADER:
            continue
        pieces = [element.text, *(child.tail for child in element)]
        has_words = any(text and text.strip() for text in pieces)
        if has_words and any("".join(child.itertext()).strip() for child in element):
            names.add(_name(element))
        else:
            waiting += element
    return names


def _outermost(root: Element, names: set[str]) -> list[Element]:
    """Find the elements with these names that are not inside another one, in order."""
    elements, waiting = list[Element](), [root]
    while waiting:
        element = waiting.pop()
        if _name(element) in names:
            elements.append(element)
        elif _name(element) != HEADER:
            waiting += reversed(element)
    return elements


def _fields(element: Element, place: Place) -> ConvertedText:
    """Read a text of AnyStyle: each element is a span, with a space between two."""
    text, spans = "", []
    inside = sum(len(child) for child in element)
    place.lose("elements inside of spans: left out, but not their text", inside)
    between = [element.text, *(child.tail for child in element)]
    outside = sum(bool(each and each.strip()) for each in between)
    place.lose("text outside of all fields: left out", outside)
    for child in element:
        content = " ".join("".join(child.itertext()).split())
        if content:
            text += " " if text else ""
            spans.append((len(text), len(text) + len(content), _name(child)))
            text += content
    return ConvertedText(place, text=text, spans=spans)


def _tokens(element: Element, place: Place) -> ConvertedText:
    """Read a text of parserator: each element is a token, adjacent ones with the same name are one span."""
    words, spaces, labels = list[str](), list[bool](), list[str]()
    parts = [(element.text, "O")]
    for child in element:
        parts += [("".join(child.itertext()), str(child.tag)), (child.tail, "O")]
    for text, label in parts:
        if not text:
            continue
        if spaces:
            spaces[-1] = spaces[-1] or text[0].isspace()
        its_words = text.split()
        words += its_words
        spaces += [i + 1 < len(its_words) or text[-1].isspace() for i in range(len(its_words))]
        labels += [label] * len(its_words)
    return ConvertedText(place, words, spaces, spans=spans_of(labels, "io"), tags=labels)


def _inline(element: Element, place: Place) -> ConvertedText:
    """Read inline XML: each element is a span. An attribute `type` is added to its label: name.person."""
    pieces, length, ends_blank = list[str](), 0, True
    spans = list[CharSpan]()

    def add(text: str | None) -> None:
        nonlocal length, ends_blank
        piece = BLANKS.sub(" ", text or "")
        piece = piece[1:] if ends_blank and piece[:1] == " " else piece
        if piece:
            pieces.append(piece)
            length += len(piece)
            ends_blank = piece[-1] == " "

    waiting = [(element, -1)]  # an element, and where its text begins, or -1 if that is to be read
    while waiting:
        child, start = waiting.pop()
        if start < 0:
            waiting.append((child, length))
            add(child.text)
            waiting += ((each, -1) for each in reversed(child))
            continue
        if child is not element:
            spans.append((start, length, _label(child, place)))
            add(child.tail)
    text = "".join(pieces)
    kept = list[CharSpan]()
    spans.reverse()  # so that an element precedes those inside of it
    for start, end, label in sorted(spans, key=lambda span: (span[0], -span[1])):
        content = text[start:end]
        start, end = (
            start + len(content) - len(content.lstrip(" ")),
            start + len(content.rstrip(" ")),
        )
        if start < end:
            kept.append((start, end, label))
        else:
            place.lose("elements without a text: left out")
    return ConvertedText(place, text=text.rstrip(" "), spans=kept)


def _label(element: Element, place: Place) -> str:
    kind = element.get("type", element.get("TYPE", ""))
    place.lose("attributes of elements: left out", len(element.attrib) - bool(kind))
    return f"{_name(element)}.{kind}" if kind else _name(element)
