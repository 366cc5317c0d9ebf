"""Threads, processes and actors in project/benchmark: all of it on a few sentences."""

from itertools import chain
from pathlib import Path

import pytest
from project_checks import table_rows

PROJECT = Path(__file__).parents[2] / "project" / "benchmark"
LOADS = ("benchmark",)

pytestmark = [
    pytest.mark.skipif(
        not PROJECT.exists(), reason="project/benchmark is not in this distribution"
    ),
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="memory is asked of /proc"),
]

SENTENCES = """Ada NNP B-NP
slept VBD B-VP

The DT B-NP
old JJ I-NP
engine NN I-NP
runs VBZ B-VP
. . O
"""


@pytest.fixture
def assets(tmp_path):
    path = tmp_path / "assets" / "conll2000" / "train.txt"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join([SENTENCES] * 20))
    return tmp_path / "assets"


def test_copies_have_new_words_but_for_the_first(load, assets):
    import spacy

    script = load("workers")
    sentences = script.read_columns(assets / "conll2000" / "train.txt")
    words = [
        [token.text for token in example.reference]
        for example in script.stream(spacy.blank("en"), sentences, 3)
    ]
    assert len(sentences) == 40 and words[:40] == [sentence.words for sentence in sentences]
    pairs = zip(chain.from_iterable(words[:40]), chain.from_iterable(words[40:80]))
    other = sum(a != b for a, b in pairs)
    assert 0 < other < 0.25 * 140
    assert words[40:80] != words[80:]


def test_all_learn_the_same_model(load, assets, tmp_path, monkeypatch):
    script, output = load("workers"), tmp_path / "workers.md"
    monkeypatch.setattr(script, "find_spec", lambda name: None)  # tests/training has those of Ray
    script.main(output, assets, times=2, iterations=3, work=tmp_path / "work", only="")
    rows = table_rows(output.read_text(encoding="utf8"))
    runs = [row for row in rows if row[0].startswith("2 ")]
    assert [row[0] for row in runs] == ["2 threads", "2 processes"]
    assert len({row[-1] for row in runs}) == 1 and len(runs[0][-1]) == 16
    assert all(float(cell.replace(",", "")) > 0 for row in runs for cell in (row[1], row[6]))
    found = dict(row for row in rows if len(row) == 2)
    assert found["tokens"] == "280"


def test_a_plan_stands_beside_what_training_takes(load, assets, tmp_path, monkeypatch):
    script, output = load("plan_check"), tmp_path / "plan.md"
    monkeypatch.setattr(script, "TIMES", (2,))
    script.main(output, assets, work=tmp_path / "work", only="")
    rows = table_rows(output.read_text(encoding="utf8"))
    runs = [row for row in rows if row[0] == "2"]
    assert [row[1] for row in runs] == ["1", "2"]
    assert all(len(row) == 7 and ", " in row[-1] for row in runs)
    texts = (tmp_path / "work" / "plan_texts.jsonl").read_text(encoding="utf8").splitlines()
    assert len(texts) == 80 and texts != sorted(texts)
