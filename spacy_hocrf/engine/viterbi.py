"""The best segmentation of every sequence of a batch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import SINGLE_BYTES, Buffers, Sequences, plan
from spacy_hocrf.engine.kernels.protocol import Edges, engine_kernels
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.engine.stretches import SIDE_BY_SIDE, Stretches, cut
from spacy_hocrf.types import Potentials, Segments

__all__ = ["Best", "viterbi"]

MAX_STRETCH = 2048
"""Longest own part of a stretch, in tokens: all its states are kept, together with those of others."""


class Best(NamedTuple):
    """Best segmentations of D sequences and their scores."""

    segments: Segments
    # [D] nats; -inf, and no segment, without an allowed segmentation
    scores: NDArray[np.float64]


def viterbi(
    potentials: Potentials,
    automaton: Automaton,
    *,
    buffers: Buffers | None = None,
) -> Best:
    """Return the best segmentation of each sequence (Nguyen et al., JMLR 15, §2.4). Exact for scores of any
    sign.

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): the arcs of the same Z patterns.
    buffers (Optional[Buffers]): buffers of this thread and automaton, for reuse.
    RETURNS (Best): `segments` (Segments) and `scores` (float64 [D], nats). A sequence without an allowed
        segmentation has no segment and -inf. Ties are always broken in the same way.
    RAISES (ValueError): H004, H005, H006, H009 or H138 for potentials that do not fit.
    """
    buffers = buffers or Buffers(automaton)
    problem = Problem(potentials, automaton, constants=buffers.constants)
    stretches = _stretches(problem)
    if stretches is None:
        return _best(problem, buffers)
    edges = stretches.edges()
    by_stretch = _best(stretches.problem, buffers, edges=edges)
    agrees, ratio = stretches.compare(edges, np.zeros(0, dtype=np.int64), in_nats=True)
    segments = stretches.join(by_stretch.segments, agrees)
    best = Best(segments, stretches.total(ratio, by_stretch.scores))
    disagreeing = np.flatnonzero(~agrees)
    if not len(disagreeing):
        return best
    return _with(best, _best(problem, buffers, among=disagreeing), disagreeing)


def _stretches(problem: Problem) -> Stretches | None:
    """Cut long sequences into stretches, if possible without taking too much memory."""
    automaton = problem.automaton
    row = (len(automaton.states) + len(automaton.open_target)) * 8 * SIDE_BY_SIDE
    cuttable = automaton.longest > 0 and not len(problem.potentials.span_score)
    return cut(problem, MAX_STRETCH) if cuttable and row * MAX_STRETCH <= SINGLE_BYTES else None


def _best(
    problem: Problem,
    buffers: Buffers,
    *,
    among: Sequences | None = None,
    edges: Edges | None = None,
) -> Best:
    """Best segmentation of each sequence, or of those in `among`; others have no segment and score 0."""
    n = len(problem.lengths)
    rows = np.zeros((int(problem.offsets[-1]), 3), dtype=np.int32)
    counts, scores = np.zeros(n, dtype=np.int64), np.zeros(n)
    for path, planned in plan(problem):
        module = engine_kernels(path)
        if module.viterbi(
            ws=buffers.workspace(path),
            batch=module.Batch(problem),
            chosen=planned if among is None else planned[np.isin(planned, among)],
            segments=rows,
            counts=counts,
            scores=scores,
            edges=edges,
        ):
            problem.check_tokens()
    # the rows of each sequence, which begin with its last segment, in reverse
    offsets = offsets_of(counts)
    last = problem.offsets[:-1] + counts - 1
    reverse = np.repeat(last + offsets[:-1], counts) - np.arange(offsets[-1])
    start, end, label = np.ascontiguousarray(rows[reverse].T)
    return Best(Segments(offsets, start, end, label), scores)


def _with(best: Best, other: Best, chosen: Sequences) -> Best:
    """Replace the best segmentations of chosen sequences by others."""
    scores = best.scores.copy()
    scores[chosen] = other.scores[chosen]
    # the segments of both, sorted by sequence
    columns = [np.concatenate(pair) for pair in zip(best.segments[1:], other.segments[1:])]
    sizes = [np.diff(segments.offsets) for segments in (best.segments, other.segments)]
    sequence = np.concatenate([np.repeat(np.arange(len(scores)), size) for size in sizes])
    order = np.argsort(sequence, kind="stable")  # only one of both has segments of a sequence
    return Best(Segments(offsets_of(sizes[0] + sizes[1]), *(x[order] for x in columns)), scores)
