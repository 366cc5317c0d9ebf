"""Ragged arrays (rows of different lengths laid end to end), cutting them into batches, connected
components of a graph, and hashes of numbers.

Row i of a ragged array is `offsets[i]:offsets[i + 1]` of a flat one.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["components", "hashes", "offsets_of", "ranges", "stretches"]


def offsets_of(sizes: ArrayLike) -> NDArray[np.int64]:
    """Return the offsets of rows, int64 [n + 1]: where each begins, and where the last one ends.

    sizes (ArrayLike): length of each row, int [n].
    """
    counts = np.asarray(sizes, dtype=np.int64)
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def ranges(first: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate ranges: first[0], first[0] + 1, …, counts[0] of them, then those from first[1], …

    first, counts (int64 [n]): where each range begins, and its length, which may be 0.
    RETURNS (int64 [Σ counts]): the concatenated ranges.
    """
    ends = np.cumsum(counts)
    return np.repeat(first - ends + counts, counts) + np.arange(int(counts.sum()))


def stretches(
    sizes: Iterable[int], least: int, groups: ArrayLike | None = None
) -> Iterator[tuple[int, int]]:
    """Cut n items into consecutive batches; yield the first item of each batch, and one past its last.

    sizes (Iterable[int]): size of each item, such as its number of tokens.
    least (int): size of a batch, which ends with the first item that reaches it; the last batch gets the
        rest.
    groups (Optional[ArrayLike]): int [n] number of each item's group; consecutive items of one group stay
        together.
    """
    numbers = None if groups is None else np.asarray(groups, dtype=np.int64)
    first = end = size = 0
    for i, more in enumerate(sizes):
        if size >= least and end > first and (numbers is None or numbers[i] != numbers[i - 1]):
            yield first, end
            first, size = end, 0
        size += more
        end = i + 1
    if end > first:
        yield first, end


def components(n: int, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find the connected components of n nodes: the smallest node in each node's component, int64 [n].

    one, other (int64 [edges]): the ends of the edges.
    """
    low = np.arange(n)
    while True:
        smaller = np.minimum(low[one], low[other])
        new = low.copy()
        np.minimum.at(new, one, smaller)
        np.minimum.at(new, other, smaller)
        new = new[new]
        if (new == low).all():
            return low
        low = new


def hashes(
    values: NDArray[np.uint64] | np.uint64, kind: NDArray[np.uint64] | np.uint64
) -> NDArray[np.uint64]:
    """Hash values of a kind (the last steps of SplitMix64: Steele, Lea and Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        mixed = values + (kind + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)
