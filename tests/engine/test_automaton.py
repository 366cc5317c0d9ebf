"""States, arcs and the sum program of an automaton against their definitions."""

from itertools import pairwise, product

import numpy as np
import pytest
import worked_example
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spacy_hocrf.engine.automaton import compile_automaton


@st.composite
def models(draw):
    """Patterns up to order 4, closed under nothing; limits, forbidden pairs and carried patterns."""
    labels = draw(st.integers(1, 3))
    label = st.integers(0, labels - 1)
    longer = draw(
        st.lists(st.lists(label, min_size=2, max_size=5).map(tuple), max_size=8, unique=True)
    )
    forbidden = draw(st.sets(st.tuples(label, label), max_size=3))
    limits = draw(st.lists(st.integers(0, 2), min_size=labels, max_size=labels))
    patterns = [(y,) for y in range(labels)] + longer
    return patterns, limits, forbidden, draw(st.sets(st.sampled_from(patterns)))


def automaton_of(model):
    patterns, limits, forbidden, carried = model
    return compile_automaton(patterns, limits, forbidden=forbidden, carried=carried)


def longest_suffix(pattern, among):
    return next((pattern[i:] for i in range(len(pattern) + 1) if pattern[i:] in among), None)


def entering_mass(automaton, alpha):
    """[C] by the sum program, nan for what is forbidden."""
    x = np.zeros(automaton.registers)
    x[: len(alpha)] = alpha
    for d, a, b in automaton.additions:
        x[d] = x[a] + x[b]
    return np.where(automaton.arc_open < 0, np.nan, x[automaton.arc_register])


@given(models(), st.integers(0, 100))
def test_the_sum_program_equals_the_naive_sum_over_states_and_labels(model, seed):
    automaton = automaton_of(model)
    states, arcs, limits = automaton.states, automaton.arcs, automaton.limits
    alpha = np.random.default_rng(seed).random(len(states))
    expected = np.zeros(len(arcs))
    for (p, state), y in product(enumerate(states), range(len(limits))):
        expected[arcs.index(longest_suffix((*state, y), arcs))] += alpha[p]
    assert_allclose(expected.sum(), len(limits) * alpha.sum(), rtol=1e-12)
    expected[automaton.arc_open < 0] = np.nan
    assert_allclose(entering_mass(automaton, alpha), expected, rtol=1e-12)


@given(models())
def test_the_program_reads_only_what_it_has_written(model):
    automaton = automaton_of(model)
    known = len(automaton.states)
    for d, a, b in automaton.additions:
        assert d == known
        assert max(a, b) < d
        known += 1
    assert known == automaton.registers


@given(models())
def test_every_register_is_read_and_only_forbidden_arcs_have_none(model):
    automaton = automaton_of(model)
    written = set(range(len(automaton.states), automaton.registers))
    assert written <= {
        *automaton.arc_register.tolist(),
        *automaton.additions[:, 1:].ravel().tolist(),
    }
    assert ((automaton.arc_register < 0) == (automaton.arc_open < 0)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "labels",
    [(0,) * 2000, (0, 1) * 1000, tuple(np.random.default_rng(0).integers(2, size=2000).tolist())],
)
def test_a_pattern_of_2000_labels_compiles(labels):
    automaton = compile_automaton([(0,), (1,), labels], [1, 1])
    assert len(automaton.states[-1]) == 1999
    alpha = np.random.default_rng(0).random(len(automaton.states))
    assert_allclose(entering_mass(automaton, alpha).sum(), 2 * alpha.sum(), rtol=1e-12)


