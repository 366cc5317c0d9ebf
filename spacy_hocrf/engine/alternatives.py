"""The best segmentations of every sequence in order, as many as are asked for, and random ones.

The n best come out of one backward pass in (max, +) and the detours from the best path (Eppstein, SIAM
Journal on Computing 28, 1998), random ones out of one in (logaddexp, +): see kernels/lattice.pyx and the
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
    """Segmentations of D sequences, m in all, those of each by falling score."""

    offsets: NDArray[np.int64]  # [D + 1] first segmentation of each sequence
    scores: NDArray[np.float64]  # [m] nats
    segments: Segments  # of the m segmentations


def best_segmentations(
    potentials: Potentials, automaton: Automaton, n: int, *, buffers: Buffers | None = None
) -> Ranked:
    """The n segmentations of each sequence with the highest scores; all of them if there are fewer.

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): the arcs of the same Z patterns.
    n (int): at least 1.
    buffers (Optional[Buffers]): of this thread and automaton, to be used again.
    RETURNS (Ranked): among equals the choice and the order are always the same, whatever n.
    RAISES (ValueError): H004, H005, H006, H009 or H138 for potentials that do not fit.
    """
    lattice, scores = _lattice(potentials, automaton, buffers, sums=False)
    offsets, values, bounds, found = lattice.best(scores, n)
    return Ranked(offsets, values, _segments(bounds, found))


def ranked(
    potentials: Potentials,
    automaton: Automaton,
    *,
    buffers: Buffers | None = None,
) -> Iterator[tuple[float, Segments]]:
    """All segmentations of one sequence by falling score, each found when it is asked for.

    potentials (Potentials): log potentials of one sequence.
    RETURNS (Iterator[tuple[float, Segments]]): scores in nats, and the segmentations, in the order of
        `best_segmentations`.
    RAISES (ValueError): as `best_segmentations`, at once.
    """
    lattice, scores = _lattice(potentials, automaton, buffers, sums=False)
    lattice.load(scores, 0)
    return _each(lattice)


def draws(
    potentials: Potentials,
    automaton: Automaton,
    random: np.random.Generator,
    *,
    buffers: Buffers | None = None,
) -> Iterator[Segments]:
    """Independent random segmentations of one sequence, each with its probability exp(score) / Z.

    potentials (Potentials): log potentials of one sequence, with an allowed segmentation.
    random (Generator): gives three numbers for each boundary and segmentation.
    RETURNS (Iterator[Segments]): without end.
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
    """Log of the sum over the segmentations that go one of several ways on each stretch of a sequence; the
    ways of a stretch exclude one another.

    potentials (Potentials): log potentials of one sequence, all of whose segments have one token.
    cuts (Sequence[int]): where the stretches begin, and the end.
    ways (Sequence[Sequence[uint8 [t, Y]]]): of each stretch, what each way allows.
    RETURNS (float): -inf if there is none.
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
    """Log of the sum over the segmentations that have a segment's end at two places of a sequence, and
    between them labels that keep a rule.

    What follows each state at `end` is what a sequence of the tokens before may end with, and so on
    to the front: beta, stretch by stretch, through the copies that the rule makes of the states where
    it is read.

    potentials (Potentials): log potentials of one sequence of T tokens.
    start, end (int): the places, 0 <= start < end <= T.
    rule (JoinedRules): one, over the labels of the segments between.
    RETURNS (float): -inf if there is none.
    RAISES (ValueError): as `best_segmentations`.
    """
    stretches = _cut(potentials, [0, start, end, len(potentials.allowed)])
    read, states = automaton, len(automaton.states)
    for number in np.flatnonzero(np.diff(stretches.offsets))[::-1].tolist():
        if number == 1:
            read = product_of(read, rule, np.array([np.inf]), range(states))
        graph = Graph(read)
        lattice = Lattice(graph, True)
        lattice.load(Scores(Problem(stretches.only(number), read), graph), 0)
        read = replace(automaton, final=lattice.values()[:states])
    assert read.final is not None
    return float(read.final[0])


def _cut(potentials: Potentials, cuts: Sequence[int]) -> Potentials:
    """Stretches of one sequence as sequences of their own: no segment goes from one to the next.

    cuts (Sequence[int]): where they begin, and the end.
    """
    first, last = potentials.span_start, potentials.span_end
    own = np.searchsorted(cuts, first, side="right") == np.searchsorted(cuts, last)
    spans = {name: getattr(potentials, name)[own] for name in SPANS}
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


def _each(lattice: Lattice) -> Iterator[tuple[float, Segments]]:
    while (found := lattice.next()) is not None:
        score, segments = found
        yield score, _segments(np.array([0, len(segments)]), segments)


def _drawn(lattice: Lattice, random: np.random.Generator) -> Iterator[Segments]:
    while True:
        segments = lattice.draw(random.random((lattice.tokens + 1, 3)))
        yield _segments(np.array([0, len(segments)]), segments)


def _segments(bounds: NDArray[np.int64], found: NDArray[np.int32]) -> Segments:
    start, end, label = np.ascontiguousarray(found.T)
    return Segments(bounds, start, end, label)
