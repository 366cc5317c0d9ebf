"""Have drawn things the probabilities that they should have?"""

import numpy as np


def chi_square_is_high(counts, p):
    """Is Pearson's statistic one that comes about once in ten million times? Rare outcomes are taken
    together; the quantile is Wilson and Hilferty's (PNAS 17, 1931).

    counts (Sequence[int]): how often each thing was drawn. p (Sequence[float]): its probability.
    """
    expected = np.array(p) * sum(counts)
    rare = expected < 5
    seen = np.append(np.array(counts)[~rare], np.array(counts)[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    if wanted[-1] < 1:  # too rare for the distribution that is assumed
        seen, wanted = seen[:-1], wanted[:-1]
    freedom = len(wanted) - 1
    if freedom < 1:
        return False
    part = 2 / (9 * freedom)
    quantile = freedom * (1 - part + 5.2 * np.sqrt(part)) ** 3
    return bool(((seen - wanted) ** 2 / wanted).sum() > quantile)
