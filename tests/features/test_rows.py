"""Rows by token, against a stable sort."""

import numpy as np
import pytest

from spacy_hocrf.features.rows import rows_by_token
from spacy_hocrf.features.templates import Found


def everywhere(*ids):
    return somewhere(range(len(ids)), ids)


def somewhere(tokens, ids, weight=None):
    weight = None if weight is None else np.array(weight, dtype=np.float32)
    return Found(np.array(ids, dtype=np.int32), np.array(tokens, dtype=np.int64), weight)


def listed(rows):
    assert rows.offsets[-1] == len(rows.ids)
    return [rows.ids[a:b].tolist() for a, b in zip(rows.offsets, rows.offsets[1:])]


def test_observations_of_a_token_come_template_by_template():
    rows = rows_by_token(
        [everywhere(5, -1, 7), somewhere([2, 0, 0, 1], [1, 2, 3, -1]), everywhere(0, 0, -1)], 3
    )
    assert listed(rows) == [[5, 2, 3, 0], [0], [7, 1]]
    assert rows.values is None


def test_values_are_1_where_a_template_has_no_weights():
    rows = rows_by_token([everywhere(4, 5), somewhere([1, 0, 1], [6, 7, -1], [0.5, -2.0, 9.0])], 2)
    assert listed(rows) == [[4, 7], [5, 6]]
    assert rows.values.tolist() == [1.0, -2.0, 1.0, 0.5]


@pytest.mark.parametrize("found", [[], [everywhere(-1, -1)], [somewhere([], [])]])
def test_tokens_without_observations_have_empty_rows(found):
    assert listed(rows_by_token(found, 2)) == [[], []]


@pytest.mark.parametrize("found", [[], [everywhere()]])
def test_no_tokens_have_no_rows(found):
    assert rows_by_token(found, 0).offsets.tolist() == [0]
