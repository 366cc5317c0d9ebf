"""What `spacy-hocrf.Spans.v1` observes, against the definition at every segment of a text."""

from collections import Counter

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from spacy.tokens import Doc, Span, SpanGroup

from spacy_hocrf.features.records import RecordedBatch, record
from spacy_hocrf.features.spans import make_spans
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.types import END, INNER, SPAN, START, TOKEN

VOCAB = spacy.blank("xx").vocab
WHAT = ("MATCH", "START", "END", "OVERLAP", "TOKENS")
BINS = (0.5, 0.9)


@st.composite
def texts(draw, *, overlapping=True):
    """Docs with the span group "key", its spans as rows (start, end, label, score)."""
    docs, rows = [], []
    for length in draw(st.lists(st.integers(0, 6), max_size=3)):
        doc, found = Doc(VOCAB, words=["x"] * length), []
        for _ in range(draw(st.integers(0, 3)) if length else 0):
            start = draw(st.integers(0, length - 1))
            end = draw(st.integers(start + 1, length))
            score = draw(st.sampled_from([0.25, 0.5, 0.75, 0.9, 1.0]))
            if overlapping or all(end <= s or start >= e for s, e, *_ in found):
                found.append((start, end, draw(st.sampled_from("AB")), score))
        spans = [Span(doc, start, end, label=label) for start, end, label, _ in found]
        scores = [score for *_, score in found]
        doc.spans["key"] = SpanGroup(doc, name="key", spans=spans, attrs={"scores": scores})
        if not overlapping:
            doc.set_ents(spans)
        docs.append(doc)
        rows.append(found)
    return docs, rows


def fired(template, batch, first, u, v):
    """Observations in words that fire at the segment [u, v) of the Doc that begins at `first`, each
    with the sum of its weights.
    """
    events = template.events(batch)
    found = Counter()
    weights = np.ones(len(events.token)) if events.weight is None else events.weight
    ends = events.token if events.end is None else events.end - first
    for token, end, values, weight in zip(events.token - first, ends, events.values, weights):
        here = {
            START: token == u,
            END: token == v - 1,
            TOKEN: u <= token < v,
            INNER: u < token < v,
            SPAN: (token, end) == (u, v),
        }[template.part]
        if here:
            found[template.describe([int(value) for value in values], VOCAB.strings)] += weight
    return dict(found)


def expected(what, part, rows, u, v):
    """The same of a template without scores, by the definition."""
    found = set()
    for s, e, label, _ in rows:
        if what == "MATCH":
            found |= {(label, u)} if (s, e) == (u, v) else set()
        elif what == "START":
            found |= {(label, u)} if s == u else set()
        elif what == "END":
            found |= {(label, v)} if e == v else set()
        elif what == "TOKENS":
            for t in range(max(s, u), min(e, v)):
                alone, first, last = e - s == 1, t == s, t == e - 1
                place = "alone" if alone else "first" if first else "last" if last else "inside"
                found.add((f"{label}|{place}", t))
        elif part == START:
            found |= {(label, u)} if s <= u < e else set()
        else:
            found |= {(label, s)} if u < s < v else set()
    return dict(Counter(text for text, _ in found))


@pytest.mark.slow
@given(texts())
def test_what_is_observed_at_every_segment(drawn):
    docs, rows = drawn
    batch = TokenBatch(docs, learn=True)
    for template in make_spans("spans.key", WHAT):
        for doc, found, first in zip(docs, rows, batch.offsets.tolist()):
            for u in range(len(doc)):
                for v in range(u + 1, len(doc) + 1):
                    assert fired(template, batch, first, u, v) == expected(
                        template.what, template.part, found, u, v
                    )


