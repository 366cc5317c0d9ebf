"""Passes over long vectors, whatever part of a block or a chunk is left over at their end."""

import math

import numpy as np
import pytest
from bfloat16 import bits_of, rounded, values_of
from numpy.testing import assert_allclose, assert_array_equal

from spacy_hocrf import dispatch
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.engine.vectors import BLOCK, CHUNK, dot, sweep

SIZES = [0, 1, 3, 7, 33, BLOCK - 1, BLOCK, BLOCK + 1, CHUNK, 2 * CHUNK + BLOCK + 5]
CAPACITY = 7
ROWS = [[2], [0, 1], [5, 0, 3, 1], [3, 4, 6, 0, 1, 2]]  # oldest first


@pytest.fixture(params=dispatch.instruction_sets(), autouse=True)
def path(request):
    """Each build of the kernels that this machine can run."""
    with dispatch.use_instructions(request.param):
        yield request.param


def run(kernel, columns, *arguments, threads=1):
    return sweep(kernel, len(arguments[0]), columns, *arguments, threads=Threads(threads))


def vectors(size, count):
    return np.random.default_rng(size).uniform(0.5, 2.0, (count, size))


def stored(pairs):
    """float64 [m, F], as the kernels want it: bfloat16 [K, m, BLOCK], as uint16."""
    capacity, size = pairs.shape
    blocks = np.zeros((-(-size // BLOCK) * BLOCK, capacity), dtype=np.uint16)
    blocks[:size] = bits_of(pairs.T)
    return np.ascontiguousarray(blocks.reshape(-1, BLOCK, capacity).transpose(0, 2, 1))


def unstored(blocks, size):
    return values_of(blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])[:size].T)


def random_pairs(size):
    """Two bfloat16 [K, m, BLOCK], and the same as float64 [m, F]."""
    rng = np.random.default_rng(size)
    s, y = stored(rng.normal(size=(CAPACITY, size))), stored(rng.normal(size=(CAPACITY, size)))
    return s, y, unstored(s, size), unstored(y, size)


@pytest.mark.parametrize("size", SIZES)
def test_dot(size):
    x, y = np.random.default_rng(size).normal(size=(2, size))
    assert_allclose(dot(x, y, Threads()), math.fsum(x * y), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 1, 8, 31, 32, 36])
def test_dot_is_finite_only_if_both_are(bad, place):
    x, one, zero = np.ones(37), np.ones(37), np.zeros(37)
    x[place] = bad
    assert not any(math.isfinite(dot(*both, Threads())) for both in ((x, one), (x, x), (zero, x)))


