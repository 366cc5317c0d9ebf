"""Spans on their way from one component to another: through a pipeline, and through a corpus."""

import numpy as np
import pytest
import spacy
from small_corpus import found, with_entities
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.util import load_model, registry

from spacy_hocrf.annotation.readers import SpansCorpus, read_group, write_group

PATTERNS = [{"label": "WHO", "pattern": "Ada Lovelace"}, {"label": "WHERE", "pattern": "Paris"}]


@pytest.fixture
def nlp():
    made = spacy.blank("xx")
    made.add_pipe("entity_ruler").add_patterns(PATTERNS)
    made.add_pipe("hocrf_ents_to_spans")
    return made


def triples(spans):
    return [(span.start, span.end, span.label_) for span in spans]


def written(tmp_path, docs):
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "a.spacy")
    return tmp_path / "a.spacy"


def test_entities_are_moved_out_of_the_way(nlp, tmp_path):
    nlp.to_disk(tmp_path / "model")
    for pipeline in (nlp, load_model(tmp_path / "model")):
        doc = pipeline("Ada Lovelace likes Paris")
        assert triples(doc.spans["ner"]) == [(0, 2, "WHO"), (3, 4, "WHERE")]
        assert doc.spans["ner"].attrs == {} and doc.spans["ner"].name == "ner"
        assert not doc.ents and not doc.has_annotation("ENT_IOB")
        assert triples(pipeline("It rains").spans["ner"]) == []


def test_what_is_left_of_entities_is_nothing(nlp):
    doc = with_entities(Doc(nlp.vocab, words=["a", "b", "c"]), (0, 2, "X"), blocked=[(2, 3)])
    doc.ents = [Span(doc, 0, 2, label="X", kb_id="Q1")]
    nlp.get_pipe("hocrf_ents_to_spans")(doc)
    attrs = ["ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID"]
    assert not doc.to_array(attrs).any()


def test_the_key_is_a_setting():
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf_ents_to_spans", config={"spans_key": "other"})
    doc = with_entities(nlp.make_doc("a b"), (0, 1, "X"))
    assert triples(nlp(doc).spans["other"]) == [(0, 1, "X")]


@pytest.mark.slow
@pytest.mark.parametrize("scores", [None, [0.5, 0.25], np.array([0.5, 0.25], dtype=np.float32)])
def test_groups_are_handed_over_with_their_scores(scores):
    one, other = (Doc(spacy.blank("xx").vocab, words=["a", "b", "c"]) for _ in range(2))
    spans = [Span(one, 1, 3, label="X"), Span(one, 0, 2, label="Y")]
    attrs = {} if scores is None else {"scores": scores}
    one.spans["a"] = SpanGroup(one, name="a", spans=spans, attrs=attrs)
    write_group(other, "b", read_group(one, "a"))
    assert triples(other.spans["b"]) == [(1, 3, "X"), (0, 2, "Y")]
    assert other.spans["b"].attrs == ({} if scores is None else {"scores": [0.5, 0.25]})
    assert read_group(one, "missing") == ((), None)


def annotated(nlp, text, rows, scores=None, words=None):
    """A Doc with an entity, and the group "sc" of these rows (start, end, label)."""
    doc = nlp.make_doc(text) if words is None else Doc(nlp.vocab, words=words)
    doc.set_ents([Span(doc, 0, 1, label="GOLD")])
    spans = [Span(doc, start, end, label=label) for start, end, label in rows]
    attrs = {} if scores is None else {"scores": scores}
    doc.spans["sc"] = SpanGroup(doc, name="sc", spans=spans, attrs=attrs)
    return doc


