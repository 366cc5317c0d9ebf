"""Reads attributes of the tokens of Docs as numbers, in the fastest way that spaCy has.

Most attributes that templates read belong to lexemes: all tokens with the same ORTH and vocabulary share
them. `Doc.to_array` looks them up for every token anew, which for a flag takes three times as long as an
attribute of the token itself. So where there are many tokens, these attributes are read from an extra Doc
that has each distinct word once.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_hocrf.features.columns import distinct

__all__ = ["MIN_TOKENS", "Values", "is_of_lexemes", "token_columns"]

Values = NDArray[np.uint64]

MIN_TOKENS = 500
"""Least number of tokens for which words are looked up once each (measured: about where it pays)."""
MAX_COPIED = 2
"""Number of lexeme attributes up to which it does not pay."""

NAMED = frozenset(("LANG", "LENGTH", "LOWER", "PREFIX", "SHAPE", "SUFFIX"))


def is_of_lexemes(attribute: str) -> bool:
    """Is the attribute the same for all tokens with the same ORTH and vocabulary?"""
    return attribute in NAMED or attribute.startswith(("IS_", "LIKE_"))


def token_columns(docs: Sequence[Doc], attributes: Sequence[str]) -> dict[str, Values]:
    """Return attributes of all tokens of some Docs, Doc after Doc.

    docs (Sequence[Doc]): Docs with N tokens in all.
    attributes (Sequence[str]): names that `Doc.to_array` knows.
    RETURNS (dict[str, uint64 [N]]): each attribute, and "ORTH" if it had to be read.
    """
    if sum(map(len, docs)) < MIN_TOKENS or len({id(doc.vocab) for doc in docs}) > 1:
        return _read_tokens(docs, attributes)
    shared = [name for name in attributes if is_of_lexemes(name)]
    if len(shared) <= MAX_COPIED:
        return _read_tokens(docs, attributes)
    own = [name for name in dict.fromkeys((*attributes, "ORTH")) if name not in shared]
    columns = _read_tokens(docs, own)
    words, codes = distinct(columns["ORTH"])
    of_words = _read_tokens([Doc(docs[0].vocab, words=words.tolist())], shared)
    return columns | {name: column[codes] for name, column in of_words.items()}


def _read_tokens(docs: Sequence[Doc], attributes: Sequence[str]) -> dict[str, Values]:
    """Read attributes from every token."""
    names: list[int | str] = [*attributes]
    arrays = [doc.to_array(names) for doc in docs]
    table = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return dict(zip(attributes, table.reshape(-1, len(attributes)).T.copy()))
