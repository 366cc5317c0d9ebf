"""The tables of settings on the pages of docs/: every setting is there, with the default that it has."""

import configparser
import inspect
import json
import re
from pathlib import Path

import pytest
import spacy
from documentation import everything, page, section
from project_checks import table_rows
from spacy.cli._util import app
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus
from spacy.util import registry
from typer.main import get_command

import spacy_hocrf.cli  # noqa: F401 - adds the commands

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = everything()
TABLES = {  # what stands before the table → what it is about, and settings that stand elsewhere
    '"spacy-hocrf.HighOrderCRF.v1"`': ("architectures", "HighOrderCRF", {"features"}),
    "## The default, `Window.v1`": ("misc", "Window", set()),
    "| setting of `Spans.v1`": ("misc", "Spans", set()),
    '`@misc = "spacy-hocrf.LBFGS.v1"` (default)': ("misc", "LBFGS", set()),
    "| setting of `OWLQN.v1`": ("misc", "OWLQN", set()),
    "| setting of `ConsoleLogger.v1`": ("loggers", "ConsoleLogger", set()),
    "| setting of `ExpectedF.v1`": ("misc", "ExpectedF", set()),
    "| setting of `Reranked.v1`": ("misc", "Reranked", set()),
    "| setting of `Constraints.v1`": ("misc", "Constraints", set()),
    "| setting of `[components.hocrf.joint]`": ("misc", "Joint", set()),
    "| setting of `[components.hocrf.joint.decoder]`": ("misc", "DualDecomposition", set()),
    "| setting of `LinkPairs.v1`": ("misc", "LinkPairs", set()),
}
OPTIONS = {  # the commands that the tables of options on a page are about
    "annotate": ["annotate"],
    "data": ["convert"],
    "label": ["label"],
    "page": ["show", "doubt"],
    "start": ["config"],
    "training": ["auto"],
}


@pytest.mark.parametrize("start", TABLES)
def test_a_table_has_all_settings_with_their_defaults(start):
    kind, name, elsewhere = TABLES[start]
    parameters = inspect.signature(registry.get(kind, f"spacy-hocrf.{name}.v1")).parameters
    expected = {
        name: None if each.default is each.empty else each.default
        for name, each in parameters.items()
        if name not in elsewhere
    }
    assert json.loads(json.dumps(settings_after(start))) == json.loads(json.dumps(expected))


@pytest.mark.parametrize("factory, place", [("hocrf", 0), ("hocrf_spans", 0), ("hocrf_tagger", -1)])
def test_the_table_of_the_component_has_all_settings_with_their_defaults(factory, place):
    """Settings that some factories lack name those that have them; the tagger's default is the last."""
    config = dict(Language.get_factory_meta(factory).default_config)
    del config["model"], config["trainer"]
    rows = table_rows(section("docs/settings.md", "Settings of `[components.hocrf]`"))[1:]
    told = {
        name.strip("`"): re.findall(r"`([^`]*)`", default)
        for name, default, meaning in rows
        if not meaning.startswith("(") or f"`{factory}`" in meaning.split(")")[0]
    }
    assert set(told) == set(config)
    assert config.pop("decoder")["@misc"].endswith(told.pop("decoder")[place])
    assert config.pop("scorer") and not told.pop("scorer")
    assert {name: json.loads(defaults[place]) for name, defaults in told.items()} == config


def test_the_table_of_the_encoder_has_all_settings_with_their_defaults():
    config = spacy.blank("en").get_factory_meta("hocrf_encoder").default_config
    assert settings_after("| setting of `hocrf_encoder`") == config


def test_the_table_of_blocks_has_all_settings_with_their_defaults():
    """A default stands in brackets behind its setting, where it is short; two blocks have tables."""
    written = section("docs/features.md", "All blocks").replace(r"\|", "¦")
    rows = [
        row for row in table_rows(written)[1:] if not row[2].startswith("see [What it can know]")
    ]
    assert len(rows) > 10
    for block, _, settings in rows:
        maker = registry.get("misc", f"spacy-hocrf.{block.strip('`')}")
        parameters = inspect.signature(maker).parameters
        told = dict(re.findall(r"`(\w+)`(?: \(([^)]*)\))?", settings.replace("¦", "|")))
        assert set(told) == set(parameters), block
        for name, default in told.items():
            if re.match(r'\[.*\]$|"[^,]*"$|\d|true|false', default):
                assert json.loads(default) == json.loads(json.dumps(parameters[name].default)), name


