"""Features that a corpus does not tell apart have one weight while the component learns from it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_corpus import (
    MODELS,
    documents,
    examples,
    fit,
    initialize,
    learn_from,
    learner_of,
    trained,
    untrained,
    words,
)
from spacy.training import Example

from spacy_hocrf.learning import shards
from spacy_hocrf.training.lbfgs import LBFGSRun, LBFGSTrainer, TiedRun

EXACT = LBFGSTrainer(sigma=10.0, gradient_tolerance=1e-9, improvement_tolerance=1e-14)


def optimum(learner, trainer=EXACT, start=None):
    """The optimum of an objective of all weights, each by itself."""
    run = LBFGSRun(trainer, trainer.objective(learner), learner.weights if start is None else start)
    while run.running:
        run.step()
    return run.weights, run.loss


def n_variables(run):
    return len(run._optimiser.x)


@pytest.fixture(params=MODELS)
def learner(request):
    factory, model = MODELS[request.param]
    nlp = untrained(factory, model)
    data = examples(nlp)
    partial = Example.from_dict(words(nlp, "Emmy", "slept"), {"entities": ["U-PERSON", "-"]})
    data += [partial] if factory == "hocrf" else []
    nlp.initialize(lambda: data)
    return learner_of(nlp.get_pipe("hocrf"))


def test_the_objective_of_tied_weights_is_that_of_all(learner):
    run, rng = EXACT.begin(learner), np.random.default_rng(0)
    assert isinstance(run, TiedRun)
    tied = run._tied
    assert n_variables(run) < shards.MAX_TIED_SHARE * len(learner.weights)
    value = EXACT.objective(learner)
    for v in rng.normal(size=(3, n_variables(run))):
        weights = tied.outside(v)
        loss, gradient = value(weights)
        own, slope = run._value(v)
        assert_allclose(own, loss, rtol=1e-12)
        assert_allclose(slope, tied.inside(gradient), rtol=1e-9, atol=1e-9)
        assert_allclose(np.linalg.norm(slope), np.linalg.norm(gradient), rtol=1e-9)


@pytest.mark.slow
def test_the_optimum_is_that_of_all_weights(learner):
    run = EXACT.begin(learner)
    while run.running:
        run.step()
    weights, loss = optimum(learner)
    assert_allclose(run.loss, loss, rtol=1e-9)
    assert_allclose(run.weights, weights, atol=1e-3)


@pytest.mark.slow
def test_a_loaded_model_that_is_adapted_keeps_all_weights():
    """They are not alike where features are, and new ones have another sigma."""
    nlp = trained()
    loaded = untrained().from_bytes(nlp.to_bytes())
    learner, rng = learner_of(loaded.get_pipe("hocrf")), np.random.default_rng(1)
    loaded.update(examples(loaded, documents(3)), sgd=loaded.create_optimizer())
    learner._loaded_weights = rng.normal(size=len(learner.weights))
    trainer = LBFGSTrainer(sigma=1.0, prior="loaded", adapt_sigma=0.3, gradient_tolerance=1e-9)
    assert trainer.adapts(learner)
    learner.set_trainer(trainer)
    run = trainer.begin(learner)
    assert type(run) is LBFGSRun
    while run.running:
        run.step()
    weights, loss = optimum(learner, trainer)
    assert_allclose(run.loss, loss, rtol=1e-7)
    assert_allclose(run.weights, weights, atol=1e-3)


@pytest.mark.slow
def test_what_new_documents_tell_apart_is_told_apart():
    nlp = untrained()
    few, all_of_them = examples(nlp, documents(4)), examples(nlp, documents(12))
    learn_from(nlp, few)
    pipe = nlp.get_pipe("hocrf")
    before = n_variables(pipe.run)
    pipe.set_trainer(EXACT)
    fit(nlp, all_of_them, 400)
    assert n_variables(pipe.run) > before
    _, loss = optimum(learner_of(nlp.get_pipe("hocrf")))
    assert_allclose(pipe.run.loss, loss, rtol=1e-8)


@pytest.mark.parametrize("name, value", [("MAX_TIED_TOKENS", 5), ("MAX_TIED_SHARE", 0.0)])
def test_all_weights_are_there_where_tying_costs_memory_or_saves_little(monkeypatch, name, value):
    monkeypatch.setattr(shards, name, value)
    nlp = untrained()
    initialize(nlp)
    run, learner = EXACT.begin(learner_of(nlp.get_pipe("hocrf"))), learner_of(nlp.get_pipe("hocrf"))
    assert type(run) is LBFGSRun
    weights = np.random.default_rng(0).normal(size=len(learner.weights))
    (own, slope), (loss, gradient) = run._value(weights), EXACT.objective(learner)(weights)
    assert own == loss
    assert_array_equal(slope, gradient)
