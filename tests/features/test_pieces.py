"""The pieces that an attribute lists as observations: by hand, and in a component that is saved."""

import pytest
import spacy
from spacy.tokens import Doc, Token
from spacy.training import Example

from spacy_hocrf.features.pieces import PiecesTemplate, make_pieces
from spacy_hocrf.features.templates import spell
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.types import END, START, TOKEN

pytestmark = pytest.mark.slow

SAYS = {"a": "x|y", "b": "y", "c": "", "d": "|z||z|"}


@pytest.fixture(autouse=True)
def extension():
    Token.set_extension("says", getter=lambda token: SAYS.get(token.text, ""))
    yield
    Token.remove_extension("says")


def found(template, *texts):
    """(token, piece) of each event."""
    vocab = spacy.blank("xx").vocab
    batch = TokenBatch([Doc(vocab, words=text.split()) for text in texts], learn=True)
    events = template.events(batch)
    pieces = [spell(int(value), batch.strings) for (value,) in events.values]
    return [*zip(events.token.tolist(), pieces, strict=True)]


@pytest.mark.parametrize(
    "offset, expected",
    [
        (0, [(0, "x"), (0, "y"), (1, "y"), (3, "z"), (4, "x"), (4, "y")]),
        (1, [(0, "y"), (2, "z")]),
        (-1, [(1, "x"), (1, "y"), (2, "y")]),
        (4, []),
        (-9, []),
    ],
)
def test_each_piece_is_an_observation_once_and_nothing_is_beyond_the_text(offset, expected):
    assert found(PiecesTemplate("_.says", "|", offset), "a b c d", "", "a") == expected


def test_pieces_of_no_text_and_of_other_attributes():
    assert found(PiecesTemplate("_.says", "|")) == found(PiecesTemplate("_.says", "|"), "") == []
    assert found(PiecesTemplate("LOWER", "-"), "Two-way") == [(0, "two"), (0, "way")]


def test_a_template_for_each_part_attribute_and_offset():
    templates = make_pieces(["_.says", "MORPH"], window=[-1, 0], parts=["tokens", "end"])
    assert {(t.attribute, t.offset, t.part) for t in templates} == {
        (attribute, offset, part)
        for attribute in ("_.says", "MORPH")
        for offset in (-1, 0)
        for part in (TOKEN, END)
    }
    (template,) = make_pieces(["_.says"], parts=["start"], window=[1])
    assert template.name == "start:_.says[1]:pieces" and template.part == START


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"attrs": []}, "H030"),
        ({"attrs": ["NOPE"]}, "H023"),
        ({"attrs": ["_.nope"]}, "H024"),
        ({"attrs": ["LIKE_NUM"]}, "H228"),
        ({"attrs": ["MORPH"], "separator": ""}, "H229"),
        ({"attrs": ["MORPH"], "window": []}, "H030"),
        ({"attrs": ["MORPH"], "parts": ["middle"]}, "H031"),
        ({"attrs": ["MORPH"], "order": -1}, "H032"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, code):
    with pytest.raises(ValueError, match=code):
        make_pieces(**settings)


def test_a_component_learns_pieces_and_keeps_them():
    nlp = spacy.blank("xx")
    block = {"@misc": "spacy-hocrf.Pieces.v1", "attrs": ["_.says"], "window": [-1, 0, 1]}
    features = {"@misc": "spacy-hocrf.Features.v1", "*": {"said": block}}
    model = {"order": 1, "features": features}
    nlp.add_pipe("hocrf", config={"model": model})
    examples = [
        Example.from_dict(Doc(nlp.vocab, words=text.split()), {"entities": entities})
        for text, entities in [
            ("q a q", ["O", "U-X", "O"]),
            ("d b", ["U-Z", "O"]),
            ("q q d", ["O", "O", "U-Z"]),
        ]
    ]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(20):
        nlp.update(examples, sgd=optimizer)
    copied = spacy.blank("xx")
    copied.add_pipe("hocrf", config={"model": model})
    copied.from_bytes(nlp.to_bytes())
    for pipeline in (nlp, copied):
        doc = pipeline(Doc(pipeline.vocab, words=["q", "d", "a"]))
        assert [(ent.start, ent.label_) for ent in doc.ents] == [(1, "Z"), (2, "X")]
