"""Components with a span filter: trained, saved, loaded and packaged, in one stage and in two."""

import pickle
import shutil
from importlib import import_module

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from small_corpus import documents, entity_scores, examples, found
from small_encoder import (
    FILTER,
    LBFGS,
    alone,
    answers,
    learn,
    shared,
    stages,
    train_by_config,
)
from spacy.cli.package import package
from spacy.training import Example
from spacy.util import load_model_from_config

from spacy_hocrf.model.output import output_of
from spacy_hocrf.pipeline import stages as module
from spacy_hocrf.training.lbfgs import LBFGSTrainer

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")


def trained(steps=30, order=1, **settings):
    """A pipeline over an encoder of its own, with a filter, and its losses."""
    nlp = alone(span_filter={**FILTER, **settings}, order=order)
    data = examples(nlp)
    nlp.initialize(lambda: data)
    return nlp, learn(nlp, data, steps)


def filter_of(nlp):
    return nlp.get_pipe("hocrf").structure.settings.encoder.layers[1]


def parameters(layer):
    return {name: np.array(layer.get_param(name)) for name in layer.param_names}


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_filter_is_trained_saved_loaded_sourced_and_pickled(order, tmp_path):
    nlp, losses = trained(order=order)
    assert losses[-1]["hocrf"] < 0.2 * losses[0]["hocrf"]
    expected = answers(nlp)
    assert expected[0] == [found(eg.reference) for eg in examples(nlp)]
    nlp.to_disk(tmp_path / "model")
    blank = load_model_from_config(nlp.config)
    sourced = spacy.blank("en")
    sourced.add_pipe("hocrf", source=nlp)
    for other in (spacy.load(tmp_path / "model"), blank.from_bytes(nlp.to_bytes()), sourced):
        assert answers(other) == expected
        assert_array_equal(
            other.get_pipe("hocrf").model.predict([nlp("Ada slept .")]).span_score,
            nlp.get_pipe("hocrf").model.predict([nlp("Ada slept .")]).span_score,
        )
    again = pickle.loads(pickle.dumps(nlp.get_pipe("hocrf")))
    assert again.to_bytes() == nlp.get_pipe("hocrf").to_bytes()


def test_filter_and_scores_of_spans_learn():
    nlp = alone(span_filter=FILTER)
    data = examples(nlp)
    nlp.initialize(lambda: data)
    before, pipe = parameters(filter_of(nlp)), nlp.get_pipe("hocrf")
    learn(nlp, data, steps=1)
    after = parameters(filter_of(nlp))
    assert not any(np.array_equal(before[name], after[name]) for name in before)
    head = pipe._learner.dense_weights[-9 * 3 :].reshape(9, 3)  # two labels and outside
    assert head[:, 1:].any() and not head[:, 0].any()
    assert pipe.structure.n_dense == 3 * (3 * 17 + 9)


def test_the_filter_finds_the_annotated_spans():
    nlp, _ = trained(spans=0.3)
    pipe = nlp.get_pipe("hocrf")
    for eg in examples(nlp):
        picked = output_of(pipe.structure.settings.encoder, [eg.predicted]).picked
        gold = {(span.start, span.end) for span in eg.reference.ents}
        assert gold <= set(zip(picked.start.tolist(), picked.end.tolist()))


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_loss_that_is_reported_has_the_local_loss(share):
    nlp = alone(span_filter={**FILTER, "loss": share})
    data = examples(nlp)
    nlp.initialize(lambda: data)
    pipe = nlp.get_pipe("hocrf")
    docs = [eg.predicted for eg in data]
    exact, _ = pipe.get_loss(data, pipe.model.predict(docs))  # all weights are 0
    layer, encoder = filter_of(nlp), pipe.structure.settings.encoder
    rows = encoder.predict(docs)
    local = 0.0
    arrays = np.split(rows[:, :-1], np.cumsum([len(doc) for doc in docs])[:-1])
    first, last, width, out, bias = (
        layer.get_param(name) for name in ("first", "last", "width", "out", "bias")
    )
    for eg, array in zip(data, arrays):
        gold = {(span.start, span.end) for span in eg.reference.ents}
        for u in range(len(array)):
            for v in range(u + 1, min(len(array), u + 4) + 1):
                sums = array[u] @ first + array[v - 1] @ last + width[v - u - 1]
                logit = np.maximum(sums, 0) @ out + bias[0]
                local += np.log1p(np.exp(-logit if (u, v) in gold else logit))
    (losses,) = learn(nlp, data, steps=1, drop=0.0)
    assert losses["hocrf"] == pytest.approx(exact + share * local, rel=1e-5)


