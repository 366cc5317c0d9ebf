"""Docs decoded together, against enumeration of all their segmentations; settings, saving and
loading.
"""

import json
from functools import cache

import joint_decoding
import joint_oracle
import numpy as np
import oracle
import pytest
import spacy
from entities import entities
from joint_config import PHRASES, joint
from joint_decoding import segments_of
from numpy.testing import assert_allclose, assert_array_equal
from small_corpus import (
    MODELS,
    PIPELINE,
    documents,
    entity_scores,
    examples,
    found,
    teach,
    trained,
    untrained,
    with_entities,
    words,
)
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_hocrf.engine.selection import select_sequences
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.decoding import DualDecomposition
from spacy_hocrf.saving import archive as files

SEMI = "semi-CRF, outside tokens"
ALL = {
    "phrases": {**PHRASES, "outside": True},
    "words": {**PHRASES, "max_length": 1, "attr": "ORTH"},
}
WORDS = ["Ada", "York", "New", "likes", "Emmy", "born"]


def settings_of(kind="hybrid", **settings):
    return {"@misc": "spacy-hocrf.DualDecomposition.v1", "kind": kind, **settings}


@cache
def learnt(name, *, rows=5):
    """The bytes of a pipeline with two joint templates, of little weight so far."""
    return trained(*MODELS[name], rows=documents(rows), joint=joint(ALL, learn=False)).to_bytes()


def loaded(name, **settings):
    """The same pipeline for one test alone."""
    return untrained(*MODELS[name], joint=joint(ALL, **settings)).from_bytes(learnt(name))


def random_docs(nlp, rng, lengths):
    return [words(nlp, *(str(word) for word in rng.choice(WORDS, length))) for length in lengths]


def patterns_of(pipe, docs, groups):
    """The weighted patterns of ALL, by their definition."""
    scheme, named = pipe.structure.scheme, dict(zip(pipe.joint.feature_names, pipe.joint.weights))
    pairs = joint_oracle.pairs(joint_oracle.phrases(docs, groups, [1, 2]), 20)
    written = joint_oracle.phrases(docs, groups, [1], key=lambda token: token.text)
    written = joint_oracle.pairs(written, 20)
    is_entity, has_state = joint_oracle.is_entity, joint_oracle.has_state
    rows = [
        ("IdenticalPhrases[LOWER,1-2]", pairs, is_entity, scheme.labels),
        ("IdenticalPhrases[LOWER,1-2]", pairs, has_state, ["O"] if scheme.outside >= 0 else []),
        ("IdenticalPhrases[ORTH,1-1]", written, is_entity, scheme.labels),
    ]
    assert {f"{template}, {label}" for template, _, _, labels in rows for label in labels} == set(
        named
    )
    return [
        (places, predicate, label, named[f"{template}, {label}"])
        for template, sets, predicate, labels in rows
        for label in labels
        for places in sets
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["hybrid", "two_slave", "naive"])
def test_a_certificate_means_the_best_of_all_joint_segmentations(name, kind):
    nlp = loaded(name, decoder=settings_of(kind))
    pipe = nlp.get_pipe("hocrf")
    pipe.model.set_param("W", 0.3 * pipe.model.get_param("W"))  # not too sure of itself
    rng = np.random.default_rng(0)
    certain = changed = 0
    for round in range(6):
        weights = rng.normal(0.5, 1.0, len(pipe.joint.weights))
        pipe.joint.weights = np.abs(weights) if round % 2 else weights
        docs = random_docs(nlp, rng, [4, 3] if round < 3 else [3, 1, 3])
        groups = np.zeros(len(docs), dtype=np.int64)
        optimum, score = joint_oracle.best(pipe, docs, patterns_of(pipe, docs, groups))
        segmentations, gap, certificate = segments_of(pipe, docs, groups)
        here = score(segmentations)
        bound = here + sum(set(gap.tolist()))  # Docs decoded together have one gap
        assert here <= optimum + 1e-9
        assert bound >= optimum - 1e-6
        assert not certificate.all() or here == pytest.approx(optimum, abs=1e-6)
        certain += bool(certificate.all())
        settings, pipe.joint.decoder = pipe.joint.decoder, DualDecomposition(kind="chain")
        decoded = [[*entities(pipe.structure.scheme, each)] for each in segmentations]
        changed += [found(doc) for doc in nlp.pipe(map(Doc.copy, docs))] != decoded
        pipe.joint.decoder = settings
    assert certain >= 2  # where repeated words compete for few labels, the relaxation has a gap
    assert changed >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_problem_scores_and_counts_what_fires(name):
    nlp = loaded(name)
    pipe = nlp.get_pipe("hocrf")
    rng = np.random.default_rng(1)
    docs = random_docs(nlp, rng, [8, 5, 0, 7])
    weights = rng.normal(size=len(pipe.joint.weights))
    problems = list(
        pipe.joint.features.patterns(TokenBatch(docs), np.zeros(4, dtype=np.int64)).divided()
    )
    assert problems
    fired = set()
    for problem in problems:
        instance = problem.instance(weights)
        for _ in range(50):
            few = rng.integers(
                0, problem.vertices.n_labels, 2, dtype=np.int32
            )  # so that some agree
            sizes = np.diff(instance.offsets).astype(np.int32)
            assignment = np.minimum(rng.choice(few, instance.n_vertices), sizes - 1)
            features, counts = problem.counts(assignment)
            assert len(set(features.tolist())) == len(features)
            assert instance.score(assignment) == pytest.approx(
                weights[features] @ counts, abs=1e-12
            )
            fired.update(features.tolist())
    assert len(fired) > 3


