"""Sequences of items with labels that are drawn, and models of them by enumeration: slow, obvious, and
sharing nothing with the package but its types.
"""

import itertools
import math

import numpy as np

from spacy_hocrf.sequences.dataset import Dataset
from spacy_hocrf.sequences.features import FeatureSettings, features_of
from spacy_hocrf.sequences.items import read_items
from spacy_hocrf.sequences.learning import LearningSettings, learn, sequence_model

LABELS = ("sun", "rain", "fog")
PAIRS = FeatureSettings()
EXACT = LearningSettings(c2=0.3, epsilon=1e-9, delta=1e-15)


def draw(seed, n=30, longest=7, labels=LABELS, values=True):
    """Items and labels of n sequences: attributes that tell something of the label, and of the one
    before it.
    """
    rng = np.random.default_rng(seed)
    items, names = [], []
    for _ in range(n):
        x, y = [], []
        for _ in range(rng.integers(0, longest + 1)):
            new = not y or rng.random() < 0.6
            label = int(rng.integers(len(labels))) if new else (y[-1] + 1) % len(labels)
            seen = label if rng.random() < 0.7 else int(rng.integers(len(labels)))
            item = {f"see{seen}": 1.0, "word": f"w{rng.integers(8) + 3 * label}"}
            if values and rng.random() < 0.5:
                item["warm"] = float(np.round(rng.normal(), 2))
            x.append(item)
            y.append(label)
        items.append(x)
        names.append([labels[label] for label in y])
    return items, names


def dataset(items, names):
    data = Dataset()
    for x, y in zip(items, names):
        data.append(read_items(x), y)
    return data


def learnt(items, names, features=PAIRS, settings=EXACT, watch=lambda _: None):
    """A model of labelled sequences, and why its training ended."""
    data = dataset(items, names)
    labelled = data.take(-1)
    some = features_of(labelled, data.attributes, len(data.labels), features)
    weights, status, _ = learn(labelled, some, settings, watch)
    return sequence_model(data.labels, data.attributes, some, weights), status


def scores(model, sequence):
    """Every labelling of a sequence, as numbers, and its score in nats."""
    weights = model.state_features()
    transitions = dict(zip(model.patterns, model.pattern_weight.tolist()))
    found = {}
    for labelling in itertools.product(range(len(model.labels)), repeat=len(sequence)):
        total = 0.0
        for t, (names, values) in enumerate(sequence):
            for first in range(t + 1):
                labels = [model.labels[label] for label in labelling[first : t + 1]]
                for name, value in zip(names, values or [1.0] * len(names)):
                    total += value * weights.get((name, *labels), 0.0)
                total += transitions.get(labelling[first : t + 1], 0.0)
        found[labelling] = total
    return found


def probabilities(model, sequence):
    """Every labelling, and its probability."""
    found = scores(model, sequence)
    total = math.fsum(math.exp(score) for score in found.values())
    return {labelling: math.exp(score) / total for labelling, score in found.items()}
