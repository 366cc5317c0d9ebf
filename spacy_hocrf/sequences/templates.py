"""Templates of CRF++ and patterns of Wapiti: which strings are observed at an item whose columns are
given.

A line is one template, such as U05:%x[-1,0]/%x[0,1]. What stands in it is observed, with the column 0 of
the item before and the column 1 of the item itself put in. The first letter says with which labels it is
a feature: U or u with the item's own, B or b with the two last ones, and * of Wapiti with both. A line
that is only B, or b, is left out: successions of labels are features anyway.

    %x[offset,column]            the text of that column
    %t[offset,column,"regexp"]   Wapiti: true or false, does it match?
    %m[offset,column,"regexp"]   Wapiti: what matches, or nothing

With a capital X, T or M Wapiti takes it in lower case; with an offset @1 it counts from the first item, with
@-1 from the last. (Facts: https://taku910.github.io/crfpp/, https://wapiti.limsi.fr/manual.html.) Wapiti
looks at bytes, this at characters: they agree on ASCII.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from spacy_hocrf.sequences.errors import SequenceErrors

__all__ = ["ItemTemplates", "read_templates"]

COMMAND = re.compile(
    r"%(?P<kind>[xXtTmM])\[\s*(?P<absolute>@?)(?P<offset>[-+]?\d+),\s*(?P<column>\d+)"
    r'(?:,"(?P<regexp>(?:[^"\\]|\\.)*)")?\]'
)
CLASSES = {
    "a": "A-Za-z",
    "d": "0-9",
    "l": "a-z",
    "p": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    "s": r" \t-\r",
    "u": "A-Z",
    "w": "A-Za-z0-9",
}

Rows = Sequence[Sequence[str]]
"""Columns of each item of a sequence."""


class _Toolkit(NamedTuple):
    """What differs."""

    orders: dict[str, list[int]]  # earlier labels that features see, by first letter
    edge: str  # what is observed beyond the sequence, before a sign and a distance
    farthest: int  # distance that has a text of its own
    beyond: str  # of larger ones, "" if there are none
    commands: str
    comment: re.Pattern[str]


TOOLKITS = {
    "crf++": _Toolkit({"U": [0], "B": [1]}, "_B", 8, "", "x", re.compile(r"^\s*#.*")),
    "wapiti": _Toolkit(
        {"u": [0], "b": [1], "*": [0, 1]}, "_x", 4, "#", "xXtTmM", re.compile(r"\s*#.*")
    ),
}


class _Command(NamedTuple):
    """What is put into a template."""

    offset: int
    column: int
    absolute: bool
    kind: str  # x, t or m
    lower: bool
    regexp: re.Pattern[str]  # of t and m


@dataclass(frozen=True)
class ItemTemplates:
    """The templates of a file.

    toolkit (str): "crf++" or "wapiti".
    templates (tuple): of each, the texts and the commands between them.
    lines (tuple[int, ...]): where each stands in the file.
    transitions (bool): is there a line that is only B, or b?
    """

    toolkit: str
    templates: tuple[tuple[str | _Command, ...], ...]
    lines: tuple[int, ...]
    transitions: bool

    @property
    def attribute_orders(self) -> Mapping[str, Sequence[int]]:
        """What `HighOrderCRF` takes under this name."""
        return TOOLKITS[self.toolkit].orders

    def blocks(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """The templates as blocks of `spacy-hocrf.Features.v1`, for tokens instead of items.

        columns (Sequence[str]): the token attribute that has each column, such as ["ORTH", "_.c1"].
        RETURNS (list[dict]): settings of each block. Beyond a text they observe one
            edge, and no template that reaches further.
        RAISES (ValueError): H288 for a command that no block has, H289 for a column without an attribute.
        """
        found = []
        for line, parts in zip(self.lines, self.templates):
            commands = [part for part in parts if isinstance(part, _Command)]
            terms = [_term(command, line, columns) for command in commands]
            for order in TOOLKITS[self.toolkit].orders[str(parts[0])[0]]:
                found.append(_block(terms, order))
        pairs = _block([], 1)
        return [*found, pairs] if self.transitions and pairs not in found else found

    def items(self, rows: Rows) -> list[list[str]]:
        """The strings that are observed at each item.

        rows (Sequence[Sequence[str]]): columns of each item, without the label.
        RAISES (ValueError): H289 if an item lacks a column that a template reads.
        """
        return [
            ["".join([self._value(part, rows, at) for part in parts]) for parts in self.templates]
            for at in range(len(rows))
        ]

    def _value(self, part: str | _Command, rows: Rows, at: int) -> str:
        """Of a part of a template at an item."""
        if isinstance(part, str):
            return part
        text = self._text(part, rows, at)
        if part.kind != "x":
            match = part.regexp.search(text)
            if part.kind == "t":
                return "true" if match else "false"
            text = match[0] if match else ""
        return text.lower() if part.lower else text

    def _text(self, part: _Command, rows: Rows, at: int) -> str:
        """Of the column that a command names."""
        place = at + part.offset
        if part.absolute:
            place = part.offset + (len(rows) if part.offset < 0 else -1)
        if place < 0:
            return self._edge("-", -place)
        if place >= len(rows):
            return self._edge("+", place - len(rows) + 1)
        if part.column >= len(rows[place]):
            text = SequenceErrors.H289.format(
                place=place, found=len(rows[place]), column=part.column
            )
            raise ValueError(text)
        return rows[place][part.column]

    def _edge(self, sign: str, distance: int) -> str:
        """What is observed beyond the sequence."""
        toolkit = TOOLKITS[self.toolkit]
        number = str(distance) if distance <= toolkit.farthest else toolkit.beyond
        return f"{toolkit.edge}{sign}{number}"


def read_templates(text: str, toolkit: str) -> ItemTemplates:
    """The templates of a file.

    text (str): its contents. toolkit (str): "crf++" or "wapiti".
    RAISES (ValueError): H278 for another toolkit, H288 for a line that is no template.
    """
    if toolkit not in TOOLKITS:
        expected = " or ".join(map(repr, TOOLKITS))
        raise ValueError(
            SequenceErrors.H278.format(name="toolkit", found=toolkit, expected=expected)
        )
    known = TOOLKITS[toolkit]
    templates: list[tuple[str | _Command, ...]] = []
    lines, transitions = [], False
    for number, line in enumerate(text.splitlines(), 1):
        line = known.comment.sub("", line, count=1).rstrip()
        if not line:
            continue
        if toolkit == "wapiti":
            line = line[0].lower() + line[1:]
        if line[0] not in known.orders:
            raise _wrong(number, line, f"one of {', '.join(known.orders)} as its first letter")
        parts = tuple(_parts(line, number, known))
        if len(parts) == 1 and known.orders[line[0]] == [1]:
            transitions = True
            continue
        templates.append(parts)
        lines.append(number)
    return ItemTemplates(toolkit, tuple(templates), tuple(lines), transitions)


def _term(command: _Command, line: int, columns: Sequence[str]) -> str:
    """What a command observes, as a term of a block."""
    if command.kind != "x" or command.absolute or command.lower:
        raise _wrong(line, f"%{command.kind}", "%x[offset,column], as blocks have it")
    if command.column >= len(columns):
        text = SequenceErrors.H289.format(place=0, found=len(columns), column=command.column)
        raise ValueError(text)
    return f"{columns[command.column]}[{command.offset}]"


def _block(terms: list[str], order: int) -> dict[str, Any]:
    if not terms:
        return {"@misc": "spacy-hocrf.Transition.v1", "order": order}
    return {
        "@misc": "spacy-hocrf.Conjunction.v1",
        "terms": terms,
        "parts": ["tokens"],
        "order": order,
    }


def _parts(line: str, number: int, toolkit: _Toolkit) -> list[str | _Command]:
    """The texts and commands of a template."""
    parts: list[str | _Command] = []
    at = 0
    for found in COMMAND.finditer(line):
        parts += [line[at : found.start()], _command(found, number, toolkit)]
        at = found.end()
    parts.append(line[at:])
    if any(isinstance(part, str) and "%" in part for part in parts):
        raise _wrong(number, line, "%x[offset,column], or another command, after %")
    return [part for part in parts if part != ""]


def _command(found: re.Match[str], number: int, toolkit: _Toolkit) -> _Command:
    kind, regexp = found["kind"], found["regexp"]
    offset = int(found["offset"])
    if kind not in toolkit.commands or (kind in "xX") != (regexp is None):
        raise _wrong(number, found[0], f"a command of {toolkit.commands} with its arguments")
    if not toolkit.beyond and (found["absolute"] or abs(offset) > toolkit.farthest):
        raise _wrong(number, found[0], f"offsets from -{toolkit.farthest} to {toolkit.farthest}")
    return _Command(
        offset,
        int(found["column"]),
        bool(found["absolute"]),
        kind.lower(),
        kind.isupper(),
        _regexp(regexp or "", number),
    )


def _regexp(source: str, number: int) -> re.Pattern[str]:
    """Wapiti's regular expressions as ours: * takes as little as it can, ? as much, ^ and $ are
    anchors at the ends alone.
    """
    first = "\\A" if source.startswith("^") else ""
    rest = source[1:] if first else source
    last = "\\Z" if rest.endswith("$") and not re.search(r"(?<!\\)(?:\\\\)*\\\$$", rest) else ""
    rest = rest[:-1] if last else rest
    found = []
    for unit in re.finditer(r"(\\.|[^*?])([*?]?)|[*?]", rest, flags=re.DOTALL):
        if unit[1] is None:
            raise _wrong(number, source, "a character before each * and ?")
        found.append(_character(unit[1]) + {"*": "*?", "?": "?", "": ""}[unit[2]])
    return re.compile(first + "".join(found) + last, flags=re.DOTALL)


def _character(unit: str) -> str:
    """What one character, or a class, matches."""
    if unit == ".":
        return "."
    if unit[0] == "\\" and len(unit) > 1:
        name = unit[1]
        if name.lower() in CLASSES:
            return f"[{'^' if name.isupper() else ''}{CLASSES[name.lower()]}]"
        return re.escape(name)
    return re.escape(unit)


def _wrong(number: int, found: str, expected: str) -> ValueError:
    return ValueError(SequenceErrors.H288.format(line=number, found=found, expected=expected))
