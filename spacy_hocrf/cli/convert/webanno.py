r"""WebAnno's TSV 3, also written by INCEpTION: one token per line, a column for each feature of each layer.

    #FORMAT=WebAnno TSV 3.3
    #T_SP=webanno.custom.Person|name|role

    #Text=Ada Lovelace wrote
    1-1   0-3    Ada       Ada[1]  _
    1-2   4-12   Lovelace  Ada[1]  _
    1-3   13-18  wrote     _       _

Tokens with the same number in brackets are one span; several spans on one token are separated by |; a star is
a span without a value; and a backslash escapes special characters.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spacy_hocrf.cli.convert.records import (
    CharSpan,
    ConvertedText,
    Place,
    SourceFile,
    named_attribute,
    tokens_at,
)

__all__ = ["HEADER", "read_webanno"]

HEADER = "#FORMAT=WebAnno TSV 3"
SPANS, CHAINS, RELATIONS = "#T_SP=", "#T_CH=", "#T_RL="
TEXT = "#Text="
GAP = 100_000
"""Largest number of characters between two tokens of a sentence."""
BEFORE = 3
"""Number of columns before the first feature: number, characters, token."""
OF_TOKENS = frozenset({"POS", "Lemma", "Stem", "MorphologicalFeatures", "SurfaceForm"})
"""Layers on tokens: their features become token attributes."""
PLACE = re.compile(r"(\d{1,9})-(\d{1,9})(\.\d{1,9})?\t(\d{1,15})-(\d{1,15})\t")
NUMBERED = re.compile(r"(.*)\[(\d+)\]", re.DOTALL)
NONE, ANY = "_", "*"


class _Layer(NamedTuple):
    """A layer of annotation: its short name, its features, and its columns."""

    kind: str  # SPANS, CHAINS or RELATIONS
    name: str
    features: Sequence[str]
    first: int
    width: int  # number of columns


class _Unit(NamedTuple):
    """A token, or a part of one: its offsets in the document, in UTF-16 units, and its columns."""

    place: Place
    is_part: bool
    start: int
    end: int
    text: str
    columns: Sequence[str]


def read_webanno(source: SourceFile) -> Iterator[ConvertedText]:
    """Read the sentences of a file, each as a text. A span's label is the value of its first feature that has
    one, else the name of its layer; features of POS, Lemma and the like become token attributes.

    RAISES (ValueError): H290 if the file is not valid WebAnno TSV 3, H291 for bytes that the encoding does
        not have.
    """
    lines = source.lines()
    if not lines[0].startswith(HEADER):
        expected = f"{HEADER}.x; export it as WebAnno TSV v3"
        source.at("line 1").refuse(repr(lines[0])[:80], expected)
    layers = list(_layers(lines))
    for kind, what in ((CHAINS, "chains"), (RELATIONS, "relations")):
        times = sum(layer.kind == kind for layer in layers)
        source.at("the header").lose(f"layers of {what}: left out", times)
    width = BEFORE + sum(layer.width for layer in layers)
    units, said, seen = list[_Unit](), list[str](), set[tuple[int, str]]()
    for number, line in enumerate([*lines, ""], start=1):
        place = source.at(f"line {number}")
        found = PLACE.match(line)
        if found is not None:
            units.append(_unit(place, line, found, width, units))
            continue
        if line.strip() and not line.startswith("#"):
            place.refuse(repr(line)[:80], "1-1, tab, 0-3, tab, and a token")
        if units:
            yield _sentence(layers, units, "\n".join(said), seen)
            units, said = [], []
        if line.startswith(TEXT):
            said.append(_plain(line.removeprefix(TEXT)))


def _unit(
    place: Place, line: str, found: re.Match[str], width: int, before: Sequence[_Unit]
) -> _Unit:
    fields = line.split("\t")
    if fields[-1] == "":
        del fields[-1]  # there is a tab at the end
    if len(fields) != width:
        place.refuse(f"{len(fields)} columns", f"{width}, as the header says")
    unit = _Unit(
        place, bool(found[3]), int(found[4]), int(found[5]), _plain(fields[2]), fields[BEFORE:]
    )
    token = next((each for each in reversed(before) if not each.is_part), None)
    if unit.is_part:
        sound = token is not None and token.start <= unit.start and unit.end <= token.end
    else:
        sound = token is None or token.end <= unit.start <= token.end + GAP
    if not sound or unit.end - unit.start != _units(unit.text):
        expected = f"{_units(unit.text)}, as the token has, behind those before"
        place.refuse(f"the characters {unit.start} to {unit.end}", expected)
    return unit


def _layers(lines: Sequence[str]) -> Iterator[_Layer]:
    first = 0
    for line in lines:
        kind = next((each for each in (SPANS, CHAINS, RELATIONS) if line.startswith(each)), None)
        if kind is None:
            if not line.startswith("#") or line.startswith(TEXT):
                if line.strip():
                    return
            continue
        name, *features = line.removeprefix(kind).split("|")
        width = max(1, len(features))
        yield _Layer(kind, name.split(".")[-1], features, first, width)
        first += width


def _sentence(
    layers: Sequence[_Layer], units: Sequence[_Unit], said: str, seen: set[tuple[int, str]]
) -> ConvertedText:
    """Make the text of a sentence: the file's own if it has the tokens at their offsets, else tokens and
    blanks.

    said (str): the sentence's text in the file. seen (set[tuple[int, str]]): layers and numbers of spans in
        earlier sentences; those of this one are added.
    """
    tokens = [unit for unit in units if not unit.is_part]
    at: dict[int, int] = {}  # offset in the document (UTF-16) to character of the text
    text, begin = "", tokens[0].start
    places = list[tuple[int, int]]()
    for token in tokens:
        text += " " * (token.start - begin)
        places.append((len(text), len(text) + len(token.text)))
        begin = token.start
        for character in token.text:
            at[begin] = len(text)
            text += character
            begin += _units(character)
        at[begin] = len(text)
    if [said[start:end] for start, end in places] == [token.text for token in tokens]:
        text = said[: len(text)]
    placed = tokens_at(text, places)
    spans = [
        span
        for layer in layers
        if layer.kind == SPANS and layer.name not in OF_TOKENS
        for span in _spans(layer, units, at, seen)
    ]
    attributes = {
        named_attribute(feature): [
            _value(tokens[i].columns[layer.first + k]) if i >= 0 else "" for i in placed.numbers
        ]
        for layer in layers
        if layer.kind == SPANS and layer.name in OF_TOKENS
        for k, feature in enumerate(layer.features)
    }
    return ConvertedText(
        units[0].place, placed.words, placed.spaces, text, spans, attributes=attributes
    )


def _spans(
    layer: _Layer, units: Sequence[_Unit], at: dict[int, int], seen: set[tuple[int, str]]
) -> Iterator[CharSpan]:
    """Read the spans of one layer, in characters of the text."""
    known: dict[str, tuple[int, int, str]] = {}
    for unit in units:
        columns = [
            [_numbered(each) for each in _parted(unit.columns[layer.first + i])]
            for i in range(layer.width)
        ]
        n = max(map(len, columns))
        if any(len(each) not in (n, 1) for each in columns):
            found = f"columns of {layer.name} with several numbers of spans"
            unit.place.refuse(found, "as many in each")
        for k in range(n):
            values = [each[k] if len(each) == n else each[0] for each in columns]
            if all(value == NONE and not number for value, number in values):
                continue
            said = [value for value, _ in values if value not in (NONE, ANY)]
            unit.place.lose("further features of a span: left out", max(0, len(said) - 1))
            label = _plain(said[0]) if said else layer.name
            number = next((number for _, number in values if number), "")
            start, end = (at.get(each, -1) for each in (unit.start, unit.end))
            if not 0 <= start < end:
                found = f"the characters {unit.start} to {unit.end}"
                unit.place.refuse(found, "some of its sentence")
            if not number:
                yield start, end, label
                continue
            first, last, name = known.get(number, (start, end, label))
            known[number] = first, max(last, end), name
    numbers = {(layer.first, number) for number in known}
    units[0].place.lose("spans that go on in the next sentence: cut there", len(numbers & seen))
    seen |= numbers
    yield from known.values()


def _parted(column: str) -> list[str]:
    """Split a column into values, keeping backslashes."""
    values = [""]
    for sign in re.findall(r"\\.|.", column):
        if sign == "|":
            values.append("")
        else:
            values[-1] += sign
    return values


def _numbered(value: str) -> tuple[str, str]:
    """Split a value into its text and the number in brackets, "" if there is none."""
    found = NUMBERED.fullmatch(value)
    return (found[1], found[2]) if found else (value, "")


def _value(column: str) -> str:
    value = _plain(_numbered(column)[0])
    return "" if value in (NONE, ANY) else value


def _plain(text: str) -> str:
    """Resolve backslash escapes."""
    signs = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b"}
    return re.sub(r"\\(.)", lambda found: signs.get(found[1], found[1]), text)


def _units(text: str) -> int:
    """Length in UTF-16 units, as Java counts."""
    return len(text) + sum(character > "\uffff" for character in text)
