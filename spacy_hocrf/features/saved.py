"""Checks of the arrays that a feature index is saved as: all relations between them that the kernels rely
on, which index by these numbers without bounds checks.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.observers import Observer
from spacy_hocrf.features.segments import LengthTemplate
from spacy_hocrf.features.templates import Template
from spacy_hocrf.types import LabelPattern

__all__ = ["check_arrays", "need", "patterns_from", "patterns_to"]

Arrays = Mapping[str, NDArray[Any]]


def patterns_to(patterns: Sequence[LabelPattern]) -> dict[str, NDArray[np.int32]]:
    """Convert label patterns to arrays."""
    return {
        "pattern_length": np.array([len(pattern) for pattern in patterns], dtype=np.int32),
        "pattern_label": np.array([y for pattern in patterns for y in pattern], dtype=np.int32),
    }


def patterns_from(arrays: Arrays, n_labels: int) -> tuple[LabelPattern, ...]:
    """Convert arrays to label patterns.

    n_labels (int): number of labels Y.
    RETURNS (tuple[LabelPattern, ...]): the Y single labels in order, then longer ones. With every
        pattern its first and last labels are patterns, too, as for all n-grams of a text: so the
        automaton has no more states than there are patterns.
    RAISES (ValueError): H039 for invalid arrays.
    """
    length, label = arrays["pattern_length"], arrays["pattern_label"]
    need(len(length) >= n_labels > 0, "pattern_length")
    need((length[:n_labels] == 1).all() and (length[n_labels:] > 1).all(), "pattern_length")
    need(int(length.sum(dtype=np.uint64)) == len(label), "pattern_label")
    need(_within(label, n_labels), "pattern_label")
    need(np.array_equal(label[:n_labels], np.arange(n_labels)), "pattern_label")
    labels, ends = label.tolist(), np.cumsum(length, dtype=np.int64).tolist()
    patterns = tuple(tuple(labels[end - n : end]) for n, end in zip(length.tolist(), ends))
    distinct = set(patterns)
    need(len(distinct) == len(patterns), "pattern_label")
    longer = patterns[n_labels:]
    need(all(z[:-1] in distinct and z[1:] in distinct for z in longer), "pattern_label")
    return patterns


def check_arrays(
    arrays: Arrays,
    patterns: Sequence[LabelPattern],
    templates: Sequence[Template],
    observers: Sequence[Observer],
    width: int,
) -> None:
    """Check all arrays but those of the patterns, given that types and dimensions are right.

    arrays (Mapping[str, NDArray]): those of `FeatureIndex.arrays`.
    patterns (Sequence[LabelPattern]): the Z patterns.
    templates (Sequence[Template]): templates of the model.
    observers (Sequence[Observer]): observers, which the first column of observations refers to.
    width (int): attribute values of the widest template.
    RAISES (ValueError): H039 with the name of an array that holds numbers out of range, or does not
        fit the others.
    """
    rows, offsets = arrays["observations"], arrays["feature_offsets"]
    template, pattern = arrays["feature_template"], arrays["feature_pattern"]
    count = arrays["feature_count"]
    n_features = len(pattern)
    need(rows.shape[1] == 1 + width, "observations")
    _check_rows(rows, observers)
    need(len(offsets) == len(rows) + 1, "feature_offsets")
    # compared, not subtracted: a difference of int64 may wrap around
    need(offsets[0] == 0 and offsets[-1] == n_features, "feature_offsets")
    need((offsets[:-1] <= offsets[1:]).all(), "feature_offsets")
    need(_within(pattern, len(patterns)), "feature_pattern")
    need(template.shape == pattern.shape, "feature_template")
    need(_within(template, len(templates)), "feature_template")
    # each feature's template is one of its observation's observer
    per_row = np.diff(offsets)
    observer_of = np.zeros(len(templates), dtype=np.int32)
    for observer in observers:
        observer_of[list(observer.templates)] = observer.number
    observed = np.repeat(rows[:, 0].astype(np.int32), per_row)
    need((observer_of[template] == observed).all(), "feature_template")
    # the features of an observation ascend by template, then by pattern
    observation = np.repeat(np.arange(len(rows), dtype=np.int32), per_row)
    step = np.diff(template)
    new = observation[1:] != observation[:-1]
    need((new | (step >= 0)).all(), "feature_template")
    need((new | (step > 0) | (pattern[1:] > pattern[:-1])).all(), "feature_pattern")
    lengths = np.array([len(z) for z in patterns], dtype=np.int32)
    expected = np.array([1 + template.order for template in templates], dtype=np.int32)
    need((lengths[pattern] == expected[template]).all(), "feature_pattern")
    need(count.shape == pattern.shape and (count >= 0).all(), "feature_count")


def need(holds: "bool | np.bool_", name: str) -> None:
    """Check something about a saved array, or a part of the header, with this name.

    RAISES (ValueError): H039 unless it holds.
    """
    if not holds:
        raise ValueError(Errors.H039.format(name=name[:40]))


def _check_rows(rows: NDArray[np.uint64], observers: Sequence[Observer]) -> None:
    """Check that observers exist, that nothing is beyond a template's width, and that bins exist."""
    need(bool((rows[:, 0] < len(observers)).all()), "observations")
    for observer in observers:
        template = observer.template
        values = rows[rows[:, 0] == observer.number, 1:]
        need(not values[:, template.width :].any(), "observations")
        if isinstance(template, LengthTemplate):
            need(bool((values[:, 0] < len(template.bins)).all()), "observations")


def _within(values: NDArray[Any], n: int) -> bool:
    return not len(values) or bool(0 <= values.min() and values.max() < n)
