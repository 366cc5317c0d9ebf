"""The averaged perceptron where decoding is approximate (Collins, EMNLP 2002; Qian and Liu, TACL 2
(2014) §4).

    w ← w + counts(right) - counts(found)

where the two differ, unless the right output has the higher score. If it has, the search has missed
it, and no change of the weights is called for: an update would follow from no violation, and may
lead anywhere (Huang, Fayong and Guo, NAACL 2012). Equal scores are a violation, else nothing could
be learnt from weights of 0.

Chosen weights can be kept at 0 or above: after each update they are put back to 0. Dual
decomposition is tight where weights are not negative. The average is of all weights there have been,
one for each task gone through.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.graph.learning import Comparison, Task, decode, least_weights

__all__ = ["GraphPerceptron"]

Vector = NDArray[np.float64]

MISSED = 1e-9  # a score higher by less than this is the same


class GraphPerceptron:
    """The perceptron's weights, and the tasks that it learns from.

    tasks (Sequence[Task]): the corpus.
    weights (ArrayLike): where to start, float64 [F]; copied.
    nonnegative (Optional[bool [F]]): weights that are never below 0; None for none.
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
        nonnegative: ArrayLike | None = None,
        seed: int = 0,
    ) -> None:
        start: Vector = np.array(weights, dtype=np.float64)
        self._least = least_weights(nonnegative, len(start))
        self.weights: Vector = np.maximum(start, self._least)
        self.seen = 0
        self._tasks = tasks
        self._weighted = np.zeros_like(self.weights)  # Σ (tasks before the update) · update
        self._random = np.random.default_rng(seed)

    @property
    def average(self) -> Vector:
        """The averaged weights, float64 [F]; those of the start before there is anything to
        average.
        """
        return self.weights - self._weighted / max(1, self.seen)

    def epoch(self) -> int:
        """Go through all tasks once, in an order of its own. RETURNS (int): outputs with a loss.

        RAISES (ValueError): H106 for a task that contradicts itself.
        """
        wrong = 0
        for number in self._random.permutation(len(self._tasks)).tolist():
            found = decode(self._tasks[number], self.weights)
            if found.loss > 0:
                wrong += 1
                if found.violation >= -MISSED:
                    self._update(found)
            self.seen += 1
        return wrong

    def _update(self, found: Comparison) -> None:
        """Add the difference to the weights."""
        features, difference = found.features, found.difference
        before = self.weights[features]
        after = np.where(
            difference != 0, np.maximum(before + difference, self._least[features]), before
        )
        self.weights[features] = after
        self._weighted[features] += self.seen * (after - before)
