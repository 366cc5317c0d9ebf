"""The sum program against the sets of states that each sum is defined to have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.engine import sums
from spacy_hocrf.engine.sums import compile_sums


@st.composite
def problems(draw, most=20):
    """A tree of states, and sums of a state and some of its kids."""
    parents = [draw(st.integers(0, i)) for i in range(draw(st.integers(0, most)))]
    kids = [
        [kid for kid, parent in enumerate(parents, 1) if parent == state]
        for state in range(len(parents) + 1)
    ]
    chosen = draw(st.lists(st.integers(0, len(parents)), max_size=30))
    return kids, [(state, [kid for kid in kids[state] if draw(st.booleans())]) for state in chosen]


def states_in(problem):
    """Of each sum, sorted."""
    kids, wanted = problem

    def under(state):
        return [state, *(below for kid in kids[state] for below in under(kid))]

    return [
        sorted([state, *(below for kid in some for below in under(kid))]) for state, some in wanted
    ]


def run(n_states, additions):
    x = [[state] for state in range(n_states)]
    for d, a, b in additions:
        assert d == len(x)
        x.append(sorted(x[a] + x[b]))
    return x


def all_but_one(n):
    """One state and its n kids, which have none: all of the sums without one of them."""
    kids = list(range(1, n + 1))
    return [kids, *([] for _ in kids)], [
        (0, [other for other in kids if other != kid]) for kid in kids
    ]


@pytest.mark.parametrize("block", [sums.BLOCK, 2, 5])
@given(problem=problems())
def test_every_sum_has_exactly_its_states_each_once(block, problem):
    kids, wanted = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "BLOCK", block)
        register, additions = compile_sums(kids, wanted)
    x = run(len(kids), additions)
    assert [x[r] for r in register] == states_in(problem)


@given(problems())
def test_every_addition_is_used(problem):
    kids, wanted = problem
    register, additions = compile_sums(kids, wanted)
    used = {*register, *(a for _, a, _ in additions), *(b for _, _, b in additions)}
    assert {d for d, _, _ in additions} <= used


@given(problems())
def test_a_running_sum_is_the_first_operand(problem):
    kids, wanted = problem
    _, additions = compile_sums(kids, wanted)
    for d, a, b in additions:
        assert b != d - 1 or b < len(kids)
        assert a != b


@pytest.mark.parametrize("block", [sums.BLOCK, 2, 5])
@given(problem=problems())
def test_no_addition_is_made_twice(block, problem):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "BLOCK", block)
        _, additions = compile_sums(*problem)
    assert len({frozenset((a, b)) for _, a, b in additions}) == len(additions)


@pytest.mark.parametrize("n", [3, 10, 40])
def test_sums_without_one_term_cost_about_three_additions_each(n):
    kids, wanted = all_but_one(n)
    _, additions = compile_sums(kids, wanted)
    assert len(additions) <= 3 * n
    assert sum(a == d - 1 for d, a, _ in additions) >= 0.4 * len(additions)


def test_a_subset_is_the_start_of_the_sums_that_contain_it():
    kids = [[1, 2, 3, 4, 5], [], [], [], [], []]
    register, additions = compile_sums(
        kids, [(0, [1, 2, 3, 4, 5]), (0, [1, 2, 3]), (0, [1, 2, 3, 4])]
    )
    assert len(additions) == 5
    assert sorted(register) == [8, 9, 10]
    assert all(a == d - 1 for d, a, _ in additions[1:])


def test_a_sum_that_several_arcs_want_is_made_once():
    register, additions = compile_sums([[1], [2], []], [(0, [1]), (0, [1]), (0, []), (1, [2])])
    assert register == [4, 4, 0, 3]
    assert [d for d, _, _ in additions] == [3, 4]
    assert [{a, b} for _, a, b in additions] == [{1, 2}, {0, 3}]


@pytest.mark.parametrize("n", [0, 1, 200, 3000])
def test_many_terms_cost_no_more_than_their_blocks(n):
    """The sum of all n terms, and two without one half of them: n additions and a few for each
    block.
    """
    terms = list(range(1, n + 1))
    kids = [terms, *([] for _ in terms)]
    _, additions = compile_sums(kids, [(0, terms), (0, terms[: n // 2]), (0, terms[n // 2 :])])
    assert len(additions) <= n + 2 * (n // sums.BLOCK) + 2
