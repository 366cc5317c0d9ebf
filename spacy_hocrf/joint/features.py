"""Global features of a batch of Docs: patterns over segments and tokens that lie far apart, and the
problems that they make.

A feature is a global template with a label or a state, and has one weight. Where a set of places
should agree, each feature of its template is one pattern: "all places are entities of this label",
"all have this state". An entity is one cell where the model has segments, "exactly this segment
with this label"; where it has encoded tokens, there is a cell for each token, which together spell
the entity (an encoding without ends lets it go on after them). Qian and Liu, TACL 2 (2014) §2.1 and
§4.1.1.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import components, ranges
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.graph.instance import GraphInstance
from spacy_hocrf.joint.templates import Agreements, GlobalTemplate
from spacy_hocrf.model.scheme import OUTSIDE, LabelScheme
from spacy_hocrf.types import Segments

__all__ = ["GlobalFeatures", "JointProblem"]


class _Patterns(NamedTuple):
    """Patterns of one feature; its cells, pattern by pattern."""

    sizes: NDArray[np.int64]  # [M] cells of each pattern
    start: NDArray[np.int64]  # [E] first token, counted over the batch
    end: NDArray[np.int64]  # [E] one past the last token
    is_segment: NDArray[np.bool_]  # [E] the segment there, or the token?
    state: NDArray[np.int32]  # [E] engine label


@dataclass(frozen=True)
class JointProblem:
    """Docs that global patterns connect, to be decoded together: vertices for a
    `SegmentationSubproblem`, and the patterns.

    The segment vertices come first. A vertex's states are the engine labels, and "not there" for a
    segment vertex.
    """

    sequences: NDArray[np.int64]  # [n] numbers of the Docs in their batch
    segments: NDArray[np.int64]  # [N_s, 3] place in `sequences`, start and end inside the Doc
    tokens: NDArray[np.int64]  # [N_t, 2] place in `sequences`, token
    pattern_offsets: NDArray[np.int64]  # [M + 1] first cell of each pattern
    vertices: NDArray[np.int64]  # [E]
    states: NDArray[np.int32]  # [E]
    feature: NDArray[np.int32]  # [M] global feature of each pattern
    n_labels: int  # Y

    def instance(self, weights: NDArray[np.float64]) -> GraphInstance:
        """The patterns as the decoder takes them, with unary scores of 0: all others are the first
        subproblem's.

        weights (float64 [G]): of the global features.
        """
        sizes = np.repeat(
            [self.n_labels + 1, self.n_labels], [len(self.segments), len(self.tokens)]
        )
        return GraphInstance.from_arrays(
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            unary=np.zeros(int(sizes.sum())),
            pattern_offsets=self.pattern_offsets,
            vertices=self.vertices,
            states=self.states,
            weights=weights[self.feature],
        )

    def states_in(self, segments: Segments) -> NDArray[np.int32]:
        """State of each vertex, int32 [N], in segmentations that cover all tokens of `sequences`."""
        # [tokens] of the segment that covers it
        number = np.repeat(np.arange(len(segments.label)), segments.end - segments.start)
        first_token = np.concatenate([[0], np.cumsum(segments.end - segments.start)])[
            segments.offsets
        ]
        there = number[first_token[self.segments[:, 0]] + self.segments[:, 1]]
        exact = (segments.start[there] == self.segments[:, 1]) & (
            segments.end[there] == self.segments[:, 2]
        )
        of_segments = np.where(exact, segments.label[there], np.int32(self.n_labels))
        return np.concatenate(
            [
                of_segments,
                segments.label[number[first_token[self.tokens[:, 0]] + self.tokens[:, 1]]],
            ]
        )

    def counts(
        self, assignment: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """How often each global feature fires.

        assignment (int32 [N]): state of each vertex.
        RETURNS (tuple[int32 [n], float64 [n]]): the features that fire, each once, and how often.
        """
        fires = np.logical_and.reduceat(
            assignment[self.vertices] == self.states, self.pattern_offsets[:-1]
        )
        features, counts = np.unique(self.feature[fires], return_counts=True)
        return features, counts.astype(np.float64)


@dataclass(frozen=True)
class GlobalFeatures:
    """The features of some global templates for the labels of a model.

    templates (Tuple[GlobalTemplate, ...]): what should agree.
    scheme (LabelScheme): the labels.
    """

    templates: tuple[GlobalTemplate, ...]
    scheme: LabelScheme

    @cached_property
    def _features(self) -> tuple[tuple[int, str], ...]:
        """Template and state of each, [G]."""
        scheme = self.scheme
        outside = [OUTSIDE] if scheme.outside >= 0 else []
        states = [name for y, name in enumerate(scheme.names) if y != scheme.outside]
        return tuple(
            (k, state)
            for k, template in enumerate(self.templates)
            for state in [
                *(scheme.labels if template.entities else states),
                *(outside if template.outside else []),
            ]
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Template and label, or state, of each feature, [G]."""
        return tuple(f"{self.templates[k].name}, {state}" for k, state in self._features)

    @cached_property
    def initial_weights(self) -> NDArray[np.float64]:
        """What the templates' settings say, float64 [G]."""
        return np.array([self.templates[k].weight for k, _ in self._features], dtype=np.float64)

    def problems(
        self, batch: TokenBatch, groups: NDArray[np.int64], chosen: NDArray[np.bool_] | None = None
    ) -> Iterator[JointProblem]:
        """What of a batch must be decoded together, as small as can be; Docs that no pattern
        connects to anything are in none.

        groups (int64 [D]): number of each Doc's group, ascending; patterns connect Docs of one
            group.
        chosen (Optional[bool [G]]): leave out the other features; by default all are in.
        """
        agreements = {}
        parts: list[tuple[int, _Patterns]] = []
        for g, (k, state) in enumerate(self._features):
            if chosen is None or chosen[g]:
                if k not in agreements:
                    agreements[k] = self.templates[k].find(batch, groups)
                if len(agreements[k]):
                    parts.append(
                        (
                            g,
                            self._patterns(
                                agreements[k], state, entities=self.templates[k].entities
                            ),
                        )
                    )
        if parts:
            yield from _problems(batch, parts, self.scheme.n_labels)

    def _patterns(self, places: Agreements, state: str, *, entities: bool) -> _Patterns:
        """One pattern for each set of places, except where the label's limit forbids it."""
        scheme = self.scheme
        if not entities or state == OUTSIDE:
            number = scheme.names.index(state)
            return _token_patterns(places, lambda length: [number] * length)
        if scheme.encoding != "segments":
            return _token_patterns(
                places, lambda length: [s.label for s in scheme.encode_span(0, length, state)]
            )
        label = scheme.encode_span(0, 1, state)[0].label
        sizes = np.diff(places.offsets)
        limit = scheme.limits[label]
        fits = np.maximum.reduceat(places.end - places.start, places.offsets[:-1]) <= (
            limit or np.inf
        )
        kept = np.repeat(fits, sizes)
        cells = int(kept.sum())
        return _Patterns(
            sizes[fits],
            places.start[kept],
            places.end[kept],
            np.ones(cells, dtype=bool),
            np.full(cells, label, dtype=np.int32),
        )