def test_a_corpus_shows_its_span_groups_as_if_they_had_just_been_found(tmp_path):
    nlp = spacy.blank("xx")
    docs = [
        annotated(nlp, "Ada likes Paris", [(2, 3, "X"), (0, 3, "Y")], [0.5, 1.0]),
        annotated(nlp, "It rains", []),
        nlp.make_doc("nothing"),
    ]
    reader = registry.readers.get("spacy-hocrf.SpansCorpus.v1")
    first, second, third = reader(written(tmp_path, docs), ["sc", "gone"])(nlp)
    assert triples(first.predicted.spans["sc"]) == [(2, 3, "X"), (0, 3, "Y")]
    assert first.predicted.spans["sc"].attrs == {"scores": [0.5, 1.0]}
    assert triples(first.predicted.ents) == [] and triples(first.reference.ents) == [(0, 1, "GOLD")]
    assert list(second.predicted.spans) == ["sc"] and second.predicted.spans["sc"].attrs == {}
    assert list(third.predicted.spans) == []


def test_spans_that_fit_no_tokens_are_lost_with_their_scores(tmp_path):
    nlp = spacy.blank("xx")
    doc = Doc(nlp.vocab, words=["go", "to", "P", "aris"], spaces=[True, True, False, False])
    spans = [Span(doc, 2, 3, label="LOST"), Span(doc, 2, 4, label="KEPT")]
    doc.spans["sc"] = SpanGroup(doc, spans=spans, attrs={"scores": [0.1, 0.2]})
    path = written(tmp_path, [doc])
    [example] = SpansCorpus(path, ["sc"], gold_preproc=True)(nlp)
    assert triples(example.predicted.spans["sc"]) == [(2, 3, "LOST"), (2, 4, "KEPT")]
    [example] = SpansCorpus(path, ["sc"])(nlp)
    assert triples(example.predicted.spans["sc"]) == [(2, 3, "KEPT")]
    assert example.predicted.spans["sc"].attrs == {"scores": [0.2]}


def test_a_corpus_can_be_limited(tmp_path):
    nlp = spacy.blank("xx")
    path = written(tmp_path, [annotated(nlp, text, []) for text in ("a", "b", "c")])
    assert [eg.text for eg in SpansCorpus(path, ["sc"], limit=2)(nlp)] == ["a", "b"]
    assert [eg.text for eg in SpansCorpus(path, ["sc"])(nlp)] == ["a", "b", "c"]


def test_wrong_settings_of_a_corpus_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^\[H112\]"):
        SpansCorpus(None, ["sc"])
    with pytest.raises(ValueError, match=r"^\[H110\].*limit"):
        SpansCorpus(tmp_path, ["sc"], limit=-1)
    nlp = spacy.blank("xx")
    path = written(tmp_path, [annotated(nlp, "Ada slept", [(0, 1, "X")], [0.5, 0.5])])
    with pytest.raises(ValueError, match=r"^\[H181\].*'sc'.*'Ada slept'"):
        list(SpansCorpus(path, ["sc"])(nlp))


def test_a_component_of_ours_decides_after_another_one(tmp_path):
    nlp = spacy.blank("xx")
    nlp.add_pipe("entity_ruler").add_patterns(PATTERNS)
    nlp.add_pipe("hocrf_ents_to_spans")
    blocks = {
        "labels": {"@misc": "spacy-hocrf.Transition.v1"},
        "ner": {"@misc": "spacy-hocrf.Spans.v1", "source": "spans.ner"},
    }
    features = {"@misc": "spacy-hocrf.Features.v1", "*": blocks}
    nlp.add_pipe("hocrf", config={"model": {"features": features}, "trainer": {"sigma": 10.0}})
    docs = [
        annotated(nlp, "Ada Lovelace slept", [(0, 2, "WHO")]),
        annotated(nlp, "Paris rains", [(0, 1, "WHERE")]),
        annotated(nlp, "It rains", []),
    ]
    for doc, ents in zip(docs, ([(0, 2, "PERSON")], [], [])):  # towns are none
        doc.set_ents([Span(doc, *ent) for ent in ents])
        doc.spans["ner"] = doc.spans["sc"]
    examples = list(SpansCorpus(written(tmp_path, docs), ["ner"])(nlp))
    optimizer = nlp.initialize(lambda: examples)
    nlp.get_pipe("entity_ruler").add_patterns(PATTERNS)
    for _ in range(40):
        nlp.update(examples, sgd=optimizer)
    assert found(nlp("In Paris Ada Lovelace slept")) == [(2, 4, "PERSON")]
