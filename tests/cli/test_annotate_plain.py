"""`hocrf annotate` without Docs: the bytes that it writes with Docs."""

import json
from collections import Counter

import numpy as np
import pytest
import spacy
from annotating import some_texts, write_pipeline
from hypothesis import example, given
from hypothesis import strategies as st
from joint_config import joint
from small_corpus import examples
from spacy.language import Language
from spacy.tokens import Token

from spacy_hocrf.cli.annotate.annotator import Annotator, PlainReader
from spacy_hocrf.cli.annotate.formats import Annotated, JSONLines
from spacy_hocrf.cli.annotate.parts import Job, Parts
from spacy_hocrf.cli.annotate.rows import SpanArrays
from spacy_hocrf.cli.annotate.sources import chunks_of
from spacy_hocrf.features.distinct_words import DistinctWords
from spacy_hocrf.features.index import FeatureIndex

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
    """What is written, and what of it about texts that are rejected."""
    parts = Parts(path.parent / "parts", suffix)
    [chunk] = chunks_of([path], 5000)
    assert Annotator(Job(model=str(model), **job), path.suffix, parts)(chunk) == chunk.size
    return (parts.folder / f"part-000000{suffix}").read_bytes(), parts.rejected()


@pytest.fixture
def read_plainly(monkeypatch):
    """How many texts are read without Docs."""
    numbers, call = list[int](), PlainReader.__call__

    def counting(self, texts):
        found = call(self, texts)
        numbers.append(0 if found is None else len(found[0]))
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
    assert b"score" in without[0] and without[1] == b""


@pytest.mark.parametrize("name", PIPES)
def test_a_plain_text_costs_no_doc_and_a_word_is_read_once(name, tmp_path, monkeypatch):
    """With the default features."""
    factory, settings = PIPES[name]
    write_pipeline(tmp_path / "model", factory, **settings)
    parts = Parts(tmp_path / "parts", ".jsonl")
    annotator = Annotator(Job(model=str(tmp_path / "model")), ".txt", parts)
    (tmp_path / "texts.txt").write_text("\n".join(some_texts()))
    calls = Counter()

    def count(owner, method):
        call = getattr(owner, method)

        def counting(*arguments):
            calls[method] += 1
            return call(*arguments)

        monkeypatch.setattr(owner, method, counting)

    count(Language, "make_doc")
    count(DistinctWords, "_begin")  # a second time for attributes that nobody has named
    count(DistinctWords, "_add")
    [chunk] = chunks_of([tmp_path / "texts.txt"], 5000)
    assert annotator(chunk) == chunk.size
    assert calls == {"_add": 1}


@pytest.mark.filterwarnings("ignore:.*W013")
@pytest.mark.parametrize("name", ["SENT_START", "MORPH.Number", "_.form"])
def test_attributes_that_only_docs_have_are_read_from_docs(name, tmp_path, read_plainly):
    Token.set_extension("form", default="x", force=True)
    form = {"@misc": "spacy-hocrf.Token.v1", "attrs": [name]}
    bias = {"@misc": "spacy-hocrf.Transition.v1", "order": 0}
    features = {"@misc": "spacy-hocrf.Features.v1", "*": {"form": form, "bias": bias}}
    write_pipeline(tmp_path / "model", model={"order": 1, "features": features})
    content, _ = part_of(tmp_path / "model", write(tmp_path / "texts.jsonl", some_texts()))
    assert content.count(b"\n") == len(some_texts()) and not read_plainly


def test_a_template_that_reads_something_else_of_docs_gets_it(tmp_path, monkeypatch):
    write_pipeline(tmp_path / "model")
    path = write(tmp_path / "texts.jsonl", some_texts())
    expected, observe = part_of(tmp_path / "model", path), FeatureIndex.observe
    monkeypatch.setattr(
        FeatureIndex, "observe", lambda *given: (given[1].docs[0], observe(*given))[1]
    )
    assert part_of(tmp_path / "model", path) == expected


def test_a_text_that_cannot_be_read_leaves_the_others(tmp_path, read_plainly):
    write_pipeline(tmp_path / "model")
    path = write(tmp_path / "texts.jsonl", ["a b", "\ud800", "c"])
    content, rejected = part_of(tmp_path / "model", path)
    assert json.loads(rejected)["number"] == 2
    assert content.count(b"\n") == 2 and read_plainly == [2]


def test_nothing_plain_is_no_text(tmp_path, read_plainly):
    write_pipeline(tmp_path / "model")
    path = write(tmp_path / "texts.jsonl", [" a", "b\n"])
    assert part_of(tmp_path / "model", path)[0].count(b"\n") == 2
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
    assert part_of(tmp_path / "model", path, **options)[0]
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
    assert b"RULED" in part_of(tmp_path / "ruled", path)[0]
    assert not read_plainly


def spans_of(scores, names=("PERSON", 'Ünï"\\'), bounds=None):
    n = len(scores)
    places = np.arange(n, dtype=np.int64) ** 5
    bounds = [0, n] if bounds is None else bounds
    return SpanArrays(
        np.array(bounds, dtype=np.int64),
        places,
        places + 10 ** np.arange(n, dtype=np.int64),
        np.arange(n, dtype=np.int32) % len(names),
        names,
        np.array(scores, dtype=np.float32).astype(np.float64),
    )


HALVES = [(2 * i + 1) / 128 for i in range(64)]
"""Halves of a millionth, some of which are rounded up and some down."""


@example(HALVES)
@given(st.lists(st.floats(0, 1, width=32), max_size=12))
def test_any_score_is_rounded_as_python_does(scores):
    spans = spans_of(scores, bounds=[0, 0, len(scores)])
    nothing, rows = spans.rows()
    assert not nothing and [row["score"] for row in rows] == [round(each, 6) for each in scores]
    places = zip(spans.start.tolist(), spans.end.tolist())
    assert [(row["start"], row["end"]) for row in rows] == list(places)
    assert {row["score"] for row in spans._replace(scores=None).rows()[1]} <= {None}


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(st.characters()),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(st.text(), each, max_size=2),
    max_leaves=4,
)
"""Half characters among them."""


@given(st.lists(st.dictionaries(st.text(), VALUES), max_size=5))
def test_lines_say_what_was_handed_through(rows):
    found = [[{"start": 0, "end": 2, "label": "Ü", "score": 0.5}], []]
    texts = [Annotated(row, {"spans": found[i % 2]}, None) for i, row in enumerate(rows)]
    lines = JSONLines().part(texts, None).splitlines()
    expected = [{**row, "spans": found[i % 2]} for i, row in enumerate(rows)]
    assert [json.loads(line) for line in lines] == expected
