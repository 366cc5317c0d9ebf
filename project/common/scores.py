"""Precision, recall and F1 of counts, and how scores are written."""

import statistics
from collections.abc import Sequence

LEVEL = 0.05
"""A difference with a smaller p-value is in bold."""


def ratios(right: int, found: int, wanted: int) -> dict[str, float]:
    """Precision p, recall r and F1 f, from 0 to 1; 0 where nothing is found or wanted."""
    return {
        "p": right / found if found else 0.0,
        "r": right / wanted if wanted else 0.0,
        "f": 2 * right / (found + wanted) if found or wanted else 0.0,
    }


def spread(values: Sequence[float], digits: int = 2, sign: str = "") -> str:
    """Mean ± standard deviation; a single value as it is, nothing of none.

    sign (str): "+" for one before every mean.
    """
    if not values:
        return ""
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):{sign}.{digits}f}{deviation}"


def gain(points: float, p: float) -> str:
    """A difference in points with its p-value in brackets, in bold where p is below LEVEL."""
    text = f"{points:+.2f} ({p:.4f})"
    return f"**{text}**" if p < LEVEL else text