# A clear mention and an unclear one

CONFIG = f"""{PIPELINE}
[components.hocrf.joint]
@misc = "spacy-hocrf.Joint.v1"
group_by = "hocrf_group"
learn = false

[components.hocrf.joint.features]

[components.hocrf.joint.features.phrases]
@misc = "spacy-hocrf.IdenticalPhrases.v1"
max_length = 2
weight = 4.0

[components.hocrf.joint.features.words]
@misc = "spacy-hocrf.IdenticalPhrases.v1"
attr = "ORTH"

[components.hocrf.joint.decoder]
@misc = "spacy-hocrf.DualDecomposition.v1"
max_iterations = 100
"""
CLEAR, UNCLEAR, OTHER = "Ada Quux was born in Paris .", "Quux", "It rains ."


@cache
def consistent():
    """The bytes of a pipeline made of CONFIG that has learnt the small corpus."""
    nlp = load_model_from_config(Config().from_str(CONFIG), auto_fill=True)
    teach(nlp)
    return nlp.to_bytes()


@pytest.fixture
def nlp():
    return load_model_from_config(Config().from_str(CONFIG), auto_fill=True).from_bytes(
        consistent()
    )


def of_group(nlp, group, *texts):
    docs = [nlp.make_doc(text) for text in texts]
    for doc in docs:
        doc._.hocrf_group = group
    return docs


@pytest.mark.slow
def test_overfits_saves_loads_and_scores(nlp, tmp_path):
    data = examples(nlp)
    assert nlp.evaluate(data)["ents_f"] == 1.0
    pipe = nlp.get_pipe("hocrf")
    pipe.joint.weights = np.arange(4) - 0.5
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    restored = again.get_pipe("hocrf")
    assert_array_equal(restored.joint.weights, pipe.joint.weights)
    assert restored.joint.feature_names == pipe.joint.feature_names
    assert restored.joint.feature_names == (
        "IdenticalPhrases[LOWER,1-2], PERSON",
        "IdenticalPhrases[LOWER,1-2], PLACE",
        "IdenticalPhrases[ORTH,1-3], PERSON",
        "IdenticalPhrases[ORTH,1-3], PLACE",
    )
    text = " ".join(text for text, _ in documents())
    one, other = nlp(text), again(text)
    assert found(one) == found(other)
    assert one._.hocrf_gap == other._.hocrf_gap
    assert again.evaluate(examples(again))["ents_f"] == 1.0


@pytest.mark.slow
def test_the_clear_mention_decides_the_unclear_one(nlp):
    pipe = nlp.get_pipe("hocrf")
    alone = [found(nlp(text)) for text in (CLEAR, UNCLEAR)]
    assert alone == [[(0, 2, "PERSON"), (5, 6, "PLACE")], [(0, 1, "PLACE")]] or alone[1] == []
    pipe.joint.weights = [9.0, 0.0, 0.0, 0.0]
    docs = [*nlp.pipe(of_group(nlp, 1, "Nobody but Quux likes Paris", UNCLEAR, OTHER))]
    assert [found(doc) for doc in docs] == [
        [(2, 3, "PERSON"), (4, 5, "PLACE")],
        [(0, 1, "PERSON")],
        [],
    ]
    assert [doc._.hocrf_certificate for doc in docs] == [True] * 3
    assert [doc._.hocrf_gap for doc in docs] == pytest.approx([0.0] * 3, abs=1e-6)
    pipe.joint.decoder = DualDecomposition(kind="chain")
    docs = [*nlp.pipe(of_group(nlp, 1, "Nobody but Quux likes Paris", UNCLEAR, OTHER))]
    assert found(docs[1]) == alone[1]
    assert [(doc._.hocrf_gap, doc._.hocrf_certificate) for doc in docs] == [(None, None)] * 3


