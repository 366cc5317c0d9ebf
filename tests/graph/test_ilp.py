"""Integer linear programs against enumeration, the oracle's proved optima, and what they promise
when they cannot be solved.
"""

import sys

import numpy as np
import pytest
from graph_problems import needs_oracle, proved
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.graph.dual import dual_decompose
from spacy_hocrf.graph.ilp import solve_ilp
from spacy_hocrf.graph.instance import make_instance
from spacy_hocrf.graph.result import Decoding
from spacy_hocrf.graph.settings import DualSettings

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


def solved(instance, seconds=10.0):
    """Without anything that dual decomposition has found, or ruled out."""
    first = np.zeros(instance.n_vertices, dtype=np.int32)
    none, primal = np.zeros(0), instance.score(first)
    known = Decoding(first, primal, np.inf, False, none, none)
    return solve_ilp(instance, known, np.zeros(len(instance.unary)), seconds)


@given(instances())
def test_optimum_is_that_of_enumeration(instance):
    best = best_by_enumeration(instance)
    decoding = solved(instance)
    assert decoding.primal == pytest.approx(best, abs=1e-6)
    assert decoding.primal == pytest.approx(instance.score(decoding.assignment), abs=1e-12)
    assert best - 1e-6 <= decoding.bound <= best + 1e-6
    assert decoding.certificate


@pytest.mark.parametrize("kind", ["hybrid", "two_slave", "naive"])
@given(instances(), st.integers(1, 30))
def test_what_has_no_certificate_is_solved_although_much_is_left_out(kind, instance, iterations):
    """What the multipliers rule out is not in the program."""
    best = best_by_enumeration(instance)
    hasty = DualSettings(kind=kind, max_iterations=iterations, local_search=False)
    decoding = dual_decompose(instance, hasty, most_entries=0, ilp_seconds=10.0)
    assert decoding.primal == pytest.approx(best, abs=1e-6)
    assert decoding.primal == pytest.approx(instance.score(decoding.assignment), abs=1e-9)
    assert best - 1e-6 <= decoding.bound <= best + 1e-5
    assert decoding.certificate and 1 <= decoding.iterations <= iterations


@needs_oracle
@pytest.mark.slow
def test_all_problems_with_proved_optima_are_solved():
    assert len(proved()) == 100
    for problem, instance in proved():
        decoding = dual_decompose(instance, ilp_seconds=300.0)
        assert decoding.primal == problem["optimum"], problem["id"]
        assert -1e-6 <= decoding.bound - problem["optimum"] <= 1e-6, problem["id"]
        assert decoding.certificate, problem["id"]


@pytest.mark.slow
def test_a_time_limit_leaves_what_is_known_and_a_bound():
    rng = np.random.default_rng(3)
    pairs = [(v, w) for v in range(24) for w in range(v)]
    patterns = [
        (pair, tuple(rng.integers(4, size=2).tolist()), float(rng.normal()))
        for pair in pairs
        for _ in range(6)
    ]
    instance = make_instance(rng.normal(size=(24, 4)), patterns)
    decoding = solved(instance, 0.3)
    assert not decoding.certificate
    assert decoding.bound > decoding.primal
    assert decoding.primal == pytest.approx(instance.score(decoding.assignment))
    before = dual_decompose(instance, DualSettings(max_iterations=20))
    hasty = dual_decompose(instance, DualSettings(max_iterations=20), ilp_seconds=1e-9)
    assert not hasty.certificate
    assert hasty.primal == before.primal == pytest.approx(instance.score(hasty.assignment))
    assert before.bound >= hasty.bound >= decoding.primal


def test_missing_scipy_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    ring = [((v, (v + 1) % 3), (s, s), -1.0) for v in range(3) for s in range(2)]
    with pytest.raises(ValueError, match=r"H090.*spacy-hocrf\[ilp\]"):
        dual_decompose(make_instance([[0.0, 0.0]] * 3, ring), most_entries=0, ilp_seconds=1.0)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("weight", [-5.0, 5.0])
def test_a_pattern_alone_is_worth_its_weight_where_it_occurs(size, weight):
    """One of many choices has a pattern, too few for a table of three vertices or more."""
    unary = np.zeros((size, 5))
    unary[:, 2] = 10.0
    instance = make_instance(unary, [(range(size), [2] * size, weight)])
    decoding = solved(instance)
    assert decoding.assignment.tolist() == [2] * size
    assert decoding.primal == decoding.bound == pytest.approx(10.0 * size + weight)
