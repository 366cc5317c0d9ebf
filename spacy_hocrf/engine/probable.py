"""All spans of a batch that are at least so probable, and the set of them that is worth most.

Which spans these are comes out of alpha, beta and a few sums of both, without a look at every start,
end and label: see kernels/probable.pxi and the two files beside it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, Sequences, run_kernels
from spacy_hocrf.engine.kernels.protocol import EngineKernels, Lost, Memory, SpanSearch
from spacy_hocrf.engine.kernels.schedule import schedule
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Potentials, Segments

__all__ = ["ProbableSpans", "best_subset", "probable_spans"]


class ProbableSpans(NamedTuple):
    """Spans of D sequences; they may overlap."""

    spans: Segments  # by start and end; labels are numbers of rules
    probability: NDArray[np.float64]  # [n]
    log_partition: NDArray[np.float64]  # [D] -inf, and no span, without an allowed segmentation


def probable_spans(
    potentials: Potentials,
    automaton: Automaton,
    rules: NDArray[np.int32],
    least: float,
    *,
    space: str = "auto",
    buffers: Buffers | None = None,
) -> ProbableSpans:
    """Every span with P(span | sequence) >= least.

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): states and arcs.
    rules (int32 [n, 5]): what makes a span of each of n labels. A semi-CRF's span is one segment:
        its label is in column 3, and -1 in the others. If every segment has one token, columns 0 to
        2 have the labels of a span's first token, of further ones and of the last one, 3 that of a
        span of one token, and 4 the label that must not stand before a span; -1 for none. Without a
        label for the last token, a span ends where it does not go on, and has none of its own for
        one token.
    least (float): above 0.
    space (str): as in `log_partition`; in "scaled", a sequence in which a value was lost has no
        spans, and nan for log Z.
    buffers (Optional[Buffers]): of this thread and automaton, to be used again.
    RETURNS (ProbableSpans): in the order of the sequences.
    RAISES (ValueError): H138 for rules that do not fit the automaton; H004, H005, H006, H009 or H010
        as `log_partition`.
    """
    buffers = buffers or Buffers(automaton)
    rules = buffers.once(rules, _checked)
    problem = Problem(potentials, automaton)
    total = np.zeros(len(problem.lengths))
    searches: list[SpanSearch] = []

    def run(ws: Memory, module: EngineKernels, chosen: Sequences, space: str) -> Lost:
        search = module.Probable(ws=ws, least=least, rules=rules)
        searches.append(search)
        batch = module.Batch(problem)
        return module.probable_spans(
            ws=ws, batch=batch, chosen=chosen, space=space, probable=search, out=total
        )

    total[run_kernels(run, problem, buffers, space)] = np.nan
    found = [search.found() for search in searches]
    places, values = found[0] if len(found) == 1 else _together(found)
    sequence, start, end, rule = places.T
    offsets = np.searchsorted(sequence, np.arange(len(total) + 1)).astype(np.int64)
    spans = Segments(
        offsets, *(np.ascontiguousarray(x, dtype=np.int32) for x in (start, end, rule))
    )
    return ProbableSpans(spans, values, total)


def _together(
    found: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """What several searches have found, each in sequences of its own, by sequence."""
    places = np.concatenate([np.zeros((0, 4), dtype=np.int64), *(place for place, _ in found)])
    values = np.concatenate([np.zeros(0), *(value for _, value in found)])
    order = np.argsort(places[:, 0], kind="stable")
    return places[order], values[order]


def best_subset(spans: Segments, gains: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Of the spans that do not overlap, those with the largest sum.

    spans (Segments): of D sequences, by start and end.
    gains (float64 [n]): what each is worth; one that is worth nothing or less is never chosen.
    RETURNS (bool [n]): which are chosen; among equal sums the choice is always the same.
    """
    return schedule(spans.offsets, spans.start, spans.end, gains)


def _checked(rules: NDArray[np.int32], automaton: Automaton) -> NDArray[np.int32]:
    """RAISES (ValueError): H138."""
    table = np.ascontiguousarray(rules, dtype=np.int32)
    n_labels = len(automaton.limits)
    one_token = bool((automaton.limits == 1).all())
    whole = table.ndim == 2 and table.shape[1:] == (5,) and bool((table[:, 3] >= 0).all())
    fits = table.ndim == 2 and table.shape[1:] == (5,) and (one_token or whole)
    if not fits or (len(table) and not -1 <= table.min() <= table.max() < n_labels):
        expected = f"rows of five labels below {n_labels}"
        found = f"an array of the extents {table.shape}"
        raise ValueError(Errors.H138.format(name="rules", found=found, expected=expected))
    return table
