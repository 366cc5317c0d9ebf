"""Probabilities of the spans of a reading, out of all that are probable."""

import numpy as np
import pytest

from spacy_hocrf.answers.decoders import Candidates
from spacy_hocrf.answers.gains import chances_of
from spacy_hocrf.types import Segments

OFFSETS = np.array([0, 4, 4, 9])  # tokens of three texts
FOUND = [(0, 0, 2, 1), (0, 0, 2, 3), (0, 3, 4, 0), (2, 0, 1, 2), (2, 1, 5, 0)]


def segments(rows):
    """Of text, start, end and label."""
    columns = np.array(rows, dtype=np.int32).reshape(-1, 4).T
    return Segments(np.searchsorted(columns[0], np.arange(len(OFFSETS))), *columns[1:])


def chances(rows, found=tuple(FOUND)):
    scores = np.arange(1, len(found) + 1) / 10
    known = np.ones(3, dtype=bool), np.zeros(3)
    return chances_of(segments(rows), Candidates(segments(found), scores, *known), OFFSETS)


def test_spans_that_were_found_have_their_probabilities():
    assert chances(FOUND).tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert chances([FOUND[1], FOUND[4]]).tolist() == [0.2, 0.5]
    assert chances([]).tolist() == []
    assert chances([], ()).tolist() == []


@pytest.mark.parametrize("other", [(0, 0, 2, 2), (0, 0, 3, 1), (2, 3, 4, 0), (2, 1, 5, 4)])
def test_no_probability_is_made_up_for_a_span_that_was_not_found(other):
    assert chances([other]) is None
    assert chances(sorted([*FOUND[2:4], other])) is None
    assert chances([other], ()) is None
