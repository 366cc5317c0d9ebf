"""Estimates of F1 on new texts with an interval, and the learning curve by number of texts.

Counts are added over texts, so F1 is a ratio of two sums, 2 right / (predicted + gold). The bootstrap draws
texts with replacement (Efron, 1979).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.types import Vector

__all__ = [
    "Curve",
    "Interval",
    "Score",
    "SpanCounts",
    "bootstrap",
    "learning_curve",
    "proportion",
    "scores",
]

DRAWS = 2_000
"""Number of bootstrap samples."""
BLOCK = 1 << 22
"""Number of weights of texts held in memory at a time, 8 bytes each."""
QUANTILE = 1.6449
"""Quantile of the normal distribution: 90 % of values are within this many standard errors."""
NEW = 500
"""Number of new texts; an interval is for F1 as measured on a sample of this size."""
MODEL = 0.01
"""Standard error of F1 due to the choice of training texts, which the bootstrap does not cover."""
POWERS = np.arange(1, 11) / 10
"""Candidates for c in F = a - b n^-c."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class SpanCounts:
    """Numbers of spans in D texts, by label."""

    right: Numbers  # [D, L]
    predicted: Numbers  # [D, L]
    gold: Numbers  # [D, L] annotated

    def only(self, mask: NDArray[np.bool_]) -> "SpanCounts":
        """Select texts by a mask, bool [D]."""
        return SpanCounts(*(count[mask] for count in vars(self).values()))

    @property
    def f(self) -> float:
        """F1 of all labels together, from 0 to 1; 0 if there are no spans."""
        return 2 * float(self.right.sum()) / max(1, int(self.predicted.sum() + self.gold.sum()))

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Which texts are entirely right, with all of their spans found and no others: bool [D]."""
        right, predicted, gold = (count.sum(axis=1) for count in vars(self).values())
        same: NDArray[np.bool_] = (right == predicted) & (right == gold)
        return same


@dataclass(frozen=True)
class Interval:
    """A 90 % interval of F1, from 0 to 1."""

    low: float
    high: float

    def __contains__(self, f: float) -> bool:
        return self.low <= f <= self.high


@dataclass(frozen=True)
class Score:
    """A measured score, and an estimate for NEW new texts; each number is from 0 to 1."""

    f: float  # estimated F1 on new texts
    interval: Interval
    measured: float  # F1 on the held-out texts
    precision: float  # on the held-out texts
    recall: float  # on the held-out texts
    gold: int  # number of annotated spans in these
    texts: int  # number of these with such spans


@dataclass(frozen=True)
class Curve:
    """Learning curve, F1 by the number n of training texts: F = a - b n^-c, through the last point."""

    texts: tuple[int, ...]  # [K] ascending
    f: tuple[float, ...]  # [K] measured
    errors: tuple[float, ...]  # [K] standard error of each
    a: float
    b: float
    c: float
    now: int  # number of texts now
    doubled: Interval  # F1 with twice as many texts

    def at(self, texts: float) -> float:
        """Estimate F1 with a given number of texts."""
        return float(np.clip(self.a - self.b * texts**-self.c, 0.0, 1.0))

    @property
    def gain(self) -> float:
        """Gain in F1 of a model of all texts over the models whose F1 was measured; at least 0."""
        return self.at(self.now) - self.at(self.texts[-1])


def scores(counts: SpanCounts, gain: float, seed: int) -> list[Score]:
    """Estimate F1 of all labels together, then of each label.

    counts (SpanCounts): counts of the held-out texts.
    gain (float): gain in F1 of all labels together, of a model of all texts over the models that held these
        out; F1 of each label is scaled by the same factor.
    seed (int): seed of the bootstrap.
    """
    texts = len(counts.gold)
    columns = [_with_total(count) for count in vars(counts).values()]
    # standard error from the sampled texts, and from NEW new ones
    right, predicted, gold = columns
    errors = bootstrap(right, predicted, gold, seed).std(axis=0) * np.sqrt(1 + texts / NEW)
    texts_by_label = (gold > 0).sum(axis=0).tolist()
    totals = zip(*(array.sum(axis=0).tolist() for array in columns))
    results = []
    factor = max(0.0, 1 + gain / max(counts.f, 1e-9))
    rows = zip(totals, errors.tolist(), texts_by_label)
    for (n_right, n_predicted, n_gold), error, n_texts in rows:
        measured = 2 * n_right / max(1, n_predicted + n_gold)
        f = min(1.0, factor * measured)
        interval = _interval(f, float(np.sqrt(error**2 + MODEL**2)))
        interval = _widened(interval, f, (n_predicted + n_gold) / 2)
        ratios = measured, n_right / max(1, n_predicted), n_right / max(1, n_gold)
        results.append(Score(f, interval, *ratios, n_gold, n_texts))
    return results


def learning_curve(
    texts: Sequence[int], counts: Sequence[SpanCounts], now: int, seed: int
) -> Curve:
    """Fit the learning curve, and extrapolate it to twice the texts.

    texts (Sequence[int]): number of training texts of each model, ascending.
    counts (Sequence[SpanCounts]): counts of these models on the same held-out texts.
    now (int): number of texts now.
    seed (int): seed of the bootstrap.
    """
    sizes = np.array(texts, dtype=np.float64)
    columns = [[array.sum(axis=1) for array in vars(count).values()] for count in counts]
    right, predicted, gold = (np.stack(arrays, axis=1) for arrays in zip(*columns))  # [D, K]
    samples = bootstrap(right, predicted, gold, seed)
    a, b, c = _fit(sizes, np.array([[count.f for count in counts]]))
    curves = _fit(sizes, samples)
    doubled = np.clip(curves[0] - curves[1] * (2.0 * now) ** -curves[2], 0.0, 1.0)
    new = float(samples[:, -1].std()) * np.sqrt(len(gold) / NEW)
    error = float(np.sqrt(doubled.std() ** 2 + new**2 + MODEL**2))
    expected = float(np.clip(a[0] - b[0] * (2.0 * now) ** -c[0], 0.0, 1.0))
    return Curve(
        tuple(texts),
        tuple(count.f for count in counts),
        tuple(samples.std(axis=0).tolist()),
        float(a[0]),
        float(b[0]),
        float(c[0]),
        now,
        _interval(expected, error),
    )


def bootstrap(right: Numbers, predicted: Numbers, gold: Numbers, seed: int) -> NDArray[np.float64]:
    """Compute F1 on DRAWS samples of texts drawn with replacement, float64 [DRAWS, K].

    right, predicted, gold (int64 [D, K]): counts by text.
    """
    texts, random = len(gold), np.random.default_rng(seed)
    size = max(1, BLOCK // texts)
    parts = list[NDArray[np.float64]]()
    for first in range(0, DRAWS, size):
        number = min(size, DRAWS - first)
        weights = random.multinomial(texts, np.full(texts, 1 / texts), number)
        parts.append(2 * (weights @ right) / np.maximum(1, weights @ (predicted + gold)))
    return np.concatenate(parts)


# F_i = a - b n_i^-c by least squares, b >= 0 and a <= 1, for every c; the best fit, shifted to pass through
# the last point
def _fit(sizes: Vector, f: NDArray[np.float64]) -> tuple[Vector, Vector, Vector]:
    """Fit B learning curves at once.

    sizes (float64 [K]): numbers of texts; f (float64 [B, K]): F1 with each number.
    RETURNS (tuple[float64 [B], float64 [B], float64 [B]]): a, b and c of each curve.
    """
    best = np.full(len(f), np.inf)
    a, b, c = (np.zeros(len(f)) for _ in range(3))
    for power in POWERS.tolist():
        x = sizes**-power
        centred = x - x.mean()
        slope = np.maximum(0.0, -(f @ centred) / (centred @ centred))
        top = f.mean(axis=1) + slope * x.mean()
        steep = top > 1.0
        slope = np.where(steep, np.maximum(0.0, ((1.0 - f) @ x) / (x @ x)), slope)
        top = np.minimum(top, 1.0)
        loss = np.square(f - top[:, None] + slope[:, None] * x).sum(axis=1)
        better = loss < best - 1e-12
        best = np.where(better, loss, best)
        a, b, c = np.where(better, [top, slope, np.full(len(f), power)], [a, b, c])
    # through the last point, from which more texts continue
    return f[:, -1] + b * sizes[-1] ** -c, b, c


def _with_total(counts: Numbers) -> Numbers:
    """Prepend the sum over labels: int64 [D, 1 + L]."""
    return np.hstack([counts.sum(axis=1, keepdims=True), counts])


def proportion(right: NDArray[np.bool_]) -> Interval:
    """The 90 % interval of a share, from a sample, bool [n > 0] (Wilson, 1927)."""
    share = float(right.mean())
    return _widened(Interval(share, share), share, len(right))


def _widened(interval: Interval, f: float, spans: float) -> Interval:
    """Widen an interval to that of a proportion of this number of spans (Wilson, 1927): if all or none of a
    few spans are missed, the bootstrap finds no variance.
    """
    squared = QUANTILE**2
    centre = (spans * f + squared / 2) / (spans + squared)
    radius = QUANTILE * np.sqrt(spans * f * (1 - f) + squared / 4) / (spans + squared)
    return Interval(
        max(0.0, min(interval.low, float(centre - radius))),
        min(1.0, max(interval.high, float(centre + radius))),
    )


def _interval(f: float, error: float) -> Interval:
    return Interval(max(0.0, f - QUANTILE * error), min(1.0, f + QUANTILE * error))
