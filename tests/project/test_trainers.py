"""The comparison of trainers in project/references and project/benchmark: how it chooses, what it
counts. No figure is asserted.
"""

from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

PROJECTS = Path(__file__).parents[2] / "project"
LOADS = ("benchmark",)

pytestmark = pytest.mark.skipif(
    not PROJECTS.exists(), reason="project/ is not in this distribution"
)


@pytest.fixture(scope="module")
def chunk_trainers(load):
    """The benchmark's script, which imports that of the references."""
    return load("chunk_trainers")


@pytest.fixture
def trainers(chunk_trainers):
    return chunk_trainers.trainers


def example(nlp, text, *spans):
    gold = Doc(nlp.vocab, words=text.split())
    gold.set_ents([Span(gold, *span) for span in spans])
    return Example(Doc(nlp.vocab, words=text.split()), gold)


def test_exact_spans_are_counted(load):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "A", "pattern": "a"}, {"label": "B", "pattern": "b b"}])
    examples = [
        example(nlp, "a b b", (0, 1, "A"), (1, 3, "B")),  # both right
        example(nlp, "a b b", (0, 1, "B"), (1, 2, "B")),  # a wrong label and a wrong end
        example(nlp, "c", (0, 1, "A")),  # missed
    ]
    assert load("common.training").count_spans(nlp, examples) == (2, 4, 5)


@pytest.mark.parametrize("choose_on, texts", [(0, 12), (7, 7)])
def test_a_setting_is_scored_on_texts_that_it_was_not_trained_on(
    trainers, monkeypatch, choose_on, texts
):
    nlp = spacy.blank("en")
    examples = [example(nlp, f"word{i}", (0, 1, "A")) for i in range(12)]
    trained, scored = [], []
    monkeypatch.setattr(
        trainers, "learn", lambda nlp, part: trained.append({eg.reference.text for eg in part})
    )
    monkeypatch.setattr(
        trainers,
        "count_spans",
        lambda nlp, part: scored.append({eg.reference.text for eg in part}) or (1, 2, 2),
    )
    task = trainers.Task(
        lambda order, trainer: nlp,
        lambda nlp: examples,
        lambda nlp: pytest.fail("test texts"),
        choose_on,
    )
    assert trainers.cross_validate(task, 1, {}, 3) == 0.5
    known = {eg.reference.text for eg in examples[:texts]}
    assert set().union(*scored) == known and sum(map(len, scored)) == texts
    assert all(not a & b and a | b == known for a, b in zip(trained, scored))


def test_each_trainer_goes_on_with_its_best_setting_at_every_order(trainers, monkeypatch, tmp_path):
    scores = {"sigma 1": 0.5, "sigma 3": 0.7, "sigma 10": 0.6, "sigma 0.1": 0.4, "sigma 0.3": 0.2}
    scores |= {"5 epochs": 0.1, "10 epochs": 0.9, "20 epochs": 0.9}
    monkeypatch.setattr(
        trainers,
        "cross_validate",
        lambda task, order, trainer, folds: scores[trainers.setting(trainer)] / order,
    )
    measured = []
    monkeypatch.setattr(
        trainers,
        "measure",
        lambda task, order, trainer: (
            measured.append((order, trainers.setting(trainer))) or ("1", "2", "3", "")
        ),
    )
    trainers.compare(None, 3, tmp_path / "metrics" / "table.md")
    best = ["sigma 3", "sigma 1", "10 epochs"]
    assert measured == [(order, name) for order in (1, 2) for name in best]
    written = (tmp_path / "metrics" / "table.md").read_text(encoding="utf8")
    assert "| max-margin | 2 | sigma 1 | 1 | 2 | 3 |" in written
    assert "| perceptron | 20 epochs | 90.00 |" in written


def test_the_chunks_of_the_shipped_references_are_learnt_by_each_trainer(
    chunk_trainers, trainers, monkeypatch, tmp_path, capsys
):
    few = {name: [candidates[-1]] for name, candidates in trainers.CANDIDATES.items()}
    monkeypatch.setattr(trainers, "CANDIDATES", few)
    chunk_trainers.main(
        Path("nowhere"), choose_on=8, folds=2, small=True, output=tmp_path / "table.md"
    )
    rows = [
        row.split(" | ")
        for row in (tmp_path / "table.md").read_text(encoding="utf8").splitlines()
        if row.count("|") == 8
    ]
    found = {(row[0].strip("| "), row[1]): row for row in rows[2:]}
    assert set(found) == {(name, order) for name in few for order in ("1", "2")}
    # trained and scored on the same texts
    assert all(float(row[3]) > 95 for row in found.values()), found
    assert all(
        (float(row[6].strip(" |") or 0) > 0) == (name == "max-margin")
        for (name, _), row in found.items()
    )
    assert capsys.readouterr().out.count("\n") > 9
