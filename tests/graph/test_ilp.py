"""Integer linear programs against enumeration, the oracle's proved optima, and what they promise
when they cannot be solved.
"""

import sys
from dataclasses import replace

import numpy as np
import oracle
import pytest
from graph_problems import needs_oracle, proved
from hypothesis import given
from hypothesis import strategies as st
from segmented_groups import (
    allowed,
    groups,
    make_vertices,
    plain_sequence,
    plain_subproblem,
    segmentations_of,
    states_of,
    subproblem_of,
)

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.graph.dual import dual_decompose
from spacy_hocrf.graph.ilp import solve_ilp
from spacy_hocrf.graph.instance import GraphInstance, make_instance
from spacy_hocrf.graph.settings import DualSettings
from spacy_hocrf.joint.chain import SegmentationSubproblem

pytest.importorskip("scipy", reason="integer linear programs need SciPy (extra ilp)")


@st.composite
def instances(draw):
    """Small ones, with numbers of states that differ, and patterns of every size and sign."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_states = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    return instance_of(
        rng, n_states, draw(st.integers(0, 25)), draw(st.sampled_from([-1.0, 0.0, 1.0]))
    )


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
def test_optimum_is_that_of_enumeration(instance):
    best = best_by_enumeration(instance)
    found = solve_ilp(instance)
    assert found.primal == pytest.approx(best, abs=1e-6)
    assert found.primal == pytest.approx(instance.score(found.assignment), abs=1e-12)
    assert best - 1e-6 <= found.bound <= best + 1e-6
    assert found.certificate
    assert len(found.bounds) == len(found.primals) == 0


def test_nothing_to_decide():
    nothing = solve_ilp(make_instance([]))
    assert (nothing.primal, nothing.bound, nothing.certificate, len(nothing.assignment)) == (
        0.0,
        0.0,
        True,
        0,
    )
    plain = solve_ilp(make_instance([[1.0, 2.0], [4.0]]))
    assert (plain.primal, plain.bound, plain.assignment.tolist()) == (6.0, 6.0, [1, 0])


@needs_oracle
@pytest.mark.slow
def test_all_problems_with_proved_optima_are_solved():
    assert len(proved()) == 100
    for problem, instance in proved():
        found = solve_ilp(instance, time_limit=300.0)
        assert found.primal == problem["optimum"], problem["id"]
        assert -1e-6 <= found.bound - problem["optimum"] <= 1e-6, problem["id"]
        assert found.certificate, problem["id"]


@pytest.mark.slow
def test_time_limit_leaves_an_incumbent_and_a_bound():
    rng = np.random.default_rng(3)
    pairs = [(v, w) for v in range(24) for w in range(v)]
    patterns = [
        (pair, tuple(rng.integers(4, size=2).tolist()), float(rng.normal()))
        for pair in pairs
        for _ in range(6)
    ]
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
    for solve in (solve_ilp, lambda each: dual_decompose(each, DualSettings(kind="ilp"))):
        with pytest.raises(ValueError, match=r"H090.*spacy-hocrf\[ilp\]"):
            solve(instance)


def with_patterns(subproblem, rng, n_patterns):
    n_states = np.diff(subproblem.offsets).tolist()
    if not n_states:
        return make_instance([])
    instance = instance_of(rng, n_states, n_patterns, float(rng.normal()))
    return GraphInstance.from_arrays(
        instance.offsets,
        instance.unary,
        instance.pattern_offsets,
        instance.vertices,
        instance.states,
        4.0 * instance.weights,
    )


def best_segmentations(problems, vertices, instance):
    """The highest score of potentials, rewards and patterns together."""
    best = {(): 0.0}
    n_labels = len(problems[0].limits)
    for i, problem in enumerate(problems):  # of each assignment so far the best score
        longer = {}
        for segmentation in allowed(problem):
            score = oracle.score(problem.potentials, problem.patterns, segmentation)
            states = tuple(sorted(states_of(segmentation, i, vertices, n_labels).items()))
            for before, total in best.items():
                key = before + states
                longer[key] = max(longer.get(key, -np.inf), total + score)
        best = longer
    return max(
        score + instance.score(np.array([s for _, s in sorted(key)], dtype=np.int32))
        for key, score in best.items()
    )


@pytest.mark.slow
@given(groups())
def test_segmentations_with_global_patterns_match_enumeration(group):
    problems, vertices, rng = group
    if not problems:
        return
    subproblem = subproblem_of(problems, vertices)
    instance = with_patterns(subproblem, rng, 8)
    best = best_segmentations(problems, vertices, instance)
    found = solve_ilp(instance, first=subproblem)
    assert found.primal == pytest.approx(best, rel=1e-9, abs=1e-6)
    assert found.bound == pytest.approx(best, rel=1e-9, abs=1e-6)
    assert found.certificate
    n_labels = len(problems[0].limits)
    kept = segmentations_of(subproblem.best)
    states = {
        v: s
        for i in range(len(problems))
        for v, s in states_of(kept[i], i, vertices, n_labels).items()
    }
    assert [states[v] for v in range(instance.n_vertices)] == found.assignment.tolist()
    own = sum(
        oracle.score(p.potentials, p.patterns, segmentation)
        for p, segmentation in zip(problems, kept)
    )
    assert own + instance.score(found.assignment) == pytest.approx(found.primal, abs=1e-6)


@given(groups())
def test_a_fallback_is_exact_although_much_is_left_out(group):
    """What the multipliers rule out is not in the program."""
    problems, vertices, rng = group
    if not problems:
        return
    subproblem = subproblem_of(problems, vertices)
    instance = with_patterns(subproblem, rng, 12)
    best = best_segmentations(problems, vertices, instance)
    found = dual_decompose(
        instance,
        DualSettings(max_iterations=int(rng.integers(1, 30)), fallback="ilp", local_search=False),
        first=subproblem,
    )
    assert found.primal == pytest.approx(best, rel=1e-9, abs=1e-6)
    assert found.bound == pytest.approx(best, rel=1e-9, abs=1e-5)
    assert found.certificate


@pytest.mark.slow
@pytest.mark.parametrize("time_limit", [1e-9, 10.0])
def test_the_first_subproblem_keeps_what_belongs_to_the_better_of_both(time_limit):
    """A fallback that runs out of time must not overwrite what dual decomposition has found."""
    uncertain = 0
    for seed in range(12):
        subproblem, instance = segmented_instance(np.random.default_rng(seed))
        hasty = DualSettings(max_iterations=20)
        before = dual_decompose(instance, hasty, first=subproblem)
        both = replace(hasty, fallback="ilp", time_limit=time_limit)
        found = dual_decompose(instance, both, first=subproblem)
        uncertain += not before.certificate
        assert found.primal >= before.primal
        assert found.bound <= before.bound
        assert found.certificate or time_limit < 1.0
        [kept] = segmentations_of(subproblem.best)
        states = [
            next((s.label for s in kept if (s.start, s.end) == (u, u + 2)), 3)
            for u in range(0, 10, 2)
        ]
        assert states == found.assignment.tolist()
    assert uncertain > 3


def segmented_instance(rng):
    """A sequence of 10 tokens whose pairs of tokens would like to be segments of various labels
    together.
    """
    subproblem = plain_subproblem(10, (3, 3, 3), segments=[(0, u, u + 2) for u in range(0, 10, 2)])
    pairs = [(v, w) for v in range(5) for w in range(v)]
    patterns = [
        (pair, rng.integers(4, size=2).tolist(), float(rng.normal(0, 3)))
        for pair in pairs
        for _ in range(4)
    ]
    return subproblem, make_instance(np.zeros((5, 4)), patterns)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("weight", [-5.0, 5.0])
def test_a_pattern_alone_is_worth_its_weight_where_it_occurs(size, weight):
    """One of many choices has a pattern, too few for a table of three vertices or more."""
    unary = np.zeros((size, 5))
    unary[:, 2] = 10.0
    instance = make_instance(unary, [(range(size), [2] * size, weight)])
    found = solve_ilp(instance)
    assert found.assignment.tolist() == [2] * size
    assert found.primal == found.bound == pytest.approx(10.0 * size + weight)


@pytest.mark.parametrize("seed", range(20))
def test_without_slack_only_the_best_segmentation_is_left(seed):
    rng = np.random.default_rng(seed)
    subproblem = plain_subproblem(
        8, (3, 0, 2), segments=[(0, 1, 3), (0, 5, 6), (0, 2, 5)], tokens=[(0, 0), (0, 4)]
    )
    rewards = rng.normal(0, 4, subproblem.offsets[-1])
    polytope = subproblem.polytope(rewards, 1e-9)
    _, assignment = subproblem.take(np.ones(len(polytope.scores)))
    subproblem.keep()
    left = segmentations_of(subproblem.best)
    assert len(polytope.scores) == 2 * len(left[0]) < len(subproblem.polytope().scores)
    _, expected = subproblem.maximise(rewards)
    subproblem.keep()
    assert left == segmentations_of(subproblem.best)
    assert assignment.tolist() == expected.tolist()


def test_a_polytope_that_is_too_large_is_small_enough_without_what_is_ruled_out(monkeypatch):
    """Six sequences, whose lattices are thinned one by one."""
    rng = np.random.default_rng(1)
    problems = [replace(plain_sequence(6, 2, rng), const=np.zeros(2)) for _ in range(6)]
    potentials = oracle.batch(problems)
    vertices = make_vertices(
        potentials.offsets, 2, segments=[(d, u, u + 2) for d in range(6) for u in (0, 3)]
    )
    subproblem = SegmentationSubproblem(
        potentials, compile_automaton([(0,), (1,)], (3, 3)), vertices
    )
    pairs = [(v, w) for v in range(12) for w in range(v)]
    instance = make_instance(
        np.zeros((12, 3)), [(pair, rng.integers(3, size=2).tolist(), 1.0) for pair in pairs]
    )
    hasty = DualSettings(max_iterations=5, local_search=False)
    exact = solve_ilp(instance, first=subproblem)
    assert not dual_decompose(instance, hasty, first=subproblem).certificate
    all_edges = len(subproblem.polytope().scores)
    monkeypatch.setattr("spacy_hocrf.joint.chain.MOST_EDGES", all_edges - 1)
    assert not solve_ilp(instance, first=subproblem).certificate
    found = dual_decompose(instance, replace(hasty, fallback="ilp"), first=subproblem)
    assert found.certificate and found.primal == pytest.approx(exact.primal)


def test_a_polytope_that_is_too_large_leaves_a_bound(monkeypatch):
    subproblem, instance = segmented_instance(np.random.default_rng(0))
    exact = solve_ilp(instance, first=subproblem)
    monkeypatch.setattr("spacy_hocrf.joint.chain.MOST_EDGES", 100)
    assert subproblem.polytope() is None
    found = solve_ilp(instance, first=subproblem)
    assert not found.certificate
    assert found.primal <= exact.primal <= found.bound
    with_fallback = dual_decompose(instance, DualSettings(fallback="ilp"), first=subproblem)
    assert with_fallback.bound >= exact.primal - 1e-6
