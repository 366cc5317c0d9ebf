"""The averaged perceptron where decoding is approximate (Collins, EMNLP 2002; Qian and Liu, TACL 2
(2014) §4).

    w ← w + counts(right) - counts(found)

where the two differ, unless the right output has the higher score. If it has, the search has missed
it, and no change of the weights is called for: an update would follow from no violation, and may
lead anywhere (Huang, Fayong and Guo, NAACL 2012). Equal scores are a violation, else nothing could
be learnt from weights of 0.

Chosen weights can be kept at 0 or above: after each update they are put back to 0. Dual
decomposition is tight where weights are not negative. A task with many places makes large updates,
whatever its weights lack. Bounded ones go no further than to where the right output is ahead by the
loss, by the factor min(1, (loss + violation) / |difference|²) (passive-aggressive: Crammer et al.,
JMLR 7, 2006). The average is of all weights there have been, one for each task gone through, kept
as in `engine.perceptron`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.graph.learning import Comparison, Task, checked_mask, decode

__all__ = ["Epoch", "GraphPerceptron"]

Vector = NDArray[np.float64]

MISSED = 1e-9  # a score higher by less than this is the same


class Epoch(NamedTuple):
    """Statistics of one epoch over all tasks."""

    errors: int  # outputs with a loss
    updates: int
    search_errors: int  # outputs with a loss and a lower score than the right one
    loss: float  # of all outputs


class GraphPerceptron:
    """The perceptron's weights, and the tasks that it learns from.

    tasks (Sequence[Task]): the corpus.
    weights (ArrayLike): where to start, float64 [F]; copied.
    learnt (Optional[bool [F]]): the other weights are held fixed; None learns all.
    nonnegative (Optional[bool [F]]): weights that are never below 0; None for none.
    bounded (bool): no update is larger than need be.
    seed (int): of the order of the tasks in each epoch.
    RAISES (ValueError): H107 for arrays of other extents.

    weights (float64 [F]): those of the last update.
    seen (int): tasks gone through.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        weights: ArrayLike,
        *,
        learnt: ArrayLike | None = None,
        nonnegative: ArrayLike | None = None,
        bounded: bool = False,
        seed: int = 0,
    ) -> None:
        self.weights: Vector = np.array(weights, dtype=np.float64)
        self.seen = 0
        self._tasks = tasks
        self._learnt = checked_mask("learnt", learnt, len(self.weights), True)
        self._least = np.where(
            checked_mask("nonnegative", nonnegative, len(self.weights), False), 0.0, -np.inf
        )
        self.weights[self._learnt] = np.maximum(self.weights, self._least)[self._learnt]
        self._bounded = bounded
        self._weighted = np.zeros_like(self.weights)  # Σ (tasks before the update) · update
        self._random = np.random.default_rng(seed)

    @property
    def average(self) -> Vector:
        """The averaged weights, float64 [F]; those of the start before there is anything to
        average.
        """
        return self.weights - self._weighted / max(1, self.seen)

    def epoch(self, order: Iterable[int] | None = None) -> Epoch:
        """Go through all tasks once.

        order (Optional[Iterable[int]]): their numbers; None for an order of its own.
        RAISES (ValueError): H106 for a task that contradicts itself.
        """
        if order is None:
            order = self._random.permutation(len(self._tasks)).tolist()
        return self.learn(self._tasks[number] for number in order)

    def learn(self, tasks: Iterable[Task]) -> Epoch:
        """Go through some tasks, which need not be those of the corpus, in their order.

        RAISES (ValueError): H106 for a task that contradicts itself.
        """
        errors = updates = missed = 0
        loss = 0.0
        for task in tasks:
            found = decode(task, self.weights)
            loss += found.loss
            if found.loss > 0:
                errors += 1
                if found.violation < -MISSED:
                    missed += 1
                else:
                    updates += self._update(found)
            self.seen += 1
        return Epoch(errors, updates, missed, loss)

    def _update(self, found: Comparison) -> bool:
        """Add the difference to the weights. RETURNS (bool): whether a weight has changed."""
        features, difference = (
            found.features,
            np.where(self._learnt[found.features], found.difference, 0.0),
        )
        size = float(difference @ difference)
        if self._bounded and size > 0:
            difference = min(1.0, (found.loss + max(0.0, found.violation)) / size) * difference
        before = self.weights[features]
        after = np.where(
            difference != 0, np.maximum(before + difference, self._least[features]), before
        )
        self.weights[features] = after
        self._weighted[features] += self.seen * (after - before)
        return bool((after != before).any())
