"""Known segments: which segment a token is in, and which pattern ends there."""

import numpy as np

from spacy_hocrf.features.templates import Events
from spacy_hocrf.model.histories import Histories
from spacy_hocrf.types import END, START, TOKEN, Segment

PATTERNS = ((0,), (1,), (0, 1), (1, 0), (0, 1, 0))
SEGMENTATIONS = [
    [Segment(0, 2, 0), Segment(2, 3, 1), Segment(3, 5, 0)],
    [],
    [Segment(0, 1, 1)],
    [Segment(0, 1, 0), Segment(2, 4, 1)],  # nothing is known of token 1
]


def gold_segments():
    return Histories(PATTERNS).gold(SEGMENTATIONS, np.array([0, 5, 5, 6, 10]))


def test_gold_segments_know_their_tokens():
    gold = gold_segments()
    assert gold.of_token(10).tolist() == [0, 0, 1, 2, 2, 3, 4, -1, 5, 5]
    assert gold.pattern.tolist() == [
        [0, 1, 0, 1, 0, 1],
        [-1, 2, 3, -1, -1, -1],
        [-1, -1, 4, -1, -1, -1],
    ]


def test_events_fire_where_their_part_of_a_segment_is():
    gold = gold_segments()
    segment = gold.of_token(10)
    events = Events(np.array([0, 1, 2, 3, 7, 9]), np.zeros((6, 1), dtype=np.uint64))
    assert gold.patterns_at(START, 0, events, segment).tolist() == [0, -1, 1, 0, -1, -1]
    assert gold.patterns_at(END, 0, events, segment).tolist() == [-1, 0, 1, -1, -1, 1]
    assert gold.patterns_at(TOKEN, 0, events, segment).tolist() == [0, 0, 1, 0, -1, 1]
    assert gold.patterns_at(TOKEN, 1, events, segment).tolist() == [-1, -1, 2, 3, -1, -1]
    assert gold.patterns_at(TOKEN, 3, events, segment).tolist() == [-1] * 6
