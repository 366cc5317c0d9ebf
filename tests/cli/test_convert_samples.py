"""docs/data.md shows a text in every format: each sample is read, and says the same."""

import re
from pathlib import Path

import pytest
from converting import iob, named, read
from documentation import page

from spacy_hocrf.cli.convert.formats import FORMATS, format_of
from spacy_hocrf.cli.convert.records import ConvertSettings

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
    docs, report = read(folder / name)
    assert docs and not report.losses
    for doc in docs:
        assert doc.text.strip() == "Ada lives in Paris"
        assert named(doc.ents) == [("Ada", "PER"), ("Paris", "LOC")] and all(iob(doc))


def test_every_format_has_a_sample(folder):
    found = {format_of(folder / name, ConvertSettings()) for name in SAMPLES if name != "one.txt"}
    assert {*FORMATS} == found


def test_samples_are_of_text_and_none_is_left_out():
    text = page("docs/data.md")
    assert text.count("<!-- sample:") == len(SAMPLES) > 15
    assert not [name for name in SAMPLES if Path(name).suffix == ""]
