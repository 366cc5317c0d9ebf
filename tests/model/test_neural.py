"""Models over an encoder: rows of tokens, their scores by heads, and the gradient through both."""

import numpy as np
import oracle
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.ml.models.tok2vec import build_hash_embed_cnn_tok2vec
from spacy.tokens import Doc
from thinc.api import Model, fix_random_seed
from toy_encoder import PARTS, WIDTH, automaton_of, build, central, texts, toy

from spacy_hocrf.engine.forward_backward import expectations, log_partition
from spacy_hocrf.model.architectures import set_weights, weights_of
from spacy_hocrf.model.neural import encoder_of

ENCODINGS = ["segments", "io", "tags"]


def log_z(model, docs):
    return log_partition(model.predict(docs), automaton_of(model)).sum()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_gradient_of_the_encoder_matches_central_differences(encoding):
    tok2vec = toy()
    model = build(encoding, tok2vec)
    docs = texts()
    potentials, backprop = model.begin_update(docs)
    assert backprop(expectations(potentials, automaton_of(model))) == []
    gradient, table = tok2vec.get_grad("E"), tok2vec.get_param("E")
    assert gradient.dtype == np.float64 and np.count_nonzero(gradient) >= 9
    for index in np.ndindex(*table.shape):
        differences = central(lambda: log_z(model, docs), (table, index))
        assert_allclose(gradient[index], differences, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_gradient_of_the_heads_matches_central_differences(encoding):
    model = build(encoding, toy())
    structure, docs = model.attrs["structure"], texts()
    batch = structure.compile(structure.observe(docs), structure.allowed(docs))
    potentials, backprop = model.begin_update(docs)
    backprop(expectations(potentials, automaton_of(model)))
    gradient, weights = model.get_grad("W"), weights_of(model)
    heads = len(PARTS) if encoding == "segments" else 1
    assert structure.n_dense == heads * (WIDTH + 1) * 2
    for f in range(len(weights)):
        differences = central(
            lambda: log_partition(batch.potentials(weights), automaton_of(model)).sum(),
            (weights, f),
        )
        assert_allclose(gradient[f], differences, rtol=1e-5, atol=1e-6)  # it is float32


def test_the_gradient_through_a_convolution_matches_differences_along_a_line():
    fix_random_seed(0)
    tok2vec = build_hash_embed_cnn_tok2vec(
        width=8,
        depth=2,
        embed_size=50,
        window_size=1,
        maxout_pieces=2,
        subword_features=True,
        pretrained_vectors=None,
    )
    docs = texts()[::2]
    tok2vec.initialize(X=docs)
    model = build("segments", tok2vec)
    potentials, backprop = model.begin_update(docs)
    backprop(expectations(potentials, automaton_of(model)))
    rng, step, slope, moves = np.random.default_rng(3), 5e-5, 0.0, []
    for node in tok2vec.walk():
        for name in node.param_names:
            line = rng.normal(size=node.get_param(name).shape).astype(np.float32)
            moves.append((node, name, node.get_param(name).copy(), line))
            if node.has_grad(name):
                slope += float((node.get_grad(name).astype(np.float64) * line).sum())
    ends = []
    for sign in (1, -1):
        for node, name, kept, line in moves:
            node.set_param(name, kept + sign * step * line)
        ends.append(log_z(model, docs))
    assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-3)  # all in float32


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("text", ["x", "xyz", "zzxyx"])
def test_log_z_with_random_heads_matches_enumeration(encoding, text):
    model = build(encoding, toy(seed=len(text)))
    doc = Doc(spacy.blank("xx").vocab, words=list(text))
    structure, potentials = model.attrs["structure"], model.predict([doc])
    scheme = structure.scheme
    expected = oracle.log_partition(potentials, structure.patterns, scheme.limits, scheme.forbidden)
    assert_allclose(log_partition(potentials, automaton_of(model)), [expected], rtol=1e-10)


