"""Languages that spaCy does not have, or only with another package, in every command that has --lang."""

import sys

import pytest
from typer.testing import CliRunner

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
    done = CliRunner().invoke(hocrf_cli, [*arguments, "--lang", "th"])
    said = " ".join(done.output.split())
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.output
    assert "H363" in said and "'th'" in said and "PyThaiNLP" in said and "--lang" in said


def test_a_language_that_is_there():
    assert blank("de").lang == "de"
