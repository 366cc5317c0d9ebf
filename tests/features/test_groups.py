"""Spans of Docs as arrays, against what spaCy says of the same Docs, and their scores."""

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, SpanGroup

from spacy_hocrf.features.groups import entities
from spacy_hocrf.features.spans import make_spans
from spacy_hocrf.features.tokens import TokenBatch

VOCAB = spacy.blank("xx").vocab
LABELS = [VOCAB.strings.add(label) for label in ("", "A", "B")]


def scored(doc, scores, key="key"):
    spans = [Span(doc, i, i + 1, label="A") for i in range(len(doc))]
    attrs = {} if scores is None else {"scores": scores}
    doc.spans[key] = SpanGroup(doc, name=key, spans=spans, attrs=attrs)
    return doc


@pytest.mark.slow
@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(LABELS)), max_size=6)))
def test_entities_are_those_of_spacy(texts):
    docs = []
    for rows in texts:
        doc = Doc(VOCAB, words=["x"] * len(rows))
        values = np.array(rows, dtype=np.uint64).reshape(-1, 2)
        # spaCy allows no entity to go on where none has begun
        for i, (iob, _) in enumerate(rows):
            if iob == 1 and (i == 0 or values[i - 1, 0] in (0, 2) or values[i - 1, 1] == 0):
                values[i, 0] = 2
            values[i, 1] = 0 if values[i, 0] in (0, 2) else values[i, 1]
            if values[i, 0] == 1:
                values[i, 1] = values[i - 1, 1]
        doc.from_array(["ENT_IOB", "ENT_TYPE"], values)
        docs.append(doc)
    batch = TokenBatch(docs)
    found = entities(batch.column("ENT_IOB"), batch.column("ENT_TYPE"))
    expected = [
        (first + ent.start, first + ent.end, ent.label)
        for doc, first in zip(docs, batch.offsets.tolist())
        for ent in doc.ents
    ]
    assert list(zip(*(column.tolist() for column in found))) == expected


def test_spans_of_several_docs_are_counted_over_the_batch():
    docs = [Doc(VOCAB, words=list(text)) for text in ("ab", "", "cde", "f")]
    docs[0].spans["key"] = [Span(docs[0], 0, 2, label="A")]
    docs[2].spans["key"] = [Span(docs[2], 1, 3, label="B"), Span(docs[2], 0, 1, label="A")]
    batch = TokenBatch(docs)
    start, end, label = batch.laid_spans("key")
    assert start.tolist() == [0, 3, 2] and end.tolist() == [2, 5, 3]
    assert [VOCAB.strings[value] for value in label.tolist()] == ["A", "B", "A"]
    assert batch.has_group("key") and not batch.has_group("other")
    assert [len(column) for column in batch.laid_spans("other")] == [0, 0, 0]
    assert batch.reads == {"spans:key", "spans:other"}


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda s: np.array(s, dtype=np.float32)])
def test_scores_of_any_sequence(kind):
    doc = scored(Doc(VOCAB, words=["a", "b"]), kind([0.5, 1]))
    batch = TokenBatch([doc, Doc(VOCAB, words=["c"]), scored(Doc(VOCAB, words=[]), None)])
    found = batch.span_scores("key")
    assert [scores.tolist() for scores in found] == [[0.5, 1.0], [], []]
    assert {scores.dtype for scores in found} == {np.dtype(np.float64)}
    assert batch.laid_scores("key").tolist() == [0.5, 1.0]
    assert batch.reads == {"scores:key"}


@pytest.mark.parametrize(
    "scores, words",
    [
        (None, "have none for scores"),
        ([], r"have \[\] for scores"),
        ([0.5], r"have \[0.5\] for scores"),
        ([0.5, float("nan")], "nan"),
        ([0.5, float("inf")], "inf"),
        (["0.5", "1"], "'0.5'"),
        ([[0.5, 0.5], [0.5, 0.5]], r"\[\[0.5"),
        ([0.5, 1j], "1j"),
        (0.5, "have 0.5 for scores"),
    ],
)
def test_scores_that_are_missing_or_no_numbers_are_refused(scores, words):
    doc = scored(Doc(VOCAB, words=["Ada", "slept"]), scores)
    expected = rf"^\[H181\] The 2 spans of doc.spans\['key'\].*{words}.*'Ada slept'.*features"
    with pytest.raises(ValueError, match=expected):
        TokenBatch([doc]).span_scores("key")


def test_spans_and_scores_are_read_once_a_batch(monkeypatch):
    doc = scored(Doc(VOCAB, words=["a", "b"]), [0.5, 1.0])
    batch = TokenBatch([doc])
    before = [template.events(batch) for template in make_spans("spans.key", scores=["bins"])]
    for name in ("span_groups", "span_scores"):
        monkeypatch.setattr(TokenBatch, name, None)
    after = [template.events(batch) for template in make_spans("spans.key", scores=["bins"])]
    for one, other in zip(before, after, strict=True):
        for column, same in zip(one, other, strict=True):
            assert np.array_equal(column, same)


def test_a_fingerprint_knows_scores_and_missing_groups():
    prints = set()
    for scores in ([0.5], [0.75]):
        doc = scored(Doc(VOCAB, words=["a"]), scores)
        prints.add(TokenBatch([doc]).fingerprint(["scores:key", "spans:key"]))
    for groups in ((), ("key",)):
        doc = Doc(VOCAB, words=["a"])
        for key in groups:
            doc.spans[key] = []
        prints.add(TokenBatch([doc]).fingerprint(["scores:key", "spans:key"]))
    assert len(prints) == 4
