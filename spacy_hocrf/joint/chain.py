"""The exact high-order semi-CRF as first subproblem: best segmentations of some sequences, with
rewards for segments and for tokens.

Global patterns connect two kinds of vertices. A *segment vertex* (sequence, start, end) has the
states 0..Y-1, "exactly this segment is there, with this label", and Y, "it is not". A *token
vertex* (sequence, token) has the states 0..Y-1, the label of the segment that covers the token.
Rewards of either kind are scores that the potentials of a semi-CRF have anyway, r[y] - r[Y] of a
whole segment and r[y] of a token, so that Viterbi remains exact (Nguyen et al., JMLR 15 (2014)
§2.4). Qian and Liu, TACL 2 (2014) §3.3 have a chain here.

Extents: N vertices, N_s of segments and then N_t of tokens, V cells, D sequences, Y labels.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.viterbi import Best, viterbi
from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.polytope import Polytope
from spacy_hocrf.joint.lattice import Lattice, build_lattice
from spacy_hocrf.types import Potentials, Segments

__all__ = ["SegmentationSubproblem"]

MOST_EDGES = 1_000_000
"""Of a lattice. More take a gigabyte, and no integer linear program with them ends in time."""


class SegmentationSubproblem:
    """The best segmentations of D sequences, as a `FirstSubproblem` whose own score is that of the
    potentials.

    potentials (Potentials): log potentials of the D sequences.
    automaton (Automaton): the arcs of the same patterns.
    segments (Sequence[Tuple[int, int, int]]): sequence, start and end of the segment vertices, the
        first ones.
    tokens (Sequence[Tuple[int, int]]): sequence and token of the token vertices, which follow.
        Positions are those inside the sequence.
    RAISES (ValueError): H091 for a vertex outside its sequence or given twice, H092 for a segment
        vertex that is longer than every limit, H093 for a sequence without an allowed segmentation,
        or as `viterbi` for potentials that do not fit.
    """

    def __init__(
        self,
        potentials: Potentials,
        automaton: Automaton,
        *,
        segments: Sequence[tuple[int, int, int]] | NDArray[np.int64] = (),
        tokens: Sequence[tuple[int, int]] | NDArray[np.int64] = (),
    ) -> None:
        self._segments = _vertices("segment", segments, 3, potentials.offsets)
        self._tokens = _vertices("token", tokens, 2, potentials.offsets)
        limits = automaton.limits
        self._n_labels = len(limits)
        sizes = np.repeat(
            [self._n_labels + 1, self._n_labels], [len(self._segments), len(self._tokens)]
        )
        self._offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        lengths = self._segments[:, 2] - self._segments[:, 1]
        reachable = (limits == 0) | (lengths[:, None] <= limits)  # [N_s, Y]
        for v in np.flatnonzero(~reachable.any(axis=1))[:1].tolist():
            _, start, end = self._segments[v].tolist()
            raise ValueError(
                Errors.H092.format(vertex=v, start=start, end=end, limit=int(limits.max()))
            )
        self._absent = self._offsets[1 : len(self._segments) + 1] - 1  # [N_s] cells
        # [n] in [N_s, Y]; a label whose limit forbids the length needs no span
        self._rewarded = np.flatnonzero(reachable)
        # [N_s] counted over the group
        self._first_token = potentials.offsets[self._segments[:, 0]] + self._segments[:, 1]
        self._end_token = self._first_token + lengths
        self._covered = potentials.offsets[self._tokens[:, 0]] + self._tokens[:, 1]  # [N_t]
        self._own_token = potentials.token[self._covered]
        self._arrange_spans(potentials)
        self.potentials = potentials
        self.automaton = automaton
        self._buffers = Buffers(automaton)
        self._paths: Lattice | None = None  # that `polytope` was about
        self._last = self._best = self._decode()
        for i in np.flatnonzero(np.isneginf(self._last.scores))[:1].tolist():
            raise ValueError(
                Errors.H093.format(
                    sequence=i, tokens=int(potentials.offsets[i + 1] - potentials.offsets[i])
                )
            )

    @property
    def offsets(self) -> NDArray[np.int64]:
        """First cell of each vertex, int64 [N + 1]."""
        return self._offsets

    @property
    def best(self) -> Best:
        """The segmentations that were kept, with the scores that they were found with; before that,
        the best without rewards.
        """
        return self._best

    def maximise(self, rewards: NDArray[np.float64]) -> tuple[float, NDArray[np.int32]]:
        """The highest score of segmentations of all sequences, own and rewards together, and the
        states of the vertices in them.

        rewards (float64 [V]): added to the potentials' score for every cell that is chosen; finite.
        RETURNS (tuple[float, int32 [N]]): the score in nats, and the state of each vertex. Among
            equals the choice is always the same.
        RAISES (ValueError): H006 for rewards that are not finite.
        """
        n_labels, n_segments = self._n_labels, len(self._segments)
        constant = 0.0
        if n_segments:
            of_segments = rewards[: n_segments * (n_labels + 1)].reshape(n_segments, n_labels + 1)
            absent = of_segments[:, n_labels:]
            constant = float(absent.sum())
            self._extended.span_score[self._span_place] = (
                of_segments[:, :n_labels] - absent
            ).ravel()[self._rewarded]
        if len(self._tokens):
            of_tokens = rewards[n_segments * (n_labels + 1) :].reshape(-1, n_labels)
            self._extended.token[self._covered] = self._own_token + of_tokens
        self._last = self._decode()
        return float(self._last.scores.sum()) + constant, self._states(self._last.segments)

    def keep(self) -> None:
        """The last segmentations are the best so far."""
        self._best = self._last

    def polytope(
        self, rewards: NDArray[np.float64] | None = None, slack: float = np.inf
    ) -> Polytope | None:
        """Flows of one unit through the lattice of each sequence.

        rewards (Optional[float64 [V]]): of the cells.
        slack (float): segments that are in no segmentation whose score, own and rewards together,
            is this close to the highest are left out, nats.
        RETURNS (Optional[Polytope]): None if there are too many segments.
        """
        lattice = build_lattice(self.potentials, self.automaton, most_edges=MOST_EDGES)
        if lattice is None:
            return None
        links, linked = self._links(lattice)
        cells = (self._offsets[:-1, None] + np.arange(self._n_labels)).ravel()
        if rewards is not None and slack < np.inf:
            worth = rewards[cells]
            worth[: len(self._segments) * self._n_labels] -= np.repeat(
                rewards[self._absent], self._n_labels
            )
            scores = lattice.scores + np.bincount(
                linked, weights=worth[links], minlength=len(lattice.scores)
            )
            lattice = lattice.only(np.flatnonzero(lattice.good_enough(scores, slack)))
            links, linked = self._links(lattice)
        self._paths = lattice
        is_first = np.zeros(len(lattice.is_last), dtype=bool)
        is_first[lattice.offsets[:-1]] = True
        row = np.cumsum(~lattice.is_last) - 1  # of each node that edges leave
        inner = np.flatnonzero(~lattice.is_last[lattice.head])
        n_edges = len(lattice.scores)
        return Polytope(
            scores=lattice.scores,
            rows=np.concatenate([row[lattice.tail], row[lattice.head[inner]]]),
            columns=np.concatenate([np.arange(n_edges), inner]),
            signs=np.repeat([1.0, -1.0], [n_edges, len(inner)]),
            right=is_first[~lattice.is_last].astype(np.float64),
            cells=cells,
            links=links,
            linked=linked,
        )

    def take(self, variables: NDArray[np.float64]) -> tuple[float, NDArray[np.int32]]:
        """The segmentations along the largest flows."""
        assert self._paths is not None
        self._last = self._paths.best_along(variables, self.potentials.offsets)
        return float(self._last.scores.sum()), self._states(self._last.segments)

    def _links(self, lattice: Lattice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which cells, but for those of absent segments, are sums of which edges: places in [N, Y],
        and edges.
        """
        edges = np.flatnonzero(lattice.label >= 0)
        start, end, label = lattice.start[edges], lattice.end[edges], lattice.label[edges]
        n_tokens = int(self.potentials.offsets[-1])
        vertex, exact = _matches(
            self._first_token * (n_tokens + 1) + self._end_token, start * (n_tokens + 1) + end
        )
        token, over = _inside(self._covered, start, end)
        links = (
            np.concatenate([vertex, len(self._segments) + token]) * self._n_labels
            + label[np.concatenate([exact, over])]
        )
        return links, edges[np.concatenate([exact, over])]

    def _arrange_spans(self, potentials: Potentials) -> None:
        """Potentials with a span of its own for each label of each segment vertex, among those that
        are there, in order.
        """
        vertex, label = np.divmod(self._rewarded, self._n_labels)
        start = np.concatenate([potentials.span_start, self._first_token[vertex]])
        end = np.concatenate([potentials.span_end, self._end_token[vertex]])
        order = np.lexsort((end, start))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        self._span_place = place[len(potentials.span_score) :]
        self._extended = replace(
            potentials,
            token=potentials.token.copy(),
            span_start=start[order],
            span_end=end[order],
            span_pattern=np.concatenate([potentials.span_pattern, label.astype(np.int32)])[order],
            span_score=np.concatenate([potentials.span_score, np.zeros(len(vertex))])[order],
        )

    def _decode(self) -> Best:
        return viterbi(self._extended, self.automaton, buffers=self._buffers)

    def _states(self, best: Segments) -> NDArray[np.int32]:
        """State of every vertex in segmentations that cover all tokens, int32 [N]."""
        # [tokens] of the segment that covers it
        number = np.repeat(np.arange(len(best.label)), best.end - best.start)
        there = number[self._first_token]
        exact = (best.start[there] == self._segments[:, 1]) & (
            best.end[there] == self._segments[:, 2]
        )
        of_segments = np.where(exact, best.label[there], np.int32(self._n_labels))
        return np.concatenate([of_segments, best.label[number[self._covered]]])


