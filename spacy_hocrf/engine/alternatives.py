"""The best segmentations of every sequence in order, as many as are asked for, and random ones.

The n best come out of one backward pass in (max, +) and the detours from the best path (Eppstein, SIAM
Journal on Computing 28, 1998), random ones out of one in (logaddexp, +): see kernels/lattice.pyx and the
files beside it. Both are exact.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.kernels.lattice import Lattice, Scores
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.types import Potentials, Segments

__all__ = ["Ranked", "best_segmentations", "draws", "ranked"]


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
    potentials: Potentials, automaton: Automaton, *, buffers: Buffers | None = None
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


def _lattice(
    potentials: Potentials, automaton: Automaton, buffers: Buffers | None, sums: bool
) -> tuple[Lattice, Scores]:
    buffers = buffers or Buffers(automaton)
    problem = Problem(potentials, automaton, shape=buffers.shape(potentials))
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
