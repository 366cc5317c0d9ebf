"""All segmentations of some sequences as the paths of a graph, with the log potentials of their
segments as scores.

A path goes from boundary to boundary: from a forward state p at u by an arc c(p, y) into an open
state o, which costs what is known when a segment starts, and on into the state at v that o leads
to, which costs the rest of the segment [u, v):

    (u, p) → (u, o)            const and start scores of the arc
    (u, o) → (v, target o)     body(u, v, k), as in engine/kernels/forward.pxi

The flows of one unit through it have these paths as their vertices, so that a linear program can
contain a semi-CRF. Only what the left can reach is there.

Extents: N tokens, D sequences, Y labels, P forward states, C arcs, K bodies, O open states,
n edges, m nodes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.kernels.trees import add_suffixes
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.engine.viterbi import Best
from spacy_hocrf.types import CONTINUE, END, FIRST, INNER, LAST, START, TOKEN, Potentials, Segments

__all__ = ["Lattice", "build_lattice"]


@dataclass(frozen=True)
class Lattice:
    """Edges between the nodes of all sequences; a node on the right has a higher number."""

    offsets: NDArray[np.int64]  # [D + 1] first node of each sequence, where its paths begin
    # [levels + 1] nodes between which there are no edges: those of states, or of open states, at a
    # boundary
    levels: NDArray[np.int64]
    is_last: NDArray[np.bool_]  # [m] do paths end here?
    tail: NDArray[np.int64]  # [n]
    head: NDArray[np.int64]  # [n]
    scores: NDArray[np.float64]  # [n] nats
    start: NDArray[np.int64]  # [n] first token of a segment, counted over all sequences
    end: NDArray[np.int64]  # [n]
    # [n] its label; -1 for an edge into an open state, which is no segment
    label: NDArray[np.int64]

    def good_enough(self, scores: NDArray[np.float64], slack: float) -> NDArray[np.bool_]:
        """Which edges are on a path that is worse than the best of its sequence by no more than the
        slack.

        scores (float64 [n]): of the edges.
        slack (float): nats.
        RETURNS (bool [n])
        """
        order = np.argsort(self.tail, kind="stable")
        bounds = np.searchsorted(self.tail[order], self.levels).tolist()
        by_level = [order[low:high] for low, high in pairwise(bounds)]
        left = np.full(len(self.is_last), -np.inf)  # the best path to every node
        left[self.offsets[:-1]] = 0.0
        for edges in by_level:
            np.maximum.at(left, self.head[edges], left[self.tail[edges]] + scores[edges])
        right = np.where(self.is_last, 0.0, -np.inf)  # and from it
        for edges in reversed(by_level):
            np.maximum.at(right, self.tail[edges], scores[edges] + right[self.head[edges]])
        best = right[self.offsets[:-1]]
        sequence = np.searchsorted(self.offsets, self.tail, side="right") - 1
        through = left[self.tail] + scores + right[self.head]
        return (through > -np.inf) & (through >= best[sequence] - slack)

    def only(self, edges: NDArray[np.int64]) -> "Lattice":
        """A lattice with the same nodes and some of the edges, int64 [n']."""
        some = {
            name: getattr(self, name)[edges]
            for name in ("tail", "head", "scores", "start", "end", "label")
        }
        return replace(self, **some)

    def best_along(self, flow: NDArray[np.float64], offsets: NDArray[np.int64]) -> Best:
        """The segmentations along the largest flows.

        flow (float64 [n]): one unit through each sequence.
        offsets (int64 [D + 1]): first token of each sequence.
        """
        order = np.argsort(self.tail, kind="stable")
        leaving = np.searchsorted(self.tail[order], np.arange(len(self.is_last) + 1))
        taken: list[int] = []
        counts, scores = [0], np.zeros(len(offsets) - 1)
        for i, node in enumerate(self.offsets[:-1].tolist()):
            while not self.is_last[node]:
                out = order[leaving[node] : leaving[node + 1]]
                edge = int(out[np.argmax(flow[out])])
                scores[i] += self.scores[edge]
                if self.label[edge] >= 0:
                    taken.append(edge)
                node = int(self.head[edge])
            counts.append(len(taken))
        base = np.repeat(offsets[:-1], np.diff(counts))
        start, end = (
            (self.start[taken] - base).astype(np.int32),
            (self.end[taken] - base).astype(np.int32),
        )
        label = self.label[taken].astype(np.int32)
        return Best(Segments(np.array(counts, dtype=np.int64), start, end, label), scores)


def build_lattice(
    potentials: Potentials,
    automaton: Automaton,
    *,
    most_edges: float = np.inf,
    wanted: Callable[[Lattice], NDArray[np.int64]] | None = None,
) -> Lattice | None:
    """The lattice of D sequences. Segments are listed one by one: n is of the order of N times open
    states times longest segment.

    potentials (Potentials): log potentials.
    automaton (Automaton): the arcs of the same patterns.
    most_edges (float): give up where there would be more.
    wanted (Optional[Callable]): which edges of a sequence's lattice stay; the others do not count.
        None: all.
    RETURNS (Optional[Lattice]): None if there are too many.
    RAISES (ValueError): as `viterbi` for potentials that do not fit.
    """
    builder = _Builder(_Scores(Problem(potentials, automaton)), automaton)
    lattices: list[Lattice] = []
    for first, last in zip(potentials.offsets[:-1].tolist(), potentials.offsets[1:].tolist()):
        lattice = builder.build(first, last, most_edges)
        if lattice is None:
            return None
        lattices.append(lattice if wanted is None else lattice.only(wanted(lattice)))
        most_edges -= len(lattices[-1].scores)
    return _join(lattices)


def _join(lattices: Sequence[Lattice]) -> Lattice:
    """The lattices of single sequences as one, their nodes one after another."""
    before = offsets_of([len(each.is_last) for each in lattices])
    of_edges = np.repeat(before[:-1], [len(each.scores) for each in lattices])

    def together(name: str, nothing: type = np.int64) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, nothing), *(getattr(each, name) for each in lattices)])

    return Lattice(
        offsets=before,
        levels=np.concatenate([[0], *(b + each.levels[1:] for b, each in zip(before, lattices))]),
        is_last=together("is_last", np.bool_),
        tail=together("tail") + of_edges,
        head=together("head") + of_edges,
        scores=together("scores", np.float64),
        start=together("start"),
        end=together("end"),
        label=together("label"),
    )


