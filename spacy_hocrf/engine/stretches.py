"""Long sequences, cut into stretches that go side by side through the lanes of the kernels.

A stretch is worked on as a sequence by itself. It has a part of its own and some tokens more on
either side, from which alpha and beta come to forget that nothing lies beyond. They are positive and
every step is linear, so that where the alphas of two stretches are the same but for a factor, at all
boundaries at which a segment may begin that crosses the cut, they are so from there on; with ratios
that differ by at most 1 + ε, by no more later. The first stretch of a sequence begins where the
sequence does: if the alphas of neighbours agree at each cut, and the betas from the right alike, all
marginals are those of the whole sequence, and where they do not the sequence is worked on as a whole.

What is cut depends on the length of the sequence and on the automaton alone. Left whole are models in
which some label has no limit, since any stretch may lie in one segment; in search of probable spans,
CRFs, whose spans may be as long; where all rows are kept, as for the best path, models with too many
states; and sequences of which counts are expected.
"""

from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf import dispatch
from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.kernels.protocol import Asked, Edges
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.types import Segments

__all__ = ["LONG", "SIDE_BY_SIDE", "Agreement", "Stretches", "cut"]

LONG = 4096
"""Tokens of a sequence that is cut, and about the most of a stretch's own part."""

SIDE_BY_SIDE = 8
"""A sequence has so many stretches, or a multiple: the lanes of the widest kernels."""

WARM = 64
"""Tokens on either side of a stretch's own part, beyond the longest segment."""

AGREES = 1e-10
"""Log ratios that differ by no more are the same; in nats they are ten times less exact."""


class Agreement(NamedTuple):
    """How the stretches of D sequences, n in all, fit together."""

    whole: NDArray[np.bool_]  # [D] what is known of all its stretches holds for the sequence
    ratio: NDArray[np.float64]  # [n] log ratio of alpha to that of the next stretch, 0 for the last


