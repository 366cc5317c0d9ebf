"""Learning the weights of a linear score if decoding is approximate but bounded: the interface between
learners and a corpus.

    score(y; w) = w · counts(y)

A *task* is one group of the training corpus that is decoded together: a document, a thread, a
graph. Scores that are not learnt, such as that of a local model, are features with a fixed
weight.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Vector

__all__ = ["Comparison", "Task", "counts_of", "decode", "least_weights"]


ROUNDING = 1e-6
"""Scores that differ by less than this, relative to themselves, are equal."""


class Task(Protocol):
    """One group of the training corpus. Learners treat its outputs as opaque and only pass them
    back.
    """

    @property
    def gold(self) -> Any:
        """The annotated output."""
        ...

    def decode(self, weights: Vector, loss_weight: float = 0.0) -> tuple[Any, float, float]:
        """Return an output with a high score + loss_weight · loss, not necessarily the best.

        weights (float64 [F]): the weights; not changed.
        RETURNS (tuple[Any, float, float]): the output; its score + loss_weight · loss; and an upper
            bound on that of all outputs.
        """
        ...

    def counts(self, output: Any) -> tuple[NDArray[np.int32], Vector]:
        """Return the features of an output, without duplicates, int32 [n], and their counts, float64 [n]."""
        ...

    def loss(self, output: Any) -> float:
        """Return how wrong an output is: 0 for the right one, never negative. To be part of decoding it is
        a sum, such as the Hamming loss.
        """
        ...


class Comparison(NamedTuple):
    """The output that was found for a task, compared with the right one."""

    features: NDArray[np.int32]  # [n] features of either output, ascending
    difference: Vector  # [n] counts of the right output minus those of the one found
    loss: float
    # loss_weight · loss + score of the output minus that of the right one; below 0 if the search has
    # missed the right one
    violation: float
    bound: float  # upper bound on the violation of all outputs; at least 0


def decode(task: Task, weights: Vector, loss_weight: float = 0.0) -> Comparison:
    """Decode a task, and compare with the right output.

    weights (float64 [F]): the current weights.
    loss_weight (float): 1 for the most violating output, 0 for the best.
    RAISES (ValueError): H106 if score and bound do not fit the output's counts and loss.
    """
    output, score, bound = task.decode(weights, loss_weight)
    loss = task.loss(output)
    features, counts = counts_of(task, output)
    expected = float(weights[features] @ counts) + loss_weight * loss
    margin = ROUNDING * (1.0 + abs(expected))
    if not abs(score - expected) <= margin:
        text = f"that of the output's counts and loss, {expected}"
        raise ValueError(Errors.H106.format(what="score", found=score, expected=text))
    if not bound >= expected - margin:
        text = f"at least the output's score, {expected}"
        raise ValueError(Errors.H106.format(what="bound", found=bound, expected=text))
    gold_features, gold_counts = counts_of(task, task.gold)
    right = float(weights[gold_features] @ gold_counts)
    union, places = np.unique(np.concatenate([gold_features, features]), return_inverse=True)
    difference = np.zeros(len(union))
    np.add.at(difference, places.ravel(), np.concatenate([gold_counts, -counts]))
    return Comparison(union, difference, loss, expected - right, max(0.0, bound - right))


def counts_of(task: Task, output: Any) -> tuple[NDArray[np.int32], Vector]:
    """Return the features of an output and their counts as arrays."""
    features, counts = task.counts(output)
    return np.asarray(features, dtype=np.int32), np.asarray(counts, dtype=np.float64)


def least_weights(nonnegative: ArrayLike | Sequence[bool] | None, n_features: int) -> Vector:
    """Least value of each weight, 0 or -inf, float64 [F].

    nonnegative (Optional[bool [F]]): weights that are never below 0; None for none.
    RAISES (ValueError): H107 for another shape.
    """
    mask = np.zeros(n_features) if nonnegative is None else np.array(nonnegative, dtype=bool)
    if mask.shape != (n_features,):
        found, expected = f"an array of extents {mask.shape}", f"{(n_features,)}"
        raise ValueError(Errors.H107.format(name="nonnegative", found=found, expected=expected))
    return np.where(mask, 0.0, -np.inf)