@given(models())
def test_states_and_arcs_are_what_they_are_defined_to_be(model):
    patterns, limits, forbidden, _carried = model
    automaton = automaton_of(model)
    states, arcs = automaton.states, automaton.arcs
    prefixes = {pattern[:i] for pattern in patterns for i in range(len(pattern))}
    assert set(states) == {(), *((y,) for y in range(len(limits)))} | prefixes
    assert states[0] == ()
    assert list(states) == sorted(states, key=lambda p: (len(p), p))
    assert list(arcs) == sorted(set(arcs), key=lambda c: (len(c), c))
    assert {*states[1:], *patterns, *forbidden} <= set(arcs)
    assert all(arc[:-1] in states for arc in arcs)
    for i, state in enumerate(states[1:], 1):
        assert states[automaton.state_suffix[i]] == longest_suffix(state[1:], states)
        mine = automaton.state_arcs[automaton.state_offsets[i] : automaton.state_offsets[i + 1]]
        assert {arcs[c] for c in mine} == {arc for arc in arcs if arc[:-1] == state}
    assert automaton.state_suffix[0] == -1
    for c, arc in enumerate(arcs):
        suffix = longest_suffix(arc[1:], arcs)
        assert automaton.arc_suffix[c] == (arcs.index(suffix) if suffix else -1)
        assert states[automaton.arc_target[c]] == longest_suffix(arc, states)
        assert automaton.arc_pattern[c] == (patterns.index(arc) if arc in patterns else -1)
        assert automaton.arc_label[c] == arc[-1]
    assert [arcs[c] for c in automaton.pattern_arc] == patterns
    assert automaton.pattern_folded.tolist() == [limits[z[-1]] == 1 for z in patterns]


@given(models())
def test_arcs_are_closed_under_states_that_are_suffixes(model):
    """p'·y in C implies p·y in C for every state p that is a suffix of p': what a state shares, all
    that end in it share.
    """
    automaton = automaton_of(model)
    for arc in automaton.arcs:
        for i in range(len(arc)):
            if arc[i:-1] in automaton.states:
                assert arc[i:] in automaton.arcs


@given(models())
def test_forbidden_successions_and_only_those_are_dead(model):
    _, _, forbidden, _ = model
    automaton = automaton_of(model)
    for c, arc in enumerate(automaton.arcs):
        assert (automaton.arc_open[c] < 0) == any(pair in forbidden for pair in pairwise(arc))
    for state, y in product(automaton.states, range(len(automaton.limits))):
        arc = longest_suffix((*state, y), automaton.arcs)
        assert ((*state[-1:], y) in forbidden) <= (
            automaton.arc_open[automaton.arcs.index(arc)] < 0
        )


@given(models())
def test_open_states_are_the_pairs_of_body_and_target(model):
    patterns, limits, _, carried = model
    automaton = automaton_of(model)
    bodies = [(y,) for y in range(len(limits))] + sorted(
        (z for z in carried if len(z) > 1 and limits[z[-1]] != 1), key=lambda z: (len(z), z)
    )
    assert automaton.body_label.tolist() == [body[-1] for body in bodies]
    one_token = all(limit == 1 for limit in limits)
    assert automaton.pattern_body.tolist() == [
        bodies.index(z) if z in bodies and not one_token else -1 for z in patterns
    ]
    for k, body in enumerate(bodies):
        suffix = longest_suffix(body[1:], bodies)
        assert automaton.body_suffix[k] == (bodies.index(suffix) if suffix else -1)
    body_of = np.repeat(np.arange(len(bodies)), np.diff(automaton.body_offsets))
    assert len(body_of) == len(automaton.open_target)
    for c, arc in enumerate(automaton.arcs):
        o = automaton.arc_open[c]
        if o >= 0:
            assert bodies[body_of[o]] == longest_suffix(arc, bodies)
            assert automaton.open_target[o] == automaton.arc_target[c]
    assert set(range(len(body_of))) <= set(automaton.arc_open.tolist())


def test_states_and_arcs_of_the_papers_example():
    automaton = compile_automaton(worked_example.PATTERNS, worked_example.LIMITS)
    P, O, L = 0, 1, 2  # noqa: E741
    assert automaton.states == ((), (P,), (O,), (L,), (L, O))
    assert set(automaton.states) == set(worked_example.FORWARD_STATES)
    # O·L is there because L·O·L is, and O is a suffix of L·O
    assert automaton.arcs == ((P,), (O,), (L,), (O, L), (L, O), (L, O, L))
    assert len(automaton.additions) <= 5


