"""Long sequences, cut into stretches that run side by side in the lanes of the kernels.

A stretch is processed like a sequence. It consists of its own part and some additional tokens on
either side, within which alpha and beta forget that nothing lies beyond. They are positive and
every step is linear, so if the alphas of two stretches are proportional at all boundaries at which a
segment that crosses the cut may begin, they are proportional from there on; if the ratios
differ by at most 1 + ε, they never differ by more later. The first stretch of a sequence begins where the
sequence does: if the alphas of neighbours agree at each cut, and likewise the betas from the right, all
marginals are those of the whole sequence; otherwise the sequence is processed as a whole.

What is cut depends only on the length of the sequence and on the automaton. Not cut are sequences of models
in which some label has no limit, since any stretch may lie in one segment; in the search for probable
spans, those of CRFs, whose spans may be as long; where all rows are kept, as for the best path, those of
models with too many states; and sequences for expected counts.
"""

from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf import dispatch
from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.kernels.protocol import AskedSegments, Edges
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.types import Segments

__all__ = ["LONG", "SIDE_BY_SIDE", "Agreement", "Stretches", "cut"]

LONG = 4096
"""Least length of a sequence that is cut, and about the longest own part of a stretch, in tokens."""

SIDE_BY_SIDE = 8
"""The number of stretches of a sequence is a multiple of this: the lanes of the widest kernels."""

WARM = 64
"""Additional tokens on either side of a stretch's own part, beyond the longest segment."""

AGREES = 1e-10
"""Tolerance of log ratios that agree; for scores in nats it is ten times as large."""


class Agreement(NamedTuple):
    """Whether, and how, the n stretches of D sequences fit together."""

    agrees: NDArray[np.bool_]  # [D] do all stretches of the sequence agree?
    ratio: NDArray[np.float64]  # [n] log ratio of alpha to that of the next stretch, 0 for the last


