"""Attributes of the tokens of Docs as numbers, read the fastest way that spaCy has.

Most attributes that templates read belong to lexemes: all tokens with one ORTH of one vocabulary share
them. `Doc.to_array` asks every token anew, which for a flag takes three times as long as for what is the
token's own. So where there are many tokens, a Doc is made that has each of their words once, and is asked
instead.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_hocrf.features.columns import distinct

__all__ = ["MANY", "is_of_lexemes", "read_columns"]

Values = NDArray[np.uint64]

MANY = 500
"""Tokens, at least, whose words are asked once each (measured: about where it becomes faster)."""
FEW = 2
"""Attributes of lexemes for which it is not worth it."""

NAMED = frozenset(("LANG", "LENGTH", "LOWER", "PREFIX", "SHAPE", "SUFFIX"))


def is_of_lexemes(attribute: str) -> bool:
    """Do all tokens with one ORTH of one vocabulary have it in common?"""
    return attribute in NAMED or attribute.startswith(("IS_", "LIKE_"))


def read_columns(docs: Sequence[Doc], attributes: Sequence[str]) -> dict[str, Values]:
    """Attributes of all tokens of some Docs, Doc after Doc.

    docs (Sequence[Doc]): N tokens together.
    attributes (Sequence[str]): names that `Doc.to_array` knows.
    RETURNS (dict[str, uint64 [N]]): of each attribute, and of "ORTH" where that had to be read.
    """
    if sum(map(len, docs)) < MANY or len({id(doc.vocab) for doc in docs}) > 1:
        return _read_tokens(docs, attributes)
    shared = [name for name in attributes if is_of_lexemes(name)]
    if len(shared) <= FEW:
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
