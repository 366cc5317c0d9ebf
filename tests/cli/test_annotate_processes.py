"""Processes that die: each task is done once, and one of which three have died is an error."""

from collections import Counter
from functools import partial

import pytest
from mortal_process import mortal

from spacy_hocrf.cli.annotate.processes import ProcessPool


def fatal(task):
    return f"too many deaths of task {task}"


@pytest.fixture
def pool(tmp_path):
    pool = ProcessPool(2, partial(mortal, tmp_path))
    yield pool
    pool.end()


def kill(folder, **deaths):
    for task, times in deaths.items():
        for number in range(times):
            (folder / f"{task}-{number}").touch()


@pytest.mark.slow
def test_each_task_is_done_once_whoever_dies(pool, tmp_path):
    kill(tmp_path, a=2, d=1, h=2)
    done = list(pool.map("abcdefgh", fatal))
    assert sorted(task for task, _ in done) == list("abcdefgh")
    processes = Counter(process for _, process in done)
    assert 2 <= len(processes) <= 2 + 2 + 1 + 2
    again = list(pool.map("ab", fatal))
    assert len({process for _, process in again}) == 2  # one task each
    assert {process for _, process in again} <= processes.keys()  # which are still there
    pool.end()
    assert not {process for _, process in pool.map("ab", fatal)} & processes.keys()


@pytest.mark.slow
def test_a_task_of_which_three_have_died_is_named_whatever_is_done_in_between(pool, tmp_path):
    kill(tmp_path, c=9)
    with pytest.raises(ValueError, match="too many deaths of task c"):
        list(pool.map("abcdefgh", fatal))
    assert len(list(tmp_path.iterdir())) == 6


def test_what_a_process_has_met_is_raised_with_its_traceback(pool):
    with pytest.raises(KeyError, match="it") as raised:
        list(pool.map(["bad"], fatal))
    assert "in answer" in str(raised.value.__cause__)