@pytest.mark.slow
@given(texts())
def test_a_segment_that_shares_a_token_with_a_span_overlaps_it(drawn):
    docs, rows = drawn
    batch = TokenBatch(docs, learn=True)
    begins, goes_on = make_spans("spans.key", ["OVERLAP"])
    for doc, found, first in zip(docs, rows, batch.offsets.tolist()):
        for u in range(len(doc)):
            for v in range(u + 1, len(doc) + 1):
                at_all = {label for s, e, label, _ in found if s < v and u < e}
                one = fired(begins, batch, first, u, v)
                assert at_all == {*one, *fired(goes_on, batch, first, u, v)}
                if len(found) == 1:
                    assert not (one and fired(goes_on, batch, first, u, v))


@given(texts())
def test_scores_are_weights_or_bins(drawn):
    docs, rows = drawn
    batch = TokenBatch(docs, learn=True)
    plain, binned, weighted = make_spans("spans.key", ["MATCH"], ["value", "bins"], BINS)
    assert (plain.bins, binned.bins, weighted.bins) == ((), BINS, ())
    for doc, found, first in zip(docs, rows, batch.offsets.tolist()):
        for u in range(len(doc)):
            for v in range(u + 1, len(doc) + 1):
                here = [(label, score) for s, e, label, score in found if (s, e) == (u, v)]
                highest = {label: max(p for y, p in here if y == label) for label, _ in here}
                assert fired(weighted, batch, first, u, v) == pytest.approx(highest)
                bins = {
                    f"{label}|{'<0.5' if p < 0.5 else '≥0.5' if p < 0.9 else '≥0.9'}": 1
                    for label, p in here
                }
                assert fired(binned, batch, first, u, v) == bins


@given(texts(overlapping=False))
def test_entities_are_observed_as_spans_are(drawn):
    docs, _ = drawn
    batch = TokenBatch(docs, learn=True)
    for ours, theirs in zip(make_spans("ents", WHAT), make_spans("spans.key", WHAT), strict=True):
        for found, other in zip(ours.events(batch), theirs.events(batch), strict=True):
            assert_array_equal(found, other)
    assert batch.reads == {"ENT_IOB", "ENT_TYPE", "spans:key"}


def test_a_record_knows_a_missing_group_from_an_empty_one():
    docs = [Doc(VOCAB, words=["a"]) for _ in range(2)]
    docs[1].spans["key"] = []
    reads = ["spans:key"]
    missing, empty = (
        RecordedBatch([record(doc, reads)[0]], reads, VOCAB.strings).has_group("key")
        for doc in docs
    )
    assert (missing, empty) == (False, True)


def test_only_what_has_scores_reads_them():
    doc = Doc(VOCAB, words=["a"])
    doc.spans["key"] = [Span(doc, 0, 1, label="A")]
    for template in make_spans("spans.key", WHAT):
        assert len(template.events(TokenBatch([doc])).token) == 1
    for template in make_spans("spans.key", ["MATCH"], ["bins", "value"])[1:]:
        with pytest.raises(ValueError, match=r"H181.*'key'"):
            template.events(TokenBatch([doc]))


def test_a_span_of_no_token_is_nowhere():
    doc = Doc(VOCAB, words=["a"])
    doc.spans["key"] = [Span(doc, 1, 1, label="A"), Span(doc, 0, 1, label="B")]
    for template in make_spans("spans.key", WHAT):
        events = template.events(TokenBatch([doc]))
        assert {VOCAB.strings[int(row[0])] for row in events.values} == {"B"}


@pytest.mark.parametrize("docs", [[], [Doc(VOCAB)], [Doc(VOCAB, words=["a"])]])
def test_nothing_is_observed_where_there_is_no_span(docs):
    for template in [*make_spans("spans.key", WHAT, ["bins", "value"]), *make_spans("ents", WHAT)]:
        events = template.events(TokenBatch(docs))
        assert len(events.token) == 0 and events.values.shape == (0, template.width)
        assert events.values.dtype == np.uint64 and events.token.dtype == np.int64
        assert (events.weight is None) != template.weighted
        assert (events.end is None) == (template.part != SPAN)
