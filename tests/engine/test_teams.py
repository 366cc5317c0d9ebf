"""Parts of a data set, and their sums in a fixed order."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from word_corpus import AUTOMATON, PLAIN, F, corpus

from spacy_hocrf.engine.forest import Forest, Sum
from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.engine.teams import MOST_PARTS, Parts, ThreadWorkers
from spacy_hocrf.engine.threads import Threads


class Adding:
    """Writes down what is added to what; each leaf is its number."""

    def leaf(self, number):
        return Sum(1.0, str(number))

    def join(self, left, right):
        return Sum(left.loss + right.loss, f"({left.counts}+{right.counts})")


@pytest.mark.parametrize("hands", [1, 2, 5])
def test_neighbours_are_added_the_left_one_first(hands):
    for _ in range(20):
        found = {}
        forest = Forest(2, 4, found.__setitem__)
        Threads(hands, most=hands).map(forest.work, [Adding() for _ in range(hands)])
        forest.check()
        assert found == {0: Sum(4.0, "((0+1)+(2+3))"), 1: Sum(4.0, "((4+5)+(6+7))")}


def test_few_sums_are_kept_at_a_time():
    """One hand needs one sum for each height."""
    alive, most = set(), []

    class Counting(Adding):
        def leaf(self, number):
            alive.add(str(number))
            most.append(len(alive))
            return super().leaf(number)

        def join(self, left, right):
            alive.remove(right.counts)
            alive.remove(left.counts)
            joined = super().join(left, right)
            alive.add(joined.counts)
            return joined

    Forest(1, 16, lambda tree, found: None).work(Counting())
    assert max(most) == 5


@pytest.mark.parametrize("hands", [1, 3])
def test_the_first_leaf_that_fails_is_reported(hands):
    class Failing(Adding):
        def leaf(self, number):
            if number in (3, 5):
                raise ValueError(f"leaf {number}")
            return super().leaf(number)

    forest = Forest(4, 2, lambda tree, found: None)
    Threads(hands, most=hands).map(forest.work, [Failing() for _ in range(hands)])
    with pytest.raises(ValueError, match="leaf 3"):
        forest.check()


PARTS = [
    *[(0, 64, 0, 1), (1, 64, 1, 1), (3, 64, 3, 1), (7, 64, 4, 1), (8, 64, 4, 2), (31, 64, 4, 4)],
    *[(500, 64, 4, 16), (500, 40, 4, 8), (500, 4, 4, 1), (500, 1, 4, 1)],
]


@pytest.mark.parametrize("shards, number, trees, leaves", PARTS)
def test_every_shard_is_in_one_part(shards, number, trees, leaves):
    parts = Parts.of(list(range(shards)), 1, number)
    assert (parts.trees, parts.leaves) == (trees, leaves)
    assert sorted(shard for part in parts for shard in part) == list(range(shards))
    assert all(len(part) for part in parts)
    assert all(list(part) == sorted(part) for part in parts)


def test_there_are_as_many_parts_as_cost_little():
    shards = list(range(1000))
    assert len(Parts.of(shards, 10**5)) == MOST_PARTS
    assert len(Parts.of(shards, 2 * 10**6)) == 16
    assert len(Parts.of(shards, 10**9)) == 4


@pytest.mark.parametrize("parts", [4, 8, 16])
def test_a_sum_is_the_same_for_any_number_of_threads(parts, monkeypatch):
    shards, weights = corpus(shards=37)
    model = shards, PLAIN, AUTOMATON, np.zeros(F), np.zeros(F)
    loss, gradient = Objective(*model)(weights)
    workers = [ThreadWorkers(number, parts) for number in (1, 2, 3, 8, 50)]
    monkeypatch.setattr("spacy_hocrf.engine.threads.PROCESSORS", 64)
    objectives = [Objective(*model, workers=each) for each in workers]
    assert [len(each._team._crew) for each in objectives] == [1, 2, 3, 8, min(2 * parts, 37)]
    first, slope = objectives[0](weights)
    for objective in objectives:
        for _ in range(2):
            again, other = objective(weights)
            assert again == first
            assert_array_equal(other, slope)
    assert_allclose(first, loss, rtol=1e-12)
    assert_allclose(slope, gradient, rtol=1e-10, atol=1e-12)
