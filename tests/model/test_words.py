"""Scores that are computed once a word, against those of every token by itself."""

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose
from spacy.tokens import Doc
from spacy.vectors import Vectors as SpacyVectors

from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.features.vectors import make_vectors
from spacy_hocrf.model import words
from spacy_hocrf.model.dense import Dense, n_dense
from spacy_hocrf.model.heads import dense_of
from spacy_hocrf.model.words import WordScore, known_words, numbers_of_words, tables_of

WORDS = ["sun", "moon", "star", "sky", "cloud"]
Y = 3


@pytest.fixture
def vocab():
    vocab = spacy.blank("xx").vocab
    table = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    vocab.vectors = SpacyVectors(strings=vocab.strings, data=table, keys=WORDS)
    return vocab


def docs_of(vocab, *texts):
    return [Doc(vocab, words=text.split()) for text in texts]


def both(vocab, docs, seen):
    """Dense scores of a batch through tables of the words of `seen`, and by every token."""
    blocks = make_vectors(window=[0, -1], parts=["tokens", "start"])
    blocks += make_vectors(window=[1], normalize=False, scale=0.5)
    scores = [(each.name, each.learning_from(docs[0])) for each in blocks]
    inputs = [score.inputs(TokenBatch(docs)) for _, score in scores]
    known = known_words(scores, seen and numbers_of_words(scores, TokenBatch(seen)))
    tables = tables_of(scores, Y, known)
    fast = dense_of(scores, inputs, Y, known, tables)
    slow = dense_of(scores, inputs, Y, None, ())
    assert {type(each) for each in fast} == {WordScore} and {type(each) for each in slow} == {Dense}
    return fast, slow, tables, known, n_dense(scores, Y)


def tables_at(tables, known, dense):
    """What a layout makes of dense weights."""
    rows = (each.score.of_rows(each.vectors, each.weights(dense, Y)) for each in tables)
    return [np.vstack([scores, np.zeros((1, Y))]) for scores in rows]


@pytest.mark.parametrize("seen", [["sun sky dark", "moon"], ["night"], None], ids=str)
def test_tables_score_and_count_as_every_token_by_itself(vocab, seen):
    docs = docs_of(vocab, "sun moon dark star", "", "cloud", "night sky sun")
    fast, slow, tables, known, size = both(vocab, docs, seen and docs_of(vocab, *seen))
    rng, n_tokens = np.random.default_rng(1), 8
    dense, expectations = rng.normal(size=size), rng.normal(size=(n_tokens, Y))
    made = tables_at(tables, known, dense)
    for mine, others in zip(fast, slow):
        scores = [np.ones((n_tokens, Y)) for _ in range(2)]
        mine.add_into(scores[0], dense, made)
        others.add_into(scores[1], dense, ())
        assert_allclose(scores[0], scores[1], rtol=1e-12)
        counts = [np.zeros(size) for _ in range(2)]
        counted = [np.zeros_like(table) for table in made]
        mine.add_counts_into(counts[0], counted, expectations, -2.0)
        others.add_counts_into(counts[1], (), expectations, -2.0)
        for table, expected in zip(tables, counted):
            place = table.weights(counts[0], Y)
            place += table.score.from_rows(table.vectors, expected[:-1])
        assert_allclose(counts[0], counts[1], rtol=1e-12, atol=1e-12)


def test_some_tokens_of_a_batch_keep_their_unknown_words(vocab):
    docs = docs_of(vocab, "sun moon dark star", "cloud moon")
    fast, slow, tables, known, size = both(vocab, docs, docs_of(vocab, "sun"))
    dense = np.random.default_rng(2).normal(size=size)
    for mine, others in zip(fast, slow):
        scores = [np.zeros((2, Y)) for _ in range(2)]
        mine.only(slice(4, 6)).add_into(scores[0], dense, tables_at(tables, known, dense))
        others.only(slice(4, 6)).add_into(scores[1], dense, ())
        assert_allclose(scores[0], scores[1], rtol=1e-12)


def test_a_loaded_model_knows_all_words_of_a_small_vocabulary_and_none_of_a_large_one(
    vocab, monkeypatch
):
    (doc,) = docs_of(vocab, "sun")
    scores = [(each.name, each.learning_from(doc)) for each in make_vectors()]
    assert known_words(scores, None).numbers.tolist() == [0, 1, 2, 3, 4, 5]
    monkeypatch.setattr(words, "MAX_KNOWN_WORDS", 5)
    assert known_words(scores, None).numbers.tolist() == []
    assert known_words([], None) is None


def test_tables_of_one_vocabulary_share_its_vectors(vocab):
    _, _, tables, _, _ = both(vocab, docs_of(vocab, "sun"), None)
    assert len({id(table.vectors) for table in tables}) == 2  # brought to length 1, or not


def test_every_word_that_is_known_has_a_row():
    known = words.KnownWords(np.array([2, 5], dtype=np.int32), 7)
    rows, unknown = known.rows(np.array([5, 2, 3, 7, 2], dtype=np.int32))
    assert rows.tolist() == [1, 0, 2, 2, 0] and unknown.tolist() == [2]
