"""`python -m spacy hocrf convert`: what nobody has said of a text is unknown, and learnt as such."""

import json

import commands
import converting
import numpy as np
import pytest
import spacy
from converting import lines, named
from small_corpus import documents, untrained
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus

from spacy_hocrf.cli.convert.docs import OVERLAPPING, UNALIGNED

WHITE = "spans with white space at an end: without it"
NO_LIST = "texts without a list of spans (spans, label, labels, entities, ents): unknown"


def read(tmp_path, rows, name="a.jsonl", **settings):
    """The Docs of entries, and the losses."""
    docs, report = converting.read(tmp_path / name, lines(*rows), **settings)
    return docs, report.losses


def known(doc):
    """Does each token have annotation?"""
    return [token.ent_iob != 0 for token in doc]


def studio(text, result=None, **members):
    annotations = [] if result is None else [{"result": [{"value": each} for each in result]}]
    return {"data": {"text": text}, "annotations": annotations, **members}


ADA = {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}


# -------------------- who has looked at a text


@pytest.mark.parametrize(
    "entry, what",
    [
        (studio("Max ran"), "tasks that nobody has annotated: unknown"),
        (studio("Max ran", annotations=None), "tasks that nobody has annotated: unknown"),
        (
            studio("Max ran", annotations=[{"was_cancelled": True, "result": []}]),
            "tasks that were skipped: unknown",
        ),
        (
            studio("Max ran", annotations=[{"result": None}]),
            "annotations without a result: unknown",
        ),
        ({"text": "Max ran"}, NO_LIST),
        ({"text": "Max ran", "spans": None}, NO_LIST),
        ({"text": "Max ran", "label": None, "id": 3}, NO_LIST),
        ({"text": "Max ran", "label": "sports"}, NO_LIST),
        (
            {"text": "Max ran", "labels": [], "annotation_approver": None},
            "texts that nobody has approved: unknown",
        ),
    ],
)
@pytest.mark.parametrize("into", ["ents", "k", "tags"])
def test_what_nobody_has_looked_at_is_unknown(tmp_path, entry, what, into):
    (first, second), losses = read(tmp_path, [studio("Ada ran", [ADA]), entry], into=into)
    assert not second.has_annotation("ENT_IOB") and not second.has_annotation("TAG")
    assert "k" not in second.spans and second.text == "Max ran"
    assert [(loss.place, loss.times) for loss in losses if loss.what == what] == [("line 2", 1)]
    if into == "ents":
        assert named(first.ents) == [("Ada", "PER")] and all(known(first))


@pytest.mark.parametrize(
    "entry",
    [
        studio("Max ran", []),
        {"text": "Max ran", "spans": []},
        {"text": "Max ran", "label": []},
        {"text": "Max ran", "label": [], "annotation_approver": "ann"},
    ],
)
def test_who_has_looked_and_found_nothing_says_so(tmp_path, entry):
    (doc,), losses = read(tmp_path, [entry])
    assert [token.ent_iob_ for token in doc] == ["O", "O"] and not losses
    (doc,), _ = read(tmp_path, [entry], into="k")
    assert len(doc.spans["k"]) == 0 and "unknown" not in doc.spans["k"].attrs


def test_approval_counts_where_somebody_approves(tmp_path):
    row = {"text": "Ada ran", "label": [[0, 3, "PER"]], "annotation_approver": None}
    (doc,), _ = read(tmp_path, [row])
    assert named(doc.ents) == [("Ada", "PER")]
    (first, second), losses = read(tmp_path, [{**row, "annotation_approver": "ann"}, row])
    assert named(first.ents) == [("Ada", "PER")] and not any(known(second))
    assert losses == [("texts that nobody has approved: unknown", "line 2", 1)]


@pytest.mark.parametrize("answer", ["reject", "ignore", None, ["?"]])
def test_what_is_not_accepted_is_left_out(tmp_path, answer):
    rows = [{"text": "Ada ran", "spans": []}, {"text": "Max ran", "spans": [], "answer": answer}]
    (doc,), losses = read(tmp_path, rows)
    assert doc.text == "Ada ran"
    assert losses == [(f"texts that were answered with {answer!r}: left out", "line 2", 1)]


def test_an_answer_about_one_span_says_nothing_of_others(tmp_path):
    span = {"start": 0, "end": 3, "label": "PER"}
    row = {"text": "Ada met Max", "spans": [span], "_view_id": "ner"}
    (doc,), losses = read(tmp_path, [row])
    assert named(doc.ents) == [("Ada", "PER")] and known(doc) == [True, False, False]
    assert losses == [("answers about one span: the rest of the text is unknown", "line 1", 1)]
    (doc,), _ = read(tmp_path, [{**row, "_view_id": "ner_manual"}])
    assert all(known(doc))


