"""Wrong use of commands that take annotated texts. Each names `hocrf convert`, with that very file, for a
file that is not spaCy's, and the file that is damaged.
"""

import gzip
import zlib
from shutil import copy

import pytest
import spacy
from small_corpus import learn_from, untrained
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from typer.testing import CliRunner

from spacy_hocrf.cli import hocrf_cli
from spacy_hocrf.cli.corpora import read_docs
from spacy_hocrf.cli.counts import EntsScorer
from spacy_hocrf.cli.docbins import doc_files

LINE = '{"text": "Ada ran", "label": [[0, 3, "PER"]]}\n'


def run(*arguments):
    return CliRunner().invoke(hocrf_cli, list(map(str, arguments)))


def run_on(words, folder, place, name):
    """A command with the config and the model of `folder`, and what is read and written in `place`."""
    known = {
        "file": place / name,
        "none": place / name,
        "many": place / "many",
        "out": place / "out",
        "config": folder / "c.cfg",
        "model": folder / "model",
        "gold": folder / "gold.spacy",
    }
    return run(*(part.format(**known) for part in words.split(" ")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file of another tool, a folder with it, a config and a model."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "my texts.jsonl").write_text(LINE)
    (folder / "many").mkdir()
    (folder / "many" / "a.jsonl").write_text(LINE)
    assert run("config", folder / "c.cfg").exit_code == 0
    nlp = untrained("hocrf")
    data = [Example.from_dict(nlp.make_doc("Ada ran"), {"entities": [(0, 3, "PER")]})]
    learn_from(nlp, data)
    nlp.to_disk(folder / "model")
    DocBin(docs=[each.reference for each in data]).to_disk(folder / "gold.spacy")
    return folder


COMMANDS = {
    "ablate": "ablate {config} --paths.train {file}",
    "auto": "auto {file} {out}",
    "auto of a folder": "auto {many} {out}",
    "config --train": "config {out} --train {file}",
    "config --dev": "config {out} --dev {file}",
    "doubt": "doubt {config} {file}",
    "cross-fit": "cross-fit {config} {file} {out}.spacy",
    "debug": "debug {config} --paths.train {file}",
    "show": "show {model} {file} --output {out}.html",
    "calibrate": "calibrate {model} {file}",
    "temper": "temper {model} {file} {out}",
    "compare, gold": "compare {model} {model} {file}",
    "compare, a system": "compare {file} {model} {gold}",
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.filterwarnings("ignore:.*W090")
def test_a_file_of_another_tool_is_refused_with_the_command_that_converts_it(folder, name):
    done = run_on(COMMANDS[name], folder, folder, "my texts.jsonl")
    said = "".join(done.output.split())
    assert done.exit_code == 1 and "[H381]" in said, done.output
    path = f"{folder}/many{folder}/many.spacy"
    if "{many}" not in COMMANDS[name]:
        path = f"'{folder}/my texts.jsonl' '{folder}/my texts.spacy'"
    assert "".join(f"python -m spacy hocrf convert {path}".split()) in said
    assert not list(folder.glob("out*"))


def test_a_pipeline_in_place_of_texts_is_not_to_be_converted(folder):
    done = run_on("inspect --grammar {model}", folder, folder, "")
    printed = " ".join(done.output.split())
    assert done.exit_code == 1 and "[H577]" in printed and "convert" not in printed, done.output


DAMAGES = {
    "cut": lambda data: data[:-9],
    "not a map": lambda data: zlib.compress(b"\x92\x01\x02"),
    "without strings": lambda data: zlib.compress(zlib.decompress(data).replace(b"Ada", b"Bob")),
}
READING = {name: words for name, words in COMMANDS.items() if name != "config --dev"}
READING |= {
    "annotate": "annotate {model} {file} {out}.jsonl",
    "annotate a folder": "annotate {model} {many} {out}.jsonl",
    "cross-fit of a folder": "cross-fit {config} {many} {out}.spacy",
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", READING)
def test_a_damaged_file_is_named(folder, tmp_path, name, damage):
    data = DAMAGES[damage]((folder / "gold.spacy").read_bytes())
    (tmp_path / "many").mkdir()
    copy(folder / "gold.spacy", tmp_path / "many")
    for path in (tmp_path / "damaged.spacy", tmp_path / "many" / "damaged.spacy"):
        path.write_bytes(data)
    done = run_on(READING[name], folder, tmp_path, "damaged.spacy")
    said = "".join(done.output.split())
    assert done.exit_code == 1 and "[H257]" in said, done.output
    assert f"{'many/' if '{many}' in READING[name] else ''}damaged.spacy" in said


@pytest.mark.parametrize("name", ["gold.bin", "gold.spacy.gz"])
def test_docs_under_another_name_are_to_be_renamed_not_converted(folder, tmp_path, name):
    data = (folder / "gold.spacy").read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(ValueError, match=f"H563.*{name}"):
        doc_files(tmp_path / name)


def test_the_command_that_is_named_makes_the_file(folder):
    with pytest.raises(ValueError, match="H381") as caught:
        doc_files(folder / "many")
    arguments = str(caught.value).partition("hocrf convert ")[2].split(" ")
    assert run("convert", *arguments).exit_code == 0
    docs = DocBin().from_disk(arguments[1]).get_docs(spacy.blank("xx").vocab)
    assert [[str(ent) for ent in doc.ents] for doc in docs] == [["Ada"]]


def test_white_space_of_a_file_is_no_part_of_what_commands_count(tmp_path):
    doc = Doc(spacy.blank("xx").vocab, words=["\n", "Ada", "\n"])
    doc.set_ents([Span(doc, 0, 3, "PER")])
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    [read] = read_docs(tmp_path / "gold.spacy")
    assert EntsScorer().items(read) == {("PER", 1, 2)}


def test_files_of_spacy_are_found(folder, tmp_path):
    assert doc_files(folder / "gold.spacy") == [folder / "gold.spacy"]
    assert folder / "gold.spacy" in doc_files(folder)
    assert doc_files(tmp_path) == []


WRONG = {
    "ablate {config} --output {out}.html": "H074",
    "calibrate {model} {gold} --recall 1.0": "H207",
    "calibrate {model} {gold} --recall 0.5 --confidence 0": "H207",
    "calibrate {model} {gold} --recall 0.999": "H208",
    "calibrate {model} {gold} --component ner": "H204",
    "calibrate {model} {gold} --output {out}.html": "H074",
    "compare {gold} {gold}": "H564",
    "compare {gold} {gold} {gold} --output {out}.html": "H074",
    "compare {gold} {gold} {gold} --output {out}.xlsx": "H074",
    "compare {gold} {gold} {gold} --label PERSONS": "H072",
    "compare {gold} {gold} {gold} --spans-key other": "H073",
    "compare {gold} {gold} {gold} --spans-key sc --tags": "--spans-key",
    "compare nothing {gold} {gold}": "E050",
    "cross-fit {config} {gold} {out}.spacy --source sc": "H074",
    "cross-fit {config} {gold} {out}.spacy --source spans.": "H074",
    "cross-fit {config} {gold} {out}.spacy --folds 14": "H077",
    "debug {config} --paths.train {gold} --component other": "H204",
    "doubt {config} {gold} --output {out}.jsonl --format brat": "H074",
    "doubt {config} {gold} --output {out}.jsonl --component ner": "H204",
    "doubt {config} {gold} --output {out}.jsonl --folds 31": "H077",
    "doubt {config} {gold} --output {out}.jsonl --page a.json": "H074",
    "doubt {config} {gold} --output {out}.jsonl --page a.html --unlabelled {gold}": "H074",
    "doubt {config} {gold} --output {out}.jsonl --weights a.spacy --unlabelled {gold}": "H074",
    "doubt {config} {gold} --output {out}.csv": "H351",
    "doubt {config} {gold} --output {out}.json": "H351",
    "doubt {config} {gold} --output {out}.jsonl --format label-studio": "H351",
    "inspect {model} --component ner": "H204",
    "inspect {model} --label nobody": "H205",
    "inspect {model} --output {out}.html": "H074",
    "inspect {model} --output {out}.csv": "H074",
    "show {model} {none} --output {out}.html": "H158",
    "show {model} {gold} --output {out}.html --component ner": "H204",
    "show {model} {gold} --output {out}.json": "H074",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_use_is_explained_and_nothing_is_written(folder, tmp_path, words):
    DocBin().to_disk(tmp_path / "none.spacy")
    done = run_on(words, folder, tmp_path, "none.spacy")
    assert done.exit_code == 1 and WRONG[words] in done.output, done.output
    assert [path.name for path in tmp_path.iterdir()] == ["none.spacy"]
