"""Wapiti's regular expressions: in linear time what its backtracking finds."""

import random

import pytest

from spacy_hocrf.features.regexps import Regexp

pytestmark = pytest.mark.slow

LETTERS = {".": lambda c: True, "\\d": str.isdigit, "\\u": str.isupper, "\\.": ".".__eq__}


def backtracking(units, ends, text, count=0):
    """Do units match the beginning of a text? How many characters has Wapiti counted then?"""
    if not units:
        return not (ends and text), count
    (letter, times), later = units[0], units[1:]
    fits = bool(text) and LETTERS.get(letter, letter.__eq__)(text[0])
    if times == "":
        return backtracking(later, ends, text[1:], count + 1) if fits else (False, count + 1)
    if times == "?":
        if fits:
            matches, more = backtracking(later, ends, text[1:], count + 1)
            if matches:
                return True, more
            count = more - 1
        return backtracking(later, ends, text, count)
    matches, more = backtracking(later, ends, text, count)
    if matches:
        return True, more
    return backtracking(units, ends, text[1:], count + 1) if fits else (False, count + 1)


@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("ends", [True, False])
def test_what_it_takes_is_what_backtracking_takes(begins, ends):
    draw, some = random.Random(4), 0
    for _ in range(3000):
        letters = [draw.choice(["a", "b", *LETTERS]) for _ in range(draw.randint(0, 5))]
        units = [(letter, draw.choice(["", "", "*", "?"])) for letter in letters]
        text = "".join(draw.choice("abA1.") for _ in range(draw.randint(0, 6)))
        source = "^" * begins + "".join(map("".join, units)) + "$" * ends
        expected = None
        for place in range(1 if begins else len(text) + 1):
            matches, count = backtracking(units, ends, text[place:])
            if matches:
                expected = f"{text}\0"[place : place + count]
                break
        assert Regexp.parse(source).search(text) == expected, (source, text)
        some += expected is not None
    assert some > 200


@pytest.mark.parametrize("source", [".*" * 300 + "x", ".?" * 300 + "x", "a*" * 200 + "$"])
def test_what_would_be_looked_at_for_ever_is_looked_at_once(source):
    """Each unit meets each place once, with no call within a call."""
    met = []

    class Counting:
        def __init__(self, fits):
            self.fits = fits

        def match(self, letter):
            met.append(letter)
            return self.fits.match(letter)

    found = Regexp.parse(source)
    counting = [unit._replace(fits=Counting(unit.fits)) for unit in found.units]
    text = "a" * 2000
    taken = Regexp(tuple(counting), found.begins, found.ends).search(text)
    assert (taken is None) == source.endswith("x")
    assert len(met) == len(found.units) * len(text)
