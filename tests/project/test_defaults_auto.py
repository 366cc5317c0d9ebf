"""`auto` on the draws of the suite: its rows, on a corpus that is made up, and what they say together."""

import json

import pytest
from pytest import approx

LOADS = ("defaults",)


CITIES = ("Bonn", "Rome", "Oslo", "York", "Bern", "Nice")


@pytest.fixture
def parts(load):
    text = load("readers").Text
    pairs = [(one, two) for one in CITIES for two in CITIES if one != two]
    texts = [text(["to", a, "from", b], [(1, 2, "TO"), (3, 4, "FROM")]) for a, b in pairs]
    return {"train": texts[:24], "dev": texts[24:]}


def test_a_row_has_the_estimate_beside_the_f1(load, parts, tmp_path, monkeypatch):
    script, path = load("auto"), tmp_path / "auto.jsonl"
    monkeypatch.setattr(script.Auto, "train", counted(script.Auto.train, calls := []))
    arguments = path, {"cora": parts}, ["all"], 1, "dev"
    script.complete(*arguments)
    (row,) = map(json.loads, path.read_text(encoding="utf8").splitlines())
    assert (row["task"], row["size"], row["draw"], row["part"]) == ("cora", "all", 0, "dev")
    assert row["low"] <= row["estimate"] <= row["high"] and row["wall"] > 0
    assert row["f"] == 1.0
    assert row["chosen"].startswith("order ")
    assert len(row["counts"]) == len(parts["dev"])
    script.complete(*arguments)
    assert len(calls) == 1, "what is there is not computed again"


def counted(function, calls):
    def count(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return count


def test_the_summary_counts_rows_inside_their_interval(load):
    rows = [
        {"estimate": 0.5, "low": 0.4, "high": 0.6, "f": f, "wall": wall}
        for f, wall in ((0.55, 10), (0.65, 30), (0.48, 20), (0.5, 20))
    ]
    lines = load("auto").summary(rows)
    assert lines[0] == "4 rows" and "interval: 3 (75 %)" in lines[1]
    assert "mean 20, most 30" in lines[2]
    assert 100 * (0.5 - (0.55 + 0.65 + 0.48 + 0.5) / 4) == approx(-4.5) and "-4.50" in lines[1]
    assert load("auto").summary([]) == ["No rows"]
