"""Temperatures: their loss and gradient, and what becomes of a model that is too sure."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from small_corpus import MODELS, examples, learner_of, trained
from spacy.training import Example

from spacy_hocrf.learning.temperature import HeldOut, scaled_weights, scales_of

NEW = [
    ("Grace Turing was born in San York .", [(0, 12, "PERSON"), (25, 33, "PLACE")]),
    ("In Hopper , London slept .", [(3, 9, "PLACE"), (12, 18, "PERSON")]),
    ("Nobody likes Emmy Paris", [(13, 23, "PERSON")]),
    ("It rains in Gauss .", [(12, 17, "PLACE")]),
]


def held_out(nlp, rows=NEW):
    return HeldOut.of(learner_of(nlp.get_pipe("hocrf")), examples(nlp, rows))


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_and_its_gradient_are_those_of_a_model_with_scaled_weights(name):
    factory, model = MODELS[name]
    nlp = trained(factory, model)
    pipe, found = nlp.get_pipe("hocrf"), held_out(nlp)
    rng = np.random.default_rng(3)
    scales = rng.uniform(0.4, 1.6, found.scheme.n_labels)
    loss, gradient = found.loss(scales)
    for y, expected in enumerate(gradient):
        step = 1e-5 * np.eye(len(scales))[y]
        numeric = (found.loss(scales + step)[0] - found.loss(scales - step)[0]) / 2e-5
        assert numeric == pytest.approx(expected, rel=1e-5, abs=1e-8)
    weights = scaled_weights(pipe.structure, pipe.model.get_param("W"), scales)
    pipe.model.set_param("W", weights)
    ones = np.ones(len(scales))
    assert held_out(nlp).loss(ones)[0] == pytest.approx(loss, rel=1e-5)


def test_the_best_temperatures_have_no_gradient_and_one_for_all_is_one():
    nlp = trained()
    found = held_out(nlp)
    for by_label in (False, True):
        scales = found.fitted(by_label=by_label)
        gradient = found.loss(scales)[1] * scales
        assert_allclose(gradient.sum(), 0.0, atol=1e-4)
        assert by_label or len(set(scales.tolist())) == 1
    assert found.loss(scales)[0] <= found.loss(np.ones(len(scales)))[0]


@pytest.mark.slow
def test_a_model_that_is_too_sure_becomes_as_sure_as_it_was():
    nlp = trained()
    pipe = nlp.get_pipe("hocrf")
    weights = pipe.model.get_param("W").copy()
    first = pipe.temper(examples(nlp, NEW))
    pipe.model.set_param("W", 3 * weights)
    second = pipe.temper(examples(nlp, NEW))
    assert set(first) == {"O", "PERSON", "PLACE"}
    for label, temperature in second.items():
        assert temperature == pytest.approx(3 * first[label], rel=1e-2)


@pytest.mark.slow
def test_tempered_models_are_saved_and_keep_their_labels():
    nlp = trained()
    pipe = nlp.get_pipe("hocrf")
    temperatures = pipe.temper(examples(nlp, NEW))
    other = trained().from_bytes(nlp.to_bytes())
    same = other.get_pipe("hocrf")
    np.testing.assert_array_equal(same.model.get_param("W"), pipe.model.get_param("W"))
    assert pipe.choice.temperatures == temperatures == pytest.approx(same.choice.temperatures)
    assert replace(same.choice, temperatures=temperatures) == pipe.choice
    more = examples(other, [("Ada flew to Oslo .", [(0, 3, "PERSON"), (12, 16, "PLACE")])])
    other.update(more, sgd=other.resume_training())
    assert not same.choice.temperatures  # the scores are others


def test_texts_that_the_model_cannot_read_say_nothing():
    nlp = trained()
    long = ("a " * 20, [(0, 39, "PERSON")])
    assert len(held_out(nlp, [*NEW, long])) == len(NEW)
    with pytest.raises(ValueError, match=r"H220.*can read 1 .*expected 2"):
        held_out(nlp, [NEW[0], long])
    empty = [Example.from_dict(nlp.make_doc(""), {})]
    with pytest.raises(ValueError, match="H220"):
        nlp.get_pipe("hocrf").temper(empty)


def test_texts_of_a_group_are_tried_together(monkeypatch):
    nlp, sides = trained(group_by="hocrf_group"), []
    rows = examples(nlp, NEW * 3)
    for i, example in enumerate(rows):
        example.reference._.hocrf_group = i % 4
    found = HeldOut.of(learner_of(nlp.get_pipe("hocrf")), rows)
    only = HeldOut.only
    monkeypatch.setattr(
        HeldOut, "only", lambda self, texts: sides.append(texts) or only(self, texts)
    )
    scales_of(found)
    halves = [{found.groups[i] for i in side.tolist()} for side in sides]
    assert len(halves) == 2 and not halves[0] & halves[1]
    assert sum(map(len, sides)) == len(found)
    for example in rows:
        example.reference._.hocrf_group = "one"
    with pytest.raises(ValueError, match="H220"):
        HeldOut.of(learner_of(nlp.get_pipe("hocrf")), rows)