def test_heads_add_rows_times_their_weights_to_their_part():
    model, docs = build("segments", toy()), texts()
    structure, weights = model.attrs["structure"], weights_of(model)
    rows, _ = model.layers[0](docs, False)
    assert rows.shape == (6, WIDTH + 1) and (rows[:, -1] == 1).all()
    heads = weights[structure.size - structure.n_dense :].copy().reshape(len(PARTS), WIDTH + 1, 2)
    with_heads = model.predict(docs)
    weights[structure.size - structure.n_dense :] = 0.0
    set_weights(model, weights)
    without = model.predict(docs)
    for part, head in zip(("start", "end", "token", "inner"), heads):
        before = getattr(without, part)
        added = getattr(with_heads, part) - (0.0 if before is None else before)
        assert_allclose(added, rows @ head, rtol=1e-6, atol=1e-6)  # the weights are float32


def test_training_and_predicting_ask_the_encoder_once_for_all_heads():
    asked = []

    def forward(model, docs, is_train):
        asked.append((len(docs), is_train))
        return [np.ones((len(doc), 2)) for doc in docs], lambda gradients: []

    model = build("segments", Model("counting", forward))
    asked.clear()
    model.predict(texts())
    model.begin_update(texts())
    model.predict([])
    assert asked == [(3, False), (3, True)]


def test_the_encoder_is_a_layer_that_spacy_finds():
    tok2vec = toy()
    model = build("segments", tok2vec)
    assert tok2vec in list(model.walk()) and model.get_ref("tok2vec") is tok2vec


@pytest.mark.parametrize(
    "arrays, code",
    [
        (lambda doc: np.zeros((len(doc) + 1, 2)), r"H176.*3 x 2.*'x y'.*2 x"),
        (lambda doc: np.zeros(len(doc)), r"H176"),
        (lambda doc: np.full((len(doc), 2), np.nan), r"H177.*'x y'"),
        (lambda doc: np.full((len(doc), 2), np.inf), r"H177.*'x y'"),
    ],
)
def test_an_encoder_with_other_rows_than_tokens_is_refused_by_the_name_of_the_text(arrays, code):
    def forward(model, docs, is_train):
        return [arrays(doc) for doc in docs], lambda gradients: []

    doc = Doc(spacy.blank("xx").vocab, words=["x", "y"])
    with pytest.raises(ValueError, match=code):
        encoder_of(Model("wrong", forward)).predict([doc])


def test_an_encoder_that_leaves_out_a_text_is_refused():
    encoder = encoder_of(Model("short", lambda model, docs, is_train: ([], None)))
    with pytest.raises(ValueError, match=r"H176.*'x y z x'"):
        encoder.predict(texts()[:1])


def test_rows_of_another_width_than_in_training_are_refused():
    tok2vec = toy()
    model = build("segments", tok2vec)
    tok2vec.set_param("E", np.zeros((8, WIDTH + 1)))
    with pytest.raises(ValueError, match=r"H176.*4 x 4.*expected 4 x 3"):
        model.predict(texts())
    with pytest.raises(ValueError, match=r"H176.*4 x 4.*expected 4 x 3"):
        model.begin_update(texts())


def test_settings_are_checked():
    with pytest.raises(ValueError, match=r"H031"):
        build("segments", toy(), parts=["middle"])
    for encoding in ENCODINGS:
        with pytest.raises(ValueError, match=r"H173"):
            build(encoding, toy(), scale=0)


def test_rows_are_the_arrays_times_the_scale_and_a_one():
    doc = texts()[0]
    (array,) = toy().predict([doc])
    rows = build("tags", toy(), scale=0.5).layers[0].predict([doc])
    assert_allclose(rows, np.concatenate([0.5 * array, np.ones((4, 1))], axis=1))


def test_what_the_encoder_is_given_back_has_its_own_type():
    seen = []

    def forward(model, docs, is_train):
        arrays = [np.ones((len(doc), 2), dtype=np.float32) for doc in docs]
        return arrays, lambda gradients: seen.extend(gradients)

    encoder = encoder_of(Model("typed", forward))
    rows, backprop = encoder.begin_update(texts())
    backprop(np.arange(18.0).reshape(6, 3))
    assert [gradient.dtype for gradient in seen] == [np.float32] * 3
    assert_array_equal(np.concatenate(seen), rows[:, :2] * np.arange(18.0).reshape(6, 3)[:, :2])
