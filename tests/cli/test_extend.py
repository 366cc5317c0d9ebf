"""`python -m spacy hocrf extend`: what it prints and writes."""

import pytest
import spacy
from small_corpus import examples, trained, untrained, words
from spacy.tokens import DocBin
from spacy.training import Example
from typer.testing import CliRunner

from spacy_hocrf.cli import hocrf_cli


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


def run(folder, *more, texts="new.spacy"):
    given = [str(folder / name) for name in ("model", texts, "out")]
    return CliRunner().invoke(hocrf_cli, ["extend", *given, *more])


def test_a_pipeline_learns_a_label_and_forgets_none(folder):
    done = run(folder, "--dev", str(folder / "dev.spacy"))
    assert done.exit_code == 0, done.output
    assert "4 texts, new labels: DAY" in done.output and "all of before" in done.output
    nlp = spacy.load(folder / "out")
    before = spacy.load(folder / "model")
    found = nlp(words(nlp, "Ada", "Lovelace", "left", "on", "Tuesday"))
    assert [(ent.text, ent.label_) for ent in found.ents][-1] == ("Tuesday", "DAY")
    same = [
        [(ent.start, ent.end, ent.label_) for ent in pipeline(words(pipeline, *text)).ents]
        for text in ([token.text for token in each.predicted] for each in examples(nlp))
        for pipeline in (before, nlp)
    ]
    assert same[::2] == same[1::2] and any(same)


def test_texts_without_a_new_label_are_learnt_as_well(folder):
    done = run(folder, "--dev", str(folder / "dev.spacy"), texts="dev.spacy")
    assert done.exit_code == 0, done.output
    assert "new labels: none" in done.output and (folder / "out").exists()


def test_labels_that_do_not_occur_are_named_if_they_count_as_annotated(folder):
    done = run(folder)
    assert done.exit_code == 0 and "--alone" not in done.output
    (folder / "out").rename(folder / "model2")
    given = [str(folder / name) for name in ("model2", "new.spacy", "out")]
    done = CliRunner().invoke(hocrf_cli, ["extend", *given])
    assert done.exit_code == 0 and "No text has PERSON, PLACE" in done.output
    done = CliRunner().invoke(hocrf_cli, ["extend", *given, "--alone", "--force"])
    assert done.exit_code == 0 and "No text has" not in done.output


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
    done = run(folder)
    assert done.exit_code == 0 and "new labels: DAY" in done.output


def test_texts_without_annotation_are_an_error_that_names_the_places(folder):
    doc = words(spacy.blank("en"), "Ada", "left")
    DocBin(docs=[doc]).to_disk(folder / "new.spacy")
    done = run(folder)
    assert done.exit_code == 1 and "H511" in done.output and "doc.ents" in done.output
    assert not (folder / "out").exists()


def test_a_model_whose_texts_are_covered_by_spans_says_how_to_learn_one_label(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    rows = [(["Ada", "Paris"], ["U-PER", "U-LOC"]), (["Max", "Rome"], ["U-PER", "U-LOC"])]
    covered = [Example.from_dict(words(nlp, *text), {"entities": tags}) for text, tags in rows]
    nlp.update(covered, sgd=nlp.initialize(lambda: covered))
    nlp.to_disk(tmp_path / "model")
    DocBin(docs=[each.reference for each in of_a_new_label(nlp)]).to_disk(tmp_path / "new.spacy")
    done = run(tmp_path, "--complete")
    assert done.exit_code == 1 and "[H041]" in done.output and "--alone" in done.output
    assert run(tmp_path, "--alone").exit_code == 0


def test_what_is_there_is_not_replaced_unless_that_is_said(folder):
    (folder / "out").mkdir()
    (folder / "out" / "notes.txt").write_text("mine")
    done = run(folder)
    assert done.exit_code == 1 and "H157" in done.output
    assert [path.name for path in (folder / "out").iterdir()] == ["notes.txt"]
    done = run(folder, "--force")
    assert done.exit_code == 0, done.output
    assert spacy.load(folder / "out") and not (folder / "out" / "notes.txt").exists()
    given = [str(folder / name) for name in ("model", "new.spacy", "model")]
    done = CliRunner().invoke(hocrf_cli, ["extend", *given, "--force"])
    assert done.exit_code == 1 and "H566" in done.output


@pytest.mark.parametrize("sigma", ["0", "-1"])
def test_a_sigma_out_of_range_is_named_by_its_option(folder, sigma):
    done = run(folder, "--sigma", sigma)
    assert done.exit_code == 2 and "--sigma" in done.output
