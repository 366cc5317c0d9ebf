"""The features of a model of sequences: attributes with label patterns, and label patterns alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.sequences.dataset import Labelled
from spacy_hocrf.types import LabelPattern

__all__ = ["FeatureSettings", "Features", "features_of"]


@dataclass(frozen=True)
class FeatureSettings:
    """Settings that determine the features.

    order (int): number of earlier labels in label patterns.
    min_freq (float): features that are seen less often are left out; each occurrence counts as the absolute
        value of the attribute.
    all_states (bool): make features of every attribute with every label, seen or not.
    all_transitions (bool): make features of every pair of labels.
    attribute_orders (Mapping[str, Sequence[int]]): numbers of earlier labels that features of attributes
        see, by prefix of the attribute's name; the longest matching prefix counts, [0] without one.
    """

    order: int = 1
    min_freq: float = 0.0
    all_states: bool = False
    all_transitions: bool = False
    attribute_orders: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def orders_of(self, name: str) -> Sequence[int]:
        """Return the numbers of earlier labels that features of an attribute see."""
        for length in range(len(name), -1, -1):
            if name[:length] in self.attribute_orders:
                return self.attribute_orders[name[:length]]
        return (0,)


@dataclass(frozen=True)
class Features:
    """Features of A attributes and Y labels, in the order of their weights: F features of attributes, then
    the patterns of two or more labels.
    """

    n_labels: int
    offsets: NDArray[np.int64]  # [A + 1] first feature of each attribute
    pattern: NDArray[np.int32]  # [F] its label, or Y + number of a longer pattern; ascending
    patterns: tuple[LabelPattern, ...]  # patterns of two or more labels, shortest first

    def __len__(self) -> int:
        return len(self.pattern) + len(self.patterns)


def features_of(
    data: Labelled, attributes: Mapping[str, int], n_labels: int, settings: FeatureSettings
) -> Features:
    """Return the features that occur in labelled sequences.

    attributes (Mapping[str, int]): number of each attribute.
    """
    longest = int(np.diff(data.items.offsets).max(initial=0))
    settings = replace(settings, order=min(settings.order, max(1, longest - 1)))
    orders = [_Order(data, n_labels, order, settings) for order in range(settings.order + 1)]
    seen_at = _orders(attributes, settings)
    keys = []  # attribute and pattern of each feature, as one number
    first, n_patterns = 0, sum(len(of_order.patterns) for of_order in orders)
    for order, of_order in enumerate(orders):
        keys.append(of_order.attributes(data, seen_at[:, order], settings, n_patterns, first))
        first += len(of_order.patterns)
    key = np.sort(np.concatenate(keys))
    return Features(
        n_labels=n_labels,
        offsets=np.searchsorted(key // max(1, n_patterns), np.arange(len(attributes) + 1)),
        pattern=(key % max(1, n_patterns)).astype(np.int32),
        patterns=tuple(pattern for of_order in orders[1:] for pattern in of_order.patterns),
    )


class _Order:
    """The label patterns of one length.

    patterns (list[LabelPattern]): ascending; all single labels if the length is 1.
    of_item (int64 [N]): number of the pattern that ends at each item, -1 for none.
    """

    def __init__(
        self, data: Labelled, n_labels: int, order: int, settings: FeatureSettings
    ) -> None:
        offsets = data.items.offsets
        # the last item of each sequence of order + 1 labels, and its labels
        place = np.arange(len(data.label)) - np.repeat(offsets[:-1], np.diff(offsets))
        last = np.flatnonzero(place >= order)
        labels = np.stack([data.label[last - order + i] for i in range(order + 1)], axis=1)
        every = order == 0 or (order == 1 and settings.all_transitions and settings.min_freq <= 0.0)
        if every:
            self.patterns = [tuple(z) for z in np.ndindex(*[n_labels] * (order + 1))]
            number = (
                np.ravel_multi_index(tuple(labels.T), [n_labels] * (order + 1)) if len(last) else 0
            )
        else:
            distinct, inverse, count = np.unique(
                labels, axis=0, return_inverse=True, return_counts=True
            )
            keep = count >= settings.min_freq
            self.patterns = [tuple(z) for z in distinct[keep].tolist()]
            number = np.where(keep, np.cumsum(keep) - 1, -1)[inverse.ravel()]
        self.of_item = np.full(len(data.label), -1, dtype=np.int64)
        self.of_item[last] = number

    def attributes(
        self,
        data: Labelled,
        chosen: NDArray[np.bool_],
        settings: FeatureSettings,
        n_patterns: int,
        first: int,
    ) -> NDArray[np.int64]:
        """Return the features of attributes with these patterns, as attribute · n_patterns + number of the
        pattern, ascending.

        chosen (bool [A]): attributes that have features with these patterns.
        first (int): number of the first of these patterns.
        """
        # the key of the feature that fires with each attribute of an item, and how often each does
        items = data.items
        pattern = np.repeat(self.of_item, np.diff(items.row_offsets))
        fires = np.flatnonzero((pattern >= 0) & chosen[items.attribute])
        key = items.attribute[fires].astype(np.int64) * n_patterns + first + pattern[fires]
        keys, inverse = np.unique(key, return_inverse=True)
        weight = None if items.value is None else np.abs(items.value[fires])
        count = np.bincount(inverse, weight, len(keys))
        if settings.all_states and first == 0 and settings.min_freq <= 0.0:
            every = np.flatnonzero(chosen)[:, None] * n_patterns + np.arange(len(self.patterns))
            return every.ravel()
        frequent: NDArray[np.int64] = keys[count >= settings.min_freq]
        return frequent


def _orders(attributes: Mapping[str, int], settings: FeatureSettings) -> NDArray[np.bool_]:
    """Which orders of features each attribute has, bool [A, order + 1]."""
    orders = np.zeros((len(attributes), settings.order + 1), dtype=bool)
    if not settings.attribute_orders:
        orders[:, 0] = True
        return orders
    for name, number in attributes.items():
        orders[number, [order for order in settings.orders_of(name) if order <= settings.order]] = (
            True
        )
    return orders
