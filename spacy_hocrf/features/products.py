"""Products of matrices that wait for nobody: BLAS gets them in tiles, each small enough for one thread.

NumPy's BLAS shares a larger product out among threads of its own, which wait for each other: if other
work has the processors, that takes a hundred times as long as the product. OpenBLAS does so from 2^18
multiplications on, with a single row or column far earlier, so these go another way. The tiles do not
depend on the number of threads, nor does, bit for bit, the result.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST", "multiply", "multiply_transposed"]

Matrix = NDArray[np.float64]

MOST = 2**18
"""Multiplications of a tile."""
LEAST_ROWS, MOST_ROWS = 16, 1024
"""Of a tile: with fewer, BLAS rearranges the columns for too little; with more, as float64 they would
take too much memory.
"""


def multiply(left: NDArray[Any], right: NDArray[Any]) -> Matrix:
    """left [n, K] · right [K, Y], float64 [n, Y]."""
    right = np.asarray(right, dtype=np.float64)
    product = np.empty((len(left), right.shape[1]))
    if len(left) * right.size <= MOST:
        return _multiply_into(product, np.asarray(left, dtype=np.float64), right)
    rows, columns = _tiles(len(left), *right.shape)
    for some in rows:
        block = np.asarray(left[some], dtype=np.float64)
        for several in columns:
            _multiply_into(product[some, several], block, right[:, several])
    return product


def multiply_transposed(left: NDArray[Any], right: NDArray[Any]) -> Matrix:
    """left' [K, n] · right [n, Y], float64 [K, Y]."""
    right = np.asarray(right, dtype=np.float64)
    product = np.zeros((left.shape[1], right.shape[1]))
    if left.size * right.shape[1] <= MOST:
        return _multiply_into(product, np.asarray(left, dtype=np.float64).T, right)
    rows, columns = _tiles(len(left), *product.shape)
    tile = np.empty((len(product), max((each.stop - each.start for each in columns), default=0)))
    for some in rows:
        block = np.asarray(left[some], dtype=np.float64).T
        for several in columns:
            mine = tile[:, : several.stop - several.start]
            _multiply_into(mine, block, right[some, several])
            product[:, several] += mine
    return product


def _multiply_into(product: Matrix, left: Matrix, right: Matrix) -> Matrix:
    """One tile: by BLAS, unless that would take it for a matrix and a vector."""
    if 1 in product.shape:
        return np.einsum("ij,jk->ik", left, right, out=product)
    return np.matmul(left, right, out=product)


def _tiles(n: int, width: int, n_columns: int) -> tuple[list[slice], list[slice]]:
    """How n rows and some columns are cut, so that rows · width · columns are at most MOST.

    RETURNS (tuple[list[slice], list[slice]]): rows, and columns.
    """
    of_row = max(1, width * n_columns)
    rows = min(max(MOST // of_row, LEAST_ROWS), MOST_ROWS)
    columns = max(1, MOST // max(1, rows * width))
    return _parts(n, rows), _parts(n_columns, columns)


def _parts(size: int, most: int) -> list[slice]:
    """Neighbouring stretches, nearly equal, of at most so many."""
    number = -(-size // most)
    ends = [size * part // number for part in range(number + 1)] if number else []
    return [slice(*both) for both in pairwise(ends)]
