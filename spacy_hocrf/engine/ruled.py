"""Spans of segmentations under rules on their labels, for any number of rules.

The product of an automaton and rules (rules.py) has a copy of every state for each combination of states
of the rules: for 28 labels that may occur once, 2^28. In a given text nearly all of them are improbable. So
the rules are followed only on paths that are probable enough; the probability of all other paths, which is
log Z less that of these, bounds the error: see kernels/ruled.pxi.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.kernels.lattice import Lattice, Ruling, Scores
from spacy_hocrf.engine.kernels.schedule import by_sequence
from spacy_hocrf.engine.probable import Starts
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.engine.rules import DEAD, Rule
from spacy_hocrf.types import Potentials, Segments

__all__ = [
    "BrokenSets",
    "RuleTables",
    "Ruled",
    "RuledSpans",
    "best_ruled",
    "broken_sets",
    "ruled_spans",
]


LEFT_OUT = 0.02
"""Fraction of the tolerance that the rules which are ignored for a sequence may use up."""


class RuleTables(NamedTuple):
    """R rules in the form that the kernels take, padded to S states, those of the largest; see
    kernels/ruled.pxi."""

    affected_offsets: NDArray[np.int32]  # [Y + 1]
    affected: NDArray[np.int32]  # [n] the rules whose state a segment of each label can change
    after: NDArray[np.int32]  # [R, S, Y] -1 where the rule can no longer be kept
    settled: NDArray[np.int32]  # [R, S] the first state that is broken, or kept, like this one
    broken: NDArray[np.uint8]  # [R, S]
    factor: NDArray[np.float64]  # [R] exp(-price)

    @classmethod
    def of(cls, rules: Sequence[Rule], n_labels: int) -> "RuleTables":
        """Tables of some rules over the Y labels of an automaton."""
        size = max(map(len, rules), default=1)
        after = np.full((len(rules), size, n_labels), DEAD, dtype=np.int32)
        broken = np.zeros((len(rules), size), dtype=np.uint8)
        settled = np.zeros((len(rules), size), dtype=np.int32)
        affected = np.zeros((n_labels, len(rules)), dtype=bool)
        for i, rule in enumerate(rules):
            states = len(rule)
            after[i, :states] = np.where(rule.dead[rule.after], DEAD, rule.after)
            broken[i, :states] = ~rule.kept
            settled[i, :states] = np.where(rule.kept, np.argmax(rule.kept), np.argmax(~rule.kept))
            affected[:, i] = rule.told_by
        offsets = offsets_of(affected.sum(axis=1)).astype(np.int32)
        factor = np.exp(-np.array([rule.price for rule in rules], dtype=np.float64))
        return cls(
            offsets, np.nonzero(affected)[1].astype(np.int32), after, settled, broken, factor
        )


class Ruled(NamedTuple):
    """D sequences, and rules.

    Probabilities are wrong by at most the first tolerance; if that would require looking at too many
    segmentations, by at most the next one.
    """

    potentials: Potentials
    automaton: Automaton  # without rules
    rules: RuleTables  # R rules
    starts: Starts  # for the labels that the rules are about, from a search without rules
    log_partition: NDArray[np.float64]  # [D] without rules
    # [D, R] bounds on the errors of probabilities if a rule is ignored; rules with small bounds
    # are ignored
    violations: NDArray[np.float64]
    tolerances: tuple[float, ...]  # ascending, above 0


class RuledSpans(NamedTuple):
    """Spans of n sequences."""

    spans: Segments  # by start and end; labels are rows of `rows`
    probability: NDArray[np.float64]  # [s]
    # [n] log of the sum over all segmentations of exp(score - price of broken rules); -inf, without
    # spans, if they were not found
    log_partition: NDArray[np.float64]
    tolerance: NDArray[np.float64]  # [n] bound on the errors of probabilities


class BrokenSets(NamedTuple):
    """Sets of rules that a segmentation of one sequence may break."""

    broken: NDArray[np.bool_]  # [m, R] which rules are in a set; sets are distinct
    probability: NDArray[np.float64]  # [m] of segmentations that break exactly these


def ruled_spans(
    ruled: Ruled,
    rows: NDArray[np.int32],
    sequences: NDArray[np.int64],
    least: float,
    *,
    buffers: Buffers | None = None,
) -> RuledSpans:
    """Return every span of some sequences with P(span | sequence, rules) >= least.

    rows (int32 [m, 5]): what a span consists of, one segment: see `probable.probable_spans`.
    sequences (int64 [n]): their numbers.
    buffers (Optional[Buffers]): buffers of this thread and automaton, for reuse.
    RETURNS (RuledSpans): spans of the n sequences; none if every segmentation breaks a rule of
        infinite price, or if too many would have to be looked at.
    RAISES (ValueError): H004, H005, H006, H009 or H138 for potentials that do not fit.
    """
    return _find(ruled, rows, sequences, buffers, least=least)


def best_ruled(
    ruled: Ruled,
    rows: NDArray[np.int32],
    sequences: NDArray[np.int64],
    cost: float,
    *,
    buffers: Buffers | None = None,
) -> RuledSpans:
    """Return the spans of the segmentation of each sequence that has the largest sum of
    P(span | sequence, rules) - cost, among all that are looked at. It may break a rule of infinite price if
    that is less probable than the tolerance.

    rows (int32 [m, 5]), sequences (int64 [n]), buffers (Optional[Buffers]): as in `ruled_spans`.
    RETURNS (RuledSpans): spans of the n sequences; none in the same cases as in `ruled_spans`.
    RAISES (ValueError): H004, H005, H006, H009 or H138 for potentials that do not fit.
    """
    return _find(ruled, rows, sequences, buffers, cost=cost)


def broken_sets(
    ruled: Ruled, sequence: int, *, buffers: Buffers | None = None
) -> BrokenSets | None:
    """Return the probability that a segmentation of one sequence breaks exactly a set of rules, for all sets.

    sequence (int): its number.
    RETURNS (Optional[BrokenSets]): None if too many segmentations would have to be looked at.
    RAISES (ValueError): H004, H005, H006, H009 or H138 for potentials that do not fit.
    """
    buffers = buffers or Buffers(ruled.automaton)
    problem = Problem(ruled.potentials, ruled.automaton)
    problem.check_tokens()
    ruling = _ruling(ruled, np.zeros((0, 5), dtype=np.int32), buffers)
    labels, chances, _ = ruled.starts
    total = float(ruled.log_partition[sequence])
    if total == -np.inf:
        return None
    scores = Scores(problem, buffers.graph)
    for tolerance in ruled.tolerances:
        paths = ruling.broken_together(scores, sequence, labels, chances, total, tolerance)
        if paths is not None:
            sets, number = np.unique(paths[0], axis=0, return_inverse=True)
            probability = np.zeros(len(sets))
            np.add.at(probability, number.reshape(-1), paths[1])
            return BrokenSets(sets > 0, probability)
    return None


def _find(
    ruled: Ruled,
    rows: NDArray[np.int32],
    sequences: NDArray[np.int64],
    buffers: Buffers | None,
    least: float = 0.0,
    cost: float | None = None,
) -> RuledSpans:
    buffers = buffers or Buffers(ruled.automaton)
    problem = Problem(ruled.potentials, ruled.automaton)
    problem.check_tokens()
    total = ruled.log_partition[sequences]
    labels, chances, _ = ruled.starts
    matter, left_out = _that_matter(ruled.violations[sequences], LEFT_OUT * ruled.tolerances[0])
    ruling, scores = _ruling(ruled, rows, buffers), Scores(problem, buffers.graph)
    log_partition, tolerance = np.full((2, len(sequences)), -np.inf)
    parts = list[tuple[NDArray[np.int64], NDArray[np.float64]]]()
    todo = np.arange(len(sequences))
    for limit in ruled.tolerances:
        log_z, numbers = total[todo], sequences[todo]
        question = scores, numbers, labels, chances, matter[todo], left_out[todo], log_z, limit
        places, values = ruling.find(*question, least, cost or 0.0, cost is not None)
        places[:, 0] = todo[places[:, 0]]
        parts.append((places, values))
        log_partition[todo], tolerance[todo] = log_z, limit
        todo = todo[np.isneginf(log_z) & ~np.isneginf(total[todo])]
        if not len(todo):
            break
    places, values = (np.concatenate(arrays) for arrays in zip(*parts))
    order = np.argsort(places[:, 0], kind="stable")
    spans = Segments(*by_sequence(places[order], len(sequences)))
    return RuledSpans(spans, values[order], log_partition, tolerance)


def _that_matter(
    violations: NDArray[np.float64], most: float
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Which rules are applied to each of n sequences, uint8 [n, R], and the sum of the violations of the
    others, at most `most`, float64 [n].
    """
    order = np.argsort(violations, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(violations, order, axis=1), axis=1)
    matter = np.zeros(violations.shape, dtype=np.uint8)
    np.put_along_axis(matter, order, (sums > most).astype(np.uint8), axis=1)
    return matter, np.where(matter, 0.0, violations).sum(axis=1)


def _ruling(ruled: Ruled, rows: NDArray[np.int32], buffers: Buffers) -> Ruling:
    spans = np.full(len(ruled.automaton.limits), -1, dtype=np.int32)
    spans[rows[:, 3]] = np.arange(len(rows))
    return Ruling(Lattice(buffers.graph, False), *ruled.rules, spans)
