"""Max-margin learning by block-coordinate Frank-Wolfe, where decoding is approximate but bounded.

    value(w) = Σ_f (w_f - mean_f)² / 2 variance_f + Σ_tasks max_y [loss(y) + score(y; w) -
    score(gold; w)]

(Tsochantaridis et al., JMLR 6, 2005), a weight of variance 0 being fixed at its mean. With
ψ(y) = counts(gold) - counts(y), the dual has a distribution α over the outputs of every task:

    bound(α) = Σ α(y) loss(y) - mean · s - ½ s' V s
    s = Σ α(y) ψ(y),  V = diag(variance),  w = mean + V s

The bound holds for any α: the outputs are valid ones, whatever search found them. Each task in
turn is decoded with its loss, and α is moved from its worst output to its best as far as the bound
rises, which has a closed form: no step size (Lacoste-Julien et al., ICML 2013; outputs that were
found are kept and revisited between decodings, with pairwise steps, as in Osokin et al.,
ICML 2016).

    value(w) - bound = Σ_tasks [max_y (loss(y) - w · ψ(y)) - Σ_y α(y) (loss(y) - w · ψ(y))]

is the duality gap; with the decoder's upper bounds instead of the maxima it is certainly not too
small. To tell how much of it is due to the decoder, and not to α, `Value.lower` has the best
outputs that were found instead of the maxima.

**Weights kept at 0 or above** have a multiplier each, b ≥ 0 and w = mean + V (s + b). For given α
the best multipliers lift negative weights to 0, so that w = max(0, mean + V s)
there, and since w · b = 0 the gap does not change. The step treats them as fixed and is exact for that;
recomputing them lifts the bound further. So they are one more block of the same ascent.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.learning import Comparison, Task, decode, least_weights
from spacy_hocrf.types import TINY, Vector

__all__ = ["Block", "FrankWolfe", "Value"]


ROUNDS = 200
"""Most passes over the kept outputs between two decodings of all tasks; decoding takes most of the
time.
"""
SETTLED = 0.01
"""The passes end when the remaining gap is at most this fraction of the tolerance, or of the
gap that decoding found.
"""
MAX_IDLE = 30
"""Number of outputs that are kept for each task, besides those with a share."""


class Value(NamedTuple):
    """The objective at some weights."""

    value: float  # upper bound of the objective, from the decoder's bounds
    lower: float  # lower bound of it, from the outputs found
    bound: float  # lower bound for all weights

    @property
    def gap(self) -> float:
        """Value minus bound, relative to the value; the weights are at most this far from the
        optimum.
        """
        return max(0.0, self.value - self.bound) / max(self.value, TINY)


class FrankWolfe:
    """Learns weights from tasks.

    tasks (Sequence[Task]): the corpus.
    variance (ArrayLike): sigma² of every weight, float64 [F]; 0 for a fixed weight.
    mean (Optional[ArrayLike]): weights with penalty 0, float64 [F]; None for 0.
    nonnegative (Optional[bool [F]]): weights that are never below 0; None for none.
    tolerance (float): `learn` ends when the gap is at most this fraction of the value.
    seed (int): seed of the order of the tasks in each epoch.
    RAISES (ValueError): H107 for settings out of range.

    value (Optional[Value]): objective of the best weights that were evaluated.
    status (str): "running", "converged: gap", "converged: up to the decoder's bounds" or "stopped
        after … epochs".
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        variance: ArrayLike,
        *,
        mean: ArrayLike | None = None,
        nonnegative: ArrayLike | None = None,
        tolerance: float = 0.01,
        seed: int = 0,
    ) -> None:
        self._variance: Vector = np.array(variance, dtype=np.float64)
        self._mean = (
            np.zeros_like(self._variance) if mean is None else np.array(mean, dtype=np.float64)
        )
        self._lowest = least_weights(nonnegative, len(self._variance))
        self._check(tolerance)
        self.value: Value | None = None
        self.status = "running"
        self.epochs = 0
        self._tolerance = tolerance
        self._tasks = tasks
        self._blocks = [Block() for _ in tasks]
        self._sum = np.zeros_like(self._mean)  # s
        self._loss = 0.0  # Σ α(y) loss(y)
        self._current: Vector = self._weights_of(self._sum)
        self._best: Vector = self._current.copy()
        self._random = np.random.default_rng(seed)

    @property
    def weights(self) -> Vector:
        """The best weights that were evaluated, float64 [F]; before that, those of the prior."""
        return self._best

    @property
    def current(self) -> Vector:
        """Weights of the current dual point, float64 [F]."""
        return self._current

    @property
    def bound(self) -> float:
        """Lower bound on the value of all weights."""
        lift = self._lifted(self._sum)
        return self._loss - float(self._mean @ lift) - 0.5 * float(self._variance @ lift**2)

    def learn(self, epochs: int = 100) -> Value:
        """Run epochs until the gap is small, or could only become smaller by better bounds of the
        decoder.

        epochs (int): most epochs.
        RETURNS (Value): objective of `weights`.
        """
        for _ in range(epochs):
            estimate = self.epoch()
            if estimate <= self._tolerance:
                value = self.evaluate()
                if value.gap <= self._tolerance:
                    self.status = "converged: gap"
                    break
                if (value.lower - value.bound) <= 0.5 * self._tolerance * value.value:
                    self.status = "converged: up to the decoder's bounds"
                    break
        else:
            self.evaluate()
            self.status = f"stopped after {self.epochs} epochs"
        assert self.value is not None
        return self.value

    def epoch(self) -> float:
        """Decode every task once, in random order, and move towards the outputs found.

        RETURNS (float): an estimate of the gap, relative to the value: each output was found
            with different weights.
        RAISES (ValueError): H106 for a task that contradicts itself.
        """
        gap = 0.0
        for number in self._random.permutation(len(self._tasks)).tolist():
            comparison = decode(self._tasks[number], self._current, loss_weight=1.0)
            self._blocks[number].keep(comparison)
            gap += self._step(number)
        value = self.bound + gap
        small_step = SETTLED * max(gap, self._tolerance * value)
        for _ in range(ROUNDS):
            if sum(self._step(number) for number in range(len(self._tasks))) <= small_step:
                break
        for block in self._blocks:
            block.drop()
        self.epochs += 1
        return gap / max(value, TINY)

    def evaluate(self) -> Value:
        """Compute the objective at the current weights; they become the best if it is lower than before."""
        penalty = 0.5 * float(self._variance @ self._lifted(self._sum) ** 2)
        value = lower = penalty
        for task, block in zip(self._tasks, self._blocks):
            comparison = decode(task, self._current, loss_weight=1.0)
            block.keep(comparison)
            value += comparison.bound
            lower += max(0.0, comparison.violation)
        result = Value(value, lower, self.bound)
        if self.value is None or value <= self.value.value:
            self.value = result
            self._best = self._current.copy()
        else:
            self.value = self.value._replace(bound=result.bound)
        return self.value

    def _step(self, number: int) -> float:
        """Move share of one task from its worst output to its best one, as far as the bound rises.

        RETURNS (float): the task's part of the duality gap before the step, given its known
            outputs.
        """
        block = self._blocks[number]
        heights = block.losses - block.differences @ self._current[block.features]
        best = int(heights.argmax())
        gap = float(heights[best] - block.shares @ heights)
        worst = int(np.where(block.shares > 0, heights, np.inf).argmin())
        slope = heights[best] - heights[worst]
        if slope <= 0:
            return max(0.0, gap)
        direction = block.differences[best] - block.differences[worst]
        curvature = float(self._variance[block.features] @ direction**2)
        share = block.shares[worst]
        step = min(share, slope / curvature) if curvature > 0 else share
        block.shares[best] += step
        block.shares[worst] = share - step
        self._loss += step * (block.losses[best] - block.losses[worst])
        self._sum[block.features] += step * direction
        self._current[block.features] = self._weights_of(self._sum, block.features)
        return max(0.0, gap)

    def _weights_of(self, total: Vector, places: NDArray[np.int32] | slice = slice(None)) -> Vector:
        """Weights w for the sum s: those of the prior, moved by the variance, and clipped at the least
        allowed values.
        """
        free = self._mean[places] + self._variance[places] * total[places]
        weights: Vector = np.maximum(free, self._lowest[places])
        return weights

    def _lifted(self, total: Vector) -> Vector:
        """The sum s + b for which the formula of the weights holds without clipping at the least
        allowed values.
        """
        learnt = self._variance > 0
        lift: Vector = total.copy()
        lift[learnt] = (self._current[learnt] - self._mean[learnt]) / self._variance[learnt]
        return lift

    def _check(self, tolerance: float) -> None:
        for name, array in (("variance", self._variance), ("mean", self._mean)):
            fits = array.ndim == 1 and array.shape == self._variance.shape
            if not fits or not np.isfinite(array).all():
                text = f"an array of extents {array.shape}"
                expected = f"{len(self._lowest)} finite numbers"
                raise ValueError(Errors.H107.format(name=name, found=text, expected=expected))
        variance, mean = self._variance, self._mean
        for name, wrong, found, expected in (
            ("variance", (variance < 0).any(), variance.min(initial=0.0), "at least 0"),
            (
                "mean",
                (mean < self._lowest).any(),
                mean.min(initial=0.0),
                "at least 0 where nonnegative",
            ),
            ("tolerance", not tolerance > 0, tolerance, "above 0"),
        ):
            if wrong:
                raise ValueError(Errors.H107.format(name=name, found=found, expected=expected))


