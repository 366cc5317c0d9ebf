"""Models of a part of the corpus, which settings are chosen with and the cost is learnt from."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from small_corpus import ambiguous, examples, fit, initialize, learner_of, untrained
from spacy.util import registry

from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.learning import choosing
from spacy_hocrf.learning import cost as costs
from spacy_hocrf.learning.heldout import Fold, comparison_trainer
from spacy_hocrf.model.architectures import set_weights
from spacy_hocrf.training.base import BaseTrainer
from spacy_hocrf.training.lbfgs import LBFGSTrainer, TiedRun
from spacy_hocrf.training.sgd import SGDTrainer

pytestmark = pytest.mark.slow

EXPECTED_F = {"@misc": "spacy-hocrf.ExpectedF.v1"}
AUTO = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": "auto", "threads": 1}
MODEL = {"order": "auto"}


def initialized(**settings):
    nlp = untrained(
        **{"decoder": EXPECTED_F, "trainer": AUTO, "model": {**MODEL, "order": 1}, **settings}
    )
    data = initialize(nlp, ambiguous())
    return nlp, learner_of(nlp.get_pipe("hocrf")), data


@pytest.fixture
def trained(monkeypatch):
    """All models that are trained to learn a cost."""
    known = []
    original = costs.train

    def spy(model, steps):
        known.append(model)
        original(model, steps)

    monkeypatch.setattr(costs, "train", spy)
    return known


def test_folds_of_the_choice_have_the_weights_of_the_sigma_that_was_chosen(monkeypatch):
    found = {}
    original = choosing._compare

    def spy(*arguments, **settings):
        result = original(*arguments, **settings)
        found.update(result)
        return result

    monkeypatch.setattr(choosing, "_compare", spy)
    _, learner, data = initialized(model=MODEL)
    best = choosing._best(list(found))
    assert list(found)[-1].sigma != best.sigma or list(found)[-1].order != best.order
    assert sum(len(fold.held_out) for fold in learner.folds) == len(data)
    loss = 0.0
    for fold in learner.folds:
        texts = {document.text for document in fold.model.corpus.documents}
        assert texts == {document.text for document in fold.learnt}
        assert not texts & {document.text for document in fold.held_out}
        assert fold.model.structure.settings.order == best.order == learner.choice.order
        assert fold.trainer == learner.trainer and fold.trainer.sigma == (best.sigma,)
        again = fold.model.shards_of(learner.corpus.only(fold.held_out))
        model, nothing = fold.model, np.zeros(len(fold.model.weights))
        loss += Objective(again, model.layout, model.automaton, nothing, nothing)(model.weights)[0]
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
    assert seen == [(fold.model, fold.held_out) for fold in folds]
    assert learner.folds == ()  # nobody needs them any more


@pytest.mark.parametrize("held_back", [7, 20])
def test_folds_that_the_choice_did_without_begin_near_the_others(monkeypatch, trained, held_back):
    monkeypatch.setattr(choosing, "HELD_OUT_TO_CHOOSE", held_back)
    nlp, learner, data = initialized()
    folds, begun, near = len(learner.folds), [], costs.begin_near
    assert folds < 5
    monkeypatch.setattr(
        costs, "begin_near", lambda model, there: (near(model, there), begun.append(model.weights))
    )
    fit(nlp, data)
    assert len(trained) == len(begun) == 5 - folds
    assert all(np.count_nonzero(weights) for weights in begun)


def test_folds_of_other_settings_or_another_corpus_are_not_used(trained):
    _, learner, _ = initialized()
    decoder = costs.ExpectedF()
    learner.set_trainer(LBFGSTrainer(sigma=0.1, threads=1))
    assert costs.learn_cost(learner, decoder, "hocrf") is not None and len(trained) == 5
    trained.clear()
    nlp, learner, _ = initialized()
    more = examples(nlp, ambiguous(72))
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


def test_what_another_trainer_has_learnt_is_not_kept():
    _, learner, _ = initialized(trainer={"@misc": "spacy-hocrf.SGD.v1"}, model=MODEL)
    assert learner.choice is not None and not learner.folds


def test_candidates_are_trained_quickly():
    own = LBFGSTrainer(sigma=1.0, memory=10)
    quick = comparison_trainer(own)
    assert quick == own.quick() and quick.memory > own.memory
    assert quick.improvement_tolerance > own.improvement_tolerance
    assert comparison_trainer(replace(own, memory=30)).memory == 30


def test_candidates_are_trained_by_the_likelihood_with_the_trainers_sigma():
    for trainer, sigma in ((SGDTrainer(sigma=2.0), (2.0,)), (BaseTrainer(), (1.0,))):
        assert comparison_trainer(trainer) == LBFGSTrainer(sigma=sigma).quick()


def test_a_fold_that_has_rested_goes_on():
    nlp = untrained(trainer={**AUTO, "sigma": 1.0}, model={**MODEL, "order": 1})
    initialize(nlp, ambiguous())
    learner = learner_of(nlp.get_pipe("hocrf"))
    documents = learner.corpus.documents
    losses = []
    for rests in (False, True):
        fold = Fold(learner, documents[5:], documents[:5])
        fold.loss(LBFGSTrainer(sigma=0.3, threads=1))
        if rests:
            fold.release()
        losses.append(fold.loss(LBFGSTrainer(sigma=1.0, threads=1)))
        assert np.abs(fold.weights).max() > 0
    assert losses[0] == losses[1]


# Where training begins


def by_feature(learner):
    """Weights, by what is seen where and the labels."""
    index, names = learner.structure.index, learner.structure.scheme.names
    seen = index.table.rows[:, 1:].tolist()
    features = zip(index.feature_template, index.feature_observation, index.feature_pattern)
    return {
        (template, tuple(seen[row]), tuple(names[y] for y in index.patterns[shape])): weight
        for (template, row, shape), weight in zip(features, learner.weights)
    }


def test_training_begins_at_the_mean_of_the_folds():
    _, learner, _ = initialized(model=MODEL)
    folds = [by_feature(fold.model) for fold in learner.folds]
    assert len(folds) > 1
    begun = by_feature(learner)
    assert len(begun) == len(learner.weights)
    assert any(feature not in fold for feature in begun for fold in folds)
    for feature, weight in begun.items():
        mean = np.mean([fold.get(feature, 0.0) for fold in folds])
        assert weight == pytest.approx(mean, rel=1e-5, abs=1e-7), feature


def test_it_is_near_the_optimum_which_is_the_same():
    tight = {"gradient_tolerance": 1e-9, "improvement_tolerance": 0.0}
    _, learner, _ = initialized(trainer={**AUTO, **tight}, model=MODEL)
    loss, weights = learner.objective(), learner.weights
    far, near = loss(np.zeros(len(weights)))[0], loss(weights)[0]
    runs = [learner.run]
    set_weights(learner.model, np.zeros(len(weights)))
    runs.append(learner.trainer.begin(learner))
    for run in runs:
        while run.running:
            run.step()
    warm, cold = runs
    assert near - cold.loss < 0.2 * (far - cold.loss)
    assert warm.loss == pytest.approx(cold.loss, rel=1e-12)
    assert warm.weights == pytest.approx(cold.weights, abs=1e-5)
    assert warm.evaluations < cold.evaluations


def test_training_begins_at_0_where_something_is_unknown():
    nlp = untrained(decoder=EXPECTED_F, trainer=AUTO, model={**MODEL, "order": 1})
    data = examples(nlp, ambiguous())
    unknown = data[-1].reference
    unknown.set_ents([], missing=[unknown[2:3]], default="outside")
    nlp.initialize(lambda: data)
    learner = learner_of(nlp.get_pipe("hocrf"))
    assert len(learner.folds) > 1 and not learner.weights.any()


@dataclass(frozen=True)
class Named(LBFGSTrainer):
    """The likelihood, with a setting more."""

    title: str = ""


@dataclass(frozen=True)
class Flatter(LBFGSTrainer):
    """Another objective."""

    def objective(self, model):
        return LBFGSTrainer(sigma=0.5).objective(model)


@pytest.mark.parametrize("make, exact", [(Named, True), (Flatter, False)])
def test_a_subclass_ties_and_begins_near_folds_unless_it_has_its_own_objective(make, exact):
    registry.misc.register("test.Subclass.v1", func=make)
    _, learner, _ = initialized(trainer={**AUTO, "@misc": "test.Subclass.v1"})
    assert len(learner.folds) > 1 and learner.weights.any() == exact
    assert isinstance(learner.trainer.begin(learner), TiedRun) == exact == learner.trainer.exact


def test_owlqn_begins_at_0():
    _, learner, _ = initialized(trainer={**AUTO, "@misc": "spacy-hocrf.OWLQN.v1"})
    assert len(learner.folds) > 1 and not learner.weights.any()


def test_training_begins_at_0_where_nothing_is_chosen():
    _, learner, _ = initialized(trainer={**AUTO, "sigma": 1.0})
    assert not learner.folds and not learner.weights.any()
