"""The reading of a text that looks best as a whole, of the most probable ones: `spacy-hocrf.Reranked.v1`."""

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.answers.alternatives import Alternatives
from spacy_hocrf.answers.decoders import Answer, Reranked
from spacy_hocrf.answers.part import Part
from spacy_hocrf.answers.whole_readings import WholeReadings
from spacy_hocrf.arrays import offsets_of
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
    alternatives = Alternatives(part, pool)
    readings = _best(alternatives, n, log_z)
    first = part.batch.offsets
    places = np.stack([first[part.docs], first[part.docs + 1]], axis=1)
    words = part.batch.column(reranker.attribute)
    chances = reranker.log_chances(readings, words, places)
    order = np.lexsort((-chances, readings.text))
    best = order[np.flatnonzero(np.diff(readings.text[order], prepend=-1))]
    chosen, whole, sizes = readings.at(best), np.zeros(len(log_z)), np.zeros(len(log_z), np.int64)
    whole[chosen.text], sizes[chosen.text] = np.exp(chances[best]), np.diff(chosen.spans.offsets)
    spans = chosen.spans._replace(offsets=offsets_of(sizes))
    return Answer(spans, None, ~np.isneginf(log_z), log_z, whole)


def _best(alternatives: Alternatives, n: int, log_z: NDArray[np.float64]) -> WholeReadings:
    """The n most probable readings of all Docs. With much white space the probability of a reading is not
    known, but of a segmentation.
    """
    found, apart = alternatives.together(n)
    text = np.repeat(np.arange(len(log_z)), np.diff(found.offsets))
    logs = np.minimum(0.0, found.scores - log_z[text])
    readings = WholeReadings(found.spans, text, logs)
    others = {i: alternatives.best(i, n, log_z[i]).columns() for i in apart}
    known = {i: columns for i, columns in others.items() if columns.log_probability}
    if not known:
        return readings
    return WholeReadings.joined(
        [
            readings.at(np.flatnonzero(~np.isin(text, list(known)))),
            *(
                WholeReadings(
                    Segments(np.array(bounds), *spans), np.full(len(logs), i), np.array(logs)
                )
                for i, (bounds, *spans, logs) in known.items()
            ),
        ]
    )