def _vertices(
    kind: str, listed: ArrayLike, width: int, offsets: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Vertices as an array [n, width]: the number of a sequence, and its tokens or boundaries."""
    rows = np.array(listed, dtype=np.int64).reshape(-1, width)
    inside = (rows[:, 0] >= 0) & (rows[:, 0] < len(offsets) - 1)
    length = np.where(
        inside, np.diff(offsets, append=offsets[-1])[np.where(inside, rows[:, 0], 0)], 0
    )
    end = rows[:, 1] + 1 if width == 2 else rows[:, 2]
    inside &= (rows[:, 1] >= 0) & (rows[:, 1] < end) & (end <= length)
    for v in np.flatnonzero(~inside)[:1].tolist():
        raise ValueError(
            Errors.H091.format(
                kind=kind, found=tuple(rows[v].tolist()), reason="lies in no sequence"
            )
        )
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    for row in distinct[counts > 1][:1].tolist():
        raise ValueError(Errors.H091.format(kind=kind, found=tuple(row), reason="is given twice"))
    return rows


def _matches(
    wanted: NDArray[np.int64], keys: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of places with wanted[i] == keys[j], i and j; what is wanted occurs once."""
    if not len(wanted):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    order = np.argsort(wanted)
    place = np.minimum(np.searchsorted(wanted[order], keys), len(wanted) - 1)
    found = np.flatnonzero(wanted[order[place]] == keys)
    return order[place[found]], found


def _inside(
    points: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of places with starts[j] ≤ points[i] < ends[j], i and j."""
    order = np.argsort(points)
    low, high = (np.searchsorted(points[order], bounds) for bounds in (starts, ends))
    counts = high - low
    return order[ranges(low, counts)], np.repeat(np.arange(len(starts)), counts)