@dataclass(frozen=True)
class Stretches:
    """Stretches of D sequences, n in all; a short sequence is one.

    problem (Problem): of the stretches, as sequences that overlap.
    sequence (int64 [n]): that each is of, ascending.
    """

    problem: Problem
    sequence: NDArray[np.int64]

    def edges(self) -> Edges:
        """Room for what the kernels know at the edges of the own parts."""
        automaton = self.problem.automaton
        shape = (len(self.sequence), 4, automaton.longest, len(automaton.states))
        return Edges(np.zeros(shape), np.zeros(shape[:3]))

    def compare(self, edges: Edges, lost: NDArray[np.int64], *, in_nats: bool = False) -> Agreement:
        """Do the alphas and betas of neighbours agree?

        edges (Edges): of the stretches. lost (int64 [m]): those in which a value was lost.
        in_nats (bool): they are log scores already, and there is no beta: that of the best path.
        """
        whole, ratio = np.ones(int(self.sequence[-1]) + 1, dtype=bool), np.zeros(len(self.sequence))
        whole[self.sequence[lost]] = False
        joined = np.flatnonzero(self.sequence[1:] == self.sequence[:-1])
        before, after = _logs(edges, joined, in_nats), _logs(edges, joined + 1, in_nats)
        agree, ratio[joined] = _same(before[:, 1], after[:, 0], 10 * AGREES if in_nats else AGREES)
        ratio[joined] += edges.scales[joined, 1, 0] - edges.scales[joined + 1, 0, 0]
        if not in_nats:
            agree &= _same(after[:, 2], before[:, 3], AGREES)[0]
        whole[self.sequence[joined[~agree]]] = False
        return Agreement(whole, ratio)

    def asked(self, asked: Asked) -> Asked:
        """The segments of each stretch that start in its own part; the answers go to the same
        array.
        """
        firsts = self.problem.potentials.offsets[:-1]
        sequence = np.repeat(np.arange(len(firsts)), np.diff(asked.offsets))
        begins = firsts[sequence] + asked.segments[:, 0]
        bounds = np.searchsorted(begins, self.problem.first + self.problem.own[:, 0])
        offsets = np.append(bounds, len(begins)).astype(np.int64)
        segments = asked.segments.copy()
        segments[:, :2] -= np.repeat(self._begins(), np.diff(offsets))[:, None]
        return Asked(offsets, segments, asked.probability)

    def total(self, ratio: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """log Z or best score of the sequences, float64 [D], from those of the stretches, [n]."""
        last = np.append(self.sequence[1:] != self.sequence[:-1], True)
        return np.asarray(scores[last] + np.bincount(self.sequence, ratio))

    def in_sequences(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Stretch, start and end of spans, the first columns of [m, …], in whole sequences."""
        moved, stretch = places.copy(), places[:, 0]
        moved[:, 0] = self.sequence[stretch]
        moved[:, 1:3] += self._begins()[stretch, None]
        return np.asarray(moved)

    def join(self, best: Segments, whole: NDArray[np.bool_]) -> Segments:
        """The best segmentations of the sequences, from those of their stretches.

        Where those of two neighbours come to the same state behind the cut, what lies before is the
        one's, and what follows the other's.

        whole (bool [D]): do the alphas agree? Where there is no such place it becomes False, and
            the sequence has no segment.
        """
        stretch = np.repeat(np.arange(len(self.sequence)), np.diff(best.offsets))
        start, end = best.start + self._begins()[stretch], best.end + self._begins()[stretch]
        low, high = self._begins(), np.full(len(self.sequence), np.iinfo(np.int64).max)
        memory = max(len(state) for state in self.problem.automaton.states)
        for i in np.flatnonzero(self.sequence[1:] == self.sequence[:-1]).tolist():
            mine, others = (slice(*best.offsets[j : j + 2]) for j in (i, i + 1))
            cut_at = int(self._begins()[i + 1] + self.problem.own[i + 1, 0])
            place = _meeting(
                (end[mine], best.label[mine]), (end[others], best.label[others]), cut_at, memory
            )
            whole[self.sequence[i]] &= place >= 0
            high[i] = low[i + 1] = place
        keep = (start >= low[stretch]) & (end <= high[stretch]) & whole[self.sequence[stretch]]
        counts = np.bincount(self.sequence[stretch[keep]], minlength=len(whole))
        columns = (np.asarray(x[keep], dtype=np.int32) for x in (start, end, best.label))
        return Segments(offsets_of(counts), *columns)

    def _begins(self) -> NDArray[np.int64]:
        """Where each stretch begins in its sequence, int64 [n]."""
        offsets = self.problem.potentials.offsets
        return np.asarray(self.problem.first - offsets[self.sequence])


def cut(problem: Problem, most: int = LONG) -> Stretches | None:
    """Stretches of the sequences, or None if no sequence is long enough, or if they would not go
    side by side.

    problem (Problem): of an automaton all of whose labels have a limit, without spans, initial or
        final scores. One that remembers more than its last labels is not cut.
    most (int): tokens of a stretch's own part, at most.
    """
    if problem.offsets[-1] < LONG or (problem.lengths < LONG).all():
        return None
    if problem.automaton.copies > 1 or problem.automaton.final is not None:
        return None
    path, reach = dispatch.active(), problem.automaton.longest
    n = np.where(problem.lengths < LONG, 1, -(-problem.lengths // (SIDE_BY_SIDE * most)))
    n = np.where(problem.lengths < LONG, n, n * SIDE_BY_SIDE)
    if (n == 1).all() or path == "single":
        return None
    sequence = np.repeat(np.arange(len(n)), n)
    number = np.arange(len(sequence)) - np.repeat(np.cumsum(n) - n, n)
    length, parts = problem.lengths[sequence], n[sequence]
    begin, end = length * number // parts, length * (number + 1) // parts
    low = np.where(number == 0, 0, np.maximum(0, begin - WARM - reach))
    high = np.where(number + 1 == parts, length, np.minimum(length, end + WARM + reach))
    stretches = copy(problem)
    stretches.lengths = high - low
    stretches.offsets = offsets_of(stretches.lengths)
    stretches.first = problem.first[sequence] + low
    stretches.own = np.stack([begin - low, end - low], axis=1)
    stretches.span_offsets = np.zeros(len(sequence) + 1, dtype=np.int64)
    stretches.plans = {path: [(path, np.argsort(-stretches.lengths, kind="stable"))]}
    return Stretches(stretches, sequence)


def _logs(edges: Edges, chosen: NDArray[np.int64], in_nats: bool) -> NDArray[np.float64]:
    """alpha and beta of some stretches beside the scale of each edge, in nats, float64 [m, 4, n, P]."""
    scales = edges.scales[chosen]
    with np.errstate(divide="ignore"):
        scores = edges.values[chosen] if in_nats else np.log(edges.values[chosen])
    return np.asarray(scores + (scales - scales[..., :1])[..., None])


def _same(
    mine: NDArray[np.float64], others: NDArray[np.float64], tolerance: float
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Are two arrays [m, n, P] the same but for one summand each, and -inf in the same places? bool
    [m]; and the summand, [m], where they are.
    """
    live = ~np.isneginf(mine)
    same = (live == ~np.isneginf(others)).all(axis=(1, 2)) & live.any(axis=(1, 2))
    with np.errstate(invalid="ignore"):
        difference = mine - others
    most = np.where(live, difference, -np.inf).max(axis=(1, 2), initial=-np.inf)
    least = np.where(live, difference, np.inf).min(axis=(1, 2), initial=np.inf)
    same &= most <= least + tolerance
    return np.asarray(same), np.where(same, most, 0.0)


Path = tuple[NDArray[np.int64], NDArray[np.int32]]
"""Ends and labels of segments."""


def _meeting(mine: Path, others: Path, low: int, memory: int) -> int:
    """The first boundary, from `low` on, before which both paths have ended a segment and then have
    the same state, because the last labels are the same, `memory` of them; -1 for none.
    """
    shared, i, j = np.intersect1d(mine[0], others[0], assume_unique=True, return_indices=True)
    for place, a, b in zip(shared.tolist(), i.tolist(), j.tolist()):
        if place >= low and min(a, b) + 1 >= memory:
            if (mine[1][a - memory + 1 : a + 1] == others[1][b - memory + 1 : b + 1]).all():
                return int(place)
    return -1
