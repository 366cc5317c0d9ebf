"""The group of commands: each is found under its name, and imported no sooner."""

import json
import os
import re
import subprocess
import sys

import pytest
import srsly
from catalogue import Registry
from spacy.cli._util import app
from typer.testing import CliRunner

from spacy_hocrf.cli import COMMANDS, OVERRIDING, hocrf_cli


def test_the_commands_are_listed_in_order():
    help_text = CliRunner().invoke(hocrf_cli, ["--help"]).stdout
    listed = re.findall(r"^(?:│| ) (\S+)", help_text, re.MULTILINE)  # not what wraps around
    assert [word for word in listed if word in COMMANDS] == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_does(name):
    done = CliRunner().invoke(app, ["hocrf", name, "--help"])
    assert done.exit_code == 0
    assert f"hocrf {name}" in done.stdout


@pytest.mark.parametrize("name", sorted(OVERRIDING))
def test_settings_of_a_config_are_no_unknown_options(name, tmp_path):
    done = CliRunner().invoke(app, ["hocrf", name, str(tmp_path), "--training.seed", "1"])
    assert "--training.seed" not in done.output


@pytest.mark.parametrize("name", sorted(OVERRIDING))
def test_a_mistyped_option_is_named_beside_those_that_there_are(name, tmp_path):
    path = tmp_path / "config.cfg"
    path.write_text("[nlp]\nlang = en\n")
    texts = {"cross-fit": [path, "out.spacy"], "doubt": [path]}.get(name, [])
    given = [str(each) for each in (path, *texts)]
    done = CliRunner().invoke(app, ["hocrf", name, *given, "--sed", "1"], catch_exceptions=False)
    printed = " ".join(done.output.split())
    assert done.exit_code == 1, printed
    assert f"[H574] There is no option --sed. Options of {name}: --" in printed


def test_entry_points_are_looked_through_once_not_for_every_doc(tmp_path, monkeypatch):
    asked, own = [], Registry.get_entry_points

    def counted(registry):
        asked.append(registry.namespace)
        return own(registry)

    monkeypatch.setattr(Registry, "get_entry_points", counted)
    row = json.dumps({"text": "Ada ran", "label": [[0, 3, "PER"]]})
    (tmp_path / "a.jsonl").write_text(f"{row}\n" * 20)
    for command, *paths in (["convert", "a.jsonl", "a.spacy"], ["config", "a.cfg"]):
        given = [str(tmp_path / path) for path in paths]
        more = ["--train", str(tmp_path / "a.spacy")] if command == "config" else ["--into", "sc"]
        done = CliRunner().invoke(hocrf_cli, [command, *given, *more])
        assert done.exit_code == (command == "config"), done.output  # which finds doc.ents empty
    assert 0 < sum(namespace[0] == "srsly" for namespace in asked) <= 4
    asked.clear()
    srsly.msgpack_dumps({})
    assert asked  # nothing stays behind


def test_other_commands_refuse_them(tmp_path):
    done = CliRunner().invoke(app, ["hocrf", "show", str(tmp_path), "--training.seed", "1"])
    assert done.exit_code == 2
    assert "--training.seed" in done.output


def test_a_name_that_is_nearly_right():
    assert "'config'" in CliRunner().invoke(app, ["hocrf", "conifg"]).output


def test_spacys_own_commands_import_none_of_them(tmp_path):
    script = "import sys, json, spacy_hocrf.cli; print(json.dumps(sorted(sys.modules)))"
    printed = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, check=True, cwd=tmp_path
    ).stdout
    ours = [name for name in json.loads(printed) if name.startswith("spacy_hocrf")]
    assert ours == ["spacy_hocrf", "spacy_hocrf.cli"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert", "a.jsonl", "b.spacy", "--into", ""),
        ("config", "b.cfg", "--spans-key", ""),
        ("config", "b.cfg", "--teachers", ""),
        ("inspect", "", "--top", "3"),
    ],
)
def test_an_empty_value_as_of_a_variable_that_is_not_set_is_refused(
    tmp_path, monkeypatch, arguments
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"text": "Ada ran", "label": [[0, 3, "PER"]]}\n')
    done = CliRunner().invoke(hocrf_cli, arguments)
    assert done.exit_code == 1 and "[H579]" in done.output, done.output
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "model", "a.jsonl", "--output", "b.html", "--title", "a\udcff"),
        ("config", "b.cfg", "--spans-key", "a\udcff"),
        ("label", "a.jsonl", "--output", "b", "--labels", "a\udcff"),
        ("compare", "model", "model", "a.jsonl", "--label", "PER", "--label", "a\udcff"),
    ],
)
def test_a_value_in_another_encoding_than_utf_8_is_refused(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").touch()
    done = CliRunner().invoke(hocrf_cli, arguments)
    assert done.exit_code == 1 and "[H584]" in done.output, done.output
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes")
@pytest.mark.parametrize("command", ["convert {pipe} b.spacy", "label {pipe} --output b"])
def test_a_pipe_in_place_of_a_file_is_named(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "texts")
    done = CliRunner().invoke(hocrf_cli, command.format(pipe="texts").split())
    assert done.exit_code == 1 and "[H578] texts " in done.output, done.output
    assert not (tmp_path / "b").exists()
