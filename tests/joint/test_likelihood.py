"""Prices of rules by likelihood, and spans read under rules: against the enumeration of all readings,
central differences, and as a component that learns, predicts, and is saved.
"""

from collections import Counter

import joint_oracle
import numpy as np
import pytest
import spacy
from entities import entities
from joint_config import PHRASES, joint
from numpy.testing import assert_allclose, assert_array_equal
from small_corpus import MODELS, documents, fit, trained, untrained, words
from spacy.training import Example
from span_rules_corpus import (
    TEMPLATES,
    all_outputs,
    gold_features,
    kind_of,
    one_name_each,
    rule,
)

from spacy_hocrf.joint import likelihood, ruled_spans
from spacy_hocrf.joint.features import JointFeatures
from spacy_hocrf.joint.likelihood import JointLikelihood, fitted_prices, loss_of
from spacy_hocrf.joint.ruled_spans import RuledSpans
from spacy_hocrf.joint.trainers import JointMaxMargin
from spacy_hocrf.pipeline.decoders import ExpectedF

LIKELIHOOD = {"@misc": "spacy-hocrf.JointLikelihood.v1", "folds": 3}


def learnt_pipeline(trainer=LIKELIHOOD, count=40, **features):
    features = features or {"most": rule("AtMost"), "least": rule("AtLeast")}
    nlp = untrained(joint=joint(features, trainer=trainer))
    data = [Example.from_dict(nlp.make_doc(t), {"entities": s}) for t, s in one_name_each(0, count)]
    nlp.initialize(lambda: data)
    fit(nlp, data)
    return nlp


def gold_of(nlp, count=60):
    return [Example.from_dict(nlp.make_doc(t), {"entities": s}) for t, s in one_name_each(1, count)]


# Reading


def under_rules(pipe, doc, prices, temperature):
    """The probability of every span, by the definition."""
    scheme, names = (
        pipe.structure.scheme,
        [(t, r.name) for t in TEMPLATES for r in t.rules(pipe.structure.scheme.labels)],
    )
    readings, values = [], []
    for segments, score in joint_oracle.segmentations(pipe, doc):
        spans = entities(scheme, segments)
        labels = [label for *_, label in sorted(spans)]
        kept = [joint_oracle.keeps(kind_of(*each), labels) for each in names]
        readings.append(spans)
        values.append((score - sum(p for p, good in zip(prices, kept) if not good)) / temperature)
    shares = np.exp(np.array(values) - np.logaddexp.reduce(values))
    found = Counter()
    for spans, share in zip(readings, shares):
        found.update(dict.fromkeys(spans, share))
    return found


@pytest.mark.parametrize("name", [name for name in MODELS if name != "tagger"])
def test_spans_have_the_probability_of_all_readings_that_have_them(name, monkeypatch):
    monkeypatch.setattr(ruled_spans, "READINGS", 10**6)
    nlp = trained(*MODELS[name], rows=documents(3))
    pipe = nlp.get_pipe(nlp.pipe_names[0])
    pipe.model.set_param("W", 0.2 * pipe.model.get_param("W"))
    structure = pipe.structure
    rules = JointFeatures(tuple(TEMPLATES), structure.scheme).rules
    rng = np.random.default_rng(0)
    docs = [words(nlp, *text.split()) for text in ("Ada in Paris", "York", "Ada Paris rains in")]
    potentials = structure.compile(structure.observe(docs), structure.allowed(docs))
    potentials = potentials.potentials(pipe._learner.snapshot().placed)
    prices, temperature = rng.normal(0.5, 1.0, len(rules)), 1.4
    decoder = RuledSpans.around(ExpectedF(cost=0.3), rules, prices, temperature)
    found = decoder.candidates(potentials, pipe.automaton, structure.scheme, 0.01)
    assert found.possible.all()
    for doc, spans, own in zip(docs, structure.scheme.named(found.spans), by_text(found)):
        expected = under_rules(pipe, doc, prices, temperature)
        assert list(spans) == sorted(spans, key=lambda span: span[:2])
        assert set(spans) == {span for span, p in expected.items() if p >= 0.01}
        assert_allclose(own, [expected[span] for span in spans], atol=1e-9)


def by_text(found):
    return np.split(found.scores, found.spans.offsets[1:-1])


