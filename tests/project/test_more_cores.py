"""Threads and processes in project/benchmark: all of it on a few references."""

import importlib.util
from pathlib import Path

import pytest
from project_checks import table_rows

PROJECT = Path(__file__).parents[2] / "project" / "benchmark"
LOADS = ("benchmark",)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PROJECT.exists(), reason="project/benchmark is not in this distribution"
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("pycrfsuite") is None,
        reason='needs its peers: pip install "spacy-hocrf[benchmark]"',
    ),
]


def test_the_numbers_of_threads_are_powers_of_two_and_the_most(load):
    counts = load("threads").counts
    assert [counts(most) for most in (1, 2, 6, 16)] == [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8, 16]]


def test_all_that_is_measured_is_the_same_for_all_of_them(load, tmp_path):
    output = tmp_path / "threads.md"
    work = tmp_path / "work"
    load("threads").main(output, tmp_path, work=work, most=2, steps=5, small=True)
    rows = [row for row in table_rows(output.read_text(encoding="utf8")) if len(row) == 4][2:]
    assert [row[0] for row in rows] == [
        "evaluation, order 1, threads",
        "evaluation, order 1, processes, 16 parts",
        "evaluation, order 2, threads",
        "evaluation, order 2, processes, 16 parts",
        "spacy train",
        "nlp.pipe, a token",
    ]
    assert all(row[-1] == "yes" for row in rows)
