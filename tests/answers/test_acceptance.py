"""How probable it is that all of a text is right, and which texts are accepted unread."""

import warnings
from dataclasses import replace
from math import exp

import numpy as np
import pytest
import spacy
from oracle import so_many
from pytest import approx
from small_corpus import MODELS, examples, fit, learn_from, teach, untrained
from spacy.tokens import DocBin, Span

from spacy_hocrf.annotation.acceptance import ALARM, Acceptance

ALL = Acceptance(0.9, 0.9, 0.0, 10, 10)
TEXTS = (
    "Ada Lovelace was born in Paris .",
    "Ada \n Lovelace \n\n was born in \n Paris \n .",
    "Grace slept in New York , London and San Jose .",
    "It rains .",
    "",
)


FULL = "semi-CRF, no outside"
COVERED = [
    ("Ada Lovelace Paris", [(0, 12, "PERSON"), (13, 18, "PLACE")]),
    ("Grace New York", [(0, 5, "PERSON"), (6, 14, "PLACE")]),
    ("London Emmy", [(0, 6, "PLACE"), (7, 11, "PERSON")]),
]


@pytest.fixture(scope="module", params=[*MODELS, FULL])
def trained(request):
    return made(request.param)


def made(kind):
    factory, model = MODELS.get(kind, ("hocrf", {}))
    nlp = untrained(factory, model)
    data = examples(nlp, COVERED) if kind == FULL else examples(nlp)
    learn_from(nlp, data, 4)
    nlp.get_pipe("hocrf").acceptance = ALL
    return nlp


def texts(nlp):
    return [nlp.make_doc(text) for text in TEXTS]


def shown(pipe, doc):
    target = pipe.target
    if target.place == "token.tag":
        return [(token.i, token.i + 1, token.tag_) for token in doc]
    spans = doc.ents if target.place == "doc.ents" else doc.spans[target.spans_key]
    return [(span.start, span.end, span.label_) for span in spans]


@pytest.mark.parametrize("kind", [*MODELS, FULL])
def test_the_probability_is_that_of_the_reading_that_is_shown(kind):
    """With random weights, by which tokens are left over in a model that has no label for them, too."""
    nlp = made(kind)
    pipe = nlp.get_pipe("hocrf")
    impossible, size = 0, pipe.model.get_param("W").shape
    for seed in range(so_many(12)):
        weights = np.random.default_rng(seed).normal(0, 0.4, size)
        pipe.model.set_param("W", weights.astype(np.float32))
        for doc, reading in zip(nlp.pipe(texts(nlp)), pipe.readings(texts(nlp))):
            expected = exp(reading.log_probability(shown(pipe, doc))) if len(doc) else 1.0
            assert doc._.hocrf_probability == approx(expected, rel=1e-9)
            assert doc._.hocrf_accepted is True
            impossible += expected == 0
    assert impossible or kind != FULL


def test_entities_that_were_there_are_certain_and_constraints_are_kept():
    nlp = untrained("hocrf", {})
    teach(nlp, steps=3)
    pipe = nlp.get_pipe("hocrf")
    pipe.acceptance = ALL
    doc = nlp.make_doc(TEXTS[0])
    doc.set_ents([Span(doc, 0, 2, "KING")], default="missing")
    reading = pipe.reading(doc.copy())
    expected = exp(reading.log_probability([(5, 6, "PLACE")]))
    assert [ent.label_ for ent in pipe(doc).ents] == ["KING", "PLACE"]
    assert doc._.hocrf_probability == approx(expected, rel=1e-9)
    other = nlp.make_doc(TEXTS[0])
    pipe.constrain(other, (5, 6, "PERSON"))
    reading = pipe.reading(other.copy())
    expected = exp(reading.log_probability(shown(pipe, pipe(other))))
    assert other._.hocrf_probability == approx(expected, rel=1e-9) and expected > 0


