"""All spans of a batch with at least a given probability, and the non-overlapping set with the largest gain.

These spans are found from alpha, beta and a few sums of both, without enumerating every start,
end and label: see kernels/probable.pxi and the two files beside it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine import forward_backward
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, Sequences, run_kernels
from spacy_hocrf.engine.kernels.protocol import (
    AskedSegments,
    Edges,
    EngineKernels,
    Lost,
    Memory,
    SpanSearch,
    Starts,
)
from spacy_hocrf.engine.kernels.schedule import by_sequence, schedule
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.engine.stretches import cut
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Potentials, Segments

__all__ = ["ProbableSpans", "Starts", "best_subset", "probabilities", "probable_spans"]

ROWS = 128
"""Number of tokens of a much longer sequence, and its neighbours in the lanes, that are processed at
a time, so that they fit into a near cache.
"""


class ProbableSpans(NamedTuple):
    """Spans of D sequences; they may overlap."""

    spans: Segments  # by start and end; labels are numbers of rules
    probability: NDArray[np.float64]  # [n]
    log_partition: NDArray[np.float64]  # [D] -inf, and no spans, without an allowed segmentation


def probable_spans(
    potentials: Potentials,
    automaton: Automaton,
    rules: NDArray[np.int32],
    least: float,
    *,
    space: str = "auto",
    starts: Starts | None = None,
    buffers: Buffers | None = None,
) -> ProbableSpans:
    """Return every span with P(span | sequence) >= least.

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): states and arcs.
    rules (int32 [n, 5]): what a span of each of n labels consists of. A semi-CRF's span is one segment:
        its label is in column 3, and -1 in the others. If every segment has one token, columns 0 to
        2 have the labels of a span's first token, of further ones and of the last one, 3 that of a
        span of one token, and 4 the label that must not precede a span; -1 for none. Without a
        label for the last token, a span ends where it does not continue, and spans of one token have no
        label of their own.
    least (float): above 0.
    space (str): as in `log_partition`; in "scaled", a sequence in which a value was lost has no
        spans, and nan for log Z.
    starts (Optional[Starts]): receives, for each of its labels, the probability that a segment with the label
        begins at each token, and that the token is in one.
    buffers (Optional[Buffers]): buffers of this thread and automaton, for reuse.
    RETURNS (ProbableSpans): in the order of the sequences.
    RAISES (ValueError): H138 for rules or labels that do not fit the automaton; H004 for starts of another
        shape; H004, H005, H006, H009 or H010 as `log_partition`.
    """
    buffers = buffers or Buffers(automaton)
    rules = _checked(rules, automaton)
    if starts is not None:
        _check_starts(starts, potentials)
    problem = Problem(potentials, automaton, constants=buffers.constants)
    places, values, total = _find(problem, _Question(rules, least, buffers, starts=starts), space)
    return ProbableSpans(Segments(*by_sequence(places, len(total))), values, total)


def probabilities(
    problem: Problem, segments: Segments, starts: Starts | None, buffers: Buffers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return P(segment | sequence) of given segments, float64 [n], and log Z of each sequence, float64 [D].

    problem (Problem): some of its labels have segments of more than one token.
    segments (Segments): segments of the problem's sequences, in any order within each.
    starts (Optional[Starts]): as in `probable_spans`.
    buffers (Buffers): buffers of this thread and automaton.
    """
    offsets, *columns = segments
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((columns[0], sequence))
    rows = np.stack(columns, axis=1)[order].astype(np.int64)
    asked = AskedSegments(offsets, rows, np.zeros(len(rows)))
    question = _Question(np.zeros((0, 5), dtype=np.int32), 1.0, buffers, asked, starts)
    *_, total = _find(problem, question, "auto")
    probability = np.empty(len(rows))
    probability[order] = asked.probability
    return probability, total


class _Question(NamedTuple):
    """What to search for: rules, least probability, given segments and starts; and the buffers."""

    rules: NDArray[np.int32]
    least: float
    buffers: Buffers
    asked: AskedSegments | None = None
    starts: Starts | None = None


FoundSpans = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
"""Sequence, start, end and rule of spans [n, 4], their probabilities [n], and log Z [D]."""


