"""`python -m spacy …` with our components: every command that a user of a trained pipeline needs,
as subprocesses.
"""

import json
import subprocess
import sys

import pytest
import spacy
from small_corpus import documents, examples
from spacy.tokens import DocBin
from thinc.api import Config

SMALL = """
[nlp]
lang = "en"
pipeline = ["hocrf"]

[components]

[components.hocrf]
factory = "hocrf"
"""
PATHS = ["--paths.train", "train.spacy", "--paths.dev", "train.spacy"]


def run_spacy(*arguments, cwd):
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, encoding="utf8", cwd=cwd)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with a corpus, and the config that `init config` writes."""
    folder = tmp_path_factory.mktemp("cli")
    nlp = spacy.blank("en")
    # debug data wants a hundred
    rows = [(f"{text} {i}", spans) for i in range(6) for text, spans in documents(20)]
    DocBin(docs=[example.reference for example in examples(nlp, rows)]).to_disk(
        folder / "train.spacy"
    )
    (folder / "texts.jsonl").write_text(
        '{"text": "Ada Lovelace was born in Paris ."}\n', encoding="utf8"
    )
    run_spacy("init", "config", "base.cfg", "--lang", "en", "--pipeline", "hocrf", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def trained(work):
    """The same folder after ten steps; out/model-last is the pipeline."""
    steps = ["--training.max_steps", "10", "--training.eval_frequency", "5"]
    printed = run_spacy("train", "base.cfg", "--output", "out", *PATHS, *steps, cwd=work)
    (work / "train.log").write_text(printed, encoding="utf8")
    return work


def test_init_config_and_fill_config_know_the_factory(work):
    base = Config().from_disk(work / "base.cfg", interpolate=False)
    assert base["components"]["hocrf"]["factory"] == "hocrf"
    (work / "small.cfg").write_text(SMALL, encoding="utf8")
    run_spacy("init", "fill-config", "small.cfg", "filled.cfg", cwd=work)
    filled = Config().from_disk(work / "filled.cfg", interpolate=False)["components"]["hocrf"]
    assert filled["model"]["encoding"] == "segments"
    assert filled["trainer"]["sigma"] and filled["scores_key"] == "hocrf"


def test_init_labels_writes_what_training_reads(work):
    run_spacy("init", "labels", "base.cfg", "labels", *PATHS, cwd=work)
    assert json.loads((work / "labels" / "hocrf.json").read_text(encoding="utf8")) == [
        "PERSON",
        "PLACE",
    ]
    config = Config().from_disk(work / "base.cfg", interpolate=False)
    config["initialize"]["components"] = {
        "hocrf": {"labels": {"@readers": "spacy.read_labels.v1", "path": "labels/hocrf.json"}}
    }
    config.to_disk(work / "labelled.cfg")
    run_spacy("train", "labelled.cfg", *PATHS, "--training.max_steps", "1", cwd=work)


def test_train_prints_a_table_and_saves(trained):
    rows = [
        line.split() for line in (trained / "train.log").read_text(encoding="utf8").splitlines()
    ]
    rows = [row for row in rows if row and row[0].isdigit()]
    assert [int(row[1]) for row in rows] == [0, 5, 10]
    assert float(rows[0][2]) > 0
    assert float(rows[-1][3]) > 90
    assert (trained / "out" / "model-best").exists()
    assert spacy.load(trained / "out" / "model-last")("Ada Lovelace was born in Paris .").ents


def test_evaluate_and_find_threshold(trained):
    run_spacy("evaluate", "out/model-last", "train.spacy", "--output", "scores.json", cwd=trained)
    scores = json.loads((trained / "scores.json").read_text(encoding="utf8"))
    assert scores["ents_f"] > 0.9
    assert set(scores["ents_per_type"]) == {"PERSON", "PLACE"}
    given = "out/model-last train.spacy hocrf threshold ents_f --n_trials 3"
    printed = run_spacy("find-threshold", *given.split(), cwd=trained)
    rows = [line.split() for line in printed.splitlines() if line[:2] in ("0.", "1.")]
    assert [float(row[0]) for row in rows] == [0.0, 0.5, 1.0]
    assert float(rows[0][1]) == pytest.approx(scores["ents_f"])
    assert float(rows[2][1]) < 0.5


def test_apply(trained):
    run_spacy("apply", "out/model-last", "texts.jsonl", "applied.spacy", cwd=trained)
    [doc] = (
        DocBin()
        .from_disk(trained / "applied.spacy")
        .get_docs(spacy.load(trained / "out" / "model-last").vocab)
    )
    assert [(ent.text, ent.label_) for ent in doc.ents] == [
        ("Ada Lovelace", "PERSON"),
        ("Paris", "PLACE"),
    ]
    assert all(0 < ent._.hocrf_score <= 1 for ent in doc.ents)


def test_benchmark_and_debug_model(trained):
    options = ["--batches", "30", "--batch-size", "4", "--warmup", "1"]
    assert "Mean" in run_spacy(
        "benchmark", "speed", "out/model-last", "train.spacy", *options, cwd=trained
    )
    options = ["-P0", "-P1", "-P3", "-ATTR", "-PAR"]
    shown = run_spacy(
        "debug", "model", "out/model-last/config.cfg", "hocrf", *options, *PATHS, cwd=trained
    )
    assert "2 labels" in shown or "3 labels" in shown
    assert "array" not in shown and shown.count("\n") < 40  # it is for people


def test_package_requires_this_package(trained):
    (trained / "packages").mkdir()
    run_spacy(
        "package", "out/model-last", "packages", "--build", "none", "--name", "places", cwd=trained
    )
    [meta] = (trained / "packages").glob("en_places-*/meta.json")
    requirements = json.loads(meta.read_text(encoding="utf8"))["requirements"]
    assert any(requirement.startswith("spacy-hocrf>=") for requirement in requirements)
