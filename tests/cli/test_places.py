"""A place that cannot be written is said before the work, by every command that writes."""

import pytest
import typer
from typer.testing import CliRunner

from spacy_hocrf import cli
from spacy_hocrf.cli import BESIDE, WHOLE, WRITTEN, hocrf_cli

COMMANDS = {
    "ablate": "config.cfg --output OUT",
    "annotate": "model texts.jsonl OUT",
    "auto": "texts.spacy OUT",
    "calibrate": "model texts.spacy --output OUT",
    "card": "model texts.spacy --output OUT",
    "compare": "texts.spacy texts.spacy texts.spacy --output OUT",
    "config": "OUT",
    "convert": "texts.jsonl OUT",
    "cross-fit": "config.cfg texts.spacy OUT",
    "doubt": "config.cfg texts.spacy --output OUT",
    "extend": "model texts.spacy OUT",
    "inspect": "model --output OUT",
    "label": "texts.jsonl --output OUT",
    "show": "model texts.spacy --output OUT",
    "temper": "model texts.spacy OUT",
}
FURTHER = {
    **COMMANDS,
    "doubt": "config.cfg texts.spacy --page OUT",
    "annotate": "model texts.jsonl OUT/out",
}
FOLDERS = {"extend", "label", "temper"}


def written(name):
    """Parameters of a command that name what it writes."""
    command = typer.main.get_command(hocrf_cli).get_command(None, name)
    return {param.name for param in command.params} & WRITTEN


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command whose inputs are there and hold nothing: whoever reads them fails."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    for name in ("config.cfg", "texts.spacy", "texts.jsonl", "file"):
        (tmp_path / name).touch()
    before = sorted(tmp_path.rglob("*"))

    def running(name, output, commands=COMMANDS):
        arguments = commands[name].replace("OUT", output).split()
        done = CliRunner().invoke(hocrf_cli, [name, *arguments])
        left = [path for path in sorted(tmp_path.rglob("*")) if path not in before]
        return done, left

    return running


def test_every_command_that_writes_is_here():
    assert {name for name in cli.COMMANDS if written(name)} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_dash_is_no_file(run, name):
    done, left = run(name, "-")
    assert done.exit_code == 1 and not left, done.output
    said = " ".join(done.output.split())
    assert "[H401] - cannot be written" in said and "standard output" in said


@pytest.mark.parametrize("commands", [COMMANDS, FURTHER], ids=["", "others"])
@pytest.mark.parametrize(
    "output", ["file/out.jsonl", "new/" + "x" * 300 + ".jsonl", "file/new/out.jsonl"]
)
@pytest.mark.parametrize("name", COMMANDS)
def test_where_nothing_can_be_written(run, name, output, commands):
    done, left = run(name, output, commands)
    assert done.exit_code == 1 and not left
    said = done.output.replace("\n", " ")
    assert "[H401]" in said and f"see {'page' if '--page' in commands[name] else 'output'}." in said


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - BESIDE))
def test_what_is_in_the_way(run, name, tmp_path):
    (tmp_path / "folder.x").mkdir()
    done, _ = run(name, "file" if name in FOLDERS else "folder.x")
    # typer says of some that they are a folder, or none, before us
    assert "[H401]" in done.output or (done.exit_code == 2 and "Invalid value" in done.output)


@pytest.mark.parametrize("name", ["annotate", "label"])
def test_a_file_in_the_place_of_a_folder_is_named_as_it_was_given(run, name):
    done, _ = run(name, "file")
    said = done.output.replace("\n", " ")
    assert done.exit_code == 1 and "[H401] file cannot be written" in said


@pytest.mark.parametrize("name", sorted(BESIDE))
def test_the_present_folder_is_not_replaced(run, name):
    done, left = run(name, ".")
    assert done.exit_code == 1 and "[H401] ." in done.output and not left, done.output


@pytest.mark.parametrize("name", sorted(BESIDE))
def test_a_mounted_volume_is_not_replaced(run, name, monkeypatch):
    monkeypatch.setattr(cli, "ismount", lambda path: path.name == "out")
    done, left = run(name, "out")
    assert ("[H401] out" in done.output) == (name in WHOLE) and not left, done.output


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_is_not_there_yet_is_no_fault(run, name):
    done, _ = run(name, "new/more/out.jsonl")
    assert "H401" not in done.output


