"""`python -m spacy hocrf doubt`: planted errors, against enumeration of spans, and the files that annotation
tools read.
"""

import json
from collections import Counter

import numpy as np
import pytest
import spacy
from browser import Browser
from doubt_command import TRAINER, config, run
from joint_config import joint
from small_corpus import documents, examples, trained, untrained
from spacy.tokens import Doc, DocBin, Span

from spacy_hocrf.annotation.best_readings import ScoredSpan
from spacy_hocrf.annotation.identity import set_identity
from spacy_hocrf.cli import doubt as module
from spacy_hocrf.cli.doubt import DoubtPage, cross_read
from spacy_hocrf.cli.doubts import (
    CALM,
    MIN_PROBABILITY,
    Doubt,
    ReadText,
    contradictions,
    doubts_of,
    shortened,
    text_weights,
)
from spacy_hocrf.cli.pipelines import folds_of, scorer_of
from spacy_hocrf.cli.shown import ShownText
from spacy_hocrf.cli.tasks import ending_of

SWAPPED, DROPPED, CUT = 3, 8, 14


def planted(nlp):
    """Documents, of which three have an error in their first entity."""
    docs = [example.reference for example in examples(nlp, documents(30))]
    for number in (SWAPPED, DROPPED, CUT):
        first, *rest = docs[number].ents
        wrong = {
            SWAPPED: [Span(docs[number], first.start, first.end, label=other(first.label_))],
            DROPPED: [],
            CUT: [Span(docs[number], first.start, first.end - 1, label=first.label_)],
        }
        assert number != CUT or len(first) > 1
        docs[number].set_ents([*wrong[number], *rest])
    return docs


def other(label):
    return {"PERSON": "PLACE", "PLACE": "PERSON"}[label]


@pytest.fixture(scope="module")
def docs():
    return planted(spacy.blank("en"))


@pytest.fixture(scope="module")
def read(docs):
    return cross_read(config(), docs, folds=3)


def test_planted_errors_come_first_with_the_right_answer(docs, read):
    right = [example.reference for example in examples(spacy.blank("en"), documents(30))]
    worst = sorted((doubt for text in read for doubt in text.doubts), key=lambda d: -d.degree)[:3]
    assert {doubt.text for doubt in worst} == {SWAPPED, DROPPED, CUT}
    for doubt in worst:
        first = right[doubt.text].ents[0]
        assert doubt.answer[:3] == (first.start, first.end, first.label_)
        assert (doubt.annotated is None) == (doubt.text == DROPPED)
        assert doubt.degree > 0.9


def test_every_annotated_span_is_in_its_text(docs, read):
    assert [text.number for text in read] == list(range(len(docs)))
    for doc, text in zip(docs, read):
        assert "".join(text.words) == doc.text
        spans = [span[:3] for span in text.annotated]
        assert spans == [(ent.start, ent.end, ent.label_) for ent in doc.ents]
        degrees = [doubt.degree for doubt in text.doubts]
        assert degrees == sorted(degrees, reverse=True) and text.worst() == max(degrees, default=0)


@pytest.mark.parametrize(
    "words, expected",
    [
        (("Ada ", "Lovelace "), "Ada Lovelace"),
        (("Ada\n ", "Byron ", "Lovelace"), "Ada Byron …"),
        (("Supercalifragilistic", " "), "Supercalif …"),
        ((), ""),
    ],
)
def test_long_spans_are_cut(words, expected):
    assert shortened(words, 12) == expected


@pytest.fixture(scope="module")
def unsure():
    nlp = trained("hocrf", {"order": 1}, documents(8), trainer={**TRAINER, "sigma": 0.3})
    return nlp.get_pipe("hocrf")


def test_the_answer_is_the_most_probable_span_that_contradicts(unsure, docs):
    bare = [Doc(unsure.vocab, words=[token.text for token in doc]) for doc in docs[:12]]
    seen = set()
    for doc, reading in zip(docs, unsure.readings(bare)):
        items = scorer_of(unsure.target).items(doc)
        chances = {
            (label, start, end): reading.probability(start, end, label)
            for label in reading.labels
            for start in range(len(doc))
            for end in range(start + 1, len(doc) + 1)
        }
        for doubt in doubts_of(0, ShownText(reading, unsure.target), items, None):
            if doubt.annotated is None:
                assert not overlapping(doubt.answer, items)
                start, end, label, _ = doubt.answer
                assert chances[label, start, end] >= MIN_PROBABILITY - 1e-9
                continue
            start, end, label, p = doubt.annotated
            assert p == pytest.approx(chances[label, start, end], abs=1e-9)
            others = overlapping(doubt.annotated, set(chances) - items)
            best = max(chances[each] for each in others)
            nothing = reading.tokens()[start:end, -1].min()
            assert doubt.answer_chance == pytest.approx(max(best, nothing), abs=1e-9)
            assert (doubt.answer is None) == (nothing > best)
            expected = (doubt.answer_chance + CALM) / (doubt.answer_chance + p + 2 * CALM)
            assert doubt.degree == pytest.approx(expected)
            seen.add(doubt.answer is None)
    assert seen == {True, False}


