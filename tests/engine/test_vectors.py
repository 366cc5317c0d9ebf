"""Sums over long vectors, whatever part of a block is left over at their end."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from spacy_hocrf.engine.vectors import add_multiples_into, dot, products_into

SIZES = [0, 1, 3, 4, 5, 255, 256, 257, 1000]


@pytest.mark.parametrize("size", SIZES)
def test_dot(size):
    x, y = np.random.default_rng(size).normal(size=(2, size))
    assert_allclose(dot(x, y), math.fsum(x * y), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", range(5))
def test_dot_is_finite_only_if_both_are(bad, place):
    x = np.ones(5)
    x[place] = bad
    assert not math.isfinite(dot(x, np.ones(5)))
    assert not math.isfinite(dot(x, x))
    assert not math.isfinite(dot(np.zeros(5), x))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rows, newest", [(1, 0), (3, 2), (3, 0), (4, 3)])
def test_products_of_the_rows_in_use(size, rows, newest):
    rng = np.random.default_rng(size)
    s, y = rng.normal(size=(2, 4, size))
    g = rng.normal(size=size)
    out = np.full((4, 5), 7.0)
    products_into(out, s, y, rows, newest, g)
    expected = np.stack([s @ g, y @ g, s @ y[newest], y @ y[newest], y @ s[newest]], axis=1)
    assert_allclose(out[:rows], expected[:rows], rtol=1e-10, atol=1e-12)
    assert_array_equal(out[rows:], np.full((4 - rows, 5), 7.0))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_multiples_of_the_rows_in_use_are_added(size, rows):
    rng = np.random.default_rng(size)
    s, y = rng.normal(size=(2, 3, size))
    a, b = rng.normal(size=(2, 3))
    start = rng.normal(size=size)
    out = start.copy()
    add_multiples_into(out, s, a, y, b, rows)
    assert_allclose(out, start + a[:rows] @ s[:rows] + b[:rows] @ y[:rows], rtol=1e-12, atol=1e-12)