@pytest.mark.parametrize(
    "name, words",
    [
        ("convert", "texts.jsonl OUT"),
        ("convert", "texts.jsonl new.spacy --dev OUT"),
        ("cross-fit", "config.cfg texts.spacy OUT"),
        ("doubt", "config.cfg texts.spacy --weights OUT"),
    ],
)
@pytest.mark.parametrize("output", ["out", "out.json"])
def test_docs_are_written_where_commands_look_for_them(run, name, words, output):
    done, left = run(name, output, {name: words})
    said = " ".join(done.output.split())
    assert done.exit_code == 1 and not left and "[H074]" in said and "ends in .spacy" in said


OVER = [
    ("ablate", "config.cfg --output config.cfg"),
    ("annotate", "model texts.jsonl texts.jsonl"),
    ("annotate", "model texts.jsonl new.jsonl --review texts.jsonl"),
    ("annotate", "model texts.jsonl new.jsonl --review new.jsonl"),
    ("auto", "texts.spacy texts.spacy --force"),
    ("auto", "folder/texts.spacy folder --force"),
    ("auto", "folder folder --force"),
    ("auto", "texts.spacy folder --force --encoder folder/encoder"),
    ("calibrate", "model texts.spacy --output texts.spacy"),
    ("card", "model texts.spacy --output texts.spacy"),
    ("compare", "new.spacy texts.spacy texts.spacy --output new.spacy"),
    ("config", "config.cfg --train config.cfg --force"),
    ("convert", "texts.jsonl texts.jsonl"),
    ("convert", "texts.jsonl folder/../texts.jsonl"),
    ("convert", "texts.jsonl link.jsonl"),
    ("convert", "texts.jsonl new.spacy --dev new.spacy"),
    ("convert", "texts.jsonl new.spacy --dev texts.jsonl"),
    ("convert", "texts.jsonl new.spacy --losses new.spacy"),
    ("convert", "texts.jsonl new.spacy --losses texts.jsonl"),
    ("cross-fit", "config.cfg texts.spacy texts.spacy"),
    ("doubt", "config.cfg texts.spacy --weights texts.spacy"),
    ("inspect", "texts.spacy --grammar --output texts.spacy"),
    ("show", "model texts.spacy --output texts.spacy"),
]


@pytest.mark.parametrize("name, arguments", OVER)
def test_nothing_that_is_read_is_replaced(run, name, arguments, tmp_path):
    (tmp_path / "folder" / "encoder").mkdir(parents=True)
    (tmp_path / "folder" / "texts.spacy").touch()
    (tmp_path / "link.jsonl").symlink_to("texts.jsonl")
    before = sorted(tmp_path.rglob("*"))
    done, _ = run(name, "", {name: arguments})
    assert done.exit_code == 1 and "[H566]" in done.output
    assert sorted(tmp_path.rglob("*")) == before


def test_a_pipeline_may_be_written_where_it_is(run):
    done, _ = run("temper", "", {"temper": "model texts.spacy model"})
    assert "H566" not in done.output


@pytest.mark.parametrize("option", ["convert --dev", "convert --losses", "calibrate --into"])
def test_further_places_that_cannot_be_written(run, option):
    name, flag = option.split()
    given = {"convert": "texts.jsonl new.spacy", "calibrate": "model texts.spacy"}[name]
    done, left = run(name, "", {name: f"{given} {flag} file/out"})
    assert done.exit_code == 1 and "[H401]" in done.output and not left


@pytest.mark.parametrize("name", ["ablate", "cross-fit", "debug", "doubt"])
def test_a_config_that_is_no_text(run, name, tmp_path):
    (tmp_path / "config.cfg").write_bytes(b"x\x9c")
    output = "new.json" if name == "ablate" else "new.spacy"
    arguments = COMMANDS.get(name, "config.cfg").replace("OUT", output)
    done, left = run(name, "", {name: arguments})
    assert done.exit_code == 1 and "[H567]" in done.output and not left


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("annotate", "model texts.jsonl new.jsonl"),
        ("card", "model texts.spacy"),
        ("compare", "texts.spacy,model texts.spacy texts.spacy"),
        ("inspect", "model"),
        ("label", "texts.jsonl --labels A --model model --output new"),
        ("show", "model texts.spacy --output new.html"),
    ],
)
def test_the_folder_above_a_pipeline_is_none(run, name, arguments):
    done, left = run(name, "", {name: arguments})
    said = " ".join(done.output.split())
    assert done.exit_code == 1 and not left and "[H571] model has no meta.json" in said
