"""Reranking (`spacy-hocrf.Reranked.v1`): of the n most probable readings, the one that is best as a whole."""

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.answers.alternatives import Alternatives
from spacy_hocrf.answers.decoders import Answer, Reranked
from spacy_hocrf.answers.part import Part
from spacy_hocrf.answers.whole_readings import WholeReadings
from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.types import Segments

__all__ = ["rerank"]


def rerank(part: Part, decoder: Reranked) -> Answer:
    """Return the best-looking reading of each Doc, with the probability that it is exactly the Doc's reading.

    decoder (Reranked): a decoder whose reranker has been learnt.
    """
    reranker = decoder.reranker
    assert reranker is not None
    readings, first = _readings(part, decoder), part.batch.offsets
    places = np.stack([first[part.docs], first[part.docs + 1]], axis=1)
    words = part.batch.column(reranker.attribute)
    logs = reranker.log_chances(readings, words, places)
    # the most probable reading of each text that has any
    order = np.lexsort((-logs, readings.text))
    best = order[np.flatnonzero(np.diff(readings.text[order], prepend=-1))]
    chosen, sizes = readings.at(best), np.zeros(len(part.docs), np.int64)
    sizes[chosen.text] = np.diff(chosen.spans.offsets)
    spans = chosen.spans._replace(offsets=offsets_of(sizes))
    scores, log_z = _scored(part, decoder, spans)
    text_chances = np.zeros(len(log_z))
    text_chances[chosen.text] = np.exp(np.minimum(0.0, logs[best] - log_z[chosen.text]))
    return Answer(spans, scores, ~np.isneginf(log_z), log_z, text_chances)


def _scored(
    part: Part, decoder: Reranked, spans: Segments
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64]]:
    """Return the probability of each span (None if it takes more than log Z), and log Z of each Doc."""
    if part.blank is None and part.scheme.encoding == "segments":
        return decoder.marginals(*part.inputs, spans)
    with decoder.pool.lend(part.automaton) as buffers:
        return None, log_partition(part.potentials, part.automaton, buffers=buffers)


def _readings(part: Part, decoder: Reranked) -> WholeReadings:
    """Return the n most probable readings of all Docs, with unnormalised scores instead of log probabilities.
    With much whitespace, the score is that of one segmentation of the reading.
    """
    alternatives = Alternatives(part, decoder.pool)
    best, one_by_one = alternatives.best_of_all(decoder.n)
    text = np.repeat(np.arange(len(part.docs)), np.diff(best.offsets))
    readings = WholeReadings(best.spans, text, best.scores)
    other_readings = list[WholeReadings]()
    for i in one_by_one:
        with decoder.pool.lend(part.automaton) as buffers:
            [log_z] = log_partition(part.potentials.only(i), part.automaton, buffers=buffers)
        bounds, *spans, logs = alternatives.best(i, decoder.n, log_z).columns()
        columns = Segments(np.array(bounds), *spans), np.full(len(logs), i), log_z + np.array(logs)
        other_readings += [WholeReadings(*columns)] if logs else []
    if not other_readings:
        return readings
    replaced = np.isin(text, [int(other.text[0]) for other in other_readings])
    return WholeReadings.joined([readings.at(np.flatnonzero(~replaced)), *other_readings])
