"""The project positives: spans that are left out, and what its scripts write of a few texts."""

import pytest
import srsly

LOADS = ("positives", "defaults")


def made(load, count):
    names = ["Ada", "Rome", "Max", "Bonn", "Emmy", "Oslo"]
    return [
        load("readers").Text(
            [names[i % 6 if i % 2 else 0], "left", names[(i * 5 + 1) % 6], str(i % 3)],
            [(0, 1, "A"), (2, 3, "B")],
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("by", ["random", "name"])
def test_a_share_of_the_spans_is_kept_and_a_smaller_one_is_part_of_it(load, by):
    module, texts = load("learn"), made(load, 60)
    kept = {
        share: [{*text.spans} for text in module.keep(texts, share, by, "x")]
        for share in (0.1, 0.3, 0.5, 1.0)
    }
    assert [{*text.spans} for text in texts] == kept[1.0]
    for small, large in ((0.1, 0.3), (0.3, 0.5), (0.5, 1.0)):
        assert all(few <= many for few, many in zip(kept[small], kept[large]))
    sizes = [sum(map(len, spans)) for spans in kept.values()]
    if by == "random":
        assert sizes == [12, 36, 60, 120]
    assert 0 < sizes[0] < sizes[2] < sizes[3] == 120
    assert [t.words for t in module.keep(texts, 0.1, by, "x")] == [t.words for t in texts]


def test_by_name_all_spans_of_a_wording_are_kept_or_none_and_often_the_frequent_ones(load):
    module, texts = load("learn"), made(load, 60)
    first = 0
    for seed in range(200):
        kept = module.keep(texts, 0.1, "name", str(seed))
        there, gone = set(), set()
        for mine, text in zip(kept, texts):
            for span in text.spans:
                (there if span in mine.spans else gone).add(text.words[span[0]])
        assert there and not there & gone
        first += "Ada" in there
    assert 45 < first < 85  # 35 of 120 spans, one of six names


def test_systems_are_learnt_scored_once_and_reported(load, tmp_path, monkeypatch):
    module, texts = load("learn"), made(load, 60)
    monkeypatch.setenv("HOCRF_DATA", str(tmp_path))
    parts = {"train": texts[:40], "test": texts[40:]}
    monkeypatch.setattr(module, "load", lambda task: parts)
    assert module.share_in_spans(texts) == 0.5
    path, output = tmp_path / "results.jsonl", tmp_path / "results.md"
    options = path, "task", "test", "0.3", "few,outside,ratio", 2
    module.main(*options)
    rows = list(srsly.read_jsonl(path))
    assert len(rows) == 1 + 2 * (2 * 2 + 1) and rows[0]["counts"] == [40, 40, 40]
    module.main(*options)  # nothing is learnt twice
    assert len(list(srsly.read_jsonl(path))) == len(rows)
    load("report").main(path, output)
    table = [line for line in output.read_text(encoding="utf8").splitlines() if "| task" in line]
    cells = [cell.strip() for cell in table[1].split("|")[1:-1]]
    assert cells[:3] == ["task", "random", "30%"] and cells[5] == "" and cells[9] == "100.0"
    means = [float(cells[i].split(" ±")[0]) for i in (4, 6)]
    assert cells[3] and not next(line for line in table if "name" in line).split("|")[4].strip()
    assert means[1] > means[0] and cells[10] == f"{means[1] / 100:.0%}"
