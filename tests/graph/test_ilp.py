"""Integer linear programs against enumeration, the oracle's proved optima, and what they promise when they cannot be solved."""

import gzip
import json
import os
import sys
from pathlib import Path

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from segmented_groups import allowed, groups, segmentations_of, slave_of, states_of

from spacy_hocrf.graph.dual import dual_decompose
from spacy_hocrf.graph.ilp import lp_bound, solve_ilp
from spacy_hocrf.graph.instance import GraphInstance, make_instance

pytest.importorskip("scipy", reason="integer linear programs need SciPy (extra ilp)")

ORACLE = Path(os.environ.get("HOCRF_DATA", "../shared/data")).parent / "oracle" / "graph-map.json.gz"


@st.composite
def instances(draw):
    """Small ones, with numbers of states that differ, and patterns of every size and sign."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_states = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    return instance_of(rng, n_states, draw(st.integers(0, 25)), draw(st.sampled_from([-1.0, 0.0, 1.0])))


def instance_of(rng, n_states, n_patterns, lean):
    """Weights lean towards one sign."""
    patterns = []
    for _ in range(n_patterns):
        vertices = rng.permutation(len(n_states))[: rng.integers(1, len(n_states) + 1)]
        states = [int(rng.integers(n_states[v])) for v in vertices]
        patterns.append((vertices.tolist(), states, float(rng.normal(lean, 2.0))))
    return make_instance([rng.normal(size=n) for n in n_states], patterns)


def best_by_enumeration(instance):
    choices = np.array(list(np.ndindex(*instance.n_states.tolist())), dtype=np.int32)
    return max(instance.score(choice) for choice in choices)


@given(instances())
@settings(max_examples=60, deadline=None)
def test_optimum_is_that_of_enumeration(instance):
    best = best_by_enumeration(instance)
    found = solve_ilp(instance)
    assert found.primal == pytest.approx(best, abs=1e-6)
    assert found.primal == pytest.approx(instance.score(found.assignment), abs=1e-12)
    assert best - 1e-6 <= found.bound <= best + 1e-6
    assert found.certificate
    assert len(found.bounds) == len(found.primals) == 0
    assert lp_bound(instance) >= best - 1e-6


def test_nothing_to_decide():
    nothing = solve_ilp(make_instance([]))
    assert (nothing.primal, nothing.bound, nothing.certificate, len(nothing.assignment)) == (0.0, 0.0, True, 0)
    plain = solve_ilp(make_instance([[1.0, 2.0], [4.0]]))
    assert (plain.primal, plain.bound, plain.assignment.tolist()) == (6.0, 6.0, [1, 0])
    assert lp_bound(make_instance([[1.0, 2.0], [4.0]])) == 6.0


def oracle_problems():
    if not ORACLE.is_file():
        pytest.skip("needs the problems with proved optima: set HOCRF_DATA to the folder beside oracle/graph-map.json.gz")
    with gzip.open(ORACLE) as file:
        return json.load(file)["instances"]


def test_all_problems_with_proved_optima_are_solved():
    problems = oracle_problems()
    assert len(problems) == 100
    for problem in problems:
        patterns = [(p["vertices"], p["states"], p["weight"]) for p in problem["patterns"]]
        found = solve_ilp(make_instance(problem["unary"], patterns), time_limit=300.0)
        assert found.primal == problem["optimum"], problem["id"]
        assert -1e-6 <= found.bound - problem["optimum"] <= 1e-6, problem["id"]
        assert found.certificate, problem["id"]


def test_lp_bound_is_loose_where_patterns_exclude_each_other():
    """A triangle whose vertices all want to differ: half of each state satisfies everything."""
    different = [((v, w), (s, 1 - s), 2.0) for v, w in ((0, 1), (0, 2), (1, 2)) for s in (0, 1)]
    triangle = make_instance([[0.0, 0.0]] * 3, different)
    assert solve_ilp(triangle).primal == pytest.approx(4.0)
    assert lp_bound(triangle) >= 6.0 - 1e-9


def test_time_limit_leaves_an_incumbent_and_a_bound():
    rng = np.random.default_rng(3)
    pairs = [(v, w) for v in range(24) for w in range(v)]
    patterns = [(pair, tuple(rng.integers(4, size=2).tolist()), float(rng.normal())) for pair in pairs for _ in range(6)]
    instance = make_instance(rng.normal(size=(24, 4)), patterns)
    found = solve_ilp(instance, time_limit=0.3)
    assert not found.certificate
    assert found.bound > found.primal
    assert found.primal == pytest.approx(instance.score(found.assignment))
    hasty = solve_ilp(instance, time_limit=1e-9)
    assert not hasty.certificate
    assert hasty.primal == pytest.approx(instance.score(hasty.assignment))
    assert hasty.bound >= found.primal


def test_missing_scipy_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    instance = make_instance([[0.0, 1.0], [0.0, 1.0]], [((0, 1), (0, 0), 3.0)])
    for solve in (solve_ilp, lp_bound, lambda each: dual_decompose(each, kind="ilp")):
        with pytest.raises(ValueError, match=r"H090.*spacy-hocrf\[ilp\]"):
            solve(instance)


def with_patterns(slave, rng, n_patterns):
    n_states = np.diff(slave.offsets).tolist()
    if not n_states:
        return make_instance([])
    instance = instance_of(rng, n_states, n_patterns, float(rng.normal()))
    return GraphInstance.from_arrays(
        instance.offsets, instance.unary, instance.pattern_offsets, instance.vertices, instance.states, 4.0 * instance.weights
    )


def best_segmentations(problems, segments, labelled, slave, instance):
    """The highest score of potentials, rewards and patterns together."""
    best = {(): 0.0}
    n_labels = len(problems[0].limits)
    for i, problem in enumerate(problems):  # of each assignment so far the best score
        longer = {}
        for segmentation in allowed(problem):
            score = oracle.score(problem.potentials, problem.patterns, segmentation)
            states = tuple(sorted(states_of(segmentation, i, segments, labelled, n_labels).items()))
            for before, total in best.items():
                key = before + states
                longer[key] = max(longer.get(key, -np.inf), total + score)
        best = longer
    return max(score + instance.score(np.array([s for _, s in sorted(key)], dtype=np.int32)) for key, score in best.items())


@given(groups())
@settings(max_examples=150, deadline=None)
def test_segmentations_with_global_patterns_match_enumeration(group):
    problems, segments, labelled, rng = group
    if not problems:
        return
    slave = slave_of(problems, segments, labelled)
    instance = with_patterns(slave, rng, 8)
    best = best_segmentations(problems, segments, labelled, slave, instance)
    found = solve_ilp(instance, first=slave)
    assert found.primal == pytest.approx(best, rel=1e-9, abs=1e-6)
    assert found.bound == pytest.approx(best, rel=1e-9, abs=1e-6)
    assert found.certificate
    assert lp_bound(instance, first=slave) >= best - 1e-6
    n_labels = len(problems[0].limits)
    kept = segmentations_of(slave.best)
    states = {v: s for i in range(len(problems)) for v, s in states_of(kept[i], i, segments, labelled, n_labels).items()}
    assert [states[v] for v in range(instance.n_vertices)] == found.assignment.tolist()
    own = sum(oracle.score(p.potentials, p.patterns, segmentation) for p, segmentation in zip(problems, kept))
    assert own + instance.score(found.assignment) == pytest.approx(found.primal, abs=1e-6)
