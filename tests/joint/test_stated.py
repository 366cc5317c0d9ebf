"""Patterns of places with states of their own, against enumeration; and what a matcher finds."""

from collections import Counter

import numpy as np
import pytest
import spacy
from joint_config import joint
from random_groups import check_group
from small_corpus import documents, examples, trained, untrained
from spacy.tokens import Doc

from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.places import PlaceSets
from spacy_hocrf.joint.stated import MatchedPlaces, Pattern

pytestmark = pytest.mark.slow

NEIGHBOURS = {
    "@misc": "spacy-hocrf.MatchedPlaces.v1",
    "pattern": [{"IS_TITLE": True, "PLACE": 1}, {"OP": "?"}, {"IS_TITLE": True, "PLACE": 2}],
}


def pattern(states, places, weight=0.0):
    found = {"@misc": "spacy-hocrf.Pattern.v1", "states": list(states), "places": places}
    return {**found, "weight": weight}


def test_answers_of_random_groups_are_within_their_bounds_and_certificates_are_true():
    """`random_groups.py` compares more of them."""
    found = Counter()
    for k in range(100):
        found += check_group(0, k)
    assert found["with patterns"] > 30 and found["with rules"] > 40
    assert found["certain"] > 80
    assert found["infinite ones kept"] == found["with infinite patterns"] > 2


def matched(tokens, places):
    """By definition: of the longest matches the first ones, that share nothing."""
    nlp = spacy.blank("xx")
    docs = [Doc(nlp.vocab, words=["x"]), Doc(nlp.vocab, words=tokens)]
    sets = places.find(TokenBatch(docs), np.arange(2))
    rows = list(zip((sets.start - 1).tolist(), (sets.end - 1).tolist()))
    assert sets.offsets.tolist() == list(range(0, len(rows) + 1, max(places._places)))
    return rows


def test_a_matcher_s_tokens_are_places_by_their_numbers():
    title = [{"LOWER": "dr", "PLACE": 2}, {"TEXT": "."}, {"IS_TITLE": True, "OP": "+", "PLACE": 1}]
    places = MatchedPlaces(pattern=title)
    assert matched(["Dr", ".", "Ada", "Lovelace", "saw", "dr", ".", "Max"], places) == [
        (2, 4),
        (0, 1),
        (7, 8),
        (5, 6),
    ]
    assert matched(["nobody", "is", "here"], places) == []
    assert places.find(TokenBatch([]), np.zeros(0, dtype=np.int64)).offsets.tolist() == [0]


def test_a_place_without_tokens_is_no_match():
    optional = [{"LOWER": "dr", "OP": "?", "PLACE": 1}, {"IS_TITLE": True, "PLACE": 2}]
    assert matched(["dr", "Ada", "said", "Max"], MatchedPlaces(pattern=optional)) == [
        (0, 1),
        (1, 2),
    ]


def test_weights_of_either_sign_are_saved_and_loaded(tmp_path):
    features = {
        "likes": pattern(
            ["PERSON", "PLACE"],
            {
                "@misc": "spacy-hocrf.MatchedPlaces.v1",
                "pattern": [
                    {"IS_TITLE": True, "OP": "+", "PLACE": 1},
                    {"LOWER": "in"},
                    {"IS_TITLE": True, "OP": "+", "PLACE": 2},
                ],
            },
        ),
        "never": pattern(["PERSON", "PERSON"], NEIGHBOURS),
    }
    nlp = trained(joint=joint(features, learn=True), rows=documents(12))
    pipe = nlp.get_pipe("hocrf")
    assert pipe.joint.features.agree.tolist() == [False, False]
    pipe.joint.weights = [0.7, -1.5]
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path).get_pipe("hocrf")
    assert again.joint.weights.tolist() == pipe.joint.weights.tolist()
    assert again.joint.feature_names == pipe.joint.feature_names


@pytest.mark.filterwarnings("ignore:.W035")  # it has not learnt anything
@pytest.mark.parametrize(
    "features, what",
    [
        (pattern(["PERSON"], NEIGHBOURS), "states"),
        (pattern(["PERSON", ""], NEIGHBOURS), "states"),
        (pattern(["PERSON", "KING"], NEIGHBOURS), "states is 'KING'.*PERSON"),
        (pattern(["PERSON", "not KING"], NEIGHBOURS), "states is 'not KING'"),
        (pattern(["PERSON", "O"], {"@misc": "spacy-hocrf.LBFGS.v1"}), "places is LBFGS"),
        (pattern(["O", "O"], {**NEIGHBOURS, "pattern": [{"LOWER": "a"}]}), "pattern"),
        (pattern(["O", "O"], {**NEIGHBOURS, "pattern": [{"PLACE": 2}]}), "pattern"),
        (
            pattern(["O"] * 2, {**NEIGHBOURS, "pattern": [{"PLACE": "a"}, {"PLACE": 1}]}),
            "pattern is \\['a', 1\\]",
        ),
        (
            pattern(["O"] * 2, {**NEIGHBOURS, "pattern": [{"PLACE": 1}, {}, {"PLACE": 1}]}),
            "pattern",
        ),
    ],
)
def test_bad_settings_are_named(features, what):
    with pytest.raises(ValueError, match=f"(?s)H099.*{what}"):
        nlp = untrained(joint=joint({"own": features}))
        nlp.initialize(lambda: examples(nlp, documents(3)))
        nlp("Ada likes New York")


@pytest.mark.filterwarnings("ignore:.W035")  # it has not learnt anything
def test_sets_of_another_size_than_there_are_states_are_an_error():
    nlp = untrained(joint=joint({"own": pattern(["PERSON", "O", "O"], NEIGHBOURS, 1.0)}))
    with pytest.raises(ValueError, match=r"H120.*sets of 2 places, and 3 states"):
        nlp.initialize(lambda: examples(nlp, documents(3)))
        nlp("Ada likes New York")


class First:
    """Somebody's own template: the first two tokens of a Doc, in states of their own."""

    name, states, weight, outside = "first", ["not PERSON", "PERSON"], "inf", False

    def find(self, batch, groups):
        first = batch.offsets[:-1][np.diff(batch.offsets) > 1]
        start = np.ravel([first, first + 1], order="F")
        return PlaceSets(np.arange(0, len(start) + 1, 2), start, start + 1)


def test_a_template_of_ones_own_has_states_too(tmp_path):
    spacy.registry.misc("test.first.v1", func=First)
    found = []
    for features in ({"own": {"@misc": "test.first.v1"}}, {}):
        nlp = trained(joint=joint(features, learn=False) if features else None, rows=documents(8))
        nlp.to_disk(tmp_path)
        doc, _ = spacy.load(tmp_path).pipe(["Ada likes New York", "Max"])
        found.append((doc.ents[0].text, doc.ents[0].label_))
    assert found == [("likes", "PERSON"), ("Ada", "PERSON")]


def test_a_pattern_s_name_tells_its_places_and_states():
    found = Pattern(states=["A", "not B"], places=MatchedPlaces(pattern=[{"PLACE": 1}]))
    assert found.name == "Pattern[MatchedPlaces[{'PLACE': 1}]: A & not B]"
    assert found.states == ("A", "not B")


def test_where_all_weights_are_infinite_nothing_is_learnt_nor_warned_of():
    features = {"never": pattern(["PERSON", "PERSON"], NEIGHBOURS, "-inf")}
    nlp = trained(joint=joint(features), steps=20)
    assert nlp.get_pipe("hocrf").joint.weights.tolist() == [-np.inf]
