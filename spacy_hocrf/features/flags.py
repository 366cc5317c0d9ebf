"""The attribute FLAGS: what is true of a token given the letters of its text, packed into one number."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore

from spacy_hocrf.features.columns import Lexicon, packed_flags
from spacy_hocrf.features.spelling import SPELLINGS, spellings
from spacy_hocrf.locks import CACHES

__all__ = ["FLAGS", "SPACY_FLAGS", "flags_of"]

SPELT = Lexicon(1, 2**15)
"""Cache of the spelling bits of FLAGS, by hash of the string; hashes are the same in all stores.
"""
SPACY_FLAGS = ("IS_UPPER", "IS_TITLE", "IS_DIGIT", "IS_PUNCT", "LIKE_NUM")
FLAGS = (*SPACY_FLAGS, *SPELLINGS)
"""The flags by bit of the attribute FLAGS, lowest bit first. The order is part of saved models."""


def flags_of(
    flags: Sequence[NDArray[np.uint64]], texts: NDArray[np.uint64], strings: StringStore
) -> NDArray[np.uint64]:
    """Return the attribute FLAGS of tokens, uint64 [N]: bit i says whether FLAGS[i] is true of the token.

    flags (Sequence[uint64 [N]]): spaCy's flags, in the order of SPACY_FLAGS.
    texts (uint64 [N]): hash of each token's text. strings (StringStore): contains the texts.
    """
    with CACHES:
        spelt = SPELT.look_up(texts, partial(_spellings, strings))
    return packed_flags(flags, *spelt)


def _spellings(strings: StringStore, values: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Bits of FLAGS that depend on the text alone, by hash of the text, int32 [n, 1]."""
    return spellings([strings[value] for value in values.tolist()], len(SPACY_FLAGS))
