"""Patterns for places that should agree: sets of cells all of which must be chosen.

"All places are entities of this label" is one pattern for each set of places. If the model has
segments, an entity is one cell, "exactly this segment is there, with this label". If it has
encoded tokens, there is a cell for each token, which together encode the entity; in an encoding
without ends ("bio") another cell says that the next token does not continue it, and in one
without beginnings ("io") yet another says so of the preceding token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.places import PlaceSets
from spacy_hocrf.joint.templates import refuse_joint
from spacy_hocrf.model.scheme import LabelScheme

__all__ = [
    "FIELDS",
    "LABEL",
    "SEGMENT",
    "TOKEN",
    "PlacePatterns",
    "check_states",
    "entity_patterns",
    "state_patterns",
    "stated_patterns",
]

SEGMENT, TOKEN, LABEL = range(3)
"""Kinds of vertices, in the order of `Vertices`."""
FIELDS = ("kind", "start", "end", "label", "state", "place")
"""Fields of a `PlacePatterns` besides the pattern."""
NOT = "not "
ANOTHER = 1
"""State of a label vertex whose token has another label."""


@dataclass(frozen=True)
class PlacePatterns:
    """M patterns by their n cells; a vertex is identified by kind and position."""

    pattern: NDArray[np.int64]  # [n] number of the cell's pattern, ascending without gaps
    kind: NDArray[np.int64]  # [n] SEGMENT, TOKEN or LABEL
    start: NDArray[np.int64]  # [n] first token of the vertex, counted over the batch
    end: NDArray[np.int64]  # [n] one past its last token
    label: NDArray[np.int64]  # [n] of a label vertex, else 0
    state: NDArray[np.int64]  # [n]
    place: NDArray[np.int64]  # [n] first token of the place that the cell belongs to

    def only(self, keep: NDArray[np.bool_]) -> "PlacePatterns":
        """Select patterns, bool [M], and renumber them."""
        cells = keep[self.pattern]
        number = np.cumsum(keep) - 1
        return PlacePatterns(
            number[self.pattern[cells]],
            *(getattr(self, name)[cells] for name in FIELDS),
        )


def state_patterns(places: PlaceSets, state: int) -> PlacePatterns:
    """Make one pattern per set of places: all tokens of all places have one state.

    state (int): engine label.
    """
    return _spelled(places, lambda length: [state] * length)


def stated_patterns(
    places: PlaceSets, states: Sequence[str], scheme: LabelScheme, batch: TokenBatch
) -> PlacePatterns:
    """Make one pattern per set of places: its places have these states. Impossible ones are left out.

    places (PlaceSets): each set has as many places as there are states, in their order.
    states (Sequence[str]): states as in `stated.Pattern`, accepted by `check_states`.
    """
    parts, fits = list[PlacePatterns](), np.ones(len(places), dtype=bool)
    for i, state in enumerate(states):
        start, end = (bound[i :: len(states)] for bound in (places.start, places.end))
        single = PlaceSets(np.arange(len(start) + 1), start, end)
        parts.append(_stated(single, state, scheme, batch))
        if scheme.encoding == "segments" and state in scheme.labels:
            limit = scheme.limits[scheme.encode_span(0, 1, state)[0].label]
            fits &= end - start <= (limit or np.inf)
    patterns = reduce(_merged, parts).only(fits)
    return _possible(_once(patterns)) if len(patterns.pattern) else patterns


def check_states(states: Sequence[str], scheme: LabelScheme) -> None:
    """Check states. RAISES (ValueError): H099 for a state that the model does not have."""
    for state in states:
        label = state.removeprefix(NOT)
        if state not in (*scheme.labels, *scheme.names) and label not in scheme.labels:
            valid = ", ".join(dict.fromkeys((*scheme.labels, *scheme.names)))
            expected = f"one of {valid}, or one of {NOT}{', '.join(scheme.labels)}"
            refuse_joint("states", repr(state), expected)


def _stated(places: PlaceSets, state: str, scheme: LabelScheme, batch: TokenBatch) -> PlacePatterns:
    """Make one pattern per place: it has this state."""
    label = state.removeprefix(NOT)
    if state in scheme.labels:
        return _entities(places, scheme, state, batch)
    if label != state:
        lengths = places.end - places.start
        tokens = ranges(places.start, lengths)
        number, place = np.repeat([places.number, places.start], lengths, axis=1)
        return _without(number, tokens, scheme.engine_labels(label), place)
    return state_patterns(places, scheme.names.index(state))


def _once(patterns: PlacePatterns) -> PlacePatterns:
    """Remove duplicate cells from each pattern."""
    rows = np.stack([getattr(patterns, name) for name in ("pattern", *FIELDS)])
    _, first = np.unique(rows[:-1], axis=1, return_index=True)  # regardless of place
    return PlacePatterns(*rows[:, first])


def entity_patterns(
    places: PlaceSets, scheme: LabelScheme, label: str, batch: TokenBatch
) -> PlacePatterns:
    """Make one pattern per set of places: all places are entities of one label. Impossible ones are left
    out. For a tagger, all their tokens have the tag.

    scheme (LabelScheme): how entities are encoded.
    label (str): the user's label.
    """
    patterns = _entities(places, scheme, label, batch)
    if scheme.encoding != "segments":
        return _possible(patterns)
    limit = scheme.limits[scheme.encode_span(0, 1, label)[0].label]
    longest = np.maximum.reduceat(places.end - places.start, places.offsets[:-1])
    return patterns.only(longest <= (limit or np.inf))


def _entities(
    places: PlaceSets, scheme: LabelScheme, label: str, batch: TokenBatch
) -> PlacePatterns:
    """Patterns of entities at places, including impossible ones."""
    if scheme.encoding == "segments":
        return _exact(places, scheme, label)
    spelled = _spelled(
        places, lambda length: [s.label for s in scheme.encode_span(0, length, label)]
    )
    closed = _closed(places, scheme, label, batch)
    return _merged(spelled, closed) if len(closed.pattern) else spelled


def _exact(places: PlaceSets, scheme: LabelScheme, label: str) -> PlacePatterns:
    """One segment cell for each place."""
    state = np.full(len(places.start), scheme.encode_span(0, 1, label)[0].label)
    return _cells(places.number, SEGMENT, places.start, places.end, places.start, state=state)


def _spelled(places: PlaceSets, spell: Callable[[int], Sequence[int]]) -> PlacePatterns:
    """One token cell for each token of each place.

    spell (Callable[[int], Sequence[int]]): returns the states of a place's tokens, given its length.
    """
    # for each token: the length of its place, and its position in the place
    lengths = places.end - places.start
    tokens = ranges(places.start, lengths)
    length = np.repeat(lengths, lengths)
    position = tokens - np.repeat(places.start, lengths)
    state = np.zeros(len(tokens), dtype=np.int64)
    for n in np.unique(lengths).tolist():
        same_length = length == n
        state[same_length] = np.array(spell(n))[position[same_length]]
    number, place = np.repeat([places.number, places.start], lengths, axis=1)
    return _cells(number, TOKEN, tokens, tokens + 1, place, state=state)


def _closed(places: PlaceSets, scheme: LabelScheme, label: str, batch: TokenBatch) -> PlacePatterns:
    """Cells which say that no neighbour of a place continues its entity; the first and the last token of a
    Doc have no neighbour on one side.
    """
    sequence = batch.sequence[places.start]
    after = np.full(len(sequence), scheme.encoding in ("io", "bio"))
    after &= places.end < batch.offsets[sequence + 1]
    before = np.full(len(sequence), scheme.encoding == "io")
    before &= places.start > batch.offsets[sequence]
    number, place = (
        np.concatenate([column[before], column[after]]) for column in (places.number, places.start)
    )
    tokens = np.concatenate([places.start[before] - 1, places.end[after]])
    # one token may be before a place and after another
    (number, tokens), first = np.unique(np.stack([number, tokens]), axis=1, return_index=True)
    return _without(number, tokens, scheme.continuing(label), place[first])


def _without(
    number: NDArray[np.int64],
    tokens: NDArray[np.int64],
    labels: Sequence[int],
    place: NDArray[np.int64],
) -> PlacePatterns:
    """Cells which say that tokens have none of some engine labels."""
    n = len(labels)
    tokens = np.repeat(tokens, n)
    return _cells(
        np.repeat(number, n),
        LABEL,
        tokens,
        tokens + 1,
        np.repeat(place, n),
        label=np.tile(np.array(labels, dtype=np.int64), len(number)),
        state=np.full(len(tokens), ANOTHER),
    )


def _cells(
    pattern: NDArray[np.int64],
    kind: int,
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    place: NDArray[np.int64],
    *,
    state: NDArray[np.int64],
    label: NDArray[np.int64] | None = None,
) -> PlacePatterns:
    """Make cells of one kind."""
    if label is None:
        label = np.zeros(len(pattern), dtype=np.int64)
    return PlacePatterns(pattern, np.full(len(pattern), kind), start, end, label, state, place)


def _merged(one: PlacePatterns, other: PlacePatterns) -> PlacePatterns:
    """Merge the cells of patterns with equal numbers; those of `one` come first in each."""
    order = np.argsort(np.concatenate([one.pattern, other.pattern]), kind="stable")
    return PlacePatterns(
        *(
            np.concatenate([getattr(one, name), getattr(other, name)])[order]
            for name in ("pattern", *FIELDS)
        )
    )


def _possible(patterns: PlacePatterns) -> PlacePatterns:
    """Drop patterns which say of a token both that it has a label and that it has another: touching
    places cannot both be entities if nothing separates them.
    """
    is_token, is_label = patterns.kind == TOKEN, patterns.kind == LABEL
    stride = int(max(patterns.label.max(), patterns.state.max())) + 1
    at = patterns.pattern * (int(patterns.end.max()) + 1) + patterns.start
    has, has_not = at * stride + patterns.state, at * stride + patterns.label
    against = np.isin(has_not[is_label], has[is_token])
    keep = np.ones(int(patterns.pattern[-1]) + 1, dtype=bool)
    keep[patterns.pattern[is_label][against]] = False
    return patterns.only(keep)
