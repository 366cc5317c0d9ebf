"""Our models of items beside those of python-crfsuite, on the references that are shipped."""

import re

import pytest

LOADS = ("benchmark",)


@pytest.fixture(scope="module")
def toolkits(load):
    pytest.importorskip("pycrfsuite", reason='needs it: pip install "spacy-hocrf[benchmark]"')
    return load("toolkits")


def test_model_files_are_read_as_python_crfsuite_reads_them(toolkits, monkeypatch, capsys):
    monkeypatch.setattr(toolkits, "MODELS", toolkits.MODELS[::3])
    toolkits.files(sentences=6, small=True)
    out = capsys.readouterr().out
    assert out.startswith("8 models, 6 sentences each: labels differ on 0\n")
    assert float(re.search(r"by (\S+) at most", out)[1]) < 1e-6


def test_algorithms_are_compared_pass_by_pass(toolkits, capsys):
    toolkits.train(algorithms="ap,pa", sentences=6, rounds=1, small=True)
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 4 + 1 and rows[4].startswith("| `pa`, `max_iterations = 10` | 10 | 10 |")
    assert {row.count("|") for row in rows} == {header.count("|")}


def test_taggers_are_timed_on_lists_and_dicts(toolkits, capsys):
    pytest.importorskip("sklearn_crfsuite", reason="needs sklearn-crfsuite (extra: benchmark)")
    toolkits.tag(sentences=4, rounds=1, small=True)
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 2 * 2 * 3 and {row.count("|") for row in rows} == {header.count("|")}
    assert all(float(row.split("|")[-2]) > 0.0 for row in rows)
    assert {len(row) for row in toolkits.few_features(["Ada", "met", "Max"])} == {10, 12}
