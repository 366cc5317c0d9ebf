"""Label patterns that are seen in training."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.training.patterns import select_patterns

HISTORIES = [[0, 1, 0], [1], [], [0, 1]]


@pytest.mark.parametrize(
    "order, min_count, longer",
    [
        (0, 1, []),
        (1, 1, [(0, 1), (1, 0)]),
        (1, 2, [(0, 1)]),
        (2, 1, [(0, 1), (1, 0), (0, 1, 0)]),
        (9, 1, [(0, 1), (1, 0), (0, 1, 0)]),
        (9, 3, []),
    ],
)
def test_patterns_up_to_an_order_and_from_a_count(order, min_count, longer):
    singles = [(0,), (1,), (2,)]  # label 2 was never seen
    assert select_patterns(HISTORIES, 3, order, min_counts=[min_count]) == (*singles, *longer)


def test_patterns_that_are_there_anyway_have_their_place_among_the_others():
    more = [(1, 1), (0, 1), (0, 0)]
    patterns = select_patterns(HISTORIES, 2, 2, min_counts=[2], more=iter(more))
    assert patterns == ((0,), (1,), (0, 0), (0, 1), (1, 1))


def test_a_generator_of_histories_will_do():
    assert select_patterns(iter(HISTORIES), 2, 1) == ((0,), (1,), (0, 1), (1, 0))


HISTORIES_OF_THREE = st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=5)


def windows_of(histories, longest=6):
    """How often each succession of two or more labels occurs."""
    return Counter(
        tuple(labels[i:j])
        for labels in histories
        for i in range(len(labels))
        for j in range(i + 2, min(len(labels), i + longest) + 1)
    )


@given(HISTORIES_OF_THREE, st.integers(0, 4) | st.none(), st.integers(1, 3))
def test_every_window_of_labels_is_counted(histories, order, min_count):
    windows = windows_of(histories, 6 if order is None else order + 1)
    patterns = select_patterns(histories, 3, order, min_counts=[min_count])
    assert patterns[:3] == ((0,), (1,), (2,))
    assert list(patterns[3:]) == sorted(
        (z for z in windows if windows[z] >= min_count), key=lambda z: (len(z), z)
    )


@given(HISTORIES_OF_THREE, st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_counts_of_each_order_keep_what_patterns_begin_and_end_with(histories, counts):
    windows, kept = windows_of(histories), {(0,), (1,), (2,)}
    for z in sorted(windows, key=len):
        least = counts[min(len(z) - 2, len(counts) - 1)]
        if windows[z] >= least and z[1:] in kept and z[:-1] in kept:
            kept.add(z)
    patterns = select_patterns(histories, 3, None, min_counts=counts)
    assert len(patterns) == len(kept) and {*patterns} == kept


def test_no_longer_patterns_are_looked_for_when_there_are_too_many():
    labels = [*range(9)]
    assert max(map(len, select_patterns([labels], 9, None))) == 9
    assert max(map(len, select_patterns([labels], 9, None, most=8))) == 3  # 8 pairs, 7 triples
    assert max(map(len, select_patterns([labels], 9, None, most=7))) == 2
    assert (
        max(map(len, select_patterns([labels], 9, None, most_labels=36))) == 3
    )  # 16 and 21 labels
    assert max(map(len, select_patterns([labels], 9, None, most_labels=15))) == 2


def test_an_order_beyond_every_text_costs_nothing():
    patterns = select_patterns([[0, 1, 0]], 2, 1_000_000_000)
    assert patterns == ((0,), (1,), (0, 1), (1, 0), (0, 1, 0))


def test_patterns_of_a_long_text_are_as_long():
    patterns = select_patterns([[0] * 1000, [0, 1]], 2, None)
    assert patterns[:4] == ((0,), (1,), (0, 0), (0, 1))
    assert patterns[4:] == tuple((0,) * n for n in range(3, 1001))
