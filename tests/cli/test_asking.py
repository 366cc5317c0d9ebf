"""What to annotate next: the order against choosing the largest gain again and again, and the command."""

import json

import numpy as np
import pytest
import spacy
from doubt_command import TRAINER, config, run
from small_corpus import documents, examples, trained
from spacy.tokens import Doc, DocBin

from spacy_hocrf.cli.doubt import REPEATED, in_order, next_texts
from spacy_hocrf.cli.tasks import ending_of


@pytest.mark.parametrize("seed", range(20))
def test_each_text_has_the_largest_gain_after_those_before_it(seed):
    rng = np.random.default_rng(seed)
    words = [list(rng.choice(list("abcdefgh"), rng.integers(0, 6))) for _ in range(12)]
    entropies = [rng.random(len(text)) for text in words]
    left, expected, seen = set(range(12)), [], []
    while left:
        gains = {
            i: sum(
                h * REPEATED ** sum(word in words[j] for j in seen)
                for word, h in zip(words[i], entropies[i])
            )
            for i in left
        }
        best = max(left, key=lambda i: (round(gains[i], 12), -i))
        expected.append((best, gains[best]))
        seen.append(best)
        left.remove(best)
    found = list(in_order(entropies, words))
    assert [i for i, _ in found] == [i for i, _ in expected]
    assert [gain for _, gain in found] == pytest.approx([gain for _, gain in expected])


def test_texts_that_say_the_same_are_not_chosen_one_after_another():
    unsure, other = np.array([0.6, 0.6]), np.array([0.5, 0.5])
    found = [i for i, _ in in_order([unsure, unsure, other], [["a", "b"], ["a", "b"], ["c", "d"]])]
    assert found == [0, 2, 1]
    assert list(in_order([], [])) == []


@pytest.fixture(scope="module")
def nlp():
    return trained("hocrf", {"order": 1}, documents(8), trainer={**TRAINER, "sigma": 0.5})


def texts(nlp):
    unseen = ["Carl Friedrich Gauss was born in San Jose .", "It rains .", "Emmy likes Ada London"]
    return [nlp.make_doc(text) for text in unseen]


def test_gains_are_entropies_and_spans_those_that_are_shown(nlp):
    docs, pipe = texts(nlp), nlp.get_pipe("hocrf")
    found = next_texts(nlp, docs)
    assert sorted(text.number for text in found) == [0, 1, 2]
    first = docs[found[0].number]
    totals = [pipe.reading(doc).token_entropy().sum() for doc in docs]
    assert found[0].gain == pytest.approx(max(totals)) and totals[found[0].number] == max(totals)
    assert "".join(found[0].words) == first.text
    for text in found:
        doc = nlp(docs[text.number].text)
        shown = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
        assert [span[:3] for span in text.found] == shown
        assert [span.probability for span in text.found] == pytest.approx(
            [ent._.hocrf_score for ent in doc.ents], abs=1e-6
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path, nlp = tmp_path_factory.mktemp("asking"), spacy.blank("en")
    docs = [example.reference for example in examples(nlp, documents(12))]
    DocBin(docs=[*docs, nlp("Not annotated at all")]).to_disk(path / "train.spacy")
    DocBin(docs=texts(nlp)).to_disk(path / "new.spacy")
    config().to_disk(path / "config.cfg")
    return path


def test_the_command_puts_texts_into_order(folder):
    printed = run(folder, "--unlabelled", folder / "new.spacy", "--output", folder / "out.jsonl")
    assert "3 texts" in printed and "begins" in printed
    rows = [json.loads(row) for row in (folder / "out.jsonl").read_text("utf8").splitlines()]
    assert [row["meta"]["gain"] for row in rows] == sorted(
        (row["meta"]["gain"] for row in rows), reverse=True
    )
    assert {row["text"] for row in rows} == {doc.text for doc in texts(spacy.blank("en"))}
    assert all("model_spans" not in row for row in rows) and any(row["spans"] for row in rows)
    run(folder, "--unlabelled", folder / "new.spacy", "--output", folder / "out.spacy")
    docs = DocBin().from_disk(folder / "out.spacy").get_docs(spacy.blank("en").vocab)
    assert [doc.text for doc in docs] == [row["text"] for row in rows]


@pytest.mark.parametrize("tool, key", [("doccano", "label"), ("label-studio", "predictions")])
def test_tools_get_what_the_model_finds(folder, tool, key):
    output = folder / f"{tool}{ending_of(tool)}"
    run(folder, "--unlabelled", folder / "new.spacy", "--output", output, "--format", tool)
    text = output.read_text("utf8")
    rows = json.loads(text) if tool == "label-studio" else list(map(json.loads, text.splitlines()))
    assert len(rows) == 3 and any(row[key] for row in rows)
    assert not any({"annotations", "model"} & {*row} for row in rows)


def test_nothing_is_asked_without_texts_or_annotation(folder, tmp_path):
    DocBin().to_disk(tmp_path / "none.spacy")
    assert "[H158]" in run(folder, "--unlabelled", tmp_path / "none.spacy", code=1)
    config().to_disk(tmp_path / "config.cfg")
    DocBin(docs=[Doc(spacy.blank("en").vocab, words=["a"])]).to_disk(tmp_path / "train.spacy")
    assert "[H237]" in run(tmp_path, "--unlabelled", folder / "new.spacy", code=1)
