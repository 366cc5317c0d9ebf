"""Which features a model of sequences has: attributes with labels, and label patterns."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.sequences.dataset import Labelled
from spacy_hocrf.types import LabelPattern

__all__ = ["FeatureSettings", "Features", "features_of"]


@dataclass(frozen=True)
class FeatureSettings:
    """What becomes a feature.

    order (int): earlier labels that label patterns see.
    min_freq (float): features are left out that are seen less often; an attribute counts as much as
        its value, whatever its sign.
    all_states (bool): every attribute with every label, seen or not.
    all_transitions (bool): every pair of labels.
    """

    order: int = 1
    min_freq: float = 0.0
    all_states: bool = False
    all_transitions: bool = False


@dataclass(frozen=True)
class Features:
    """Features of A attributes and Y labels, in the order of their weights: F with attributes, then
    the patterns.
    """

    n_labels: int
    offsets: NDArray[np.int64]  # [A + 1] first feature of each attribute
    label: NDArray[np.int32]  # [F]
    patterns: tuple[LabelPattern, ...]  # of two or more labels, shortest first

    def __len__(self) -> int:
        return len(self.label) + len(self.patterns)


def features_of(
    data: Labelled, n_attributes: int, n_labels: int, settings: FeatureSettings
) -> Features:
    """The features that labelled sequences show."""
    attribute, label = _states(data, n_attributes, n_labels, settings)
    return Features(
        n_labels=n_labels,
        offsets=np.searchsorted(attribute, np.arange(n_attributes + 1)),
        label=label.astype(np.int32),
        patterns=tuple(
            pattern
            for order in range(1, settings.order + 1)
            for pattern in _patterns(data, n_labels, order, settings)
        ),
    )


def _states(
    data: Labelled, n_attributes: int, n_labels: int, settings: FeatureSettings
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Attribute and label of each feature, ascending."""
    items = data.items
    label = np.repeat(data.label, np.diff(items.row_offsets))
    key = items.attribute.astype(np.int64) * n_labels + label
    found, inverse = np.unique(key, return_inverse=True)
    weight = None if items.value is None else np.abs(items.value)
    count: NDArray[np.float64] = np.bincount(inverse, weight, len(found)).astype(float)
    if settings.all_states:
        every = np.zeros(n_attributes * n_labels)
        every[found] = count
        found, count = np.arange(len(every)), every
    found = found[count >= settings.min_freq]
    return found // max(1, n_labels), found % max(1, n_labels)


def _patterns(
    data: Labelled, n_labels: int, order: int, settings: FeatureSettings
) -> Iterator[LabelPattern]:
    """Patterns of order + 1 labels, ascending."""
    offsets = data.items.offsets
    place = np.arange(len(data.label)) - np.repeat(offsets[:-1], np.diff(offsets))
    last = np.flatnonzero(place >= order)
    labels = np.stack([data.label[last - order + i] for i in range(order + 1)], axis=1)
    if order == 1 and settings.all_transitions and settings.min_freq <= 0.0:
        yield from ((x, y) for x in range(n_labels) for y in range(n_labels))
        return
    found, count = np.unique(labels, axis=0, return_counts=True)
    for pattern in found[count >= settings.min_freq].tolist():
        yield tuple(pattern)
