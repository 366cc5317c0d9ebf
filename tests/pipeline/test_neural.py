"""Components over an encoder: trained in a pipeline with shared, own and frozen encoders, saved, loaded
and sourced.
"""

import pickle
import shutil
from importlib import import_module

import numpy as np
import pytest
import spacy
from numpy.testing import assert_array_equal
from small_corpus import annotation, documents, examples, found, initialize, learner_of
from small_encoder import CNN, FACTORIES, LBFGS, SGD, alone, answers, learn, shared, train_by_config
from spacy.cli.package import package
from spacy.training import Example
from spacy.util import load_model_from_config

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*:UserWarning")]


def trained(**settings):
    """A pipeline over an encoder of its own that has learnt its examples by heart."""
    nlp = alone(**settings)
    data = initialize(nlp)
    return nlp, learn(nlp, data)


def parameters(encoder):
    """All of an encoder's, by layer and name."""
    return {
        (number, name): np.array(node.get_param(name))
        for number, node in enumerate(encoder.walk())
        for name in node.param_names
    }


def changed(before, after):
    return [key for key in before if not np.array_equal(before[key], after[key])]


@pytest.mark.parametrize("factory", FACTORIES)
def test_an_encoder_of_its_own_is_trained_saved_loaded_sourced_and_pickled(factory, tmp_path):
    nlp, losses = trained(factory=factory)
    assert losses[-1]["hocrf"] < 0.2 * losses[0]["hocrf"]
    expected = answers(nlp)
    gold = [eg.reference for eg in examples(nlp)]
    tags = [[token.tag_ for token in doc] for doc in gold]
    assert expected[0] == (tags if factory == "hocrf_tagger" else [*map(found, gold)])
    nlp.to_disk(tmp_path / "model")
    blank = load_model_from_config(nlp.config)
    sourced = spacy.blank("xx")
    sourced.add_pipe("hocrf", source=nlp)
    for other in (spacy.load(tmp_path / "model"), blank.from_bytes(nlp.to_bytes()), sourced):
        assert answers(other) == expected
    again = pickle.loads(pickle.dumps(nlp.get_pipe("hocrf")))
    assert again.to_bytes() == nlp.get_pipe("hocrf").to_bytes()


@pytest.mark.parametrize("last", ["hocrf", "tagger"])
@pytest.mark.parametrize("order", [1, 2])
def test_a_shared_encoder_in_spacy_train(order, last, tmp_path):
    nlp = shared(order=order, last=last)
    data = [eg.reference for eg in examples(nlp)]
    losses = train_by_config(nlp, data, tmp_path)
    assert (losses[-1] < 0.5 * losses[1]).all()
    loaded = spacy.load(tmp_path / "model-last")
    assert set(loaded.get_pipe("tok2vec").listening_components) == {"hocrf", "tagger"}
    assert answers(loaded)[0] == [found(doc) for doc in data]
    sourced = spacy.blank("xx")
    sourced.add_pipe("tok2vec", source=loaded)
    sourced.add_pipe("hocrf", source=loaded)
    assert answers(sourced) == answers(loaded)


def test_a_packaged_pipeline_gives_the_same_spans(tmp_path, monkeypatch):
    nlp = shared(order=2)
    data = initialize(nlp)
    learn(nlp, data)
    nlp.to_disk(tmp_path / "model")
    (tmp_path / "packages").mkdir()
    package(tmp_path / "model", tmp_path / "packages", name="neural_test", create_sdist=False)
    [folder] = (tmp_path / "packages").glob("xx_neural_test-*")
    shutil.copy(folder / "meta.json", folder / "xx_neural_test")  # its setup.py does
    monkeypatch.syspath_prepend(folder)
    assert answers(import_module("xx_neural_test").load()) == answers(nlp)


def test_listeners_can_be_replaced():
    nlp = shared()
    data = initialize(nlp)
    learn(nlp, data)
    expected = answers(nlp)
    nlp.replace_listeners("tok2vec", "hocrf", ["model.tok2vec"])
    assert nlp.get_pipe("tok2vec").listening_components == ["tagger"]
    settings = nlp.config["components"]["hocrf"]["model"]["tok2vec"]
    assert settings["@architectures"] == CNN["@architectures"]
    nlp.remove_pipe("tagger")
    nlp.remove_pipe("tok2vec")
    assert answers(nlp) == expected
    assert answers(load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())) == expected


def test_a_batch_without_annotation_still_steps_the_shared_encoder():
    nlp = shared(last="hocrf")
    data = initialize(nlp)
    learn(nlp, data, steps=2)
    tags = [
        Example.from_dict(nlp.make_doc(text), {"tags": annotation(nlp, text, spans)["tags"]})
        for text, spans in documents()
    ]
    encoder = nlp.get_pipe("tok2vec").model
    before = parameters(encoder)
    (losses,) = learn(nlp, tags, steps=1)
    assert changed(before, parameters(encoder))
    assert losses["tok2vec"] > 0


