"""Rules about all spans of a text in a component, as constraints, and with prices that are learnt."""

import warnings

import numpy as np
import pytest
import spacy
from joint_config import joint
from numpy.testing import assert_allclose
from small_corpus import documents, found, learn_from, trained, untrained
from spacy.training import Example

from spacy_hocrf.learning.prices import TextSets, _objective, least_cost

NAMES = ("Ada", "Max", "Emmy", "Joe", "Ann", "Bob", "Eve", "Tim")


def rule(kind, **settings):
    return {"@misc": f"spacy-hocrf.{kind}.v1", **settings}


def constraints(**settings):
    return {"@misc": "spacy-hocrf.Constraints.v1", **settings}


def one_name_each(seed, count):
    """Texts with three or four names, of which just one is a PERSON: more often one behind "mr"."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        names = rng.choice(NAMES, int(rng.integers(3, 5)), replace=False).tolist()
        person = int(rng.integers(len(names)))
        text, spans = "", []
        for i, name in enumerate(names):
            text += "mr " if rng.random() < (0.95 if i == person else 0.4) else "and "
            spans += [(len(text), len(text) + len(name), "PERSON")] if i == person else []
            text += f"{name} "
        rows.append((text.strip(), spans))
    return rows


def learnt_pipeline(model=None, **rules):
    rules = rules or {"most": rule("AtMost"), "least": rule("AtLeast")}
    nlp = untrained(**(model or {}), constraints=constraints(rules=rules))
    data = [Example.from_dict(nlp.make_doc(t), {"entities": s}) for t, s in one_name_each(0, 60)]
    learn_from(nlp, data)
    return nlp


@pytest.mark.slow
def test_a_rule_of_infinite_price_is_a_constraint():
    """With the same spans, and the same scores."""
    nlp = trained(rows=documents(12))
    pairs = [
        ({"at_most": {"PERSON": 1}}, {"a": rule("AtMost", labels=["PERSON"], price="inf")}),
        ({"at_least": {"PLACE": 1}}, {"a": rule("AtLeast", labels=["PLACE"], price="inf")}),
        (
            {"at_most": {"PERSON": 1, "PLACE": 1}},
            {"a": rule("AtMost", price="inf"), "b": rule("Apart", price=0.0)},
        ),
    ]
    rng = np.random.default_rng(0)
    words = ["Ada", "likes", "New", "York", "Emmy", "Lovelace", "in", "Paris", "and"]
    texts = [" ".join(rng.choice(words, rng.integers(1, 10))) for _ in range(200)]
    for one, other in pairs:
        docs = []
        for own in (one, {"rules": other}):
            again = untrained(constraints=constraints(**own, tolerance=0.0)).from_bytes(
                nlp.to_bytes()
            )
            docs.append(list(again.pipe(texts)))
        assert [found(doc) for doc in docs[0]] == [found(doc) for doc in docs[1]]
        scores = [[each["score"] for doc in some for each in doc._.hocrf_scores] for some in docs]
        assert len(scores[0]) > 100
        assert_allclose(*scores, rtol=0, atol=1e-9)
        assert max(sum(ent.label_ == "PERSON" for ent in doc.ents) for doc in docs[0]) <= 1 or (
            "at_least" in one
        )


@pytest.mark.slow
def test_learnt_prices_make_fewer_errors_and_are_saved(tmp_path):
    nlp = learnt_pipeline()
    pipe = nlp.get_pipe("hocrf")
    names = ["AtMost[1], PERSON", "AtLeast[1], PERSON"]
    assert list(pipe.rule_prices) == names and min(pipe.rule_prices.values()) > 0.3
    data = [Example.from_dict(nlp.make_doc(t), {"entities": s}) for t, s in one_name_each(1, 100)]
    with_rules = nlp.evaluate(data)["ents_f"]
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert again.get_pipe("hocrf").rule_prices == pipe.rule_prices
    texts = [text for text, _ in one_name_each(1, 100)]
    assert [found(doc) for doc in again.pipe(texts)] == [found(doc) for doc in nlp.pipe(texts)]
    pipe.rule_prices = dict.fromkeys(names, 0.0)
    assert with_rules > nlp.evaluate(data)["ents_f"] + 0.03
    nlp.initialize(lambda: data)
    assert set(pipe.rule_prices.values()) == {0.0}


@pytest.mark.slow
def test_prices_are_learnt_for_models_of_single_tokens():
    nlp = learnt_pipeline(
        {"model": {"@architectures": "spacy-hocrf.HighOrderCRF.v1", "encoding": "bio"}}
    )
    assert min(nlp.get_pipe("hocrf").rule_prices.values()) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("learn", [False, True])
def test_prices_are_learnt_beside_joint_features(learn):
    nlp = learnt_pipeline({"joint": joint(learn=learn)})
    assert max(nlp.get_pipe("hocrf").rule_prices.values()) > 0.1


@pytest.mark.slow
def test_what_is_broken_costs_the_log_odds_of_an_explanation():
    nlp = learnt_pipeline()
    pipe, compared = nlp.get_pipe("hocrf"), 0
    pipe.rule_prices = {"AtMost[1], PERSON": 1.5}
    for text, _ in one_name_each(3, 40):
        reading = pipe.reading(nlp.make_doc(text))
        broken = reading.expected_breaks()
        assert set(broken) == set(pipe.rule_prices) and all(0 <= p <= 1 for p in broken.values())
        for span in reading.spans(0.3):
            explanation = reading.explain(tuple(span[:3]))
            assert sum(each.contribution for each in explanation.reasons) == pytest.approx(
                explanation.log_odds, abs=1e-4
            )
            compared += any(each.template == "rules" for each in explanation.reasons)
    assert compared > 2


@pytest.mark.slow
def test_rules_beside_patterns_of_several_places():
    phrases = joint(
        {"phrases": {"@misc": "spacy-hocrf.IdenticalPhrases.v1", "weight": 1.0}}, learn=False
    )
    nlp = trained(joint=phrases, constraints=constraints(at_most={"PERSON": 1}), rows=documents(12))
    texts = ["Ada likes Ada and Emmy likes York", "Emmy in York", "Ada Lovelace and Emmy"] * 3
    free = untrained(joint=phrases).from_bytes(nlp.to_bytes())
    number = [
        [sum(ent.label_ == "PERSON" for ent in doc.ents) for doc in p.pipe(texts)]
        for p in (nlp, free)
    ]
    assert max(number[0]) == 1 < max(number[1])
    assert all(doc._.hocrf_certificate for doc in nlp.pipe(texts))


def random_sets(rng, rules):
    broken = rng.random((int(rng.integers(1, 6)), rules)) < 0.4
    return TextSets(broken, rng.dirichlet(np.ones(len(broken))), rng.random(rules) < 0.6)


@pytest.mark.slow
def test_prices_are_those_of_the_largest_likelihood_that_are_not_below_0():
    rng = np.random.default_rng(0)
    at_zero = 0
    for rules in (1, 2, 3, 5, 8):
        texts = [random_sets(rng, rules) for _ in range(30)]
        prices = least_cost(texts, 0.7)
        assert (prices >= 0).all()
        at_zero += int((prices == 0).sum())
        least, gradient = _objective(texts, prices, 0.7)
        for i in range(rules):
            step = np.zeros(rules)
            step[i] = 1e-5
            above, below = (_objective(texts, prices + s, 0.7)[0] for s in (step, -step))
            assert gradient[i] == pytest.approx((above - below) / 2e-5, abs=1e-6)
            assert abs(gradient[i]) < 1e-3 if prices[i] else gradient[i] > -1e-3
        for _ in range(200):
            other = np.maximum(prices + rng.normal(0, rng.choice([0.01, 0.1, 1.0]), rules), 0.0)
            assert _objective(texts, other, 0.7)[0] >= least - 1e-6
    assert at_zero


@pytest.mark.slow
def test_annotation_that_breaks_a_rule_that_must_be_kept_teaches_no_price():
    never = rule("AtMost", most=0, price="inf")
    with pytest.warns(UserWarning, match="W050.*60 of 60"):
        nlp = learnt_pipeline(never=never, least=rule("AtLeast"))
    assert nlp.get_pipe("hocrf").rule_prices == {
        "AtMost[0], PERSON": np.inf,
        "AtLeast[1], PERSON": 0.0,
    }


@pytest.mark.slow
def test_too_few_texts_teach_no_prices():
    nlp = trained(constraints=constraints(rules={"most": rule("AtMost")}), rows=documents(3))
    assert set(nlp.get_pipe("hocrf").rule_prices.values()) == {0.0}


@pytest.mark.slow
def test_prices_that_cannot_be_set():
    pipe = learnt_pipeline(most=rule("AtMost"), never=rule("AtMost", most=9, price="inf")).get_pipe(
        "hocrf"
    )
    for prices, what in [
        ({"AtMost[9], PERSON": 1.0}, r"AtMost\[9\].*one of AtMost\[1\], PERSON"),
        ({"AtMost[1], PERSON": -1.0}, "-1.0"),
        ({"AtMost[1], PERSON": "inf"}, "finite"),
    ]:
        with pytest.raises(ValueError, match=f"H214.*{what}"):
            pipe.rule_prices = prices
    assert pipe.rule_prices["AtMost[9], PERSON"] == np.inf


def with_a_rule_for_each_label(n_labels, **settings):
    """A pipeline in which each label may occur once, all equally likely."""
    labels = [f"L{i}" for i in range(n_labels)]
    nlp = untrained(constraints=constraints(at_most=dict.fromkeys(labels, 1), **settings))
    data = [
        Example.from_dict(nlp.make_doc(f"word{i} x"), {"entities": [(0, len(f"word{i}"), label)]})
        for i, label in enumerate(labels)
    ]
    nlp.initialize(lambda: data)
    pipe = nlp.get_pipe("hocrf")
    pipe.model.set_param("W", np.full_like(pipe.model.get_param("W"), 1e-3))
    return nlp, pipe


def test_a_text_that_could_break_too_many_rules_is_named_once():
    nlp, pipe = with_a_rule_for_each_label(12, tolerance=1e-9)
    with pytest.warns(UserWarning, match=r"W049.*'a b c d") as told:
        docs = list(nlp.pipe(["a b c d e f g h i j k l m n o p"] * 2))
    assert sum("W049" in str(each.message) for each in told) == 1
    for doc in docs:
        assert max([[ent.label_ for ent in doc.ents].count(label) for label in pipe.labels]) <= 1


@pytest.mark.parametrize("n_labels", [10, 11])  # 2 ** 10 states are kept together
@pytest.mark.filterwarnings("ignore:.*W035")
def test_readings_of_a_text_that_could_break_too_many_rules_say_so(n_labels):
    nlp, pipe = with_a_rule_for_each_label(n_labels, tolerance=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pipe.reading(nlp.make_doc("a b c d e f g h")).entropy()
        pipe.reading(nlp.make_doc("a b c d e f g h")).entropy()
    assert sum("W049" in str(each.message) for each in told) == (n_labels > 10)
