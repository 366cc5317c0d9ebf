"""Products in tiles: what they are, and that BLAS takes no threads for them."""

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spacy_hocrf.features.products import MAX_TILE, _tiles, multiply, multiply_transposed

SIZES = [
    (0, 3, 2),
    (4, 0, 3),
    (4, 3, 0),
    (1, 400, 40),
    (500, 301, 1),
    (3, 2, 2),
    (1500, 301, 11),
    (40, 769, 200),
    (3, 5000, 70),
]
"""Rows, width and columns; the last three are cut."""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "width", "columns"), SIZES)
def test_products_are_sums_over_what_both_have(n, width, columns, dtype):
    rng = np.random.default_rng(0)
    left = rng.normal(size=(n, width)).astype(dtype)
    right, others = rng.normal(size=(width, columns)), rng.normal(size=(n, columns))
    doubles = left.astype(np.float64)
    found, transposed = multiply(left, right), multiply_transposed(left, others)
    assert found.dtype == transposed.dtype == np.float64
    assert_allclose(found, np.einsum("nk,ky->ny", doubles, right), rtol=1e-9, atol=1e-9)
    assert_allclose(transposed, np.einsum("nk,ny->ky", doubles, others), rtol=1e-9, atol=1e-9)
    assert_allclose(multiply(left.T, others), transposed, rtol=1e-9, atol=1e-9)  # any strides


@pytest.mark.parametrize(("n", "width", "columns"), SIZES)
def test_tiles_cover_all_and_are_small_enough_for_one_thread(n, width, columns):
    covered = np.zeros((n, columns), dtype=int)
    for some, several in product(*_tiles(n, width, columns)):
        rows, cut = some.stop - some.start, several.stop - several.start
        assert rows * width * cut <= MAX_TILE
        covered[some, several] += 1
    assert (covered == 1).all()


PROGRAM = """
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
from spacy_hocrf.features.products import multiply, multiply_transposed

def woken():  # how often each thread but this one has begun or ended to wait
    threads = [each for each in Path("/proc/self/task").iterdir() if each.name != this]
    lines = [each.joinpath("status").read_text().splitlines() for each in threads]
    return [line for status in lines for line in status if "ctxt_switches" in line]

this = Path("/proc/self").resolve().name
rng = np.random.default_rng(0)
sizes = [(2000, 301, 11), (100, 301, 40), (1, 301, 200), (5000, 301, 1), (300, 769, 40), (64, 1001, 9)]
matrices = [
    (rng.normal(size=(n, width)), rng.normal(size=(width, columns)), rng.normal(size=(n, columns)))
    for n, width, columns in sizes
]
before = None
while before != (before := woken()):
    time.sleep(0.2)  # threads that BLAS has started wait busily at first
found = [
    each
    for left, right, others in matrices
    for each in (multiply(left, right), multiply_transposed(left, others))
]
print(len(before), before == woken(), sha256(b"".join(map(bytes, found))).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux's list of threads")
def test_blas_takes_no_threads_and_the_result_does_not_depend_on_them(tmp_path):
    found = []
    for threads in ("1", "2"):
        names = ("OPENBLAS", "MKL", "OMP")
        settings = {f"{name}_NUM_THREADS": threads for name in names}
        environment = {**os.environ, **settings}
        options = {"env": environment, "cwd": tmp_path, "timeout": 100}
        command = [sys.executable, "-c", PROGRAM]
        run = subprocess.run(command, capture_output=True, text=True, check=True, **options)
        found.append(run.stdout.split())
    (_, asleep_alone, alone), (_, asleep, together) = found
    assert asleep_alone == asleep == "True"
    assert alone == together
