"""Where places should agree, the patterns that say so: sets of cells that must all be on.

"All places are entities of this label" is one pattern for each set of places. Where the model has
segments an entity is one cell, "exactly this segment is there, with this label". Where it has
encoded tokens, there is a cell for each token, which together spell the entity; in an encoding
without ends ("bio") one more says that the token after it does not go on with it, and in one
without beginnings ("io") another says the same of the token before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.places import PlaceSets
from spacy_hocrf.model.scheme import LabelScheme

__all__ = ["LABEL", "SEGMENT", "TOKEN", "PlacePatterns", "entity_patterns", "state_patterns"]

SEGMENT, TOKEN, LABEL = range(3)
"""Kinds of vertices, in the order of `Vertices`."""
ANOTHER = 1
"""State of a label vertex whose token has another label."""


@dataclass(frozen=True)
class PlacePatterns:
    """M patterns by their n cells; the vertices are named by what they are on."""

    pattern: NDArray[np.int64]  # [n] number of the cell's pattern, ascending; none is left out
    kind: NDArray[np.int64]  # [n] SEGMENT, TOKEN or LABEL
    start: NDArray[np.int64]  # [n] first token of the vertex, counted over the batch
    end: NDArray[np.int64]  # [n] one past its last token
    label: NDArray[np.int64]  # [n] of a label vertex, else 0
    state: NDArray[np.int64]  # [n]

    def only(self, keep: NDArray[np.bool_]) -> "PlacePatterns":
        """Some of the patterns, bool [M], with new numbers."""
        cells = keep[self.pattern]
        number = np.cumsum(keep) - 1
        return PlacePatterns(
            number[self.pattern[cells]],
            *(getattr(self, name)[cells] for name in ("kind", "start", "end", "label", "state")),
        )


def state_patterns(places: PlaceSets, state: int) -> PlacePatterns:
    """All tokens of all places of a set have one state: one pattern for each set.

    state (int): engine label.
    """
    return _spelled(places, lambda length: [state] * length)


def entity_patterns(
    places: PlaceSets, scheme: LabelScheme, label: str, batch: TokenBatch
) -> PlacePatterns:
    """All places of a set are entities of one label: one pattern for each set, except where that
    cannot be. For a tagger all their tokens have the tag.

    scheme (LabelScheme): how entities are written.
    label (str): the user's label.
    """
    if scheme.encoding == "segments":
        return _exact(places, scheme, label)
    spelled = _spelled(
        places, lambda length: [s.label for s in scheme.encode_span(0, length, label)]
    )
    closed = _closed(places, scheme, label, batch)
    return _possible(_merged(spelled, closed)) if len(closed.pattern) else spelled


def _exact(places: PlaceSets, scheme: LabelScheme, label: str) -> PlacePatterns:
    """One segment for each place, where the label's limit allows it."""
    state = scheme.encode_span(0, 1, label)[0].label
    patterns = _cells(
        places.number, SEGMENT, places.start, places.end, state=np.full(len(places.start), state)
    )
    longest = np.maximum.reduceat(places.end - places.start, places.offsets[:-1])
    return patterns.only(longest <= (scheme.limits[state] or np.inf))


def _spelled(places: PlaceSets, spell: Callable[[int], Sequence[int]]) -> PlacePatterns:
    """One state for each token of each place.

    spell (Callable[[int], Sequence[int]]): the states of the tokens of a place, from its length.
    """
    lengths = places.end - places.start
    tokens = ranges(places.start, lengths)
    length = np.repeat(lengths, lengths)
    position = tokens - np.repeat(places.start, lengths)
    state = np.zeros(len(tokens), dtype=np.int64)
    for n in np.unique(lengths).tolist():
        here = length == n
        state[here] = np.array(spell(n))[position[here]]
    return _cells(np.repeat(places.number, lengths), TOKEN, tokens, tokens + 1, state=state)


def _closed(places: PlaceSets, scheme: LabelScheme, label: str, batch: TokenBatch) -> PlacePatterns:
    """That no neighbour of a place goes on with its entity; the first and the last token of a Doc
    have none.
    """
    sequence = batch.sequence[places.start]
    after = np.full(len(sequence), scheme.encoding in ("io", "bio"))
    after &= places.end < batch.offsets[sequence + 1]
    before = np.full(len(sequence), scheme.encoding == "io")
    before &= places.start > batch.offsets[sequence]
    number = np.concatenate([places.number[before], places.number[after]])
    tokens = np.concatenate([places.start[before] - 1, places.end[after]])
    # one token may be before a place and after another
    number, tokens = np.unique(np.stack([number, tokens]), axis=1)
    going_on = np.array(scheme.continuing(label), dtype=np.int64)
    n = len(going_on)
    labels = np.tile(going_on, len(number))
    tokens = np.repeat(tokens, n)
    return _cells(
        np.repeat(number, n),
        LABEL,
        tokens,
        tokens + 1,
        label=labels,
        state=np.full(len(tokens), ANOTHER),
    )


def _cells(
    pattern: NDArray[np.int64],
    kind: int,
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    *,
    state: NDArray[np.int64],
    label: NDArray[np.int64] | None = None,
) -> PlacePatterns:
    """Cells of one kind."""
    if label is None:
        label = np.zeros(len(pattern), dtype=np.int64)
    return PlacePatterns(pattern, np.full(len(pattern), kind), start, end, label, state)


def _merged(one: PlacePatterns, other: PlacePatterns) -> PlacePatterns:
    """The cells of both, where equal numbers are one pattern; those of `one` first in each."""
    order = np.argsort(np.concatenate([one.pattern, other.pattern]), kind="stable")
    return PlacePatterns(
        *(
            np.concatenate([getattr(one, name), getattr(other, name)])[order]
            for name in PlacePatterns.__dataclass_fields__
        )
    )


def _possible(patterns: PlacePatterns) -> PlacePatterns:
    """Without those that say of a token both that it has a label and that it has another: places
    that touch cannot both be entities where nothing parts them.
    """
    is_token, is_label = patterns.kind == TOKEN, patterns.kind == LABEL
    stride = int(max(patterns.label.max(), patterns.state.max())) + 1
    at = patterns.pattern * (int(patterns.end.max()) + 1) + patterns.start
    has, has_not = at * stride + patterns.state, at * stride + patterns.label
    against = np.isin(has_not[is_label], has[is_token])
    keep = np.ones(int(patterns.pattern[-1]) + 1, dtype=bool)
    keep[patterns.pattern[is_label][against]] = False
    return patterns.only(keep)