@pytest.mark.parametrize("name", OPTIONS)
def test_a_table_has_all_options_of_a_command_with_their_defaults(name):
    """Of several in a row, each has its default, in their order; one in words is not compared."""
    commands = get_command(app).commands["hocrf"]
    tables = re.findall(r"^\| option .*\n\|---.*\n((?:\|.*\n)+)", page(f"docs/{name}.md"), re.M)
    assert len(tables) == len(OPTIONS[name])
    for table, command in zip(tables, OPTIONS[name]):
        parameters = commands.get_command(None, command).params
        defaults = {option: each.default for each in parameters for option in each.opts}
        told = {}
        for row in table_rows(table):
            names, values = (cell.split(", ") for cell in row[:2])
            names = [option.strip("`") for option in names if not option.startswith("`--no-")]
            told |= zip(names, values if len(values) == len(names) else values * len(names))
        assert set(told) == set(filter(lambda option: option.startswith("--"), defaults))
        for option, value in told.items():
            default = getattr(defaults[option], "value", defaults[option])
            if re.fullmatch("`[^`]*`", value):
                assert str(default).removesuffix(".0") == value.strip("`"), option
            elif value in ("", "none"):
                assert not default, option


def settings_after(start):
    """Names and defaults of the first table of settings after this text, which is there once."""
    assert WRITTEN.count(start) == 1, start
    rest = WRITTEN[WRITTEN.index(start) :]
    header = re.search(r"^\| setting.*\n\|---.*\n", rest, flags=re.MULTILINE)
    found = {}
    for row in rest[header.end() :].split("\n\n")[0].splitlines():
        names, defaults = (re.findall(r"`([^`]*)`", cell) for cell in row.split(" | ")[:2])
        values = [json.loads(default) for default in defaults] or [None]
        found.update(zip(names, values if len(values) == len(names) else values * len(names)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "spaces, gold_preproc, kept",
    [(None, False, True), (None, True, True), ([True] * 3, False, False), ([True] * 3, True, True)],
)
def test_tokenized_corpora_are_read_as_it_says(tmp_path, spaces, gold_preproc, kept):
    nlp, words = spacy.blank("en"), ["(1989).", "pp.", "-LRB-"]
    DocBin(docs=[Doc(nlp.vocab, words=words, spaces=spaces)]).to_disk(tmp_path / "one.spacy")
    (example,) = Corpus(tmp_path / "one.spacy", gold_preproc=gold_preproc)(nlp)
    assert ([token.text for token in example.predicted] == words) == kept


def test_gold_preproc_makes_a_text_of_every_sentence(tmp_path):
    nlp = spacy.blank("en")
    doc = Doc(nlp.vocab, words=["a", "b", "c"], sent_starts=[True, False, True])
    DocBin(docs=[doc]).to_disk(tmp_path / "one.spacy")
    for gold_preproc, expected in ((False, [3]), (True, [2, 1])):
        read = Corpus(tmp_path / "one.spacy", gold_preproc=gold_preproc)(nlp)
        assert [len(example.predicted) for example in read] == expected


def test_every_requirement_has_its_reason():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf8")
    needed = [
        ("", config["options"]["install_requires"]),
        *config["options.extras_require"].items(),
    ]
    page = section("docs/versions.md", "What it needs")
    rows = [re.split(r" ?\| ?", line)[1:-1] for line in page.splitlines() if line.startswith("| ")]
    told = {row[0].strip("`"): row[1] for row in rows if len(row) == 3}
    told[""] = ", ".join(row[0] for row in rows if len(row) == 2)
    for extra, lines in needed:
        names = {re.match(r"[\w-]+", line)[0] for line in lines.split()} - {"spacy-hocrf"}
        assert names <= {*told[extra].split(", ")}, extra
