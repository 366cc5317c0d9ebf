"""Places of a text, or of several, that should agree: where one phrase or one word occurs again.

A global template looks at a batch of Docs in groups, and finds sets of places of one group. That
all places of a set have one label, or one state, is a *global feature* of the template: it has one
weight, whichever places they are. Qian and Liu, TACL 2 (2014) §4.1.1, for identical phrases; Sutton
and McCallum (2004) for identical words, the edges of a skip-chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.features.records import recordable
from spacy_hocrf.features.tokens import TokenBatch

__all__ = [
    "Agreements",
    "GlobalTemplate",
    "GroupConsistencyTemplate",
    "IdenticalPhrasesTemplate",
    "IdenticalWordsTemplate",
]


@dataclass(frozen=True)
class Agreements:
    """S sets of places that should agree, O places in all. Those of a set lie in one group, do not
    overlap, and are two or more.
    """

    offsets: NDArray[np.int64]  # [S + 1] first place of each set
    start: NDArray[np.int64]  # [O] first token, counted over the batch
    end: NDArray[np.int64]  # [O] one past the last token, in the same Doc

    def __len__(self) -> int:
        return len(self.offsets) - 1


@runtime_checkable
class GlobalTemplate(Protocol):
    """Finds places that should agree."""

    @property
    def name(self) -> str:
        """Unlike that of any other template of the model."""
        ...

    @property
    def entities(self) -> bool:
        """Is it whole entities that agree, in their label, or single tokens in their state?"""
        ...

    @property
    def outside(self) -> bool:
        """Is to be unlabelled, all of it, a feature too?"""
        ...

    @property
    def weight(self) -> float:
        """Weight of its features until they are learnt or set, nats."""
        ...

    def find(self, batch: TokenBatch, groups: NDArray[np.int64]) -> Agreements:
        """Sets of places.

        groups (int64 [D]): number of each Doc's group, ascending; places of two groups have nothing
            to do with each other.
        """
        ...


@recordable
@dataclass(frozen=True)
class IdenticalPhrasesTemplate:
    """Pairs of places with one phrase."""

    attr: str
    min_length: int
    max_length: int
    max_pairs: int
    skip_stopwords: bool
    outside: bool
    weight: float
    entities = True

    @property
    def name(self) -> str:
        return f"IdenticalPhrases[{self.attr},{self.min_length}-{self.max_length}]"

    def find(self, batch: TokenBatch, groups: NDArray[np.int64]) -> Agreements:
        lengths = range(self.min_length, self.max_length + 1)
        repeated = _repeated(batch, groups, self.attr, lengths, skip_stopwords=self.skip_stopwords)
        return _joined(
            [_pairs(at, counts, length, self.max_pairs) for at, counts, length in repeated]
        )


@recordable
@dataclass(frozen=True)
class GroupConsistencyTemplate:
    """All places with one phrase."""

    attr: str
    min_length: int
    max_length: int
    max_places: int
    skip_stopwords: bool
    outside: bool
    weight: float
    entities = True

    @property
    def name(self) -> str:
        return f"GroupConsistency[{self.attr},{self.min_length}-{self.max_length}]"

    def find(self, batch: TokenBatch, groups: NDArray[np.int64]) -> Agreements:
        lengths = range(self.min_length, self.max_length + 1)
        repeated = _repeated(batch, groups, self.attr, lengths, skip_stopwords=self.skip_stopwords)
        return _joined(
            [_bundles(at, counts, length, self.max_places) for at, counts, length in repeated]
        )


@recordable
@dataclass(frozen=True)
class IdenticalWordsTemplate:
    """Pairs of places with one word."""

    attr: str
    min_chars: int
    capitalised: bool
    max_pairs: int
    skip_stopwords: bool
    outside: bool
    weight: float
    entities = False

    @property
    def name(self) -> str:
        return f"IdenticalWords[{self.attr}]"

    def find(self, batch: TokenBatch, groups: NDArray[np.int64]) -> Agreements:
        strings = batch.strings
        values, codes = batch.distinct("ORTH")
        words = [strings[value] for value in values.tolist()]
        fits = [
            len(word) >= self.min_chars and (word[0].isupper() or not self.capitalised)
            for word in words
        ]
        chosen = np.array(fits, dtype=bool)[codes]
        repeated = _repeated(
            batch, groups, self.attr, range(1, 2), skip_stopwords=self.skip_stopwords, chosen=chosen
        )
        return _joined(
            [_pairs(at, counts, length, self.max_pairs) for at, counts, length in repeated]
        )


Repeated = tuple[NDArray[np.int64], NDArray[np.int64], int]
"""First tokens of the places, phrase by phrase and ascending; number of places of each phrase;
tokens of a phrase.
"""


def _repeated(
    batch: TokenBatch,
    groups: NDArray[np.int64],
    attr: str,
    lengths: Sequence[int],
    *,
    skip_stopwords: bool,
    chosen: NDArray[np.bool_] | None = None,
) -> list[Repeated]:
    """The phrases that occur twice or more in a group, in places that do not overlap.

    skip_stopwords (bool): leave out phrases that end with a stop word, or begin or end with
        punctuation.
    chosen (Optional[bool [N]]): tokens that phrases may have at either end; white space never is.
    """
    found: list[Repeated] = []
    if not len(batch):
        return found
    values, codes = batch.distinct(attr)
    begins = ~batch.blank if chosen is None else chosen & ~batch.blank
    ends = begins
    if skip_stopwords:
        begins = begins & (batch.column("IS_PUNCT") == 0)
        ends = begins & (batch.column("IS_STOP") == 0)
    last = batch.offsets[1:][batch.sequence]  # one past the last token of the Doc
    at = np.arange(len(batch))
    phrase = groups[batch.sequence]  # of the tokens before the last one of each place, by number
    for length in range(1, lengths[-1] + 1):
        inside = at + length <= last[at]
        at, phrase = at[inside], phrase[inside]
        numbers = (
            np.unique(phrase, return_inverse=True)[1].ravel() * len(values) + codes[at + length - 1]
        )
        phrase, counts = np.unique(numbers, return_inverse=True, return_counts=True)[1:]
        phrase = phrase.ravel()
        again = counts[phrase] > 1  # no longer phrase occurs more often
        at, phrase = at[again], phrase[again]
        if length >= lengths[0]:
            usable = begins[at] & ends[at + length - 1]
            found.append(_apart(at[usable], phrase[usable], length))
    return found


def _apart(at: NDArray[np.int64], phrase: NDArray[np.int64], length: int) -> Repeated:
    """Places that do not overlap, the first ones first."""
    order = np.argsort(phrase, kind="stable")
    at, phrase = at[order], phrase[order]
    keep = np.ones(len(at), dtype=bool)
    for i in (np.flatnonzero((np.diff(phrase) == 0) & (np.diff(at) < length)) + 1).tolist():
        before = i - 1
        while not keep[before]:  # a phrase's first place is kept
            before -= 1
        keep[i] = at[i] - at[before] >= length
    at, phrase = at[keep], phrase[keep]
    _, place, counts = np.unique(phrase, return_inverse=True, return_counts=True)
    several = counts[place.ravel()] > 1
    return at[several], counts[counts > 1], length


def _pairs(at: NDArray[np.int64], counts: NDArray[np.int64], length: int, most: int) -> Agreements:
    """Pairs of places of each phrase: all neighbours, and then the nearest ones up to `most` pairs."""
    first = np.cumsum(counts) - counts
    left = np.maximum(most, counts - 1)
    alive, distance = np.arange(len(counts)), 1
    one, other = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    while len(alive):
        taken = np.minimum(counts[alive] - distance, left[alive])
        alive, taken = alive[taken > 0], taken[taken > 0]
        left[alive] -= taken
        places = ranges(first[alive], taken)
        one.append(places)
        other.append(places + distance)
        distance += 1
    start = at[np.stack([np.concatenate(one), np.concatenate(other)], axis=1)].ravel()
    return Agreements(np.arange(0, len(start) + 1, 2), start, start + length)


def _bundles(
    at: NDArray[np.int64], counts: NDArray[np.int64], length: int, most: int
) -> Agreements:
    """All places of each phrase; of more than `most`, stretches of so many, each beginning with the
    last one of the one before.
    """
    first = np.cumsum(counts) - counts
    parts = np.maximum(1, -(-(counts - 1) // (most - 1)))
    number = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
    begin = number * (most - 1)
    sizes = np.minimum(np.repeat(counts, parts) - begin, most)
    start = at[ranges(np.repeat(first, parts) + begin, sizes)]
    return Agreements(offsets_of(sizes), start, start + length)


def _joined(parts: Sequence[Agreements]) -> Agreements:
    """Sets of several kinds, one after the other."""
    sizes = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(np.diff(part.offsets) for part in parts)]
    )
    start, end = (
        np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(part, name) for part in parts)])
        for name in ("start", "end")
    )
    return Agreements(offsets_of(sizes), start, end)
