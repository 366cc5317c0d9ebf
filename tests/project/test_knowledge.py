"""The project knowledge: what it fetches, what its systems are told, its report on results that are
made up, and encoders that it trains. The outside pipeline has four vectors and an entity_ruler.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import spacy
from project_checks import table_rows
from spacy.vectors import Vectors

LOADS = ("knowledge", "defaults")


@pytest.fixture
def outside():
    nlp = spacy.blank("en", meta={"name": "tiny", "version": "1.0"})
    nlp.vocab.vectors = Vectors(shape=(4, 4))
    for i, word in enumerate(["Rome", "Bonn", "Oslo", "to"]):
        nlp.vocab.set_vector(word, np.eye(4, dtype="f")[i])
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "GPE", "pattern": "Rome"}, {"label": "GPE", "pattern": "Bonn"}])
    return nlp


# -------------------- systems

FLIGHTS = [
    ("from Bonn to Rome", [(1, 2, "FROM"), (3, 4, "TO")]),
    ("to Rome from Bonn", [(1, 2, "TO"), (3, 4, "FROM")]),
    ("no flight", []),
]


@pytest.fixture
def flights(load):
    return [load("readers").Text(text.split(), spans) for text, spans in FLIGHTS] * 2


NAMES = ("default", "vectors", "spans", "vectors+spans")


def test_a_system_that_is_told_nothing_is_the_default(load, outside):
    systems = load("knowledge").make_informed(NAMES, outside)
    settings = {name: dict(system.settings) for name, system in systems.items()}
    told = {name: some.pop("told") for name, some in settings.items()}
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    assert settings["default"] == settings["vectors"] == nlp.get_pipe_config("hocrf")
    assert told["default"] == [] and told["vectors"] == [("WordVectors", "en_tiny 1.0")]
    blocks = settings["vectors+spans"]["model"]["features"]["*"]
    assert list(blocks) == ["ner", "window"] and len(told["vectors+spans"]) == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_system_learns_what_it_is_told(load, outside, flights, name):
    system = load("knowledge").make_informed([name], outside)[name]
    predict, said = system.train(flights)
    texts = [text.words for text in flights]
    assert predict(texts) == [text.spans for text in flights]
    assert said["status"].startswith("converged") and said["speed"] > 0 < said["learning"]
    assert ("reading" in said) == ("spans" in name)


def test_lists_of_names_are_observed(load, outside, flights):
    """Names of countries and the like, of any case, as they are looked up in Babel."""
    pytest.importorskip("babel", reason="needs the extra 'knowledge'")
    system = load("knowledge").make_informed(["lists"], outside)["lists"]
    words = "in March the UNITED STATES paid Euros".split()
    system.told[0].read([words])
    doc = system.shown(outside.vocab, words)
    found = [(span.text, span.label_) for span in doc.spans["lists"]]
    assert found == [("March", "MONTH"), ("UNITED STATES", "PLACE")]
    assert list(system.settings["model"]["features"]["*"]) == ["lists", "window"]
    assert load("knowledge").make_informed(["default"], outside)["default"].told == []


@pytest.mark.parametrize("name, knows", [("default", False), ("spans", True), ("vectors", True)])
def test_new_words_are_known_by_what_is_told(load, outside, name, knows):
    """Oslo has the vector, and the label, of another town, and Lima has none."""
    outside.vocab.set_vector("Oslo", outside.vocab.get_vector("Rome"))
    outside.get_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": "Oslo"}])
    text = load("readers").Text
    towns = [text([word], [(0, 1, "TOWN")]) for word in ("Rome", "Bonn")]
    train = [
        *towns,
        *(text([word], []) for word in ("Paul", "Jane", "Fred", "Mary", "Rosa", "Carl")),
    ] * 3
    predict, _ = load("knowledge").make_informed([name], outside)[name].train(train)
    oslo, lima = predict([["Oslo"], ["Lima"]])
    assert (oslo != lima) == knows


# -------------------- the run


@pytest.fixture
def data(load, tmp_path, monkeypatch, outside):
    """A folder with 25 tweets to train on and 3 texts in the dev file, one of them empty."""
    (tmp_path / "assets" / "wnut17").mkdir(parents=True)
    town = [
        "so\tO\nRome\tB-town\n",
        "Bonn\tB-town\n",
        "what\tO\n",
        "to\tO\nBonn\tB-town\n",
        "x\tO\n",
    ]
    for name, texts in ("wnut17train.conll", town * 5), ("emerging.dev.conll", town[:2]):
        (tmp_path / "assets" / "wnut17" / name).write_text("\n".join(texts))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(load("learn"), "load_outside", lambda assets: outside)
    return tmp_path


def test_dev_and_official_parts_are_scored(load, data):
    learn = load("learn")
    learn.main(systems="default", tasks="wnut17", sizes="all")
    learn.main(systems="default", sizes="5", draws=2, part="official")
    learn.main(systems="default", sizes="5", draws=2, part="official")
    lines = load("common.report").read_lines(Path("metrics/results.jsonl"))
    assert [(line["part"], line["texts"], line["draw"], len(line["counts"])) for line in lines] == [
        ("dev", 20, 0, 5),
        ("official", 5, 0, 2),
        ("official", 5, 1, 2),
    ]


# -------------------- the report


def test_costs_are_of_one_row_and_scores_of_all_tasks(load):
    """Where a system has all of a size. A text is read by what stands before the component, too."""
    load("differences")  # of defaults, which the report imports
    show = load("show")
    costs = {"learning": 2.0, "speed": 3000, "bytes": 10**6, "beside": 2 * 10**6, "texts": 100}
    results = [
        {"part": "dev", "task": task, "size": size, "draw": 0, "system": system, "f": f, **costs}
        for task, size, system, f in [
            ("cora", "100", "default", 0.8),
            ("msm2013", "100", "default", 0.4),
            ("msm2013", "100", "spans", 0.6),
            ("msm2013", "400", "default", 0.5),
            ("msm2013", "400", "spans", 0.7),
            ("msm2013", "100", "vectors", 0.5),
        ]
    ]
    results[-2]["reading"] = 1000
    assert show.choice_rows(show.suite_of(results, "dev")) == [
        ("default", "60.0", "50.0", "2.0", "3,000", "3.0"),
        ("spans", "", "70.0", "2.0", "750", "3.0"),
        ("vectors", "", "", "", "", ""),
    ]


# -------------------- a frozen encoder


def test_the_encoder_reads_every_text_once_and_its_rows_are_scored(
    load, outside, tmp_path, monkeypatch
):
    for package, extra in (("onnxruntime", "encoder"), ("onnx", "test")):
        pytest.importorskip(package, reason=f"needs the extra {extra!r}")
    from onnx_encoder import write

    monkeypatch.setenv("HOCRF_MINILM", str(write(tmp_path)))
    (system,) = load("knowledge").make_informed(["minilm"], outside).values()
    texts = [load("readers").Text(words, [(0, 1, "PER")]) for words in (["Ada", "went"], ["Ada"])]
    predict, said = system.train(texts)
    assert predict([["Ada", "went"], ["Ada", "in"]]) == [[(0, 1, "PER")]] * 2
    assert system.told[0].tokens == 5
    assert said["encoding"] > 0 and "minilm" in str(system.settings)


# -------------------- encoders that are trained


@pytest.fixture
def encoders(load, monkeypatch):
    """The script, with a task of a few texts and a small encoder."""
    module, Text = load("encoders"), load("readers").Text
    names = ["Ada", "Max", "Eva", "Tim", "Kim", "Bob"]
    texts = [Text([name, verb], [(0, 1, "PER")]) for name in names for verb in ("ate", "slept")]
    parts = {"train": texts[:8], "dev": [*texts[8:], Text(["It", "rains"], [])]}
    monkeypatch.setattr(module, "load", lambda task, assets: parts)
    monkeypatch.setattr(module, "ENCODER", {**module.ENCODER, "width": 8, "embed_size": 50})
    monkeypatch.setattr(module, "EPOCHS", (1, 2))
    return module


def test_encoders_are_trained_and_judged(encoders, tmp_path):
    encoders.main("some", "none,joint", "1,2", 2, tmp_path / "a.jsonl", tmp_path / "a.md")
    rows = table_rows((tmp_path / "a.md").read_text(encoding="utf8"))[2:]
    names = ["none", "joint, 1 epochs", "joint, 2 epochs"]
    assert [row[:4] for row in rows] == [["some", "8", o, name] for o in "12" for name in names]
    lines = (tmp_path / "a.jsonl").read_text(encoding="utf8").splitlines()
    results = [json.loads(line) for line in lines]
    assert len(results) == 12 and {result["seed"] for result in results} == {0, 1}
    assert all(result["loss"] > 0 and 0 <= result["ece"] < 1 for result in results)
    assert rows[0][4] == " ".join(f"{r['loss']:.4f}" for r in results if r["system"] == "none")[:13]
