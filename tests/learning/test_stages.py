"""The second stage of training over an encoder: what it knows of the texts, how far it trusts the
encoder, and which weights stay.
"""

from itertools import chain

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from small_corpus import documents, examples, found, learner_of, reader_of
from small_encoder import answers, learn, shared, stages, train_by_config
from spacy.util import load_model_from_config

from spacy_hocrf.features.tokens import beginning
from spacy_hocrf.learning import stages as module
from spacy_hocrf.learning.encoder import known_rows
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.training.sgd import SGDTrainer

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*:UserWarning")]


def many(count=30, **settings):
    """A pipeline that is trained in two stages, initialized, its examples, and its component."""
    nlp, data = stages(**settings)
    data = examples(nlp, documents(count))
    nlp.initialize(lambda: data)
    return nlp, data, nlp.get_pipe("hocrf")


def copies_of(pipe):
    return pipe._copies


def copies_and_parts(pipe):
    copies = copies_of(pipe)
    return [(copy, documents) for copy, documents in copies._copies.values()]


def heads_of(learner):
    return module._heads(learner)


def outputs(learner):
    """What all heads make of each document, from the encoder itself."""
    encoder, heads = learner.structure.settings.encoder, heads_of(learner)
    return lambda document: encoder.predict([document.source]) @ heads


def test_every_document_is_in_one_part_and_its_example_too():
    nlp, data, pipe = many()
    corpus = learner_of(pipe).corpus
    parts = corpus.parts(3)
    assert sorted(map(id, chain(*parts))) == sorted(map(id, corpus.documents))
    assert all(len(part) > 3 for part in parts)
    own = {document.text: number for number, part in enumerate(parts) for document in part}
    again = examples(nlp, documents(30))
    assert [corpus.part(eg, 3) for eg in again] == [own[beginning(eg.reference)] for eg in data]


def test_copies_begin_as_the_model_does_and_learn_from_what_is_not_in_their_part(monkeypatch):
    nlp, data, pipe = many()
    shown = {}

    def note(model, learner, examples, drop):
        shown.setdefault(id(learner), []).extend(beginning(eg.reference) for eg in examples)
        return 0.0

    monkeypatch.setattr(module, "add_gradient_into", note)
    docs = [eg.predicted for eg in data]
    for copy, _ in copies_and_parts(pipe):
        ours, its = (each.structure.settings.encoder for each in (learner_of(pipe), copy))
        assert its is not ours and copy.model.layers[0] is its
        assert_array_equal(its.predict(docs), ours.predict(docs))
    nlp.update(data, sgd=nlp.create_optimizer())
    all_texts = [beginning(eg.reference) for eg in data]
    for copy, part in copies_and_parts(pipe):
        texts = {document.text for document in part}
        assert shown[id(copy)] == [text for text in all_texts if text not in texts]
        assert not texts & {document.text for document in copy.corpus.documents}


def test_the_second_stage_goes_by_what_copies_say_of_texts_they_have_not_seen():
    nlp, data, pipe = many(epochs=2)
    learn(nlp, data, steps=2)
    learner, parts = learner_of(pipe), copies_and_parts(pipe)
    expected = {id(d): outputs(copy)(d) for copy, part in parts for d in part}
    before = outputs(learner)
    heads = heads_of(learner)
    differ = [not np.allclose(before(d), expected[id(d)]) for d in learner.corpus.documents]
    learn(nlp, data, steps=1)
    for document in learner.corpus.documents:
        assert_allclose(document.rows @ heads, expected[id(document)], atol=1e-6)
    assert all(differ) and copies_of(pipe) is None
    (shard, *_) = learner.shards()
    assert_allclose(
        shard.compiled.batch.dense[0].inputs,
        np.concatenate([d.rows for d in shard._documents]),
    )


def test_the_second_stage_does_not_ask_the_encoder_about_its_texts(monkeypatch):
    nlp, data, pipe = many(epochs=1)
    learn(nlp, data, steps=2)

    def asked(*arguments):
        raise AssertionError

    monkeypatch.setattr(pipe.structure.settings.encoder, "_func", asked)
    learn(nlp, data, steps=20)  # the cost of the decoder is learnt meanwhile
    assert reader_of(pipe).cost is not None


