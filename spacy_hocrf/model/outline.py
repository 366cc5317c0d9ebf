"""Placed numbers, and what of an arrangement of features does not grow with the features: enough for
batches that have been compiled, also in another process.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["VECTOR", "Outline", "Placed"]

VECTOR = 8
"""Numbers in the widest vector register, and the multiple that a row is padded to."""


@dataclass(frozen=True)
class Placed:
    """One number for each feature, where the kernels want it, and what follows from them without a
    Doc; all of them in one array.
    """

    numbers: NDArray[np.float64]  # [extent]
    values: NDArray[np.float64]  # [S] at a 64-byte boundary
    const: NDArray[np.float64]  # [Z] score, or expected count, of every pattern
    length: NDArray[np.float64]  # [G, M] of every pattern with length features, and every length
    dense: NDArray[np.float64]  # [H] of the dense scores
    # [U + 1, Y] of the words that are known, of each dense score of words; 0 in the last row
    words: tuple[NDArray[np.float64], ...] = ()


class Outline:
    """The part of an arrangement that batches read."""

    n_labels: int
    n_patterns: int
    pattern_level: NDArray[np.int64]
    """[Z] earlier labels of each pattern."""
    length_pattern: NDArray[np.int32]
    """[G] patterns with length scores."""
    length_bins: NDArray[np.float64]
    """[features, M] 1 where the length is in the feature's bin; the last one is of M tokens and more."""
    places: int
    """S, places of the features' own numbers."""
    n_dense: int
    """Number of dense weights H."""
    word_rows: tuple[int, ...] = ()
    """Rows U + 1 of each table of words."""
    shared: tuple[Any, ...] = ()
    """Objects that many batches have in common."""

    @property
    def outline(self) -> "Outline":
        """The outline alone."""
        outline = Outline()
        for name in Outline.__annotations__.keys() - {"shared"}:
            setattr(outline, name, getattr(self, name))
        return outline

    @property
    def extent(self) -> int:
        """How many numbers it places."""
        return sum(map(math.prod, self._shapes))

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        lengths = len(self.length_pattern), self.length_bins.shape[1]
        words = ((rows, self.n_labels) for rows in self.word_rows)
        return [(self.places,), (self.n_patterns,), lengths, (self.n_dense,), *words]

    def view(self, numbers: NDArray[np.float64]) -> Placed:
        """Numbers that lie elsewhere, float64 [extent]."""
        arrays, at = [], 0
        for shape in self._shapes:
            size = math.prod(shape)
            arrays.append(numbers[at : at + size].reshape(shape))
            at += size
        values, const, length, dense, *words = arrays
        return Placed(numbers, values, const, length, dense, tuple(words))

    def zeros(self) -> Placed:
        """Numbers of its own, at a 64-byte boundary."""
        numbers = np.zeros(self.extent + VECTOR)
        shift = -(numbers.ctypes.data // numbers.itemsize) % VECTOR
        return self.view(numbers[shift : shift + self.extent])

    def merge(self, counts: Placed, others: Placed) -> None:
        """Add other counts to counts, and make them zero."""
        np.add(counts.numbers, others.numbers, out=counts.numbers)
        others.numbers.fill(0.0)
