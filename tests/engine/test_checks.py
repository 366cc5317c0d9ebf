"""Checks of small arrays, against numpy."""

from types import SimpleNamespace

import numpy as np
import pytest

from spacy_hocrf.engine.kernels.checks import (
    all_between,
    all_finite,
    all_of_kinds,
    first_uncarried,
    rises_from_0,
)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_value_that_is_not_finite_is_found_wherever_it_is(bad):
    values = np.linspace(-8e307, 8e307, 7)
    assert all_finite(values) and all_finite(values[:0])
    for place in range(len(values)):
        changed = values.copy()
        changed[place] = bad
        assert not all_finite(changed)


@pytest.mark.parametrize(
    "array, good",
    [
        (np.zeros((2, 3)), True),
        (np.zeros((0, 0)), True),
        (np.zeros(3), False),
        (np.zeros((2, 3), dtype=np.float32), False),
        (np.zeros((3, 2)).T, False),
        ([[0.0]], False),
        (None, False),
    ],
)
def test_arrays_of_a_kind_are_contiguous_and_of_its_type_and_dimensions(array, good):
    owner = SimpleNamespace(one=np.zeros(1), two=array)
    kinds = {"one": (np.dtype("float64"), 1), "two": (np.dtype("float64"), 2)}
    assert all_of_kinds(owner, kinds) == good
    assert all_of_kinds(owner, {"one": kinds["one"]})
    assert all_of_kinds(owner, kinds, ("one",)) == good
    assert all_of_kinds(owner, kinds, ("two",)) == (good or array is None)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_are_those_of_the_smallest_and_the_largest_number(seed):
    values = np.random.default_rng(seed).integers(-3, 4, 5).astype(np.int32)
    for least in range(-4, 4):
        for most in range(-4, 5):
            assert all_between(values, least, most) == bool(
                ((values >= least) & (values <= most)).all()
            )
    assert all_between(values[:0], 1, 0)
    assert all_between(np.array([2**31 - 1, -(2**31)], dtype=np.int32), -(2**31), 2**31 - 1)


@pytest.mark.parametrize(
    "offsets, rises",
    [
        ([0], True),
        ([0, 0, 3, 3], True),
        ([], False),
        ([1, 2], False),
        ([0, 3, 2], False),
        ([0, 2**63 - 1, -(2**63)], False),
    ],
)
def test_offsets_rise_from_0_without_their_differences_being_formed(offsets, rises):
    assert rises_from_0(np.array(offsets, dtype=np.int64)) == rises


def test_the_first_pattern_without_an_open_state_is_found():
    body, folded = np.array([0, -1, -1], dtype=np.int32), np.array([0, 1, 0], dtype=np.uint8)
    patterns, parts = np.array([0, 1, 2, 2], dtype=np.int32), np.array([1, 1, 0, 2], dtype=np.uint8)
    assert first_uncarried(patterns, body, folded) == 2
    assert first_uncarried(patterns, body, folded, parts, 0) == 3
    assert first_uncarried(patterns[:3], body, folded, parts[:3], 0) == -1
    assert first_uncarried(patterns[:0], body, folded) == -1