@dataclass(frozen=True)
class Stretches:
    """The n stretches of D sequences; a short sequence is one stretch.

    problem (Problem): the stretches, as overlapping sequences.
    sequence (int64 [n]): sequence of each stretch, ascending.
    """

    problem: Problem
    sequence: NDArray[np.int64]

    def edges(self) -> Edges:
        """Allocate arrays for the states at the edges of the own parts."""
        automaton = self.problem.automaton
        shape = (len(self.sequence), 4, automaton.longest, len(automaton.states))
        return Edges(np.zeros(shape), np.zeros(shape[:3]))

    def compare(self, edges: Edges, lost: NDArray[np.int64], *, in_nats: bool = False) -> Agreement:
        """Check whether the alphas and betas of neighbours agree.

        edges (Edges): edges of the stretches. lost (int64 [m]): stretches in which a value was lost.
        in_nats (bool): values are log scores already, without beta, as for the best path.
        """
        agrees = np.ones(int(self.sequence[-1]) + 1, dtype=bool)
        agrees[self.sequence[lost]] = False
        ratio = np.zeros(len(self.sequence))
        joined = np.flatnonzero(self.sequence[1:] == self.sequence[:-1])
        before, after = _logs(edges, joined, in_nats), _logs(edges, joined + 1, in_nats)
        equal, ratio[joined] = _same(before[:, 1], after[:, 0], 10 * AGREES if in_nats else AGREES)
        ratio[joined] += edges.scales[joined, 1, 0] - edges.scales[joined + 1, 0, 0]
        if not in_nats:
            equal &= _same(after[:, 2], before[:, 3], AGREES)[0]
        agrees[self.sequence[joined[~equal]]] = False
        return Agreement(agrees, ratio)

    def asked(self, asked: AskedSegments) -> AskedSegments:
        """Assign segments to the stretches in whose own part they start; the answers go to the same
        array.
        """
        # the segments ascend, so those of a stretch lie between two bounds
        firsts = self.problem.potentials.offsets[:-1]
        sequence = np.repeat(np.arange(len(firsts)), np.diff(asked.offsets))
        begins = firsts[sequence] + asked.segments[:, 0]
        bounds = np.searchsorted(begins, self.problem.first + self.problem.own[:, 0])
        offsets = np.append(bounds, len(begins)).astype(np.int64)
        segments = asked.segments.copy()
        segments[:, :2] -= np.repeat(self._begins(), np.diff(offsets))[:, None]
        return AskedSegments(offsets, segments, asked.probability)

    def total(self, ratio: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log Z or best score of the sequences, float64 [D], from those of the stretches, [n]."""
        last = np.append(self.sequence[1:] != self.sequence[:-1], True)
        return np.asarray(scores[last] + np.bincount(self.sequence, ratio))

    def in_sequences(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Convert stretch, start and end of spans, the first columns of [m, …], to sequences."""
        moved, stretch = places.copy(), places[:, 0]
        moved[:, 0] = self.sequence[stretch]
        moved[:, 1:3] += self._begins()[stretch, None]
        return np.asarray(moved)

    def join(self, best: Segments, agrees: NDArray[np.bool_]) -> Segments:
        """Join the best segmentations of stretches to those of the sequences.

        Where the segmentations of two neighbours reach the same state after the cut, the joined one switches
        from the first to the second.

        agrees (bool [D]): do the alphas agree? Set to False if there is no such place; then
            the sequence has no segment.
        """
        stretch = np.repeat(np.arange(len(self.sequence)), np.diff(best.offsets))
        start, end = best.start + self._begins()[stretch], best.end + self._begins()[stretch]
        low, high = self._begins(), np.full(len(self.sequence), np.iinfo(np.int64).max)
        memory = max(len(state) for state in self.problem.automaton.states)
        for i in np.flatnonzero(self.sequence[1:] == self.sequence[:-1]).tolist():
            first, second = (slice(*best.offsets[j : j + 2]) for j in (i, i + 1))
            cut_at = int(self._begins()[i + 1] + self.problem.own[i + 1, 0])
            place = _meeting(
                (end[first], best.label[first]), (end[second], best.label[second]), cut_at, memory
            )
            agrees[self.sequence[i]] &= place >= 0
            high[i] = low[i + 1] = place
        # of each stretch, the segments between the two places where it is joined to its neighbours
        keep = (start >= low[stretch]) & (end <= high[stretch]) & agrees[self.sequence[stretch]]
        counts = np.bincount(self.sequence[stretch[keep]], minlength=len(agrees))
        columns = (np.asarray(x[keep], dtype=np.int32) for x in (start, end, best.label))
        return Segments(offsets_of(counts), *columns)

    def _begins(self) -> NDArray[np.int64]:
        """Where each stretch begins in its sequence, int64 [n]."""
        offsets = self.problem.potentials.offsets
        return np.asarray(self.problem.first - offsets[self.sequence])


def cut(problem: Problem, most: int = LONG) -> Stretches | None:
    """Cut sequences into stretches; return None if no sequence is long enough, or if they would not run
    side by side.

    problem (Problem): its automaton limits all labels, and there are no spans, initial or
        final scores. Automata with copies or final scores are not cut.
    most (int): longest own part of a stretch, in tokens.
    """
    if problem.offsets[-1] < LONG or (problem.lengths < LONG).all():
        return None
    if problem.automaton.copies > 1 or problem.automaton.final is not None:
        return None
    path, reach = dispatch.active(), problem.automaton.longest
    # number of stretches of each sequence
    n = SIDE_BY_SIDE * -(-problem.lengths // (SIDE_BY_SIDE * most))
    n = np.where(problem.lengths < LONG, 1, n)
    if (n == 1).all() or path == "single":
        return None
    # for each stretch: its sequence and number there, its own part, and this with a run-up to either side
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
    """Alpha and beta of stretches relative to the scale of each edge, in nats, float64 [m, 4, n, P]."""
    scales = edges.scales[chosen]
    with np.errstate(divide="ignore"):
        scores = edges.values[chosen] if in_nats else np.log(edges.values[chosen])
    return np.asarray(scores + (scales - scales[..., :1])[..., None])


def _same(
    first: NDArray[np.float64], second: NDArray[np.float64], tolerance: float
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Are two arrays [m, n, P] equal up to a constant for each of m, with -inf in the same places? (bool
    [m]); and the constant, [m], where they are.
    """
    live = ~np.isneginf(first)
    same = (live == ~np.isneginf(second)).all(axis=(1, 2)) & live.any(axis=(1, 2))
    with np.errstate(invalid="ignore"):
        difference = first - second
    highest = np.where(live, difference, -np.inf).max(axis=(1, 2), initial=-np.inf)
    lowest = np.where(live, difference, np.inf).min(axis=(1, 2), initial=np.inf)
    same &= highest <= lowest + tolerance
    return np.asarray(same), np.where(same, highest, 0.0)


Path = tuple[NDArray[np.int64], NDArray[np.int32]]
"""Ends and labels of segments."""


def _meeting(first: Path, second: Path, low: int, memory: int) -> int:
    """Return the first boundary, from `low` on, at which both paths end a segment and have the same state,
    since the last `memory` labels are the same; -1 if there is none.
    """
    shared, i, j = np.intersect1d(first[0], second[0], assume_unique=True, return_indices=True)
    for place, a, b in zip(shared.tolist(), i.tolist(), j.tolist()):
        if place >= low and min(a, b) + 1 >= memory:
            if (first[1][a - memory + 1 : a + 1] == second[1][b - memory + 1 : b + 1]).all():
                return int(place)
    return -1
