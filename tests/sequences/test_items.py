"""Items as users write them, as arrays."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from spacy_hocrf.sequences.items import attributes_of, look_up, read_items


@pytest.mark.parametrize(
    "item, names, values",
    [
        (["a", "b"], ["a", "b"], None),
        ({"a"}, ["a"], None),
        ({"a": 1}.keys(), ["a"], None),
        ([b"a"], ["a"], None),
        ([], [], None),
        ({}, [], None),
        ({"a": 0.5, "b": 1}, ["a", "b"], [0.5, 1.0]),
        ({"a": True, "b": False}, ["a", "b"], [1.0, 0.0]),
        ({"a": True, "b": 1}, ["a", "b"], None),
        (
            {"a": np.float32(0.5), "b": np.bool_(True), "c": np.int64(3)},
            ["a", "b", "c"],
            [0.5, 1, 3],
        ),
        ({"a": Decimal("0.5"), "b": Fraction(1, 4)}, ["a", "b"], [0.5, 0.25]),
        ({"a": np.array(0.5)}, ["a"], [0.5]),
        ({"a": np.array(["x", "y"])}, ["a:x", "a:y"], None),
        ({"a": "x", "b": "ü".encode()}, ["a:x", "b:ü"], None),
        ({b"a": "x"}, ["a:x"], None),
        ({"a": {"b": {"c": 2}, "d": "e"}}, ["a:b:c", "a:d:e"], [2.0, 1.0]),
        ({"a": ["x", b"y"], "b": ()}, ["a:x", "a:y"], None),
    ],
)
def test_attributes_of_an_item(item, names, values):
    assert attributes_of(item) == (names, values)


@pytest.mark.parametrize(
    "item, code",
    [
        ("word", "H270"),
        (b"word", "H270"),
        (1, "H270"),
        (None, "H270"),
        ([{"a": 1.0}], "H270"),
        ([b"\xff"], "H270"),
        ({1: "a"}, "H270"),
        ({"a": [1]}, "H270"),
        ({"a": None}, "H271"),
        ({"a": float("nan")}, "H271"),
        ({"a": float("inf")}, "H271"),
        ({"a": 1j}, "H271"),
        ({"a": 10**400}, "H271.*1000"),
    ],
)
def test_what_is_no_item_is_named(item, code):
    with pytest.raises(ValueError, match=code):
        attributes_of(item)


@pytest.mark.parametrize("sequence", ["word", b"word", {"a": 1.0}, ["word"]])
def test_what_is_no_sequence_is_named(sequence):
    with pytest.raises(ValueError, match=r"H270.* is (part of )?.+ \((str|bytes|dict)\)"):
        read_items(sequence)


def test_unknown_attributes_are_left_out():
    sequences = [read_items([["a", "new", "b"], ["new"]]), [], read_items([{"new": 3, "b": 0.5}])]
    items = look_up(sequences, {"a": 0, "b": 1})
    assert items.offsets.tolist() == [0, 2, 2, 3]
    assert items.row_offsets.tolist() == [0, 2, 2, 3]
    assert items.attribute.tolist() == [0, 1, 1] and items.attribute.dtype == np.int32
    assert items.value.tolist() == [1.0, 1.0, 0.5]


def test_values_are_only_where_one_is_not_1():
    assert look_up([read_items([["a"], {"b": 1.0}])], {"a": 0, "b": 1}).value is None


def test_no_sequences():
    items = look_up([], {})
    assert items.offsets.tolist() == [0] and items.row_offsets.tolist() == [0]
