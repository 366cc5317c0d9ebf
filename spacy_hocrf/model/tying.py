"""Ties the weights of features that the texts of a corpus cannot tell apart, while learning from it.

A word that occurs once has its own prefixes, suffixes and shape, all of which are observed at one token; a
comma is its own prefix. Observations that always occur at the same tokens and have equal features add to
the same scores: only the sum of their weights matters (`engine/tying.py`).
"""

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import hashes
from spacy_hocrf.features.rows import add_signatures_into
from spacy_hocrf.model.placement import CompiledIndex
from spacy_hocrf.types import Rows

if TYPE_CHECKING:
    from spacy_hocrf.features.index import FeatureIndex
    from spacy_hocrf.model.dense import DenseWeights

__all__ = ["inseparable", "tie"]


def inseparable(index: "FeatureIndex", corpus: Iterable[Rows]) -> NDArray[np.int32]:
    """Find observations that always occur together.

    index (FeatureIndex): M observations.
    corpus (Iterable[Rows]): the observations of the corpus' tokens, part by part.
    RETURNS (int32 [M]): for each observation, the first one that occurs at the same tokens and has the
        same features; the observation itself if it does not occur.
    """
    keys, n_tokens = np.zeros((len(index.feature_offsets) - 1, 2), dtype=np.uint64), 0
    for rows in corpus:
        add_signatures_into(keys, rows, n_tokens)
        n_tokens += len(rows.offsets) - 1
    occurs = keys[:, 0] != 0
    n_parts, (_, inside) = index.feature_part.max(initial=0) + np.int64(1), _inside(index)
    feature = (inside * len(index.patterns) + index.feature_pattern) * n_parts + index.feature_part
    keys += _sums(hashes(np.uint64(0), feature.astype(np.uint64)), index.feature_offsets)[:, None]
    # the first observation with the same first key; tied if the second key is the same, too
    _, first, group = np.unique(keys[:, 0], return_index=True, return_inverse=True)
    representative = first[group]
    tied = occurs & (keys == keys[representative]).all(axis=1)
    return np.where(tied, representative, np.arange(len(representative))).astype(np.int32)


def tie(
    index: "FeatureIndex", representative: NDArray[np.int32], dense: "DenseWeights | None" = None
) -> tuple[CompiledIndex, NDArray[np.int32]]:
    """Compile an index with one weight for features that always occur together; observations keep their
    numbers.

    index (FeatureIndex): F features.
    representative (int32 [M]): the result of `inseparable`.
    dense (Optional[DenseWeights]): H dense weights, which are not tied.
    RETURNS (tuple[CompiledIndex, int32 [F + H]]): the arrangement of G tied and H dense weights, and the
        number among these of each feature's, and each dense, weight.
    """
    is_representative = representative == np.arange(len(representative))
    # the index without the features of other observations
    kept = is_representative[index.feature_observation]
    tied = copy(index)
    tied.feature_template = index.feature_template[kept]
    tied.feature_pattern = index.feature_pattern[kept]
    sizes = np.where(is_representative, np.diff(index.feature_offsets), 0)
    tied.feature_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    # for each feature, that of the representative at the same place, and its number in `tied`
    observation, inside = _inside(index)
    tied_to = index.feature_offsets[representative[observation]] + inside
    group = (np.cumsum(kept) - 1)[tied_to]
    arranged = CompiledIndex(tied, dense)
    dense_numbers = len(tied) + np.arange(arranged.n_dense)
    return arranged, np.concatenate([group, dense_numbers]).astype(np.int32)


def _inside(index: "FeatureIndex") -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Observation of every feature, and its place among the observation's features, [F] each."""
    observation = index.feature_observation
    return observation, np.arange(len(index), dtype=np.int64) - index.feature_offsets[observation]


def _sums(values: NDArray[np.uint64], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Sums of consecutive values, modulo 2^64, uint64 [len(offsets) - 1]."""
    before = np.concatenate([[np.uint64(0)], np.cumsum(values)])
    sums: NDArray[np.uint64] = before[offsets[1:]] - before[offsets[:-1]]
    return sums
