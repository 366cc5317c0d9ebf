"""The project more_labels: its scripts on a few texts."""

import srsly

LOADS = ("more_labels", "defaults")

SYSTEMS = ["extend", "extend all", "alone", "again", "everything"]


def made(load, count):
    names, days = ["Ada", "Max", "Emmy"], ["Monday", "Friday"]
    text = load("readers").Text
    return [
        text([names[i % 3], "left", "on", days[i % 2]], [(0, 1, "NAME"), (3, 4, "DAY")])
        for i in range(count)
    ]


def test_a_label_is_held_out_and_learnt(load, tmp_path, monkeypatch):
    module, texts = load("learn"), made(load, 24)
    monkeypatch.setenv("HOCRF_DATA", str(tmp_path))
    monkeypatch.setattr(module, "load", lambda task: {"train": texts[:20], "dev": texts[20:]})
    monkeypatch.setattr(module, "NEW", (2, 6))
    path = tmp_path / "results.jsonl"
    module.main("task", 1, "dev", "", path)
    rows = list(srsly.read_jsonl(path))
    assert [row["system"] for row in rows] == 2 * SYSTEMS
    assert {(row["new"], row["spans"], row["old"]) for row in rows} == {(6, 6, 10)}
    for row in rows:
        assert row["label"] in ("DAY", "NAME")
        known = {"extend", "extend all", "everything"}
        assert row["counts"][0] == 4 if row["system"] in known else True
        if row["system"] == "extend":
            assert row["others"] == row["before"] == [4, 4, 4] and row["cpu"] > 0
    module.main("task", 1, "dev", "", path)  # nothing is done twice
    assert len(list(srsly.read_jsonl(path))) == 10


def test_a_model_goes_on_with_more_texts(load, tmp_path, monkeypatch):
    module, texts = load("go_on"), made(load, 24)
    monkeypatch.setenv("HOCRF_DATA", str(tmp_path))
    monkeypatch.setattr(module, "load", lambda task: {"train": texts[:20], "dev": texts[20:]})
    monkeypatch.setattr(module, "SIZES", ((8, 4),))
    module.main(tmp_path / "table.md", "one,one:other")
    one, other = (tmp_path / "table.md").read_text(encoding="utf8").splitlines()[-2:]
    assert one == "| one | 8 | 4 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 |"
    assert other.count(" 100.0 100.0 |") == 7


def test_the_report_says_what_is_learnt_and_lost(load, tmp_path):
    module = load("report")
    row = {
        "part": "test",
        "task": "task",
        "label": "DAY",
        "seed": 0,
        "new": 4,
        "spans": 5,
        "old": 10,
        "cpu": 0.5,
    }
    rows = [
        {**row, "system": "extend", "counts": [1, 2, 2], "others": [3, 4, 4], "before": [4, 4, 4]},
        {**row, "system": "again", "counts": [0, 1, 2], "others": [4, 4, 4], "before": [4, 4, 4]},
    ]
    path, out = tmp_path / "results.jsonl", tmp_path / "results.md"
    srsly.write_jsonl(path, rows)
    module.main(path, out)
    document = out.read_text(encoding="utf8")
    assert "| task | 4 | 1 | 1 | 5 | 50.0 |  |  | 0.0 |  |  |" in document
    assert "| task | 4 | 100.0 | -25.0 |  | +0.0 |  | -25.0 | 0.5 |" in document
