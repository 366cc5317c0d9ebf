"""What readings are worth: the spans of one by their probabilities, less what each costs."""

from dataclasses import replace

import numpy as np

from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.pipeline.decoders import Candidates
from spacy_hocrf.types import Potentials

__all__ = ["worth"]


def worth(
    potentials: Potentials, scheme: LabelScheme, found: Candidates, cost: float
) -> Potentials:
    """Log potentials by which a segmentation scores the sum of P(span) - cost; what must not be is
    still impossible.
    """
    spans = found.spans
    at = np.repeat(potentials.offsets[:-1], np.diff(spans.offsets))
    zeros = np.flatnonzero(np.isneginf(potentials.span_score))
    columns = [
        np.concatenate([at + spans.start, potentials.span_start[zeros]]),
        np.concatenate([at + spans.end, potentials.span_end[zeros]]),
        np.concatenate([scheme.rules[spans.label, 3], potentials.span_pattern[zeros]]),
        np.concatenate([found.scores, potentials.span_score[zeros]]),
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