def test_white_space_at_the_ends_of_spans_is_not_shown(monkeypatch):
    nlp = trained(rows=documents(5))
    pipe = nlp.get_pipe("hocrf")
    structure = pipe.structure
    rules = JointFeatures((TEMPLATES[0],), structure.scheme).rules
    doc = words(nlp, "Ada", " ", "Paris")
    potentials = structure.compile(structure.observe([doc]), structure.allowed([doc]))
    potentials = potentials.potentials(pipe._learner.snapshot().placed)
    blank = np.array([False, True, False])
    monkeypatch.setattr(ruled_spans, "READINGS", 10**6)
    decoders = (
        ExpectedF(cost=0.3),
        RuledSpans.around(ExpectedF(cost=0.3), rules, np.zeros(len(rules)), 1.0),
    )
    known = potentials, pipe.automaton, structure.scheme, 1e-4, blank
    plain, ruled = (decoder.candidates(*known) for decoder in decoders)
    assert_array_equal(np.stack(plain.spans[1:]), np.stack(ruled.spans[1:]))
    assert_allclose(plain.scores, ruled.scores, atol=1e-9)


# Learning


@pytest.fixture(scope="module")
def texts():
    """What prices are learnt from, and what the same texts are to `JointMaxMargin`: all readings of them."""
    none = rule("AtMost", most=0)  # most texts break it
    nlp = learnt_pipeline(most=rule("AtMost"), none=none, least=rule("AtLeast"))
    pipe = nlp.get_pipe("hocrf")
    found = []

    def kept(texts, n_rules, settings):
        found.extend(texts)
        return fitted_prices(texts, n_rules, settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(likelihood, "fitted_prices", kept)
        trainer = JointLikelihood(folds=2, readings=10**6)
        trainer.learn(pipe._learner, pipe._joint_model)

    class Tasks(JointMaxMargin):
        def fit(self, tasks, agree):
            Tasks.found = list(tasks)
            return super().fit(tasks, agree)

    Tasks(folds=2, epochs=1).learn(pipe._learner, pipe._joint_model)
    every = [all_outputs(task, pipe.structure.scheme.forbidden) for task in Tasks.found]
    return found, Tasks.found, every


def test_the_loss_is_that_of_all_readings(texts):
    contrasts, tasks, every = texts
    n = every[0][0].shape[1]
    rng = np.random.default_rng(1)
    for _ in range(5):
        x = np.append(rng.uniform(0.5, 1.5), rng.normal(0.3, 1.0, n))
        expected = (x[1:] @ x[1:] + (x[0] - 1) ** 2) / (2 * 0.7**2)
        for task, (features, local, _) in zip(tasks, every):
            right = x[0] * task.gold.counts[-1] + x[1:] @ gold_features(task, n)
            expected += np.logaddexp.reduce(x[0] * local + features @ x[1:]) - right
        value, slope = loss_of(contrasts, x, 0.7**2)
        assert_allclose(value, expected, rtol=1e-9)
        for i in range(len(x)):
            step = np.where(np.arange(len(x)) == i, 1e-5, 0.0)
            ends = [loss_of(contrasts, x + s * step, 0.7**2)[0] for s in (-1, 1)]
            assert_allclose(slope[i], (ends[1] - ends[0]) / 2e-5, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_no_other_prices_have_a_smaller_loss(texts, nonnegative):
    contrasts, n = texts[0], texts[2][0][0].shape[1]
    settings = JointLikelihood(nonnegative=nonnegative)
    found = fitted_prices(contrasts, n, settings)
    x = np.append(1.0, found.weights) / found.temperature
    least = loss_of(contrasts, x, 1.0)[0]
    assert "converged" in found.summary
    assert ((found.weights >= 0).all()) == nonnegative
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = x + rng.normal(0.0, rng.choice([0.01, 0.1, 1.0]), len(x))
        if nonnegative:
            other = np.maximum(other, 0.0)
        other[0] = max(other[0], 0.1)
        assert loss_of(contrasts, other, 1.0)[0] >= least * (1 - 1e-6)


def test_fewer_readings_are_the_best_ones(texts):
    contrasts = texts[0]
    nlp = learnt_pipeline({**LIKELIHOOD, "folds": 2}, most=rule("AtMost"), least=rule("AtLeast"))
    pipe = nlp.get_pipe("hocrf")
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(likelihood, "fitted_prices", lambda texts, *_: found.extend(texts))
        JointLikelihood(folds=2, readings=3).learn(pipe._learner, pipe._joint_model)
    assert {len(text.scores) for text in found} <= {3, 4}
    assert all(text.scores[-1] == 0.0 and not text.broken[-1].any() for text in found)
    assert max(len(text.scores) for text in contrasts) > 4


def test_learnt_prices_are_saved_and_loaded_and_change_probabilities(tmp_path):
    nlp = learnt_pipeline()
    pipe = nlp.get_pipe("hocrf")
    assert (pipe.joint_weights > 0.3).all()
    assert pipe.joint_temperature != 1.0
    data = gold_of(nlp)
    together = squared_errors(nlp, data)
    texts = [example.reference.text for example in data]
    scores = [[ent._.hocrf_score for ent in doc.ents] for doc in nlp.pipe(texts)]
    assert nlp(texts[0])._.hocrf_certificate is None  # no reading is chosen as a whole
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    again = loaded.get_pipe("hocrf")
    assert_array_equal(again.joint_weights, pipe.joint_weights)
    assert again.joint_temperature == pipe.joint_temperature
    assert [[ent._.hocrf_score for ent in doc.ents] for doc in loaded.pipe(texts)] == scores
    pipe.joint_weights = [0.0, 0.0]
    assert together < 0.95 * squared_errors(nlp, data)


def squared_errors(nlp, data):
    """Of the probabilities of all spans that are likely at all, where 1 is right for annotated ones."""
    pipe = nlp.get_pipe("hocrf")
    structure, total = pipe.structure, 0.0
    docs = [nlp.make_doc(example.reference.text) for example in data]
    potentials = structure.compile(structure.observe(docs), structure.allowed(docs))
    potentials = potentials.potentials(pipe._learner.snapshot().placed)
    known = potentials, pipe.automaton, structure.scheme, 1e-6
    found = pipe._predictor().decoder.candidates(*known)
    for example, spans, own in zip(data, structure.scheme.named(found.spans), by_text(found)):
        gold = {(ent.start, ent.end, ent.label_) for ent in example.reference.ents}
        total += sum((p - (span in gold)) ** 2 for span, p in zip(spans, own))
    return total


def test_a_damaged_temperature_is_an_error():
    nlp = learnt_pipeline(count=12)
    pipe = nlp.get_pipe("hocrf")
    keeper = pipe._keepers(pipe.structure.settings)["joint"]
    section = keeper.saved()
    section.arrays["temperature"] = np.array([0.0])
    with pytest.raises(ValueError, match=r"^\[H039\].*joint.temperature"):
        keeper.checked(section, pipe.structure.scheme)


def test_the_best_reading_is_chosen_where_the_decoder_asks_for_it():
    nlp = learnt_pipeline(count=12)
    pipe = nlp.get_pipe("hocrf")
    viterbi = untrained(
        joint=joint({"most": rule("AtMost"), "least": rule("AtLeast")}, trainer=LIKELIHOOD),
        decoder={"@misc": "spacy-hocrf.Viterbi.v1"},
    )
    data = [
        Example.from_dict(viterbi.make_doc(t), {"entities": s}) for t, s in one_name_each(0, 12)
    ]
    viterbi.initialize(lambda: data)
    fit(viterbi, data)
    other = viterbi.get_pipe("hocrf")
    assert_allclose(other.joint_weights, pipe.joint_weights)
    doc = viterbi("mr Ada and Max mr Tim")
    assert doc._.hocrf_certificate
    optimum, _ = joint_oracle.best(
        other,
        [doc],
        [],
        list(
            zip(
                [("AtMost", 1, "PERSON"), ("AtLeast", 1, "PERSON")],
                other.joint_weights.tolist(),
            )
        ),
    )
    assert np.isfinite(optimum)


def test_annotation_that_breaks_a_rule_of_infinite_weight_teaches_no_price():
    features = {"never": rule("AtMost", most=0, weight="inf"), "least": rule("AtLeast")}
    with pytest.warns(UserWarning, match=r"W033.*12 of 12"):
        nlp = learnt_pipeline(count=12, **features)
    pipe = nlp.get_pipe("hocrf")
    assert pipe.joint_weights.tolist() == [np.inf, 0.0]
    assert not any(len(doc.ents) for doc in nlp.pipe([t for t, _ in one_name_each(2, 10)]))


# Settings


def test_features_that_find_places_are_refused():
    nlp = untrained(joint=joint({"phrases": PHRASES, "most": rule("AtMost")}, trainer=LIKELIHOOD))
    data = [Example.from_dict(nlp.make_doc(t), {"entities": s}) for t, s in one_name_each(0, 6)]
    with pytest.raises(ValueError, match=r"^\[H312\].*IdenticalPhrases.*components.hocrf.joint"):
        nlp.initialize(lambda: data)
        fit(nlp, data)


@pytest.mark.parametrize("name, found", [("sigma", 0.0), ("readings", 1), ("folds", 1)])
def test_bad_settings_are_named(name, found):
    with pytest.raises(ValueError, match=rf"^\[H108\].*{name}"):
        JointLikelihood(**{name: found})


def test_a_single_text_teaches_no_price():
    nlp = learnt_pipeline(count=12)
    pipe = nlp.get_pipe("hocrf")
    learner = pipe._learner.seeing(next(iter(pipe._learner.corpus.groups(most=10**6))))
    assert JointLikelihood().learn(learner, pipe._joint_model) is None
