"""What is read of a Doc: columns, shifts over the edges, derived strings, spans, real values, and
the fingerprint of it all.
"""

from itertools import pairwise

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span, Token
from spacy.tokens.underscore import Underscore

from spacy_hocrf.features.flags import FLAGS
from spacy_hocrf.features.pieces import PiecesTemplate
from spacy_hocrf.features.templates import NgramTemplate
from spacy_hocrf.features.tokens import ATTRIBUTES, EDGE, NUMBERS, TokenBatch


@pytest.fixture(scope="module")
def vocab():
    return spacy.blank("en").vocab


@pytest.fixture
def extension():
    """A string extension `_.unit` and a numeric one `_.size`, gone again afterwards."""
    Token.set_extension("unit", default="none", force=True)
    Token.set_extension("size", default=0.0, force=True)
    yield
    Token.remove_extension("unit")
    Token.remove_extension("size")


def docs_of(vocab, *texts):
    return [Doc(vocab, words=text.split()) for text in texts]


def test_a_column_is_the_attribute_of_every_token(vocab):
    batch = TokenBatch(docs_of(vocab, "Ada wrote", "", "Code"))
    assert [vocab.strings[int(value)] for value in batch.column("ORTH")] == ["Ada", "wrote", "Code"]
    assert batch.column("IS_TITLE").tolist() == [1, 0, 1]
    assert batch.offsets.tolist() == [0, 2, 2, 3]
    assert batch.sequence.tolist() == [0, 0, 2]
    assert len(batch) == 3


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_every_attribute_is_what_to_array_gives(vocab, attribute):
    [doc] = docs_of(vocab, "See www.a.org , ( $ 12 )")
    found = TokenBatch([doc]).column(attribute)
    assert found.dtype == np.uint64
    assert found.tolist() == doc.to_array([attribute, "ORTH"])[:, 0].astype(np.uint64).tolist()


@pytest.mark.parametrize("texts", [("See www.a.org", "", "( 12 )"), ("a",), ("",), ()])
@pytest.mark.parametrize(
    "attributes",
    [["ORTH"], ["SHAPE", "IS_DIGIT", "ORTH", "SHAPE"], [], ["_.x", "NORM", "MORPH.Case"]],
)
def test_attributes_read_together_are_those_read_alone(vocab, texts, attributes):
    batch, alone = TokenBatch(docs_of(vocab, *texts)), TokenBatch(docs_of(vocab, *texts))
    batch.prefetch(attributes)
    assert batch.reads == set()
    for attribute in {*attributes} & {*ATTRIBUTES} | {"TAG"}:
        assert batch.column(attribute).tolist() == alone.column(attribute).tolist()
        assert batch.column(attribute).flags.c_contiguous


def test_white_space_is_seen_without_being_observed(vocab):
    batch = TokenBatch([Doc(vocab, words=["a", " ", "\n\n", "b"]), Doc(vocab, words=[])])
    assert batch.blank.tolist() == [False, True, True, False]
    assert batch.reads == set()


def test_texts_are_those_of_the_distinct_values(vocab):
    batch = TokenBatch(docs_of(vocab, "née b née", "", "b 🦔"))
    values, codes = batch.distinct("ORTH")
    assert codes.tolist() == [0, 1, 0, 1, 2]
    text, offsets = batch.texts("ORTH")
    words = [text[a:b].tobytes().decode() for a, b in pairwise(offsets)]
    assert words == ["née", "b", "🦔"] == [vocab.strings[int(value)] for value in values]


def test_attributes_that_are_numbers_have_no_string(vocab):
    """Of the others, every value that a Doc has is in the StringStore."""
    nlp = spacy.blank("en")
    doc = Doc(
        nlp.vocab,
        words=["Ada", "12"],
        pos=["PROPN", "NUM"],
        deps=["nsubj", "ROOT"],
        heads=[1, 1],
        tags=["NNP", "CD"],
    )
    batch = TokenBatch([doc])
    for attribute in sorted(set(ATTRIBUTES) - NUMBERS):
        for value in batch.column(attribute):
            assert not nlp.vocab.strings[int(value)].startswith(("IS_", "LIKE_")), attribute
    assert {"IS_TITLE", "LIKE_NUM", "SPACY", "LENGTH"} <= NUMBERS


