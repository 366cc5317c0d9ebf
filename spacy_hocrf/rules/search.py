"""The best segmentation of each sequence when broken rules about its spans are penalised.

The score of a segmentation is that of the potentials minus the prices of the rules that it breaks. A rule
that is left out costs nothing, so the best score without some rules is an upper bound. Rules are therefore
added (as a product automaton, see engine/rules.py) only when the best segmentation without them breaks them,
and the search is repeated: once its result breaks no further rule, it is optimal. So most sequences need no
rule at all, and the others a few out of hundreds.

Where the rules would have too many joint states, segmentations are enumerated by their scores without the
omitted rules (engine/alternatives.py), until the next score is below the best score found. Where that takes
too long, too, the next score is the bound.

Letters: D sequences, n rules.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.alternatives import ranked
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.engine.selection import joined_segments, select_segments, select_sequences
from spacy_hocrf.engine.viterbi import Best, viterbi
from spacy_hocrf.rules.compiled import CompiledRules, Numbers
from spacy_hocrf.types import Potentials, Segments

__all__ = ["BoundedBest", "RuledSearch"]

MAX_READINGS = 500
"""Maximum number of segmentations enumerated for a sequence, besides the best."""
CHUNK = 50
"""Number of segmentations enumerated before they are checked."""
TOLERANCE = 1e-9
"""Relative difference up to which score and bound count as equal."""


class BoundedBest(NamedTuple):
    """A `Best` of D sequences with upper bounds; it may not be optimal."""

    segments: Segments
    scores: NDArray[np.float64]  # [D] nats, minus the prices of broken rules
    bounds: NDArray[np.float64]  # [D] no segmentation has a higher score


class _Candidate(NamedTuple):
    """A segmentation of one sequence."""

    segments: Segments
    score: float  # minus the prices of all rules that it breaks
    bound: float  # no segmentation has a higher score
    missing: NDArray[np.bool_]  # [n] omitted rules that it breaks

    @property
    def optimal(self) -> bool:
        """Is it proved optimal?"""
        exists = self.score > -np.inf
        return exists and self.bound - self.score <= TOLERANCE * (1.0 + abs(self.score))

    def beside(self, other: "_Candidate") -> "_Candidate":
        """Return the better of the two segmentations, with the lower bound."""
        best = self if self.score >= other.score else other
        return best._replace(bound=min(self.bound, other.bound))


class RuledSearch:
    """Searches D sequences under priced rules, and records which rules each has needed so far.

    rules (CompiledRules): n rules. needed (bool [D, n]): those that are known to be needed.
    pool (BufferPool): working memory.
    """

    def __init__(self, rules: CompiledRules, needed: NDArray[np.bool_], pool: BufferPool) -> None:
        self.rules, self._pool = rules, pool
        self._rank = np.argsort(np.argsort(-rules.prices, kind="stable")).tolist()
        self._followed = [self._fitting({*np.flatnonzero(own).tolist()}) for own in needed]

    def best(self, potentials: Potentials, automaton: Automaton, buffers: Buffers) -> BoundedBest:
        """Return the best segmentations found with their scores, -inf where every one breaks a hard rule, and
        upper bounds of all scores.

        potentials (Potentials): log potentials of the D sequences. automaton (Automaton): without rules.
        buffers (Buffers): buffers for this automaton.
        """
        candidates, sought = dict[int, _Candidate](), dict(enumerate(self._followed))
        wanted = {i: set(rules) for i, rules in sought.items()}
        while sought:
            unsettled = dict[int, Numbers]()
            for i, latest in self._search(potentials, automaton, buffers, sought):
                best = candidates[i] = latest.beside(candidates[i]) if i in candidates else latest
                self._followed[i] = rules = sought[i]
                if best.optimal or best.bound == -np.inf:
                    continue
                wanted[i] |= set(np.flatnonzero(latest.missing).tolist())
                wider = self._fitting(wanted[i])
                if wider == rules:
                    candidates[i] = self._enumerated(potentials.only(i), automaton, rules, best)
                else:
                    unsettled[i] = wider
            sought = unsettled
        return _joined([candidates[i] for i in range(len(candidates))])

    def _fitting(self, wanted: set[int]) -> Numbers:
        """Return the wanted rules; if they have too many states, the most expensive ones that fit."""
        all_rules = tuple(sorted(wanted))
        if self.rules.fits(all_rules):
            return all_rules
        chosen: Numbers = ()
        for rule in sorted(wanted, key=self._rank.__getitem__):
            wider = tuple(sorted((*chosen, rule)))
            if self.rules.fits(wider):
                chosen = wider
        return chosen

    def _search(
        self,
        potentials: Potentials,
        automaton: Automaton,
        buffers: Buffers,
        sought: Mapping[int, Numbers],
    ) -> Iterator[tuple[int, _Candidate]]:
        """Yield the best segmentation of some sequences, each under its own rules only.

        sought (Mapping[int, Numbers]): rules of each sequence, by its number.
        """
        by_rules = dict[Numbers, list[int]]()
        for i, rules in sought.items():
            by_rules.setdefault(rules, []).append(i)
        for rules, numbers in by_rules.items():
            all_of_them = len(numbers) == len(self._followed)
            own = potentials if all_of_them else select_sequences(potentials, np.array(numbers))
            if not rules:
                best = viterbi(own, automaton, buffers=buffers)
            else:
                product = self.rules.product(automaton, rules)
                with self._pool.lend(product) as product_buffers:
                    best = viterbi(own, product, buffers=product_buffers)
            yield from zip(numbers, self._scored(best, rules))

    def _enumerated(
        self, potentials: Potentials, automaton: Automaton, rules: Numbers, best: _Candidate
    ) -> _Candidate:
        """Enumerate further segmentations in order of score."""
        product = self.rules.product(automaton, rules)
        with self._pool.lend(product) as buffers:
            readings = ranked(potentials, product, buffers=buffers)
            for _ in range(0, MAX_READINGS, CHUNK):
                chunk = list(islice(readings, CHUNK))
                for candidate in self._scored(_as_best(chunk), rules) if chunk else ():
                    best = candidate.beside(best)
                    if best.optimal:
                        break
                if best.optimal or len(chunk) < CHUNK:
                    return best._replace(bound=best.score)
        return best

    def _scored(self, best: Best, rules: Numbers) -> Iterator[_Candidate]:
        """Score the results of a search under some rules against all rules."""
        broken = self.rules.broken_segments(best.segments)
        costs = np.where(broken, self.rules.prices, 0.0)
        left_out = np.ones(len(self.rules.rules), dtype=bool)
        left_out[list(rules)] = False
        missing = left_out & (costs > 0)
        scores = best.scores - costs[:, left_out].sum(axis=1)
        parts = (select_segments(best.segments, np.array([i])) for i in range(len(scores)))
        return map(_Candidate, parts, scores.tolist(), best.scores.tolist(), missing)


def _as_best(readings: Sequence[tuple[float, Segments]]) -> Best:
    """Join one or more segmentations and their scores."""
    scores, segments = zip(*readings)
    return Best(joined_segments(segments), np.array(scores))


def _joined(candidates: Sequence[_Candidate]) -> BoundedBest:
    """Join the segmentations of all sequences."""
    scores = np.array([candidate.score for candidate in candidates])
    bounds = np.array([candidate.bound for candidate in candidates])
    segments = joined_segments([candidate.segments for candidate in candidates])
    return BoundedBest(segments, scores, bounds)
