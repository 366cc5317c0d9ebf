"""FLAGS: what is true of a token by the letters of its text, in one number."""

import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore

from spacy_hocrf.features.columns import Lexicon, packed_flags

__all__ = ["FLAGS", "SPACY_FLAGS", "flags_of"]

HYPHENS = "-\u2010\u2011\u2012\u2013\u2014"
SPELLINGS: dict[str, Callable[[str], bool]] = {
    "HAS_DIGIT": lambda text: not text.isalpha() and any(map(str.isdigit, text)),
    # after its first letter
    "HAS_UPPER": lambda text: not text.isdigit() and any(map(str.isupper, text[1:])),
    "HAS_HYPHEN": lambda text: not text.isalnum() and any(map(HYPHENS.__contains__, text)),
    "HAS_PERIOD": lambda text: "." in text,
    # any other mark
    "HAS_PUNCT": lambda text: not text.isalnum() and any(map(_is_mark, text)),
}
"""Flags of a token that spaCy does not have, by its text."""
SPELT = Lexicon(1, 2**15)
"""Spellings of strings that have been seen, by their hashes, which are the same in every store, as bits
of FLAGS.
"""
LOCK = Lock()
SPACY_FLAGS = ("IS_UPPER", "IS_TITLE", "IS_DIGIT", "IS_PUNCT", "LIKE_NUM")
FLAGS = (*SPACY_FLAGS, *SPELLINGS)
"""What the attribute FLAGS has a bit for, the lowest first. The order is part of saved models."""


def flags_of(
    flags: Sequence[NDArray[np.uint64]], texts: NDArray[np.uint64], strings: StringStore
) -> NDArray[np.uint64]:
    """Bit i of each token says whether FLAGS[i] is true of it, uint64 [N].

    flags (Sequence[uint64 [N]]): spaCy's, in the order of SPACY_FLAGS.
    texts (uint64 [N]): hash of each token's text. strings (StringStore): has the texts.
    """
    with LOCK:
        spelt = SPELT.look_up(texts, partial(_spellings, strings))
    return packed_flags(flags, *spelt)


def _spellings(strings: StringStore, values: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Those of some texts, by their hashes, int32 [n, 1]."""
    found = [[_spelling(strings[value])] for value in values.tolist()]
    return np.array(found, dtype=np.int32)


def _spelling(text: str) -> int:
    """Bits of FLAGS that follow from a token's text alone."""
    return sum(
        told(text) << bit for bit, told in enumerate(SPELLINGS.values(), start=len(SPACY_FLAGS))
    )


def _is_mark(letter: str) -> bool:
    """Is it punctuation or a symbol, but neither hyphen nor period?"""
    return letter not in HYPHENS + "." and unicodedata.category(letter)[0] in "PS"
