"""Texts of different worth, `doc._.hocrf_weight`: the weighted objective against enumeration and central
differences, and what weights come to in training.
"""

import io

import numpy as np
import pytest
import spacy
from component_oracle import scored
from derivatives import assert_gradient
from entities import entities
from numpy.testing import assert_allclose, assert_array_equal
from oracle import so_many
from small_corpus import (
    documents,
    every_name,
    examples,
    fit,
    learner_of,
    objective_at_optimum,
    untrained,
    words,
)
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from thinc.api import Config

from spacy_hocrf.annotation.weights import WEIGHT

SIGMA = 10.0
WEIGHTS = (0.3, 1.0, 2.5)
MODELS = {
    f"{name}, order {order}": {**model, "order": order}
    for order in (1, 2)
    for name, model in {
        "semi-CRF": {},
        "outside runs": {"outside": "run"},
        "io": {"encoding": "io"},
        "bio": {"encoding": "bio"},
        "bieso": {"encoding": "bieso"},
    }.items()
}


def trainer(name="LBFGS"):
    return {"@misc": f"spacy-hocrf.{name}.v1", "sigma": SIGMA}


def weighted(data, weights):
    """The examples, each with a weight."""
    for example, weight in zip(data, weights, strict=True):
        example.reference._.set(WEIGHT, weight)
    return data


def repeated(data, numbers):
    """Each example so many times."""
    return [example for example, number in zip(data, numbers, strict=True) for _ in range(number)]


def initialized(nlp, data):
    nlp.initialize(lambda: data)
    return nlp.get_pipe("hocrf")


