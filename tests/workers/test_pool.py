"""Tasks for workers that die: each is done once, and one of which three have died is an error."""

import random

import pytest

from spacy_hocrf.workers.pool import Failed, Pool


class Mortal(Pool):
    """Workers that die of a task so many times, and take turns at random."""

    def __init__(self, n, deadly, seed):
        super().__init__(n)
        self.deadly, self.rng, self.work = dict(deadly), random.Random(seed), {}
        self.begun = 0

    def _begin(self, worker):
        assert worker not in self.work
        self.work[worker] = []
        self.begun += 1

    def _send(self, worker, task):
        self.work[worker].append(task)

    def _wait(self):
        worker = self.rng.choice([each for each, work in self.work.items() if work])
        task = self.work[worker][0]
        if self.deadly.get(task):
            self.deadly[task] -= 1
            return worker, None
        return worker, (worker, self.work[worker].pop(0))

    def _end(self, worker):
        self.work.pop(worker, None)


def fatal(task):
    return f"too many deaths of task {task}"


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_each_task_is_done_once_whoever_dies(n, seed):
    pool = Mortal(n, {0: 2, 3: 1, 7: 2, 11: 2}, seed)
    done = list(pool.map(range(12), fatal))
    assert sorted(task for _, task in done) == list(range(12))
    assert pool.begun == min(n, 12) + 7
    pool.end()
    assert not pool.work


def test_as_many_tasks_as_workers_go_to_one_each_in_their_order():
    for seed in range(5):
        pool = Mortal(4, {2: 1}, seed)
        for _ in range(2):
            assert sorted(pool.map("0123", fatal)) == [(i, str(i)) for i in range(4)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_task_of_which_three_have_died_is_named_whatever_is_done_in_between(n, seed):
    pool = Mortal(n, {2: 9}, seed)
    with pytest.raises(ValueError, match="too many deaths of task 2"):
        list(pool.map(range(12), fatal))
    assert pool.begun == n + 2


def test_what_a_worker_has_met_is_raised_with_its_traceback(monkeypatch):
    pool = Mortal(2, {}, 0)
    monkeypatch.setattr(pool, "_wait", lambda: (0, Failed(KeyError("it"), "Traceback: ...")))
    with pytest.raises(KeyError, match="it") as raised:
        list(pool.map(range(12), fatal))
    assert str(raised.value.__cause__) == "Traceback: ..."