def test_a_document_that_came_later_has_the_rows_of_the_encoder():
    nlp, data, pipe = many(epochs=1)
    learn(nlp, data, steps=2)
    known, fresh = learner_of(pipe).corpus.documents[:2]
    fresh.rows = None
    encoder = pipe.structure.settings.encoder
    rows = known_rows(encoder, [fresh, known])
    assert_array_equal(rows[: len(fresh)], encoder.predict([fresh.source]))
    assert_array_equal(rows[len(fresh) :], known.rows)
    assert known_rows(encoder, [fresh]) is None and known_rows(None, [known]) is None


def test_the_heads_are_multiplied_by_the_trust_and_stay():
    nlp, data, pipe = many(epochs=3, sigma="auto")
    learn(nlp, data, steps=3)
    learner, before = learner_of(pipe), learner_of(pipe).weights
    learn(nlp, data, steps=1)
    after = learner.weights
    ratios = after[learner.heads] / before[learner.heads]
    assert ratios.std() < 1e-6 and round(ratios[0], 6) in module.TRUSTS
    learn(nlp, data, steps=30)
    assert_array_equal(learner.weights[learner.heads], after[learner.heads])
    assert pipe.choice.sigma in learner.trainer.candidates and pipe.choice.order is None
    assert pipe.choice.documents == 30 and learner.trainer.sigma == (pipe.choice.sigma,)
    loaded = load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()).get_pipe("hocrf")
    assert loaded.choice == pipe.choice
    assert learner_of(loaded).trainer.after(5).sigma == (pipe.choice.sigma,)


@pytest.mark.parametrize("useful", [True, False])
def test_an_encoder_is_trusted_if_it_helps_where_it_has_not_learnt(useful, monkeypatch):
    nlp, data, pipe = many(epochs=1, sigma=0.1)
    learner, numbers = learner_of(pipe), np.random.default_rng(0)
    learn(nlp, data, steps=1)
    weights = learner.weights
    weights[learner.heads] = 0.0
    width, n_labels = 17, learner.scheme.n_labels  # PERSON, PLACE, and outside
    heads = np.zeros((width, n_labels))
    heads[:n_labels] = 4.0 * np.eye(n_labels)  # of "tokens", the first one
    weights[np.flatnonzero(learner.heads)[: heads.size]] = heads.ravel()
    module.set_weights(learner.model, weights)

    def hand_over(self, learner):
        names = learner.scheme.labels
        for document in learner.corpus.documents:
            gold = np.full(len(document), learner.scheme.outside)
            for start, end, label in document.annotation.spans:
                gold[start:end] = 1 + names.index(label)  # 0 is outside
            if not useful:
                gold = numbers.permutation(gold)
            document.rows = np.eye(width)[gold]

    monkeypatch.setattr(module.Copies, "hand_over", hand_over)
    learn(nlp, data, steps=1)
    trust = learner.weights[learner.heads].max() / 4.0
    assert trust == (module.TRUSTS[-1] if useful else 0.0)


@pytest.fixture
def untrusted(monkeypatch):
    """A pipeline whose encoder is not trusted, and its examples."""
    monkeypatch.setattr(module, "_chosen", lambda *arguments: (0.0, None))
    nlp, data, _ = many(epochs=2)
    learn(nlp, data, steps=30)
    return nlp, data


def test_an_encoder_that_is_not_trusted_is_asked_no_more(untrusted, monkeypatch):
    nlp, _ = untrusted
    expected, encoder = answers(nlp), nlp.get_pipe("hocrf").structure.settings.encoder
    loaded = load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    rows = encoder.predict([nlp("Ada slept .")])
    assert rows.shape == (3, 17) and not rows.any()
    for each in (nlp, loaded):
        own = each.get_pipe("hocrf").structure.settings.encoder
        monkeypatch.setattr(own.layers[0], "_func", None)
        assert answers(each) == expected
        monkeypatch.undo()
    encoder.attrs["silent"] = 0
    assert answers(nlp) == expected


