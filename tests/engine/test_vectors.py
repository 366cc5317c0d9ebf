"""Sums over long vectors, whatever part of a block is left over at their end."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from spacy_hocrf.engine.vectors import add_into, divide_into, dot, remember_into, update_curvature

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
def test_what_is_done_to_a_vector_and_the_product_that_follows(size):
    x, y, z = np.random.default_rng(size).uniform(0.5, 2.0, (3, size))
    sum_, quotient = x.copy(), x.copy()
    assert_allclose(add_into(sum_, -0.7, y, z), z @ (x - 0.7 * y), rtol=1e-12, atol=1e-12)
    assert_allclose(sum_, x - 0.7 * y, rtol=1e-14)
    assert_allclose(divide_into(quotient, y, z), z @ (x / y), rtol=1e-12, atol=1e-12)
    assert_allclose(quotient, x / y, rtol=1e-14)


@pytest.mark.parametrize("size", SIZES)
def test_a_step_is_remembered(size):
    direction, g, before = np.random.default_rng(size).normal(size=(3, size))
    s, y = np.full((2, size), np.nan)
    assert_allclose(remember_into(s, y, 0.3, direction, g, before), ((g - before) ** 2).sum(), rtol=1e-12)
    assert_array_equal(s, 0.3 * direction)
    assert_array_equal(y, g - before)


@pytest.mark.parametrize("size", SIZES[1:])
def test_the_curvature_is_the_diagonal_of_a_bfgs_update(size):
    rng = np.random.default_rng(size)
    s = rng.normal(size=size)
    y = rng.uniform(0.5, 3.0, size) * s
    e = rng.uniform(0.1, 10.0, size)
    scaled = e * (y @ (y / e)) / (y @ s)
    expected = scaled + y**2 / (y @ s) - (scaled * s) ** 2 / (s @ (scaled * s))
    update_curvature(e, s, y, y @ s, 1e-300)
    assert_allclose(e, expected, rtol=1e-9, atol=1e-12)
    assert (e > 0).all()


def test_the_curvature_has_a_least_value():
    e = np.ones(3)
    update_curvature(e, np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.0, 0.0]), 0.5, 0.75)
    assert e.tolist() == [0.75, 0.75, 0.75]
