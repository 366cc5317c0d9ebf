"""The reading of a text that looks best as a whole, of the most probable ones: `spacy-hocrf.Reranked.v1`."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.best_readings import BestReadings
from spacy_hocrf.answers.alternatives import Alternatives
from spacy_hocrf.answers.decoders import Answer, Reranked
from spacy_hocrf.answers.part import Part
from spacy_hocrf.answers.whole_readings import WholeReadings
from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.types import Segments

__all__ = ["read"]


def read(part: Part, decoder: Reranked) -> Answer:
    """The reading of each Doc that looks best, and how probable it is that it is all of the Doc.

    decoder (Reranked): one that has learnt what readings look like.
    """
    n, pool, reranker = decoder.n, decoder.pool, decoder.reranker
    assert reranker is not None
    with pool.lend(part.automaton) as buffers:
        log_z = log_partition(part.potentials, part.automaton, buffers=buffers)
    alternatives, possible = Alternatives(part, pool), ~np.isneginf(log_z)
    docs = np.flatnonzero(possible)
    readings = _joined(
        docs,
        [
            # with much white space the probability of a reading is not known, but of a segmentation
            alternatives.best(i, n, log_z[i]) or alternatives.segmentations(i, n, log_z[i])
            for i in docs.tolist()
        ],
    )
    first = part.batch.offsets
    places = np.stack([first[part.docs], first[part.docs + 1]], axis=1)
    words = part.batch.column(reranker.attribute)
    chances = reranker.log_chances(readings, words, places)
    bounds = [*np.searchsorted(readings.text, docs).tolist(), len(chances)]
    chosen = [i + int(chances[i:j].argmax()) for i, j in pairwise(bounds)]
    whole, sizes = np.zeros(len(log_z)), np.zeros(len(log_z), dtype=np.int64)
    whole[docs] = np.exp(chances[chosen])
    sizes[docs] = np.diff(readings.spans.offsets)[chosen]
    rows = ranges(readings.spans.offsets[chosen], sizes[docs])
    spans = Segments(offsets_of(sizes), *(column[rows] for column in readings.spans[1:]))
    return Answer(spans, None, possible, log_z, whole)


def _joined(docs: NDArray[np.int64], best: Sequence[BestReadings]) -> WholeReadings:
    """The readings of all Docs. docs (int64 [d]): their numbers, ascending."""
    known = [each.columns() for each in best]
    nothing = np.zeros(0, dtype=np.int32)
    spans = (
        np.concatenate([nothing, *(getattr(each, name) for each in known)])
        for name in ("start", "end", "label")
    )
    counts = np.concatenate([nothing, *(np.diff(each.bounds) for each in known)])
    sizes = [len(each.log_probability) for each in known]
    logs = np.concatenate([np.zeros(0), *(each.log_probability for each in known)])
    return WholeReadings(Segments(offsets_of(counts), *spans), np.repeat(docs, sizes), logs)
