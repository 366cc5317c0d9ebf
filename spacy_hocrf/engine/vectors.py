"""Passes over vectors of F weights, shared out among threads.

The vectors are cut into chunks whose extents do not depend on the threads, and the sums of the
chunks are added in their order: so the result is the same to the last bit for any number of
threads.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.dispatch import active, kernels
from spacy_hocrf.engine.threads import Threads

__all__ = ["BLOCK", "CHUNK", "dot", "sweep"]

BLOCK = 2048
"""Elements of every vector that the kernels work on together."""

CHUNK = 4 * BLOCK
"""Elements whose sums are made by one thread."""

PARTS = 2
"""Calls for each thread: one that begins late leaves some to the others."""


def sweep(
    kernel: str, size: int, columns: int, *arguments: Any, threads: Threads
) -> NDArray[np.float64]:
    """Run one of `kernels/vectors.pxi` on all chunks.

    size (int): F.
    columns (int): how many sums it makes.
    arguments: what it takes besides the sums and the chunks.
    RETURNS (float64 [columns]): the sums over all chunks.
    """
    run, chunks = getattr(kernels(active()), kernel), -(-size // CHUNK)
    sums = np.empty((chunks, columns))
    parts = 1 if threads.count == 1 else max(1, min(PARTS * threads.count, chunks))
    ends = [chunks * part // parts for part in range(parts + 1)]

    def work(part: int) -> None:
        run(sums, ends[part], ends[part + 1], CHUNK, *arguments)

    threads.map(work, range(parts))
    total: NDArray[np.float64] = sums.sum(axis=0)
    return total


def dot(x: NDArray[np.float64], y: NDArray[np.float64], threads: Threads) -> float:
    """x · y of float64 [F], finite only if x and y are."""
    return float(sweep("dot", len(x), 1, x, y, threads=threads)[0])
