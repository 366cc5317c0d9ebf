"""The exact high-order semi-CRF as first subproblem: best segmentations of some sequences, with
rewards for the states of vertices on them.

Rewards are potentials of the semi-CRF (`joint.rewards`), so Viterbi remains exact. Qian and Liu, TACL 2
(2014) §3.3 have a chain here.

Extents: D sequences, Y labels; V vertices, V_s of segments, V_t of tokens and V_l of labels in this
order; E cells.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import ranges
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.viterbi import Best, viterbi
from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.subproblems import Polytope
from spacy_hocrf.joint.lattice import Lattice, build_lattice
from spacy_hocrf.joint.rewards import RewardedPotentials
from spacy_hocrf.joint.vertices import Vertices
from spacy_hocrf.rules.search import BoundedBest, RuledSearch
from spacy_hocrf.types import Potentials

__all__ = ["SegmentationSubproblem"]

MOST_EDGES = 1_000_000
"""Of a lattice, without what is left out. More take a gigabyte, and no integer linear program with
them ends in time.
"""


class SegmentationSubproblem:
    """The best segmentations of D sequences, as a `FirstSubproblem` whose own score is that of the
    potentials.

    potentials (Potentials): log potentials of the D sequences.
    automaton (Automaton): the arcs of the same patterns.
    vertices (Vertices): what rewards are for.
    buffers (Optional[Buffers]): of this thread and automaton, to be used again.
    search (Optional[RuledSearch]): of the D sequences, where segmentations pay for the rules that they break.
    RAISES (ValueError): H092 for a segment vertex that is longer than every limit, H093 for a
        sequence without an allowed segmentation, or as `viterbi` for potentials that do not fit.
    """

    def __init__(
        self,
        potentials: Potentials,
        automaton: Automaton,
        vertices: Vertices,
        buffers: Buffers | None = None,
        search: RuledSearch | None = None,
    ) -> None:
        self._vertices = vertices
        self._n_labels = vertices.n_labels
        self._rewarded = RewardedPotentials(potentials, automaton.limits, vertices)
        self.potentials = potentials
        self.automaton = automaton
        self._buffers = buffers or Buffers(automaton)
        self._search = search
        self._paths: Lattice | None = None  # that `polytope` was about
        self._last: Best | BoundedBest = self._decode()
        self._best = self._last
        for i in np.flatnonzero(np.isneginf(self._last.scores))[:1].tolist():
            raise ValueError(
                Errors.H093.format(
                    sequence=i, tokens=int(potentials.offsets[i + 1] - potentials.offsets[i])
                )
            )

    @property
    def offsets(self) -> NDArray[np.int64]:
        """First cell of each vertex, int64 [V + 1]."""
        return self._vertices.offsets

    @property
    def slack(self) -> float:
        """How far the last bound lies above the score of its segmentation, see
        `FirstSubproblem.slack`: rules may be too many for the best segmentations to be known.
        """
        last = self._last
        return float((last.bounds - last.scores).sum()) if isinstance(last, BoundedBest) else 0.0

    @property
    def best(self) -> Best | BoundedBest:
        """The segmentations that were kept, with the scores that they were found with; before that,
        the best without rewards.
        """
        return self._best

    def maximise(self, rewards: NDArray[np.float64]) -> tuple[float, NDArray[np.int32]]:
        """The highest score of segmentations of all sequences, own and rewards together, and the
        states of the vertices in them.

        rewards (float64 [E]): added to the potentials' score for every cell that is chosen; finite.
        RETURNS (tuple[float, int32 [V]]): the score in nats, or an upper bound of it, see `slack`; and the
            state of each vertex. Among equals the choice is always the same.
        RAISES (ValueError): H006 for rewards that are not finite.
        """
        constant = self._rewarded.put(rewards)
        self._last = self._decode()
        states = self._vertices.states_in(self._last.segments)
        return float(self._last.scores.sum()) + self.slack + constant, states

    def spread(self) -> float:
        """By how much the potentials' scores of two segmentations of all sequences differ at most, nats."""
        high, low = (
            viterbi(each, self.automaton, buffers=self._buffers).scores.sum()
            for each in (self.potentials, _negated(self.potentials))
        )
        return float(high + low)

    def keep(self) -> None:
        """The last segmentations are the best so far."""
        self._best = self._last

    def polytope(
        self, rewards: NDArray[np.float64] | None = None, slack: float = np.inf
    ) -> Polytope | None:
        """Flows of one unit through the lattice of each sequence.

        rewards (Optional[float64 [E]]): of the cells.
        slack (float): segments that are in no segmentation whose score, own and rewards together,
            is this close to the highest are left out, nats.
        RETURNS (Optional[Polytope]): None if too many segments are left, or if there are rules, which
            would be another program.
        """
        if self._search is not None:
            return None
        cells = self._linked_cells()
        wanted: Callable[[Lattice], NDArray[np.int64]] | None = None
        if rewards is not None and slack < np.inf:
            gains = self._gains(rewards, cells)

            def wanted(lattice: Lattice) -> NDArray[np.int64]:
                links, linked = self._links(lattice)
                scores = lattice.scores + np.bincount(
                    linked, weights=gains[links], minlength=len(lattice.scores)
                )
                return np.flatnonzero(lattice.good_enough(scores, slack))

        lattice = build_lattice(
            self.potentials, self.automaton, most_edges=MOST_EDGES, wanted=wanted
        )
        if lattice is None:
            return None
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
        return float(self._last.scores.sum()), self._vertices.states_in(self._last.segments)

    def _linked_cells(self) -> NDArray[np.int64]:
        """The cells that are sums of segments, int64 [(V_s + V_t) · Y + V_l]: all but the last ones
        of segment and label vertices.
        """
        first = self._vertices.offsets[:-1]
        n_plain = len(first) - len(self._rewarded.without)
        plain = first[:n_plain, None] + np.arange(self._n_labels)
        return np.concatenate([plain.ravel(), first[n_plain:]])

    def _gains(self, rewards: NDArray[np.float64], cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Gain of linked cells, float64 as `cells`: their reward less that of the vertex's cell
        that has no link.
        """
        gains = rewards[cells]
        n_segments = len(self._rewarded.absent) * self._n_labels
        gains[:n_segments] -= np.repeat(rewards[self._rewarded.absent], self._n_labels)
        gains[len(gains) - len(self._rewarded.without) :] -= rewards[self._rewarded.without]
        return gains

    def _links(self, lattice: Lattice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which of the linked cells, by their place, are sums of which edges."""
        vertices, n_labels = self._vertices, self._n_labels
        edges = np.flatnonzero(lattice.label >= 0)
        start, end, label = lattice.start[edges], lattice.end[edges], lattice.label[edges]
        stride = int(self.potentials.offsets[-1]) + 1
        vertex, exact = _matches(
            vertices.first_token * stride + vertices.end_token, start * stride + end
        )
        token, over = _inside(vertices.token, start, end)
        labelled, under = _inside(vertices.labelled_token, start, end)
        has = vertices.labels[labelled, 2] == label[under]
        n_segments, n_tokens = len(vertices.segments), len(vertices.tokens)
        links = [
            vertex * n_labels + label[exact],
            (n_segments + token) * n_labels + label[over],
            (n_segments + n_tokens) * n_labels + labelled[has],
        ]
        return np.concatenate(links), edges[np.concatenate([exact, over, under[has]])]

    def _decode(self) -> Best | BoundedBest:
        if self._search is not None:
            return self._search.best(self._rewarded.potentials, self.automaton, self._buffers)
        return viterbi(self._rewarded.potentials, self.automaton, buffers=self._buffers)


def _negated(potentials: Potentials) -> Potentials:
    """Potentials with all scores negated."""

    def other(array: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        return None if array is None else -array

    return replace(
        potentials,
        const=-potentials.const,
        start=other(potentials.start),
        end=other(potentials.end),
        token=-potentials.token,
        inner=other(potentials.inner),
        row_score=-potentials.row_score,
        length_score=-potentials.length_score,
        span_score=-potentials.span_score,
    )


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
