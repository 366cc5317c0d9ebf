"""The project teachers: a simulated large language model, and what its scripts write of a few texts."""

from itertools import pairwise

import pytest
import spacy
import srsly

LOADS = ("teachers", "defaults")


def made(load, count):
    names = ["Ada", "Rome", "Max", "Bonn", "Emmy", "Oslo"]
    return [
        load("readers").Text(
            [names[i % 6], "left", names[(i * 5 + 1) % 6], "For", str(i % 3)],
            [(0, 1, "A"), (2, 3, "B")],
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.3])
def test_so_many_spans_are_wrong_missing_and_invented(load, wrong):
    module, texts = load("simulate"), made(load, 1000)
    answers = module.ask(texts, wrong, 5, "x")
    assert answers == module.ask(texts, wrong, 5, "x") != module.ask(texts, wrong, 5, "y")
    for number in range(5):
        said = [each[number] for each in answers]
        right = sum(len({*spans} & {*text.spans}) for spans, text in zip(said, texts))
        assert right / 2000 == pytest.approx(0.8 * (1 - wrong), abs=0.04)
        invented = sum((3, 4, label) in spans for spans in said for label in "AB")
        assert invented / 2000 == pytest.approx(min(wrong, 0.25), abs=0.03)  # of 1,000 places
        for spans in said:
            assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_scores_are_shares_of_the_answers(load):
    module = load("simulate")
    a, b = (0, 1, "A"), (2, 3, "B")
    answers = [[a], [a, b], [a], []]
    assert module.scores(answers) == {a: 0.75, b: 0.25}
    assert module.majority(answers) == [a]


def test_what_was_learnt_is_scored_once_and_reported(load, tmp_path, monkeypatch):
    module, texts = load("learn"), made(load, 30)
    monkeypatch.setenv("HOCRF_DATA", str(tmp_path))
    monkeypatch.setattr(module, "REPEATS", 1)
    parts = {"train": texts[:20], "dev": texts[20:25], "test": texts[20:]}
    monkeypatch.setattr(module, "load", lambda task, data: parts)
    teacher = spacy.blank("en")
    ruler = teacher.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": name} for name in ("Ada", "Max", "Emmy")])
    teacher.to_disk(tmp_path / "teacher")
    path, output = tmp_path / "results.jsonl", tmp_path / "results.md"
    options = path, "task", "test", "0.1", ",".join(module.SYSTEMS), 1
    module.main(*options, False)
    rows = list(srsly.read_jsonl(path))
    assert len(rows) == 5 and rows[0]["counts"] == [20, 20, 20]
    module.main(*options, False)  # nothing is learnt twice
    monkeypatch.setenv("HOCRF_VECTORS", str(tmp_path / "teacher"))
    module.main(*options, True)
    *_, last = srsly.read_jsonl(path)
    assert last["texts"] == 55 and last["fidelity"][0] == last["fidelity"][1] > 0
    assert last["teacher"][0] == 0  # other labels than those of the texts
    load("report").main(path, output)
    tables = output.read_text(encoding="utf8").split("## ")
    assert [text.count("| task ") for text in tables] == [2, 2, 0]  # header and row
    cells = [cell.strip() for cell in tables[0].strip().splitlines()[-1].split("|")[1:-1]]
    assert cells[:2] == ["task", "10%"] and cells[-1] == "100.0" and all(cells)
