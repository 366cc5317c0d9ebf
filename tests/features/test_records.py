"""What was recorded of a Doc is what its templates would read of it."""

from dataclasses import fields

import numpy as np
import pytest
import spacy
from numpy.testing import assert_array_equal
from spacy.tokens import Doc, Span, Token

from spacy_hocrf.features.config import (
    make_char_ngrams,
    make_conjunction,
    make_flags,
    make_position,
    make_real,
    make_segment,
    make_token,
    make_transition,
)
from spacy_hocrf.features.flags import FLAGS
from spacy_hocrf.features.items import make_item
from spacy_hocrf.features.pieces import make_pieces
from spacy_hocrf.features.records import RECORDABLE, RecordedBatch, are_recordable, record
from spacy_hocrf.features.spans import make_spans
from spacy_hocrf.features.templates import AttributeTemplate
from spacy_hocrf.features.tokens import ATTRIBUTES, TokenBatch
from spacy_hocrf.features.vectors import Vectors
from spacy_hocrf.types import CONST, LENGTH

VOCAB = spacy.blank("en").vocab
FLAVOUR = "records_flavour"
TEMPLATES = [
    *make_token(["ORTH", "IS_TITLE", "MORPH.Number"], [-1, 0]),
    AttributeTemplate(((f"_.{FLAVOUR}", 0),)),
    *make_conjunction(["ORTH[0]", "SHAPE[1]"]),
    *make_char_ngrams("LOWER", prefix=[1, 2], suffix=[2], inside=[2]),
    *make_flags(),
    *make_item("wapiti", '*:%x[-2,0]%t[0,1,"a"]', ["ORTH", "SHAPE"]),
    *make_pieces(["ORTH"], "a", [0, 1]),
    *make_position(3),
    *make_real("tensor", [0, 1]),
    *make_segment(["LENGTH", "TEXT"], ["NORM"], bins=[1, 2], longest=2),
    *make_spans("spans.ruler"),
    *make_spans("spans.missing"),
    *make_transition(1),
]


@pytest.fixture
def docs():
    Token.set_extension(FLAVOUR, default="", force=True)
    found = []
    for text in ("A cats sat", "On mats with", "Hats"):
        doc = Doc(
            VOCAB,
            words=text.split(),
            morphs=["Number=Plur" if word.endswith("s") else "" for word in text.split()],
        )
        doc.tensor = np.linspace(0.1, 1.0, 2 * len(doc), dtype=np.float32).reshape(-1, 2)
        doc.spans["ruler"] = [Span(doc, 0, len(doc), label="R"), Span(doc, 0, 1, label="S")]
        doc[0]._.set(FLAVOUR, f"flavour of {text}")
        found.append(doc)
    yield found
    Token.remove_extension(FLAVOUR)


def read_by(docs):
    batch = TokenBatch(docs, learn=True)
    for template in TEMPLATES:
        if template.part not in (CONST, LENGTH):
            template.events(batch)
    return batch.reads


def test_events_of_records_are_those_of_the_docs_at_that_time(docs):
    reads = read_by(docs)
    assert {
        "ORTH",
        "MORPH.Number",
        f"_.{FLAVOUR}",
        "real:tensor",
        "spans:ruler",
        "spans:missing",
    } < reads
    records, fingerprints = zip(*(record(doc, reads) for doc in docs), strict=True)
    assert fingerprints == tuple(TokenBatch([doc]).fingerprint(sorted(reads)) for doc in docs)
    asked = [template for template in TEMPLATES if template.part not in (CONST, LENGTH)]
    whole = TokenBatch(docs)
    events = {template.name: template.events(whole) for template in asked}
    for doc in docs:
        doc.spans.clear()
        doc.tensor[:] = 0
        doc[0]._.set(FLAVOUR, "another")
    recorded = RecordedBatch(records, reads, VOCAB.strings)
    assert_array_equal(recorded.offsets, whole.offsets)
    assert_array_equal(recorded.sequence, whole.sequence)
    assert len(recorded) == len(whole)
    for template in asked:
        assert len(events[template.name].token) or "missing" in template.name
        for before, after in zip(events[template.name], template.events(recorded), strict=True):
            assert_array_equal(before, after, err_msg=template.name)
    assert recorded.reads == reads


def test_white_space_is_known_where_it_was_asked_for():
    doc = Doc(VOCAB, words=["a", " ", "b"])
    found, _ = record(doc, ["IS_SPACE", "ORTH"])
    assert (
        RecordedBatch([found, found], ["IS_SPACE", "ORTH"], VOCAB.strings).blank.tolist()
        == [False, True, False] * 2
    )


@pytest.mark.parametrize("names", [(*ATTRIBUTES, "FLAGS"), ("FLAGS",), ("IS_TITLE", "NORM"), ()])
def test_every_attribute_keeps_its_values(names):
    texts = (["O'Neill-Å", "U.S.", "12", ","], ["(", "IT", "http://a.b", "e@f.gh"])
    docs = [Doc(VOCAB, words=words, ents=["B-X", "I-X", "O", "O"]) for words in texts]
    recorded = RecordedBatch([record(doc, names)[0] for doc in docs], names, VOCAB.strings)
    whole = TokenBatch(docs)
    for name in names:
        assert recorded.column(name).dtype == np.uint64
        assert_array_equal(recorded.column(name), whole.column(name), err_msg=name)
    assert len(FLAGS) <= 16  # a recorded value has two bytes
    assert len(recorded) == 8


def test_arrays_keep_their_digits():
    for value, dtype in ((0.5, np.float32), (0.1, np.float64)):
        Token.set_extension(FLAVOUR, default=value, force=True)
        found, _ = record(Doc(VOCAB, words=["a"]), [f"real:_.{FLAVOUR}"])
        assert found.real[0].dtype == dtype
        assert RecordedBatch([found], [f"real:_.{FLAVOUR}"], VOCAB.strings).real(f"_.{FLAVOUR}")[
            0
        ].tolist() == [[value]]
    Token.remove_extension(FLAVOUR)


def test_only_our_own_templates_are_known_to_be_recordable():
    class Mine(type(TEMPLATES[0])):
        """Somebody's own."""

    class Foreign:
        name, part, order, width = "mine", 0, 0, 0

    assert are_recordable(TEMPLATES)
    here = {kind for kind in RECORDABLE if kind.__module__.startswith("spacy_hocrf.features.")}
    assert {type(template) for template in TEMPLATES} == here - {Vectors}  # a dense score
    assert not are_recordable([*TEMPLATES, Foreign()])
    assert not are_recordable(
        [Mine(*(getattr(TEMPLATES[0], f.name) for f in fields(TEMPLATES[0])))]
    )
