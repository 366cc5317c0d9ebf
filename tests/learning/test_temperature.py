"""The temperature: its loss and slope, and what becomes of a model that is too sure."""

import numpy as np
import pytest
from joint_config import joint
from small_corpus import MODELS, documents, examples, learner_of, trained, untrained
from spacy.training import Example

from spacy_hocrf.learning.temperature import HeldOut

NEW = [
    ("Grace Turing was born in San York .", [(0, 12, "PERSON"), (25, 33, "PLACE")]),
    ("In Hopper , London slept .", [(3, 9, "PLACE"), (12, 18, "PERSON")]),
    ("Nobody likes Emmy Paris", [(13, 23, "PERSON")]),
    ("It rains in Gauss .", [(12, 17, "PLACE")]),
]


def held_out(nlp, rows=NEW):
    return HeldOut.of(learner_of(nlp.get_pipe("hocrf")), examples(nlp, rows))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_loss_and_its_slope_are_those_of_a_model_with_scaled_weights(name):
    factory, model = MODELS[name]
    nlp = trained(factory, model)
    pipe, found = nlp.get_pipe("hocrf"), held_out(nlp)
    loss, slope = found.loss(0.7)
    numeric = (found.loss(0.7 + 1e-5)[0] - found.loss(0.7 - 1e-5)[0]) / 2e-5
    assert numeric == pytest.approx(slope, rel=1e-5, abs=1e-8)
    pipe.model.set_param("W", np.float32(0.7) * pipe.model.get_param("W"))
    assert held_out(nlp).loss(1.0)[0] == pytest.approx(loss, rel=1e-5)


@pytest.mark.slow
def test_the_best_temperature_has_no_slope_and_the_smallest_loss():
    found = held_out(trained(), NEW * 1000)  # the prior hardly counts
    scale = 1 / found.temperature()
    assert found.loss(scale)[1] == pytest.approx(0.0, abs=1e-4)
    assert all(found.loss(scale)[0] < found.loss(scale * other)[0] for other in (0.8, 1.25))


@pytest.mark.slow
def test_a_model_that_is_too_sure_becomes_as_sure_as_it_was():
    nlp = trained()
    pipe = nlp.get_pipe("hocrf")
    weights = pipe.model.get_param("W").copy()
    first = pipe.temper(examples(nlp, NEW))
    pipe.model.set_param("W", 3 * weights)
    second = pipe.temper(examples(nlp, NEW))
    assert second == pytest.approx(3 * first, rel=0.1)  # and its prior


@pytest.mark.slow
def test_prices_of_rules_and_joint_weights_are_not_tempered():
    """A reading that breaks a rule with a price of 1.5 stays e**1.5 times less probable."""
    rules = {"once": {"@misc": "spacy-hocrf.AtMost.v1"}}
    constraints = {"@misc": "spacy-hocrf.Constraints.v1", "rules": rules}
    nlp = trained(constraints=constraints, joint=joint(learn=False))
    pipe = nlp.get_pipe("hocrf")
    pipe.rule_prices = {"AtMost[1], PERSON": 1.5}

    def log_odds():
        reading = pipe.reading(nlp.make_doc("Ada met Emmy"))
        once, twice = [(0, 1, "PERSON")], [(0, 1, "PERSON"), (2, 3, "PERSON")]
        return reading.log_probability(once) - reading.log_probability(twice)

    before, weights = log_odds(), pipe.joint.weights
    temperature = pipe.temper(examples(nlp, NEW))
    assert temperature != pytest.approx(1, abs=0.1)
    assert log_odds() - 1.5 == pytest.approx((before - 1.5) / temperature, rel=1e-4)
    np.testing.assert_array_equal(pipe.joint.weights, weights)


def test_texts_that_are_read_without_an_error_make_no_model_infinitely_sure():
    nlp = untrained(trainer={"@misc": "spacy-hocrf.SGD.v1"})
    data = examples(nlp, documents())
    nlp.update(data, sgd=nlp.initialize(lambda: data))  # right, and sure of nothing
    found = HeldOut.of(learner_of(nlp.get_pipe("hocrf")), data)
    with np.errstate(over="raise", invalid="raise"):
        assert 1 / 200 < found.temperature() < 1 / 20


def test_no_line_search_goes_where_scores_overflow(monkeypatch):
    """A loss that falls ever faster: what texts may look like from far away."""
    found, asked = held_out(trained()), []
    monkeypatch.setattr(
        HeldOut, "loss", lambda self, scale: asked.append(scale) or (-1e3 * scale, -1e3)
    )
    assert found.temperature() > 0
    assert np.exp(5) < max(asked) <= np.exp(20)


@pytest.mark.slow
def test_tempered_models_are_saved_and_keep_their_labels():
    nlp = trained()
    pipe = nlp.get_pipe("hocrf")
    temperature = pipe.temper(examples(nlp, NEW))
    other = trained().from_bytes(nlp.to_bytes())
    same = other.get_pipe("hocrf")
    np.testing.assert_array_equal(same.model.get_param("W"), pipe.model.get_param("W"))
    assert same.choice.temperature == pytest.approx(temperature)
    assert pipe.choice.temperature == temperature
    more = examples(other, [("Ada flew to Oslo .", [(0, 3, "PERSON"), (12, 16, "PLACE")])])
    other.update(more, sgd=other.resume_training())
    assert same.choice.temperature is None  # the scores are others


def test_texts_that_the_model_cannot_read_say_nothing():
    nlp = trained()
    long = ("a " * 20, [(0, 39, "PERSON")])
    strange = ("Ada flew on Monday", [(0, 3, "PERSON"), (12, 18, "DAY")])  # has a label of its own
    assert len(held_out(nlp, [long, *NEW, strange])) == len(NEW)
    for one in (long, strange):
        with pytest.raises(ValueError, match=r"H220.*none of the 1 "):
            held_out(nlp, [one])
    empty = [Example.from_dict(nlp.make_doc(""), {})]
    with pytest.raises(ValueError, match="H220"):
        nlp.get_pipe("hocrf").temper(empty)
