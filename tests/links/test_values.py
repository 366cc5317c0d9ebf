"""Values of items and of pairs, each against the items looked at one by one."""

import numpy as np
import pytest
from link_documents import NLP, conversation, document, thread
from spacy.tokens import Doc, Span

from spacy_hocrf.links.items import DocItems, EntItems, SentenceItems, SpanItems, Thread
from spacy_hocrf.links.values import (
    Addressed,
    Attribute,
    Distance,
    Latest,
    Names,
    Number,
    Same,
    Shared,
)

N = 7
A, B = (each.ravel() for each in np.meshgrid(np.arange(N), np.arange(N)))


def facts(seed):
    """Of each message its words, author, minute and whom it names."""
    messages = conversation(seed, n=N)[0]
    return [
        (text.split(), author, minute, ["max"] if author == "ada" else [])
        for text, author, minute in messages
    ]


def latest(said, a, b):
    between = range(min(a, b) + 1, max(a, b))
    return not any(said[k][1] == said[b][1] for k in between)


PAIRS = {
    "distance": (Distance([1, 3]), lambda s, a, b: np.sign(a - b) * ((abs(a - b) > 0) + (abs(a - b) > 2))),
    "author": (Same("_.author"), lambda s, a, b: s[a][1] == s[b][1]),
    "text": (Same("LOWER"), lambda s, a, b: s[a][0] == s[b][0]),
    "words": (Shared("LOWER", [1, 2]), lambda s, a, b: len({*s[a][0]} & {*s[b][0]}) * (a != b)),
    "listed": (Shared("_.named", [1]), lambda s, a, b: bool({*s[a][3]} & {*s[b][3]}) * (a != b)),
    "names": (Names("_.named", "_.author"), lambda s, a, b: s[b][1] in s[a][3]),
    "latest": (Latest("_.author"), latest),
}  # fmt: skip
ITEMS = {
    "minute": (Number("_.minute", [50]), lambda s, a: s[a][2] >= 50),
    "length": (Number("LENGTH", [2, 3]), lambda s, a: 1),
    "addressed": (
        Addressed("_.named", "_.author"),
        lambda s, a: (1 if "max" in [x[1] for x in s[:a]] else 2) if s[a][3] else 0,
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_values_of_pairs_are_those_of_the_items(name):
    value, expected = PAIRS[name]
    for seed in range(5):
        values = value.of_pairs(thread(seed, n=N), A, B)
        said = facts(seed)
        assert values.tolist() == [expected(said, a, b) for a, b in zip(A.tolist(), B.tolist())]


@pytest.mark.parametrize("name", ITEMS)
def test_values_of_items_are_those_of_the_items(name):
    value, expected = ITEMS[name]
    for seed in range(5):
        said = facts(seed)
        values = value.of_items(thread(seed, n=N)).tolist()
        assert values == [expected(said, a) for a in range(N)]


@pytest.mark.parametrize("attr", ["LABEL", "LOWER", "LOWER[-1]", "LENGTH", "_.author", "_.minute"])
def test_attributes_tell_different_items_apart(attr):
    said = [facts(seed) for seed in range(3)]
    text = {
        "LABEL": lambda x: "MESSAGE",
        "LOWER": lambda x: tuple(x[0]),
        "LOWER[-1]": lambda x: x[0][-1],
        "LENGTH": lambda x: 2,
        "_.author": lambda x: x[1],
        "_.minute": lambda x: x[2],
    }[attr]
    codes = [Attribute(attr).of_items(thread(seed, n=N)).tolist() for seed in range(3)]
    pairs = {(text(x), c) for each, cs in zip(said, codes) for x, c in zip(each, cs)}
    assert len(pairs) == len({x for x, _ in pairs}) == len({c for _, c in pairs})


def test_what_is_missing_is_equal_to_nothing():
    doc = document(conversation(0, n=3)[0])
    for span in doc.spans["sc"]:
        span._.author = span._.named = None
    items = Thread([doc], SpanItems())
    a, b = np.array([1, 2]), np.array([0, 0])
    assert not Same("_.author").of_pairs(items, a, b).any()
    assert not Names("_.named", "_.author").of_pairs(items, a, b).any()
    assert Latest("_.author").of_pairs(items, a, b).all()
    assert not Addressed("_.named", "_.author").of_items(items).any()
    assert not Shared("_.named").of_pairs(items, a, b).any()


@pytest.mark.parametrize("finder", [SpanItems(), EntItems(), SentenceItems(), DocItems()])
def test_values_of_nothing(finder):
    """No token, no item, or one without tokens."""
    items = Thread([Doc(NLP.vocab)], finder)
    assert len(items) == (1 if isinstance(finder, DocItems) else 0)
    none = np.zeros(0, dtype=np.int64)
    for value, _ in PAIRS.values():
        assert len(value.of_pairs(items, none, none)) == 0
    for value, _ in ITEMS.values():
        assert len(value.of_items(items)) == len(items)
    for attr in ("LOWER", "LOWER[0]", "LABEL"):
        assert not Attribute(attr).of_items(items).any()


def test_items_are_spans_entities_sentences_and_docs():
    doc = Doc(NLP.vocab, words=["a", "b", "c"], sent_starts=[1, 0, 1], ents=["O", "B-X", "I-X"])
    doc.spans["sc"] = [Span(doc, 1, 2, label="Y"), Span(doc, 0, 2)]
    places = {
        SpanItems(): [(1, 2, "Y"), (0, 2, "")],
        EntItems(): [(1, 3, "X")],
        SentenceItems(): [(0, 2, ""), (2, 3, "")],
        DocItems(): [(0, 3, "")],
    }
    for finder, expected in places.items():
        assert finder.find(doc) == expected
        assert finder.place
    unknown = Doc(NLP.vocab, words=["a", "b"])
    assert not SentenceItems().find(unknown) and not SpanItems("other").find(doc)


def test_attributes_of_a_doc_are_those_of_its_items_where_spans_have_none():
    if not Doc.has_extension("channel"):
        Doc.set_extension("channel", default=None)
    one, other = (document(conversation(seed, n=2)[0]) for seed in (0, 1))
    one._.channel, other._.channel = "x", "y"
    items = Thread([one, other], SpanItems())
    assert items.values("channel") == ["x", "x", "y", "y"] and len(items) == 4
    assert items.ends[0][0] == 0 and items.ends[2][0] == 1


@pytest.mark.parametrize(
    "make, code, told",
    [
        (lambda: Same("LOWERR"), "H300", "'LOWERR'"),
        (lambda: Same("LOWER[2]"), "H300", "LOWER[2]"),
        (lambda: Attribute("_author"), "H300", "extension"),
        (lambda: Names("_.", "_.author"), "H300", "'_.'"),
        (lambda: Shared("LABEL"), "H298", "attr of LinkShared"),
        (lambda: Shared("LOWER", [2, 1]), "H298", "[2, 1]"),
        (lambda: Distance([]), "H298", "bins of LinkDistance"),
        (lambda: Distance(["1", "2"]), "H298", "['1', '2']"),
        (lambda: Distance("12"), "H298", "['1', '2']"),
        (lambda: Number("LOWER[0]", [1]), "H298", "LOWER[0]"),
        (lambda: Number("LENGTH", [1, 1]), "H298", "ascending"),
    ],
)
def test_bad_settings_are_named(make, code, told):
    with pytest.raises(ValueError, match=code) as caught:
        make()
    assert told in str(caught.value)


def test_attributes_of_another_kind_are_named():
    items = thread(0)
    with pytest.raises(ValueError, match=r"\[H305\] '_.author' of an item is '\w+'"):
        Number("_.author", [1]).of_items(items)
    with pytest.raises(ValueError, match=r"\[H305\] '_.minute' of an item is \d+, .* list"):
        Shared("_.minute").of_pairs(items, np.array([0]), np.array([1]))
