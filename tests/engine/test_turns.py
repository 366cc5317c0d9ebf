"""Threads that share parts: each shard is added once, in its turn, whoever has worked on it."""

import random
import time

import pytest

from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.engine.turns import Turns

PARTS = [["a", "b", "c", "d"], ["e", "f"], [], ["g", "h", "i"]]


class Shard:
    """Notes its name among the counts."""

    def __init__(self, name):
        self.name = name

    def add_counts_into(self, counts):
        counts.append(self.name)

    def add_segments_into(self, counts):
        counts.append(self.name.upper())


def work_off(act, threads):
    turns = Turns([[Shard(name) for name in part] for part in PARTS], list, act)
    crew = Threads(threads, most=threads)
    crew.map(turns.work, range(threads))
    return turns.sums()


@pytest.mark.parametrize("threads", [1, 2, 5, 9])
@pytest.mark.parametrize("seed", range(5))
def test_counts_are_added_in_the_order_of_the_shards(threads, seed):
    rng = random.Random(seed)

    def act(shard, buffers, counts):
        time.sleep(0.002 * rng.random())
        shard.add_counts_into(counts)
        shard.add_segments_into(counts)
        return ord(shard.name) / 7

    sums = work_off(act, threads)
    assert [found.counts for found in sums] == [
        [letter for name in part for letter in (name, name.upper())] for part in PARTS
    ]
    for found, part in zip(sums, PARTS, strict=True):
        loss = 0.0
        for name in part:
            loss += ord(name) / 7
        assert found.loss == loss


def test_shards_of_a_part_are_worked_on_at_the_same_time():
    begun = []

    def act(shard, buffers, counts):
        begun.append(shard.name)
        while len(begun) < 9:  # ends only if all nine are begun before one has ended
            time.sleep(0.001)
        shard.add_counts_into(counts)
        return 0.0

    assert [found.counts for found in work_off(act, 9)] == PARTS


@pytest.mark.parametrize("threads", [1, 3, 9])
@pytest.mark.parametrize("before", [True, False])
def test_what_the_first_shard_that_fails_raises_ends_it(threads, before):
    def act(shard, buffers, counts):
        if before and shard.name in "bi":
            raise ValueError(shard.name)
        shard.add_counts_into(counts)
        if shard.name in "bi":
            raise ValueError(shard.name)
        return 0.0

    with pytest.raises(ValueError, match=r"^[bi]$"):
        work_off(act, threads)


def test_of_several_errors_the_first_shards_is_raised():
    begun = set()

    def act(shard, buffers, counts):
        if shard.name in "bi":
            begun.add(shard.name)
            while len(begun) < 2:
                time.sleep(0.001)
            raise ValueError(shard.name)
        shard.add_counts_into(counts)
        return 0.0

    for _ in range(5):
        begun.clear()
        with pytest.raises(ValueError, match=r"^b$"):
            work_off(act, 9)


def test_a_shard_that_adds_nothing_has_its_turn_too():
    losses = {"a": 1e16, "b": 1.0, "c": -1e16, "d": 1.0}

    def act(shard, buffers, counts):
        if shard.name in "ac":
            time.sleep(0.02)
            shard.add_counts_into(counts)
        return losses.get(shard.name, 0.0)

    sums = work_off(act, 9)
    assert sums[0].loss == 1.0  # 1e16 + 1 is 1e16; in another order it is 2 or 0
    assert sums[0].counts == ["a", "c"]