@pytest.mark.slow
def test_the_way_to_the_reading_is_there_if_it_is_asked_for(nlp):
    pipe = nlp.get_pipe("hocrf")
    pipe.joint.weights = [9.0, 0.0, 0.0, 0.0]
    texts = ("Nobody but Quux likes Paris", UNCLEAR, OTHER)
    assert [doc._.hocrf_trace for doc in nlp.pipe(of_group(nlp, 1, *texts))] == [None] * 3
    pipe.joint.decoder = DualDecomposition(trace=True, max_iterations=7)
    first, second, third = nlp.pipe(of_group(nlp, 1, *texts))
    assert first._.hocrf_trace == second._.hocrf_trace
    assert third._.hocrf_trace == []  # which nothing connects
    bounds, primals = zip(*first._.hocrf_trace)
    assert 1 <= len(bounds) <= 8
    assert list(bounds) == sorted(bounds, reverse=True) and list(primals) == sorted(primals)
    assert bounds[-1] - primals[-1] == pytest.approx(first._.hocrf_gap)
    assert json.loads(json.dumps(first._.hocrf_trace)) == first._.hocrf_trace


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_text_that_cannot_keep_a_rule_for_want_of_words_has_a_gap_of_0(text):
    rules = {"@misc": "spacy-hocrf.Constraints.v1", "at_least": {"PERSON": 1}}
    features = joint(ALL, learn=False)
    nlp = untrained(*MODELS[SEMI], joint=features, constraints=rules).from_bytes(learnt(SEMI))
    _, doc = nlp.pipe(["Ada Lovelace and Ada Lovelace", text])
    assert (doc._.hocrf_gap, doc._.hocrf_certificate) == (0.0, True)


@pytest.mark.slow
def test_without_joint_features_nothing_is_proved():
    nlp = trained(rows=documents(5))
    doc = nlp("Ada Lovelace and Ada Lovelace")
    assert doc._.hocrf_gap is None and doc._.hocrf_certificate is None
    assert nlp.get_pipe("hocrf").joint is None


def test_what_another_doc_says_is_in_the_probabilities(nlp):
    pipe = nlp.get_pipe("hocrf")
    texts = ("Nobody but Quux likes Paris", UNCLEAR)
    label = pipe.joint.feature_names[0].split(", ")[1]
    pipe.joint.weights = [9.0, 0.0, 0.0, 0.0]
    alone = pipe.reading(nlp.make_doc(UNCLEAR)).spans(1e-6)
    [p] = [span.probability for span in alone if span.label == label]
    odds = np.exp(9.0) * p / (1 - p)
    assert p < 0.5
    for threshold in (None, 0.9):
        pipe.cfg["threshold"] = threshold
        docs = [*nlp.pipe(of_group(nlp, 1, *texts))]
        assert found(docs[1]) == [(0, 1, label)]
        assert entity_scores(docs[1]) == pytest.approx([odds / (1 + odds)], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("CRF, io", "CRF, bio")])
def test_probabilities_are_given_what_the_other_places_say(name):
    nlp = loaded(name)
    pipe = nlp.get_pipe("hocrf")
    pipe.model.set_param("W", 0.3 * pipe.model.get_param("W"))  # not too sure of itself
    rng, moved = np.random.default_rng(3), 0
    for _ in range(6):
        pipe.joint.weights = rng.normal(0.5, 1.0, len(pipe.joint.weights))
        docs = random_docs(nlp, rng, [4, 3, 3])
        groups = np.zeros(len(docs), dtype=np.int64)
        result = joint_decoding.decoded(pipe, docs, groups)
        chosen = [list(each) for each in oracle.listed(result.best.segments)]
        expected = joint_oracle.given_others(pipe, docs, patterns_of(pipe, docs, groups), chosen)
        for d, every in enumerate(expected):
            own = select_sequences(result.potentials, np.array([d]))
            scores = [oracle.score(own, pipe.automaton.patterns, segments) for segments, _ in every]
            log_p = np.array([value for _, value in every])
            assert_allclose(scores - np.logaddexp.reduce(scores), log_p, atol=1e-9)
            alone = np.array([score for _, score in joint_oracle.segmentations(pipe, docs[d])])
            moved += not np.allclose(alone - np.logaddexp.reduce(alone), log_p)
    assert moved > 6