@pytest.mark.parametrize(
    "word, flags",
    [
        ("cat", ""),
        ("Cat", "IS_TITLE"),
        ("CAT", "IS_UPPER HAS_UPPER"),
        ("McKay", "HAS_UPPER"),
        ("12", "IS_DIGIT LIKE_NUM HAS_DIGIT"),
        ("1-2", "HAS_DIGIT HAS_HYPHEN"),
        ("two–three", "HAS_HYPHEN"),
        ("J.", "IS_UPPER IS_TITLE HAS_PERIOD"),
        (".", "IS_PUNCT HAS_PERIOD"),
        ("O'Neil", "IS_TITLE HAS_UPPER HAS_PUNCT"),
        ("$", "HAS_PUNCT"),
        ("हिन्दी", ""),
    ],
)
def test_flags_are_bits(vocab, word, flags):
    """A vowel sign of Devanagari is no letter to Python, but no mark either."""
    [bits] = TokenBatch([Doc(vocab, words=[word])]).column("FLAGS").tolist()
    assert [flag for bit, flag in enumerate(FLAGS) if bits >> bit & 1] == flags.split()
    assert "FLAGS" in NUMBERS


def test_shifts_see_one_edge_on_either_side_and_no_other_doc(vocab):
    batch = TokenBatch(docs_of(vocab, "a b c", "d"))
    a, b, c, d = batch.column("ORTH").tolist()
    edge = int(EDGE)
    for offset, values, there in [
        (0, [a, b, c, d], [True] * 4),
        (1, [b, c, edge, edge], [True] * 4),
        (-1, [edge, a, b, edge], [True] * 4),
        (2, [c, edge, edge, edge], [True, True, False, False]),
        (-3, [edge] * 4, [False, False, True, False]),
    ]:
        found, known = batch.shifted("ORTH", offset)
        assert found.tolist() == values
        assert known.tolist() == there


@pytest.mark.parametrize("texts", [(), ("",), ("", "")])
def test_nothing_is_read_of_empty_docs(vocab, texts):
    batch = TokenBatch(docs_of(vocab, *texts))
    assert len(batch) == 0
    assert batch.column("ORTH").tolist() == []
    assert batch.shifted("ORTH", -1)[0].tolist() == []
    assert [part.tolist() for part in batch.map_strings("ORTH", lambda string: [string])] == [
        [],
        [],
    ]
    assert [rows.shape for rows in batch.real("tensor")] == [(0, 0)] * len(texts)


def test_an_extension_is_read_as_a_string(vocab, extension):
    [doc] = docs_of(vocab, "3 km")
    doc[1]._.unit = "length"
    batch = TokenBatch([doc], learn=True)
    assert [vocab.strings[int(value)] for value in batch.column("_.unit")] == ["none", "length"]


def test_an_extension_that_is_stored_is_read_at_once_and_not_token_by_token(
    vocab, extension, monkeypatch
):
    docs = docs_of(vocab, "3 km", "", "4 nautical miles")
    docs[0][1]._.unit, docs[2][2]._.unit = "length", None
    monkeypatch.setattr(Underscore, "__init__", None)  # what token._ calls
    column = TokenBatch(docs, learn=True).column("_.unit")
    said = [vocab.strings[int(value)] for value in column]
    assert said == ["none", "length", "none", "none", "None"]


def test_a_morphological_field_is_read_with_all_its_values(vocab):
    doc = Doc(
        vocab, words=["dem", "und", "sie"], morphs=["Case=Dat|Gender=Masc,Neut", "", "Case=Acc"]
    )
    batch = TokenBatch([doc], learn=True)
    assert [vocab.strings[int(value)] for value in batch.column("MORPH.Case")] == ["Dat", "", "Acc"]
    assert [vocab.strings[int(value)] for value in batch.column("MORPH.Gender")] == [
        "Masc|Neut",
        "",
        "",
    ]


def test_strings_are_derived_once_for_each_value(vocab):
    batch = TokenBatch(docs_of(vocab, "ab c ab", "", "c"), learn=True)
    seen = []

    def letters(string):
        seen.append(string)
        return list(string)

    tokens, values = batch.map_strings("ORTH", letters)
    assert sorted(seen) == ["ab", "c"]
    assert tokens.tolist() == [0, 0, 1, 2, 2, 3]
    assert [vocab.strings[int(value)] for value in values] == ["a", "b", "c", "a", "b", "c"]


def test_only_learning_adds_strings():
    [doc] = docs_of(spacy.blank("en").vocab, "xylophon")
    derived = lambda string: [string[::-1]]  # noqa: E731
    _, predicted = TokenBatch([doc]).map_strings("ORTH", derived)
    assert "nohpolyx" not in doc.vocab.strings
    _, learnt = TokenBatch([doc], learn=True).map_strings("ORTH", derived)
    assert doc.vocab.strings[int(learnt[0])] == "nohpolyx"
    assert predicted.tolist() == learnt.tolist()


def test_a_missing_span_group_has_no_spans(vocab):
    first, second = docs_of(vocab, "a b", "c")
    first.spans["key"] = [Span(first, 0, 2, label="X")]
    assert [len(spans) for spans in TokenBatch([first, second]).span_groups("key")] == [1, 0]


