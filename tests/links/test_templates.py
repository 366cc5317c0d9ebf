"""Templates: terms at places; equal numbers where all values are equal, and only there."""

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
VERTEX = ("itself", "distance + author", "word(source) + word(target)", "author(target, source)")
EDGE = (
    "shape + itself",
    "distance",
    "author(first, second) + word(common)",
    "author(first, source)",
    "word(source)",
)
TRIPLE = ("shape + itself", "author + word(target)")
SEED = 1  # a conversation in which no value is the same everywhere


def features(**changes):
    settings = {"values": VALUES, "vertices": VERTEX, "edges": EDGE, "triples": TRIPLE}
    return LinkFeatures(**{**settings, **changes})


def said(template, found, grid, section, place):
    """What the terms of a template say of a factor, looked up one by one."""
    messages = conversation(SEED)[0]
    word = [text.split()[0] for text, *_ in messages]
    author = [who for _, who, _ in messages]
    vertices = section.vertices[place].tolist()
    values = []
    for name, places in parsed(template):
        if name == "shape":
            values.append(section.shape[place])
            continue
        for v in vertices:
            items = {"source": grid.source[v], "target": grid.target[v]}
            if len(section.common):
                ends = ("first", "second", "common")
                items |= {end: getattr(section, end)[place] for end in ends}
            at = [items[each] for each in places or ("source", "target")]
            values.append(value_of(name, at, author, word))
    return tuple(values)


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
    found = Thread([document(conversation(SEED)[0])], SpanItems())
    grid = LinkPairs(itself=True).grid(found)
    keys, sections = observe(features(), found, grid, 3)
    for section, templates, numbers in zip(sections, (VERTEX, EDGE, TRIPLE), keys):
        assert numbers.shape == (len(section.vertices), len(templates))
        for t, template in enumerate(templates):
            pairs = {
                (said(template, found, grid, section, n), int(numbers[n, t]))
                for n in range(len(section.vertices))
            }
            assert len(pairs) == len({x for x, _ in pairs}) == len({k for _, k in pairs}), template
            assert len(pairs) > 1, "or nothing would be told apart"
    every = np.concatenate([np.unique(column) for each in keys for column in each.T])
    assert len(every) == len(set(every.tolist())), "templates do not share numbers"


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_smaller_order_looks_at_smaller_factors_alone(order):
    found = thread()
    grid = LinkPairs().grid(found)
    keys, sections = observe(features(), found, grid, order)
    assert len(keys) == len(sections) == order
    whole = observe(features(), found, grid, 3)[0]
    assert all((a == b).all() for a, b in zip(keys, whole))


def test_a_section_without_templates_sees_nothing():
    found = thread()
    keys, _ = observe(features(edges=()), found, LinkPairs().grid(found), 2)
    assert keys[1].shape[1] == 0 and len(keys[1])


@pytest.mark.parametrize(
    "changes, code, told",
    [
        ({"vertices": ["distance +"]}, "H296", "name(place)"),
        ({"vertices": ["distance(source)"]}, "H296", "two places, or none"),
        ({"vertices": ["word"]}, "H296", "one place"),
        ({"vertices": ["word(first)"]}, "H296", "'first' is no place here, but source, target are"),
        ({"edges": ["word(middle)"]}, "H296", "common"),
        ({"triples": ["itself(source)"]}, "H296", "has no places"),
        ({"edges": ["shape + colour"]}, "H297", "itself, shape, distance, author, word"),
        ({"scales": (1.0, 0.3)}, "H298", "three numbers"),
        ({"scales": (1.0, 0.3, 0.0)}, "H298", "above 0"),
        ({"min_count": 0}, "H298", "min_count"),
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
    own = features(values={**VALUES, "own": Wrong(found)}, vertices=["own(source)"])
    with pytest.raises(ValueError, match=r"\[H304\] The value 'own' gave"):
        observe(own, items, LinkPairs().grid(items), 1)


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
    grid = LinkPairs(**settings).grid(thread(n=3))
    assert list(zip(grid.source.tolist(), grid.target.tolist())) == pairs


def test_neighbours_are_next_among_the_items_that_may_be_ends():
    doc = document(conversation(0, n=4)[0])
    ends = [(span.start, span.end) for span in doc.spans["sc"]]
    kinds = ("KEY", "US$", "KEY", "US$")
    doc.spans["sc"] = [Span(doc, *each, label=kind) for each, kind in zip(ends, kinds)]
    labelled = Thread([doc], SpanItems())
    grid = LinkPairs(sources=[r"US\x24"], targets=["KEY"]).grid(labelled)
    assert list(zip(grid.source.tolist(), grid.target.tolist())) == [(1, 0), (3, 0), (3, 2)]
    assert sorted(grid.edges.vertices.tolist()) == [[0, 1], [1, 2]]


@pytest.mark.parametrize("settings", [{"direction": "up"}, {"window": 0}])
def test_bad_pairs_are_named(settings):
    ((name, found),) = settings.items()
    with pytest.raises(ValueError, match=rf"\[H298\] {name} is {found}"):
        registry.get("misc", "spacy-hocrf.LinkPairs.v1")(**settings)


def test_terms_are_names_with_places():
    assert parsed(" a + b(source)+c( target , source )") == (
        ("a", ()),
        ("b", ("source",)),
        ("c", ("target", "source")),
    )
