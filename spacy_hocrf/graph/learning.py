"""Learning the weights of a score that is linear in them, where decoding is approximate but
bounded: what learners ask of a corpus.

    score(y; w) = w · counts(y)

A *task* is one group of the training corpus that is decoded together: a document, a thread, a
graph. What is not to be learnt, such as the score of a local model, is a feature like any other,
with a weight that is held fixed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.errors import Errors

__all__ = ["Comparison", "Task", "counts_of", "decode", "least_weights"]

Vector = NDArray[np.float64]

ROUNDING = 1e-6
"""A score that differs by less, relative to itself, is the same."""


class Task(Protocol):
    """One group of the training corpus. Its outputs are the task's own; a learner only hands them
    back.
    """

    @property
    def gold(self) -> Any:
        """The annotated output."""
        ...

    def decode(self, weights: Vector, loss_weight: float = 0.0) -> tuple[Any, float, float]:
        """An output with a high score + loss_weight · loss, if need be not the best.

        weights (float64 [F]): not to be changed.
        RETURNS (tuple[Any, float, float]): the output; its score + loss_weight · loss; and an upper
            bound of that of all outputs.
        """
        ...

    def counts(self, output: Any) -> tuple[NDArray[np.int32], Vector]:
        """Features of an output, each once, int32 [n], and their counts, float64 [n]."""
        ...

    def loss(self, output: Any) -> float:
        """How wrong an output is: 0 for the right one, nowhere below. To be part of decoding it is
        a sum, as the Hamming loss.
        """
        ...


class Comparison(NamedTuple):
    """The output that was found for a task, beside the right one."""

    features: NDArray[np.int32]  # [n] of the output or of the right one, ascending
    difference: Vector  # [n] counts of the right output less those of the one found
    loss: float
    # loss_weight · loss + score of the output less that of the right one; below 0 if the search has
    # missed it
    violation: float
    bound: float  # no output has a larger violation; at least 0


def decode(task: Task, weights: Vector, loss_weight: float = 0.0) -> Comparison:
    """Decode a task, and compare with the right output.

    weights (float64 [F]): those that have been learnt so far.
    loss_weight (float): 1 for the most violating output, 0 for the best.
    RAISES (ValueError): H106 if what the task says about its output does not fit together.
    """
    output, score, bound = task.decode(weights, loss_weight)
    loss = task.loss(output)
    features, counts = counts_of(task, output)
    expected = float(weights[features] @ counts) + loss_weight * loss
    margin = ROUNDING * (1.0 + abs(expected))
    if not abs(score - expected) <= margin:
        raise ValueError(
            Errors.H106.format(
                what="score",
                found=score,
                expected=f"that of the output's counts and loss, {expected}",
            )
        )
    if not bound >= expected - margin:
        raise ValueError(
            Errors.H106.format(
                what="bound", found=bound, expected=f"at least the output's score, {expected}"
            )
        )
    gold_features, gold_counts = counts_of(task, task.gold)
    right = float(weights[gold_features] @ gold_counts)
    union, places = np.unique(np.concatenate([gold_features, features]), return_inverse=True)
    difference = np.zeros(len(union))
    np.add.at(difference, places.ravel(), np.concatenate([gold_counts, -counts]))
    return Comparison(union, difference, loss, expected - right, max(0.0, bound - right))


def counts_of(task: Task, output: Any) -> tuple[NDArray[np.int32], Vector]:
    """Features and counts as arrays."""
    features, counts = task.counts(output)
    return np.asarray(features, dtype=np.int32), np.asarray(counts, dtype=np.float64)


def least_weights(nonnegative: ArrayLike | Sequence[bool] | None, n_features: int) -> Vector:
    """Least value of each weight, 0 or -inf, float64 [F].

    nonnegative (Optional[bool [F]]): weights that are never below 0; None for none.
    RAISES (ValueError): H107 for another extent.
    """
    mask = np.zeros(n_features) if nonnegative is None else np.array(nonnegative, dtype=bool)
    if mask.shape != (n_features,):
        found, expected = f"an array of extents {mask.shape}", f"{(n_features,)}"
        raise ValueError(Errors.H107.format(name="nonnegative", found=found, expected=expected))
    return np.where(mask, 0.0, -np.inf)
