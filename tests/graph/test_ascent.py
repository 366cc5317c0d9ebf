"""Coordinate ascent through the first subproblem: never worse, worth what it says, and patterns out
of its reach are tried.
"""

import numpy as np
from graph_problems import instances
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.graph.ascent import PATIENCE, ascend
from spacy_hocrf.graph.instance import make_instance
from spacy_hocrf.graph.subproblems import ForestSubproblem


class Independent:
    """A first subproblem without scores of its own; counts its calls and remembers what it kept."""

    slack = 0.0

    def __init__(self, instance):
        self.offsets = instance.offsets
        self.calls = 0
        self.kept = None
        self._forest = ForestSubproblem(
            make_instance(np.split(np.zeros(len(instance.unary)), instance.offsets[1:-1])),
            np.zeros(0, int),
        )

    def maximise(self, rewards):
        self.calls += 1
        value, self._last = self._forest.maximise(rewards)
        return value, self._last

    def keep(self):
        self.kept = self._last


@given(instances(), st.integers(0, 4), st.integers(0, 1000))
def test_what_it_finds_is_worth_what_it_says_and_is_kept(instance, tries, seed):
    first = Independent(instance)
    start = np.random.default_rng(seed).integers(0, instance.n_states).astype(np.int32)
    primal, found = ascend(instance, first, start, instance.score(start), tries)
    assert primal >= instance.score(start)
    assert abs(instance.score(found) - primal) < 1e-9
    assert (
        first.kept is None and found.tolist() == start.tolist()
    ) or first.kept.tolist() == found.tolist()


def test_a_pattern_that_no_single_change_reaches_is_tried():
    instance = make_instance([[1.0, 0.0]] * 3, [([0, 1, 2], [1, 1, 1], 10.0)])
    start = np.zeros(3, dtype=np.int32)
    assert ascend(instance, Independent(instance), start, 3.0, 0)[0] == 3.0
    primal, found = ascend(instance, Independent(instance), start, 3.0, 1)
    assert (primal, found.tolist()) == (10.0, [1, 1, 1])


def test_without_tries_it_stops_where_nothing_gets_better():
    instance = make_instance([[1.0, 0.0]] * 3, [([0, 1, 2], [1, 1, 1], 10.0)])
    first = Independent(instance)
    ascend(instance, first, np.zeros(3, dtype=np.int32), 3.0, 0)
    assert first.calls == 1


def test_it_gives_up_after_many_tries_in_vain():
    n = 4 * PATIENCE
    instance = make_instance([[5.0, 0.0]] * n, [([v, v + 1], [1, 1], 1.0) for v in range(n - 1)])
    first = Independent(instance)
    assert ascend(instance, first, np.zeros(n, dtype=np.int32), 5.0 * n, n)[0] == 5.0 * n
    assert first.calls == 1 + 2 * PATIENCE  # a try leads away, and back
