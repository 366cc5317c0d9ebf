"""A template of somebody's own cannot harm the process: what it returns is checked once a batch."""

from types import SimpleNamespace

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_hocrf.features.gold import GoldSegments
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.templates import Events
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.types import CONST, INNER, SPAN, START, TOKEN

VOCAB = spacy.blank("xx").vocab
GOLD = GoldSegments(np.array([0, 2]), np.array([2, 5]), np.array([[0, 0]], dtype=np.int32))


class OwnTemplate:
    """Whatever is asked of it."""

    def __init__(self, part=TOKEN, **members):
        self.name, self.part, self.order, self.width = "OWN", part, 0, 1
        self.returned = Events(np.arange(5), np.ones((5, 1), dtype=np.uint64))
        if part == SPAN:
            self.returned = self.returned._replace(end=np.array([1, 2, 3, 4, 5]))
        vars(self).update(members)

    def events(self, batch):
        return self.returned


def batch_of_two():
    """Five tokens: two in the first Doc, three in the second."""
    return TokenBatch([Doc(VOCAB, words=["a", "b"]), Doc(VOCAB, words=["c", "d", "e"])])


def learnt(template):
    index = FeatureIndex(((0,),), [template])
    index.learn(iter([(batch_of_two(), GOLD)]))
    return index


def at(*token, end=None, values=None, weight=None):
    values = np.ones((len(token), 1), dtype=np.uint64) if values is None else values
    return Events(np.array(token), values, weight, end)


ODD_EVENTS = {
    "before the batch": at(-1),
    "after the batch": at(5),
    "far before the batch": at(-(2**40)),
    "far after the batch": at(0, 2**62),
    "a token that is no number": at("a"),
    "a token that is no whole number": at(0.5),
    "tokens in a table": Events(np.zeros((1, 1), dtype=int), np.ones((1, 1), dtype=np.uint64)),
    "fewer values than tokens": at(0, 1, values=np.ones((1, 1), dtype=np.uint64)),
    "more values than its width": at(0, values=np.ones((1, 2), dtype=np.uint64)),
    "values that are no table": at(0, values=np.ones(1, dtype=np.uint64)),
    "negative values": at(0, values=np.full((1, 1), -1)),
    "values that are no whole numbers": at(0, values=np.full((1, 1), 0.5)),
    "values that are text": at(0, values=np.array([["a"]])),
    "fewer weights than tokens": at(0, 1, weight=np.ones(1, dtype=np.float32)),
    "a weight that is no number": at(0, weight=np.array([np.nan])),
    "an infinite weight": at(0, weight=np.array([np.inf])),
    "a weight beyond float32": at(0, weight=np.array([1e39])),
    "a complex weight": at(0, weight=np.array([1j])),
    "a weight that is text": at(0, weight=np.array(["1"])),
    "no events": (1, 2, 3),
    "something else": 7,
}
ODD_SEGMENTS = {
    "no ends": at(0),
    "an empty segment": at(1, end=np.array([1])),
    "a segment that ends before it starts": at(3, end=np.array([2])),
    "a segment in two Docs": at(1, end=np.array([3])),
    "an end after the batch": at(4, end=np.array([6])),
    "an end far before the batch": at(4, end=np.array([-(2**62)])),
    "fewer ends than starts": at(0, 1, end=np.array([1])),
    "a start after the batch": at(5, end=np.array([5])),
}


@pytest.mark.parametrize("phase", ["learning", "predicting"])
@pytest.mark.parametrize(
    "part, events",
    [
        *((TOKEN, events) for events in ODD_EVENTS.values()),
        *((SPAN, events) for events in ODD_SEGMENTS.values()),
    ],
    ids=[*ODD_EVENTS, *ODD_SEGMENTS],
)
def test_impossible_events_are_an_error_that_names_the_template(part, events, phase):
    template = OwnTemplate(part=part)
    index = learnt(template)
    template.returned = events
    with pytest.raises(ValueError, match=r"^\[H130\].*'OWN'"):
        if phase == "learning":
            index.learn(iter([(batch_of_two(), GOLD)]))
        else:
            index.observe(batch_of_two())


@pytest.mark.parametrize("events", [Events([], np.zeros((0, 0))), Events([], np.zeros((0, 1)), [])])
def test_empty_lists_are_no_events(events):
    template = OwnTemplate()
    index = learnt(template)
    template.returned = events
    assert not len(index.observe(batch_of_two()).tokens.ids)


@pytest.mark.parametrize(
    "members",
    [
        {"name": ""},
        {"name": 3},
        {"part": START - 1},
        {"part": CONST + 1},
        {"part": "start"},
        {"part": None},
        {"order": -1},
        {"order": 1.0},
        {"width": -1},
        {"width": 2**40},
        {"width": True},
        {"events": None},
    ],
)
def test_an_impossible_member_is_an_error_that_names_the_template(members):
    [(member, value)] = members.items()
    told = f"name = {value}" if member == "name" else f"'OWN' has {member} = "
    with pytest.raises(ValueError, match=r"^\[H131\]") as caught:
        FeatureIndex(((0,),), [OwnTemplate(**members)])
    assert told in str(caught.value)


def test_a_missing_member_is_an_error():
    with pytest.raises(ValueError, match=r"^\[H131\].*part = None"):
        FeatureIndex(((0,),), [SimpleNamespace(name="HALF", order=0, width=0)])


def test_numbers_of_numpy_are_members():
    assert len(learnt(OwnTemplate(part=np.int64(INNER), order=np.uint8(0), width=np.int32(1))))
