"""Patterns of places with states of their own, against enumeration; and what a matcher finds."""

from functools import cache

import joint_oracle
import numpy as np
import pytest
import spacy
from joint_config import joint
from joint_decoding import segments_of
from small_corpus import MODELS, documents, examples, fit, trained, untrained, words
from spacy.tokens import Doc

from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.stated import MatchedPlaces, Pattern

WORDS = ["Ada", "York", "New", "likes", "Emmy", "born"]
NEIGHBOURS = {
    "@misc": "spacy-hocrf.MatchedPlaces.v1",
    "pattern": [{"IS_TITLE": True, "PLACE": 1}, {"OP": "?"}, {"IS_TITLE": True, "PLACE": 2}],
}
PAIRS = {
    "@misc": "spacy-hocrf.MatchedPlaces.v1",
    "pattern": [{"IS_TITLE": True, "OP": "+", "PLACE": 2}, {"IS_LOWER": True, "PLACE": 1}],
}
PHRASES = {"@misc": "spacy-hocrf.IdenticalPhrases.v1", "max_length": 2}


def pattern(states, places, weight=0.0):
    found = {"@misc": "spacy-hocrf.Pattern.v1", "states": list(states), "places": places}
    return {**found, "weight": weight}


@cache
def learnt(name):
    """The bytes of a pipeline without joint features, which takes any."""
    return trained(*MODELS[name], rows=documents(5)).to_bytes()


def random_states(rng, scheme):
    """Two states that the model has."""
    known = [*scheme.labels, *(f"not {label}" for label in scheme.labels), *scheme.names]
    return [str(state) for state in rng.choice(known, 2)]


def stated_sets(template, docs, groups):
    """Each set of places with their states: (Doc, start, end, state)."""
    batch = TokenBatch(docs)
    found = template.find(batch, groups)
    rows = []
    for begin, end in zip(found.start.tolist(), found.end.tolist()):
        doc = int(batch.sequence[begin])
        first = int(batch.offsets[doc])
        rows.append((doc, begin - first, end - first))
    size = len(template.states)
    sets = [rows[i : i + size] for i in range(0, len(rows), size)]
    return [[(*place, state) for place, state in zip(s, template.states)] for s in sets]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["hybrid", "two_slave"])
def test_a_certificate_means_the_best_of_all_joint_segmentations(name, kind):
    scheme = untrained(*MODELS[name]).from_bytes(learnt(name)).get_pipe("hocrf").structure.scheme
    rng = np.random.default_rng(len(name))
    certain = fired = 0
    for _ in range(8):
        features = {
            f"p{i}": pattern(random_states(rng, scheme), places)
            for i, places in enumerate((NEIGHBOURS, PAIRS, PHRASES))
        }
        decoder = {"@misc": "spacy-hocrf.DualDecomposition.v1", "kind": kind}
        nlp = untrained(*MODELS[name], joint=joint(features, decoder=decoder)).from_bytes(
            learnt(name)
        )
        pipe = nlp.get_pipe("hocrf")
        pipe.model.set_param("W", 0.3 * pipe.model.get_param("W"))  # not too sure of itself
        pipe.joint_weights = rng.normal(0.0, 1.5, len(features))
        docs = [words(nlp, *(str(word) for word in rng.choice(WORDS, length))) for length in (4, 3)]
        groups = np.zeros(2, dtype=np.int64)
        patterns = [
            (places, joint_oracle.is_stated, None, weight)
            for template, weight in zip(pipe.joint_templates, pipe.joint_weights)
            for places in stated_sets(template, docs, groups)
        ]
        fired += len(patterns)
        optimum, score = joint_oracle.best(pipe, docs, patterns)
        segmentations, gap, certificate = segments_of(pipe, docs, groups)
        here = score(segmentations)
        assert here <= optimum + 1e-9
        assert here + sum(set(gap.tolist())) >= optimum - 1e-6
        assert not certificate.all() or here == pytest.approx(optimum, abs=1e-6)
        certain += bool(certificate.all())
    assert fired > 10
    assert certain >= 4 or kind == "two_slave"  # the paper's kind seldom proves anything of these


def matched(tokens, places):
    """By definition: of the longest matches the first ones, that share nothing."""
    nlp = spacy.blank("en")
    docs = [Doc(nlp.vocab, words=["x"]), Doc(nlp.vocab, words=tokens)]
    found = places.find(TokenBatch(docs), np.arange(2))
    rows = list(zip((found.start - 1).tolist(), (found.end - 1).tolist()))
    assert found.offsets.tolist() == list(range(0, len(rows) + 1, max(places._places)))
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
    nlp = untrained(joint=joint(features, learn=True))
    data = examples(nlp, documents(12))
    nlp.initialize(lambda: data)
    fit(nlp, data)
    pipe = nlp.get_pipe("hocrf")
    assert pipe.joint_features.agree.tolist() == [False, False]
    pipe.joint_weights = [0.7, -1.5]
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path).get_pipe("hocrf")
    assert again.joint_weights.tolist() == pipe.joint_weights.tolist()
    assert again.joint_feature_names == pipe.joint_feature_names


@pytest.mark.parametrize(
    "features, what",
    [
        (pattern(["PERSON"], NEIGHBOURS), "states"),
        (pattern(["PERSON", ""], NEIGHBOURS), "states"),
        (pattern(["PERSON", "KING"], NEIGHBOURS), "states is 'KING'.*PERSON"),
        (pattern(["PERSON", "not KING"], NEIGHBOURS), "states is 'not KING'"),
        (pattern(["PERSON", "O", "O"], NEIGHBOURS), "places.*sets of 2.*3 states"),
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


def test_a_pattern_s_name_tells_its_places_and_states():
    found = Pattern(states=["A", "not B"], places=MatchedPlaces(pattern=[{"PLACE": 1}]))
    assert found.name == "Pattern[MatchedPlaces[{'PLACE': 1}]: A & not B]"
    assert found.states == ("A", "not B")
