"""The n best segmentations of every sequence in order, or all in turn, and random ones.

The n best are found by one backward pass in (max, +) and the detours from the best path (Eppstein, SIAM
Journal on Computing 28, 1998), random ones by one in (logaddexp, +): see kernels/lattice.pyx and the
files beside it. Both are exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.kernels.lattice import Graph, Lattice, Scores
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.engine.rules import JoinedRules, product_of
from spacy_hocrf.types import Potentials, Segments

__all__ = ["Ranked", "best_segmentations", "draws", "ranked", "sum_between", "sum_of_ways"]


SPANS = ("span_start", "span_end", "span_pattern", "span_score")


class Ranked(NamedTuple):
    """Segmentations of D sequences, m in all, those of each sequence by descending score."""

    offsets: NDArray[np.int64]  # [D + 1] first segmentation of each sequence
    scores: NDArray[np.float64]  # [m] nats
    segments: Segments  # the m segmentations


def best_segmentations(
    potentials: Potentials, automaton: Automaton, n: int, *, buffers: Buffers | None = None
) -> Ranked:
    """Return the n segmentations of each sequence with the highest scores, or all if there are fewer.

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): the arcs of the same Z patterns.
    n (int): at least 1.
    buffers (Optional[Buffers]): buffers of this thread and automaton, for reuse.
    RETURNS (Ranked): ties are always broken in the same way, whatever n.
    RAISES (ValueError): H004, H005, H006, H009 or H138 for potentials that do not fit.
    """
    lattice, scores = _lattice(potentials, automaton, buffers, sums=False)
    offsets, values, bounds, segments = lattice.best(scores, n)
    return Ranked(offsets, values, _segments(bounds, segments))


def ranked(
    potentials: Potentials,
    automaton: Automaton,
    *,
    buffers: Buffers | None = None,
) -> Iterator[tuple[float, Segments]]:
    """Return all segmentations of one sequence by descending score, each found on demand.

    potentials (Potentials): log potentials of one sequence.
    RETURNS (Iterator[tuple[float, Segments]]): scores in nats, and the segmentations, in the order of
        `best_segmentations`.
    RAISES (ValueError): as `best_segmentations`, at once.
    """
    lattice, scores = _lattice(potentials, automaton, buffers, sums=False)
    lattice.load(scores, 0)
    return _generated(lattice)


def draws(
    potentials: Potentials,
    automaton: Automaton,
    random: np.random.Generator,
    *,
    buffers: Buffers | None = None,
) -> Iterator[Segments]:
    """Draw independent random segmentations of one sequence, with probabilities exp(score) / Z.

    potentials (Potentials): log potentials of one sequence, with an allowed segmentation.
    random (Generator): provides three numbers for each boundary and segmentation.
    RETURNS (Iterator[Segments]): infinitely many.
    RAISES (ValueError): as `best_segmentations`, at once.
    """
    lattice, scores = _lattice(potentials, automaton, buffers, sums=True)
    lattice.load(scores, 0)
    return _drawn(lattice, random)


def sum_of_ways(
    potentials: Potentials,
    automaton: Automaton,
    cuts: Sequence[int],
    ways: Sequence[Sequence[NDArray[np.uint8]]],
    *,
    buffers: Buffers | None = None,
) -> float:
    """Return the log of the sum over the segmentations that follow one of several ways on each stretch of a
    sequence; the ways of a stretch exclude one another.

    potentials (Potentials): log potentials of one sequence, all of whose segments have one token.
    cuts (Sequence[int]): where the stretches begin, followed by the end.
    ways (Sequence[Sequence[uint8 [t, Y]]]): for each stretch, the bits that each way allows.
    RETURNS (float): -inf if there is no such segmentation.
    RAISES (ValueError): as `best_segmentations`.
    """
    buffers = buffers or Buffers(automaton)
    allowed = np.zeros_like(potentials.allowed)
    stretches = replace(_cut(potentials, cuts), allowed=allowed)
    final = np.zeros((len(ways), len(automaton.states)))
    if automaton.final is not None:
        final[-1] = automaton.final
    lattice = Lattice(buffers.graph, True)
    scores = Scores(Problem(stretches, automaton, final=final), buffers.graph)
    total = final[-1]
    for number in reversed(range(len(ways))):
        final[number], total = total, np.full(len(automaton.states), -np.inf)
        for bits in ways[number]:
            allowed[cuts[number] : cuts[number + 1]] = bits
            lattice.load(scores, number)
            total = np.logaddexp(total, lattice.values())
    return float(total[0])


def sum_between(
    potentials: Potentials, automaton: Automaton, start: int, end: int, rule: JoinedRules
) -> float:
    """Return the log of the sum over the segmentations in which segments end at two places of a sequence,
    while the labels between them obey a rule.

    The final scores of the states at `end` are the sums of what follows them, and so on towards the front:
    beta, stretch by stretch, in the middle through the copies of the states that the product with the rule
    makes.

    potentials (Potentials): log potentials of one sequence of T tokens.
    start, end (int): the places, 0 <= start < end <= T.
    rule (JoinedRules): one rule, on the labels of the segments between the places.
    RETURNS (float): -inf if there is no such segmentation.
    RAISES (ValueError): as `best_segmentations`.
    """
    stretches = _cut(potentials, [0, start, end, len(potentials.allowed)])
    constrained, states = automaton, len(automaton.states)
    for number in np.flatnonzero(np.diff(stretches.offsets))[::-1].tolist():
        if number == 1:
            constrained = product_of(constrained, rule, np.array([np.inf]), range(states))
        graph = Graph(constrained)
        lattice = Lattice(graph, True)
        lattice.load(Scores(Problem(stretches.only(number), constrained), graph), 0)
        constrained = replace(automaton, final=lattice.values()[:states])
    assert constrained.final is not None
    return float(constrained.final[0])


def _cut(potentials: Potentials, cuts: Sequence[int]) -> Potentials:
    """Split one sequence into stretches as separate sequences: no segment crosses a cut.

    cuts (Sequence[int]): where the stretches begin, followed by the end.
    """
    first, last = potentials.span_start, potentials.span_end
    uncut = np.searchsorted(cuts, first, side="right") == np.searchsorted(cuts, last)
    spans = {name: getattr(potentials, name)[uncut] for name in SPANS}
    return replace(potentials, offsets=np.array(cuts), **spans)


def _lattice(
    potentials: Potentials,
    automaton: Automaton,
    buffers: Buffers | None,
    sums: bool,
) -> tuple[Lattice, Scores]:
    buffers = buffers or Buffers(automaton)
    problem = Problem(potentials, automaton, constants=buffers.constants)
    problem.check_tokens()
    return Lattice(buffers.graph, sums), Scores(problem, buffers.graph)


def _generated(lattice: Lattice) -> Iterator[tuple[float, Segments]]:
    while (path := lattice.next()) is not None:
        score, segments = path
        yield score, _segments(np.array([0, len(segments)]), segments)


def _drawn(lattice: Lattice, random: np.random.Generator) -> Iterator[Segments]:
    while True:
        segments = lattice.draw(random.random((lattice.tokens + 1, 3)))
        yield _segments(np.array([0, len(segments)]), segments)


def _segments(bounds: NDArray[np.int64], rows: NDArray[np.int32]) -> Segments:
    start, end, label = np.ascontiguousarray(rows.T)
    return Segments(bounds, start, end, label)
