"""Matrix products in tiles, each small enough that BLAS uses one thread.

NumPy's BLAS splits larger products among its own threads, which wait for each other: if other work occupies
the processors, that takes a hundred times as long as the product. OpenBLAS does so from 2^18
multiplications on, and much earlier for a single row or column, so these are computed without BLAS. Tiles
do not depend on the number of threads, and so the result does not either, bit for bit.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.types import Matrix

__all__ = ["MAX_TILE", "multiply", "multiply_transposed"]

MAX_TILE = 2**18
"""Most multiplications in a tile."""
MIN_ROWS, MAX_ROWS = 16, 1024
"""Rows of a tile: with fewer, BLAS rearranges the columns for too little work; with more, the copy as
float64 would take too much memory.
"""


def multiply(left: NDArray[Any], right: NDArray[Any]) -> Matrix:
    """Return left [n, K] · right [K, Y], float64 [n, Y]."""
    right = np.asarray(right, dtype=np.float64)
    product = np.empty((len(left), right.shape[1]))
    if len(left) * right.size <= MAX_TILE:
        return _multiply_into(product, np.asarray(left, dtype=np.float64), right)
    rows, columns = _tiles(len(left), *right.shape)
    for tile_rows in rows:
        block = np.asarray(left[tile_rows], dtype=np.float64)
        for tile_columns in columns:
            _multiply_into(product[tile_rows, tile_columns], block, right[:, tile_columns])
    return product


def multiply_transposed(left: NDArray[Any], right: NDArray[Any]) -> Matrix:
    """Return left' [K, n] · right [n, Y], float64 [K, Y]."""
    right = np.asarray(right, dtype=np.float64)
    product = np.zeros((left.shape[1], right.shape[1]))
    if left.size * right.shape[1] <= MAX_TILE:
        return _multiply_into(product, np.asarray(left, dtype=np.float64).T, right)
    rows, columns = _tiles(len(left), *product.shape)
    tile = np.empty((len(product), max((each.stop - each.start for each in columns), default=0)))
    for tile_rows in rows:
        block = np.asarray(left[tile_rows], dtype=np.float64).T
        for tile_columns in columns:
            summand = tile[:, : tile_columns.stop - tile_columns.start]
            _multiply_into(summand, block, right[tile_rows, tile_columns])
            product[:, tile_columns] += summand
    return product


def _multiply_into(product: Matrix, left: Matrix, right: Matrix) -> Matrix:
    """Multiply one tile with BLAS, or without it if a dimension is 1."""
    if 1 in product.shape:
        return np.einsum("ij,jk->ik", left, right, out=product)
    return np.matmul(left, right, out=product)


def _tiles(n: int, width: int, n_columns: int) -> tuple[list[slice], list[slice]]:
    """Cut n rows and n_columns columns into tiles so that rows · width · columns is at most MAX_TILE.

    RETURNS (tuple[list[slice], list[slice]]): rows, and columns.
    """
    of_row = max(1, width * n_columns)
    rows = min(max(MAX_TILE // of_row, MIN_ROWS), MAX_ROWS)
    columns = max(1, MAX_TILE // max(1, rows * width))
    return _parts(n, rows), _parts(n_columns, columns)


def _parts(size: int, most: int) -> list[slice]:
    """Cut a size into consecutive slices of nearly equal length, at most `most` each."""
    number = -(-size // most)
    ends = [size * part // number for part in range(number + 1)] if number else []
    return [slice(*both) for both in pairwise(ends)]
