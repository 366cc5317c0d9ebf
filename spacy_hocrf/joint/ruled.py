"""The best segmentation of each sequence where breaking a rule about its spans has a price.

The score of a segmentation is that of the potentials less the prices of the rules that it breaks. A rule
that is left out costs nothing, so that without some rules the best score is an upper bound. Rules are
therefore remembered (an automaton times their memory, as in engine/memory.py) only when the best
segmentation without them breaks them, and then it is sought again: where it breaks no other rule it is
the best of all. So most sequences need no rule at all, and others a few of hundreds. A price below 0 is a
reward for breaking a rule, and is left out as one that everything gets.

Where the memory would have too many states, segmentations come in the order of their scores without the
rules that are left out (engine/alternatives.py), until the next one's is below the best score found.
Where that takes too long, too, the next one's score is the bound.

Letters: D sequences, n rules.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.alternatives import ranked
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.selection import select_sequences
from spacy_hocrf.engine.viterbi import Best, viterbi
from spacy_hocrf.joint.errors import RuleErrors
from spacy_hocrf.joint.remembered import Remembering, Rules, SpanRules
from spacy_hocrf.types import Potentials, Segments

__all__ = ["RuledSearch"]

MOST_READINGS = 500
"""Segmentations of a sequence that are looked at, besides the best."""
TOGETHER = 50
"""So many of them are found before they are looked at."""
SETTLED = 1e-9
"""A bound that is higher by no more than this, relative to the score, is reached."""


class _Found(NamedTuple):
    """A segmentation of one sequence."""

    segments: Segments
    score: float  # less the prices of all rules that it breaks
    bound: float  # no segmentation has a higher score
    missing: NDArray[
        np.bool_
    ]  # [n] rules that were left out, and by which its score is below the bound

    @property
    def settled(self) -> bool:
        """Is it the best one?"""
        found = self.score > -np.inf
        return found and self.bound - self.score <= SETTLED * (1.0 + abs(self.score))

    def beside(self, other: "_Found") -> "_Found":
        """The better one of both, with the lower bound."""
        best = self if self.score >= other.score else other
        return best._replace(bound=min(self.bound, other.bound))


class RuledSearch:
    """Rules with their prices, and which of them each of D sequences has needed so far.

    rules (SpanRules): n rules.
    prices (float64 [n]): what breaking each costs, nats; inf for never.
    n_sequences (int): D.

    bounds (float64 [D]): of the last search: no segmentation has a higher score.
    """

    def __init__(self, rules: SpanRules, prices: NDArray[np.float64], n_sequences: int) -> None:
        self.rules = rules
        self.bounds = np.zeros(n_sequences)
        self._remembered: list[Rules] = [()] * n_sequences
        self.set_prices(prices)

    def set_prices(self, prices: NDArray[np.float64]) -> None:
        """Other prices of the same rules."""
        self._prices = prices
        self._free = np.maximum(-prices, 0.0)  # what a rule is worth that is left out
        self._rank = np.argsort(np.argsort(-np.abs(prices), kind="stable")).tolist()

    def best(self, potentials: Potentials, automaton: Automaton, buffers: Buffers) -> Best:
        """The best segmentations that are found, and their scores.

        potentials (Potentials): log potentials of the D sequences. automaton (Automaton): without rules.
        buffers (Buffers): of this automaton.
        RAISES (ValueError): H310 where every segmentation breaks a rule that none may break.
        """
        plain = [i for i, rules in enumerate(self._remembered) if not rules]
        own = np.array(plain, dtype=np.int64)
        some = potentials if len(own) == len(self.bounds) else select_sequences(potentials, own)
        found = dict(zip(plain, self._read(viterbi(some, automaton, buffers=buffers), ())))
        for i in range(len(self.bounds)):
            if i not in found or not found[i].settled:
                found[i] = self._one(i, potentials.only(i), automaton, found.get(i))
        self.bounds = np.array([found[i].bound for i in range(len(found))])
        return _joined([found[i] for i in range(len(found))])

    def _one(
        self, i: int, potentials: Potentials, automaton: Automaton, plain: _Found | None
    ) -> _Found:
        """The best segmentation of a sequence.

        plain (Optional[_Found]): the best without any rule, if it has been sought.
        """
        rules = self._remembered[i]
        best = plain or self._search(potentials, automaton, rules)
        wanted, latest = set(rules), best
        while not best.settled and best.bound > -np.inf:
            wanted |= set(np.flatnonzero(latest.missing).tolist())
            wider = self._fitting(wanted)
            if wider == rules:
                best = self._look_on(potentials, automaton, rules, best)
                break
            rules = wider
            latest = self._search(potentials, automaton, rules)
            best = latest.beside(best)
        self._remembered[i] = rules
        if best.score == -np.inf:
            raise ValueError(RuleErrors.H310.format(tokens=len(potentials.token)))
        return best

    def _fitting(self, wanted: set[int]) -> Rules:
        """All of some rules, or of too many those that cost most."""
        everything = tuple(sorted(wanted))
        if self.rules.fits(everything):
            return everything
        chosen: Rules = ()
        for rule in sorted(wanted, key=self._rank.__getitem__):
            wider = tuple(sorted((*chosen, rule)))
            if self.rules.fits(wider):
                chosen = wider
        return chosen

    def _search(self, potentials: Potentials, automaton: Automaton, rules: Rules) -> _Found:
        """The best segmentation of one sequence where no other rules than these count."""
        known = self.rules.remembering(automaton, rules)
        assert known is not None
        final = self._final(known)
        with self.rules.pool.lend(known.automaton) as buffers:
            best = viterbi(potentials, known.automaton, final=final, buffers=buffers)
        return next(self._read(best, rules))

    def _look_on(
        self, potentials: Potentials, automaton: Automaton, rules: Rules, best: _Found
    ) -> _Found:
        """One segmentation after the other."""
        known = self.rules.remembering(automaton, rules)
        assert known is not None
        final = self._final(known)
        with self.rules.pool.lend(known.automaton) as buffers:
            readings = ranked(potentials, known.automaton, final=final, buffers=buffers)
            for _ in range(0, MOST_READINGS, TOGETHER):
                some = list(islice(readings, TOGETHER))
                for found in self._read(_several(some), rules) if some else ():
                    best = found.beside(best)
                    if best.settled:
                        break
                if best.settled or len(some) < TOGETHER:
                    return best._replace(bound=best.score)
        return best

    def _final(self, known: Remembering) -> NDArray[np.float64]:
        """What it costs to end in each state, float64 [1, M P]."""
        prices = self._prices[list(known.rules)]
        costs = np.where(known.broken, -prices, 0.0).sum(axis=1)
        return np.repeat(costs, len(known.automaton.states) // len(costs))[None]

    def _read(self, best: Best, rules: Rules) -> Iterator[_Found]:
        """What has been found while no other rules than these counted."""
        broken = self.rules.broken(best.segments)
        worth = np.where(broken, -self._prices, 0.0)
        left_out = np.ones(len(self.rules), dtype=bool)
        left_out[list(rules)] = False
        missing = left_out & (worth < self._free)
        scores = best.scores + worth[:, left_out].sum(axis=1)
        bounds = best.scores + self._free[left_out].sum()
        # two sums of the same numbers may differ in the last bit
        bounds = np.where(missing.any(axis=1), bounds, scores)
        parts = (_part(best.segments, i) for i in range(len(scores)))
        return map(_Found, parts, scores.tolist(), bounds.tolist(), missing)


def _part(segments: Segments, i: int) -> Segments:
    """Those of one sequence."""
    own = slice(*segments.offsets[i : i + 2].tolist())
    columns = (column[own] for column in segments[1:])
    return Segments(np.array([0, own.stop - own.start]), *columns)


def _several(readings: Sequence[tuple[float, Segments]]) -> Best:
    """Several segmentations with their scores, at least one."""
    columns = map(np.concatenate, zip(*(segments[1:] for _, segments in readings)))
    offsets = offsets_of([len(segments.label) for _, segments in readings])
    return Best(Segments(offsets, *columns), np.array([score for score, _ in readings]))


def _joined(found: Sequence[_Found]) -> Best:
    """Segmentations of all sequences."""
    scores = np.array([each.score for each in found])
    if not found:
        none = np.zeros(0, dtype=np.int32)
        return Best(Segments(np.zeros(1, dtype=np.int64), none, none, none), scores)
    columns = zip(*(each.segments[1:] for each in found))
    offsets = offsets_of([len(each.segments.label) for each in found])
    return Best(Segments(offsets, *map(np.concatenate, columns)), scores)
