"""The best segmentation of every sequence of a batch."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf import dispatch
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, plan
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.types import Potentials, Segment, Segmentation

__all__ = ["Best", "viterbi", "viterbi_arrays"]


class Best(NamedTuple):
    """Best segmentations of D sequences, n segments in all, with positions inside their own
    sequence.
    """

    offsets: NDArray[np.int64]  # [D + 1] first segment of each sequence
    start: NDArray[np.int32]  # [n]
    end: NDArray[np.int32]  # [n]
    label: NDArray[np.int32]  # [n]
    # [D] nats; -inf without an allowed segmentation, and then without a segment
    scores: NDArray[np.float64]


def viterbi(
    potentials: Potentials, automaton: Automaton
) -> tuple[list[Segmentation], NDArray[np.float64]]:
    """Best segmentation of each sequence (Nguyen et al., JMLR 15, §2.4). Exact for scores of any
    sign.

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): the arcs of the same Z patterns.
    RETURNS (tuple[list[list[Segment]], float64 [D]]): segments with positions inside their own
        sequence, and their scores in nats. A sequence without an allowed segmentation gets an empty
        list and -inf. Among equals the choice is always the same.
    RAISES (ValueError): H004, H005, H006 or H009 for potentials that do not fit.
    """
    best = viterbi_arrays(potentials, automaton)
    segments = [
        Segment(*each) for each in zip(best.start.tolist(), best.end.tolist(), best.label.tolist())
    ]
    return [segments[first:last] for first, last in pairwise(best.offsets.tolist())], best.scores


def viterbi_arrays(
    potentials: Potentials, automaton: Automaton, *, buffers: Buffers | None = None
) -> Best:
    """The same as arrays.

    buffers (Optional[Buffers]): of this thread and automaton, to be used again.
    """
    buffers = buffers or Buffers(automaton)
    problem = Problem(potentials, automaton, frame=buffers.frame(potentials))
    found = np.zeros((len(potentials.allowed), 3), dtype=np.int32)
    counts, scores = np.zeros(len(problem.lengths), dtype=np.int64), np.zeros(len(problem.lengths))
    for path, chosen in plan(problem):
        module = dispatch.kernels(path)
        if module.viterbi(
            buffers.workspace(path), module.Batch(problem), chosen, found, counts, scores
        ):
            problem.check_tokens()
    offsets = np.concatenate([[0], np.cumsum(counts)])
    last_first = np.repeat(potentials.offsets[:-1] + counts - 1 + offsets[:-1], counts) - np.arange(
        offsets[-1]
    )
    start, end, label = np.ascontiguousarray(found[last_first].T)
    return Best(offsets, start, end, label, scores)
