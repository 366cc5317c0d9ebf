"""Removes features from an index."""

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.table import ObservationTable
from spacy_hocrf.types import LabelPattern

__all__ = ["pruned"]


def pruned(index: FeatureIndex, kept: NDArray[np.bool_]) -> FeatureIndex:
    """Return an index of some of the features, with only their observations and the longer label patterns
    that they need.

    kept (bool [F]): the features to keep.
    """
    patterns = _closed(index, np.unique(index.feature_pattern[kept]))
    new_number = {pattern: z for z, pattern in enumerate(patterns)}
    numbers = np.array([new_number.get(z, -1) for z in index.patterns], dtype=np.int32)
    # the observations with a kept feature, and which of them each kept feature belongs to
    rows, observation = np.unique(index.feature_observation[kept], return_inverse=True)
    fewer = FeatureIndex(patterns, index.templates)
    fewer.table = ObservationTable.from_rows(np.ascontiguousarray(index.table.rows[rows]))
    fewer.feature_offsets = np.searchsorted(observation, np.arange(len(rows) + 1)).astype(np.int64)
    fewer.feature_template = index.feature_template[kept]
    fewer.feature_pattern = numbers[index.feature_pattern[kept]]
    fewer.feature_count = index.feature_count[kept]
    return fewer


def _closed(index: FeatureIndex, used: NDArray[np.int32]) -> tuple[LabelPattern, ...]:
    """The single labels, and the longer patterns in use with all their prefixes and suffixes."""
    kept, queue = set[LabelPattern](), [index.patterns[z] for z in used.tolist()]
    while queue:
        pattern = queue.pop()
        if len(pattern) > 1 and pattern not in kept:
            kept.add(pattern)
            queue += [pattern[:-1], pattern[1:]]
    return tuple(z for z in index.patterns if len(z) == 1 or z in kept)
