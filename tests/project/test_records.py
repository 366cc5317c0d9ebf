"""The project records: its scripts on a few texts, and promises about texts that are made up."""

import numpy as np
import pytest
import srsly

LOADS = ("records", "defaults")

pytest.importorskip("pycrfsuite")


def made(load, count):
    names = ["Ada", "Rome", "Max", "Bonn", "Emmy", "Oslo"]
    text = load("readers").Text
    return [
        text([names[i % 6], "left", names[(i * 5 + 1) % 6], str(i % 3)], [(0, 1, "A"), (2, 3, "B")])
        for i in range(count)
    ]


def test_every_text_is_read_once_by_models_that_have_not_seen_it(load, tmp_path, monkeypatch):
    module = load("read")
    texts, seen = made(load, 20), []

    def read(train, held):
        seen.append([train, held])
        return {"one": [(list(text.spans)[:1], 0.5) for text in held]}

    monkeypatch.setenv("HOCRF_DATA", str(tmp_path))
    monkeypatch.setattr(module, "load", lambda task: {"train": texts[:15], "dev": texts[15:]})
    monkeypatch.setitem(module.SYSTEMS, "hocrf", read)
    path = tmp_path / "results.jsonl"
    module.main("task", "hocrf", path)
    rows = list(srsly.read_jsonl(path))
    assert len(rows) == 20 and all(row["counts"] == [1, 1, 2] and not row["right"] for row in rows)
    assert sorted(id(text) for _, held in seen for text in held) == sorted(map(id, texts))
    assert all(
        len(train) == 16 and not {*map(id, train)} & {*map(id, held)} for train, held in seen
    )
    module.main("task", "hocrf", path)  # nothing is read twice
    assert len(seen) == 5 and len(list(srsly.read_jsonl(path))) == 20


def test_systems_say_what_they_show_and_how_sure_they_are(load):
    module, texts = load("read"), made(load, 24)
    for read in (module.read_hocrf, module.read_memory, module.read_crfsuite):
        for found in read(texts[:18], texts[18:]).values():
            assert len(found) == 6
            for (spans, p), text in zip(found, texts[18:]):
                assert {*spans} == {*map(tuple, text.spans)} and 0.3 < p <= 1
    whole, product = module.read_crfsuite(texts[:18], texts[18:]).values()
    assert all(0 < one[1] != other[1] > 0 for one, other in zip(whole, product))


def test_promises_are_kept_about_as_often_as_was_said(load):
    module, rng = load("report"), np.random.default_rng(0)
    p = rng.beta(8, 1, 1500)
    rows = [
        {"right": bool(right), "probability": float(chance), "counts": [1, 1, 1]}
        for right, chance in zip(rng.random(1500) < p, p)
    ]
    texts = module.texts_of(rows)
    accepted, broken, wrong = module.try_halves(texts, 0.95, 200)
    assert 0.2 < accepted < 0.6 and 0.01 < broken < 0.3 and 0.02 < wrong < 0.05
    assert module.try_halves(texts, 0.999, 10) == (0.0, 0.0, 0.0)


def test_the_report_has_all_tables(load, tmp_path):
    module, rng = load("report"), np.random.default_rng(1)
    lines = []
    for system in ("fields", "texts", "memory", "reranked", "crfsuite", "product", "ner"):
        for right in (rng.random(200) < 0.9).tolist():
            p = None if system == "ner" else 0.9 + 0.1 * rng.random()
            row = {"task": "addresses", "fold": 0, "of": "x", "system": system, "right": right}
            lines.append({**row, "probability": p, "counts": [2, 2, 3]})
    srsly.write_jsonl(tmp_path / "results.jsonl", lines)
    module.main(tmp_path / "results.jsonl", tmp_path / "out.md", 5)
    document = (tmp_path / "out.md").read_text(encoding="utf8")
    shares = [np.mean([r["right"] for r in lines if r["system"] == s]) for s in module.SYSTEMS]
    row = next(line for line in document.splitlines() if line.startswith("| addresses"))
    assert row.split(" | ")[2:8] == [f"{100 * share:.1f}" for share in shares]
    assert document.count("| addresses") == 3 and " 80.0 " in row