def test_spans_that_were_not_accepted_are_unknown(tmp_path):
    spans = [
        {"start": 0, "end": 3, "label": "PER", "answer": "accept"},
        {"start": 4, "end": 7, "label": "PER", "answer": "reject"},
        {"start": 8, "end": 11, "label": "PER", "answer": "ignore"},
    ]
    (doc,), losses = read(tmp_path, [{"text": "Ada met Max there", "spans": spans}])
    assert named(doc.ents) == [("Ada", "PER")] and known(doc) == [True, False, False, True]
    assert losses == [("spans that were not accepted: unknown", "line 1", 2)]
    spans[1]["end"] = 99
    with pytest.raises(ValueError, match=r"H290.*4 to 99"):
        read(tmp_path, [{"text": "Ada met Max there", "spans": spans}])


def test_texts_without_spans_are_told_apart_in_the_report(tmp_path):
    rows = [studio("Ada ran", [ADA]), studio("Max ran"), studio("Kim ran"), studio("Bo ran", [])]
    rows.append(studio("Adas hat", [ADA]))  # of which a token is unknown
    (tmp_path / "a.json").write_text(json.dumps(rows))
    command = ["convert", tmp_path / "a.json", tmp_path / "out.spacy"]
    printed = " ".join(commands.run(*command).split())
    assert "2 tasks that nobody has annotated: unknown" in printed
    assert "entry 2; entry 3" in printed and "1 texts are said to have no span" in printed
    assert "1 texts are said to have no span" in commands.run(*command, "--into", "k")


# -------------------- spans and tokens


def test_white_space_at_the_ends_of_spans_is_cut(tmp_path):
    rows = [
        {"text": "name: Ada\n\nage: 3", "label": [[6, 11, "PER"]]},
        {"text": "name: Max \nage: 3", "label": [[6, 10, "PER"]]},
        {"text": "name:\tKim\xa0\u3000 age", "label": [[5, 12, "PER"]]},
        {"text": "name: Bo", "label": [[6, 8, "PER"]]},
    ]
    for into in ("ents", "k"):
        docs, losses = read(tmp_path, rows, into=into)
        spans = [doc.ents if into == "ents" else doc.spans["k"] for doc in docs]
        assert [named(each) for each in spans] == [
            [(n, "PER")] for n in ("Ada", "Max", "Kim", "Bo")
        ]
        assert losses == [(WHITE, f"line {i}", 1) for i in (1, 2, 3)]
        assert all(all(known(doc)) for doc in docs if into == "ents")


def test_tokens_of_white_space_at_the_ends_of_spans_are_cut(tmp_path):
    tokens = [{"text": word, "ws": False} for word in ("\n", "Ada", "\n\n", "ran")]
    row = {"text": "\nAda\n\nran", "tokens": tokens, "spans": [[0, 6, "PER"]]}
    (doc,), losses = read(tmp_path, [row])
    assert named(doc.ents) == [("Ada", "PER")] and losses == [(WHITE, "line 1", 1)]
    (doc,), report = converting.read(tmp_path / "a.conll", "Ada\tB-P\n\u3000\tI-P\nran\tO\n")
    assert named(doc.ents) == [("Ada", "P")] and report.losses == [(WHITE, "line 1", 1)]


@pytest.mark.parametrize("align", ["strict", "contract", "expand"])
def test_spans_of_nothing_but_white_space_are_left_out(tmp_path, align):
    (doc,), losses = read(tmp_path, [{"text": "a \n\n b", "label": [[1, 5, "P"]]}], align=align)
    assert not doc.ents and all(known(doc))
    assert losses == [("spans of nothing but white space: left out", "line 1", 1)]


def test_what_fits_no_tokens_is_unknown_as_in_an_example(tmp_path):
    row = {"text": "x Adas y Max", "label": [[2, 5, "P"], [9, 12, "P"]]}
    (doc,), losses = read(tmp_path, [row])
    assert named(doc.ents) == [("Max", "P")] and known(doc) == [True, False, True, True]
    assert losses == [(UNALIGNED, "line 1", 1)]
    with pytest.warns(UserWarning, match="W030"):
        example = spacy.training.Example.from_dict(
            spacy.blank("xx").make_doc(row["text"]), {"entities": row["label"]}
        )
    assert known(example.reference) == known(doc)
    (doc,), _ = read(tmp_path, [row], into="k")
    assert named(doc.spans["k"]) == [("Max", "P")] and doc.spans["k"].attrs["unknown"] == [[1, 2]]
    (doc,), losses = read(tmp_path, [row], align="contract")  # the token has more than the span
    assert known(doc) == [True, False, True, True] and losses == [(UNALIGNED, "line 1", 1)]
    (doc,), losses = read(tmp_path, [row], align="expand")
    assert named(doc.ents) == [("Adas", "P"), ("Max", "P")] and all(known(doc))
    assert losses == [("spans that were fitted to tokens", "line 1", 1)]


def test_what_overlaps_and_is_dropped_is_unknown(tmp_path):
    row = {"text": "a b c d e f", "label": [[0, 5, "P"], [4, 9, "Q"]]}
    (doc,), losses = read(tmp_path, [row])
    assert named(doc.ents) == [("a b c", "P")]
    assert known(doc) == [True, True, True, False, False, True]
    assert losses == [(OVERLAPPING, "line 1", 1)]