def test_an_encoder_is_asked_again_when_it_is_trained_or_initialized(untrusted):
    nlp, data = untrusted
    pipe, docs = nlp.get_pipe("hocrf"), [eg.predicted for eg in data]
    encoder = pipe.structure.settings.encoder

    def broken():  # after the texts that the shapes are inferred from
        yield from 5 * data
        raise OSError

    with pytest.raises(OSError):
        pipe.initialize(broken)
    assert not encoder.predict(docs).any()
    pipe.set_trainer(SGDTrainer())
    learn(nlp, data, steps=1)
    assert encoder.predict(docs)[:, :-1].any()
    module.silence(encoder, 17)
    nlp.initialize(lambda: data)
    assert encoder.predict(docs)[:, :-1].any()


def test_stages_in_spacy_train(tmp_path):
    nlp, data, _ = many(epochs=3, sigma="auto")
    gold = [eg.reference for eg in data]
    losses = train_by_config(nlp, gold, tmp_path, max_steps=40)
    assert losses[-1] < 0.2 * losses[0]
    loaded = spacy.load(tmp_path / "model-last")
    predicted = loaded.pipe([doc.text for doc in gold])
    assert [found(doc) for doc in predicted] == [found(doc) for doc in gold]
    pipe = loaded.get_pipe("hocrf")
    assert pipe.choice.documents == 30 and pipe.choice.sigma in pipe.trainer.refit.candidates


def test_with_few_texts_the_encoder_is_trusted_and_sigma_is_1():
    nlp, data = stages(epochs=1, sigma="auto")
    learn(nlp, data, steps=1)
    learner = learner_of(nlp.get_pipe("hocrf"))
    before = learner.weights[learner.heads]
    learn(nlp, data, steps=1)
    assert_array_equal(learner.weights[learner.heads], before)
    assert learner.trainer.sigmas == (1.0,) and learner.choice is None


def test_the_loss_of_the_second_stage_is_that_of_weights_that_change():
    nlp, data, pipe = many(epochs=2)
    learn(nlp, data, steps=4)
    learner = learner_of(pipe)
    weights, heads = learner.weights, learner.heads
    value, gradient = (np.copy(each) for each in learner.objective()(weights))
    pipe.set_trainer(LBFGSTrainer(sigma=3.0))
    other, all_of_it = pipe.objective()(weights)
    assert value == pytest.approx(other - 0.5 * (weights[heads] ** 2).sum() / 9.0)
    assert_array_equal(gradient[~heads], all_of_it[~heads])
    assert not gradient[heads].any()


def test_models_of_the_second_stage_that_are_compared_have_its_heads():
    nlp, data, pipe = many(epochs=2)
    learn(nlp, data, steps=4)
    learner = learner_of(pipe)
    other = learner.without(learner.corpus.documents[:10])
    assert_array_equal(other.weights[other.heads], learner.weights[learner.heads])
    assert not other.weights[~other.heads].any() and learner.weights[~learner.heads].any()


def test_without_folds_the_heads_keep_their_weights():
    nlp, data, pipe = many(epochs=1, folds=0)
    assert copies_of(pipe) is None
    learn(nlp, data, steps=1)
    before = learner_of(pipe).weights
    learn(nlp, data, steps=5)
    heads = learner_of(pipe).heads
    assert_array_equal(learner_of(pipe).weights[heads], before[heads])
    assert not np.array_equal(learner_of(pipe).weights, before)


def test_without_epochs_heads_are_trained_and_sigma_is_chosen():
    nlp, data, pipe = many(epochs=0, sigma="auto")
    assert copies_of(pipe) is None
    learn(nlp, data, steps=5)
    assert learner_of(pipe).weights[learner_of(pipe).heads].any()
    assert pipe.choice.sigma in learner_of(pipe).trainer.candidates


def test_a_shared_encoder_has_no_copies():
    nlp = shared({"@misc": "spacy-hocrf.Stages.v1", "epochs": 1})
    data = examples(nlp)
    nlp.initialize(lambda: data)
    assert copies_of(nlp.get_pipe("hocrf")) is None


def test_a_corpus_of_one_text_trains():
    nlp, data = stages(epochs=1)
    data = data[:1]
    nlp.initialize(lambda: data)
    learn(nlp, data, steps=3)
    assert nlp.get_pipe("hocrf").run is not None