def overlapping(span, items):
    return [item for item in items if item[1] < span.end and span.start < item[2]]


def test_what_is_missing_is_doubted_once_and_not_where_nothing_is_known(unsure, docs):
    doc = docs[0].copy()
    entities = list(doc.ents)
    doc.set_ents([])
    scorer = scorer_of(unsure.target)
    reading = unsure.reading(Doc(unsure.vocab, words=[token.text for token in doc]))
    missing = doubts_of(
        0, ShownText(reading, unsure.target), scorer.items(doc), scorer.unknown(doc)
    )
    places = [t for doubt in missing for t in range(doubt.answer.start, doubt.answer.end)]
    assert missing and len(places) == len(set(places))
    doc.set_ents(entities[:1], default="missing")
    known = doubts_of(0, ShownText(reading, unsure.target), scorer.items(doc), scorer.unknown(doc))
    assert len(known) == 1 and known[0].annotated[:2] == (entities[0].start, entities[0].end)


def test_spans_inside_longer_ones_are_not_doubted():
    """A model does not learn them, so it has none of them."""
    spans = [
        (0, 3, "X", 0.1),
        (0, 1, "Y", 0.0),
        (2, 5, "Z", 0.0),
        (5, 6, "P", 0.2),
        (5, 6, "Q", 0.7),
    ]
    outside, probable = np.full(8, 0.5), [ScoredSpan(4, 5, "V", 0.9)]
    doubts = contradictions(0, [ScoredSpan(*span) for span in spans], probable, outside)
    assert [doubt.annotated.label for doubt in doubts] == ["X", "Q"]


@pytest.mark.parametrize("factory", ["hocrf_spans", "hocrf_tagger"])
def test_other_annotation_is_doubted_too(factory):
    nlp = spacy.blank("en")
    docs = [example.reference for example in examples(nlp, documents(16))]
    if factory == "hocrf_spans":
        span = docs[5].spans["sc"][0]
        docs[5].spans["sc"] = [Span(docs[5], span.start, span.end, label=other(span.label_))]
    else:
        docs[5][0].tag_ = "PUNCT"
    read = cross_read(config(factory), docs, folds=2)
    worst = max(read, key=lambda text: text.worst())
    assert worst.number == 5 and worst.worst() > 0.8


def test_equal_texts_and_groups_are_in_one_fold(docs):
    nlp = untrained("hocrf")
    copies = [nlp.make_doc(text) for text in ("a b", "c", "a b", "d")]
    parts = folds_of(copies, 3, 0)
    assert sorted(parts) == [[0, 2], [1], [3]] and parts != folds_of(copies, 3, 1)
    Doc.set_extension("about", default=None, force=True)
    copies[1]._.about = copies[3]._.about = 7
    assert sorted(folds_of(copies, 2, 0, "about")) == [[0, 2], [1, 3]]
    with pytest.raises(ValueError, match="H077"):
        folds_of(copies, 3, 0, "about")


def test_training_of_a_fold_is_not_logged(docs, capsys, tmp_path):
    settings = config()
    settings["components"]["hocrf"]["trainer"]["sigma"] = "auto"
    log = tmp_path / "log.jsonl"
    logger = {"@loggers": "spacy-hocrf.ConsoleLogger.v1", "output_file": log.as_posix()}
    settings["training"]["logger"] = logger
    nlp = module.trained(settings, docs, best=False)
    assert nlp.get_pipe("hocrf").choice.sigma is not None
    assert capsys.readouterr() == ("", "") and not log.exists()
    assert nlp.config["training"]["logger"] == logger


TOGETHER = {"joint": joint(group_by="hocrf_group", learn=False)}


@pytest.mark.parametrize("settings", [{"group_by": "hocrf_group"}, TOGETHER], ids=["own", "joint"])
def test_documents_of_a_group_are_held_back_together(monkeypatch, settings):
    nlp = untrained("hocrf", **settings)
    docs = [example.reference for example in examples(nlp, documents(8))]
    for number, doc in enumerate(docs):
        doc._.hocrf_group = f"about {number % 4}"
    learnt, train = [], module.trained

    def record(made, docs, **settings):
        learnt.append(Counter(doc._.hocrf_group for doc in docs))
        return train(made, docs, **settings)

    monkeypatch.setattr(module, "trained", record)
    read = cross_read(config(**settings), docs, folds=2)
    assert len(read) == 8 and len(learnt) == 2
    assert all({*groups.values()} == {2} and len(groups) == 2 for groups in learnt)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, docs):
    path = tmp_path_factory.mktemp("doubt")
    DocBin(docs=docs).to_disk(path / "train.spacy")
    config().to_disk(path / "config.cfg")
    return path


