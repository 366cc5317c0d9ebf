"""The best segmentation of every sequence of a batch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, plan
from spacy_hocrf.engine.kernels.protocol import kernels
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.types import Potentials, Segments

__all__ = ["Best", "viterbi"]


class Best(NamedTuple):
    """Best segmentations of D sequences and their scores."""

    segments: Segments
    # [D] nats; -inf without an allowed segmentation, and then without a segment
    scores: NDArray[np.float64]


def viterbi(
    potentials: Potentials, automaton: Automaton, *, buffers: Buffers | None = None
) -> Best:
    """Best segmentation of each sequence (Nguyen et al., JMLR 15, §2.4). Exact for scores of any
    sign.

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): the arcs of the same Z patterns.
    buffers (Optional[Buffers]): of this thread and automaton, to be used again.
    RETURNS (Best): a sequence without an allowed segmentation has no segment and -inf. Among equals
        the choice is always the same.
    RAISES (ValueError): H004, H005, H006, H009 or H138 for potentials that do not fit.
    """
    buffers = buffers or Buffers(automaton)
    problem = Problem(potentials, automaton, shape=buffers.shape(potentials))
    found = np.zeros((len(potentials.allowed), 3), dtype=np.int32)
    counts, scores = np.zeros(len(problem.lengths), dtype=np.int64), np.zeros(len(problem.lengths))
    for path, chosen in plan(problem):
        module = kernels(path)
        if module.viterbi(
            ws=buffers.workspace(path),
            batch=module.Batch(problem),
            chosen=chosen,
            found=found,
            counts=counts,
            scores=scores,
        ):
            problem.check_tokens()
    offsets = offsets_of(counts)
    last_first = np.repeat(potentials.offsets[:-1] + counts - 1 + offsets[:-1], counts) - np.arange(
        offsets[-1]
    )
    start, end, label = np.ascontiguousarray(found[last_first].T)
    return Best(Segments(offsets, start, end, label), scores)
