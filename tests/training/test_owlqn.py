"""OWL-QN as its trainer paces it, what its settings mean, and the models that it leaves."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from small_corpus import (
    MODELS,
    documents,
    entity_scores,
    examples,
    fit,
    found,
    initialize,
    learner_of,
    teach,
    trained,
    untrained,
)

from spacy_hocrf.engine.owlqn import pseudo_gradient
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.training.owlqn import AbsoluteObjective, OWLQNRun, OWLQNTrainer

pytestmark = pytest.mark.slow

OWLQN = {"@misc": "spacy-hocrf.OWLQN.v1"}


def quadratic(weights):
    """½ (w - 1)' diag(1, 2, 4) (w - 1) + 3"""
    gradient = np.array([1.0, 2.0, 4.0]) * (weights - 1.0)
    return 3.0 + 0.5 * float(gradient @ (weights - 1.0)), gradient


def test_steps_go_to_the_minimum_and_say_how_many_weights_are_left():
    run = OWLQNRun(OWLQNTrainer(c1=1.0, iterations=2), quadratic, np.zeros(3), np.zeros(3))
    assert run.loss == 6.5 and run.evaluations == 1
    while run.running:
        run.step()
    assert_allclose(run.weights, [0.0, 0.5, 0.75], atol=1e-5)
    assert run.loss == pytest.approx(3.0 + 0.5 + 0.25 + 0.125 + 1.25)
    assert "2 of 3 weights are not 0" in run.status and "converged" in run.status


def test_weights_cost_what_they_are_away_from_the_centre():
    centre = np.array([0.5, 0.5, 2.0])
    run = OWLQNRun(OWLQNTrainer(c1=1.0), quadratic, np.zeros(3), centre)
    while run.running:
        run.step()
    assert_allclose(run.weights, [0.5, 0.5, 1.25], atol=1e-5)
    value, gradient = AbsoluteObjective(quadratic, 1.0, centre)(run.weights)
    assert value == pytest.approx(run.loss)
    assert_allclose(gradient, 0.0, atol=1e-4)


@pytest.mark.parametrize("c1", [-0.1, math.inf, math.nan, "0.1", True])
def test_what_c1_may_be(c1):
    with pytest.raises(ValueError, match=r"H048.*c1.*at least 0"):
        OWLQNTrainer(c1=c1)


def test_without_a_sigma_there_is_no_gaussian_prior():
    assert OWLQNTrainer().sigmas == (math.inf,)
    assert OWLQNTrainer(sigma=[1.0, 2.0]).sigmas == (1.0, 2.0)
    assert OWLQNTrainer().choices == () != OWLQNTrainer(sigma="auto").choices
    assert OWLQNTrainer(sigma="auto", c1=0.7).with_sigma(2.0) == OWLQNTrainer(sigma=2.0, c1=0.7)
    assert OWLQNTrainer().quick().improvement_tolerance > OWLQNTrainer().improvement_tolerance


@pytest.fixture(scope="module")
def sparse():
    return trained(rows=documents(40), trainer={**OWLQN, "c1": 0.1})


def test_what_it_minimises_is_the_likelihood_and_the_absolute_values(sparse):
    pipe = sparse.get_pipe("hocrf")
    learner, weights = learner_of(pipe), learner_of(pipe).weights
    plain = LBFGSTrainer(sigma=math.inf).objective(learner)
    value, gradient = pipe.objective()(weights)
    smooth, slope = plain(weights)
    assert value == pytest.approx(smooth + 0.1 * np.abs(weights).sum())
    assert_allclose(gradient, pseudo_gradient(weights, slope, 0.1))


def test_most_weights_are_zero_and_are_not_saved(sparse):
    pipe = sparse.get_pipe("hocrf")
    left = np.count_nonzero(pipe.model.get_param("W"))
    assert 20 < left < 0.2 * pipe.structure.size
    again = {**OWLQN, "c1": 0.1, "prior": "zero"}
    other = untrained(trainer=again).from_bytes(sparse.to_bytes())
    assert other.get_pipe("hocrf").structure.size == left
    sizes = [len(each.get_pipe("hocrf").to_bytes(exclude=["vocab"])) for each in (other, trained())]
    assert sizes[0] < 0.4 * sizes[1]
    for text, spans in documents(40):
        one, two = sparse(text), other(text)
        assert [(span.start_char, span.end_char, span.label_) for span in one.ents] == spans
        assert found(one) == found(two)
        scores = [list(entity_scores(doc)) for doc in (one, two)]
        assert_allclose(*scores, rtol=1e-12)
    # with what is left the training goes on
    data = examples(other, documents(40))
    assert fit(other, data)[-1] == pytest.approx(sparse.get_pipe("hocrf").run.loss, rel=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_pruned_models_say_the_same(name):
    factory, model = MODELS[name]
    settings = {"trainer": {**OWLQN, "c1": 0.3, "sigma": 2.0}}
    nlp = trained(factory, model, **settings)
    other = untrained(factory, model, **settings).from_bytes(nlp.to_bytes())
    before, after = (each.get_pipe("hocrf").structure for each in (nlp, other))
    assert after.size < before.size and len(after.patterns) <= len(before.patterns)
    for text, _ in documents():
        assert found(nlp(text)) == found(other(text))


def test_sigma_can_be_chosen_beside_it():
    nlp = untrained(trainer={**OWLQN, "sigma": "auto"})
    data = initialize(nlp, documents(40))
    pipe = nlp.get_pipe("hocrf")
    assert pipe.choice.sigma in OWLQNTrainer.candidates
    fit(nlp, data)
    assert found(nlp("Emmy likes Paris")) == [(0, 1, "PERSON"), (2, 3, "PLACE")]
    again = untrained(trainer={**OWLQN, "sigma": "auto"}).from_bytes(nlp.to_bytes())
    assert again.get_pipe("hocrf").choice == pipe.choice
    assert json.loads(json.dumps(nlp.config["components"]["hocrf"]["trainer"]))["c1"] == 0.3


def test_the_optimum_is_that_of_crfsuite(tmp_path):
    """The same features under the same c1: CRFsuite's loss at its end is ours."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="needs the extra benchmark")
    model = {
        "encoding": "tags",
        "order": 1,
        "features": {
            "@misc": "spacy-hocrf.Features.v1",
            "basics": False,
            "*": {
                "words": {
                    "@misc": "spacy-hocrf.Token.v1",
                    "attrs": ["ORTH"],
                    "window": [-1, 0],
                    "parts": ["tokens"],
                },
                "pairs": {"@misc": "spacy-hocrf.Transition.v1", "order": 1},
            },
        },
    }
    settings = {**OWLQN, "c1": 0.2, "improvement_tolerance": 1e-10, "gradient_tolerance": 1e-8}
    nlp = untrained("hocrf_tagger", model, trainer=settings)
    data = teach(nlp, documents(40), steps=600)
    other = pycrfsuite.Trainer("lbfgs", {"c1": 0.2, "c2": 0.0, "epsilon": 1e-8}, verbose=False)
    for example in data:
        texts = ["<edge>", *(token.text for token in example.predicted)]
        items = [[f"here={b}", f"before={a}"] for a, b in pairwise(texts)]
        other.append(items, [token.tag_ for token in example.reference])
    other.train(str(tmp_path / "model"))
    expected = other.logparser.last_iteration["loss"]
    loss = nlp.get_pipe("hocrf").run.loss
    assert loss == pytest.approx(expected, rel=1e-3) and loss < expected * (1 + 1e-6)
