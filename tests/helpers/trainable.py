"""A model as far as the settings of trainers look at it."""

from types import SimpleNamespace

import numpy as np


def model(orders, corpus=10, loaded=0, new=()):
    """Features of these orders, some of them new; 10 documents, and as many that a loaded model was trained
    on.
    """
    return SimpleNamespace(
        orders=np.array(orders, dtype=np.int32),
        weights=np.full(len(orders), 2.0),
        loaded_weights=np.full(len(orders), 0.5) if loaded else None,
        new_features=np.isin(np.arange(len(orders)), new),
        corpus_size=corpus,
        loaded_size=loaded,
    )
