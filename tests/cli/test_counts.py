"""Counts of items against spaCy's own scorers."""

from itertools import pairwise

import numpy as np
import pytest
import spacy
from pytest import approx
from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from spacy_hocrf.annotation.scoring import count_whole
from spacy_hocrf.cli.counts import EntsScorer, SpansScorer, TagsScorer, count_items, is_complete
from spacy_hocrf.cli.randomization import f1

LABELS = ("A", "B", "C")
VOCAB = spacy.blank("en").vocab


def random_doc(rng, tokens=12, *, holes=False):
    """A Doc with random entities, overlapping spans and tags; with holes, some tokens are not
    annotated.
    """
    doc = Doc(VOCAB, words=[str(i) for i in range(tokens)])
    cuts = np.flatnonzero(rng.random(tokens) < 0.6).tolist()
    spans = [
        Span(doc, u, v, label=str(rng.choice(LABELS)))
        for u, v in pairwise(cuts)
        if rng.random() < 0.7
    ]
    missing = [doc[i : i + 1] for i in range(tokens) if rng.random() < 0.3] if holes else []
    missing = [
        one
        for one in missing
        if all(one.end <= span.start or one.start >= span.end for span in spans)
    ]
    doc.set_ents(spans, missing=missing, default="outside")
    starts = rng.integers(0, tokens - 3, 5).tolist()
    doc.spans["sc"] = [
        Span(doc, u, u + int(rng.integers(1, 4)), label=str(rng.choice(LABELS))) for u in starts
    ]
    for token in doc:
        token.tag_ = "" if holes and rng.random() < 0.3 else str(rng.choice(LABELS))
    return doc


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(5)
    found, gold = ([random_doc(rng, holes=holes) for _ in range(40)] for holes in (False, True))
    gold[0] = Doc(VOCAB, words=[token.text for token in gold[0]])  # nothing known
    return found, gold


def scores(counts):
    """Micro F1, and F1 by label."""
    right, found, wanted = (
        counts.correct[0].sum(axis=0),
        counts.predicted[0].sum(axis=0),
        counts.gold.sum(axis=0),
    )
    return float(f1(right.sum(), found.sum(), wanted.sum())), dict(
        zip(counts.labels, f1(right, found, wanted))
    )


def as_examples(pairs):
    return [Example(x, y) for x, y in zip(*pairs)]


def test_entities_are_counted_as_spacy_counts_them(pairs):
    found, gold = pairs
    expected = get_ner_prf(as_examples(pairs))
    micro, by_label = scores(count_items(EntsScorer(), [found], gold))
    assert 0 < expected["ents_f"] < 1
    assert micro == approx(expected["ents_f"])
    assert by_label == approx({label: prf["f"] for label, prf in expected["ents_per_type"].items()})


def test_spans_are_counted_as_spacy_counts_them(pairs):
    found, gold = pairs
    settings = {
        "getter": lambda doc, key: doc.spans["sc"],
        "has_annotation": lambda doc: "sc" in doc.spans,
        "allow_overlap": True,
    }
    expected = Scorer.score_spans(as_examples(pairs), "spans_sc", **settings)
    micro, by_label = scores(count_items(SpansScorer("sc"), [found], gold))
    assert 0 < expected["spans_sc_f"] < 1
    assert micro == approx(expected["spans_sc_f"])
    assert by_label == approx(
        {label: prf["f"] for label, prf in expected["spans_sc_per_type"].items()}
    )


def test_f1_of_tags_is_their_accuracy(pairs):
    found, gold = pairs
    expected = Scorer.score_token_attr(
        as_examples(pairs), "tag", getter=lambda token, _: token.tag_, missing_values={""}
    )
    micro, _ = scores(count_items(TagsScorer(), [found], gold))
    assert 0 < expected["tag_acc"] < 1
    assert micro == approx(expected["tag_acc"])


def test_an_ignored_tag_is_neither_predicted_nor_annotated():
    gold, found = (
        Doc(VOCAB, words=list("wxyz"), tags=tags)
        for tags in (["A", "C", "C", "B"], ["A", "A", "C", "C"])
    )
    counts = count_items(TagsScorer(), [[found]], [gold], ignore=["C"])
    assert counts.labels == ("A", "B")
    assert counts.correct.tolist() == [[[1, 0]]]
    assert counts.predicted.tolist() == [[[2, 0]]]
    assert counts.gold.tolist() == [[1, 1]]


def test_labels_restrict_and_must_occur(pairs):
    found, gold = pairs
    everything, some = (
        count_items(EntsScorer(), [found], gold, labels=labels) for labels in ((), ("C", "A"))
    )
    assert everything.labels == LABELS and some.labels == ("A", "C")
    assert some.correct.tolist() == everything.correct[..., [0, 2]].tolist()
    with pytest.raises(ValueError, match=r"H072.*'D'.*doc\.ents.*A, B, C"):
        count_items(EntsScorer(), [found], gold, labels=["D"])


@pytest.mark.parametrize("scorer", [EntsScorer(), SpansScorer("sc"), TagsScorer()])
def test_a_text_without_tokens_is_none_that_is_annotated_completely(scorer):
    doc = Doc(VOCAB, words=[])
    doc.spans["sc"] = []
    assert not is_complete(scorer, doc)
    assert not count_items(scorer, [[doc]], [doc]).whole().size


@pytest.mark.parametrize("name", ["hocrf", "hocrf_spans"])
def test_texts_are_complete_for_commands_that_are_so_for_evaluate(name):
    target = spacy.blank("en").add_pipe(name).target
    scorer = EntsScorer() if name == "hocrf" else SpansScorer("sc")
    docs = [Doc(VOCAB, words=["Ada", " ", "ran"]) for _ in range(4)]
    docs[0].set_ents([Span(docs[0], 0, 1, "A")], missing=[docs[0][1:2]], default="outside")
    docs[1].set_ents([Span(docs[1], 0, 1, "A")], default="missing")
    docs[0].spans["sc"] = docs[0].ents
    docs[1].spans["sc"] = SpanGroup(docs[1], attrs={"unknown": [[2, 3]]}, spans=docs[1].ents)
    docs += [Doc(VOCAB, words=[]), Doc(VOCAB, words=[" "])]
    found = [count_whole([Example(doc.copy(), doc)], target)[1] for doc in docs]
    assert found == [is_complete(scorer, doc) for doc in docs] == [1, 0, 0, 0, 0, 0]


def test_documents_stay_apart():
    docs = [Doc(VOCAB, words=["x", "y"], ents=ents) for ents in (["B-A", "O"], ["B-A", "B-A"])]
    counts = count_items(EntsScorer(), [docs, docs[::-1]], docs)
    assert counts.predicted.tolist() == [[[1], [2]], [[2], [1]]]
    assert counts.correct.tolist() == [[[1], [2]], [[1], [1]]]
    assert counts.gold.tolist() == [[1], [2]]