class Block:
    """The n known outputs of one task, the right one first, and their shares α; over k
    features.
    """

    def __init__(self) -> None:
        self.features: NDArray[np.int32] = np.zeros(0, dtype=np.int32)  # [k] ascending
        self.differences: Vector = np.zeros((1, 0))  # [n, k] ψ
        self.losses: Vector = np.zeros(1)  # [n]
        self.shares: Vector = np.ones(1)  # [n]

    def keep(self, comparison: Comparison) -> None:
        """Add an output; do nothing if one with the same counts and loss is known."""
        changed = np.flatnonzero(comparison.difference)
        features, difference = comparison.features[changed], comparison.difference[changed]
        union = np.union1d(self.features, features)
        if len(union) > len(self.features):
            wider = np.zeros((len(self.losses), len(union)))
            wider[:, np.searchsorted(union, self.features)] = self.differences
            self.features, self.differences = union, wider
        row = np.zeros(len(union))
        row[np.searchsorted(union, features)] = difference
        if not ((self.losses == comparison.loss) & (self.differences == row).all(axis=1)).any():
            self.differences = np.vstack([self.differences, row])
            self.losses = np.append(self.losses, comparison.loss)
            self.shares = np.append(self.shares, 0.0)

    def drop(self) -> None:
        """Drop the oldest outputs without a share, except for the right one."""
        idle = np.flatnonzero(self.shares == 0)
        idle = idle[idle > 0][:-MAX_IDLE]
        if len(idle):
            keep = np.ones(len(self.shares), dtype=bool)
            keep[idle] = False
            self.differences, self.losses, self.shares = (
                self.differences[keep],
                self.losses[keep],
                self.shares[keep],
            )
