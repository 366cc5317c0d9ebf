"""Parts of a data set, and their sums in a fixed order."""

import random

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from word_corpus import AUTOMATON, PLAIN, F, corpus

from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.engine.reduction import MAX_PARTS, PartialSum, ReductionTree, parts_of


class Written:
    """A layout whose counts say what was added to what."""

    def merge(self, counts, others):
        counts[:] = [f"({counts[0]}+{others[0]})"]


def leaves(first, last):
    return [PartialSum(number, 1, 1.0, [str(number)]) for number in range(first, last)]


@pytest.mark.parametrize("seed", range(20))
def test_neighbours_are_added_the_left_one_first_in_whatever_order_they_come(seed):
    shuffled, tree = leaves(0, 8), ReductionTree(Written(), lambda counts: None)
    random.Random(seed).shuffle(shuffled)
    for leaf in shuffled:
        tree.put(leaf)
    whole = "(((0+1)+(2+3))+((4+5)+(6+7)))"
    assert tree.total == PartialSum(0, 8, 8.0, [whole])


def test_few_sums_are_kept_at_a_time():
    """One that takes part after part needs one sum for each height, and counts that it can use again."""
    alive, most, free = 0, 0, []
    tree = ReductionTree(Written(), free.append)
    for each in leaves(0, 16):
        alive += 1
        most = max(most, alive)
        tree.put(each)
        alive -= len(free)
        free.clear()
    assert (alive, most) == (1, 5)


@pytest.mark.parametrize(
    "shards, extent, size",
    [(0, 1, 1), (1, 1, 1), (3, 1, 2), (7, 1, 4), (8, 1, 8), (500, 1, 64), (500, 10**6, 32)],
)
def test_every_shard_is_in_one_part(shards, extent, size):
    parts = parts_of(list(range(shards)), extent)
    assert len(parts) == size
    assert sorted(shard for part in parts for shard in part) == list(range(shards))
    assert all(len(part) for part in parts) or not shards
    assert all(list(part) == sorted(part) for part in parts)


@pytest.mark.parametrize("ranges", [2, 4, 8])
def test_ranges_of_parts_have_their_share_of_all_shards(ranges):
    parts = parts_of(list(range(41)), 1)
    share = len(parts) // ranges
    sizes = [sum(map(len, parts[first : first + share])) for first in range(0, len(parts), share)]
    assert max(sizes) - min(sizes) <= 1


def test_there_are_as_many_parts_as_cost_little():
    shards = list(range(1000))
    assert len(parts_of(shards, 10**5)) == MAX_PARTS
    assert len(parts_of(shards, 4 * 10**6)) == 16
    assert len(parts_of(shards, 10**9)) == 4


@pytest.mark.parametrize("shards, parts", [(1, 1), (3, 2), (4, 4), (11, 8), (37, 32)])
def test_a_sum_is_the_same_to_the_last_bit_for_any_number_of_threads(shards, parts, monkeypatch):
    shards, weights = corpus(shards=shards)
    model = shards, PLAIN, AUTOMATON, np.zeros(F), np.zeros(F)
    monkeypatch.setattr("spacy_hocrf.engine.threads.PROCESSORS", 64)
    loss, gradient = Objective(*model)(weights)
    numbers = (1, 2, 3, 8, 50)
    objectives = [Objective(*model, threads=number) for number in numbers]
    counts = [each._sum._threads.count for each in objectives]
    assert counts == [min(number, parts) for number in numbers]
    for objective in objectives:
        for _ in range(2):
            again, other = objective(weights)
            assert again == loss
            assert_array_equal(other, gradient)


@pytest.mark.parametrize("threads", [1, 4])
def test_the_first_shard_that_fails_is_named(threads, monkeypatch):
    monkeypatch.setattr("spacy_hocrf.engine.threads.PROCESSORS", 4)
    shards, weights = corpus(shards=8)
    objective = Objective(shards, PLAIN, AUTOMATON, np.zeros(F), np.zeros(F), threads=threads)

    def fail(number):
        def potentials(*_):
            raise ValueError(f"part {number}")

        return potentials

    parts = objective._sum.parts
    for number in (2, 3):
        monkeypatch.setattr(parts[number][0], "potentials", fail(number))
    with pytest.raises(ValueError, match="part 2"):
        objective(weights)
