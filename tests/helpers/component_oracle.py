"""What the model of a component says of one text, by enumeration of all segmentations.

A text is a list of one Doc, or its TokenBatch; weights are those of a component, a learner or a fold.
"""

import numpy as np
import oracle
from entities import entities


def potentials_of(structure, text, weights):
    batch = structure.compile(structure.observe(text), structure.allowed(text))
    return batch.potentials(np.asarray(weights, dtype=np.float64))


def model_of(structure):
    """Patterns, limits and forbidden successions, as the functions of `oracle` take them."""
    scheme = structure.scheme
    return structure.patterns, scheme.limits, frozenset(scheme.forbidden)


def scored(structure, text, weights):
    """{segmentation: score}."""
    return oracle.scored(potentials_of(structure, text, weights), *model_of(structure))


def distribution(structure, text, weights):
    """{segmentation: probability}."""
    return oracle.distribution(potentials_of(structure, text, weights), *model_of(structure))


def span_chances(structure, text, weights):
    """{(start, end, label): probability that a segmentation has the span}."""
    mass = {}
    for segmentation, p in distribution(structure, text, weights).items():
        for span in entities(structure.scheme, segmentation):
            mass[span] = mass.get(span, 0.0) + p
    return mass
