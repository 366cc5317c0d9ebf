"""Cross-fitting: who has seen what, and that it is the local model of the other documents."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_corpus import FEATURES, documents, examples, untrained
from spacy.util import registry

from spacy_hocrf.model.architectures import weights_of
from spacy_hocrf.model.dense import LinearScore
from spacy_hocrf.pipeline.cross_fitting import cross_fitted


def initialized(count=12, **settings):
    nlp = untrained(**settings)
    data = examples(nlp, documents(count))
    nlp.initialize(lambda: data)
    return nlp, data


def learner_of(nlp):
    return nlp.get_pipe("hocrf")._learner


@pytest.mark.parametrize("folds, expected", [(2, 2), (5, 5), (50, 6)])
def test_every_group_is_unseen_by_one_model_and_never_divided(folds, expected):
    nlp, _ = initialized()
    learner = learner_of(nlp)
    known = learner.corpus.documents
    groups = [known[i : i + 2] for i in range(0, 12, 2)]
    seen = []
    for model, unseen in cross_fitted(learner, groups, folds=folds, seed=0, steps=1):
        there = {id(document) for document in model.corpus.documents}
        for number, group in enumerate(groups):
            assert [id(document) in there for document in group] == [number not in unseen] * 2
        seen.append(unseen)
    assert len(seen) == expected
    assert sorted(number for unseen in seen for number in unseen) == list(range(6))
    assert max(map(len, seen)) - min(map(len, seen)) <= 1
    assert len(learner.corpus) == 12 and learner.corpus.documents == known


def test_a_model_is_the_one_that_the_other_documents_alone_would_give():
    nlp, data = initialized()
    learner = learner_of(nlp)
    known = learner.corpus.documents
    [(model, unseen), *_] = cross_fitted(
        learner, [[document] for document in known], folds=3, seed=1, steps=1000
    )
    alone, _ = initialized()
    rest = [example for i, example in enumerate(data) if i not in unseen]
    alone.initialize(lambda: rest)
    pipe = alone.get_pipe("hocrf")
    while pipe.run.running:
        pipe.finish_update(None)
    assert_array_equal(model.structure.index.table.rows, pipe.structure.index.table.rows)
    assert_array_equal(model.structure.index.feature_pattern, pipe.structure.index.feature_pattern)
    assert_allclose(weights_of(model.model), weights_of(pipe.model), atol=1e-6)
    assert model.run.loss == pytest.approx(pipe.run.loss, rel=1e-9)


def test_labels_and_limits_are_those_of_all_documents():
    nlp, _ = initialized()
    learner = learner_of(nlp)
    known = learner.corpus.documents
    longest = max(end - start for d in known for start, end, _ in d.annotation.spans)
    long = [d for d in known if any(end - start == longest for start, end, _ in d.annotation.spans)]
    rest = [d for d in known if d not in long]
    assert longest > 1 and rest
    for model, _ in cross_fitted(learner, [long, rest[:1]], folds=2, seed=0, steps=0):
        assert model.scheme.limits == learner.scheme.limits
        assert model.scheme.labels == learner.scheme.labels


def test_steps_are_those_of_the_trainer():
    nlp, _ = initialized()
    learner = learner_of(nlp)
    groups = [[document] for document in learner.corpus.documents]
    before = np.array(learner.model.get_param("W"))
    for model, _ in cross_fitted(learner, groups, folds=2, seed=0, steps=3):
        assert model.run.iterations == 3
        assert np.abs(weights_of(model.model)).max() > 0
    assert_array_equal(np.array(learner.model.get_param("W")), before)


def named_weights(learner):
    index, strings = learner.structure.index, learner.corpus._strings
    names = [index.describe(f, strings, learner.scheme.names) for f in range(len(index))]
    return dict(zip(names, weights_of(learner.model).tolist()))


def test_a_warm_model_begins_at_the_weights_of_the_features_that_it_has():
    nlp, _ = initialized()
    learner = learner_of(nlp)
    while learner.run.running:
        learner.step()
    everything = named_weights(learner)
    groups = [[document] for document in learner.corpus.documents]
    for model, _ in cross_fitted(learner, groups, folds=3, seed=0, steps=0, warm=True):
        fewer = named_weights(model)
        assert len(fewer) < len(everything)
        assert fewer == {name: everything[name] for name in fewer}
        assert any(fewer.values())


class Bias(LinearScore):
    """One number of every token."""

    part, width = "token", 1

    def inputs(self, batch):
        return np.ones((len(batch), 1))


def test_a_warm_model_begins_at_the_weights_of_dense_scores():
    registry.misc.register("tests.Bias.v1", func=Bias)
    model = {
        "@architectures": "spacy-hocrf.HighOrderSemiCRF.v1",
        "features": FEATURES,
        "scores": {"bias": {"@misc": "tests.Bias.v1"}},
    }
    nlp, _ = initialized(model=model)
    learner = learner_of(nlp)
    learner.step()
    dense = weights_of(learner.model)[-learner.structure.n_dense :]
    assert len(dense) == 3 and dense.all()
    model = learner.without(learner.corpus.documents[:4], warm=True)
    assert len(model.weights) < len(learner.weights)
    assert_array_equal(weights_of(model.model)[-3:], dense)


def test_a_warm_model_has_the_same_optimum():
    nlp, _ = initialized()
    learner = learner_of(nlp)
    while learner.run.running:
        learner.step()
    groups = [[document] for document in learner.corpus.documents]
    settings = {"folds": 3, "seed": 0, "steps": 1000}
    cold = [model for model, _ in cross_fitted(learner, groups, **settings)]
    warm = [model for model, _ in cross_fitted(learner, groups, **settings, warm=True)]
    for one, other in zip(cold, warm, strict=True):
        assert other.run.loss == pytest.approx(one.run.loss, rel=1e-6)
        assert other.run.iterations < one.run.iterations


def test_a_part_without_which_there_is_nothing_is_an_error():
    nlp, _ = initialized()
    learner = learner_of(nlp)
    with pytest.raises(ValueError, match="H080"):
        list(cross_fitted(learner, [learner.corpus.documents], folds=2, seed=0, steps=1))
