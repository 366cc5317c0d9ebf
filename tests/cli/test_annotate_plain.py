"""`hocrf annotate` without Docs: the bytes that it writes with Docs."""

import json

import pytest
import spacy
from annotating import some_texts, write_pipeline
from joint_config import joint
from small_corpus import examples

from spacy_hocrf.cli.annotate.annotator import Annotator
from spacy_hocrf.cli.annotate.parts import Job, Parts
from spacy_hocrf.cli.annotate.plain import PlainReader
from spacy_hocrf.cli.annotate.sources import chunks_of

PIPES = {
    "entities": ("hocrf", {}),
    "without scores": ("hocrf", {"scores_key": None}),
    "probable": ("hocrf", {"threshold": 0.5}),
    "spans": ("hocrf_spans", {"spans_key": "found"}),
    "overlapping": ("hocrf_spans", {"spans_key": "found", "select": "all", "threshold": 0.01}),
    "constrained": (
        "hocrf",
        {"constraints": {"@misc": "spacy-hocrf.Constraints.v1", "at_most": {"PERSON": 1}}},
    ),
}
OTHERS = ["", " ", "two  spaces", "a\nb", "a : ) here", "It's :) here", "Ünïcode 東京", "x" * 300]


def part_of(model, path, suffix=".jsonl", **job):
    annotator = Annotator(Job(model=str(model), **job), path.suffix, Parts(path.parent, suffix))
    [chunk] = chunks_of([path], 5000)
    return annotator.part(chunk)


@pytest.fixture
def read_plainly(monkeypatch):
    """How many texts are read without Docs."""
    numbers, call = list[int](), PlainReader.__call__

    def counting(self, texts):
        found = call(self, texts)
        numbers.append(len(found))
        return found

    monkeypatch.setattr(PlainReader, "__call__", counting)
    return numbers


def write(path, texts):
    rows = ({"text": text} for text in texts)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize("name", PIPES)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_bytes_are_the_same_with_docs_and_without(
    name, suffix, tmp_path, monkeypatch, read_plainly
):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    factory, settings = PIPES[name]
    write_pipeline(tmp_path / "model", factory, **settings)
    texts = [each for pair in zip(some_texts(), OTHERS) for each in pair]
    path = write(tmp_path / "texts.jsonl", texts)
    without = part_of(tmp_path / "model", path, suffix)
    assert read_plainly == [len(texts) - 5]
    monkeypatch.setattr(PlainReader, "can_read", lambda *_: False)
    assert part_of(tmp_path / "model", path, suffix) == without
    assert read_plainly == [len(texts) - 5]
    assert b"score" in without.content and without.rejected == []


def test_a_text_that_cannot_be_read_leaves_the_others(tmp_path, read_plainly):
    write_pipeline(tmp_path / "model")
    part = part_of(tmp_path / "model", write(tmp_path / "texts.jsonl", ["a b", "\ud800", "c"]))
    assert [each.number for each in part.rejected] == [2]
    assert part.content.count(b"\n") == 2 and not read_plainly


def test_nothing_plain_is_no_text(tmp_path, read_plainly):
    write_pipeline(tmp_path / "model")
    path = write(tmp_path / "texts.jsonl", [" a", "b\n"])
    assert part_of(tmp_path / "model", path).content.count(b"\n") == 2
    assert read_plainly == [0]


def pipelines():
    """Pipelines in which somebody needs Docs."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf_tagger")
    yield nlp
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("hocrf")
    yield nlp
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    nlp.add_pipe("merge_entities")
    yield nlp
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config={"joint": joint()})
    yield nlp
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config={"n_best": 2})
    yield nlp


@pytest.mark.parametrize("number", range(5))
def test_who_needs_docs_gets_them(number):
    nlp = list(pipelines())[number]
    [pipe] = [pipe for name, pipe in nlp.pipeline if name.startswith("hocrf")]
    assert not PlainReader.can_read(nlp, pipe)


@pytest.mark.parametrize("options", [{"n_best": 2}, {"at_least": 0.1}, {"suffix": ".spacy"}])
def test_what_needs_docs_gets_them(options, tmp_path, read_plainly):
    write_pipeline(tmp_path / "model")
    path = write(tmp_path / "texts.jsonl", some_texts())
    assert part_of(tmp_path / "model", path, **options).content
    assert not read_plainly


def test_entities_that_were_there_are_read_from_docs(tmp_path, read_plainly):
    """A ruler before the component."""
    write_pipeline(tmp_path / "model")
    nlp = spacy.load(tmp_path / "model")
    ruler = nlp.add_pipe("entity_ruler", before="hocrf")
    word = examples(spacy.blank("en"))[0].reference[0].text
    ruler.add_patterns([{"label": "RULED", "pattern": word}])
    nlp.to_disk(tmp_path / "ruled")
    path = write(tmp_path / "texts.jsonl", some_texts())
    assert b"RULED" in part_of(tmp_path / "ruled", path).content
    assert not read_plainly
