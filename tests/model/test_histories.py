"""Patterns of histories looked up all at once against a walk over the segments one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.model.histories import Histories
from spacy_hocrf.types import Segment


def walked(patterns, segmentations):
    """[longest, n] number of the pattern of the last 1, 2, … labels, by definition."""
    numbers = {pattern: i for i, pattern in enumerate(patterns)}
    longest = max(map(len, patterns), default=1)
    columns = []
    for segments in segmentations:
        history, at = (), -1
        for start, end, label in segments:
            history = (*history, label) if start == at else (label,)
            at = end
            columns.append(
                [
                    numbers.get(history[-n:], -1) if n <= len(history) else -1
                    for n in range(1, longest + 1)
                ]
            )
    return np.array(columns, dtype=np.int32).reshape(-1, longest).T


@st.composite
def problems(draw):
    """Patterns, whose prefixes need not be patterns, and segmentations with gaps and labels that no
    pattern has.
    """
    labels = st.integers(0, 3)
    longer = draw(st.sets(st.lists(labels, min_size=2, max_size=5).map(tuple), max_size=12))
    segmentations = []
    for _ in range(draw(st.integers(0, 3))):
        segments, at = [], 0
        for _ in range(draw(st.integers(0, 7))):
            start = at + draw(st.sampled_from([0, 0, 0, 1]))
            at = start + draw(st.integers(1, 3))
            segments.append(Segment(start, at, draw(st.integers(0, 5))))
        segmentations.append(segments)
    return (*((y,) for y in range(4)), *sorted(longer)), segmentations


@given(problems())
def test_patterns_of_histories(problem):
    patterns, segmentations = problem
    lengths = [segments[-1].end + 2 if segments else 0 for segments in segmentations]
    offsets = np.cumsum([0, *lengths])
    gold = Histories(patterns).gold(segmentations, offsets)
    np.testing.assert_array_equal(gold.pattern, walked(patterns, segmentations))
    placed = [
        (first + s.start, first + s.end)
        for first, segments in zip(offsets, segmentations)
        for s in segments
    ]
    assert list(zip(gold.start.tolist(), gold.end.tolist())) == placed


def test_a_sequence_does_not_go_on_from_the_one_before():
    gold = Histories(((0,), (1,), (0, 1))).gold(
        [[Segment(0, 1, 0)], [Segment(1, 2, 1)]], np.array([0, 1, 3])
    )
    assert gold.pattern.tolist() == [[0, 1], [-1, -1]]


@pytest.mark.parametrize("segmentations", [[], [[]], [[], [Segment(0, 1, 0)], []]])
def test_no_patterns_and_no_segments(segmentations):
    gold = Histories(()).gold(segmentations, np.zeros(len(segmentations) + 1, dtype=np.int64))
    assert gold.pattern.tolist() == [[-1] * sum(map(len, segmentations))]