class _Scores:
    """Scores of segments that start, and of open ones."""

    def __init__(self, problem: Problem) -> None:
        self._potentials = potentials = problem.potentials
        self._automaton = automaton = problem.automaton
        self._body_length = problem.body_length
        n_tokens, n_labels = potentials.token.shape
        self._one_token = bool((automaton.limits == 1).all())
        token = np.repeat(np.arange(n_tokens), np.diff(potentials.row_offsets))
        target = problem.row_target
        of_arc = target >= 0
        arc = np.zeros((len(automaton.arcs), n_tokens))
        np.add.at(arc, (target[of_arc], token[of_arc]), potentials.row_score[of_arc])
        folded = np.flatnonzero(automaton.pattern_body[potentials.span_pattern] < 0)
        folded = folded[potentials.span_end[folded] == potentials.span_start[folded] + 1]
        places = (
            automaton.pattern_arc[potentials.span_pattern[folded]],
            potentials.span_start[folded],
        )
        np.add.at(arc, places, potentials.span_score[folded])
        add_suffixes(arc, automaton.arc_suffix)
        arc += problem.arc_const[:, None]
        dense = {
            part: np.zeros((n_tokens, n_labels)) if values is None else values
            for part, values in (
                (START, potentials.start),
                (END, potentials.end),
                (TOKEN, potentials.token),
                (INNER, potentials.inner),
            )
        }
        arc += dense[START].T[automaton.arc_label]
        if self._one_token:
            arc += (dense[TOKEN] + dense[END]).T[automaton.arc_label]
        self.arc = arc  # [C, N]
        self._parts = {}  # part → [K, N]
        for part in (END, TOKEN, INNER):
            values = np.zeros((len(automaton.body_label), n_tokens))
            if not self._one_token:
                values[:n_labels] = dense[part].T
                at = ~of_arc & (~target & 3 == part)
                np.add.at(values, (~target[at] >> 2, token[at]), potentials.row_score[at])
                add_suffixes(values, automaton.body_suffix)
            self._parts[part] = values

    def bodies(self, u: int, last: int) -> NDArray[np.float64]:
        """Scores of the segments [u, u + 1), [u, u + 2), …, [u, last) after their start; -inf for
        those that are not allowed.

        RETURNS (float64 [K, last - u]).
        """
        automaton, potentials = self._automaton, self._potentials
        token, inner, end = (self._parts[part][:, u:last] for part in (TOKEN, INNER, END))
        scores = np.cumsum(token, axis=1) + np.cumsum(inner, axis=1) - inner[:, :1] + end
        if not self._one_token:
            scores += self._body_length[
                :, np.minimum(np.arange(last - u), self._body_length.shape[1] - 1)
            ]
            for s in range(*np.searchsorted(potentials.span_start, [u, u + 1]).tolist()):
                k = int(automaton.pattern_body[potentials.span_pattern[s]])
                if k >= 0 and potentials.span_end[s] <= last:
                    tree = automaton.tree[automaton.tree_offsets[k] : automaton.tree_offsets[k + 1]]
                    scores[tree, potentials.span_end[s] - u - 1] += potentials.span_score[s]
        bits = potentials.allowed[u:last]
        goes_on = np.logical_and.accumulate(
            np.concatenate([bits[:1] & FIRST != 0, bits[1:] & CONTINUE != 0])
        )
        lengths = np.arange(1, last - u + 1)[:, None]
        possible = (
            goes_on & (bits & LAST != 0) & ((automaton.limits == 0) | (lengths <= automaton.limits))
        )
        scores[~possible.T[automaton.body_label]] = -np.inf
        return scores


