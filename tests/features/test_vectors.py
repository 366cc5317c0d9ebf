"""Arrays of tokens as dense scores, against sums over tokens and dimensions."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose
from spacy.tokens import Doc, Token
from spacy.vectors import Vectors as SpacyVectors

from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.features.vectors import Vectors, make_vectors

WORDS = {"sun": [3.0, 4.0, 0.0], "moon": [0.0, 0.0, 2.0], "void": [0.0, 0.0, 0.0]}
FLAG = [0.0, 0.0, 0.0, 1.0]


@pytest.fixture
def vocab():
    vocab = spacy.blank("xx").vocab
    vocab.vectors = SpacyVectors(shape=(3, 3), strings=vocab.strings)
    for word, vector in WORDS.items():
        vocab.set_vector(word, np.array(vector, dtype=np.float32))
    return vocab


def docs_of(vocab, *texts):
    return [Doc(vocab, words=text.split()) for text in texts]


def vectors(doc, **settings):
    (found,) = make_vectors(**settings)
    return found.learning_from(doc)


def row_of(word, normalize):
    """The word's vector by hand, and the flag."""
    vector = np.array(WORDS.get(word, [0.0] * 3))
    length = np.linalg.norm(vector)
    if not length:
        return FLAG
    return [*(vector / length if normalize else vector), 0.0]


def rows_of(docs, offset, normalize):
    return np.array(
        [
            row_of(doc[i + offset].text, normalize) if 0 <= i + offset < len(doc) else [0.0] * 4
            for doc in docs
            for i in range(len(doc))
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0, -1, 2])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("source", ["vector", "tensor", "_.array"])
def test_scores_and_counts_are_sums_over_tokens_and_dimensions(vocab, source, normalize, offset):
    docs = docs_of(vocab, "sun moon dark sun", "void", "", "moon night")
    if source == "tensor":
        for doc in docs:
            doc.tensor = np.array([WORDS.get(t.text, [0] * 3) for t in doc], dtype=np.float32)
    elif source == "_.array":
        Token.set_extension("array", getter=lambda t: WORDS.get(t.text, [0.0] * 3), force=True)
    found = vectors(docs[0], source=source, window=[offset], normalize=normalize, scale=3)
    rng, rows = np.random.default_rng(0), rows_of(docs, offset, normalize)
    weights, expectations = rng.normal(size=(4, 5)), rng.normal(size=(7, 5))
    inputs = found.inputs(TokenBatch(docs))
    assert found.width == 4 and len(inputs) == 7
    assert_allclose(found.scores(inputs, weights), 3 * rows @ weights, rtol=1e-6, atol=1e-7)
    counts = found.counts(inputs, expectations)
    assert_allclose(counts, 3 * rows.T @ expectations, rtol=1e-6, atol=1e-7)
    assert_allclose(  # each is the other's transpose
        (found.scores(inputs, weights) * expectations).sum(), (counts * weights).sum(), rtol=1e-12
    )


def test_every_word_has_one_number_and_those_without_a_vector_share_the_last(vocab):
    docs = docs_of(vocab, "sun dark moon void sun night")
    sun, dark, moon, void, again, night = vectors(docs[0]).inputs(TokenBatch(docs)).tolist()
    assert sun == again and dark == void == night == 3
    assert {sun, moon} < {0, 1, 2} and sun != moon


def test_words_are_scored_in_blocks_as_they_are_at_once(vocab, monkeypatch):
    docs = docs_of(vocab, "sun moon dark sun void")
    found, rng = vectors(docs[0]), np.random.default_rng(1)
    weights, expectations = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    inputs = found.inputs(TokenBatch(docs))
    scores, counts = found.scores(inputs, weights), found.counts(inputs, expectations)
    monkeypatch.setattr("spacy_hocrf.features.vectors.BLOCK", 1)
    assert_allclose(found.scores(inputs, weights), scores, rtol=1e-14)
    assert_allclose(found.counts(inputs, expectations), counts, rtol=1e-13, atol=1e-15)


