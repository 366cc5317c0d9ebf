"""project/template: a copy of it makes a model of a file, whatever format that has."""

import re
import shlex
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import spacy
import srsly
from documentation import page
from spacy.tokens import DocBin
from typer.testing import CliRunner
from weasel.util.config import substitute_project_variables

from spacy_hocrf.cli import hocrf_cli

TEMPLATE = Path(__file__).parents[2] / "project" / "template"
SAMPLES = dict(
    re.findall(r"<!-- sample: (\S+) -->\n```\w+\n(.*?)^```$", page("docs/data.md"), re.M | re.S)
)
# as long as those of the samples, so that places in the text stay right
NAMES, CITIES = ("Ada", "Max", "Eva", "Tom", "Kim"), ("Paris", "Milan", "Tokyo", "Delhi", "Cairo")
STEPS = ["convert", "debug", "auto", "page", "package"]


@pytest.fixture
def copied(tmp_path):
    """A copy somewhere else, in a folder with a blank in its name."""
    folder = tmp_path / "my texts"
    skipped = shutil.ignore_patterns("corpus", "training", "output", "packages", "project.lock")
    shutil.copytree(TEMPLATE, folder, ignore=skipped)
    return folder


def write_samples(folder, name):
    """25 files like a sample of docs/data.md, and the texts that it needs beside it."""
    folder.mkdir()
    for number, (person, city) in enumerate(product(NAMES, CITIES)):
        for kind in {name, "one.txt"} if name == "one.ann" else {name}:
            text = SAMPLES[kind].replace("Ada", person).replace("Paris", city)
            (folder / f"{number}{Path(kind).suffix}").write_text(text, encoding="utf8")


def run(folder, *arguments):
    command = [sys.executable, "-m", "spacy", "project", "run", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_the_whole_workflow_in_a_copy(copied):
    (copied / "assets" / "references.jsonl").rename(copied / "assets" / "my file.jsonl")
    text = (copied / "project.yml").read_text(encoding="utf8")
    for old, new in {
        'file: "references.jsonl"': 'file: "my file.jsonl"',
        'build: "wheel"': 'build: "none"',
    }.items():
        assert old in text
        text = text.replace(old, new)
    (copied / "project.yml").write_text(text, encoding="utf8")
    done = run(copied, "all")
    assert done.returncode == 0, done.stdout + done.stderr
    model = copied / "packages" / "en_my_model-0.0.1" / "en_my_model" / "en_my_model-0.0.1"
    doc = spacy.load(model)("Ada Lovelace. 1843. Notes on the analytical engine.")
    assert {"author", "date"} <= {ent.label_ for ent in doc.ents}
    assert "### How good it is" in (
        copied / "packages" / "en_my_model-0.0.1" / "README.md"
    ).read_text("utf8")
    assert "and how sure it is" in (copied / "output" / "page.html").read_text(encoding="utf8")
    again = run(copied, "all")
    assert again.stdout.count("nothing changed") == len(STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "one.txt"])
def test_files_of_every_format(name, copied, monkeypatch):
    """The commands as the project has them: two of them, since all are alike from there on."""
    monkeypatch.chdir(copied)
    (copied / "corpus").mkdir()
    write_samples(copied / "assets" / "mine", name)
    project = substitute_project_variables(
        srsly.read_yaml(TEMPLATE / "project.yml"), {"vars.file": "mine"}
    )
    for command in project["commands"][:2]:
        for line in command["script"]:
            words = shlex.split(line)
            assert words[:4] == ["python", "-m", "spacy", "hocrf"]
            done = CliRunner().invoke(hocrf_cli, words[4:])
            assert done.exit_code == 0, done.output
    parts = [
        list(
            DocBin()
            .from_disk(copied / "corpus" / f"{part}.spacy")
            .get_docs(spacy.blank("en").vocab)
        )
        for part in ("train", "dev")
    ]
    assert sum(map(len, parts)) >= len(NAMES) * len(CITIES) and 1 <= len(parts[1]) < len(parts[0])
    for doc in parts[0] + parts[1]:
        assert [ent.label_ for ent in doc.ents] == ["PER", "LOC"]


def test_a_file_that_is_not_there_is_named(copied):
    done = run(copied, "convert", ".", "--vars.file", "missing.jsonl")
    assert done.returncode == 1 and "assets/missing.jsonl" in done.stdout
