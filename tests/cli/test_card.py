"""What whoever is handed a model is told, and that its package carries it."""

import json
import re
from functools import partial

import commands
import numpy as np
import pytest
import spacy
from project_checks import table_rows
from small_corpus import documents, examples, learn_from, trained, untrained
from spacy.cli.package import generate_readme
from spacy.tokens import Doc, DocBin, Span, Token
from spacy.training import Example

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.cli.auto.estimates import SpanCounts, scores
from spacy_hocrf.cli.card import card, card_of_scores
from spacy_hocrf.cli.corpora import read_docs
from spacy_hocrf.cli.extend import extend

NOTHING = scores(SpanCounts(*np.zeros((3, 1, 1), dtype=np.int64)), 0.0, 0)[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A trained pipeline, and annotated texts: one of them as nobody would annotate it."""
    folder = tmp_path_factory.mktemp("card")
    nlp = trained(rows=documents(12))
    nlp.to_disk(folder / "model")
    gold = [example.reference for example in examples(nlp, documents(20))]
    gold[0].ents = gold[0].ents[:1]
    DocBin(docs=gold, store_user_data=True).to_disk(folder / "gold.spacy")
    return folder


run = partial(commands.run, "card")


def test_the_readme_of_the_package_has_it(model):
    run(model / "model", model / "gold.spacy", "--output", model / "new" / "card.md")
    text = (model / "new" / "card.md").read_text(encoding="utf8")
    meta = json.loads((model / "model" / "meta.json").read_text(encoding="utf8"))
    assert text in generate_readme(meta) and "### How good it is" in text
    nlp = spacy.load(model / "model")
    assert nlp.meta["notes"] == text and nlp("Ada lives in Paris").has_annotation("ENT_IOB")


def test_a_disk_that_is_full_leaves_the_model_as_it_was(model, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    before = {path: path.read_bytes() for path in (model / "model").rglob("*") if path.is_file()}
    monkeypatch.setattr("os.fsync", full)
    done = run(model / "model", model / "gold.spacy", code=1)
    assert "No space left" in done
    after = {path: path.read_bytes() for path in (model / "model").rglob("*") if path.is_file()}
    assert after == before


def test_its_numbers_are_those_of_evaluate(model):
    nlp = spacy.load(model / "model")
    gold = list(DocBin().from_disk(model / "gold.spacy").get_docs(nlp.vocab))
    text = card(nlp, gold)
    scores = nlp.evaluate([spacy.training.Example(nlp.make_doc(doc.text), doc) for doc in gold])
    rows = {row[0]: row[1:] for row in table_rows(text)}
    assert rows["all"][0] == f"{100 * scores['ents_f']:.1f}"
    assert rows["all"][2:4] == [f"{100 * scores[name]:.1f}" for name in ("ents_p", "ents_r")]
    assert int(rows["all"][4]) == sum(len(doc.ents) for doc in gold)
    assert f"no others: {100 * scores['hocrf_texts_acc']:.1f} % of the texts" in text
    choice = nlp.get_pipe("hocrf").choice
    assert f"cost = {choice.cost:.2g}" in text


def test_texts_with_other_tokens_than_the_pipeline_makes_are_told(model):
    nlp = spacy.load(model / "model")
    gold = list(DocBin().from_disk(model / "gold.spacy").get_docs(nlp.vocab))
    assert "other tokens" not in card(nlp, gold)
    words = [[*(token.text for token in doc), "a-b!"] for doc in gold]
    other = [Doc(nlp.vocab, each, ents=["O"] * len(each)) for each in words]
    assert f"{len(gold)} of them have other tokens than nlp(text) makes" in card(nlp, other)


def test_labels_with_signs_of_markdown_are_shown_as_they_are(model):
    nlp = spacy.load(model / "model")
    text = card_of_scores(nlp, "hocrf", [("A|B", NOTHING), ("<b>", NOTHING)], [], [], None)
    assert r"| A\|B | 0.0 |" in text and r"| \<b> | 0.0 |" in text


def test_what_is_accepted_is_told(model):
    nlp = spacy.load(model / "model")
    gold = list(DocBin().from_disk(model / "gold.spacy").get_docs(nlp.vocab))
    assert "Accepted" not in card(nlp, gold)
    pipe = nlp.get_pipe("hocrf")
    pipe.acceptance = Acceptance(0.9, 0.8, 0.0, 40, 40)
    match = re.search(
        r"unread: ([\d.]+) % of the texts. Of these (\d+), (\d+) are right", card(nlp, gold)
    )
    assert match[1] == "100.0" and int(match[2]) == 20 and 10 < int(match[3]) < 20


@pytest.mark.filterwarnings("error:.*W015")
def test_columns_of_the_annotated_file_are_read(tmp_path):
    Token.set_extension("hint", default="", force=True)
    block = {"@misc": "spacy-hocrf.Token.v1", "attrs": ["_.hint"]}
    nlp = untrained(model={"features": {"@misc": "spacy-hocrf.Features.v1", "*": {"hint": block}}})
    docs = [Doc(nlp.vocab, words=["x"] * 4) for _ in range(8)]
    for i, doc in enumerate(docs):
        doc.ents = [Span(doc, i % 4, i % 4 + 1, "A")]
        doc[i % 4]._.hint = "a"
        doc.user_data[""] = "no extension attribute"
    data = [Example(doc.copy(), doc) for doc in docs]
    for example in data:
        example.predicted.ents = []
    learn_from(nlp, data)
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "gold.spacy")
    gold = read_docs(tmp_path / "gold.spacy")
    assert ["all", "100.0"] in [row[:2] for row in table_rows(card(nlp, gold))]
    extend(nlp, gold)
    assert ["all", "100.0"] in [row[:2] for row in table_rows(card(nlp, gold))]


@pytest.mark.parametrize("command", ["extend", "temper"])
def test_another_model_does_not_keep_what_was_measured(command, model, tmp_path):
    run(model / "model", model / "gold.spacy")
    nlp = spacy.load(model / "model")
    nlp.meta.update({"performance": {"ents_f": 1.0}, "author": "Ada"})
    nlp.get_pipe("hocrf").acceptance = Acceptance(0.5, 0.5, 0.5, 2, 1)
    for notes, kept in ((nlp.meta["notes"], None), ("Of my own", "Of my own")):
        nlp.meta["notes"] = notes
        nlp.to_disk(tmp_path / "model")
        files = tmp_path / "model", model / "gold.spacy", tmp_path / f"{kept}"
        done = " ".join(commands.run(command, *files).split())
        after = spacy.load(tmp_path / f"{kept}")
        assert (after.meta.get("notes"), after.meta["author"]) == (kept, "Ada")
        assert "performance" not in after.meta and "hocrf card" in done
        assert after.get_pipe("hocrf").acceptance is None and "calibrate --accept" in done