def test_the_arcs_of_cora_are_the_seen_patterns_and_few_more():
    """13 labels that follow one another in a few ways: arcs grow with what is seen, not with 13 to
    the power of the order.
    """
    rng = np.random.default_rng(0)
    follow = [rng.choice(13, size=3, replace=False) for _ in range(13)]
    patterns = {(y,) for y in range(13)}
    for _ in range(500):
        walk = [int(rng.integers(13))]
        for _ in range(9):
            walk.append(int(rng.choice(follow[walk[-1]])))
        patterns |= {tuple(walk[i : i + n]) for n in (2, 3, 4) for i in range(len(walk) - n + 1)}
    ordered = sorted(patterns, key=lambda z: (len(z), z))
    automaton = compile_automaton(ordered, [0] * 13, forbidden=[(y, y) for y in range(13)])
    shorter = {z for z in patterns if len(z) < 4}
    assert set(automaton.states) == {(), *shorter}
    assert (
        patterns
        <= set(automaton.arcs)
        == patterns
        | {(y, y) for y in range(13)}
        | {c for c in automaton.arcs if c[:-1] in automaton.states}
    )
    extra = set(automaton.arcs) - patterns - {(y, y) for y in range(13)}
    assert not extra  # n-grams of one corpus are closed under suffixes
    assert len(automaton.additions) < len(automaton.arcs)


def test_forbidden_pairs_may_come_from_a_generator():
    automaton = compile_automaton([(0,), (1,)], [1, 1], forbidden=(pair for pair in [(0, 1)]))
    assert [arc for arc, o in zip(automaton.arcs, automaton.arc_open) if o < 0] == [(0, 1)]


@pytest.mark.parametrize(
    "patterns, limits, forbidden, message",
    [
        ([(0,), (1,), (0, 2)], [1, 1], (), r"H001.*\(0, 2\).*label 2.*0 to 1"),
        ([(0,), (1,), (-1, 0)], [1, 1], (), r"H001.*\(-1, 0\).*label -1"),
        ([(0,), (1,)], [1, 1], [(1, 5)], r"H001.*\(1, 5\).*label 5"),
        ([(0,), (1,), ()], [1, 1], (), "H002"),
        ([(0,), (1,)], [1, -2], (), "H003.*-2.*label 1"),
        ([(1,), (0,)], [1, 1], (), r"H008.*first 2.*\[\(1,\), \(0,\)\]"),
        ([(0,), (0, 1)], [1, 1], (), "H008"),
        ([(0,)], [1, 1], (), "H008"),
        ([(0,), (1,)], [1, 10**30], (), "H003.*label 1"),
        ([(0,), (1,)], [1, 1.5], (), "H003.*1.5"),
        ([(0,), (1,)], [1, "1"], (), "H003"),
        ([(0,), (1,), ("a", 0)], [1, 1], (), "H001.*label a"),
        ([(0,), (1,), (0, 0.5)], [1, 1], (), "H001.*label 0.5"),
        ([(0,), (1,), (0, 1), (0, 1)], [1, 1], (), r"H592.*\(0, 1\) occurs twice"),
    ],
)
def test_bad_patterns_and_limits_are_refused(patterns, limits, forbidden, message):
    with pytest.raises(ValueError, match=message):
        compile_automaton(patterns, limits, forbidden=forbidden)


def test_what_is_carried_must_occur_and_lists_are_patterns():
    with pytest.raises(ValueError, match=r"H592.*\(0, 1\) is carried, but missing"):
        compile_automaton([(0,), (1,)], [2, 2], carried=[(0, 1)])
    listed = compile_automaton([[0], [1], [0, 1]], np.array([2, 2]), carried=[[0, 1]])
    assert listed.patterns == ((0,), (1,), (0, 1))
