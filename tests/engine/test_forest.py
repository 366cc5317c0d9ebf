"""Who takes what in a round of sums, and what becomes of it if some are slow or die."""

import random
from functools import partial

import pytest

from spacy_hocrf.engine.forest import Forest, Lost, Sum
from spacy_hocrf.engine.threads import Threads


class Hand:
    """Writes down what is added to what, and whose leaves are done."""

    def __init__(self):
        self.leaves = []

    def leaf(self, number):
        self.leaves.append(number)
        return Sum(1.0, str(number))

    def join(self, left, right):
        return Sum(left.loss + right.loss, f"({left.counts}+{right.counts})")


def drive(forest, hands, chance, fails=0.0, most=10_000):
    """Hands in an order by chance, each of which may lose what it has been doing."""
    doing = {}
    for _ in range(most):
        if forest.over:
            return
        number = chance.randrange(len(hands))
        task = doing.pop(number, None) or forest.take(number)
        if task is None:
            continue
        if chance.random() < 0.5:  # still at it
            doing[number] = task
            continue
        if chance.random() < fails:
            forest.lose(task)
            continue
        try:
            following = forest.finish(task, task.do(hands[number]))
        except Lost:
            forest.lose(task)
        else:
            if following is not None:
                doing[number] = following
    raise AssertionError("it does not end")


def reference(trees, leaves):
    found = {}
    forest = Forest(trees, leaves, found.__setitem__)
    forest.work(Hand())
    return found


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("fails", [0.0, 0.2])
@pytest.mark.parametrize("hands, queues", [(1, 1), (3, 1), (3, 3), (5, 5), (16, 16), (40, 40)])
def test_sums_are_the_same_whoever_is_slow_or_dies(hands, queues, fails, seed):
    found = {}
    forest = Forest(4, 8, found.__setitem__, queues)
    drive(forest, [Hand() for _ in range(hands)], random.Random(seed), fails)
    forest.check()
    assert found == reference(4, 8)


def test_what_cannot_be_delivered_is_done_again():
    found, refused = {}, []

    def deliver(tree, total):
        if len(refused) < 3:
            refused.append(tree)
            raise Lost
        found[tree] = total

    forest = Forest(2, 4, deliver)
    forest.work(hand := Hand())
    assert found == reference(2, 4) and len(hand.leaves) == 8 + 3 * 4


def test_each_hand_has_its_own_leaves_round_by_round():
    """Hands that are as fast as each other."""
    for _ in range(3):
        hands = [Hand() for _ in range(4)]
        forest = Forest(4, 8, lambda tree, total: None, 4)
        doing = [forest.take(number) for number in range(4)]
        while any(doing):
            for number, task in enumerate(doing):
                if task is not None:
                    following = forest.finish(task, task.do(hands[number]))
                    doing[number] = following or forest.take(number)
        assert [hand.leaves for hand in hands] == [
            list(range(8 * number, 8 * number + 8)) for number in range(4)
        ]
        assert forest.over


def test_others_help_a_hand_that_has_not_begun():
    hands = [Hand(), Hand()]
    forest = Forest(2, 8, lambda tree, total: None, 2)
    late = forest.take(1)
    doing = forest.take(0)
    while doing is not None:
        doing = forest.finish(doing, doing.do(hands[0])) or forest.take(0)
    assert hands[0].leaves == [*range(8), *range(12, 16)]
    assert forest.take(0) is None and not forest.over
    while late is not None:
        late = forest.finish(late, late.do(hands[1])) or forest.take(1)
    assert hands[1].leaves == list(range(8, 12)) and forest.over


@pytest.mark.parametrize("hands", [2, 7])
def test_threads_with_queues_of_their_own_end(hands):
    for _ in range(20):
        found = {}
        forest = Forest(4, 8, found.__setitem__, hands)
        work = partial(forest.work, Hand())
        Threads(hands, most=hands).map(work, range(hands))
        forest.check()
        assert found == reference(4, 8)