def _token_patterns(places: Agreements, spell: Callable[[int], Sequence[int]]) -> _Patterns:
    """One pattern for each set of places, over their tokens.

    spell (Callable[[int], Sequence[int]]): the states of the tokens of a place, from its length.
    """
    lengths = places.end - places.start
    tokens = ranges(places.start, lengths)
    state = np.zeros(len(tokens), dtype=np.int32)
    length = np.repeat(lengths, lengths)
    position = tokens - np.repeat(places.start, lengths)
    for n in np.unique(lengths).tolist():
        state[length == n] = np.array(spell(n), dtype=np.int32)[position[length == n]]
    sizes = np.add.reduceat(lengths, places.offsets[:-1])
    return _Patterns(sizes, tokens, tokens + 1, np.zeros(len(tokens), dtype=bool), state)


def _problems(
    batch: TokenBatch, parts: Sequence[tuple[int, _Patterns]], n_labels: int
) -> Iterator[JointProblem]:
    """The patterns by the connected components of their Docs."""
    sizes, start, end, is_segment, state = (
        np.concatenate(arrays) for arrays in zip(*(patterns for _, patterns in parts))
    )
    feature = np.repeat(
        [g for g, _ in parts], [len(patterns.sizes) for _, patterns in parts]
    ).astype(np.int32)
    if not len(sizes):
        return
    sequence = batch.sequence[start]
    first_sequence = sequence[np.cumsum(sizes) - sizes]
    component = components(len(batch.offsets) - 1, sequence, np.repeat(first_sequence, sizes))
    owner = component[first_sequence]  # [M]
    order = np.argsort(owner, kind="stable")
    cells = ranges((np.cumsum(sizes) - sizes)[order], sizes[order])
    sizes, feature, owner = sizes[order], feature[order], owner[order]
    start, end, is_segment, state = start[cells], end[cells], is_segment[cells], state[cells]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    of_cell = np.repeat(owner, sizes)
    longest = int((end - start).max()) + 1
    key = ((of_cell * 2 + ~is_segment) * (len(batch) + 1) + start) * longest + (end - start)
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    number = number.ravel()
    vertex_owner = of_cell[first]
    for unit in np.unique(owner).tolist():
        m = slice(*np.searchsorted(owner, [unit, unit + 1]).tolist())
        v = slice(*np.searchsorted(vertex_owner, [unit, unit + 1]).tolist())
        e = slice(int(bounds[m.start]), int(bounds[m.stop]))
        sequences = np.flatnonzero(component == unit)
        at = first[v]
        place = np.searchsorted(sequences, batch.sequence[start[at]])
        base = batch.offsets[sequences[place]]
        rows = np.stack([place, start[at] - base, end[at] - base], axis=1)
        yield JointProblem(
            sequences=sequences,
            segments=rows[is_segment[at]],
            tokens=rows[~is_segment[at], :2],
            pattern_offsets=bounds[m.start : m.stop + 1] - bounds[m.start],
            vertices=number[e] - v.start,
            states=state[e],
            feature=feature[m],
            n_labels=n_labels,
        )
