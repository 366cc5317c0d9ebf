"""Which features labelled sequences show."""

import numpy as np
import pytest
from labelled_sequences import dataset

from spacy_hocrf.sequences.features import FeatureSettings, features_of

ITEMS = [[{"a": 1.0}, {"a": -2.0, "b": 1.0}, ["b"]], [], [["a", "c"]]]
NAMES = [["x", "y", "x"], [], ["z"]]


def found(**settings):
    data = dataset(ITEMS, NAMES)
    features = features_of(data.take(-1), data.attributes, 3, FeatureSettings(**settings))
    attribute = np.repeat(list("abc"), np.diff(features.offsets)).tolist()
    names = ["".join("xyz"[y] for y in z) for z in features.patterns]
    states = list(zip(attribute, [[*"xyz", *names][z] for z in features.pattern]))
    assert len(set(states)) == len(states)
    return set(states), set(names)


def test_what_was_seen_is_a_feature():
    states, patterns = found()
    assert states == {("a", "x"), ("a", "y"), ("a", "z"), ("b", "y"), ("b", "x"), ("c", "z")}
    assert patterns == {"xy", "yx"}


def test_patterns_do_not_cross_sequences_and_are_as_long_as_the_order_allows():
    assert found(order=2)[1] == {"xy", "yx", "xyx"}
    assert found(order=5)[1] == {"xy", "yx", "xyx"}
    assert found(order=0)[1] == set()
    assert found(order=10**9, attribute_orders={"": [2]}) == found(
        order=2, attribute_orders={"": [2]}
    )


def test_rare_features_are_left_out_and_values_count_as_much_as_they_are():
    assert found(min_freq=1.5) == ({("a", "y")}, set())


def test_every_attribute_with_every_label():
    states, _ = found(all_states=True)
    assert states == {(a, y) for a in "abc" for y in "xyz"}
    assert found(all_states=True, min_freq=1.0)[0] == found(min_freq=1.0)[0]


def test_every_pair_of_labels():
    assert found(all_transitions=True)[1] == {x + y for x in "xyz" for y in "xyz"}
    assert found(all_transitions=True, order=2)[1] == found(all_transitions=True)[1] | {"xyx"}
    assert found(all_transitions=True, min_freq=1.0)[1] == {"xy", "yx"}


def test_every_pair_of_labels_of_sequences_of_one_item():
    data = dataset([[["a"]], [["b"]]], [["x"], ["y"]])
    settings = FeatureSettings(all_transitions=True)
    assert len(features_of(data.take(-1), data.attributes, 2, settings).patterns) == 4


def test_attributes_with_longer_patterns():
    assert found(attribute_orders={"a": [1], "b": (0, 1)})[0] == {
        ("a", "xy"),
        ("b", "xy"),
        ("b", "yx"),
        ("b", "x"),
        ("b", "y"),
        ("c", "z"),
    }
    assert found(order=2, attribute_orders={"": [2]})[0] == {("b", "xyx")}
    assert found(order=1, attribute_orders={"": [2]})[0] == set()
    assert found(attribute_orders={"": [1]}, min_freq=1.5) == (set(), set())


def test_the_longest_prefix_counts():
    settings = FeatureSettings(attribute_orders={"": [2], "wo": [0], "word": [1]})
    names = ("wor", "word", "words", "w", "")
    assert [settings.orders_of(name) for name in names] == [[0], [1], [1], [2], [2]]
    assert FeatureSettings().orders_of("word") == (0,)


@pytest.mark.parametrize("all_states", [False, True])
def test_nothing_shows_nothing(all_states):
    features = features_of(dataset([], []).take(-1), {}, 0, FeatureSettings(all_states=all_states))
    assert len(features) == 0 and features.offsets.tolist() == [0]
