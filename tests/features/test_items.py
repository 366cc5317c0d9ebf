"""Templates of CRF++ and Wapiti at the tokens of Docs: in words they are the strings of the toolkit."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Token
from spacy.training import Example

from spacy_hocrf.features.items import make_item
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.sequences.templates import read_templates
from spacy_hocrf.types import END, TOKEN

COLUMNS = ["ORTH", "_.c1"]
TEXTS = [
    [("The", "DT"), ("U.S.", "NNP"), ("fell", "VBD"), ("5.5", "CD"), ("The", "NNP")],
    [],
    [("x", "")],
    [("Über", "NN"), ("fell", "VBD")],
]
WAPITI = [
    "u0:%x[0,0]",
    "*1:%x[-2,0]/%x[0,1]/%x[2,0]",
    "u:%X[-1,0]",
    "b:%x[@1,0]|%x[@-1,1]|%X[@-5,0]",
    'u:%t[0,0,"^\\u"]-%t[-1,0,"\\d"]',
    '*:%m[0,0,"^.?.?"]%M[1,0,"\\u.*$"]',
    "u:%x[-9,0]%x[9,1]",
    'u:%m[0,1,"^\\U?\\u?\\D?\\u$"]/%x[0,0]',
]
CRFPP = ["U0:%x[0,0]", "U1:%x[-2,0]/%x[0,1]%x[8,0]", "B2:%x[-1,1]!"]


@pytest.fixture(autouse=True)
def extension():
    Token.set_extension("c1", default="", force=True)
    yield
    Token.remove_extension("c1")


@pytest.fixture
def vocab():
    return spacy.blank("xx").vocab


def doc_of(vocab, rows):
    doc = Doc(vocab, words=[word for word, _ in rows])
    for token, (_, value) in zip(doc, rows):
        token._.c1 = value
    return doc


@pytest.mark.slow
@pytest.mark.parametrize(
    "toolkit, line", [("wapiti", line) for line in WAPITI] + [("crf++", line) for line in CRFPP]
)
def test_each_token_has_the_string_of_the_toolkit(vocab, toolkit, line):
    batch = TokenBatch([doc_of(vocab, rows) for rows in TEXTS], learn=True)
    expected = [seen for rows in TEXTS for (seen,) in read_templates(line, toolkit).items(rows)]
    for template in make_item(toolkit, line.replace("$", r"\x24"), COLUMNS):
        events = template.events(batch)
        assert events.token.tolist() == list(range(len(batch)))
        assert [template.describe(row, vocab.strings) for row in events.values.tolist()] == expected


def test_no_text_and_no_doc(vocab):
    (template,) = make_item("crf++", "U:%x[-1,0]%x[0,1]", COLUMNS)
    for docs in ([], [doc_of(vocab, [])]):
        assert template.events(TokenBatch(docs)).values.shape == (0, 2)


def test_new_texts_have_the_values_that_were_learnt(vocab):
    (template,) = make_item("wapiti", 'u:%m[-1,0,"^.?"]', COLUMNS)
    learnt = template.events(TokenBatch([doc_of(vocab, TEXTS[0])], learn=True))
    other = template.events(TokenBatch([doc_of(spacy.blank("xx").vocab, TEXTS[0])]))
    np.testing.assert_array_equal(learnt.values, other.values)


def test_a_template_for_each_part_and_order():
    found = make_item("wapiti", "*:%x[0,0]", COLUMNS, parts=["tokens", "end"])
    places = [(template.part, template.order) for template in found]
    assert places == [(TOKEN, 0), (TOKEN, 1), (END, 0), (END, 1)]
    assert [each.name for each in found] == [
        "*:%x[0,0]",
        "*:%x[0,0]@1",
        "end:*:%x[0,0]",
        "end:*:%x[0,0]@1",
    ]


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"columns": ["NOPE"]}, "H023"),
        ({"columns": ["_.nope"]}, "H024"),
        ({"columns": ["ORTH", "LENGTH"]}, "H235.*LENGTH"),
        ({"template": "U:%x[0,0]%x[0,2]"}, "H236.*column 2.*2 attributes"),
        ({"toolkit": "crfsuite"}, r"H238.*crfsuite.*crf\+\+, wapiti"),
        ({"template": "U:%t[0,0]"}, "H288"),
        ({"template": "U:%x[0,0]$"}, r"H239.*\\x24"),
        ({"template": "U:all"}, "H288.*a command"),
        ({"template": ""}, "H288"),
        ({"parts": ["middle"]}, "H031"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, code):
    usual = {"toolkit": "crf++", "template": "U:%x[0,0]", "columns": COLUMNS}
    with pytest.raises(ValueError, match=code):
        make_item(**(usual | settings))


def test_a_component_learns_from_it_and_is_saved(vocab, tmp_path):
    nlp = spacy.blank("xx")
    line = r'u:%t[0,0,"^\u.*\d\x24"]'
    block = {"@misc": "spacy-hocrf.Item.v1", "toolkit": "wapiti", "template": line}
    features = {"@misc": "spacy-hocrf.Features.v1", "*": {"shape": block | {"columns": ["ORTH"]}}}
    pipe = nlp.add_pipe("hocrf", config={"model": {"features": features}})
    texts = [("Go A7 now", [(3, 5, "ROOM")]), ("Bx at Q12", [(6, 9, "ROOM")])]
    examples = [Example.from_dict(nlp.make_doc(t), {"entities": spans}) for t, spans in texts]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(20):
        nlp.update(examples, sgd=optimizer)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    for each in (nlp, again):
        doc = each("Meet Z99 Bo")
        assert [(ent.text, ent.label_) for ent in doc.ents] == [("Z99", "ROOM")]
    reasons = pipe.reading(doc).explain(doc.ents[0])
    assert "u:true" in str(reasons)
