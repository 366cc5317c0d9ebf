"""Instances: checked, in order, and worth what an enumeration says."""

import numpy as np
import pytest
from graph_problems import assignments, instances, score
from hypothesis import given

from spacy_hocrf.graph.instance import GraphInstance, make_instance


@given(instances())
def test_score_and_fires_are_those_of_the_definition(instance):
    for assignment in assignments(instance):
        assert instance.score(assignment) == score(instance, assignment)
        on = instance.fires(assignment)
        assert (
            instance.weights[on].sum()
            == instance.score(assignment) - instance.unary[instance.offsets[:-1] + assignment].sum()
        )


@given(instances())
def test_patterns_of_a_factor_follow_each_other_ascending(instance):
    rows = [
        (tuple(instance.vertices[i:j].tolist()), tuple(instance.states[i:j].tolist()))
        for i, j in zip(instance.pattern_offsets, instance.pattern_offsets[1:])
    ]
    assert rows == sorted(set(rows), key=lambda row: (len(row[0]), row))
    assert all(list(vertices) == sorted(set(vertices)) for vertices, _ in rows)
    factors = instance.factors
    found = [rows[factors.offsets[b]][0] for b in range(len(factors))]
    assert found == sorted(
        {vertices for vertices, _ in rows}, key=lambda vertices: (len(vertices), vertices)
    )
    assert factors.sizes.tolist() == [len(vertices) for vertices in found]
    assert factors.offsets[-1] == len(rows)


def test_equal_patterns_are_added_up_and_those_of_one_cell_are_unary():
    instance = make_instance(
        [[0, 1], [2, 3], [4, 5]],
        [
            ([1, 0], [0, 1], 1.0),
            ([0, 1], [1, 0], 2.0),
            ([2], [1], 7.0),
            ([0, 2], [0, 0], 1.0),
            ([2, 0], [0, 0], -1.0),
        ],
    )
    assert instance.vertices.tolist() == [0, 1]
    assert instance.states.tolist() == [1, 0]
    assert instance.weights.tolist() == [3.0]
    assert instance.unary.tolist() == [0, 1, 2, 3, 4, 12]


def test_many_vertices_and_states_do_not_overflow_the_order():
    n, size = 3000, 12
    rng = np.random.default_rng(0)
    patterns = [
        (rng.choice(n, size, replace=False), rng.integers(0, 17, size), float(i))
        for i in range(1, 40)
    ]
    instance = make_instance(np.zeros((n, 17)), patterns * 2)
    assert sorted(instance.weights.tolist()) == [2.0 * i for i in range(1, 40)]


@pytest.mark.parametrize(
    "patterns, code",
    [
        ([([0, 2], [0, 0], 1.0)], "H082"),
        ([([-1, 0], [0, 0], 1.0)], "H082"),
        ([([0, 1], [0, 3], 1.0)], "H082"),
        ([([0, 1], [0, -1], 1.0)], "H082"),
        ([([0, 1], [0, 0], 1.0), ([1, 1], [0, 1], 1.0)], "H083"),
        ([([0, 1], [0, 0], np.nan)], "H084"),
        ([([0, 1], [0, 0], np.inf)], "H084"),
        ([([0, 1], [0, 0], -1e308), ([0, 1], [0, 0], -1e308)], r"H084.*-1e\+308"),
        ([([0, 1], [0], 1.0)], "H085"),
        ([([], [], 1.0)], "H085"),
        ([([0, 1], [0, 0], 10**400)], "H085.*weights"),
        ([([0, 10**30], [0, 0], 1.0)], "H085.*vertices"),
        ([("ab", [0, 0], 1.0)], "H085.*vertices"),
        ([([0, 0.5], [0, 0], 1.0)], "H085.*vertices.*integers"),
        ([([0, 1], [0, 1.9], 1.0)], "H085.*states.*integers"),
        ([([0, 1], [0, 0])], "H085.*pattern 0.*a weight"),
    ],
)
def test_bad_patterns_are_named(patterns, code):
    with pytest.raises(ValueError, match=code):
        make_instance([[0.0, 0.0], [0.0, 0.0, 0.0]], patterns)


@pytest.mark.parametrize("row", [[0, 10**400], ["a"], [0, "b"]])
def test_scores_that_are_no_numbers_are_named_by_their_vertex(row):
    with pytest.raises(ValueError, match=r"H085.*unary 1.*numbers"):
        make_instance([[0.0], row])


def test_a_bad_pattern_is_named_by_its_number():
    with pytest.raises(
        ValueError, match="Pattern 1 has state 2 of vertex 0, but vertex 0 has 2 states"
    ):
        make_instance([[0, 0], [0, 0]], [([0, 1], [0, 0], 1.0), ([1, 0], [1, 2], 1.0)])


@pytest.mark.parametrize(
    "change, code",
    [
        ({"unary": [0.0, 0.0, np.nan]}, "H084"),
        ({"unary": [0.0, 0.0]}, "H085"),
        ({"offsets": [0, 3, 3]}, "H085"),
        ({"offsets": [1, 3]}, "H085"),
        ({"pattern_offsets": [0]}, "H085"),
        ({"vertices": [0]}, "H085"),
        ({"states": [0, 1, 0]}, "H085"),
    ],
)
def test_arrays_that_do_not_fit_are_named(change, code):
    arrays = {
        "offsets": [0, 1, 3],
        "unary": [0.0, 0.0, 0.0],
        "pattern_offsets": [0, 2],
        "vertices": [0, 1],
        "states": [0, 1],
        "weights": [1.0],
    }
    GraphInstance.from_arrays(**arrays)
    with pytest.raises(ValueError, match=code):
        GraphInstance.from_arrays(**{**arrays, **change})


def test_no_vertices_at_all():
    instance = make_instance([])
    assert (
        instance.n_vertices,
        instance.score(np.zeros(0, dtype=np.int32)),
        len(instance.factors),
    ) == (0, 0.0, 0)
