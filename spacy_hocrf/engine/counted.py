"""Spans of segmentations that keep rules about numbers of segments, however many rules there are.

The product of an automaton and a memory (memory.py) has a copy of every state for all that may be
remembered: of 28 labels that may come once, 2^28. Of one text, nearly all of it is improbable. So the
rules are remembered on the paths that are probable enough and nowhere else, and the probability of the
others, which is log Z less that of these, bounds the error: see kernels/counted.pxi.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.kernels.lattice import Counting, Lattice, Scores
from spacy_hocrf.engine.kernels.schedule import by_sequence
from spacy_hocrf.engine.memory import Count
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.types import Potentials, Segments

__all__ = ["CountedSpans", "Ruled", "best_counted", "can_count", "counted_spans"]

MOST_RULES = 64
MOST_MEMORIES = 2**62
"""A memory is one number."""


class Ruled(NamedTuple):
    """D sequences, and rules about numbers of segments.

    Of the rules `can_count` is true. Probabilities are wrong by no more than the tolerance, which is above 0.
    """

    potentials: Potentials
    automaton: Automaton  # states and arcs, without a memory
    rules: NDArray[
        np.int32
    ]  # [m, 5] what makes a span: see `probable.probable_spans`, of a semi-CRF
    counts: Sequence[Count]  # R rules
    log_partition: NDArray[np.float64]  # [D] without rules about numbers
    chances: NDArray[np.float64]  # [N, R] that a segment of a rule's labels begins at each token
    tolerance: float


class CountedSpans(NamedTuple):
    """Spans of n sequences."""

    spans: Segments  # by start and end; labels are numbers of `Ruled.rules`
    probability: NDArray[np.float64]  # [s]
    # [n] of the segmentations that keep the rules; -inf, and no span, where they were not found
    log_partition: NDArray[np.float64]


def can_count(counts: Sequence[Count]) -> bool:
    """Can these rules be remembered here? Each label may have one, and all segments count."""
    labels = [label for count in counts for label in count.labels]
    fits = len(counts) <= MOST_RULES and prod(map(_base, counts)) < MOST_MEMORIES
    return fits and len(labels) == len(set(labels)) and not any(count.runs for count in counts)


def counted_spans(
    ruled: Ruled, sequences: NDArray[np.int64], least: float, *, buffers: Buffers | None = None
) -> CountedSpans:
    """Every span of some sequences with P(span | sequence, rules about numbers) >= least.

    sequences (int64 [n]): their numbers.
    buffers (Optional[Buffers]): of this thread and automaton, to be used again.
    RETURNS (CountedSpans): of the n sequences. Nothing is found where no segmentation keeps the rules, and
        where too many have to be looked at.
    RAISES (ValueError): H004, H005, H006, H009 or H138 for potentials that do not fit.
    """
    return _find(ruled, sequences, buffers, least=least)


def best_counted(
    ruled: Ruled, sequences: NDArray[np.int64], cost: float, *, buffers: Buffers | None = None
) -> CountedSpans:
    """The spans of the segmentation of each sequence that has the largest sum of
    P(span | sequence, rules about numbers) - cost, of all that are looked at. It may break a rule that is
    broken less probably than the tolerance.

    Arguments, RETURNS and RAISES: as `counted_spans`.
    """
    return _find(ruled, sequences, buffers, cost=cost)


def _find(
    ruled: Ruled,
    sequences: NDArray[np.int64],
    buffers: Buffers | None,
    least: float = 0.0,
    cost: float | None = None,
) -> CountedSpans:
    potentials, automaton, rules, counts, log_partition, chances, tolerance = ruled
    buffers = buffers or Buffers(automaton)
    problem = Problem(potentials, automaton, shape=buffers.shape(potentials))
    problem.check_tokens()
    labels = np.full(len(automaton.limits), -1, dtype=np.int32)
    labels[rules[:, 3]] = np.arange(len(rules))
    scores, total = Scores(problem, buffers.graph), log_partition[sequences]
    places, values = _counting(counts, labels, Lattice(buffers.graph, False)).find(
        scores, sequences, chances, total, tolerance, least, cost or 0.0, cost is not None
    )
    return CountedSpans(Segments(*by_sequence(places, len(sequences))), values, total)


def _counting(counts: Sequence[Count], labels: NDArray[np.int32], lattice: Lattice) -> Counting:
    rule_of = np.full(len(labels), -1, dtype=np.int32)
    for rule, count in enumerate(counts):
        rule_of[sorted(count.labels)] = rule
    base = np.array([_base(count) for count in counts], dtype=np.int64)
    return Counting(
        lattice,
        rule_of,
        np.cumprod([1, *base[:-1]], dtype=np.int64),
        base,
        np.array([count.least for count in counts], dtype=np.int64),
        np.array([count.most is not None for count in counts], dtype=np.uint8),
        labels,
    )


def _base(count: Count) -> int:
    """How many numbers of segments are told apart."""
    return 1 + (count.least if count.most is None else count.most)