def decoding(cost, **phrases):
    """The same model, decoded by expected F."""
    config = Config().from_str(CONFIG)
    hocrf = config["components"]["hocrf"]
    hocrf["decoder"] = {"@misc": "spacy-hocrf.ExpectedF.v1", "cost": cost}
    hocrf["joint"]["features"]["phrases"] |= phrases
    return load_model_from_config(config, auto_fill=True).from_bytes(consistent())


def test_docs_decoded_together_are_read_by_the_decoder_of_the_component():
    texts, counts = ("Nobody but Quux likes Paris", UNCLEAR), []
    for cost in (0.01, 0.999):
        nlp = decoding(cost)
        nlp.get_pipe("hocrf").joint.weights = [0.5] * 4
        counts.append(sum(len(doc.ents) for doc in nlp.pipe(of_group(nlp, 1, *texts))))
    assert counts[0] > counts[1]


def test_places_that_must_not_agree_do_not_whatever_the_decoder():
    phrases = {"@misc": "spacy-hocrf.IdenticalPhrases.v1"}
    block = {"@misc": "spacy-hocrf.Pattern.v1", "places": phrases, "states": ["PERSON", "PERSON"]}
    features = {"never": {**block, "weight": "-inf"}}
    decoder = {"@misc": "spacy-hocrf.ExpectedF.v1", "cost": 0.0005}
    together = joint(features, group_by="hocrf_group", learn=False)
    nlp = trained(rows=documents(5), joint=together, decoder=decoder)
    pipe = nlp.get_pipe("hocrf")
    pipe.model.set_param("W", 0.01 * pipe.model.get_param("W"))
    text, person = "In but slept", (2, 3, "PERSON")  # which is probable enough, but not the best
    sure = {
        (span.start, span.end, span.label) for span in pipe.reading(nlp.make_doc(text)).spans(0.2)
    }
    assert person in sure
    docs = [*nlp.pipe(of_group(nlp, 1, text, text))]
    assert [person in found(doc) for doc in docs] != [True, True]


def test_what_earlier_components_have_set_stays_and_decides(nlp):
    pipe = nlp.get_pipe("hocrf")
    pipe.joint.weights = [0.0, 9.0, 0.0, 0.0]
    docs = of_group(nlp, 1, "Nobody but Quux likes Paris", UNCLEAR)
    with_entities(docs[0], (2, 3, "PLACE"))
    one, other = nlp.pipe(docs)
    assert found(one) == [(2, 3, "PLACE"), (4, 5, "PLACE")]
    assert found(other) == [(0, 1, "PLACE")]
    docs = of_group(nlp, 1, "Nobody but Quux likes Paris", UNCLEAR)
    with_entities(docs[0], (2, 3, "ELSE"))  # a label that this model cannot have
    assert found(next(nlp.pipe(docs)))[0] == (2, 3, "ELSE")


@pytest.mark.slow
def test_components_with_other_trainers_decode_together():
    nlp = untrained(
        joint=joint({"phrases": {**PHRASES, "weight": 9.0}}, learn=False),
        trainer={"@misc": "spacy-hocrf.SGD.v1"},
    )
    data = examples(nlp)
    optimizer = nlp.initialize(lambda: data)
    for _ in range(60):
        nlp.update(data, sgd=optimizer)
    doc = nlp("Nobody but Quux likes Paris . Quux")
    assert found(doc)[0][2] == found(doc)[-1][2] and found(doc)[-1][:2] == (6, 7)
    assert doc._.hocrf_certificate


def test_a_tag_may_be_called_o():
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf_tagger", config={"joint": joint(learn=False)})
    words, tags = ["Ada", "sings", "Ada"], ["N", "O", "N"]
    data = [Example.from_dict(Doc(nlp.vocab, words=words), {"words": words, "tags": tags})]
    optimizer = nlp.initialize(lambda: data)
    for _ in range(10):
        nlp.update(data, sgd=optimizer)
    assert [token.tag_ for token in nlp(Doc(nlp.vocab, words=words))] == tags


