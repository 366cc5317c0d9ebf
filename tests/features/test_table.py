"""The observation table against a dict."""

import pickle

import numpy as np
import pytest

from spacy_hocrf.features.table import ObservationTable


def rows_of(values):
    return np.array(values, dtype=np.uint64).reshape(len(values), -1)


def test_rows_are_numbered_in_the_order_of_their_first_occurrence():
    table = ObservationTable(2)
    assert table.add(0, rows_of([[5, 6], [7, 8], [5, 6]])).tolist() == [0, 1, 0]
    assert table.add(1, rows_of([[5, 6]])).tolist() == [2]
    assert table.lookup(0, rows_of([[7, 8], [8, 7]])).tolist() == [1, -1]
    assert table.lookup(1, rows_of([[5, 6], [7, 8]])).tolist() == [2, -1]
    assert len(table) == 3
    assert table.rows.tolist() == [[0, 5, 6], [0, 7, 8], [1, 5, 6]]
    assert table.width == 2


def test_shorter_rows_are_filled_with_zeros():
    table = ObservationTable(3)
    assert table.add(0, rows_of([[1], [1]])).tolist() == [0, 0]
    assert table.add(0, rows_of([[1, 0, 0]])).tolist() == [0]
    assert table.lookup(0, np.zeros((2, 0), dtype=np.uint64)).tolist() == [-1, -1]


@pytest.mark.parametrize("width", [0, 1, 4])
def test_an_empty_list_adds_nothing(width):
    table = ObservationTable(width)
    assert table.add(0, np.zeros((0, width), dtype=np.uint64)).tolist() == []
    assert len(table) == 0
    assert table.rows.shape == (0, 1 + width)


@pytest.mark.slow
def test_growth_to_100_000_rows_agrees_with_a_dict():
    rng = np.random.default_rng(0)
    table, numbers = ObservationTable(2), {}
    for template in range(20):
        values = rng.integers(0, 2**64, size=(10_000, 2), dtype=np.uint64)
        values[:5_000, 0] = rng.integers(0, 70, 5_000)
        values[:5_000, 1] = rng.integers(0, 90, 5_000)
        found = table.add(template, values)
        expected = [numbers.setdefault((template, *map(int, row)), len(numbers)) for row in values]
        assert found.tolist() == expected
    assert len(table) == len(numbers) > 100_000
    rows = table.rows
    assert [tuple(map(int, row)) for row in rows] == list(numbers)
    for template in (0, 19):
        mine = rows[:, 0] == template
        assert (
            table.lookup(template, np.ascontiguousarray(rows[mine, 1:])).tolist()
            == np.flatnonzero(mine).tolist()
        )
    assert (table.lookup(20, np.ascontiguousarray(rows[:1000, 1:])) == -1).all()


def test_rows_are_a_copy():
    table = ObservationTable(1)
    table.add(0, rows_of([[1]]))
    table.rows[:] = 9
    assert table.rows.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "copy", [lambda t: ObservationTable.from_rows(t.rows), lambda t: pickle.loads(pickle.dumps(t))]
)
def test_a_restored_table_has_the_same_numbers_and_can_grow(copy):
    table = ObservationTable(2)
    table.add(3, rows_of([[i, i + 1] for i in range(300)]))
    other = copy(table)
    assert other.rows.tolist() == table.rows.tolist()
    assert other.lookup(3, rows_of([[7, 8], [8, 8]])).tolist() == [7, -1]
    assert other.add(3, rows_of([[0, 0]])).tolist() == [300]
    assert len(table) == 300


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1_000])
def test_a_trimmed_table_has_the_same_numbers_and_can_grow(count):
    table, rows = ObservationTable(2), np.arange(2 * count, dtype=np.uint64).reshape(-1, 2)
    table.add(3, rows)
    for more in range(3):
        table.trim()
        assert len(table) == count + more
        assert table.lookup(3, rows).tolist() == [*range(count)]
        assert table.add(3, rows_of([[7, 7 + more]])).tolist() == [count + more]


def test_a_row_that_occurs_twice_is_refused():
    with pytest.raises(ValueError, match=r"H021.*3 rows.*2"):
        ObservationTable.from_rows(rows_of([[0, 1], [0, 2], [0, 1]]))


@pytest.mark.parametrize("name", ["add", "lookup"])
def test_more_values_than_the_width_are_refused(name):
    with pytest.raises(ValueError, match=r"H022.*3.*2"):
        getattr(ObservationTable(2), name)(0, rows_of([[1, 2, 3]]))


@pytest.mark.parametrize("number", [-1, 2, 2**40])
def test_a_row_beyond_the_table_is_an_error(number):
    table = ObservationTable(1)
    table.add(0, np.array([[1], [2]], dtype=np.uint64))
    assert table.row(1).tolist() == [0, 2]
    with pytest.raises(IndexError):
        table.row(number)
