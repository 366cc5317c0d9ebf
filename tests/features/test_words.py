"""Tokens of many texts by their words: those of spaCy's tokenizer, attribute by attribute."""

import sys
import unicodedata
from functools import cache

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.symbols import ORTH

from spacy_hocrf.annotation.targets import EntsTarget, SpansTarget
from spacy_hocrf.features.distinct_words import OF_WORDS, DistinctWords
from spacy_hocrf.features.spelling import HYPHENS
from spacy_hocrf.features.tokens import ATTRIBUTES, TokenBatch
from spacy_hocrf.features.words import OF_TEXTS, NeedsDocs, TextBatch, WordTokenizer

ENGLISH = spacy.blank("en")
PIECES = (
    "Ada ada A. a.m. I 'm I'm don't do n't :) : ) ( :( (: :-) - -- 12 12,5 1.5km $5 Mr. St. e.g. z.B. l'an "
    "http://a.b/c?d a@b.de # ... … ' \" “ ” Ünïcode naïve 東京 ß ' s 's U.S. U . S . can not cannot "
    "\u200b \xa0 C++ o.O O.o <3 < 3 ¯\\_(ツ)_/¯ \U0001f600 a/b a-b x–y 10-12 \t \n"
).split(" ")
TEXTS = st.lists(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=7).map(" ".join), max_size=5
)


@cache
def tokenizers(lang):
    """A language and its words, which are kept from one example to the next."""
    nlp = spacy.blank(lang)
    return nlp, WordTokenizer(nlp, letters=5_000)


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "de", "fr", "xx"])
@given(texts=TEXTS)
def test_tokens_are_those_of_the_tokenizer_in_every_attribute(lang, texts):
    nlp, words = tokenizers(lang)
    assert WordTokenizer.can_read(nlp)
    plain = words.read(texts)
    batch = TextBatch(plain, 0, len(plain.texts))
    docs = [nlp.make_doc(texts[i]) for i in plain.numbers]
    assert plain.texts == [doc.text for doc in docs]
    want = TokenBatch(docs)
    assert batch.offsets.tolist() == want.offsets.tolist()
    assert plain.start.tolist() == [token.idx for doc in docs for token in doc]
    assert plain.end.tolist() == [token.idx + len(token) for doc in docs for token in doc]
    for name in OF_TEXTS:
        batch.prefetch([name])
        want.prefetch([name])
        np.testing.assert_array_equal(batch.column(name), want.column(name), err_msg=name)


def test_a_part_of_the_texts_is_a_batch():
    nlp = ENGLISH
    texts = ["a b", "It's c.", "d", "e, f"]
    plain = WordTokenizer(nlp).read(texts)
    want = TokenBatch([nlp.make_doc(text) for text in texts[1:3]])
    for name in sorted(OF_WORDS):
        batch = TextBatch(plain, 1, 3)  # which has been asked for nothing else
        np.testing.assert_array_equal(batch.column(name), want.column(name), err_msg=name)
    assert len(batch.docs) == 2 and batch.with_group("key") == []


def test_every_attribute_is_answered_without_a_doc():
    """Those of templates, and those that predictions are written by."""
    written = {*EntsTarget("key", False).writes_by, *SpansTarget("key").writes_by}
    assert OF_TEXTS >= {*ATTRIBUTES, "FLAGS", *written} - {"SENT_START"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "ask",
    [
        lambda batch: batch.prefetch(["HEAD"]),
        lambda batch: batch.column("SENT_START"),
        lambda batch: batch.column("MORPH.Number"),
        lambda batch: batch.span_groups("key"),
        lambda batch: batch.real("tensor"),
        lambda batch: list(batch.docs),
        lambda batch: batch.docs[:1],
    ],
)
def test_what_only_docs_have_is_refused(ask):
    batch = TextBatch(WordTokenizer(ENGLISH).read(["a b"]), 0, 1)
    with pytest.raises(NeedsDocs):
        ask(batch)


def test_words_stay_tokenised_until_they_have_too_many_letters(monkeypatch):
    tokenised, add = [], DistinctWords._add
    monkeypatch.setattr(
        DistinctWords, "_add", lambda self, new: (tokenised.extend(new), add(self, new))
    )
    words = WordTokenizer(ENGLISH, letters=5)
    first = words.read(["a b", "b c"])
    assert tokenised == ["a", "b", "c"]
    assert words.read(["c a", "It's"]).words is first.words
    assert tokenised == ["a", "b", "c", "It's"]
    assert words.read(["c"]).words is not first.words
    assert tokenised == ["a", "b", "c", "It's", "c"]
    # what was forgotten is still there for those who have it
    assert [first.words.strings[each] for each in first.words.column("ORTH")[first.rows]] == [
        *("a", "b", "b", "c")
    ]


def test_a_word_that_is_longer_than_what_is_kept_is_read():
    words = WordTokenizer(ENGLISH, letters=5)
    for text in ("x" * 300, "y" * 300, "x" * 300):
        assert words.read([text]).end.tolist() == [300]


@pytest.mark.slow
def test_lexemes_that_were_told_something_else_keep_it():
    nlp = spacy.blank("en")
    nlp.vocab["Ada"].norm_ = "a person"
    nlp.vocab["Ada"].is_stop = True
    nlp.vocab["one"].set_attrs(LIKE_NUM=False, SHAPE="odd")
    text = "Ada has one."
    batch = TextBatch(WordTokenizer(nlp, ["NORM", "FLAGS"]).read([text]), 0, 1)
    want = TokenBatch([nlp.make_doc(text)])
    for name in OF_TEXTS:
        batch.prefetch([name])
        want.prefetch([name])
        np.testing.assert_array_equal(batch.column(name), want.column(name), err_msg=name)
    assert batch.texts("NORM").text.tobytes() == b"a personhasone."


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["", " ", " a", "a ", "a  b", "a\nb", "a\u2003b", "a : )", "a" * 11]
)
def test_other_white_space_special_cases_across_words_and_long_texts_are_not_plain(text):
    nlp = spacy.blank("en")
    nlp.max_length = 10
    assert WordTokenizer(nlp).read(["a b", text, "c"]).numbers == [0, 2]


def test_who_tokenises_otherwise_is_not_asked():
    assert WordTokenizer.can_read(ENGLISH)
    nlp = spacy.blank("en")
    nlp.tokenizer.add_special_case("New York", [{ORTH: "New York"}])
    assert not WordTokenizer.can_read(nlp)
    nlp = spacy.blank("en")
    make = nlp.tokenizer
    nlp.tokenizer = lambda text: make(text.lower())
    assert not WordTokenizer.can_read(nlp)


@pytest.mark.slow
def test_letters_and_digits_are_no_marks():
    for letter in map(chr, range(sys.maxunicode + 1)):
        if letter.isalnum():
            assert unicodedata.category(letter)[0] not in "PS" and letter not in HYPHENS
        assert not (letter.isdigit() and (letter.isalpha() or letter.isupper()))
