"""The gain of a reading: the sum of its spans' probabilities minus a cost per span."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.answers.decoders import Candidates
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.types import Potentials, Segments

__all__ = ["chances_of", "span_gains"]


def span_gains(
    potentials: Potentials, scheme: LabelScheme, candidates: Candidates, cost: float
) -> Potentials:
    """Return log potentials that score a segmentation with Σ (P(span) - cost); structural zeros are kept."""
    spans = candidates.spans
    first = np.repeat(potentials.offsets[:-1], np.diff(spans.offsets))
    zeros = np.flatnonzero(np.isneginf(potentials.span_score))
    # the candidates, and the forbidden spans, which stay forbidden
    columns = [
        np.concatenate([first + spans.start, potentials.span_start[zeros]]),
        np.concatenate([first + spans.end, potentials.span_end[zeros]]),
        np.concatenate([scheme.rules[spans.label, 3], potentials.span_pattern[zeros]]),
        np.concatenate([candidates.scores, potentials.span_score[zeros]]),
    ]
    order = np.lexsort((columns[1], columns[0]))
    start, end, pattern, score = (column[order] for column in columns)
    const = np.zeros_like(potentials.const)
    const[scheme.rules[:, 3]] = -cost
    return replace(
        potentials.unscored(),
        const=const,
        span_start=start.astype(np.int64),
        span_end=end.astype(np.int64),
        span_pattern=pattern.astype(np.int32),
        span_score=score,
    )


def chances_of(
    spans: Segments, candidates: Candidates | None, offsets: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Look up the probabilities of some spans among candidates; None if one of them is missing.

    spans (Segments): spans of D sequences.
    candidates (Optional[Candidates]): of the same sequences, sorted by sequence, start, end and label.
    offsets (int64 [D + 1]): token offsets of the sequences.
    """
    if candidates is None:
        return None
    n_labels = 1 + max(int(rows.label.max(initial=0)) for rows in (spans, candidates.spans))
    keys, candidate_keys = (_keys(rows, offsets, n_labels) for rows in (spans, candidates.spans))
    place = np.searchsorted(candidate_keys, keys)
    if not np.array_equal(np.append(candidate_keys, -1)[place], keys):
        return None
    return candidates.scores[place]


def _keys(spans: Segments, offsets: NDArray[np.int64], n_labels: int) -> NDArray[np.int64]:
    """Encode each span as an integer that sorts by sequence, start, end and label, int64 [n]."""
    first = np.repeat(offsets[:-1], np.diff(spans.offsets))
    place = (first + spans.start) * (offsets[-1] + 1) + first + spans.end
    return np.asarray(place * n_labels + spans.label)
