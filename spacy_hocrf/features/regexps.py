"""Wapiti's regular expressions: what of a text they match, to the letter.

A character, a dot for any, a class such as \\d, or \\ before another character; each alone, with * for as few
as it can, or with ? for one if it can. ^ and $ are anchors at the ends alone. What Wapiti takes of a text
begins where the match does, and has as many characters as its search has counted: an attempt that fails has
counted some, and not all of these are taken back. (Wapiti 1.5.0, pattern.c.)
"""

import re
from dataclasses import dataclass
from functools import cached_property
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
        """Part of a text that Wapiti would take, with \\0 at its end if it has counted beyond.

        RETURNS (Optional[str]): None if nothing matches.
        """
        looked_at = text[: len(self.units) + 1] if self._is_short else text
        found = self._matches(looked_at)
        for place, (matches, count) in enumerate(found[:1] if self.begins else found):
            if matches:
                return f"{text}\0"[place : place + count]
        return None

    @cached_property
    def _is_short(self) -> bool:
        """Does it look at no more characters than it has units, and at whether there is another one?"""
        return self.begins and all(unit.times != "*" for unit in self.units)

    def _matches(self, text: str) -> list[tuple[bool, int]]:
        """Does it match at each place of a text, and how many characters are counted then? [T + 1]

        Wapiti backtracks. What it finds from a unit and a place on does not depend on how it came there, so
        that it is found out once for each, from the last unit to the first.
        """
        later = [(not self.ends or place == len(text), 0) for place in range(len(text) + 1)]
        for unit in reversed(self.units):
            fits = [unit.fits.match(letter) is not None for letter in text]
            later = _REPEATED[unit.times](later, [*fits, False])
        return later


Row = list[tuple[bool, int]]
"""Of each place: do the units from one on match there, and how many characters are counted?"""


def _once(later: Row, fits: list[bool]) -> Row:
    """The unit, and the later ones behind it."""
    behind = [*later[1:], (False, 0)]
    return [(m, c + 1) if fit else (False, 1) for fit, (m, c) in zip(fits, behind)]


def _if_it_can(later: Row, fits: list[bool]) -> Row:
    """With the unit; else without it, with all that has been counted but the unit."""
    found = []
    for fit, (with_it, more), (without, count) in zip(fits, [*later[1:], (False, 0)], later):
        if fit and with_it:
            found.append((True, more + 1))
        else:
            found.append((without, count + more if fit else count))
    return found


def _as_few_as_it_can(later: Row, fits: list[bool]) -> Row:
    """Without the unit; else with one more of it."""
    found: Row = []
    more = (False, 0)
    for fit, (matches, count) in zip(reversed(fits), reversed(later)):
        if matches:
            more = True, count
        else:
            more = (more[0], more[1] + 1) if fit else (False, 1)
        found.append(more)
    return found[::-1]


_REPEATED = {"": _once, "?": _if_it_can, "*": _as_few_as_it_can}


def _character(unit: str) -> str:
    """Regular expression for a character or a class."""
    if unit == ".":
        return "(?s:.)"
    if unit[0] == "\\" and len(unit) > 1:
        name = unit[1]
        if name.lower() in CLASSES:
            return f"[{'^' if name.isupper() else ''}{CLASSES[name.lower()]}]"
        return re.escape(name)
    return re.escape(unit)
