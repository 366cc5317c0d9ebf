"""Forests: which edges they take, and their best assignment against enumeration."""

import numpy as np
import pytest
from graph_problems import assignments, instances
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.graph.forest import spanning_forest
from spacy_hocrf.graph.instance import make_instance
from spacy_hocrf.graph.subproblems import ForestSubproblem, choose_edges, pattern_rows


def forest(pairs, n):
    one, other = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    return spanning_forest(np.ascontiguousarray(one), np.ascontiguousarray(other), n)


@given(st.integers(1, 8), st.data())
def test_forest_spans_and_puts_every_vertex_before_its_parent(n, data):
    pairs = data.draw(
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1]),
            max_size=20,
        )
    )
    order, parent, edge = forest(pairs, n)
    place = np.argsort(order)
    assert sorted(order.tolist()) == list(range(n))
    for v in range(n):
        if parent[v] >= 0:
            assert place[v] < place[parent[v]]
            assert set(pairs[edge[v]]) == {v, parent[v]}
    joined = list(range(n))  # group of each vertex, the slow way
    taken = []
    for i, (a, b) in enumerate(pairs):
        if joined[a] != joined[b]:
            taken.append(i)
            joined = [joined[b] if group == joined[a] else group for group in joined]
    assert sorted(edge[edge >= 0].tolist()) == taken


@given(instances(largest=2), st.integers(0, 1000))
def test_best_assignment_of_a_forest_is_that_of_an_enumeration(instance, seed):
    edges = choose_edges(instance)
    inside = np.isin(
        np.repeat(np.arange(len(instance.factors)), np.diff(instance.factors.offsets)), edges
    )
    rewards = np.random.default_rng(seed).integers(-40, 40, len(instance.unary)) / 8
    best, assignment = ForestSubproblem(instance, edges).maximise(rewards)

    def worth(states):
        return (
            rewards[instance.offsets[:-1] + states].sum()
            + instance.weights[instance.fires(states) & inside].sum()
        )

    assert worth(assignment) == best == max(worth(states) for states in assignments(instance))


def test_the_heaviest_edges_are_chosen():
    instance = make_instance(
        np.zeros((3, 2)),
        [
            ([0, 1], [0, 0], 1.0),
            ([0, 2], [0, 0], -5.0),
            ([1, 2], [0, 0], 1.0),
            ([1, 2], [1, 1], -1.0),
        ],
    )
    assert choose_edges(instance).tolist() == [1, 2]
    assert choose_edges(instance, np.array([[1, 0], [2, 1]])).tolist() == [0, 2]
    assert choose_edges(instance, np.zeros((0, 2))).tolist() == []


def test_wanted_edges_without_a_pattern_do_no_harm():
    instance = make_instance(np.zeros((3, 2)), [([0, 1], [0, 0], 1.0)])
    assert choose_edges(instance, np.array([[1, 2], [0, 1]])).tolist() == [0]


@pytest.mark.parametrize(
    "pairs, reason",
    [
        ([[0, 1], [1, 2], [2, 0]], "closes a cycle"),
        ([[0, 3]], "no pair of 3"),
        ([[1, 1]], "no pair of 3"),
    ],
)
def test_edges_that_are_no_forest_are_named(pairs, reason):
    with pytest.raises(ValueError, match=rf"H086.*{reason}"):
        choose_edges(make_instance(np.zeros((3, 2))), np.array(pairs))


@given(instances(largest=2), st.integers(0, 1000))
def test_losses_of_cells_are_those_of_an_enumeration(instance, seed):
    edges = choose_edges(instance)
    inside, _ = pattern_rows(instance, edges)
    rewards = np.random.default_rng(seed).normal(size=len(instance.unary))
    best = np.full(len(rewards), -np.inf)
    for assignment in assignments(instance):
        chosen = instance.offsets[:-1] + assignment
        score = (
            rewards[chosen].sum()
            + instance.weights[inside][instance.fires(assignment)[inside]].sum()
        )
        best[chosen] = np.maximum(best[chosen], score)
    found = ForestSubproblem(instance, edges).losses(rewards)
    assert found == pytest.approx(
        best.max(initial=0.0 if not len(best) else -np.inf) - best, abs=1e-9
    )