@pytest.mark.parametrize("size", SIZES)
def test_a_move_and_the_length_of_what_it_leads_to(size):
    start, direction = vectors(size, 2)
    x = np.full(size, np.nan)
    assert_allclose(
        run("move_into", 1, x, start, -0.7, direction),
        ((start - 0.7 * direction) ** 2).sum(),
        rtol=1e-12,
    )
    assert_allclose(x, start - 0.7 * direction, rtol=1e-14, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("diagonals", [1, 2])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("size", SIZES)
def test_a_pair_is_remembered_and_multiplied_with_all_others(size, rows, diagonals):
    direction, g, before, *e = vectors(size, 3 + diagonals)
    s, y, wide_s, wide_y = random_pairs(size)
    new, previous, first = rows[-1], before.copy(), 1 + 3 * diagonals
    numbers = np.array(rows, dtype=np.int32)
    arguments = s, y, numbers, new, 0.3, direction, g, previous, np.stack(e)
    sums = sweep("remember_into", size, first + 2 * len(rows), *arguments, threads=Threads())
    wide_s[new], wide_y[new] = rounded(0.3 * direction), rounded(g - before)
    assert_array_equal(unstored(s, size), wide_s)
    assert_array_equal(unstored(y, size), wide_y)
    assert_array_equal(previous, g)
    assert not s.transpose(0, 2, 1).reshape(-1, CAPACITY)[size:].any()
    squares = wide_s[new] ** 2, wide_y[new] ** 2
    weighed = [[squares[1].sum(), squares[0] @ each, squares[1] @ (1.0 / each)] for each in e]
    assert_allclose(sums[:first], [g @ g, *np.ravel(weighed)], rtol=1e-12)
    assert_allclose(sums[first::2], wide_s[rows] @ g, rtol=1e-11, atol=1e-10)
    assert_allclose(sums[first + 1 :: 2], wide_s[rows] @ wide_y[new], rtol=1e-11, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [[], *ROWS])
@pytest.mark.parametrize("size", SIZES)
def test_products_with_a_gradient_without_a_new_pair(size, rows):
    direction, g, previous, e = vectors(size, 4)
    s, y, wide_s, _ = random_pairs(size)
    before = s.copy(), y.copy()
    arguments = s, y, np.array(rows, dtype=np.int32), -1, 0.3, direction, g, previous, e[None]
    sums = sweep("remember_into", size, 4 + 2 * len(rows), *arguments, threads=Threads())
    assert_array_equal(previous, g)
    assert_allclose(sums[0], g @ g, rtol=1e-12)
    assert_allclose(sums[4::2], wide_s[rows] @ g, rtol=1e-11, atol=1e-10)
    assert not sums[1:4].any() and not sums[5::2].any()
    assert_array_equal(s, before[0])
    assert_array_equal(y, before[1])


@pytest.mark.slow
@pytest.mark.parametrize("shares", [[1.0], [0.25, 0.75]])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("size", SIZES)
def test_the_first_part_of_a_descent(size, rows, shares):
    g, *e = vectors(size, 1 + len(shares))
    s, y, wide_s, wide_y = random_pairs(size)
    factors, new = np.linspace(-1.0, 2.0, len(rows)), rows[-1]
    out, diagonals = np.full(size, np.nan), np.stack(e)
    renewal = np.array([[2.0, 3.0, 0.1, 1.5], [1.0, 0.5, 0.2, 0.1]])[: len(shares)]
    renewed = [
        np.maximum(
            kept * each + gained * wide_y[new] ** 2 - lost * (each * wide_s[new]) ** 2, least
        )
        for each, (kept, gained, lost, least) in zip(e, renewal.tolist())
    ]
    numbers = np.array(rows, dtype=np.int32)
    arguments = out, g, s, y, numbers, factors, diagonals, renewal, np.array(shares)
    sums = run("solve_into", len(rows), *arguments)
    assert_allclose(diagonals, renewed, rtol=1e-12)
    inverse = np.array(shares) @ (1.0 / np.array(renewed))
    assert_allclose(out, (factors @ wide_y[rows] - g) * inverse, rtol=1e-12, atol=1e-13)
    assert_allclose(sums, wide_y[rows] @ out, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("size", SIZES)
def test_the_second_part_of_a_descent(size, rows):
    g, start = vectors(size, 2)
    s, _, wide_s, _ = random_pairs(size)
    factors, out = np.linspace(-1.0, 2.0, len(rows)), start.copy()
    slope = run("combine_into", 1, out, s, np.array(rows, dtype=np.int32), factors, g)
    assert_allclose(out, start + factors @ wide_s[rows], rtol=1e-12, atol=1e-13)
    assert_allclose(slope, g @ out, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("alike", [(), ("precision",), ("mean",), ("precision", "mean")])
@pytest.mark.parametrize("size", SIZES)
def test_a_penalty_is_added_to_gradients_and_empirical_counts_taken_off(size, alike):
    weights, counts, gradient, precision, mean = vectors(size, 5)
    if "precision" in alike:  # a chunk stands for all
        precision = np.resize(vectors(CHUNK, 1), max(size, CHUNK))
    if "mean" in alike:
        mean = np.resize(vectors(CHUNK, 1) + 1.0, max(size, CHUNK))
    slope = precision[:size] * (weights - mean[:size])
    expected = gradient + slope - counts
    some = [
        vector[: CHUNK if name in alike else size]
        for name, vector in (("precision", precision), ("mean", mean))
    ]
    sums = sweep("penalise_into", size, 2, gradient, weights, *some, counts, threads=Threads())
    assert_allclose(gradient, expected, rtol=1e-12, atol=1e-14)
    assert_allclose(sums, [slope @ (weights - mean[:size]), weights @ counts], rtol=1e-12)


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_the_threads_change_nothing(threads):
    size, rows = SIZES[-1] + 3 * CHUNK, np.array(ROWS[-1], dtype=np.int32)
    direction, g, before, *e = vectors(size, 5)
    renewal = np.array([[1.0, 0.5, 0.1, 1e-9], [0.9, 0.4, 0.2, 1e-9]])
    factors, results = np.linspace(-1.0, 2.0, len(rows)), []
    for count in (1, threads):
        s, y, _, _ = random_pairs(size)
        out, previous, curvature = np.zeros(size), before.copy(), np.stack(e)
        workers = Threads(count)
        sums = [
            sweep(
                "remember_into",
                size,
                19,
                s,
                y,
                rows,
                rows[-1],
                0.3,
                direction,
                g,
                previous,
                curvature,
                threads=workers,
            ),
            run(
                "solve_into",
                6,
                out,
                g,
                s,
                y,
                rows,
                factors,
                curvature,
                renewal,
                np.array([0.3, 0.7]),
                threads=count,
            ),
            run("combine_into", 1, out, s, rows, factors, g, threads=count),
            [dot(direction, g, workers)],
            sweep(
                "penalise_into",
                size,
                2,
                (gradient := before.copy()),
                g,
                e[0],
                direction,
                before,
                threads=workers,
            ),
        ]
        results.append((np.concatenate(sums), s, y, out, previous, curvature, gradient))
    for one, other in zip(*results):
        assert_array_equal(one, other)
