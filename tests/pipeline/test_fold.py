"""Models of a part of the corpus, which settings are chosen with and the cost is learnt from."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from small_corpus import examples, fit, untrained

from spacy_hocrf.pipeline import choosing
from spacy_hocrf.pipeline import cost as costs
from spacy_hocrf.pipeline.fold import Fold
from spacy_hocrf.training.lbfgs import LBFGSTrainer

EXPECTED_F = {"@misc": "spacy-hocrf.ExpectedF.v1"}
AUTO = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": "auto", "threads": 1}
MODEL = {"@architectures": "spacy-hocrf.HighOrderSemiCRF.v1", "order": "auto"}


def rows(count=24):
    """Texts of three tokens, all different, in which the word is not always enough."""
    words = product(("Ada", "Emmy", "Paris", "Washington"), ("met", "left", "in"), "123456")
    result = []
    for i, (name, verb, number) in enumerate(list(words)[:: 72 // count][:count]):
        label = "PLACE" if name == "Paris" or i % 5 == 0 else "PERSON"
        result.append((f"{name} {verb} {number}", [(0, len(name), label)] if i % 3 else []))
    return result


def initialized(**settings):
    nlp = untrained(
        **{"decoder": EXPECTED_F, "trainer": AUTO, "model": {**MODEL, "order": 1}, **settings}
    )
    data = examples(nlp, rows())
    nlp.initialize(lambda: data)
    return nlp, nlp.get_pipe("hocrf")._learner, data


@pytest.fixture
def trained(monkeypatch):
    """Numbers of tokens of all that is trained to learn a cost."""
    known = []
    original = costs._quick

    def spy(trainer):
        known.append(trainer)
        return original(trainer)

    monkeypatch.setattr(costs, "_quick", spy)
    return known


def test_folds_of_the_choice_have_the_weights_of_the_sigma_that_was_chosen(monkeypatch):
    found = {}
    original = choosing._compare

    def spy(*arguments):
        result = original(*arguments)
        found.update(result)
        return result

    monkeypatch.setattr(choosing, "_compare", spy)
    _, learner, data = initialized(model=MODEL)
    best = choosing._best(list(found))
    assert list(found)[-1].sigma != best.sigma or list(found)[-1].order != best.order
    judge = choosing.judge(learner.trainer)
    assert sum(len(fold.held_back) for fold in learner.folds) == len(data)
    loss = 0.0
    for fold in learner.folds:
        texts = {document.text for document in fold.model.corpus.documents}
        assert texts == {document.text for document in fold.learnt}
        assert not texts & {document.text for document in fold.held_back}
        assert fold.model.structure.settings.order == best.order == learner.choice.order
        assert fold.trainer == learner.trainer and fold.trainer.sigma == (best.sigma,)
        again = fold.model.shards_of(learner.corpus.only(fold.held_back))
        loss += judge.risk(fold.model, again)
    assert loss == pytest.approx(best.loss, rel=1e-5)  # weights are kept in single precision


def test_the_cost_is_learnt_from_the_folds_of_the_choice(trained):
    nlp, learner, data = initialized()
    folds = learner.folds
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        original = costs._evidence

        def spy(model, decoder, documents):
            seen.append((model, documents))
            return original(model, decoder, documents)

        patch.setattr(costs, "_evidence", spy)
        fit(nlp, data)
    assert not trained
    assert seen == [(fold.model, fold.held_back) for fold in folds]
    assert learner.folds == ()  # nobody needs them any more


@pytest.mark.parametrize("held_back", [7, 20])
def test_folds_that_the_choice_did_without_are_trained(monkeypatch, trained, held_back):
    monkeypatch.setattr(choosing, "HELD_BACK", held_back)
    nlp, learner, data = initialized()
    folds = len(learner.folds)
    assert folds < 5
    fit(nlp, data)
    assert len(trained) == 5 - folds


def test_folds_of_other_settings_or_another_corpus_are_not_used(trained):
    _, learner, _ = initialized()
    decoder = costs.ExpectedF()
    learner.set_trainer(LBFGSTrainer(sigma=0.1, threads=1))
    assert costs.learn_cost(learner, decoder, "hocrf") is not None and len(trained) == 5
    trained.clear()
    nlp, learner, _ = initialized()
    more = examples(nlp, rows(72))
    nlp.update(more, sgd=None)
    assert costs.learn_cost(learner, decoder, "hocrf").documents > 24 and len(trained) == 5


@pytest.mark.parametrize(
    "decoder", [{"@misc": "spacy-hocrf.Viterbi.v1"}, {**EXPECTED_F, "cost": 0.3}]
)
def test_folds_are_not_kept_where_no_cost_is_learnt(decoder):
    nlp, learner, data = initialized(decoder=decoder)
    assert learner.folds
    nlp.update(data)
    assert not learner.folds


@pytest.mark.parametrize("trainer", ["AveragedPerceptron", "SGD"])
def test_what_another_trainer_has_learnt_is_not_kept(trainer):
    _, learner, _ = initialized(trainer={"@misc": f"spacy-hocrf.{trainer}.v1"}, model=MODEL)
    assert learner.choice is not None and not learner.folds


def test_candidates_are_trained_quickly():
    own = LBFGSTrainer(sigma=1.0, memory=10)
    judge = choosing.judge(own)
    assert judge.memory > own.memory and replace(judge, memory=own.memory) == own.quick()
    assert judge.improvement_tolerance > own.improvement_tolerance
    assert choosing.judge(replace(own, memory=30)).memory == judge.memory


def test_a_fold_that_has_rested_goes_on():
    nlp = untrained(trainer={**AUTO, "sigma": 1.0}, model={**MODEL, "order": 1})
    data = examples(nlp, rows())
    nlp.initialize(lambda: data)
    learner = nlp.get_pipe("hocrf")._learner
    documents = learner.corpus.documents
    losses = []
    for rests in (False, True):
        fold = Fold(learner, documents[5:], documents[:5])
        fold.loss(LBFGSTrainer(sigma=0.3, threads=1))
        if rests:
            fold.rest()
        losses.append(fold.loss(LBFGSTrainer(sigma=1.0, threads=1)))
        assert np.abs(fold.weights).max() > 0
    assert losses[0] == losses[1]