def one_place(price=1.0):
    rule = {"@misc": "spacy-hocrf.AtMost.v1", "labels": ["PLACE"], "most": 1, "price": price}
    return {"@misc": "spacy-hocrf.Constraints.v1", "rules": {"one": rule}}


@pytest.mark.parametrize("price", ["inf", 1.5])
def test_rules_about_all_spans_are_paid_for(price):
    nlp = untrained("hocrf", {}, constraints=one_place(price))
    teach(nlp, steps=3)
    pipe = nlp.get_pipe("hocrf")
    pipe.acceptance = ALL
    doc = nlp(TEXTS[2])
    expected = exp(pipe.reading(nlp.make_doc(TEXTS[2])).log_probability(shown(pipe, doc)))
    assert doc._.hocrf_probability == approx(expected, rel=1e-6)


def test_texts_are_accepted_by_the_threshold_of_their_group(trained):
    pipe = trained.get_pipe("hocrf")
    p = trained(TEXTS[2])._.hocrf_probability
    for least, accepted in ((p, True), (p + 1e-9, False), (None, False)):
        pipe.acceptance = replace_struct(threshold=least)
        assert trained(TEXTS[2])._.hocrf_accepted is accepted
    pipe.acceptance = replace_struct(threshold=None, by="scanner", groups={"new": 0.0, "7": 1.0})
    docs = texts(trained)[2:3] * 1
    found = {}
    for group in ("new", 7, "old", None):
        doc = docs[0].copy()
        doc._.scanner = group
        found[group] = trained(doc)._.hocrf_accepted
    assert found == {"new": True, 7: False, "old": False, None: False}
    pipe.acceptance = ALL


def replace_struct(**changes):
    known = {name: getattr(ALL, name) for name in ALL.__struct_fields__}
    return Acceptance(**known | changes)


@pytest.mark.slow
def test_it_is_saved_with_the_model_and_the_docs(trained, tmp_path):
    pipe = trained.get_pipe("hocrf")
    pipe.acceptance = replace_struct(threshold=0.25, by="scanner", groups={"a": 0.5})
    trained.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("hocrf").acceptance == pipe.acceptance
    pipe.acceptance = ALL
    expected = [doc._.hocrf_probability for doc in trained.pipe(TEXTS)]
    sent = [doc._.hocrf_probability for doc in trained.pipe(TEXTS, n_process=2, batch_size=2)]
    assert sent == approx(expected, rel=1e-9)
    docs = list(trained.pipe(TEXTS))
    read = DocBin(store_user_data=True).from_bytes(
        DocBin(docs=docs, store_user_data=True).to_bytes()
    )
    again = list(read.get_docs(trained.vocab))
    assert [doc._.hocrf_probability for doc in again] == expected
    assert all(doc._.hocrf_accepted for doc in again)
    other = untrained(*MODELS["spans"]).get_pipe("hocrf")
    other.acceptance = ALL
    other.from_bytes(untrained(*MODELS["spans"]).get_pipe("hocrf").to_bytes())
    assert other.acceptance is None  # loading replaces what was there


@pytest.mark.slow
def test_a_promise_ends_when_training_goes_on():
    nlp = untrained("hocrf", {})
    data = examples(nlp)
    optimizer = nlp.initialize(lambda: data)
    fit(nlp, data, 2)
    pipe = nlp.get_pipe("hocrf")
    assert nlp(TEXTS[0])._.hocrf_probability is None is nlp(TEXTS[0])._.hocrf_accepted
    pipe.acceptance = ALL
    pipe.temper(data)
    assert pipe.acceptance is None
    pipe.acceptance = ALL
    nlp.update(data, sgd=optimizer)
    assert pipe.acceptance is None
    pipe.acceptance = ALL
    nlp.initialize(lambda: data)
    assert pipe.acceptance is None