def test_real_values_of_every_source(vocab, extension):
    [doc] = docs_of(vocab, "a b")
    doc.tensor = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)
    doc[1]._.size = 5
    batch = TokenBatch([doc])
    assert batch.real("tensor")[0].tolist() == [[1, 2], [3, 4]]
    assert batch.real("_.size")[0].tolist() == [[0], [5]]
    doc[0]._.size, doc[1]._.size = np.array([1, 2]), [3, 4]
    assert batch.real("_.size")[0].tolist() == [[1, 2], [3, 4]]
    assert batch.real("vector")[0].shape == (2, doc[0].vector.shape[0])


@pytest.mark.parametrize(
    "value, code",
    [
        ([1.0, 2.0], "H027"),
        (float("nan"), "H025"),
        (float("inf"), "H025"),
        (1e39, "H025"),
        ("3", "H137"),
        ("\ud800", "H137"),
        ({"a": 1}, "H137"),
        (None, "H137"),
        (1j, "H137"),
        (np.array([1j]), "H137"),
        (10**400, "H137"),
        ([[1.0], 2.0], "H137"),
    ],
)
def test_bad_real_values_are_refused(vocab, extension, value, code):
    [doc] = docs_of(vocab, "some words")
    doc[1]._.size = value
    with pytest.raises(ValueError, match=rf"{code}.*_\.size.*some words"):
        TokenBatch([doc]).real("_.size")


def test_an_attribute_that_is_no_unicode_text_is_refused(vocab, extension):
    [doc] = docs_of(vocab, "some words")
    doc[1]._.size = "\udcff"
    with pytest.raises(ValueError, match=r"^\[H132\].*udcff"):
        TokenBatch([doc]).column("_.size")


def test_a_missing_tensor_is_refused(vocab):
    with pytest.raises(ValueError, match=r"H027.*tensor"):
        TokenBatch(docs_of(vocab, "a b")).real("tensor")


def fingerprint(doc, reads):
    return TokenBatch([doc]).fingerprint(reads)


def test_the_fingerprint_changes_with_what_is_read_and_nothing_else(vocab, extension):
    reads = ["ORTH", "TAG", "_.unit", "spans:a:key", "real:tensor"]
    [doc] = docs_of(vocab, "a b")
    doc.tensor = np.zeros((2, 2), dtype=np.float32)
    prints = [fingerprint(doc, reads)]
    doc[0].lemma_ = "unread"
    assert fingerprint(doc, reads) == prints[0]
    doc[1].tag_ = "NN"
    prints.append(fingerprint(doc, reads))
    doc[1]._.unit = "km"
    prints.append(fingerprint(doc, reads))
    doc.spans["a:key"] = [Span(doc, 0, 1, label="X")]
    prints.append(fingerprint(doc, reads))
    doc.spans["a:key"] = [Span(doc, 0, 2, label="X")]
    prints.append(fingerprint(doc, reads))
    doc.tensor = np.ones((2, 2), dtype=np.float32)
    prints.append(fingerprint(doc, reads))
    [other] = docs_of(vocab, "a c")
    other.tensor = doc.tensor
    prints.append(fingerprint(other, reads))
    assert len(set(prints)) == len(prints)
    assert fingerprint(doc, []) == fingerprint(other, [])


def test_a_batch_knows_what_it_has_read(vocab, extension):
    [doc] = docs_of(vocab, "a b")
    batch = TokenBatch([doc])
    batch.shifted("NORM", 1)
    batch.span_groups("a:key")
    batch.real("_.size")
    batch.span_scores("a:key")
    assert batch.reads == {"NORM", "spans:a:key", "real:_.size", "scores:a:key"}
    batch.fingerprint(sorted(batch.reads))


@pytest.mark.slow
@pytest.mark.parametrize(
    "template",
    [
        NgramTemplate("_.tokens_said", "prefix", 2),
        NgramTemplate("_.tokens_said", "inside", 2),
        PiecesTemplate("_.tokens_said", "|"),
    ],
)
def test_an_attribute_may_say_in_a_new_text_what_no_text_has_said(template):
    Token.set_extension("tokens_said", getter=lambda token: f"{token.text}|new", force=True)
    docs = [Doc(spacy.blank("en").vocab, words=["never", "before"])]
    expected = template.events(TokenBatch(docs, learn=True))
    docs = [Doc(spacy.blank("en").vocab, words=["never", "before"])]
    found = template.events(TokenBatch(docs))
    assert "never|new" not in docs[0].vocab.strings
    assert len(found.token) and found.values.tolist() == expected.values.tolist()
    Token.remove_extension("tokens_said")
