"""FLAGS: what is true of a token by the letters of its text, in one number."""

from collections.abc import Sequence
from functools import partial
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore

from spacy_hocrf.features.columns import Lexicon, packed_flags
from spacy_hocrf.features.spelling import SPELLINGS, spellings

__all__ = ["FLAGS", "SPACY_FLAGS", "flags_of"]

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
    """Bits of FLAGS that follow from some texts alone, by their hashes, int32 [n, 1]."""
    return spellings([strings[value] for value in values.tolist()], len(SPACY_FLAGS))
