"""Languages that spaCy does not have, or only with another package, in every command that has --lang."""

import sys

import commands
import pytest
from spacy.tokens import DocBin
from spacy.util import load_model_from_config
from thinc.api import Config
from typer.testing import CliRunner

from spacy_hocrf.annotation.readers import has_tokens_of
from spacy_hocrf.cli import hocrf_cli
from spacy_hocrf.cli.pipelines import blank


@pytest.mark.parametrize("lang", ["qq", "", "../x", "punctuation", "en.lex_attrs"])
def test_a_language_that_there_is_not(lang):
    with pytest.raises(ValueError, match="H159"):
        blank(lang)


@pytest.mark.parametrize(
    "arguments",
    [["convert", "a.jsonl", "b.spacy"], ["config", "c.cfg"], ["auto", "a.jsonl", "out"]],
    ids=lambda arguments: arguments[0],
)
def test_a_language_that_needs_another_package(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pythainlp", None)
    monkeypatch.setitem(sys.modules, "pythainlp.tokenize", None)
    (tmp_path / "a.jsonl").write_text('{"text": "a", "label": []}\n')
    said = " ".join(commands.run(*arguments, "--lang", "th", code=1).split())
    assert "H363" in said and "'th'" in said and "PyThaiNLP" in said and "--lang" in said


def test_files_have_the_tokens_of_a_model_that_is_trained_on_them(tmp_path):
    """By default, with a word that English has an exception for."""
    (tmp_path / "a.jsonl").write_text('{"text": "Ada didn\'t run", "label": [[0, 3, "PER"]]}\n')
    for arguments in (["convert", "a.jsonl", "a.spacy"], ["config", "a.cfg"]):
        commands.run(*(tmp_path / each if "." in each else each for each in arguments))
    nlp = load_model_from_config(Config().from_disk(tmp_path / "a.cfg"), auto_fill=True)
    (doc,) = DocBin().from_disk(tmp_path / "a.spacy").get_docs(nlp.vocab)
    assert has_tokens_of(nlp, doc) and [token.text for token in doc][1:3] == ["did", "n't"]


def test_words_that_the_encoding_of_the_output_does_not_have(tmp_path):
    """As on Windows, where what is written to a file or a pipe is in cp1252."""
    (tmp_path / "a.jsonl").write_text(
        '{"text": "北京很美。", "label": [[0, 2, "地名"]]}\n', encoding="utf8"
    )
    arguments = ["convert", f"{tmp_path}/a.jsonl", f"{tmp_path}/a.spacy", "--lang", "zh"]
    done = CliRunner(charset="cp1252").invoke(hocrf_cli, arguments)
    assert done.exit_code == 0, done.exception
    assert r"\u5730\u540d" in done.stdout_bytes.decode("ascii", "ignore")


def test_a_language_that_is_there():
    assert blank("de").lang == "de"
