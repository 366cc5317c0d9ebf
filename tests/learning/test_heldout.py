"""Cross-fitting: who has seen what, and that it is the local model of the other documents."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_corpus import FEATURES, documents, initialize, learner_of, untrained
from spacy.util import registry

from spacy_hocrf.learning.heldout import cross_fitted
from spacy_hocrf.model.architectures import weights_of
from spacy_hocrf.model.dense import LinearScore


def initialized(count=12, **settings):
    nlp = untrained(**settings)
    data = initialize(nlp, documents(count))
    return nlp, data


@pytest.mark.slow
@pytest.mark.parametrize("folds, expected", [(2, 2), (5, 5), (50, 6)])
def test_every_group_is_unseen_by_one_model_and_never_divided(folds, expected):
    nlp, _ = initialized()
    learner = learner_of(nlp.get_pipe("hocrf"))
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


@pytest.mark.slow
def test_the_training_of_the_learner_rests_meanwhile_and_then_goes_on_as_without():
    losses = []
    for rests in (False, True):
        nlp, _ = initialized()
        learner = learner_of(nlp.get_pipe("hocrf"))
        for step in range(4):
            learner.step(learner.run)
            if rests and step == 1:
                groups = [[document] for document in learner.corpus.documents]
                next(cross_fitted(learner, groups, folds=2, seed=0, steps=1))
                assert not any(shard._compiled for shard in learner.run._objective.shards)
        losses.append(learner.run.loss)
    assert losses[0] == losses[1]


@pytest.mark.slow
def test_a_model_is_the_one_that_the_other_documents_alone_would_give():
    nlp, data = initialized()
    learner = learner_of(nlp.get_pipe("hocrf"))
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
    learner = learner_of(nlp.get_pipe("hocrf"))
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
    learner = learner_of(nlp.get_pipe("hocrf"))
    groups = [[document] for document in learner.corpus.documents]
    before = np.array(learner.model.get_param("W"))
    for model, _ in cross_fitted(learner, groups, folds=2, seed=0, steps=3):
        assert model.run.iterations == 3
        assert np.abs(weights_of(model.model)).max() > 0
    assert_array_equal(np.array(learner.model.get_param("W")), before)


class Bias(LinearScore):
    """One number of every token."""

    part, width = "token", 1

    def inputs(self, batch):
        return np.ones((len(batch), 1))


def test_the_weights_of_dense_scores_are_found_in_a_model_without_some_documents():
    registry.misc.register("tests.Bias.v1", func=Bias)
    model = {"features": FEATURES, "scores": {"bias": {"@misc": "tests.Bias.v1"}}}
    nlp, _ = initialized(model=model)
    learner = learner_of(nlp.get_pipe("hocrf"))
    learner.step(learner.run)
    dense = weights_of(learner.model)[-learner.structure.n_dense :]
    assert len(dense) == 3 and dense.all()
    model = learner.without(learner.corpus.documents[:4])
    assert len(model.weights) < len(learner.weights)
    places = model.structure.found_in(learner.structure)
    assert_array_equal(weights_of(learner.model)[places][-3:], dense)


@pytest.mark.slow
def test_a_part_without_which_there_is_nothing_is_an_error():
    nlp, _ = initialized()
    learner = learner_of(nlp.get_pipe("hocrf"))
    with pytest.raises(ValueError, match="H080"):
        list(cross_fitted(learner, [learner.corpus.documents], folds=2, seed=0, steps=1))
