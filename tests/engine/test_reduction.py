"""Parts of a data set, and their sums in a fixed order."""

import random
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from word_corpus import AUTOMATON, PLAIN, F, corpus

from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.engine.reduction import (
    MOST_PARTS,
    PartialSum,
    ReductionTree,
    ThreadWorkers,
    parts_of,
)


class Written:
    """A layout whose counts say what was added to what."""

    def merge(self, counts, others):
        counts[:] = [f"({counts[0]}+{others[0]})"]


def leaves(first, last):
    return [PartialSum(number, 1, 1.0, [str(number)]) for number in range(first, last)]


def tree_of(found, free=lambda counts: None):
    tree = ReductionTree(Written(), free)
    for each in found:
        tree.put(each)
    return tree


def written(tree):
    return [(each.first, each.size, each.loss, each.counts[0]) for each in tree.sums]


WHOLE = [(0, 8, 8.0, "(((0+1)+(2+3))+((4+5)+(6+7)))")]


@pytest.mark.parametrize("seed", range(20))
def test_neighbours_are_added_the_left_one_first_in_whatever_order_they_come(seed):
    found = leaves(0, 8)
    random.Random(seed).shuffle(found)
    assert written(tree_of(found)) == WHOLE


def test_a_range_of_parts_is_left_as_its_complete_subtrees():
    assert written(tree_of(leaves(1, 7))) == [
        (1, 1, 1.0, "1"),
        (2, 2, 2.0, "(2+3)"),
        (4, 2, 2.0, "(4+5)"),
        (6, 1, 1.0, "6"),
    ]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("workers", [1, 2, 3, 5, 8])
def test_the_sums_of_ranges_add_up_to_the_same_tree(workers, seed):
    bounds = [8 * number // workers for number in range(workers + 1)]
    found = [each for ends in pairwise(bounds) for each in tree_of(leaves(*ends)).sums]
    random.Random(seed).shuffle(found)
    assert written(tree_of(found)) == WHOLE


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


PARTS = [(0, 64, 1), (1, 64, 1), (3, 64, 2), (7, 64, 4), (8, 64, 8), (31, 64, 16)]
PARTS += [(500, 64, 64), (500, 40, 32), (500, 4, 4), (500, 1, 1)]


@pytest.mark.parametrize("shards, number, size", PARTS)
def test_every_shard_is_in_one_part(shards, number, size):
    parts = parts_of(list(range(shards)), 1, number)
    assert len(parts) == size
    assert sorted(shard for part in parts for shard in part) == list(range(shards))
    assert all(len(part) for part in parts) or not shards
    assert all(list(part) == sorted(part) for part in parts)


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_ranges_of_parts_have_their_share_of_all_shards(workers):
    parts = parts_of(list(range(41)), 1, 16)
    share = len(parts) // workers
    sizes = [sum(map(len, parts[first : first + share])) for first in range(0, len(parts), share)]
    assert max(sizes) - min(sizes) <= 1


def test_there_are_as_many_parts_as_cost_little():
    shards = list(range(1000))
    assert len(parts_of(shards, 10**5)) == MOST_PARTS
    assert len(parts_of(shards, 4 * 10**6)) == 16
    assert len(parts_of(shards, 10**9)) == 4


@pytest.mark.parametrize("parts", [1, 4, 16])
def test_a_sum_is_the_same_for_any_number_of_threads(parts, monkeypatch):
    shards, weights = corpus(shards=37)
    model = shards, PLAIN, AUTOMATON, np.zeros(F), np.zeros(F)
    loss, gradient = Objective(*model)(weights)
    monkeypatch.setattr("spacy_hocrf.engine.threads.PROCESSORS", 64)
    numbers = (1, 2, 3, 8, 50)
    objectives = [Objective(*model, workers=ThreadWorkers(number, parts)) for number in numbers]
    counts = [each._summing._threads.count for each in objectives]
    assert counts == [min(number, parts) for number in numbers]
    first, slope = objectives[0](weights)
    for objective in objectives:
        for _ in range(2):
            again, other = objective(weights)
            assert again == first
            assert_array_equal(other, slope)
    assert_allclose(first, loss, rtol=1e-12)
    assert_allclose(slope, gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 4])
def test_the_first_shard_that_fails_is_named(threads, monkeypatch):
    monkeypatch.setattr("spacy_hocrf.engine.threads.PROCESSORS", 4)
    shards, weights = corpus(shards=8)
    objective = Objective(
        shards, PLAIN, AUTOMATON, np.zeros(F), np.zeros(F), workers=ThreadWorkers(threads, 8)
    )

    def fail(number):
        def potentials(*_):
            raise ValueError(f"part {number}")

        return potentials

    parts = objective._summing.job.parts
    for number in (2, 3):
        monkeypatch.setattr(parts[number][0], "potentials", fail(number))
    with pytest.raises(ValueError, match="part 2"):
        objective(weights)
