"""Equations 7 to 9 of Qian and Liu by enumeration."""

from itertools import combinations, product

import pytest

from spacy_hocrf.graph.paper import pairs_less_product
from spacy_hocrf.graph.parts import product as product_form


def value(extras, x):
    return sum(max(0, extra.slope * sum(x) - extra.threshold) for extra in extras)


def and_of(x):
    return int(all(x))


def pairs_of(x):
    return sum(a * b for a, b in combinations(x, 2))


@pytest.mark.parametrize("size", range(2, 9))
def test_equation_7_is_the_product(size):
    assert all(value(product_form(size), x) == and_of(x) for x in product((0, 1), repeat=size))


@pytest.mark.parametrize("size", range(3, 9))
def test_equations_8_and_9_are_all_pairs_less_the_product(size):
    assert all(
        value(pairs_less_product(size), x) == pairs_of(x) - and_of(x)
        for x in product((0, 1), repeat=size)
    )


def test_number_of_extra_variables_is_that_of_the_paper():
    assert [len(pairs_less_product(size)) for size in range(3, 9)] == [1, 1, 2, 3, 4, 5]


def test_equation_9_does_not_hold_for_three():
    assert any(2 * sum(x) - 3 > pairs_of(x) - and_of(x) for x in product((0, 1), repeat=3))
