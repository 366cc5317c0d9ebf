"""Passes over vectors of F weights, divided among threads.

The vectors are cut into chunks whose sizes do not depend on the threads, and the sums of the
chunks are added in order: so the result is the same to the last bit for any number of
threads.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.dispatch import active, kernels
from spacy_hocrf.engine.threads import Threads

__all__ = ["BLOCK", "CHUNK", "dot", "sweep"]

BLOCK = 2048
"""Elements of every vector that a kernel processes together."""

CHUNK = 4 * BLOCK
"""Elements that are summed by one thread."""

PARTS_PER_THREAD = 2
"""Calls per thread: a thread that starts late leaves some to the others."""


def sweep(
    kernel: str, size: int, columns: int, *arguments: Any, threads: Threads
) -> NDArray[np.float64]:
    """Run a function of `kernels/vectors.pxi` on all chunks.

    size (int): number of weights F.
    columns (int): number of sums that it returns.
    arguments: its arguments besides the sums and the chunks.
    RETURNS (float64 [columns]): the sums over all chunks.
    """
    run, chunks = getattr(kernels(active()), kernel), -(-size // CHUNK)
    sums = np.empty((chunks, columns))
    parts = 1 if threads.count == 1 else max(1, min(PARTS_PER_THREAD * threads.count, chunks))
    ends = [chunks * part // parts for part in range(parts + 1)]

    def work(part: int) -> None:
        run(sums, ends[part], ends[part + 1], CHUNK, *arguments)

    threads.map(work, range(parts))
    total: NDArray[np.float64] = sums.sum(axis=0)
    return total


def dot(x: NDArray[np.float64], y: NDArray[np.float64], threads: Threads) -> float:
    """Return x · y of float64 [F], which is finite only if x and y are."""
    return float(sweep("dot", len(x), 1, x, y, threads=threads)[0])