def test_damaged_texts_and_those_of_another_kind_are_noticed(load, monkeypatch):
    module = load("alarm")
    words = ["Lovelace", "left", "Rome"] * 40
    assert module.damaged(words) == module.damaged(words)
    changed = sum(
        one != other
        for word, own in zip(words, module.damaged(words))
        for one, other in zip(word, own, strict=True)
    )
    letters = sum(map(len, words))
    assert 0.01 < changed / letters < 0.1
    monkeypatch.setattr(module, "SIZES", (20,))
    monkeypatch.setattr(module, "DRAWS", 20)
    text = load("readers").Text
    strange = [text(["1", ",", "2", ";", "x"] * 3, []) for _ in range(30)]
    [row] = module.look("task", made(load, 120), "other", strange)
    assert row[:2] == ("task", "20") and float(row[2]) <= 20 and float(row[4]) > 50


def test_a_grammar_that_is_law_is_kept_by_all_that_is_shown(load, tmp_path, monkeypatch):
    """Every text has one A before one B but for a third of them, which are read otherwise then."""
    module, text = load("grammar"), load("readers").Text
    texts = made(load, 20)
    texts += [text([*reversed(each.words)], [(1, 2, "B"), (3, 4, "A")]) for each in texts[:10]]
    monkeypatch.setattr(module, "texts_of", lambda task: texts)
    monkeypatch.setattr(module, "BY_HAND", {"task": "A B"})
    monkeypatch.setattr(module, "REPEATS", 1)
    monkeypatch.setattr(module, "propose_grammar", lambda found: Proposed(len(found)))
    module.main(tmp_path / "out.md", "task")
    document = (tmp_path / "out.md").read_text(encoding="utf8")
    assert "- task: `A? B?`" in document and "A B" not in document
    rows = [line.split(" | ") for line in document.splitlines() if line.startswith("| task |")]
    rows = [row for row in rows if row[1] in ("proposed", "by hand")]
    right, outside, times = rows[:2], rows[2:4], rows[4:]
    for row in right:
        none, law, *_ = map(float, row[2:6])
        assert none > 90 and 55 < law < 70
    for row in outside:
        assert row[3] == "33.3" and float(row[4]) > 25 and row[5] == "0.0"
    assert len(times) == 2 and all(float(cell.strip(" |")) > 0 for cell in times[0][3:])


class Proposed:
    """A grammar for the training texts, of which there must be so many."""

    expression = "A? B?"

    def __init__(self, n):
        assert n == 24


def test_sets_have_the_right_reading_as_often_as_was_said(load):
    """Texts of geometric probabilities, whose right reading is drawn from them."""
    module, rng = load("sets"), np.random.default_rng(0)
    texts = []
    for sure in rng.uniform(0.3, 0.95, 800):
        chances = sure * (1 - sure) ** np.arange(30)
        rank = int(rng.geometric(sure)) - 1
        logs = np.log(chances[chances > 1e-5]).tolist()
        known = rank < len(logs)
        behind = logs[0] - logs[rank] if known else None
        texts.append({"behind": behind, "logs": logs})
    sizes = []
    for level in (0.7, 0.9):
        possible, covered, median, high = module.try_halves(module.scored(texts), level, 50)
        assert possible == 1 and level - 0.01 < covered < level + 0.02 and median <= high
        sizes.append(high)
    assert sizes[0] < sizes[1]
    none = [{**text, "behind": None} for text in texts]
    assert module.try_halves(module.scored(none), 0.9, 5).possible == 0
    flat = [{"behind": 5.0, "logs": [-7.0] * module.MAX_READINGS} for _ in range(20)]
    assert module.try_halves(module.scored(flat), 0.7, 5).median == module.MAX_READINGS + 1


def test_folds_are_read_and_tables_written(load, tmp_path, monkeypatch):
    module, texts = load("sets"), made(load, 40)
    monkeypatch.setattr(module, "folds_of", lambda task: [(0, texts[:24], texts[24:])])
    lines, output = tmp_path / "sets.jsonl", tmp_path / "sets.md"
    module.main(lines, output, "task", 5)
    rows = list(srsly.read_jsonl(lines))
    assert len(rows) == 16
    assert all(abs(row["behind"]) < 2e-5 for row in rows)
    assert all(row["logs"] == sorted(row["logs"], reverse=True) for row in rows)
    document = output.read_text(encoding="utf8")
    assert "| task | 16 | 80.0 | 100.0 | 100.0 | 1 | 1 |" in document
    assert "| task | 16 | 95.0 | 0.0 |  |  |  |" in document  # of eight texts, none is enough
    module.main(lines, output, "task", 5)  # nothing is read twice
    assert len(list(srsly.read_jsonl(lines))) == 16