def rows_of(tool, path):
    text = path.read_text(encoding="utf8")
    return (
        json.loads(text) if tool == "label-studio" else [json.loads(x) for x in text.splitlines()]
    )


def spans_of(tool, row):
    """Text, annotated spans and the model's."""
    if tool == "prodigy":
        tokens = row["tokens"]
        for span in (*row["spans"], *row["model_spans"]):
            assert tokens[span["token_start"]]["start"] == span["start"]
            assert tokens[span["token_end"]]["end"] == span["end"]
        words = "".join(token["text"] + " " * token["ws"] for token in tokens)
        assert words == row["text"] and [t["id"] for t in tokens] == list(range(len(tokens)))
        both = [
            [(s["start"], s["end"], s["label"]) for s in row[k]] for k in ("spans", "model_spans")
        ]
        return row["text"], *both, {**row["meta"], "doubts": row["doubts"]}
    if tool == "doccano":
        return row["text"], *([tuple(s) for s in row[k]] for k in ("label", "model")), row
    text = row["data"]["text"]
    both = []
    for key in ("annotations", "predictions"):
        [result] = [each["result"] for each in row[key]]
        values = [each["value"] for each in result]
        assert all(text[v["start"] : v["end"]] == v["text"] for v in values)
        assert all(
            (r["from_name"], r["to_name"], r["type"]) == ("label", "text", "labels") for r in result
        )
        both.append([(v["start"], v["end"], *v["labels"]) for v in values])
    return text, *both, row["data"]