def test_dropout_is_that_of_the_update():
    nlp = alone()
    data = initialize(nlp)
    learn(nlp, data, steps=3, drop=0.5)
    pipe = nlp.get_pipe("hocrf")
    rates = {n.attrs["dropout_rate"] for n in pipe.model.walk() if "dropout_rate" in n.attrs}
    assert rates == {0.5}
    docs = [eg.predicted for eg in data]
    assert_array_equal(pipe.model.predict(docs).token, pipe.model.predict(docs).token)


def test_a_label_is_added_between_steps_of_one_optimizer():
    nlp = shared(SGD)
    data = examples(nlp)
    optimizer = nlp.initialize(lambda: data)
    pipe = nlp.get_pipe("hocrf")
    losses = [nlp.update(data, sgd=optimizer)["hocrf"]]
    before = len(pipe.model.get_param("W"))
    pipe.add_label("FOOD")
    assert len(pipe.model.get_param("W")) > before
    losses += [nlp.update(data, sgd=optimizer)["hocrf"] for _ in range(3)]
    assert losses[-1] < losses[1]


@pytest.mark.parametrize("trainer", [SGD, LBFGS], ids=["SGD", "LBFGS"])
def test_a_frozen_encoder_that_annotates_is_listened_to(trainer):
    nlp = shared(trainer)
    nlp.remove_pipe("tagger")
    data = initialize(nlp)
    encoder = nlp.get_pipe("tok2vec").model
    before = parameters(encoder)
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = 0.01
    losses = []
    for _ in range(100 if trainer is LBFGS else 40):
        fresh = examples(nlp)
        losses.append(nlp.update(fresh, sgd=optimizer, exclude=["tok2vec"], annotates=["tok2vec"]))
    assert not changed(before, parameters(encoder))
    assert losses[-1]["hocrf"] < 0.5 * losses[0]["hocrf"]
    if trainer is LBFGS:
        assert not nlp.get_pipe("hocrf").run.running
        assert answers(nlp)[0] == [found(eg.reference) for eg in data]
    assert answers(load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())) == answers(nlp)


def test_a_trainer_of_the_whole_corpus_refuses_an_encoder_that_is_being_trained():
    nlp = shared(LBFGS)
    data = initialize(nlp)
    with pytest.raises(ValueError, match=r"H179.*is being trained.*frozen_components"):
        nlp.update(data, sgd=nlp.create_optimizer())


def test_a_trainer_of_the_whole_corpus_refuses_an_encoder_that_has_written_nothing():
    nlp = shared(LBFGS)
    nlp.remove_pipe("tagger")
    data = initialize(nlp)
    with pytest.raises(ValueError, match=r"H179.*written nothing.*annotating_components"):
        nlp.update(data, sgd=nlp.create_optimizer(), exclude=["tok2vec"])


def test_initialize_infers_shapes_from_some_texts_and_labels_from_all():
    rows = [(f"It rains {number} .", []) for number in range(120)]
    nlp = alone()
    data = examples(nlp, [*rows, *documents()])
    nlp.initialize(lambda: iter(data))
    pipe = nlp.get_pipe("hocrf")
    assert pipe.labels == ("PERSON", "PLACE")
    assert pipe.structure.n_dense == 3 * 17 * 3


def test_an_encoder_is_as_it_was_if_initialize_fails():
    nlp, _ = trained()
    pipe, expected = nlp.get_pipe("hocrf"), answers(nlp)

    def breaking_off():
        yield from 15 * examples(nlp)
        raise OSError

    with pytest.raises(OSError):
        pipe.initialize(breaking_off)
    assert answers(nlp) == expected


@pytest.mark.parametrize("other", [{"depth": 2}, {"window_size": 2}])
def test_a_model_that_is_refused_changes_nothing(other):
    nlp, _ = trained()
    pipe, expected = nlp.get_pipe("hocrf"), answers(nlp)
    other = alone(tok2vec={**CNN, **other})
    initialize(other)
    with pytest.raises(ValueError, match=r"H178.*'hocrf'"):
        pipe.from_bytes(other.get_pipe("hocrf").to_bytes())
    assert answers(nlp) == expected


def test_damaged_parameters_are_refused():
    nlp, _ = trained()
    pipe = nlp.get_pipe("hocrf")
    keeper = pipe._keepers(pipe.structure.settings)["encoder"]
    saved = keeper.saved()
    half = saved._replace(arrays={"bytes": saved.arrays["bytes"][:-100]})
    with pytest.raises(ValueError, match=r"H178"):
        keeper.checked(half, learner_of(pipe).scheme)
    with pytest.raises(ValueError, match=r"H178"):
        keeper.checked(None, learner_of(pipe).scheme)
    with pytest.raises(ValueError, match=r"H039"):
        keeper.checked(saved._replace(arrays={}), learner_of(pipe).scheme)


def test_a_new_label_keeps_what_the_heads_have_learnt():
    nlp, _ = trained()
    expected = answers(nlp)[0]
    nlp.get_pipe("hocrf").add_label("OTHER")
    assert answers(nlp)[0] == expected