def test_vectors_that_are_added_later_are_not_those_of_training(vocab):
    (doc,) = docs_of(vocab, "sun night")
    found = vectors(doc)
    vocab.vectors.resize((5, 3))
    vocab.set_vector("night", np.ones(3, dtype=np.float32))
    assert found.inputs(TokenBatch([doc]))[1] == 3


def test_words_of_floret_are_made_of_letters():
    vocab = spacy.blank("xx").vocab
    table = np.random.default_rng(2).normal(size=(20, 3)).astype(np.float32)
    settings = {"mode": "floret", "minn": 2, "maxn": 3, "hash_count": 1, "bow": "<", "eow": ">"}
    vocab.vectors = SpacyVectors(strings=vocab.strings, data=table, **settings)
    docs = docs_of(vocab, "sun moon", "sun")
    found = vectors(docs[0], normalize=False, scale=1)
    weights = np.random.default_rng(3).normal(size=(4, 2))
    expected = [np.append(token.vector, 0.0) @ weights for doc in docs for token in doc]
    scores = found.scores(found.inputs(TokenBatch(docs)), weights)
    assert_allclose(scores, expected, rtol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_an_error_when_training_begins(vocab, bad):
    vocab.vectors.data[1, 2] = bad
    with pytest.raises(ValueError, match=r"H175.*Vector 1 .*vector\[0\].*\[initialize\] vectors"):
        vectors(docs_of(vocab, "sun")[0])


def test_optional_vectors_that_are_not_there_have_no_weights():
    (doc,) = docs_of(spacy.blank("xx").vocab, "sun")
    found = Vectors("vector", "token", 0, True, 1.0, optional=True)
    assert found.learning_from(doc).width == 0
    with pytest.raises(ValueError, match=r"H170.*vector\[0\]"):
        vectors(doc)


def test_a_saved_model_wants_the_vectors_that_it_was_trained_with(vocab):
    (found,) = make_vectors()
    (doc,) = docs_of(vocab, "sun")
    assert found.learnt(vocab, 4).inputs(TokenBatch([doc])).tolist() == [
        vectors(doc).inputs(TokenBatch([doc]))[0]
    ]
    assert found.learnt(vocab, 0).width == 0
    with pytest.raises(ValueError, match=r"H171.*300 dimensions.*has 3"):
        found.learnt(vocab, 301)
    with pytest.raises(ValueError, match=r"H171.*has 0"):
        found.learnt(spacy.blank("xx").vocab, 4)


def test_arrays_of_another_width_are_an_error_that_names_the_text(vocab):
    docs = docs_of(vocab, "sun moon", "dark night")
    for width, doc in enumerate(docs, start=2):
        doc.tensor = np.ones((2, width), dtype=np.float32)
    found = vectors(docs[0], source="tensor")
    with pytest.raises(ValueError, match=r"H172.*tensor\[0\].*3 dimensions.*dark night.*2 in"):
        found.inputs(TokenBatch(docs))


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"source": "shape"}, "H034"),
        ({"source": "_.never_registered"}, "H024"),
        ({"window": []}, "H030"),
        ({"window": [101]}, "H038"),
        ({"parts": ["whole"]}, "H031"),
        ({"parts": ["tokens", "tokens"]}, "H140"),
        ({"scale": 0}, "H173"),
        ({"scale": float("nan")}, "H173"),
        ({"scale": "4"}, "H173"),
    ],
)
def test_bad_settings_are_named(settings, code):
    with pytest.raises(ValueError, match=code):
        make_vectors(**settings)


def test_each_part_and_offset_has_weights_of_its_own():
    found = make_vectors(window=[-1, 0], parts=["tokens", "start"])
    assert [each.name for each in found] == [
        "vector[-1]",
        "vector[0]",
        "start:vector[-1]",
        "start:vector[0]",
    ]


def test_a_copy_shares_the_vectors_and_a_pickle_leaves_them_out(vocab):
    (doc,) = docs_of(vocab, "sun")
    found = vectors(doc)
    assert copy.deepcopy(found) is found
    other = pickle.loads(pickle.dumps(found))
    assert other == replace(make_vectors()[0], width=found.width) and other.words is None