def mixed(nlp):
    """Short texts, some annotated in part, with weights of all kinds."""
    partial = [
        Example.from_dict(words(nlp, "Emmy", f"slept{i}"), {"entities": ["U-PERSON", "-"]})
        for i in range(3)
    ]
    data = [*examples(nlp, every_name(6)), *partial]
    return weighted(data, WEIGHTS * 3)


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_is_the_weighted_sum_that_enumeration_finds(name):
    nlp = untrained("hocrf", MODELS[name], trainer=trainer())
    data = mixed(nlp)
    pipe = initialized(nlp, data)
    structure = learner_of(pipe).structure
    w = np.random.default_rng(0).normal(size=structure.size)
    expected = 0.5 * float(w @ w) / SIGMA**2
    for example, weight in zip(data, WEIGHTS * 3, strict=True):
        every = scored(structure, [example.predicted], w)
        known = {(ent.start, ent.end, ent.label_) for ent in example.reference.ents}
        whole = example.reference[-1].ent_iob_ != ""
        agree = [
            score
            for segmentation, score in every.items()
            for spans in [set(entities(structure.scheme, segmentation))]
            if (spans == known if whole else spans >= known)
        ]
        assert len(agree) == 1 or not whole
        expected += weight * (np.logaddexp.reduce([*every.values()]) - np.logaddexp.reduce(agree))
    assert pipe.objective()(w)[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_matches_central_differences(name):
    nlp = untrained("hocrf", MODELS[name], trainer=trainer())
    objective = initialized(nlp, mixed(nlp)).objective()
    rng = np.random.default_rng(0)
    w = rng.normal(size=learner_of(nlp.get_pipe("hocrf")).structure.size)
    some = rng.permutation(len(w))[: so_many(60)]
    assert_gradient(objective, w, np.eye(len(w))[some], rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LBFGS", "OWLQN"])
def test_weight_2_is_the_text_twice_to_the_last_bit(name):
    numbers = [1, 2, 3, 1, 2, 1, 5, 1, 1, 2]
    found = []
    for twice in (False, True):
        nlp = untrained(trainer=trainer(name))
        data = examples(nlp)
        data = repeated(data, numbers) if twice else weighted(data, numbers)
        pipe = initialized(nlp, data)
        fit(nlp, data)
        found.append((objective_at_optimum(nlp), pipe.model.get_param("W").tobytes()))
    assert found[0] == found[1]


@pytest.mark.slow
def test_weight_2_is_the_text_twice_where_sigma_and_the_order_are_chosen():
    found = []
    for twice in (False, True):
        nlp = untrained(
            "hocrf", {"order": "auto"}, trainer={"@misc": "spacy-hocrf.LBFGS.v1", "sigma": "auto"}
        )
        data = examples(nlp, every_name(24))
        numbers = [1, 2, 3] * 8
        data = repeated(data, numbers) if twice else weighted(data, numbers)
        pipe = initialized(nlp, data)
        fit(nlp, data)
        choice = pipe.choice
        found.append((choice.sigma, choice.order, objective_at_optimum(nlp)))
    assert found[0] == found[1]


@pytest.mark.slow
def test_copies_add_up():
    losses = []
    for weights in ([0.25, 0.75], [0.5, None], [None, 0], [1.5]):
        nlp = untrained(trainer=trainer())
        first, *others = documents()
        copies = weighted(examples(nlp, [first] * len(weights)), weights)
        pipe = initialized(nlp, [*copies, *examples(nlp, others)])
        w = np.random.default_rng(0).normal(size=learner_of(pipe).structure.size)
        losses.append(pipe.objective()(w)[0])
    assert losses[0] == losses[2] and losses[1] == losses[3] != losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LBFGS", "OWLQN", "SGD"])
def test_weight_0_leaves_a_text_out(name):
    found = []
    for left_out in (False, True):
        nlp = untrained(trainer=trainer(name))
        data = examples(nlp)
        data = data[2:] if left_out else weighted(data, [0, 0.0, *[None] * 8])
        pipe = initialized(nlp, data)
        losses = {}
        optimizer = nlp.create_optimizer()
        for _ in range(5):
            nlp.update(data, sgd=optimizer, losses=losses)
        found.append((losses["hocrf"], pipe.labels, pipe.model.get_param("W").tobytes()))
    if name == "SGD":  # its share of the penalty goes by the number of examples
        assert found[0][1] == found[1][1]
        assert found[0][0] == pytest.approx(found[1][0], rel=1e-4)
    else:
        assert found[0] == found[1]


def test_batches_of_sgd_are_weighted():
    gradients = []
    for whole in (False, True):
        nlp = untrained(trainer=trainer("SGD"))
        data = examples(nlp)
        numbers = [1, 2, 1, 3, 1, 1, 1, 1, 1, 1]
        data = weighted(data, numbers) if whole else repeated(data, numbers)
        pipe = initialized(nlp, data)
        w = np.random.default_rng(0).normal(size=learner_of(pipe).structure.size)
        pipe.model.set_param("W", w.astype(np.float32))
        losses = nlp.update(data, sgd=None, losses={})
        gradients.append((losses["hocrf"], pipe.model.get_grad("W").copy()))
    assert gradients[0][0] == pytest.approx(gradients[1][0], rel=1e-10)
    assert_allclose(*(gradient for _, gradient in gradients), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["LBFGS", "SGD"])
def test_what_is_no_weight_is_an_error_that_names_the_text(name):
    nlp = untrained(trainer=trainer(name))
    data = examples(nlp)
    for weight in (float("nan"), float("inf"), -1, "2", True):
        bad = weighted(examples(nlp), [*[None] * 9, weight])
        with pytest.raises(ValueError, match=r"H520.*'It rains \.'.*hocrf_weight"):
            nlp.initialize(lambda bad=bad: bad)
        nlp.initialize(lambda: data)
        with pytest.raises(ValueError, match="H520"):
            nlp.update(bad)


def test_training_that_cannot_start_is_an_error_at_every_update():
    nlp = untrained(trainer=trainer())
    data = weighted(examples(nlp), [1e300, *[None] * 9])
    optimizer = nlp.initialize(lambda: data)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"H046.*weights of texts"):
            nlp.update(data, sgd=optimizer)


def test_a_corpus_of_weight_0_is_not_said_to_have_no_labels():
    nlp = untrained(trainer=trainer())
    with pytest.raises(ValueError, match=r"H255.*All 10 training texts.*hocrf_weight"):
        nlp.initialize(lambda: weighted(examples(nlp), [0] * 10))


@pytest.mark.slow
def test_weights_are_in_the_file_that_spacy_train_reads(tmp_path):
    nlp = untrained(trainer=trainer())
    found = []
    for weights in ([1, 2, 3, 0, 2.5] * 2, [1.0] * 10):
        data = weighted(examples(nlp), weights)
        for name in ("train", "dev"):
            docs = DocBin(docs=[example.reference for example in data], store_user_data=True)
            docs.to_disk(tmp_path / f"{name}.spacy")
        config = Config().from_str(nlp.config.to_str(), interpolate=False)
        config["corpora"] = {
            name: {"@readers": "spacy.Corpus.v1", "path": str(tmp_path / f"{name}.spacy")}
            for name in ("train", "dev")
        }
        config["training"].update(max_steps=200, eval_frequency=20, patience=0)
        learnt = init_nlp(config)
        train(learnt, stdout=io.StringIO(), stderr=io.StringIO())
        other = untrained(trainer=trainer())
        again = weighted(examples(other), weights)
        initialized(other, again)
        fit(other, again)
        assert_array_equal(
            learnt.get_pipe("hocrf").model.get_param("W"),
            other.get_pipe("hocrf").model.get_param("W"),
        )
        found.append(objective_at_optimum(other))
    assert found[0] != found[1]


def test_the_attribute_is_there_with_the_component():
    if Doc.has_extension(WEIGHT):
        Doc.remove_extension(WEIGHT)
    spacy.blank("xx").add_pipe("hocrf")
    assert spacy.blank("xx")("")._.hocrf_weight is None
