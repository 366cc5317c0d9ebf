"""Columns by their distinct values, against dicts and loops."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from spacy_hocrf.features import columns
from spacy_hocrf.features.columns import (
    Lexicon,
    any_set,
    distinct,
    end_to_end,
    entity_columns,
    packed_flags,
    set_labels,
    spread_lists,
)
from spacy_hocrf.types import Segments


def column_of(values):
    return np.array(values, dtype=np.uint64)


@pytest.mark.parametrize("strings", [[], [""], ["a", "", "Äb", "😀", "a"]])
def test_strings_end_to_end_are_their_bytes(strings):
    text, offsets = end_to_end(strings)
    assert (text.dtype, offsets.dtype, offsets[0]) == (np.uint8, np.int64, 0)
    parts = [bytes(text[first:last]).decode() for first, last in pairwise(offsets.tolist())]
    assert parts == strings
    assert offsets[-1] == len(text)


@pytest.mark.parametrize("size, most", [(0, 5), (1, 5), (7, 2), (1000, 30), (5000, 2**64)])
def test_distinct_values_are_numbered_in_the_order_of_their_first_occurrence(size, most):
    column = np.random.default_rng(size).integers(0, most, size, dtype=np.uint64)
    values, codes = distinct(column)
    numbers = {}
    expected = [numbers.setdefault(int(value), len(numbers)) for value in column]
    assert codes.tolist() == expected
    assert values.tolist() == list(numbers)
    assert (values.dtype, codes.dtype) == (np.uint64, np.int32)


def test_values_that_share_their_low_bits_are_told_apart():
    column = column_of([2**40 * i for i in range(100)] + [0, 2**63, 2**64 - 1])
    values, codes = distinct(column)
    assert_array_equal(values[codes], column)
    assert len(values) == 102


def test_lists_are_spread_entry_by_entry():
    firsts, codes = np.array([0, 2, 2, 5]), np.array([2, 1, 0, 2], dtype=np.int32)
    token, entry = spread_lists(firsts, codes)
    assert token.tolist() == [0, 0, 0, 2, 2, 3, 3, 3]
    assert entry.tolist() == [2, 3, 4, 0, 1, 2, 3, 4]


def test_nothing_is_spread_over_no_tokens():
    none = np.zeros(0, dtype=np.int32)
    assert [part.tolist() for part in spread_lists(np.zeros(1, dtype=np.int64), none)] == [[], []]


def test_flags_are_packed_with_the_first_in_the_lowest_bit_and_others_above():
    columns = [column_of([1, 0, 1, 0]), column_of([0, 0, 7, 0])]
    others = np.array([[0], [4], [2**30]], dtype=np.int32)
    codes = np.array([1, 0, 2, 1], dtype=np.int32)
    assert packed_flags(columns, codes, others).tolist() == [5, 0, 2**30 + 3, 4]
    assert packed_flags([], codes, others).tolist() == [4, 0, 2**30, 4]
    with pytest.raises(AssertionError):
        packed_flags([column_of([1])], codes, others)


class Squares:
    """Two numbers of every value, and the values that were asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, values):
        self.asked += values.tolist()
        return np.array([[value % 1000, value**2 % 1000] for value in values.tolist()], np.int32)


@pytest.mark.parametrize("most", [0, 5, 100, 10**6])
def test_a_lexicon_knows_the_numbers_of_all_values_however_many_it_keeps(most):
    rng, find, lexicon = np.random.default_rng(most), Squares(), Lexicon(2, most)
    seen = []
    for size in [0, 1, 3, 50, 1000, 7, 2000, 0, 40]:
        column = rng.integers(0, 400, size, dtype=np.uint64) * np.uint64(2**40)
        seen.append((column, *lexicon.look_up(column, find)))
        assert lexicon.count <= most + len(set(column.tolist()))
    for column, codes, numbers in seen:  # what was given stays
        assert (codes.dtype, numbers.dtype) == (np.int32, np.int32)
        assert_array_equal(np.asarray(numbers)[codes], Squares()(column).reshape(-1, 2))
    if most >= 400:
        assert len(find.asked) == len(set(find.asked))


def test_a_lexicon_knows_nothing_of_values_that_nothing_was_found_of():
    lexicon, known = Lexicon(2, 10), column_of([7])
    lexicon.look_up(known, Squares())
    with pytest.raises(KeyError):
        lexicon.look_up(column_of([7, 8]), _missing)
    find = Squares()
    codes, numbers = lexicon.look_up(column_of([8, 7]), find)
    assert np.asarray(numbers)[codes].tolist() == [[8, 64], [7, 49]]
    assert find.asked == [8, 7]


def test_a_lexicon_that_cannot_grow_knows_nothing_of_the_values_in_its_way(monkeypatch):
    lexicon, many = Lexicon(2, 10**6), np.arange(100, dtype=np.uint64)

    def full(*_, **__):
        monkeypatch.undo()
        raise MemoryError

    monkeypatch.setattr(columns, "np", SimpleNamespace(**{**vars(np), "full": full}))
    with pytest.raises(MemoryError):
        lexicon.look_up(many, Squares())
    for values in (many[:50], many):
        codes, numbers = lexicon.look_up(values, Squares())
        assert_array_equal(np.asarray(numbers)[codes], Squares()(values))


def _missing(values):
    raise KeyError(values)


def spans_of(offsets, *rows):
    start, end, label = np.array(rows, dtype=np.int32).reshape(-1, 3).T.copy()
    return Segments(np.array(offsets, dtype=np.int64), start, end, label)


HASHES = column_of([7, 8, 2**64 - 1])


def test_entities_begin_go_on_and_leave_the_rest_outside():
    spans = spans_of([0, 2, 2, 3], (1, 2, 0), (2, 4, 1), (0, 1, 2))
    columns = entity_columns(np.array([0, 5, 5, 6]), spans, HASHES)
    assert columns.tolist() == [[2, 0], [3, 7], [3, 8], [1, 8], [2, 0], [3, 2**64 - 1]]
    assert entity_columns(np.array([0]), spans_of([0]), HASHES).shape == (0, 2)


@pytest.mark.parametrize("start, end, label", [(-1, 1, 0), (2, 2, 0), (1, 4, 0), (0, 1, 3)])
def test_a_span_that_is_empty_or_reaches_beyond_its_sequence_is_none(start, end, label):
    offsets, spans = np.array([0, 3, 9]), spans_of([0, 1, 1], (start, end, label))
    with pytest.raises(AssertionError):
        entity_columns(offsets, spans, HASHES)
    with pytest.raises(AssertionError):
        set_labels(np.zeros(9, dtype=np.uint64), offsets, spans, HASHES)


def test_labels_are_set_where_spans_are_and_nowhere_else():
    column = column_of([1, 2, 3, 4, 5])
    spans = spans_of([0, 1, 2], (0, 1, 0), (0, 2, 2))
    set_labels(column, np.array([0, 2, 5]), spans, HASHES)
    assert column.tolist() == [7, 2, 2**64 - 1, 2**64 - 1, 5]


@pytest.mark.parametrize("place", range(4))
def test_one_value_that_is_set_is_found_wherever_it_is(place):
    column = column_of([0, 0, 0, 0])
    assert not any_set(column) and not any_set(column[:0])
    column[place] = 2**63
    assert any_set(column)