def _find(problem: Problem, question: _Question, space: str) -> FoundSpans:
    """Find the spans of long sequences stretch by stretch; those of other sequences, and of those whose
    stretches disagree, directly.
    """
    stretches = cut(problem) if _rows(problem) and space != "log" else None
    if stretches is None:
        return _search(problem, question, space)
    edges, asked = stretches.edges(), question.asked
    of_stretches = question._replace(asked=None if asked is None else stretches.asked(asked))
    places, values, log_z = _search(stretches.problem, of_stretches, "scaled", edges=edges)
    agrees, ratio = stretches.compare(edges, np.flatnonzero(np.isnan(log_z)))
    places, total = stretches.in_sequences(places), stretches.total(ratio, log_z)
    agreeing, disagreeing = agrees[places[:, 0]], np.flatnonzero(~agrees)
    if not len(disagreeing):
        return places, values, total
    if asked is not None:
        asked.probability[np.repeat(~agrees, np.diff(asked.offsets))] = 0.0
    others, others_values, log_z = _search(problem, question, space, disagreeing)
    total[disagreeing] = log_z[disagreeing]
    return *_together([(places[agreeing], values[agreeing]), (others, others_values)]), total


def _search(
    problem: Problem,
    question: _Question,
    space: str,
    among: Sequences | None = None,
    edges: Edges | None = None,
) -> FoundSpans:
    """Find the spans of all sequences, or `among` some; log Z is nan where a value was lost for good."""
    total, rows = np.zeros(len(problem.lengths)), _rows(problem)
    searches: list[SpanSearch] = []

    def run(ws: Memory, module: EngineKernels, chosen: Sequences, space: str) -> Lost:
        search = module.Probable(
            ws=ws,
            least=question.least,
            rules=question.rules,
            asked=question.asked,
            starts=question.starts,
        )
        searches.append(search)
        return module.probable_spans(
            ws=ws,
            batch=module.Batch(problem),
            chosen=chosen,
            space=space,
            probable=search,
            out=total,
            rows=rows,
            edges=edges,
        )

    total[run_kernels(run, problem, question.buffers, space, among)] = np.nan
    spans = [search.found() for search in searches]
    return *(spans[0] if len(spans) == 1 else _together(spans)), total


def _together(
    spans: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Concatenate the spans that several searches found in separate sequences, sorted by sequence."""
    places = np.concatenate([np.zeros((0, 4), dtype=np.int64), *(place for place, _ in spans)])
    values = np.concatenate([np.zeros(0), *(value for _, value in spans)])
    order = np.argsort(places[:, 0], kind="stable")
    return places[order], values[order]


def _rows(problem: Problem) -> int:
    """Number of tokens of a long sequence that are processed at a time, 0 for all of them."""
    longest, lengths = problem.automaton.longest, problem.body_length.shape[1]
    no_tail = 0 < longest < max(1, lengths - 1) + forward_backward.MIN_TAIL
    return ROWS if no_tail and longest > 1 and not len(problem.potentials.span_score) else 0


def best_subset(spans: Segments, gains: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the set of non-overlapping spans with the largest sum of gains.

    spans (Segments): spans of D sequences, by start and end.
    gains (float64 [n]): gain of each span; spans with a gain of 0 or less are never chosen.
    RETURNS (int64 [m]): positions of the chosen spans, ascending; ties are always broken in the same
        way.
    """
    return schedule(spans.offsets, spans.start, spans.end, gains)


def _check_starts(starts: Starts, potentials: Potentials) -> None:
    """Check starts. RAISES (ValueError): H004 or H138."""
    tokens, n_labels = potentials.token.shape
    expected = tokens, len(starts.labels)
    for shape in (starts.chance.shape, starts.cover.shape):
        if shape != expected:
            raise ValueError(Errors.H004.format(name="starts", found=shape, expected=expected))
    if len(starts.labels) and not 0 <= starts.labels.min() <= starts.labels.max() < n_labels:
        text = f"labels below {n_labels}"
        raise ValueError(Errors.H138.format(name="starts", found=starts.labels, expected=text))


def _checked(rules: NDArray[np.int32], automaton: Automaton) -> NDArray[np.int32]:
    """Return the rules as a contiguous int32 array. RAISES (ValueError): H138 if they do not fit."""
    table = np.ascontiguousarray(rules, dtype=np.int32)
    n_labels = len(automaton.limits)
    one_token = bool((automaton.limits == 1).all())
    fits = table.ndim == 2 and table.shape[1:] == (5,)
    fits = fits and (one_token or bool((table[:, 3] >= 0).all()))
    if not fits or (len(table) and not -1 <= table.min() <= table.max() < n_labels):
        expected = f"rows of five labels below {n_labels}"
        found = f"an array of the extents {table.shape}"
        raise ValueError(Errors.H138.format(name="rules", found=found, expected=expected))
    return table
