"""Every template's events on small Docs, worked out by hand."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Token

from spacy_hocrf.features.flags import FLAGS
from spacy_hocrf.features.segments import LengthTemplate, TextTemplate, TransitionTemplate
from spacy_hocrf.features.templates import (
    AttributeTemplate,
    FlagTemplate,
    NgramTemplate,
    PositionTemplate,
    RealTemplate,
    parse_term,
    spell,
)
from spacy_hocrf.features.tokens import EDGE, TokenBatch

ALL = [
    AttributeTemplate((("ORTH", -1), ("SHAPE", 0))),
    NgramTemplate("ORTH", "prefix", 1),
    FlagTemplate(FLAGS),
    PositionTemplate(3),
    RealTemplate("tensor", 0),
    TextTemplate("ORTH", 2),
]


@pytest.fixture(scope="module")
def vocab():
    return spacy.blank("xx").vocab


def batch_of(vocab, *texts):
    return TokenBatch([Doc(vocab, words=text.split()) for text in texts], learn=True)


def words(batch, template):
    """[(token, strings)] or, with an end, [(token, end, strings)]."""
    events = template.events(batch)
    rows = [tuple(spell(int(value), batch.strings) for value in row) for row in events.values]
    if events.end is None:
        return list(zip(events.token.tolist(), rows, strict=True))
    return list(zip(events.token.tolist(), events.end.tolist(), rows, strict=True))


def test_attributes_in_a_window(vocab):
    batch = batch_of(vocab, "a b", "c")
    assert words(batch, AttributeTemplate((("ORTH", 1),))) == [
        (0, ("b",)),
        (1, ("<edge>",)),
        (2, ("<edge>",)),
    ]
    assert words(batch, AttributeTemplate((("ORTH", 2),))) == [(0, ("<edge>",))]
    assert words(batch, AttributeTemplate((("ORTH", -3),))) == []


def test_attributes_taken_together_need_every_one_of_their_places(vocab):
    batch = batch_of(vocab, "a b", "c")
    pairs = words(batch, AttributeTemplate((("ORTH", -2), ("ORTH", 1))))
    assert pairs == [(1, ("<edge>", "<edge>"))]
    assert words(batch, AttributeTemplate((("ORTH", -1), ("ORTH", 0)))) == [
        (0, ("<edge>", "a")),
        (1, ("a", "b")),
        (2, ("<edge>", "c")),
    ]


@pytest.mark.parametrize(
    "kind, size, expected",
    [
        ("prefix", 2, [(0, "ab"), (2, "ab")]),
        ("suffix", 2, [(0, "ba"), (2, "bc")]),
        ("inside", 2, [(0, "ab"), (0, "ba"), (2, "ab"), (2, "bc")]),
        ("inside", 1, [(0, "a"), (0, "b"), (1, "x"), (2, "a"), (2, "b"), (2, "c")]),
        ("prefix", 5, [(0, "ababa")]),
        ("prefix", 6, []),
    ],
)
def test_letter_ngrams_of_tokens_that_are_long_enough(vocab, kind, size, expected):
    batch = batch_of(vocab, "ababa x", "abc")
    found = sorted(words(batch, NgramTemplate("ORTH", kind, size)))
    assert found == [(token, (text,)) for token, text in expected]


@pytest.mark.parametrize(
    "offset, expected",
    [
        (0, [(0, "IS_TITLE"), (1, "HAS_DIGIT"), (1, "HAS_HYPHEN"), (3, "HAS_DIGIT")]),
        (1, [(0, "HAS_DIGIT"), (0, "HAS_HYPHEN")]),
        (-1, [(1, "IS_TITLE"), (2, "HAS_DIGIT"), (2, "HAS_HYPHEN")]),
        (3, []),
    ],
)
def test_flags_that_are_true_in_a_window(vocab, offset, expected):
    batch = batch_of(vocab, "Ada 4-b xs", "", "7")
    template = FlagTemplate(("HAS_HYPHEN", "IS_TITLE", "HAS_DIGIT"), offset)
    events = template.events(batch)
    described = [template.describe(row, batch.strings) for row in events.values.tolist()]
    assert sorted(zip(events.token.tolist(), described, strict=True)) == expected


def test_position_in_equal_parts_of_the_doc(vocab):
    events = PositionTemplate(3).events(batch_of(vocab, "a b c d e f", "g", "", "h i"))
    assert events.token.tolist() == list(range(9))
    assert events.values[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 0, 0, 1]


def test_real_values_in_a_window_leave_zeros_out(vocab):
    batch = batch_of(vocab, "a b", "", "c")
    batch.docs[0].tensor = np.array([[0.5, 0.0], [0.0, -2.0]], dtype=np.float32)
    batch.docs[2].tensor = np.array([[1.0, 3.0]], dtype=np.float32)
    for offset, expected in [
        (0, [(0, 0, 0.5), (1, 1, -2.0), (2, 0, 1.0), (2, 1, 3.0)]),
        (1, [(0, 1, -2.0)]),
        (-1, [(1, 0, 0.5)]),
    ]:
        events = RealTemplate("tensor", offset).events(batch)
        found = zip(
            events.token.tolist(), events.values[:, 0].tolist(), events.weight.tolist(), strict=True
        )
        assert list(found) == expected
        assert events.weight.dtype == np.float32


def test_the_text_of_every_segment_up_to_a_length(vocab):
    batch = batch_of(vocab, "a b c", "d")
    found = words(batch, TextTemplate("ORTH", 2))
    expected = [(0, 1, "a"), (1, 2, "b"), (2, 3, "c"), (3, 4, "d"), (0, 2, "a b"), (1, 3, "b c")]
    assert [
        (start, end, " ".join(filter(None, values))) for start, end, values in found
    ] == expected


@pytest.mark.parametrize("template", ALL, ids=lambda template: template.name)
@pytest.mark.parametrize("texts", [(), ("",), ("", "A", "")])
def test_templates_cope_with_empty_docs_and_single_tokens(vocab, template, texts):
    batch = batch_of(vocab, *texts)
    for doc in batch.docs:
        doc.tensor = np.ones((len(doc), 1), dtype=np.float32)
    events = template.events(batch)
    assert set(events.token.tolist()) == ({0} if "A" in texts else set())
    assert events.values.shape == (len(events.token), template.width)
    assert events.values.dtype == np.uint64


@pytest.mark.parametrize("template", [LengthTemplate((1, 2)), TransitionTemplate(1)])
def test_lengths_and_label_patterns_are_known_without_a_doc(vocab, template):
    assert template.events(batch_of(vocab, "a b")).token.tolist() == []


@pytest.mark.parametrize(
    "template, values, text",
    [
        (AttributeTemplate((("ORTH", 0), ("IS_TITLE", 0))), ["a", 1], "a|1"),
        (AttributeTemplate((("IS_TITLE", 1),)), [int(EDGE)], "<edge>"),
        (AttributeTemplate((("POS", 0),)), ["NOUN"], "NOUN"),
        (AttributeTemplate((("FLAGS", -1), ("FLAGS", 0))), [0, 20], "no flag|IS_DIGIT+LIKE_NUM"),
        (AttributeTemplate((("FLAGS", -1),)), [int(EDGE)], "<edge>"),
        (NgramTemplate("ORTH", "prefix", 1), ["a"], "a"),
        (NgramTemplate("ORTH", "prefix", 1), [2**63 + 1], str(2**63 + 1)),
        (PositionTemplate(3), [2], "2"),
        (RealTemplate("tensor", 0), [1], "1"),
        (TextTemplate("ORTH", 4), ["a", "b", 0, 0], "a b"),
        (TextTemplate("IS_TITLE", 2), [1, 0], "1"),
        (LengthTemplate((1, 2, 5)), [0], "1"),
        (LengthTemplate((1, 2, 5)), [1], "2-4"),
        (LengthTemplate((1, 2, 5)), [2], "5+"),
        (TransitionTemplate(1), [], ""),
    ],
)
def test_an_observation_in_words(vocab, template, values, text):
    values = [vocab.strings.add(value) if isinstance(value, str) else value for value in values]
    assert template.describe(values, vocab.strings) == text


@pytest.mark.parametrize("name", ["tag", "pos.1", "词性", "शब्द", "pos-tag"])
def test_terms_name_extension_attributes_in_any_script(name):
    Token.set_extension(name, default="", force=True)
    assert parse_term(f"_.{name}[-1]") == (f"_.{name}", -1)
    assert parse_term(f"_.{name}") == (f"_.{name}", 0)
    Token.remove_extension(name)


@pytest.mark.parametrize("term", ["", "NORM[", "NORM[a]", "NORM[1]x", "[1]", "NORM [1]", "1NORM"])
def test_bad_terms_are_refused(term):
    with pytest.raises(ValueError) as caught:
        parse_term(term)
    assert f"[H026] '{term}'" in str(caught.value)
    assert "NORM[-1]" in str(caught.value)