@pytest.mark.parametrize("tool", ["prodigy", "doccano", "label-studio"])
def test_the_command_writes_what_tools_read_and_prints_a_table(
    folder, docs, read, tool, tmp_path, monkeypatch
):
    def cross_read_before(config, docs, component, *, folds, **settings):
        assert folds == 3
        return read

    monkeypatch.setattr(module, "cross_read", cross_read_before)
    output = tmp_path / "new" / f"doubts{ending_of(tool)}"
    printed = run(folder, "--folds", 3, "--output", output, "--format", tool, "--most", 3)
    assert "doubts of 0.5 and more" in printed and printed.count("(PLACE)") >= 1
    rows = [spans_of(tool, row) for row in rows_of(tool, output)]
    assert {meta["number"] for *_, meta in rows[:3]} == {SWAPPED, DROPPED, CUT}
    for text, annotated, found, meta in rows:
        doc = docs[meta["number"]]
        expected = [(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents]
        assert text == doc.text and annotated == expected
        assert meta["doubts"] and meta["doubt"] == meta["doubts"][0]["doubt"] >= 0.5
        first = meta["doubts"][0]
        assert meta["worst"] == f"{first['annotated']} → {first['model']}"
        assert found != annotated or meta["doubt"] < 0.9


def test_the_page_has_doubted_texts_the_worst_first(folder, docs, tmp_path):
    page = tmp_path / "new" / "page.html"
    run(folder, "--folds", 3, "--output", page)
    for browser in with_page(page):
        titles, shown = (
            browser.run(f"[...document.querySelectorAll('{part}')].map(x => x.textContent)")
            for part in ("article h2", "h2 + .soft")
        )
        assert browser.faults == []
        assert browser.run("document.querySelector('.line [dir=auto]').lang") == "en"
        worst = {f"Text {number} of the file" for number in (SWAPPED, DROPPED, CUT)}
        assert {*titles[:3]} == worst
        degrees = [float(text.removeprefix("doubt ")) for text in shown]
        assert degrees == sorted(degrees, reverse=True) and degrees[-1] >= 0.5
        assert browser.run("document.querySelector('[name=order]').value") == "doubt"


@pytest.fixture(scope="module")
def identified(tmp_path_factory, docs):
    """The same texts, but for one with the id that their file has given them."""
    path = tmp_path_factory.mktemp("identified")
    named = [doc.copy() for doc in docs]
    for number, doc in enumerate(named):
        if number != DROPPED:
            set_identity(doc, f"case-{number}", {})
    DocBin(docs=named, store_user_data=True).to_disk(path / "train.spacy")
    config().to_disk(path / "config.cfg")
    return path


def test_texts_are_named_by_their_ids(identified, tmp_path):
    output, page = tmp_path / "doubts.jsonl", tmp_path / "page.html"
    printed = run(identified, "--folds", 3, "--output", output, "--page", page)
    assert f" case-{SWAPPED} " in printed and f" {DROPPED} " in printed
    metas = [row["meta"] for row in rows_of("prodigy", output)]
    assert {meta["number"]: meta.get("id") for meta in metas[:3]} == {
        SWAPPED: f"case-{SWAPPED}",
        DROPPED: None,
        CUT: f"case-{CUT}",
    }
    for browser in with_page(page):
        titles = browser.run("[...document.querySelectorAll('article h2')].map(x => x.textContent)")
        assert {f"Text case-{CUT}", f"Text {DROPPED} of the file"} <= {*titles}
    texts = str(identified / "train.spacy")
    printed = run(identified, "--unlabelled", texts, "--output", output)
    assert " case-3 " in printed
    metas = [row["meta"] for row in rows_of("prodigy", output)]
    assert all(meta.get("id", f"case-{DROPPED}") == f"case-{meta['number']}" for meta in metas)


def with_page(page):
    with Browser() as browser:
        browser.open(page)
        yield browser


def test_an_output_that_is_named_as_a_page_is_one(folder, tmp_path):
    page = tmp_path / "x.HTM"
    assert "Saved the page" in run(folder, "--folds", 3, "--output", page)
    assert page.read_text(encoding="utf8").startswith("<!DOCTYPE html>")


def test_texts_of_models_with_other_labels_are_on_one_page(unsure, docs):
    page = DoubtPage(0.0)
    for labels, number in (("PERSON", "PLACE"), 0), (("PLACE", "PERSON"), 1):
        reading = unsure.reading(Doc(unsure.vocab, words=[token.text for token in docs[0]]))
        chances, before = reading.tokens(), reading.labels
        order = [before.index(label) for label in labels]
        reading.labels = labels
        reading.tokens = lambda chances=chances, order=order: chances[:, [*order, -1]]
        span = ScoredSpan(0, 1, "THING", 0.0)
        doubt = Doubt(number, span, None, 0.0, 1.0)
        page.add(ReadText(number, (), (span,), (), (doubt,)), reading, None)
    first, second = (text["heat"] for text in page._texts)
    assert page._labels == ["PERSON", "PLACE", "THING"]
    pairs = [[{*zip(row[::2], row[1::2])} for row in heat] for heat in (first, second)]
    assert pairs[0] == pairs[1] and any(len(row) > 1 for row in pairs[0])
    calm = DoubtPage(0.99)
    calm.add(ReadText(0, (), (), (), (doubt,)), reading, None)
    assert calm._texts == []


def test_what_is_probably_wrong_is_worth_little(folder, docs, read, tmp_path):
    path = tmp_path / "new" / "weighted.spacy"
    printed = run(folder, "--folds", "3", "--weights", path)
    weights, wrong = text_weights(read)
    assert "Saved 30 texts, worth" in printed and f"with {wrong:.1%} wrong" in printed
    written = list(DocBin().from_disk(path).get_docs(docs[0].vocab))
    assert [doc._.hocrf_weight for doc in written] == pytest.approx(weights, rel=1e-12)
    assert [doc.text for doc in written] == [doc.text for doc in docs]
    assert sorted(range(30), key=weights.__getitem__)[:3] == sorted(
        (SWAPPED, DROPPED, CUT), key=weights.__getitem__
    )
    assert max(weights[i] for i in (SWAPPED, DROPPED, CUT)) < 0.7 < np.median(weights)


def test_a_text_is_worth_what_its_least_probable_annotation_is():
    def text(*chances):
        pairs = [(None, None, q, p) for q, p in chances]
        return ReadText(0, (), (), (), tuple(Doubt(0, *pair) for pair in pairs))

    texts = [text((0.95, 0.0), (0.0, 0.95)), text(), text((0.9, 0.05)), text((0.5, 0.5))]
    weights, wrong = text_weights(texts)
    odds = np.array([20.0, 1 / 20, 9.5, 1.0])
    right = (1 - wrong) * odds / ((1 - wrong) * odds + wrong)
    assert weights == pytest.approx([right[1], 1.0, right[2], right[3]], rel=1e-9)
    assert wrong == pytest.approx(1 - right.mean(), rel=1e-3) and weights[3] == 1 - wrong
    assert text_weights([text(), text()])[0] == [1.0, 1.0]


def test_files_without_annotation_or_texts_are_named(folder, tmp_path):
    config().to_disk(tmp_path / "config.cfg")
    DocBin().to_disk(tmp_path / "train.spacy")
    assert "[H158]" in run(tmp_path, code=1)
    DocBin(docs=[spacy.blank("en")("a b c")]).to_disk(tmp_path / "train.spacy")
    assert "[H237]" in run(tmp_path, code=1)
