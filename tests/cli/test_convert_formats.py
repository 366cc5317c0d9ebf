"""`python -m spacy hocrf convert` of compressed files, and of corpora, counted in another way."""

import gzip
import os
import re
from collections import Counter
from pathlib import Path

import pytest
import spacy

from spacy_hocrf.cli.convert.command import convert
from spacy_hocrf.cli.convert.records import ConvertSettings, Report

DATA = Path(os.environ.get("HOCRF_DATA", "nowhere"))


@pytest.fixture
def data():
    if not DATA.is_dir():
        pytest.skip("needs the corpora in HOCRF_DATA")
    return DATA


def read(path, **settings):
    """The Docs of a file, and what of it was lost."""
    report = Report()
    return list(convert(path, spacy.blank("xx"), report, **settings)), report.lost


def named(spans):
    return [(span.text, span.label_) for span in spans]


@pytest.mark.parametrize("name", ["a.conll.gz", "a.jsonl.gz", "a.xml.gz", "a.conllu.gz"])
def test_compressed_files(tmp_path, name):
    text = {
        "a.conll.gz": "Ada\tB-P\n",
        "a.jsonl.gz": '{"text": "Ada", "label": [[0, 3, "P"]]}\r{"text": "a", "label": []}',
        "a.xml.gz": "<c><s><P>Ada</P></s></c>",
        "a.conllu.gz": "1 Ada Ada X X _ 0 root _ _\n\n".replace(" ", "\t"),
    }[name]
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    docs, _ = read(tmp_path / name)
    assert docs[0].text.strip() == "Ada"
    assert "conllu" in name or named(docs[0].ents) == [("Ada", "P")]
    (tmp_path / name).write_bytes(gzip.compress(text.encode())[:-9])
    with pytest.raises(ValueError, match=r"H290.*gzip"):
        read(tmp_path / name)


def test_references_of_papers_have_as_many_fields(data):
    path = data / "references-from-papers" / "paper-references.jsonl"
    docs, lost = read(path, align="expand", into="sc")
    source = path.read_text(encoding="utf8")
    fields = re.findall(r'\[\d+, \d+, "(\w+)"\]', source)
    assert Counter(s.label_ for doc in docs for s in doc.spans["sc"]) == Counter(fields)
    assert len(docs) == source.count('"text"') == 90 and "spans that fit no tokens" not in lost


def test_annotated_tweets_of_a_tool_in_columns(data):
    path = data / "msm2013" / "msm2013.ner"
    docs, lost = read(path, settings=ConvertSettings(delimiter=" "), into="tags")
    lines = [
        line.split(" ") for line in path.read_text(encoding="utf8").split("\n") if line.strip()
    ]
    labels = Counter(label for word, label in lines if word)
    assert Counter(token.tag_ for doc in docs for token in doc) == labels
    assert dict(lost) == {"lines with an empty token: left out": len(lines) - labels.total()}
