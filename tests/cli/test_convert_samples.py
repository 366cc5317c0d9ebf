"""docs/data.md shows a text in every format: each sample is read, and says the same."""

import re
from pathlib import Path

import pytest
import spacy
from documentation import page

from spacy_hocrf.cli.convert.command import convert
from spacy_hocrf.cli.convert.formats import FORMATS, format_of
from spacy_hocrf.cli.convert.records import ConvertSettings, Report

SAMPLE = re.compile(r"<!-- sample: (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAMPLES = dict(SAMPLE.findall(page("docs/data.md")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    for name, text in SAMPLES.items():
        (folder / name).write_text(text, encoding="utf8", newline="")
    return folder


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "one.txt"])
def test_every_sample_says_the_same(folder, name):
    report = Report()
    docs = list(convert(folder / name, spacy.blank("xx"), report))
    assert docs and not report.losses
    for doc in docs:
        assert doc.text.strip() == "Ada lives in Paris"
        assert [(span.text, span.label_) for span in doc.ents] == [("Ada", "PER"), ("Paris", "LOC")]
        assert all(token.ent_iob for token in doc)


def test_every_format_has_a_sample(folder):
    found = {format_of(folder / name, ConvertSettings()) for name in SAMPLES if name != "one.txt"}
    assert {*FORMATS} == found


def test_samples_are_of_text_and_none_is_left_out():
    text = page("docs/data.md")
    assert text.count("<!-- sample:") == len(SAMPLES) > 15
    assert not [name for name in SAMPLES if Path(name).suffix == ""]
