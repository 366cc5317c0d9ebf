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
        if row.count("|") == 7
    ]
    found = {(row[0].strip("| "), row[1]): row for row in rows[2:]}
    assert set(found) == {(name, order) for name in few for order in ("1", "2")}
    # trained and scored on the same texts
    assert all(float(row[3]) > 95 for row in found.values()), found
    assert capsys.readouterr().out.count("\n") > 9