def test_a_span_inside_a_longer_one_leaves_nothing_unknown(tmp_path):
    row = {"text": "a b c", "label": [[0, 3, "P"], [2, 3, "Q"], [0, 3, "P"]]}
    (doc,), losses = read(tmp_path, [row])
    assert named(doc.ents) == [("a b", "P")] and all(known(doc))
    assert losses == [(OVERLAPPING, "line 1", 1)]


# -------------------- learning


def learnt(path, factory):
    """Labels, features and the objective at zero of what a component learns from a file."""
    nlp = untrained(factory, {"features": {"@misc": "spacy-hocrf.Window.v1"}})
    data = list(Corpus(path)(nlp))
    nlp.initialize(lambda: data)
    pipe = nlp.get_pipe("hocrf")
    losses = [nlp.update(data, sgd=nlp.create_optimizer())["hocrf"] for _ in range(5)]
    return pipe.labels, losses, pipe.model.get_param("W").tolist()


@pytest.mark.parametrize("factory, into", [("hocrf", "ents"), ("hocrf_spans", "sc")])
def test_a_file_with_open_tasks_trains_like_the_file_without_them(tmp_path, factory, into):
    rows = [
        studio(text, [{"start": s, "end": e, "labels": [label]} for s, e, label in spans])
        for text, spans in documents()
    ]
    open_ = [studio(text.upper()) for text, _ in documents()]
    for name, entries in (("done", rows), ("all", [r for pair in zip(open_, rows) for r in pair])):
        docs, _ = read(tmp_path, entries, into=into)
        DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / f"{name}.spacy")
    assert len(docs) == 2 * len(rows)
    done = learnt(tmp_path / "done.spacy", factory)
    with pytest.warns(UserWarning, match="W004.*10 training documents have no annotation"):
        assert learnt(tmp_path / "all.spacy", factory) == done


@pytest.mark.parametrize("factory, into", [("hocrf", "ents"), ("hocrf_spans", "sc")])
def test_what_fits_no_tokens_is_summed_over(tmp_path, factory, into):
    """The learner knows the same tokens as the file."""
    rows = [{"text": "x Adas y Max", "label": [[2, 5, "P"], [9, 12, "P"]]}] * 2
    docs, _ = read(tmp_path, rows, into=into)
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    nlp = untrained(factory)
    target = nlp.get_pipe("hocrf").target
    for example in Corpus(tmp_path / "a.spacy")(nlp):
        annotation = target.annotation(example)
        assert annotation.unknown.tolist() == [False, True, False, False]
        assert annotation.spans == ((3, 4, "P"),)
        retokenized = spacy.training.Example(
            Doc(nlp.vocab, words=["x", "Ad", "as", "y", "Max"]), example.reference
        )
        annotation = target.annotation(retokenized)
        assert np.flatnonzero(annotation.unknown).tolist() == [1, 2]
        blank = example.reference.copy()
        if into == "sc":
            del blank.spans["sc"].attrs["unknown"]
            assert target.key(blank) != target.key(example.reference)


# -------------------- ids


def test_ids_and_metadata_travel_with_a_text(tmp_path):
    rows = [
        {"text": "Ada", "label": [], "id": 77, "meta": {"p": 12}, "source": "x", "n": None},
        {"id": "b", "data": {"text": "Max", "page": 2}, "annotations": [], "predictions": [{}, {}]},
        {"text": "Kim", "spans": [], "_task_hash": 2**70, "meta": [1], "id": {"a": 1}},
        {"text": "Bo", "spans": []},
    ]
    docs, losses = read(tmp_path, rows)
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "a.spacy")
    docs = list(DocBin().from_disk(tmp_path / "a.spacy").get_docs(spacy.blank("xx").vocab))
    assert [doc._.hocrf_id for doc in docs] == ["77", "b", None, None]
    assert [doc._.hocrf_meta for doc in docs] == [
        {"source": "x", "p": 12},
        {"page": 2},
        {"_task_hash": "1.18059e+21", "meta": (1,), "id": {"a": 1}},
        None,
    ]
    assert ("predictions of models: left out", "line 2", 2) in losses


def test_relations_are_counted_as_lost(tmp_path):
    rows = [
        {
            "text": "Ada lives in Paris",
            "entities": [
                {"id": 1, "label": "PER", "start_offset": 0, "end_offset": 3},
                {"id": 2, "label": "LOC", "start_offset": 13, "end_offset": 18},
            ],
            "relations": [{"from_id": 1, "to_id": 2, "type": "lives_in"}],
            "id": 77,
            "meta": {"p": 12},
        },
        studio(
            "Ada ran",
            annotations=[{"result": [{"value": ADA}, {"type": "relation", "from_id": "a"}]}],
        ),
    ]
    (doc, _), losses = read(tmp_path, rows)
    assert named(doc.ents) == [("Ada", "PER"), ("Paris", "LOC")]
    assert (doc._.hocrf_id, doc._.hocrf_meta) == ("77", {"p": 12})
    what = "relations between spans: left out"
    assert losses == [(what, "line 1", 1), (what, "line 2", 1)]
