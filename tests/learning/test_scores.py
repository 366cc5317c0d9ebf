"""Components with word vectors: config file, training, saving, loading, and the exact objective."""

import pickle

import numpy as np
import oracle
import pytest
import spacy
from derivatives import assert_gradient
from numpy.testing import assert_allclose
from small_corpus import PIPELINE, documents, entity_scores, examples, found, initialize, teach
from spacy.tokens import Doc
from spacy.util import load_model_from_config
from spacy.vectors import Vectors
from thinc.api import Config

from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.engine.reduction import MIN_PARTS
from spacy_hocrf.learning import shards
from spacy_hocrf.training.lbfgs import LBFGSTrainer

CONFIG = f"""{PIPELINE}
[components.hocrf.model]
@architectures = "spacy-hocrf.HighOrderCRF.v1"
encoding = "ENCODING"
order = 1

[components.hocrf.model.features]
@misc = "spacy-hocrf.Features.v1"

[components.hocrf.model.features.*.window]
@misc = "spacy-hocrf.Window.v1"

[components.hocrf.model.features.*.vectors]
@misc = "spacy-hocrf.Vectors.v1"
window = [0, 1]
parts = ["tokens", "start"]

[components.hocrf.trainer]
@misc = "spacy-hocrf.LBFGS.v1"
sigma = 1.0
"""
SEMI, CRF = "segments", "bio"
WIDTH = 5


def untrained(encoding=SEMI, width=WIDTH, trainer=None):
    """A pipeline whose vocabulary has vectors of the words of the corpus, some of zeros."""
    config = Config().from_str(CONFIG.replace("ENCODING", encoding))
    if trainer:
        config["components"]["hocrf"]["trainer"] = {"@misc": trainer}
    nlp = load_model_from_config(config, auto_fill=True)
    words = sorted({token.text for text, _ in documents() for token in nlp.make_doc(text)})
    if width:
        table = np.random.default_rng(0).normal(size=(len(words), width)).astype(np.float32)
        table[::7] = 0.0
        nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=table, keys=words)
    return nlp


def trained(encoding=SEMI, steps=100):
    nlp = untrained(encoding)
    teach(nlp, steps=steps)
    return nlp


def spans_of(nlp):
    return [
        (found(doc), entity_scores(doc).tolist())
        for doc in nlp.pipe(text for text, _ in documents())
    ]


@pytest.mark.slow
@pytest.mark.parametrize("encoding, blocks", [(SEMI, 4), (CRF, 2)])
def test_a_saved_and_loaded_pipeline_finds_the_same_with_the_same_probabilities(
    encoding, blocks, tmp_path
):
    nlp = trained(encoding)
    structure = nlp.get_pipe("hocrf").structure
    # every part of a segment of one token is the token
    assert structure.n_dense == blocks * (WIDTH + 1) * structure.scheme.n_labels
    nlp.to_disk(tmp_path / "model")
    loaded = spacy.load(tmp_path / "model")
    assert spans_of(loaded) == spans_of(nlp)
    config = nlp.config.copy()
    config["components"]["again"] = {"source": str(tmp_path / "model"), "component": "hocrf"}
    del config["components"]["hocrf"]
    config["nlp"]["pipeline"] = ["again"]
    sourced = load_model_from_config(config, vocab=loaded.vocab)
    assert spans_of(sourced) == spans_of(nlp)


@pytest.mark.slow
def test_the_vectors_themselves_are_not_saved_with_the_component():
    nlp = trained()
    many = untrained()
    many.vocab.vectors.resize((5000, WIDTH))
    initialize(many)
    sizes = [len(each.get_pipe("hocrf").to_bytes()) for each in (nlp, many)]
    assert abs(sizes[0] - sizes[1]) < 1000
    assert len(pickle.dumps(many.get_pipe("hocrf").model)) < 5000 * WIDTH * 4


@pytest.mark.parametrize("width, message", [(0, "H171.*has 0"), (7, "H171.*5 dimensions.*has 7")])
def test_other_vectors_than_those_of_training_are_refused(width, message):
    saved = trained(steps=1).get_pipe("hocrf").to_bytes()
    with pytest.raises(ValueError, match=message):
        untrained(width=width).get_pipe("hocrf").from_bytes(saved)


def test_a_vocabulary_without_vectors_is_an_error_that_says_what_to_do():
    nlp = untrained(width=0)
    with pytest.raises(ValueError, match=r"H170.*vector\[0\].*\[initialize\]"):
        nlp.initialize(lambda: examples(nlp))


