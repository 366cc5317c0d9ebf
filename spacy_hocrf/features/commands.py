"""Commands of CRF++'s templates and Wapiti's patterns: what they put into a template at an item whose
columns are given.

    %x[offset,column]            the text of that column
    %t[offset,column,"regexp"]   Wapiti: true or false, does it match?
    %m[offset,column,"regexp"]   Wapiti: what matches, or nothing

With a capital X, T or M Wapiti takes it in lower case; with an offset @1 it counts from the first item, with
@-1 from the last. Beyond a sequence there is a text of each distance. (Facts: https://taku910.github.io/crfpp/,
https://wapiti.limsi.fr/manual.html.) Wapiti looks at bytes, this at characters: they agree on ASCII.

Wapiti's regular expressions are letters, dots for any, classes such as \\d, or \\ before another character;
each alone, with * for as few as it can, or with ? for one if it can. ^ and $ are anchors at the ends alone.
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
    """The points in which the template languages of CRF toolkits differ."""

    orders: dict[str, list[int]]  # earlier labels that features see, by first letter
    edge: str  # what is observed beyond the sequence, before a sign and a distance
    farthest: int  # distance that has a text of its own
    beyond: str  # of larger ones, "" if there are none
    commands: str
    comment: re.Pattern[str]

    def outside(self, distance: int) -> str:
        """Text that is observed so many items beyond the sequence, before it if the distance is
        negative.
        """
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
    """A command in a template, which puts in the text of a column.

    offset (int): of the item that it looks at, from the item itself; with `absolute` from 1 for the
        first of the sequence, from -1 for the last. column (int): its number.
    kind (str): x, t or m. lower (bool): in lower case. regexp (re.Pattern): of t and m.
    """

    offset: int
    column: int
    absolute: bool
    kind: str
    lower: bool
    regexp: re.Pattern[str]

    def place(self, at: int, length: int) -> int:
        """Where it looks from an item of a sequence; it may be beyond the sequence."""
        if not self.absolute:
            return at + self.offset
        return self.offset + (length if self.offset < 0 else -1)

    @property
    def is_plain(self) -> bool:
        """Does it put in the text of a neighbour, as it is?"""
        return self.kind == "x" and not self.absolute and not self.lower

    def changed(self, text: str) -> str:
        """Text that the command puts in for the text of its column."""
        if self.kind != "x":
            found = self.regexp.search(text)
            if self.kind == "t":
                return "false" if found is None else "true"
            text = "" if found is None else found[0]
        return text.lower() if self.lower else text


def parse_template(line: str, toolkit: Toolkit, number: int = 1) -> tuple[str | Command, ...]:
    """The texts and commands of a template, in their order.

    number (int): of its line, for a message.
    RAISES (ValueError): H288 for what is no template.
    """
    if line[:1] not in toolkit.orders or line == "":
        raise wrong_template(
            number, line, f"one of {', '.join(toolkit.orders)} as its first letter"
        )
    parts: list[str | Command] = []
    at = 0
    for found in COMMAND.finditer(line):
        parts += [line[at : found.start()], _command(found, number, toolkit)]
        at = found.end()
    parts.append(line[at:])
    if any(isinstance(part, str) and "%" in part for part in parts):
        raise wrong_template(number, line, "%x[offset,column], or another command, after %")
    return tuple(part for part in parts if part != "")


def wrong_template(number: int, found: str, expected: str) -> ValueError:
    """H288, of a line."""
    return ValueError(FeatureErrors.H288.format(line=number, found=found, expected=expected))


def _command(found: re.Match[str], number: int, toolkit: Toolkit) -> Command:
    kind, regexp = found["kind"], found["regexp"]
    offset = int(found["offset"])
    if kind not in toolkit.commands or (kind in "xX") != (regexp is None):
        raise wrong_template(
            number, found[0], f"a command of {toolkit.commands} with its arguments"
        )
    if not toolkit.beyond and (found["absolute"] or abs(offset) > toolkit.farthest):
        raise wrong_template(
            number, found[0], f"offsets from -{toolkit.farthest} to {toolkit.farthest}"
        )
    return Command(
        offset,
        int(found["column"]),
        bool(found["absolute"]),
        kind.lower(),
        kind.isupper(),
        _regexp(regexp or "", number),
    )


def _regexp(source: str, number: int) -> re.Pattern[str]:
    """Wapiti's regular expression as one of Python's. RAISES (ValueError): H288 for what is none."""
    begins = source.startswith("^")
    found = re.findall(r"(\\.|[^*?]|)([*?]?)", source[begins:], flags=re.DOTALL)[:-1]
    if any(not text for text, _ in found):
        raise wrong_template(number, source, "a character before each * and ?")
    ends = found[-1:] == [("$", "")]
    units = [_character(text) + TIMES[times] for text, times in found[: len(found) - ends]]
    return re.compile("\\A" * begins + "".join(units) + "\\Z" * ends, re.DOTALL)


def _character(unit: str) -> str:
    """Regular expression of Python's for a character or a class."""
    if unit == ".":
        return unit
    name = unit[-1]
    if unit[0] == "\\" and name.lower() in CLASSES:
        return f"[{'^' * name.isupper()}{CLASSES[name.lower()]}]"
    return re.escape(name)
