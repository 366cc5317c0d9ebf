"""The feature templates of Nguyen et al. (JMLR 15, 2014) for punctuation (§3.2.2) and
bibliographies (§3.2.3), quirks included.

They reproduce the paper's models exactly and are no model for new ones: the suffix letter n-grams
are cut at the wrong place, the semi-CRFs have two weights for every transition, and a pair of words
may reach one word beyond the end of a text but none beyond its start. Use with `--code
scripts/jmlr_templates.py`.
"""

from dataclasses import dataclass

import numpy as np
import spacy

from spacy_hocrf.api import (
    INNER,
    START,
    TOKEN,
    AttributeTemplate,
    Events,
    Template,
    TokenBatch,
    TransitionTemplate,
)

WINDOW = range(-4, 5)


@dataclass(frozen=True)
class BagTemplate:
    """The words at several offsets, their distance forgotten (WKBB, WKAB)."""

    name: str
    offsets: tuple[int, ...]
    part: int = TOKEN
    order: int = 0
    width: int = 1

    def events(self, batch: TokenBatch) -> Events:
        tokens, values = [], []
        for offset in self.offsets:
            column, there = batch.shifted("ORTH", offset)
            tokens.append(np.flatnonzero(there))
            values.append(column[there])
        return Events(np.concatenate(tokens), np.concatenate(values).reshape(-1, 1))


@dataclass(frozen=True)
class InnerTemplate:
    """Every token of a segment but its first, whatever it is (EB)."""

    name: str = "EB"
    part: int = INNER
    order: int = 0
    width: int = 0

    def events(self, batch: TokenBatch) -> Events:
        return Events(np.arange(len(batch)), np.zeros((len(batch), 0), dtype=np.uint64))


@dataclass(frozen=True)
class LetterTemplate:
    """Letter n-grams of "<word>", n = 2..6: the prefix, and what the released code takes for the
    suffix (LNGB).
    """

    name: str = "LNGB"
    part: int = TOKEN
    order: int = 0
    width: int = 1

    def events(self, batch: TokenBatch) -> Events:
        tokens, values = batch.map_strings("ORTH", _letter_ngrams)
        return Events(tokens, values.reshape(-1, 1))


@dataclass(frozen=True)
class PairTemplate:
    """The words at two offsets, first < second (2WPB)."""

    first: int
    second: int
    part: int = TOKEN
    order: int = 0
    width: int = 2

    @property
    def name(self) -> str:
        return f"ORTH[{self.first}]|ORTH[{self.second}]"

    def events(self, batch: TokenBatch) -> Events:
        first, _ = batch.shifted("ORTH", self.first)
        second, there = batch.shifted("ORTH", self.second)
        begun = np.arange(len(batch)) + self.first >= batch.offsets[:-1][batch.sequence]
        tokens = np.flatnonzero(there & begun)
        return Events(tokens, np.stack([first, second], axis=1)[tokens])


def _letter_ngrams(word: str) -> list[str]:
    word = f"<{word}>"
    ngrams = []
    for n in range(2, min(6, len(word)) + 1):
        ngrams.append("#" + word[:n])
        start = len(word) - 2 * n + 1  # the suffix would begin at len(word) - n
        if start > 0:
            ngrams.append("#" + word[start : start + n])
    return ngrams


@spacy.registry.misc("jmlr.Bag.v1")
def make_bag(name: str, offsets: list[int]) -> list[Template]:
    """A block with the words at several offsets, their distance forgotten."""
    return [BagTemplate(name, tuple(offsets))]


@spacy.registry.misc("jmlr.Letters.v1")
def make_letters() -> list[Template]:
    """A block with the letter n-grams of the released code."""
    return [LetterTemplate()]


@spacy.registry.misc("references.JMLR.v1")
def make_jmlr_features(order: int = 1, semi: bool = True) -> list[Template]:
    """The 12 base templates, the semi-CRF's second transition, and the label patterns of the higher
    orders.

    order (int): 1 to 3, the paper's C1-C3 and SC1-SC3.
    semi (bool): SC instead of C.
    RETURNS (list[Template]): all templates.
    """
    templates: list[Template] = [
        AttributeTemplate((("ORTH", 0),)),
        AttributeTemplate((("ORTH", -1),)),
        AttributeTemplate((("ORTH", 1),)),
        BagTemplate("WKBB", (-1, -2, -3, -4)),
        BagTemplate("WKAB", (1, 2, 3, 4)),
        LetterTemplate(),
        InnerTemplate(),
        AttributeTemplate((("ORTH", 0),), INNER),
        AttributeTemplate((("ORTH", -1),), INNER),
        TransitionTemplate(1),
        AttributeTemplate((("ORTH", 0),), START, 1),
        AttributeTemplate((("ORTH", -1),), START, 1),
    ]
    if semi:
        templates.append(TransitionTemplate(1, number=1))
    templates += [TransitionTemplate(k) for k in range(2, order + 1)]
    return templates


@spacy.registry.misc("punctuation.JMLR.v1")
def make_punctuation_features(order: int = 1, semi: bool = True) -> list[Template]:
    """Words and pairs of words around a token, inside a segment without a distance, and
    transitions, alone and with words.

    order (int): 1 to 3, the paper's C1-C3 and SC1-SC3.
    semi (bool): SC instead of C: the second transition, and label pairs with every word of the last
        segment.
    RETURNS (list[Template]): all templates.
    """
    word, before = ("ORTH", 0), ("ORTH", -1)
    contexts = ((word,), (before,), (before, word))
    templates: list[Template] = [
        *(AttributeTemplate((("ORTH", offset),)) for offset in WINDOW),
        *(PairTemplate(first, second) for first in WINDOW for second in WINDOW if first < second),
        InnerTemplate(),
        *(AttributeTemplate(terms, INNER) for terms in contexts),
        TransitionTemplate(1),
        *(AttributeTemplate(terms, START, 1) for terms in contexts),
    ]
    if semi:
        templates += [TransitionTemplate(1, number=1), AttributeTemplate((word,), TOKEN, 1)]
    for k in range(2, order + 1):
        templates += [TransitionTemplate(k), AttributeTemplate((word,), TOKEN, k)]
    return templates
