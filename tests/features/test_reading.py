"""Attributes of many tokens: those that `Doc.to_array` gives for each Doc, however they were read."""

import numpy as np
import pytest
import spacy
from spacy.attrs import IDS
from spacy.tokens import Doc

from spacy_hocrf.features import reading
from spacy_hocrf.features.reading import is_of_lexemes, token_columns
from spacy_hocrf.features.tokens import ATTRIBUTES

pytestmark = pytest.mark.slow

TEXTS = ["See www.a.org , ( $ 12 )", "", "Ada WROTE Code", "see 12 codes \n and £ 7.50"]
FLAGS = ["IS_TITLE", "IS_UPPER", "IS_DIGIT", "LIKE_NUM"]


@pytest.fixture
def vocab():
    return spacy.blank("en").vocab


@pytest.fixture(autouse=True, params=[0, 10_000])
def many(request, monkeypatch):
    """Are a few tokens many? Both ways of reading must give the same."""
    monkeypatch.setattr(reading, "MIN_TOKENS", request.param)


def docs_of(vocab):
    return [Doc(vocab, words=text.split(" ") if text else []) for text in TEXTS]


def asked(docs, names):
    """What each Doc's own `to_array` says, name by name."""
    arrays = [doc.to_array([IDS[name] for name in (*names, "ORTH")]) for doc in docs]
    return np.concatenate(arrays).T[:-1].tolist()


@pytest.mark.parametrize(
    "names",
    [ATTRIBUTES, FLAGS, [*FLAGS, "ORTH"], ["ORTH", *FLAGS], ["SHAPE"], ["NORM", *FLAGS, "ENT_IOB"]],
)
def test_columns_are_what_every_token_is_asked_for(vocab, names):
    docs = docs_of(vocab)
    docs[2].set_ents([docs[2][0:1]])
    docs[2][1].norm_ = "written"
    docs[2][2].lemma_ = "code"
    docs[0][0].is_sent_start = True
    columns = token_columns(docs, names)
    assert [columns[name].tolist() for name in names] == asked(docs, names)
    assert all(columns[name].dtype == np.uint64 for name in names)
    assert columns.keys() <= {*names, "ORTH"}


def test_what_a_lexeme_is_told_is_read(vocab):
    docs = docs_of(vocab)
    token_columns(docs, FLAGS)
    vocab["codes"].set_flag(IDS["IS_UPPER"], True)
    columns = token_columns(docs, FLAGS)
    assert columns["IS_UPPER"].sum() == 2  # WROTE, codes
    assert [columns[name].tolist() for name in FLAGS] == asked(docs, FLAGS)


def test_vocabularies_have_lexemes_of_their_own(vocab):
    other = spacy.blank("en").vocab
    other["12"].set_flag(IDS["IS_TITLE"], True)
    docs = [*docs_of(vocab), *docs_of(other)]
    columns = token_columns(docs, FLAGS)
    assert [columns[name].tolist() for name in FLAGS] == asked(docs, FLAGS)
    half = len(columns["IS_TITLE"]) // 2
    assert columns["IS_TITLE"][:half].tolist() != columns["IS_TITLE"][half:].tolist()


def test_a_word_says_nothing_of_what_is_a_tokens_own():
    own = {"ORTH", "NORM", "LEMMA", "TAG", "POS", "DEP", "MORPH", "ENT_TYPE", "ENT_IOB", "ENT_ID"}
    own |= {"ENT_KB_ID", "SPACY", "SENT_START"}
    assert {name for name in ATTRIBUTES if not is_of_lexemes(name)} == own
