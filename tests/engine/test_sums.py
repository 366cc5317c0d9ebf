"""The sum program against the sets of states that each sum is defined to have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.engine import sums
from spacy_hocrf.engine.sums import compile_sums


@st.composite
def problems(draw, most=20):
    """A tree of states, and sums of a state and some of its children."""
    parents = [draw(st.integers(0, i)) for i in range(draw(st.integers(0, most)))]
    children = [
        [child for child, parent in enumerate(parents, 1) if parent == state]
        for state in range(len(parents) + 1)
    ]
    chosen = draw(st.lists(st.integers(0, len(parents)), max_size=30))
    return children, [
        (state, [child for child in children[state] if draw(st.booleans())]) for state in chosen
    ]


def states_in(problem):
    """Of each sum, sorted."""
    children, wanted = problem

    def under(state):
        return [state, *(below for child in children[state] for below in under(child))]

    return [
        sorted([state, *(below for child in some for below in under(child))])
        for state, some in wanted
    ]


def run(n_states, additions):
    x = [[state] for state in range(n_states)]
    for d, a, b in additions:
        assert d == len(x)
        x.append(sorted(x[a] + x[b]))
    return x


def all_but_one(n):
    """One state and its n children, which have none: all of the sums without one of them."""
    children = list(range(1, n + 1))
    return [children, *([] for _ in children)], [
        (0, [other for other in children if other != child]) for child in children
    ]


@pytest.mark.parametrize("block", [sums.BLOCK, 2, 5])
@given(problem=problems())
def test_every_sum_has_exactly_its_states_each_once(block, problem):
    children, wanted = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "BLOCK", block)
        register, additions = compile_sums(children, wanted)
    x = run(len(children), additions)
    assert [x[r] for r in register] == states_in(problem)


@given(problems())
def test_every_addition_is_used(problem):
    children, wanted = problem
    register, additions = compile_sums(children, wanted)
    used = {*register, *(a for _, a, _ in additions), *(b for _, _, b in additions)}
    assert {d for d, _, _ in additions} <= used


@given(problems())
def test_a_running_sum_is_the_first_operand(problem):
    children, wanted = problem
    _, additions = compile_sums(children, wanted)
    for d, a, b in additions:
        assert b != d - 1 or b < len(children)
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
    children, wanted = all_but_one(n)
    _, additions = compile_sums(children, wanted)
    assert len(additions) <= 3 * n
    assert sum(a == d - 1 for d, a, _ in additions) >= 0.4 * len(additions)


def test_a_subset_is_the_start_of_the_sums_that_contain_it():
    children = [[1, 2, 3, 4, 5], [], [], [], [], []]
    register, additions = compile_sums(
        children, [(0, [1, 2, 3, 4, 5]), (0, [1, 2, 3]), (0, [1, 2, 3, 4])]
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
    children = [terms, *([] for _ in terms)]
    _, additions = compile_sums(children, [(0, terms), (0, terms[: n // 2]), (0, terms[n // 2 :])])
    assert len(additions) <= n + 2 * (n // sums.BLOCK) + 2
