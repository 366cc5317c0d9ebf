"""Wapiti's regular expressions: what of a text they match, to the letter.

A character, a dot for any, a class such as \\d, or \\ before another character; each alone, with * for as few
as it can, or with ? for one if it can. ^ and $ are anchors at the ends alone. What Wapiti takes of a text
begins where the match does, and has as many characters as its search has counted: an attempt that fails has
counted some, and not all of these are taken back. (Wapiti 1.5.0, pattern.c.)
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Regexp"]

CLASSES = {
    "a": "A-Za-z",
    "d": "0-9",
    "l": "a-z",
    "p": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    "s": r" \t-\r",
    "u": "A-Z",
    "w": "A-Za-z0-9",
}


class _Unit(NamedTuple):
    """A character or a class, and how often."""

    fits: re.Pattern[str]
    times: str  # "", "*" or "?"


@dataclass(frozen=True)
class Regexp:
    """A regular expression.

    units (tuple): one after the other. begins, ends (bool): has it an anchor there?
    """

    units: tuple[_Unit, ...]
    begins: bool
    ends: bool

    @classmethod
    def parse(cls, source: str) -> "Regexp | None":
        """RETURNS (Optional[Regexp]): None if a * or ? has nothing before it."""
        begins = source.startswith("^")
        found = re.findall(r"(\\.|[^*?]|)([*?]?)", source[begins:], flags=re.DOTALL)[:-1]
        ends = bool(found) and found[-1] == ("$", "")
        if any(not text for text, _ in found):
            return None
        units = (_Unit(re.compile(_character(text)), times) for text, times in found)
        return cls(tuple(units)[: len(found) - ends], begins, ends)

    def search(self, text: str) -> str | None:
        """What Wapiti takes of a text, with \\0 at its end if it has counted beyond.

        RETURNS (Optional[str]): None if nothing matches.
        """
        for place in range(1 if self.begins else len(text) + 1):
            matches, count = self._match(0, text[place:], 0)
            if matches:
                return f"{text}\0"[place : place + count]
        return None

    def _match(self, number: int, text: str, count: int) -> tuple[bool, int]:
        """Do units from a number on match the beginning of a text? How many characters are counted then?"""
        if number == len(self.units):
            return not (self.ends and text), count
        unit = self.units[number]
        fits = unit.fits.match(text) is not None
        if unit.times == "":
            return self._match(number + 1, text[1:], count + 1) if fits else (False, count + 1)
        if unit.times == "?":
            if fits:
                matches, more = self._match(number + 1, text[1:], count + 1)
                if matches:
                    return True, more
                count = more - 1
            return self._match(number + 1, text, count)
        while True:
            matches, more = self._match(number + 1, text, count)
            if matches:
                return True, more
            count += 1
            if unit.fits.match(text) is None:
                return False, count
            text = text[1:]


def _character(unit: str) -> str:
    """What a character, or a class, matches."""
    if unit == ".":
        return "(?s:.)"
    if unit[0] == "\\" and len(unit) > 1:
        name = unit[1]
        if name.lower() in CLASSES:
            return f"[{'^' if name.isupper() else ''}{CLASSES[name.lower()]}]"
        return re.escape(name)
    return re.escape(unit)
