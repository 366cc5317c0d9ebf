"""The project label: how actions are counted, and its scripts on a few texts."""

from pathlib import Path

import pytest
import srsly
from project_checks import check_declarations

from spacy_hocrf.cli.label.loop import Readings

PROJECT = Path(__file__).parents[2] / "project" / "label"
LOADS = ("label", "defaults")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROJECT.exists(), reason="project/label is not in this distribution"),
]
A, B, C = (0, 3, "A"), (4, 9, "B"), (10, 12, "A")


def made(load, count):
    names, days = ["Ada", "Max", "Emmy"], ["Monday", "Friday"]
    text = load("readers").Text
    return [
        text([names[i % 3], "left", "on", days[i % 2], str(i)], [(0, 1, "NAME"), (3, 4, "DAY")])
        for i in range(count)
    ]


@pytest.fixture
def texts(load, tmp_path, monkeypatch):
    """Lets a script read a few texts as its task, and gives them."""

    def give(name, train, test):
        module, rows = load(name), made(load, train + test)
        parts = {"train": rows[:train], "dev": [], "test": rows[train:]}
        monkeypatch.setenv("HOCRF_DATA", str(tmp_path))
        monkeypatch.setattr(module, "load", lambda task, data: parts)
        return module

    return give


def test_the_project_is_declared():
    check_declarations("label")


@pytest.mark.parametrize(
    "spans, expected",
    [
        ((A, B), []),
        ((), [A, B]),
        (((0, 3, "B"), B), [A]),  # another label
        (((0, 9, "A"),), [A, B]),  # what overlaps goes with the correction
        ((A, B, C), [C]),  # too much
    ],
)
def test_errors_of_a_reading(load, spans, expected):
    assert load("simulate").errors(spans, (A, B)) == expected


class Scripted:
    """A loop whose readings are known for what is fixed."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def readings(self, number, fixed=(), outside=()):
        self.asked.append((tuple(fixed), tuple(outside)))
        found = self.answers[self.asked[-1]]
        rows = [(tuple((*span, 1.0) for span in spans), chance) for spans, chance in found]
        return Readings(rows, [], 1)


@pytest.mark.parametrize(
    "answers, correct, loop",
    [
        ({((), ()): [((A, B), 0.5), ((A,), 0.4)]}, 1, 1),  # Enter
        ({((), ()): [((A,), 0.5), ((A, B), 0.4)]}, 3, 2),  # Tab, Enter
        # the next reading is not sure enough
        ({((), ()): [((A,), 0.5), ((A, B), 0.2)], ((B,), ()): [((A, B), 0.9)]}, 3, 3),
        # one correction mends both
        ({((), ()): [((), 0.9)], ((A,), ()): [((A, B), 0.9)]}, 5, 3),
        # what is too much; a Tab in vain
        ({((), ()): [((A, B, C), 0.5), ((C,), 0.5)], ((A,), ()): [((A, B), 1.0)]}, 3, 4),
        ({((), ()): [((A, B, C), 0.9)], ((), (C[:2],)): [((A, B), 1.0)]}, 3, 3),
        ({((), ()): [((A,), 1e-30), ((B,), 1e-30)], ((B,), ()): [((A, B), 1.0)]}, 3, 3),
        ({((), ()): []}, 5, 5),  # no model
    ],
)
def test_actions_of_a_text(load, answers, correct, loop):
    found = load("simulate").counted(Scripted(answers), 0, (A, B))
    assert found == {"hand": 5, "correct": correct, "loop": loop}


def test_a_task_is_annotated_in_both_orders(load, texts, tmp_path):
    module, path = texts("simulate", 30, 6), tmp_path / "metrics" / "results.jsonl"
    module.main("task", 1, "test", 30, path)
    rows = list(srsly.read_jsonl(path))
    assert [row["order"] for row in rows] == ["loop", "random"]
    for row in rows:
        assert [step["texts"] for step in row["steps"]] == [*range(1, 31)]
        last = row["steps"][-1]
        assert last["hand"] == 30 * 5 and last["f"] == 100
        assert last["loop"] <= last["correct"] < 30 * 3
    module.main("task", 1, "test", 30, path)  # nothing is done twice
    assert len(list(srsly.read_jsonl(path))) == 2


def test_the_report_compares_the_ways(load, tmp_path):
    def steps(*rows):
        names = ("texts", "hand", "correct", "loop", "f")
        return [dict(zip(names, row)) for row in rows]

    known = {"part": "test", "task": "task", "seed": 0}
    rows = [
        {**known, "order": "random", "steps": steps((1, 5, 5, 5, 10), (10, 50, 30, 20, 80))},
        {**known, "order": "loop", "steps": steps((4, 28, 20, 10, 72), (10, 50, 28, 16, 80))},
        {**known, "seed": 1, "order": "loop", "steps": steps((1, 5, 5, 5, 10))},  # alone
    ]
    path, out = tmp_path / "results.jsonl", tmp_path / "actions.md"
    srsly.write_jsonl(path, rows)
    load("report").main(path, out)
    document = out.read_text(encoding="utf8")
    assert "| task | 10 | 2.0 | 5.00 | 3.00 | 2.80 | 2.00 | 1.60 | 32% |" in document
    assert "| task | 80.0 | 10 | 4 | 50 | 30 | 20 | 20 | 10 | 20% |" in document


def test_the_f1_that_is_shown_is_compared(load, texts, tmp_path, monkeypatch):
    module = texts("shown", 60, 20)
    monkeypatch.setattr(module, "POOL", 60)
    monkeypatch.setattr(module, "STOPS", (20, 40))
    path, out = tmp_path / "shown.jsonl", tmp_path / "shown.md"
    module.main("task", 1, path, out)
    rows = list(srsly.read_jsonl(path))
    assert [(row["texts"], row["seed"]) for row in rows] == [(20, 0), (40, 0)]
    assert all(row["tested"] == 10 for row in rows)
    assert all(row["low"] <= row["true"] <= row["high"] for row in rows)
    document = out.read_text(encoding="utf8")
    assert "| 40 | task | 10 | 100.0 | 100.0 | +0.0 |" in document and "1 of 1" in document


def test_times_are_measured(load, texts, tmp_path):
    module, out = texts("speed", 60, 0), tmp_path / "speed.md"
    module.main(out, "task=40")
    document = out.read_text(encoding="utf8")
    assert "| task | 40 |" in document
    for name in ("readings", "readings, a span fixed", "next", "progress"):
        assert f"| task | {name} |" in document