def test_a_filter_that_picks_nothing_is_not_asked_in_prediction():
    nlp, losses = trained(spans=0)
    assert losses[-1]["hocrf"] < 0.2 * losses[0]["hocrf"]
    expected = answers(nlp)
    assert expected[0] == [found(eg.reference) for eg in examples(nlp)]
    filter_of(nlp).set_param("first", np.full((16, 8), np.nan))
    assert answers(nlp) == expected


def test_texts_give_the_same_answers_one_by_one_and_in_pipes():
    nlp, _ = trained(steps=3)
    texts = [text for text, _ in documents()]
    alone_, scores = answers(nlp)
    for size in (2, 100):
        docs = list(nlp.pipe(["", *texts], batch_size=size))[1:]
        assert [found(doc) for doc in docs] == alone_
        for doc, expected in zip(docs, scores):
            assert_allclose(entity_scores(doc), expected, rtol=1e-4)


@pytest.mark.parametrize("order", [1, 2])
def test_a_filter_over_a_shared_encoder_in_spacy_train(order, tmp_path):
    nlp = shared(order=order, span_filter=FILTER)
    data = [eg.reference for eg in examples(nlp)]
    losses = train_by_config(nlp, data, tmp_path)
    assert (losses[-1] < 0.5 * losses[1]).all()
    loaded = spacy.load(tmp_path / "model-last")
    expected = answers(loaded)
    assert expected[0] == [found(doc) for doc in data]
    loaded.replace_listeners("tok2vec", "hocrf", ["model.tok2vec"])
    loaded.remove_pipe("tagger")
    loaded.remove_pipe("tok2vec")
    assert answers(loaded) == expected
    assert answers(load_model_from_config(loaded.config).from_bytes(loaded.to_bytes())) == expected


def test_a_packaged_pipeline_gives_the_same_spans(tmp_path, monkeypatch):
    nlp, _ = trained()
    nlp.to_disk(tmp_path / "model")
    (tmp_path / "packages").mkdir()
    package(tmp_path / "model", tmp_path / "packages", name="filter_test", create_sdist=False)
    [folder] = (tmp_path / "packages").glob("en_filter_test-*")
    shutil.copy(folder / "meta.json", folder / "en_filter_test")  # its setup.py does
    monkeypatch.syspath_prepend(folder)
    assert answers(import_module("en_filter_test").load()) == answers(nlp)


def test_unknown_tokens_teach_the_filter_nothing():
    nlp = alone(span_filter=FILTER)
    data = examples(nlp)
    nlp.initialize(lambda: data)
    words = ["Nobody", "likes", "rain"]
    missing = Example.from_dict(nlp.make_doc(" ".join(words)), {"entities": ["-"] * 3})
    before = parameters(filter_of(nlp))
    pipe = nlp.get_pipe("hocrf")
    assert pipe.update([missing])["hocrf"] == pytest.approx(0.0, abs=1e-6)
    assert not any(filter_of(nlp).get_grad(name).any() for name in before)


def test_a_filter_is_as_it_was_if_initialize_fails():
    nlp, _ = trained()
    pipe, expected = nlp.get_pipe("hocrf"), answers(nlp)

    def breaking_off():
        yield from 15 * examples(nlp)
        raise OSError

    with pytest.raises(OSError):
        pipe.initialize(breaking_off)
    assert answers(nlp) == expected and filter_of(nlp).attrs["trained"]


@pytest.mark.parametrize(
    "other, code",
    [
        ({"width": 5}, r"H054.*span\[5, 1\]"),
        ({"hidden": 9}, r"H178.*'hocrf'"),
        ({"spans": 2.0}, r"H054.*span\[4, 2\]"),
        (None, r"H178.*'hocrf'"),
    ],
)
def test_a_model_with_another_filter_is_refused_and_changes_nothing(other, code):
    nlp, _ = trained(steps=3)
    pipe, expected = nlp.get_pipe("hocrf"), answers(nlp)
    other = alone(span_filter=None if other is None else {**FILTER, **other})
    data = examples(other)
    other.initialize(lambda: data)
    with pytest.raises(ValueError, match=code):
        pipe.from_bytes(other.get_pipe("hocrf").to_bytes())
    assert answers(nlp) == expected


def test_damaged_parameters_are_refused():
    nlp, _ = trained(steps=3)
    pipe, expected = nlp.get_pipe("hocrf"), answers(nlp)
    keeper = pipe._keepers(pipe.structure.settings)["encoder"]
    layer = filter_of(nlp)
    kept = layer.get_param("out")
    layer.set_param("out", np.full_like(kept, np.nan))
    damaged = keeper.saved()
    layer.set_param("out", kept)
    with pytest.raises(ValueError, match=r"H178.*'out' of the span filter is damaged"):
        keeper.checked(damaged, pipe._learner.scheme)
    assert answers(nlp) == expected


