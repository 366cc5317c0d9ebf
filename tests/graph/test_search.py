"""Local search: never worse, worth what it says, the same for the same seed."""

import numpy as np
import pytest
from graph_problems import instances, needs_oracle, optimum, proved
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.graph.search import LocalSearch


def searcher(instance):
    return LocalSearch(
        instance.offsets, instance.unary, instance.pattern_offsets, instance.cells, instance.weights
    )


@given(instances(), st.integers(0, 5), st.integers(0, 1000))
def test_rise_is_what_the_scores_say(instance, steps, seed):
    rng = np.random.default_rng(seed)
    before = rng.integers(0, instance.n_states).astype(np.int32)
    after = before.copy()
    rise = searcher(instance).improve(after, steps, seed)
    assert rise == instance.score(after) - instance.score(before) >= 0
    assert ((after >= 0) & (after < instance.n_states)).all()


@given(instances())
def test_tiny_problems_are_solved(instance):
    assignment = np.zeros(instance.n_vertices, dtype=np.int32)
    search = searcher(instance)
    search.improve(assignment, 2000, 0)
    again = np.zeros(instance.n_vertices, dtype=np.int32)
    search.improve(again, 2000, 0)  # what one search leaves behind is nothing to the next
    assert assignment.tolist() == again.tolist()
    assert instance.score(assignment) == optimum(instance)


@pytest.mark.slow
@needs_oracle
def test_patterns_out_of_reach_for_single_changes_are_completed():
    better = 0
    for problem, instance in proved():
        if problem["family"] == "phrase":
            short, long = (np.argmax(problem["unary"], axis=1).astype(np.int32) for _ in range(2))
            searcher(instance).improve(short, 100, 0)
            searcher(instance).improve(long, 5000, 0)
            assert instance.score(short) <= instance.score(long) <= problem["optimum"]
            better += instance.score(long) > instance.score(short)
    assert better
