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
    assert select_patterns(HISTORIES, 3, order, min_count=min_count) == (*singles, *longer)


def test_patterns_that_are_there_anyway_have_their_place_among_the_others():
    more = [(1, 1), (0, 1), (0, 0)]
    found = select_patterns(HISTORIES, 2, 2, min_count=2, more=iter(more))
    assert found == ((0,), (1,), (0, 0), (0, 1), (1, 1))


def test_a_generator_of_histories_will_do():
    assert select_patterns(iter(HISTORIES), 2, 1) == ((0,), (1,), (0, 1), (1, 0))


@given(
    st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=5),
    st.integers(0, 4),
    st.integers(1, 3),
)
def test_every_window_of_labels_is_counted(histories, order, min_count):
    windows = Counter(
        tuple(labels[i:j])
        for labels in histories
        for i in range(len(labels))
        for j in range(i + 2, min(len(labels), i + order + 1) + 1)
    )
    found = select_patterns(histories, 3, order, min_count=min_count)
    assert found[:3] == ((0,), (1,), (2,))
    assert list(found[3:]) == sorted(
        (z for z in windows if windows[z] >= min_count), key=lambda z: (len(z), z)
    )


def test_an_order_beyond_every_text_costs_nothing():
    class Labels(list):
        """Counts its slices: those of all lengths are n (n - 1) / 2."""

        slices = 0

        def __getitem__(self, key):
            self.slices += 1
            return super().__getitem__(key)

    labels = Labels([0, 1, 0])
    patterns = select_patterns([labels], 2, 1_000_000_000)
    assert patterns == ((0,), (1,), (0, 1), (1, 0), (0, 1, 0))
    assert labels.slices == 3