def test_a_new_label_keeps_what_the_scores_of_spans_have_learnt():
    nlp, _ = trained()
    expected = answers(nlp)[0]
    nlp.get_pipe("hocrf").add_label("OTHER")
    assert answers(nlp)[0] == expected


@pytest.mark.parametrize(
    "trainer", [LBFGS, {"@misc": "spacy-hocrf.Stages.v1", "epochs": 0, "sigma": 3.0}]
)
def test_a_trainer_that_does_not_train_the_filter_is_refused(trainer):
    nlp = alone(trainer=trainer, span_filter=FILTER)
    data = examples(nlp)
    nlp.initialize(lambda: data)
    with pytest.raises(ValueError, match=r"H190.*'hocrf'.*Stages.v1 with epochs above 0"):
        nlp.update(data, sgd=nlp.create_optimizer())


def test_a_trained_filter_stays_as_it_is_under_a_trainer_of_the_whole_corpus():
    nlp, _ = trained(steps=10)
    loaded = load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    loaded.get_pipe("hocrf").set_trainer(LBFGSTrainer(sigma=3.0))
    before = parameters(filter_of(loaded))
    optimizer = loaded.resume_training()
    losses = [loaded.update(examples(loaded), sgd=optimizer)["hocrf"] for _ in range(30)]
    after = parameters(filter_of(loaded))
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert losses[-1] < losses[0]
    assert answers(loaded)[0] == [found(eg.reference) for eg in examples(loaded)]


def in_stages(**settings):
    """A pipeline with a filter in two stages, its examples, and its component."""
    nlp, _ = stages(span_filter=FILTER, **settings)
    data = examples(nlp, documents(30))
    nlp.initialize(lambda: data)
    return nlp, data, nlp.get_pipe("hocrf")


def test_the_second_stage_goes_by_what_copies_pick_in_texts_they_have_not_seen():
    nlp, data, pipe = in_stages(epochs=2)
    learn(nlp, data, steps=2)
    learner = pipe._learner
    _, spans = module._heads(learner)
    assert spans.shape == (9, 3)
    expected = {}
    for copy, part in pipe._copies._copies.values():
        encoder, (_, own) = copy.structure.settings.encoder, module._heads(copy)
        for document in part:
            picked = output_of(encoder, [document.source]).picked
            places = list(zip(picked.start.tolist(), picked.end.tolist()))
            expected[id(document)] = places, picked.rows @ own
    learn(nlp, data, steps=1)
    for document in learner.corpus.documents:
        places, scores = expected[id(document)]
        picked = document.output.picked
        assert list(zip(picked.start.tolist(), picked.end.tolist())) == places
        assert_allclose(picked.rows @ spans, scores, atol=1e-5)
    (shard, *_) = learner.shards()
    rows = np.concatenate([d.output.picked.rows for d in shard._documents])
    assert_allclose(shard.compiled.batch.picked.rows, rows)


def test_scores_of_spans_are_trusted_as_heads_are_and_stay(monkeypatch):
    nlp, data, pipe = in_stages(epochs=3)
    learn(nlp, data, steps=3)
    learner = pipe._learner
    before = learner.weights[learner.heads]
    monkeypatch.setattr(module, "_chosen", lambda *arguments: (0.5, None))
    learn(nlp, data, steps=10)
    after = learner.weights[learner.heads]
    assert len(after) == 3 * (3 * 17 + 9)
    assert_allclose(after, 0.5 * before, rtol=1e-6)
    assert answers(load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())) == answers(nlp)


def test_an_encoder_that_is_not_trusted_picks_nothing(monkeypatch):
    nlp, data, pipe = in_stages(epochs=1)
    learn(nlp, data, steps=1)
    monkeypatch.setattr(module, "_chosen", lambda *arguments: (0.0, None))
    learn(nlp, data, steps=20)
    monkeypatch.setattr(filter_of(nlp), "_func", None)
    assert not len(pipe.model.predict([nlp("Ada slept .")]).span_start)


def test_stages_with_a_filter_in_spacy_train(tmp_path):
    nlp, data, _ = in_stages(epochs=10, sigma="auto")
    gold = [eg.reference for eg in data]
    losses = train_by_config(nlp, gold, tmp_path, max_steps=40)
    assert losses[-1] < 0.2 * losses[1]
    loaded = spacy.load(tmp_path / "model-last")
    assert [found(doc) for doc in loaded.pipe([doc.text for doc in gold])] == [
        found(doc) for doc in gold
    ]


def test_what_the_filter_contributes_to_a_span_is_explained():
    nlp, _ = trained()
    text, _ = documents()[0]
    explanation = nlp.get_pipe("hocrf").explain(nlp.make_doc(text), nlp(text).ents[0])
    assert explanation.templates["tok2vec.span[4, 1]"] > 0
    assert sum(explanation.templates.values()) == pytest.approx(explanation.log_odds, rel=1e-4)
