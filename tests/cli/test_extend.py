"""`python -m spacy hocrf extend`: what it prints and writes."""

import commands
import pytest
import spacy
from small_corpus import examples, trained, untrained, words
from spacy.tokens import Doc, DocBin
from spacy.training import Example


def of_a_new_label(nlp):
    """Texts with days, in which nobody has annotated persons and places."""
    rows = [
        (["Ada", "came", "on", "Monday"], ["O", "O", "O", "U-DAY"]),
        (["Tuesday", "was", "cold", "in", "Paris"], ["U-DAY", "O", "O", "O", "O"]),
        (["On", "Friday", "Grace", "left"], ["O", "U-DAY", "O", "O"]),
        (["Emmy", "slept"], ["O", "O"]),
    ]
    return [Example.from_dict(words(nlp, *text), {"entities": tags}) for text, tags in rows]


@pytest.fixture
def folder(tmp_path):
    nlp = trained()
    nlp.to_disk(tmp_path / "model")
    DocBin(docs=[each.reference for each in of_a_new_label(nlp)]).to_disk(tmp_path / "new.spacy")
    DocBin(docs=[each.reference for each in examples(nlp)]).to_disk(tmp_path / "dev.spacy")
    return tmp_path


def run(folder, *more, model="model", texts="new.spacy", output="out", code=0):
    places = [folder / name for name in (model, texts, output)]
    return commands.run("extend", *places, *more, code=code)


def test_a_pipeline_learns_a_label_and_forgets_none(folder):
    printed = run(folder, "--dev", folder / "dev.spacy")
    assert "4 texts, new labels: DAY" in printed and "all of before" in printed
    nlp = spacy.load(folder / "out")
    before = spacy.load(folder / "model")
    doc = nlp(words(nlp, "Ada", "Lovelace", "left", "on", "Tuesday"))
    assert [(ent.text, ent.label_) for ent in doc.ents][-1] == ("Tuesday", "DAY")
    same = [
        [(ent.start, ent.end, ent.label_) for ent in pipeline(words(pipeline, *text)).ents]
        for text in ([token.text for token in each.predicted] for each in examples(nlp))
        for pipeline in (before, nlp)
    ]
    assert same[::2] == same[1::2] and any(same)


def test_tokens_that_the_pipeline_does_not_make_are_said(folder):
    assert "other tokens" not in run(folder)
    nlp = spacy.load(folder / "model")
    cut = {"words": ["On", "Mon", "day"], "spaces": [True, False, False]}
    doc = Doc(nlp.vocab, **cut, ents=["O", "B-DAY", "I-DAY"])
    DocBin(docs=[doc]).to_disk(folder / "new.spacy")
    printed = run(folder, "--force")
    assert "1 of 1 texts have other tokens" in " ".join(printed.split())


def test_texts_without_a_new_label_are_learnt_as_well(folder):
    printed = run(folder, "--dev", folder / "dev.spacy", texts="dev.spacy")
    assert "new labels: none" in printed and (folder / "out").exists()


def test_labels_that_do_not_occur_are_named_if_they_count_as_annotated(folder):
    assert "--alone" not in run(folder)
    (folder / "out").rename(folder / "model2")
    assert "No text has PERSON, PLACE" in run(folder, model="model2")
    assert "No text has" not in run(folder, "--alone", "--force", model="model2")


@pytest.mark.parametrize("key", ["llm", "hocrf_constraints"])
def test_texts_about_which_only_teachers_or_constraints_tell_are_learnt_from(folder, key):
    nlp = untrained(teachers=["llm"]).from_bytes(trained().to_bytes())
    nlp.to_disk(folder / "model")
    texts = [each.reference for each in of_a_new_label(nlp)]
    for doc in texts:
        days = list(doc.ents)
        doc.set_ents([], default="missing")
        doc.spans[key] = days
    DocBin(docs=texts, store_user_data=True).to_disk(folder / "new.spacy")
    assert "new labels: DAY" in run(folder)


def test_texts_without_annotation_are_an_error_that_names_the_places(folder):
    doc = words(spacy.blank("en"), "Ada", "left")
    DocBin(docs=[doc]).to_disk(folder / "new.spacy")
    printed = run(folder, code=1)
    assert "H511" in printed and "doc.ents" in printed
    assert not (folder / "out").exists()


def test_a_model_whose_texts_are_covered_by_spans_says_how_to_learn_one_label(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    rows = [(["Ada", "Paris"], ["U-PER", "U-LOC"]), (["Max", "Rome"], ["U-PER", "U-LOC"])]
    covered = [Example.from_dict(words(nlp, *text), {"entities": tags}) for text, tags in rows]
    nlp.update(covered, sgd=nlp.initialize(lambda: covered))
    nlp.to_disk(tmp_path / "model")
    DocBin(docs=[each.reference for each in of_a_new_label(nlp)]).to_disk(tmp_path / "new.spacy")
    printed = run(tmp_path, "--complete", code=1)
    assert "[H041]" in printed and "--alone" in printed
    run(tmp_path, "--alone")


def test_what_is_there_is_not_replaced_unless_that_is_said(folder):
    (folder / "out").mkdir()
    (folder / "out" / "notes.txt").write_text("mine")
    assert "H157" in run(folder, code=1)
    assert [path.name for path in (folder / "out").iterdir()] == ["notes.txt"]
    run(folder, "--force")
    assert spacy.load(folder / "out") and not (folder / "out" / "notes.txt").exists()
    assert "H566" in run(folder, "--force", output="model", code=1)


@pytest.mark.parametrize("sigma", ["0", "-1"])
def test_a_sigma_out_of_range_is_named_by_its_option(folder, sigma):
    assert "--sigma" in run(folder, "--sigma", sigma, code=2)
