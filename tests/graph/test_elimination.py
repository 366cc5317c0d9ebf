"""Exact decoding by elimination, against enumeration; and when there is none."""

import numpy as np
import pytest
from graph_problems import instances, needs_oracle, optimum, proved
from hypothesis import given

from spacy_hocrf.graph.dual import dual_decompose
from spacy_hocrf.graph.elimination import best_by_elimination
from spacy_hocrf.graph.instance import make_instance
from spacy_hocrf.graph.settings import DualSettings


@given(instances())
def test_elimination_finds_the_best_of_an_enumeration(instance):
    score, assignment = best_by_elimination(instance, 10**6)
    assert score == instance.score(assignment) == optimum(instance)
    assert assignment.dtype == np.int32


def test_a_ring_takes_tables_of_three_vertices():
    n, width = 12, 3
    rng = np.random.default_rng(0)
    pairs = [
        ([i, (i + 1) % n], [s, s], float(rng.normal())) for i in range(n) for s in range(width)
    ]
    ring = make_instance(rng.normal(size=(n, width)), pairs)
    entries = (n - 2) * width**3 + width**2 + width
    assert best_by_elimination(ring, entries - 1) is None
    score, assignment = best_by_elimination(ring, entries)
    assert score == pytest.approx(ring.score(assignment))
    assert score >= dual_decompose(ring, DualSettings(kind="naive")).primal - 1e-9


def test_vertices_with_one_state_do_not_matter_to_the_tables_but_to_their_dimensions():
    wide = make_instance(np.zeros((60, 1)), [(range(60), [0] * 60, 2.0)])
    assert best_by_elimination(wide, 10**6) is None
    assert dual_decompose(wide).primal == 2.0


@pytest.mark.slow
@needs_oracle
def test_it_is_used_where_it_is_cheap_unless_told_otherwise():
    certain = {0: 0, 2**18: 0}
    for problem, instance in proved():
        if problem["family"] in ("tiny", "grid"):
            for most_entries in certain:
                decoding = dual_decompose(
                    instance, DualSettings(max_iterations=20), most_entries=most_entries
                )
                certain[most_entries] += decoding.certificate
                assert not decoding.certificate or decoding.primal == problem["optimum"]
    assert certain[0] < certain[2**18] == 30


def test_given_edges_are_used():
    instance = make_instance(
        [[0.0, 1.0]] * 3, [([0, 1], [0, 0], 3.0), ([1, 2], [0, 0], 3.0), ([0, 2], [0, 1], 1.0)]
    )
    assert dual_decompose(instance).iterations == 1
    assert dual_decompose(instance, edges=np.zeros((0, 2))).iterations > 1
