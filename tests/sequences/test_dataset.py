"""Labelled sequences, collected one by one."""

import numpy as np
import pytest
from labelled_sequences import dataset

from spacy_hocrf.sequences.dataset import Dataset, sequences_at
from spacy_hocrf.sequences.items import read_items

ITEMS = [[["a", "b"]], [], [["b"], {"c": 0.5}], [["a"]]]
NAMES = [["x"], [], ["y", "x"], ["z"]]


def test_numbers_are_in_the_order_of_the_first_time():
    data = dataset(ITEMS, NAMES)
    assert list(data.attributes) == list("abc") and list(data.labels) == list("xyz")
    items, label = data.take(-1)
    assert items.offsets.tolist() == [0, 1, 1, 3, 4]
    assert items.row_offsets.tolist() == [0, 2, 3, 4, 5]
    assert items.attribute.tolist() == [0, 1, 1, 2, 0]
    assert items.value.tolist() == [1.0, 1.0, 1.0, 0.5, 1.0]
    assert label.tolist() == [0, 1, 0, 2]


def test_values_of_1_are_not_kept():
    assert dataset(ITEMS[:2], NAMES[:2]).take(-1).items.value is None


def test_some_sequences():
    items, label = sequences_at(dataset(ITEMS, NAMES).take(-1), np.array([3, 1, 2]))
    assert items.offsets.tolist() == [0, 1, 1, 3] and label.tolist() == [2, 1, 0]
    assert items.attribute.tolist() == [0, 1, 2] and items.value.tolist() == [1.0, 1.0, 0.5]


def test_a_group_is_held_out():
    data = dataset(ITEMS, NAMES)
    data.append(read_items([["b"]]), ["y"], group=2)
    assert data.take(2).label.tolist() == [0, 1, 0, 2]
    assert data.take(2, held_out=True).label.tolist() == [1]
    assert len(data.take(-1).label) == 5


def test_labels_may_be_empty_or_bytes():
    data = Dataset()
    data.append(read_items([["a"], ["b"]]), ["", "ü".encode()])
    assert list(data.labels) == ["", "ü"]


def test_what_is_no_labelled_sequence_adds_nothing():
    data = dataset(ITEMS, NAMES)
    with pytest.raises(ValueError, match="H272"):
        data.append(read_items([["a"]]), ["x", "y"])
    for label in (1, None, b"\xff"):
        with pytest.raises(ValueError, match="H284"):
            data.append(read_items([["new"]]), [label])
    assert len(data) == 4 and "new" not in data.attributes
