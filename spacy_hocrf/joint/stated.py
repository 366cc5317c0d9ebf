"""Patterns of places with a state for each: `spacy-hocrf.Pattern.v1`.

The generalized higher-order patterns of Qian and Liu, TACL 2 (2014) §2.1: any places, each in any
state, with a weight of either sign.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from spacy.matcher import Matcher

from spacy_hocrf.features.dollars import with_dollars
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.places import PlaceSets
from spacy_hocrf.joint.templates import checked_weight, refuse_joint

__all__ = ["MatchedPlaces", "Pattern", "Places"]

NAME = "pattern"
"""Name of the pattern in its matcher."""
PLACE = "PLACE"
"""Key in a token of the pattern: the token's place, removed before spaCy gets the pattern."""


@runtime_checkable
class Places(Protocol):
    """An object that finds sets of places, such as a joint template."""

    @property
    def name(self) -> str:
        """Unique name among the places of the model."""
        ...

    def find(self, batch: TokenBatch, groups: NDArray[np.int64]) -> PlaceSets:
        """Return sets of places; those of a pattern have one place for each of its states, in order.

        groups (int64 [D]): number of each Doc's group, ascending.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """`spacy-hocrf.Pattern.v1`: one feature, which says that the places of a set have these states, one for
    each place.

    states (Sequence[str]): "PERSON": the place is exactly an entity of the label PERSON;
        "not PERSON": none of its tokens is in one; "O": all its tokens are unlabelled; in an encoded CRF
        also "B-PERSON" and the like: all its tokens have this state.
    places (Places): finds the sets, each with as many places: `spacy-hocrf.MatchedPlaces.v1`; for two
        states also `spacy-hocrf.IdenticalPhrases.v1`.
    weight (float): weight until it is learnt or set, nats. Learnt weights have either sign. "inf" forces the
        states on all sets of places wherever a reading can have them, "-inf" forbids them likewise; such a
        weight is not learnt, and ignored by training.
    RAISES (ValueError): H099 for fewer than two states, for places that do not have the members of `Places`,
        and for a weight that is not a number.
    """

    states: Sequence[str]
    places: Any
    weight: Any = 0.0

    outside: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", with_dollars(tuple(self.states)))
        if len(self.states) < 2 or not all(self.states):
            refuse_joint("states", list(self.states), "the states of two places or more")
        if not isinstance(self.places, Places):
            found = type(self.places).__name__
            refuse_joint("places", found, "what finds places, such as spacy-hocrf.MatchedPlaces.v1")
        object.__setattr__(self, "weight", checked_weight(self.weight))

    @property
    def name(self) -> str:
        """Name made of the places and their states."""
        return f"Pattern[{self.places.name}: {' & '.join(self.states)}]"

    def find(self, batch: TokenBatch, groups: NDArray[np.int64]) -> PlaceSets:
        """Return the sets of places that `places` finds."""
        places: PlaceSets = self.places.find(batch, groups)
        return places


@dataclass(frozen=True, kw_only=True)
class MatchedPlaces:
    """`spacy-hocrf.MatchedPlaces.v1`: places in the matches of a pattern of spaCy's `Matcher`; of overlapping
    matches the longest.

    pattern (Sequence[Mapping[str, Any]]): a `Matcher` pattern, one mapping per token. Tokens with the key
        "PLACE" and the same number, from 1 on, are one place; others are in none.
    RAISES (ValueError): H099 for a pattern without places, with gaps in their numbers, or with a place in
        two parts; E-codes of spaCy for other errors in it.
    """

    pattern: Sequence[Mapping[str, Any]]
    # place of each token, 0 for none
    _places: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", with_dollars(tuple(map(dict, self.pattern))))
        object.__setattr__(self, "_places", tuple(t.get(PLACE, 0) for t in self.pattern))
        stretches = [place for place, _ in groupby(self._places) if place]
        if not stretches or set(stretches) != set(range(1, len(stretches) + 1)):
            expected = "a pattern whose tokens have PLACE = 1, 2 and so on, each in one stretch"
            refuse_joint("pattern", list(self._places), expected)

    @property
    def name(self) -> str:
        """Name of the template in messages."""
        return f"MatchedPlaces{list(self.pattern)}"

    def find(self, batch: TokenBatch, groups: NDArray[np.int64]) -> PlaceSets:
        """Return the places of every match."""
        rows = list[tuple[int, int]]()
        size = max(self._places)
        if len(batch.docs):
            matcher: Any = self._matcher(batch.docs[0].vocab)  # its stub lacks with_alignments
            for doc, first in zip(batch.docs, batch.offsets.tolist()):
                for _, start, _, tokens in matcher(doc, with_alignments=True):
                    rows += self._found(first + start, tokens, size)
        starts, ends = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        offsets = np.arange(0, len(rows) + 1, size, dtype=np.int64)
        return PlaceSets(offsets, np.ascontiguousarray(starts), np.ascontiguousarray(ends))

    def _matcher(self, vocab: Any) -> Matcher:
        matcher = Matcher(vocab)
        plain = [{k: v for k, v in token.items() if k != PLACE} for token in self.pattern]
        matcher.add(NAME, [plain], greedy="LONGEST")
        return matcher

    def _found(self, start: int, tokens: Sequence[int], size: int) -> list[tuple[int, int]]:
        """First token and one past the last of each place of a match, by number; [] if one is empty.

        tokens (Sequence[int]): for each token of the match, its place in the pattern.
        """
        bounds = list[tuple[int, int]]()
        for place in range(1, size + 1):
            numbers = [i for i, token in enumerate(tokens) if self._places[token] == place]
            if not numbers:
                return []
            bounds.append((start + numbers[0], start + numbers[-1] + 1))
        return bounds