@pytest.mark.slow
def test_a_promise_ends_when_other_settings_decide_what_is_shown(tmp_path):
    nlp = untrained("hocrf", {}, constraints=one_place("learnt"))
    teach(nlp)
    pipe = nlp.get_pipe("hocrf")
    assert pipe.rule_prices and pipe.choice.cost is not None
    before = pipe.target, pipe.constraints, pipe.threshold

    def set_price():
        pipe.rule_prices = {name: 0.5 for name in pipe.rule_prices}

    changes = {
        "threshold": lambda: setattr(pipe, "threshold", 0.5),
        "constraints": lambda: setattr(pipe, "constraints", None),
        "target": lambda: setattr(pipe, "target", replace(pipe.target, overwrite=True)),
        "price": set_price,
    }
    for change in changes.values():
        pipe.acceptance = ALL
        assert nlp(TEXTS[0])._.hocrf_accepted is True
        change()
        with pytest.warns(UserWarning, match=r"W051.*'hocrf'"):
            doc = nlp(TEXTS[0])
        assert doc._.hocrf_accepted is None is doc._.hocrf_probability
        assert pipe.acceptance is None
        pipe.target, pipe.constraints, pipe.threshold = before
        assert pipe.acceptance is None  # what has ended does not come back
    pipe.acceptance = ALL
    nlp.to_disk(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert spacy.load(tmp_path)(TEXTS[0])._.hocrf_accepted is True
    viterbi = {"@misc": "spacy-hocrf.Viterbi.v1"}
    settings = {
        "threshold": 0.5,
        "overwrite": True,
        "constraints": one_place(2.0),
        "decoder": viterbi,
    }
    for name, value in settings.items():
        changed = spacy.load(tmp_path, config={"components": {"hocrf": {name: value}}})
        with pytest.warns(UserWarning, match="W051"):
            assert changed(TEXTS[0])._.hocrf_accepted is None
    more = spacy.load(tmp_path, config={"components": {"hocrf": {"n_best": 2}}})
    assert more(TEXTS[0])._.hocrf_accepted is True  # what is shown besides


def test_nothing_more_is_computed_without_it(trained, monkeypatch):
    from spacy_hocrf.answers.predictor import Predictor

    calls = []
    original = Predictor._text_probabilities
    monkeypatch.setattr(
        Predictor, "_text_probabilities", lambda *a: calls.append(1) or original(*a)
    )
    pipe = trained.get_pipe("hocrf")
    pipe.acceptance = None
    list(trained.pipe(TEXTS))
    assert not calls
    pipe.acceptance = ALL
    list(trained.pipe(TEXTS))
    assert calls


@pytest.mark.slow
def test_texts_of_another_kind_are_noticed_and_others_seldom():
    rng = np.random.default_rng(0)
    seen = tuple(sorted(rng.beta(3, 1, 400).tolist()))
    known = replace_struct(sample=seen, texts=400, slope=0.7, intercept=-0.2)

    def likeness(drawn):
        return known.likeness([known.calibrated(p) for p in drawn.tolist()])

    alarms = sum(likeness(rng.beta(3, 1, 200)) < ALARM for _ in range(1000))
    others = sum(likeness(rng.beta(1.8, 1, 200)) < ALARM for _ in range(100))
    assert alarms <= 40 and others >= 90  # 10 on average over samples, of which this is one
    assert likeness(np.array(seen)) == 1.0 and known.likeness([]) == 1.0
    assert ALL.likeness([0.5]) == 1.0
    assert 0 <= likeness(np.zeros(200)) < 1e-12


def test_the_chance_is_that_of_kolmogorov_and_smirnov():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    for _ in range(20):
        seen, given = tuple(sorted(rng.random(150).tolist())), (rng.random(90) ** 1.2).tolist()
        found = replace_struct(sample=seen, texts=150).likeness(given)
        assert found == approx(stats.ks_2samp(seen, given, method="exact").pvalue, abs=0.02)