def test_counts_of_words_add_up_over_parts_and_threads_change_no_bit(monkeypatch):
    nlp = untrained()
    initialize(nlp)
    pipe = nlp.get_pipe("hocrf")
    weights = np.random.default_rng(3).normal(size=pipe.structure.size) * 0.3
    whole = pipe.objective()
    loss, gradient = whole(weights)
    assert len(whole.shards) == 1
    monkeypatch.setattr(shards, "SHARD_TOKENS", 8)
    found = []
    for threads in (1, 2, 4):
        pipe.set_trainer(LBFGSTrainer(sigma=1.0, threads=threads))
        objective = pipe.objective()
        assert len(objective.shards) > MIN_PARTS
        found += [objective(weights)[1].copy() for _ in range(3)]
        assert_allclose(found[-1], gradient, rtol=1e-11, atol=1e-11)
        assert_allclose(objective(weights)[0], loss, rtol=1e-12)
    assert all((each == found[0]).all() for each in found)


def check_gradient(pipe):
    """In random directions, and along dense weights."""
    size = pipe.structure.size
    weights = np.random.default_rng(2).normal(size=size) * 0.3
    assert_gradient(pipe.objective(), weights, 3)
    assert_gradient(pipe.objective(), weights, np.eye(size)[-pipe.structure.n_dense :: 9])


def test_the_gradient_is_that_of_central_differences():
    check_gradient(trained(steps=3).get_pipe("hocrf"))


def test_log_z_is_the_sum_over_all_segmentations():
    nlp = trained(steps=2)
    pipe, words = nlp.get_pipe("hocrf"), ["Ada", "Lovelace", "likes", "unknown"]
    rng = np.random.default_rng(2)
    pipe.model.set_param("W", rng.normal(size=pipe.structure.size).astype(np.float32))
    potentials, _ = pipe.model.begin_update([Doc(nlp.vocab, words=words)])
    scheme = pipe.structure.scheme
    expected = oracle.log_partition(
        potentials, pipe.automaton.patterns, scheme.limits, scheme.forbidden
    )
    assert_allclose(log_partition(potentials, pipe.automaton), expected, rtol=1e-12)


@pytest.mark.slow
def test_sgd_learns_the_weights_of_vectors():
    nlp = untrained(trainer="spacy-hocrf.SGD.v1")
    teach(nlp, steps=60)
    structure, weights = nlp.get_pipe("hocrf").structure, nlp.get_pipe("hocrf").model.get_param("W")
    assert np.abs(weights[-structure.n_dense :]).max() > 1e-3
    scores = nlp.evaluate(examples(nlp))
    assert scores["ents_f"] == 1.0


def test_training_goes_on_after_loading():
    saved = trained(steps=3).get_pipe("hocrf").to_bytes()
    nlp = untrained()
    pipe = nlp.get_pipe("hocrf").from_bytes(saved)
    text = "Nobody slept in Cambridge ."
    start = text.index("Cambridge")
    more = examples(nlp, [*documents(), (text, [(start, start + 9, "PLACE")])])
    nlp.update(more, sgd=nlp.create_optimizer())
    check_gradient(pipe)


def test_counts_that_are_added_to_placed_weights_reach_the_tables_of_words():
    pipe = trained(steps=3).get_pipe("hocrf")
    compiled, rng = pipe.structure.compiled, np.random.default_rng(3)
    weights = rng.normal(size=pipe.structure.size)

    def counts():
        found = compiled.nothing()
        found.dense[:] = np.arange(len(found.dense))
        for table in found.words:
            table[:-1] = np.random.default_rng(4).normal(size=table[:-1].shape)
        return found

    placed = compiled.place_weights(weights)
    numbers, values = compiled.take(counts())
    compiled.add_into(placed, numbers, values)
    added = np.zeros(len(weights))
    added[numbers] = values
    assert_allclose(added, compiled.collect(counts()), rtol=1e-12, atol=1e-12)
    expected = compiled.place_weights(weights + added)
    for mine, other in zip(placed.words, expected.words):
        assert_allclose(mine, other, rtol=1e-10, atol=1e-10)


def test_a_training_text_with_arrays_of_another_width_is_named():
    nlp = spacy.blank("xx")
    vectors = {"@misc": "spacy-hocrf.Vectors.v1", "source": "tensor"}
    blocks = {"@misc": "spacy-hocrf.Features.v1", "*": {"vectors": vectors}}
    nlp.add_pipe("hocrf", config={"model": {"order": 0, "features": blocks}})
    data = examples(nlp)
    for example in data:
        example.predicted.tensor = np.ones((len(example.predicted), 3), dtype=np.float32)
    nlp.initialize(lambda: data)
    data[4].predicted.tensor = np.ones((len(data[4].predicted), 2), dtype=np.float32)
    text = " ".join(data[4].text.split()[:3])
    with pytest.raises(ValueError, match=rf"H172.*tensor\[0\].*2 dimensions.*{text}.*3 in"):
        nlp.initialize(lambda: data)
