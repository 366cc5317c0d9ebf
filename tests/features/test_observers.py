"""Which templates observe the same, and what their observer finds."""

import numpy as np
import pytest
import spacy
from numpy.testing import assert_array_equal
from spacy.tokens import Doc

from spacy_hocrf.features.config import (
    make_char_ngrams,
    make_flags,
    make_segment,
    make_token,
    make_transition,
)
from spacy_hocrf.features.observers import observers_of
from spacy_hocrf.features.plan import MAX_COLUMNS, Plan
from spacy_hocrf.features.table import ObservationTable
from spacy_hocrf.features.templates import AttributeTemplate
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.features.window import make_window

PARTS = ["tokens", "start", "end"]


def groups(templates):
    return [observer.templates for observer in observers_of(templates)]


def test_templates_that_differ_in_part_or_order_have_one_observer():
    templates = [
        *make_token(["NORM"], [0, 1], PARTS),
        *make_token(["NORM"], [1], ["inner"], order=1),
        *make_char_ngrams("NORM", prefix=[2], parts=PARTS),
        *make_flags(parts=PARTS),
    ]
    assert groups(templates) == [(0, 2, 4), (1, 3, 5, 6), (7, 8, 9), (10, 11, 12)]


def test_what_is_observed_of_segments_is_apart():
    templates = [
        *make_segment(["LENGTH", "TEXT", "FIRST"], ["NORM"]),
        *make_transition(0),
        *make_transition(1),
    ]
    assert groups(templates) == [(i,) for i in range(len(templates))]
    looks = [observer.looks for observer in observers_of(templates)]
    assert looks == [False, True, True, False, False]


def test_the_default_features_have_a_third_as_many_observers():
    templates = make_window(vectors=False, wide=False)
    sizes = [len(some) for some in groups(templates) if templates[some[0]].part <= 3]
    assert set(sizes) == {3}


def test_equal_templates_have_observers_of_their_own():
    assert groups(make_token(["NORM"], parts=["tokens"]) * 2) == [(0,), (1,)]


class Shouting(AttributeTemplate):
    """Observes something else than what it is made from."""

    def events(self, batch):
        found = super().events(batch)
        return found._replace(values=found.values + np.uint64(1))


class Own:
    part, order, width = 0, 0, 1

    def __init__(self, name):
        self.name = name

    def events(self, batch):
        return Shouting((("NORM", 0),)).events(batch)


def test_templates_of_a_users_own_are_known_by_their_names():
    plain, shouting = make_token(["NORM"])[0], Shouting((("NORM", 0),))
    assert groups([plain, shouting, Own("a"), Own("b")]) == [(0,), (1,), (2,), (3,)]


@pytest.mark.parametrize("template", [make_token(["NORM"])[0], Shouting((("NORM", 0),)), Own("a")])
def test_an_observer_finds_what_the_template_and_the_table_give_together(template):
    batch = TokenBatch([Doc(spacy.blank("xx").vocab, words=["a", "b", "a"])], learn=True)
    (observer,) = observers_of([template])
    table = ObservationTable(1)
    known = table.add(0, observer.events(batch).values[:1])
    assert_array_equal(observer.found(batch, table).ids, [known[0], -1, known[0]])


def test_plans_are_no_larger_than_their_kernel_has_room_for():
    pairs = [(0, 0)] * (MAX_COLUMNS + 1)
    assert len(Plan(["NORM"] * MAX_COLUMNS, [("tuple", 0, pairs[1:])]).columns) == MAX_COLUMNS
    for columns, steps in ((["NORM"] * len(pairs), []), (["NORM"], [("tuple", 0, pairs)])):
        with pytest.raises(IndexError, match=str(MAX_COLUMNS)):
            Plan(columns, steps)
    plan, offsets = Plan(["NORM"], [("value", 0, [(0, 0)])]), np.array([0, 2])
    with pytest.raises(IndexError, match="1 values of 2 tokens"):
        plan.find(ObservationTable(1), [np.zeros(1, dtype=np.uint64)], None, offsets, 0)
