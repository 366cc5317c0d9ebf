"""Approximate randomization test of a difference in F1.

If two systems were equally good, it would not matter which of them made which prediction for a
document. So a shuffle swaps their predictions in each document with probability 1/2, and

    p' = (n_c + 1) / (n_t + 1),    n_c of n_t shuffles with |F1(A) - F1(B)| at least as large as without swaps

(Noreen, Computer-Intensive Methods for Testing Hypotheses, 1989; Yeh, COLING 2000). Counts add up,
so a shuffle is a sum over the documents that it swaps, and many shuffles are a matrix product.
If few documents differ, all 2^n shuffles are enumerated, and p is exact.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["RandomizationTest", "f1", "holm", "randomization_test"]

BLOCK = 1 << 22
"""Number of swaps held in memory at a time, 8 bytes each."""
ROUNDING = 1e-12  # differences of F1 that are equal as fractions may differ by this much


@dataclass(frozen=True)
class RandomizationTest:
    """Results for K statistics."""

    p: NDArray[np.float64]  # [K] p', or the exact p
    exact: NDArray[np.bool_]  # [K] were all shuffles taken?
    # [K] number of shuffles; if all were taken, this includes the one without swaps
    shuffles: NDArray[np.int64]
    documents: NDArray[np.int64]  # [K] number of documents on which the systems differ


def f1(correct: ArrayLike, predicted: ArrayLike, gold: ArrayLike) -> NDArray[np.float64]:
    """Compute F1, 2·correct / (predicted + gold), element by element; 0 where predicted + gold = 0."""
    total = np.add(predicted, gold, dtype=np.float64)
    return np.divide(np.multiply(correct, 2.0), total, out=np.zeros_like(total), where=total > 0)


def randomization_test(
    correct: NDArray[np.integer],
    predicted: NDArray[np.integer],
    gold: NDArray[np.integer],
    *,
    trials: int = 10_000,
    seed: int = 0,
) -> RandomizationTest:
    """Test whether two systems differ in F1, for K statistics at once.

    correct, predicted (int [2, D, K]): counts of either system, by document.
    gold (int [D, K]): counts of the annotation.
    trials (int): number of random shuffles; if there are no more than this in all, each is taken once.
    seed (int): seed of the random numbers.
    RETURNS (RandomizationTest): two-sided; a document is swapped for all statistics or for none.
    """
    # [2, D, K]
    changes = np.stack([correct[1] - correct[0], predicted[1] - predicted[0]]).astype(np.float64)
    differ: NDArray[np.bool_] = (changes != 0).any(axis=0)  # [D, K]
    documents = differ.sum(axis=0, dtype=np.int64)
    exact = documents < np.log2(trials + 1)  # 2^n <= trials
    # [count, system, K]
    totals = np.stack([correct.sum(axis=1), predicted.sum(axis=1)]).astype(np.float64)
    expected = gold.sum(axis=0).astype(np.float64)
    p = np.ones(len(documents))
    shuffles = np.full(len(documents), trials)
    for k in np.flatnonzero(exact).tolist():
        n = int(documents[k])
        shuffles[k] = 1 << n
        swaps = ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(np.float64)
        chosen = changes[:, differ[:, k], k : k + 1]
        p[k] = _extreme(swaps, chosen, totals[..., [k]], expected[[k]])[0] / len(swaps)
    sampled = np.flatnonzero(~exact)
    if len(sampled):
        rows = np.flatnonzero(differ[:, sampled].any(axis=1))
        counts = changes[:, rows][..., sampled], totals[..., sampled], expected[sampled]
        extreme = np.zeros(len(sampled), dtype=np.int64)
        rng = np.random.default_rng(seed)
        size = max(1, BLOCK // len(rows))
        for first in range(0, trials, size):
            drawn = rng.integers(0, 2, (min(size, trials - first), len(rows)), dtype=np.bool_)
            extreme += _extreme(drawn.astype(np.float64), *counts)
        p[sampled] = (extreme + 1) / (trials + 1)
    return RandomizationTest(p, exact, shuffles, documents)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Correct the p-values of several tests for their number (Holm, 1979), whatever their dependence."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(
        1.0, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    )
    return corrected


def _extreme(
    swaps: NDArray[np.float64],
    changes: NDArray[np.float64],
    totals: NDArray[np.float64],
    gold: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Count the shuffles whose difference is at least as large as the one without swaps, int64 [K].

    swaps (float64 [n, d]): 1 where a shuffle swaps a document.
    changes (float64 [2, d, K]): correct and predicted of the second system minus those of the
        first.
    totals (float64 [2, 2, K]): correct and predicted of both systems; gold (float64 [K]).
    """
    correct, predicted = (swaps @ change for change in changes)  # [n, K]
    first = f1(totals[0, 0] + correct, totals[1, 0] + predicted, gold)
    second = f1(totals[0, 1] - correct, totals[1, 1] - predicted, gold)
    observed = f1(totals[0], totals[1], gold)
    large = np.abs(first - second) >= np.abs(observed[0] - observed[1]) - ROUNDING
    count: NDArray[np.int64] = large.sum(axis=0, dtype=np.int64)
    return count
