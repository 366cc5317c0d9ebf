"""Templates: terms at places; equal numbers where all values are equal, and only there. The pairs that
they are asked of.
"""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from link_documents import conversation, document, thread
from spacy.tokens import Span
from spacy.util import registry

from spacy_hocrf.links.items import SpanItems, Thread
from spacy_hocrf.links.pairs import LinkPairs
from spacy_hocrf.links.templates import LinkFeatures, observe, parsed
from spacy_hocrf.links.values import Attribute, Distance, Same

VALUES = {"distance": Distance(), "author": Same("_.author"), "word": Attribute("LOWER[0]")}
TEMPLATES = ("itself", "distance + author", "word(source) + word(target)", "author(target, source)")
SEED = 1  # a conversation in which no value is the same everywhere


def features(**changes):
    return LinkFeatures(**{"values": VALUES, "templates": TEMPLATES, **changes})


def said(template, source, target):
    """What the terms of a template say of a pair, looked up one by one."""
    messages = conversation(SEED)[0]
    word = [text.split()[0] for text, *_ in messages]
    author = [who for _, who, _ in messages]
    places = {"source": source, "target": target}
    return tuple(
        value_of(name, [places[each] for each in at or ("source", "target")], author, word)
        for name, at in parsed(template)
    )


def value_of(name, at, author, word):
    """A value of the items at some places."""
    match name:
        case "itself":
            return at[0] == at[1]
        case "distance":
            return int(np.digitize(at[0] - at[1], VALUES["distance"].bins))
        case "author":
            return author[at[0]] == author[at[1]]
    return word[at[0]]


def test_numbers_are_equal_where_all_values_are():
    items = Thread([document(conversation(SEED)[0])], SpanItems())
    pairs = LinkPairs(itself=True).find(items)
    keys = observe(features(), items, pairs)
    ends = list(zip(pairs.source.tolist(), pairs.target.tolist()))
    assert keys.shape == (len(ends), len(TEMPLATES))
    for template, numbers in zip(TEMPLATES, keys.T.tolist()):
        seen = {(said(template, *pair), number) for pair, number in zip(ends, numbers)}
        assert len(seen) == len({x for x, _ in seen}) == len({k for _, k in seen}), template
        assert len(seen) > 1, "or nothing would be told apart"
    every = np.concatenate([np.unique(column) for column in keys.T])
    assert len(every) == len(set(every.tolist())), "templates do not share numbers"


@pytest.mark.parametrize(
    "changes, code, told",
    [
        ({"templates": ["distance +"]}, "H296", "name(place)"),
        ({"templates": ["distance(source)"]}, "H296", "two places, or none"),
        ({"templates": ["word"]}, "H296", "one place"),
        ({"templates": ["word(first)"]}, "H296", "'first' is no place, but source, target are"),
        ({"templates": ["itself(source)"]}, "H296", "has no places"),
        ({"templates": ["itself + colour"]}, "H297", "itself, distance, author, word"),
        ({"min_count": 0}, "H298", "min_count"),
        ({"min_count": "2"}, "H298", "min_count is '2'"),
        ({"templates": "distance"}, "H298", "templates is 'distance', but must be a list"),
        ({"values": {**VALUES, "x": "distance"}}, "H298", "values.x is str"),
    ],
)
def test_bad_templates_are_named(changes, code, told):
    with pytest.raises(ValueError, match=code) as caught:
        features(**changes)
    assert told in str(caught.value)


class Wrong:
    """A value of one's own that gives other than whole numbers, one for each item."""

    reads = ()

    def __init__(self, found):
        self.found = found

    def of_items(self, thread):
        """Anything."""
        return self.found


@pytest.mark.parametrize("found", [np.zeros(5), np.zeros(4, dtype=int), ["a"] * 5])
def test_values_of_ones_own_are_checked(found):
    items = thread(n=5)
    own = features(values={**VALUES, "own": Wrong(found)}, templates=["own(source)"])
    with pytest.raises(ValueError, match=r"\[H304\] The value 'own' gave"):
        observe(own, items, LinkPairs().find(items))


@pytest.mark.parametrize(
    "settings, pairs",
    [
        ({}, [(1, 0), (2, 0), (2, 1)]),
        ({"window": 1}, [(1, 0), (2, 1)]),
        ({"window": 1, "itself": True}, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]),
        ({"direction": "forward"}, [(0, 1), (0, 2), (1, 2)]),
        ({"direction": "both", "window": 1}, [(0, 1), (1, 0), (1, 2), (2, 1)]),
        ({"sources": ["OTHER"]}, []),
        ({"targets": ["MESSAGE"], "window": None}, [(1, 0), (2, 0), (2, 1)]),
    ],
)
def test_pairs_that_may_be_linked(settings, pairs):
    found, one_each = (
        LinkPairs(**settings, one_each=each).find(thread(n=3)) for each in (False, True)
    )
    for each in (found, one_each):
        assert list(zip(each.source.tolist(), each.target.tolist())) == pairs
    assert found.choices.tolist() == [*range(len(pairs) + 1)]
    sources = [source for source, _ in pairs]
    expected = [sources.index(source) for source in dict.fromkeys(sources)]
    assert one_each.choices.tolist() == [*expected, len(pairs)]


def test_ends_have_the_labels_that_they_may_have():
    doc = document(conversation(0, n=4)[0])
    ends = [(span.start, span.end) for span in doc.spans["sc"]]
    kinds = ("KEY", "US$", "KEY", "US$")
    doc.spans["sc"] = [Span(doc, *each, label=kind) for each, kind in zip(ends, kinds)]
    labelled = Thread([doc], SpanItems())
    found = LinkPairs(sources=[r"US\x24"], targets=["KEY"]).find(labelled)
    assert list(zip(found.source.tolist(), found.target.tolist())) == [(1, 0), (3, 0), (3, 2)]


def test_pairs_are_those_of_all_that_fit():
    doc = document(conversation(0, n=6)[0])
    doc.spans["sc"] = [Span(doc, s.start, s.end, "AB"[s.start % 2]) for s in doc.spans["sc"]]
    items = Thread([doc], SpanItems())
    labels = [item.label for item in items.items]
    every = list(product(range(len(labels)), repeat=2))
    settings = ("forward", "backward", "both"), (1, 3, None), (True, False), (None, ["A"])
    for direction, window, itself, targets in product(*settings):
        pairs = LinkPairs(direction=direction, window=window, itself=itself, targets=targets)
        expected = [
            (a, b)
            for a, b in every
            if (itself or a != b) and (window is None or abs(a - b) <= window)
            if direction == "both" or a == b or (a < b) == (direction == "forward")
            if targets is None or labels[b] in targets
        ]
        assert list(zip(*map(np.ndarray.tolist, pairs.find(items)[:2]))) == expected


def test_pairs_of_a_window_take_memory_that_is_linear_in_the_items():
    items = thread(n=2000)
    assert len(items.items) == 2000
    tracemalloc.start()
    LinkPairs(window=1).find(items)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(items.items) ** 2 / 4


@pytest.mark.parametrize(
    "settings",
    [{"direction": "up"}, {"window": 0}, {"window": "3"}, {"sources": "A"}, {"targets": "A"}],
)
def test_bad_pairs_are_named(settings):
    ((name, found),) = settings.items()
    with pytest.raises(ValueError, match=rf"\[H298\] {name} is '?{found}"):
        registry.get("misc", "spacy-hocrf.LinkPairs.v1")(**settings)


def test_terms_are_names_with_places():
    assert parsed(" a + b(source)+c( target , source )") == (
        ("a", ()),
        ("b", ("source",)),
        ("c", ("target", "source")),
    )