@pytest.mark.slow
@pytest.mark.parametrize("docs", [[], [""], ["", "Ada", ""]])
def test_empty_documents_are_decoded(nlp, docs):
    pipe = nlp.get_pipe("hocrf")
    assert len(pipe.predict([nlp.make_doc(text) for text in docs])) == len(docs)


def test_initializing_anew_begins_with_the_configs_weights(nlp):
    pipe = nlp.get_pipe("hocrf")
    pipe.joint.weights = [1.0, 2.0, 3.0, 4.0]
    pipe.add_label("FOOD")
    assert_array_equal(pipe.joint.weights, [1.0, 2.0, 4.0, 3.0, 4.0, 0.0])
    nlp.initialize(lambda: examples(nlp))
    assert_array_equal(pipe.joint.weights, [4.0, 4.0, 4.0, 0.0, 0.0, 0.0])


# What can go wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    "code, settings",
    [
        ("H087", {"decoder": settings_of("magic")}),
        ("H087", {"decoder": settings_of(step="long")}),
        ("H088", {"decoder": settings_of(max_iterations=0)}),
        ("H088", {"decoder": settings_of(tolerance=-1.0)}),
        ("H088", {"decoder": settings_of(max_group_tokens=0)}),
        ("H097", {"features": {"words": {"@misc": "spacy-hocrf.Window.v1"}}}),
        ("H096", {"features": {}}),
        ("H099", {"features": {"phrases": {**PHRASES, "min_length": 5}}}),
        ("H099", {"features": {"phrases": {**PHRASES, "attr": "ENT_TYPE"}}}),
        ("H100", {"decoder": {"@misc": "spacy-hocrf.LBFGS.v1"}}),
        ("H101", {"group_by": "no_such_extension"}),
    ],
)
def test_bad_settings_are_named(code, settings):
    with pytest.raises(ValueError, match=rf"^\[{code}\]"):
        untrained(joint=joint(**settings))


@pytest.mark.slow
@pytest.mark.parametrize("weights", [[1.0], [1.0, 2.0, 3.0, np.nan], np.zeros((2, 2))])
def test_weights_that_do_not_fit_are_refused(nlp, weights):
    pipe = nlp.get_pipe("hocrf")
    before = pipe.joint.weights
    with pytest.raises(ValueError, match=r"^\[H102\].*4 numbers"):
        pipe.joint.weights = weights
    assert_array_equal(pipe.joint.weights, before)


def test_weights_of_an_untrained_component_are_an_error():
    with pytest.raises(ValueError, match=r"^\[H042\]"):
        untrained(joint=joint()).get_pipe("hocrf").joint.weights  # noqa: B018


@pytest.mark.slow
def test_a_model_with_other_joint_features_is_refused():
    saved = loaded(SEMI).get_pipe("hocrf").to_bytes()
    for other in ({"phrases": PHRASES}, {**ALL, "words": {**ALL["words"], "max_pairs": 3}}):
        pipe = untrained(joint=joint(other)).get_pipe("hocrf")
        with pytest.raises(ValueError, match=r"^\[H103\].*Identical"):
            pipe.from_bytes(saved)
        assert pipe.labels == ()
    changed = {**ALL, "phrases": {**ALL["phrases"], "weight": 7.0}}
    pipe = untrained(joint=joint(changed)).get_pipe("hocrf").from_bytes(saved)
    assert pipe.joint.weights[0] == 1.0  # what was saved, not what new features begin with


@pytest.mark.slow
def test_a_model_without_joint_features_takes_them():
    saved = trained(rows=documents(5)).get_pipe("hocrf").to_bytes()
    pipe = untrained(joint=joint()).get_pipe("hocrf").from_bytes(saved)
    assert_array_equal(pipe.joint.weights, [1.0, 1.0])
    assert len(pipe.predict([pipe.vocab and Doc(pipe.vocab, words=["Ada", "Ada"])])) == 1


@pytest.mark.slow
def test_damaged_joint_weights_are_refused():
    payload = files.read_bytes(loaded(SEMI).get_pipe("hocrf").to_bytes())
    name = "joint.weights"
    for weights in (payload.arrays[name][1:], payload.arrays[name] + np.nan):
        data = files.write_bytes(files.Payload(payload.header, {**payload.arrays, name: weights}))
        with pytest.raises(ValueError, match=r"^\[H039\].*joint.weights"):
            untrained(joint=joint(ALL)).get_pipe("hocrf").from_bytes(data)