class _Edges(NamedTuple):
    """Some edges of a lattice; an entry, which is no segment, has the label -1."""

    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    score: NDArray[np.float64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    label: NDArray[np.int64]


class _Builder:
    """Makes lattices of single sequences, from left to right."""

    def __init__(self, scores: _Scores, automaton: Automaton) -> None:
        self._scores = scores
        self._automaton = automaton
        self._arcs = automaton.exits  # [P, Y]
        # [O] of each open state
        self._body = np.repeat(
            np.arange(len(automaton.body_label)), np.diff(automaton.body_offsets)
        )
        self._longest = int(automaton.limits.max(initial=0)) if (automaton.limits > 0).all() else 0
        self._n_nodes = self._n_edges = 0
        self._levels: list[int] = []
        self._edges: list[_Edges] = []

    def build(self, first: int, last: int, most_edges: float) -> Lattice | None:
        """The lattice of the tokens first, …, last - 1; None if it has more edges than these."""
        self._n_nodes = self._n_edges = 0
        self._levels, self._edges = [0], []
        waiting: list[list[_Edges]] = [[] for _ in range(last - first + 1)]  # segments by their end
        for u in range(first, last + 1):
            before = self._n_nodes
            states = self._arrive(waiting[u - first]) if u > first else np.zeros(1, dtype=np.int64)
            self._n_nodes += len(states)
            self._levels.append(self._n_nodes)
            if u < last:
                opens = self._enter(u, states)
                for later, segments in enumerate(self._leave(u, last, opens), u + 1 - first):
                    waiting[later].append(segments)
                    self._n_edges += len(segments.tail)
            if self._n_edges > most_edges:
                return None
        none = np.zeros(0, dtype=np.int64)
        tail, head, score, start, end, label = map(
            np.concatenate, zip(_Edges(none, none, np.zeros(0), none, none, none), *self._edges)
        )
        return Lattice(
            np.array([0, self._n_nodes]),
            np.array(self._levels),
            np.arange(self._n_nodes) >= before,
            tail,
            head,
            score,
            start,
            end,
            label,
        )

    def _arrive(self, segments: list[_Edges]) -> NDArray[np.int64]:
        """Segments that end here get the nodes of their states. RETURNS (int64 [n]): the states
        that are reached.
        """
        if not segments:
            return np.zeros(0, dtype=np.int64)
        states, place = np.unique(
            np.concatenate([each.head for each in segments]), return_inverse=True
        )
        heads = np.split(
            self._n_nodes + place.ravel(), np.cumsum([len(each.head) for each in segments])[:-1]
        )
        self._edges += [each._replace(head=head) for each, head in zip(segments, heads)]
        return states

    def _enter(self, u: int, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """Edges from the states' nodes, the last ones so far, into nodes of open states. RETURNS
        (int64 [n]): these states.
        """
        place, label = np.nonzero(self._automaton.arc_open[self._arcs[states]] >= 0)
        arcs = self._arcs[states[place], label]
        opens, head = np.unique(
            self._automaton.arc_open[arcs].astype(np.int64), return_inverse=True
        )
        nowhere = np.full(len(arcs), -1, dtype=np.int64)
        tail = self._n_nodes - len(states) + place
        self._n_edges += len(arcs)
        self._edges.append(
            _Edges(
                tail,
                self._n_nodes + head.ravel(),
                self._scores.arc[arcs, u],
                nowhere,
                nowhere,
                nowhere,
            )
        )
        self._n_nodes += len(opens)
        self._levels.append(self._n_nodes)
        return opens

    def _leave(self, u: int, last: int, opens: NDArray[np.int64]) -> list[_Edges]:
        """The segments [u, u + 1), …, [u, last) from the open states' nodes, the last ones so far;
        heads are forward states.
        """
        scores = self._scores.bodies(u, min(last, u + self._longest) if self._longest else last)[
            self._body[opens]
        ]
        target, label = (
            self._automaton.open_target[opens].astype(np.int64),
            self._automaton.open_label[opens].astype(np.int64),
        )
        found = []
        for d in range(scores.shape[1]):
            some = np.flatnonzero(scores[:, d] > -np.inf)
            tail = self._n_nodes - len(opens) + some
            start, end = np.full(len(some), u), np.full(len(some), u + 1 + d)
            found.append(_Edges(tail, target[some], scores[some, d], start, end, label[some]))
        return found
