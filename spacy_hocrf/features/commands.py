"""Commands in the templates of CRF++ and patterns of Wapiti, and the text that they insert for an item with
given columns.

    %x[offset,column]            the text of that column
    %t[offset,column,"regexp"]   Wapiti: "true" if the text matches, else "false"
    %m[offset,column,"regexp"]   Wapiti: the first match, or nothing

With a capital X, T or M, Wapiti lowercases the text; an offset @1 counts from the first item, @-1 from the
last. Places beyond the sequence have a text of their own for each distance.
(Sources: https://taku910.github.io/crfpp/, https://wapiti.limsi.fr/manual.html.) Wapiti matches bytes, this
module characters: they agree on ASCII.

Wapiti's regular expressions consist of letters, dots for any letter, classes such as \\d, and \\ before other
characters; each unit alone, with * for lazy repetition, or with ? if optional. ^ and $ are anchors only at
the ends.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from spacy_hocrf.features.errors import FeatureErrors

__all__ = [
    "TOOLKITS",
    "Command",
    "Toolkit",
    "parse_template",
    "wrong_template",
]

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
TIMES = {"": "", "?": "?", "*": "*?"}


class Toolkit(NamedTuple):
    """Differences between the template languages of CRF toolkits."""

    orders: dict[str, list[int]]  # number of earlier labels that features see, by first letter
    edge: str  # text beyond the sequence, followed by a sign and a distance
    farthest: int  # largest distance with a text of its own
    beyond: str  # stands for larger distances, "" if these are not allowed
    commands: str
    comment: re.Pattern[str]

    def outside(self, distance: int) -> str:
        """Text that is observed at a distance beyond the sequence; negative distances are before it."""
        sign, far = "-" if distance < 0 else "+", abs(distance)
        return f"{self.edge}{sign}{far if far <= self.farthest else self.beyond}"


TOOLKITS = {
    "crf++": Toolkit({"U": [0], "B": [1]}, "_B", 8, "", "x", re.compile(r"^\s*#.*")),
    "wapiti": Toolkit(
        {"u": [0], "b": [1], "*": [0, 1]}, "_x", 4, "#", "xXtTmM", re.compile(r"\s*#.*")
    ),
}


@dataclass(frozen=True)
class Command:
    """A command in a template, which inserts the text of a column.

    offset (int): place of the item that is read, relative to the current item; with `absolute`, from 1 for
        the first of the sequence, from -1 for the last. column (int): number of the column.
    kind (str): x, t or m. lower (bool): lowercase the text. regexp (re.Pattern): for t and m.
    """

    offset: int
    column: int
    absolute: bool
    kind: str
    lower: bool
    regexp: re.Pattern[str]

    def place(self, at: int, length: int) -> int:
        """Return the place that is read for an item of a sequence; it may be beyond the sequence."""
        if not self.absolute:
            return at + self.offset
        return self.offset + (length if self.offset < 0 else -1)

    @property
    def is_plain(self) -> bool:
        """Does it insert the unchanged text of a neighbour?"""
        return self.kind == "x" and not self.absolute and not self.lower

    def changed(self, text: str) -> str:
        """Return the text that the command inserts, given the text of its column."""
        if self.kind != "x":
            match = self.regexp.search(text)
            if self.kind == "t":
                return "false" if match is None else "true"
            text = "" if match is None else match[0]
        return text.lower() if self.lower else text


def parse_template(line: str, toolkit: Toolkit, number: int = 1) -> tuple[str | Command, ...]:
    """Split a template into texts and commands.

    number (int): line number, for the message.
    RAISES (ValueError): H288 for an invalid template.
    """
    if line[:1] not in toolkit.orders or line == "":
        raise wrong_template(
            number, line, f"one of {', '.join(toolkit.orders)} as its first letter"
        )
    parts: list[str | Command] = []
    at = 0
    for match in COMMAND.finditer(line):
        parts += [line[at : match.start()], _command(match, number, toolkit)]
        at = match.end()
    parts.append(line[at:])
    if any(isinstance(part, str) and "%" in part for part in parts):
        raise wrong_template(number, line, "%x[offset,column], or another command, after %")
    return tuple(part for part in parts if part != "")


def wrong_template(number: int, found: str, expected: str) -> ValueError:
    """Make the error H288 for a line."""
    return ValueError(FeatureErrors.H288.format(line=number, found=found, expected=expected))


def _command(match: re.Match[str], number: int, toolkit: Toolkit) -> Command:
    kind, regexp = match["kind"], match["regexp"]
    offset = int(match["offset"])
    if kind not in toolkit.commands or (kind in "xX") != (regexp is None):
        raise wrong_template(
            number, match[0], f"a command of {toolkit.commands} with its arguments"
        )
    if not toolkit.beyond and (match["absolute"] or abs(offset) > toolkit.farthest):
        raise wrong_template(
            number, match[0], f"offsets from -{toolkit.farthest} to {toolkit.farthest}"
        )
    return Command(
        offset,
        int(match["column"]),
        bool(match["absolute"]),
        kind.lower(),
        kind.isupper(),
        _regexp(regexp or "", number),
    )


def _regexp(source: str, number: int) -> re.Pattern[str]:
    """Translate Wapiti's regular expression to Python. RAISES (ValueError): H288 if it is invalid."""
    begins = source.startswith("^")
    pieces = re.findall(r"(\\.|[^*?]|)([*?]?)", source[begins:], flags=re.DOTALL)[:-1]
    if any(not text for text, _ in pieces):
        raise wrong_template(number, source, "a character before each * and ?")
    ends = pieces[-1:] == [("$", "")]
    units = [_character(text) + TIMES[times] for text, times in pieces[: len(pieces) - ends]]
    return re.compile("\\A" * begins + "".join(units) + "\\Z" * ends, re.DOTALL)


def _character(unit: str) -> str:
    """Python's regular expression for a character or a class."""
    if unit == ".":
        return unit
    name = unit[-1]
    if unit[0] == "\\" and name.lower() in CLASSES:
        return f"[{'^' * name.isupper()}{CLASSES[name.lower()]}]"
    return re.escape(name)
