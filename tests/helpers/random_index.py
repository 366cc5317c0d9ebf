"""Features of observations of several kinds, at random."""

import numpy as np

from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.templates import AttributeTemplate
from spacy_hocrf.types import CONST, END, INNER, LENGTH, SPAN, START, TOKEN

__all__ = ["KINDS", "index_of", "observed"]

KINDS = [(TOKEN,), (START, END, TOKEN), (START, END, TOKEN, INNER), (END, INNER)]
TEMPLATES = [
    AttributeTemplate(((attribute, 0),), part, order)
    for attribute, parts in zip(("NORM", "SHAPE", "LEMMA", "TAG"), KINDS)
    for part in parts
    for order in ((0, 1) if part != END else (0,))
]


def observed(template, events, first, start, end):
    """[(values, weight)] of what a template observes at a segment, by the definitions of the parts.

    events (Events): of the template. first (int): first token of the segment's text.
    """
    if template.part == CONST:
        return [((), 1.0)]
    if template.part == LENGTH:
        return [((sum(low <= end - start for low in template.bins) - 1,), 1.0)]
    found = []
    for i, token in enumerate(events.token - first):
        there = {
            START: token == start,
            END: token == end - 1,
            TOKEN: start <= token < end,
            INNER: start < token < end,
            SPAN: token == start and events.end is not None and events.end[i] - first == end,
        }
        if there[template.part]:
            weight = 1.0 if events.weight is None else float(events.weight[i])
            found.append((tuple(map(int, events.values[i])), weight))
    return found


def index_of(rng, labels, observations=60, longer=3):
    """Features of some observations: some have many labels, some few, some none, some longer
    patterns too, which any template of order 1 has.
    """
    patterns = (*((y,) for y in range(labels)), *((0, y % labels) for y in range(longer)))
    index = FeatureIndex(patterns, TEMPLATES)
    observers = rng.integers(0, len(index.observers), observations)
    index.table.add(0, np.zeros((0, 1), dtype=np.uint64))
    rows = np.array([[observer, i] for i, observer in enumerate(observers)], dtype=np.uint64)
    index.table = type(index.table).from_rows(rows)
    features = []
    for i, observer in enumerate(observers):
        share = rng.choice([0.0, 0.1, 0.5, 1.0])
        chosen = rng.random(labels) < share
        for number in index.observers[observer].templates:
            order = TEMPLATES[number].order
            here = np.flatnonzero(chosen & (rng.random(labels) < 0.8)) if order == 0 else []
            there = np.arange(longer) + labels if order == 1 and i % 4 == 0 else []
            features += [(i, number, z) for z in (*here, *there)]
    observation, template, pattern = np.array(features, dtype=np.int32).T.copy()
    index.feature_offsets = np.searchsorted(observation, np.arange(observations + 1))
    index.feature_template, index.feature_pattern = template, pattern
    return index
