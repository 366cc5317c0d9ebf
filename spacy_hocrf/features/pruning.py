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
    numbers = np.full(len(index.patterns), -1, dtype=np.int32)
    place = {pattern: z for z, pattern in enumerate(index.patterns)}
    numbers[[place[pattern] for pattern in patterns]] = np.arange(len(patterns), dtype=np.int32)
    observation = index.feature_observation[kept]
    rows, number = np.unique(observation, return_inverse=True)
    other = FeatureIndex(patterns, index.templates)
    other.table = ObservationTable.from_rows(np.ascontiguousarray(index.table.rows[rows]))
    other.feature_offsets = np.searchsorted(number, np.arange(len(rows) + 1)).astype(np.int64)
    other.feature_template = index.feature_template[kept]
    other.feature_pattern = numbers[index.feature_pattern[kept]]
    other.feature_count = index.feature_count[kept]
    return other


def _closed(index: FeatureIndex, used: NDArray[np.int32]) -> tuple[LabelPattern, ...]:
    """The single labels, and the longer patterns in use with all their prefixes and suffixes."""
    wanted, queue = set[LabelPattern](), [index.patterns[z] for z in used.tolist()]
    while queue:
        pattern = queue.pop()
        if len(pattern) > 1 and pattern not in wanted:
            wanted.add(pattern)
            queue += [pattern[:-1], pattern[1:]]
    return tuple(z for z in index.patterns if len(z) == 1 or z in wanted)
