"""Sets of places in a batch of Docs that should agree, and the search for repeated phrases."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.features.tokens import TokenBatch

__all__ = ["PlaceSets", "Repeated", "joined_sets", "pairs", "repeated"]


@dataclass(frozen=True)
class PlaceSets:
    """U sets of places that should agree, n places in all. A set has two or more places, which are in one
    group and do not overlap.
    """

    offsets: NDArray[np.int64]  # [U + 1] first place of each set
    start: NDArray[np.int64]  # [n] first token, counted over the batch
    end: NDArray[np.int64]  # [n] one past the last token, in the same Doc

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def number(self) -> NDArray[np.int64]:
        """Number of the set of each place, int64 [n]."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


class Repeated(NamedTuple):
    """Phrases of one length, each with the places where it occurs."""

    start: NDArray[np.int64]  # [n] first token of each place, phrase by phrase and ascending
    counts: NDArray[np.int64]  # [phrases] number of places of each
    length: int  # tokens of a phrase


def repeated(
    batch: TokenBatch,
    groups: NDArray[np.int64],
    attr: str,
    lengths: Sequence[int],
    *,
    skip_stopwords: bool,
) -> list[Repeated]:
    """Find the phrases that occur twice or more in a group, at places that do not overlap.

    skip_stopwords (bool): leave out phrases that end with a stop word, or begin or end with
        punctuation. Phrases never begin or end with white space.
    """
    phrases: list[Repeated] = []
    if not len(batch):
        return phrases
    values, codes = batch.distinct(attr)
    begins = ends = ~batch.blank
    if skip_stopwords:
        begins = begins & (batch.column("IS_PUNCT") == 0)
        ends = begins & (batch.column("IS_STOP") == 0)
    last = batch.offsets[1:][batch.sequence]  # one past the last token of the Doc
    at = np.arange(len(batch))
    phrase = groups[batch.sequence]  # number of the prefix, without the last token, at each place
    for length in range(1, lengths[-1] + 1):
        inside = at + length <= last[at]
        at, phrase = at[inside], phrase[inside]
        # a phrase is a prefix and a last token, as one number
        prefix = np.unique(phrase, return_inverse=True)[1].ravel()
        numbers = prefix * len(values) + codes[at + length - 1]
        phrase, counts = np.unique(numbers, return_inverse=True, return_counts=True)[1:]
        phrase = phrase.ravel()
        again = counts[phrase] > 1  # a longer phrase occurs at most as often
        at, phrase = at[again], phrase[again]
        if length >= lengths[0]:
            usable = begins[at] & ends[at + length - 1]
            phrases.append(_apart(at[usable], phrase[usable], length))
    return phrases


def _apart(at: NDArray[np.int64], phrase: NDArray[np.int64], length: int) -> Repeated:
    """Select places that do not overlap, preferring earlier ones."""
    order = np.argsort(phrase, kind="stable")
    at, phrase = at[order], phrase[order]
    keep = np.ones(len(at), dtype=bool)
    for i in (np.flatnonzero((np.diff(phrase) == 0) & (np.diff(at) < length)) + 1).tolist():
        before = i - 1
        while not keep[before]:  # stops at the latest at the phrase's first place
            before -= 1
        keep[i] = at[i] - at[before] >= length
    # the phrases that still occur twice or more
    at, phrase = at[keep], phrase[keep]
    _, place, counts = np.unique(phrase, return_inverse=True, return_counts=True)
    several = counts[place.ravel()] > 1
    return Repeated(at[several], counts[counts > 1], length)


def pairs(phrases: Repeated, most: int) -> PlaceSets:
    """Pairs of places of each phrase: all neighbours, then the nearest others up to `most` pairs."""
    at, counts, length = phrases
    first = np.cumsum(counts) - counts
    remaining = np.maximum(most, counts - 1)
    alive, distance = np.arange(len(counts)), 1
    left, right = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    # for each distance, as many pairs of each phrase as there are, or as remain
    while len(alive):
        n_pairs = np.minimum(counts[alive] - distance, remaining[alive])
        alive, n_pairs = alive[n_pairs > 0], n_pairs[n_pairs > 0]
        remaining[alive] -= n_pairs
        places = ranges(first[alive], n_pairs)
        left.append(places)
        right.append(places + distance)
        distance += 1
    start = at[np.stack([np.concatenate(left), np.concatenate(right)], axis=1)].ravel()
    return PlaceSets(np.arange(0, len(start) + 1, 2), start, start + length)


def joined_sets(parts: Sequence[PlaceSets]) -> PlaceSets:
    """Concatenate sets of places."""
    sizes = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(np.diff(part.offsets) for part in parts)]
    )
    start, end = (
        np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(part, name) for part in parts)])
        for name in ("start", "end")
    )
    return PlaceSets(offsets_of(sizes), start, end)
