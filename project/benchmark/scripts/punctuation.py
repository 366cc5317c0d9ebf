"""The feature templates of Nguyen et al. (JMLR 15, 2014, §3.2.2) for punctuation, as the released code has them.

Words around a token and pairs of them, inside a segment once more without a distance, transitions with words. As there, a pair may
reach one word beyond the end of the text, and none beyond its start.
"""

from dataclasses import dataclass

import numpy as np
import spacy
from jmlr_templates import InnerTemplate

from spacy_hocrf.features.templates import AttributeTemplate, Events, Template, TransitionTemplate
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.types import INNER, START, TOKEN

WINDOW = range(-4, 5)


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


@spacy.registry.misc("benchmark.Punctuation.v1")
def make_punctuation_features(order: int = 1, semi: bool = True) -> list[Template]:
    """The templates of the semi-CRFs SC1 to SC3.

    order (int): 1 to 3.
    semi (bool): the paper's CRFs have other transitions and are not here.
    """
    assert semi
    word, before = ("ORTH", 0), ("ORTH", -1)
    return [
        *(AttributeTemplate((("ORTH", offset),)) for offset in WINDOW),
        *(PairTemplate(first, second) for first in WINDOW for second in WINDOW if first < second),
        InnerTemplate(),
        *(AttributeTemplate(terms, INNER) for terms in ((word,), (before,), (before, word))),
        TransitionTemplate(1),
        TransitionTemplate(1, number=1),
        *(AttributeTemplate(terms, START, 1) for terms in ((word,), (before,), (before, word))),
        *(TransitionTemplate(k) for k in range(2, order + 1)),
        *(AttributeTemplate((word,), TOKEN, k) for k in range(1, order + 1)),
    ]
