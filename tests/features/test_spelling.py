"""What is said of a word's letters, against what Python says of each."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.features.spelling import HYPHENS, SPELLINGS, spellings

pytestmark = pytest.mark.slow

ODD = "aA1.-–—!$ⓐǅ①𐅹Ⅷ٣²ªʰ \u2011\u2015"
SAID = {
    "HAS_DIGIT": lambda word: any(map(str.isdigit, word)),
    "HAS_UPPER": lambda word: any(map(str.isupper, word[1:])),
    "HAS_HYPHEN": lambda word: any(letter in HYPHENS for letter in word),
    "HAS_PERIOD": lambda word: "." in word,
    "HAS_PUNCT": lambda word: not word.isalnum() and any(map(is_mark, word)),
}


def is_mark(letter):
    return letter not in HYPHENS + "." and unicodedata.category(letter)[0] in "PS"


def check(words):
    assert tuple(SAID) == SPELLINGS
    for word, bits in zip(words, spellings(words)[:, 0].tolist()):
        expected = {name for name, is_true in SAID.items() if is_true(word)}
        assert {name for i, name in enumerate(SPELLINGS) if bits >> i & 1} == expected, ascii(word)


@given(st.lists(st.text() | st.text(alphabet=ODD)))
def test_bits_are_what_each_letter_says(words):
    check(words)


def test_every_letter_after_another_and_alone():
    letters = [chr(i) for i in range(sys.maxunicode + 1)]
    check(letters)
    check(["a" + letter for letter in letters])
