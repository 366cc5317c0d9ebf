"""One weight for features that the corpus cannot tell apart, while learning from it.

If m features always occur together, scores depend only on the sum u of their weights, and of all
weights with that sum the prior, which has its mean at 0, prefers

    w_f = u / m

at a cost of u² / 2 m sigma². So the optimum has these weights, and is that of one weight u with
the variance m sigma². The optimiser uses v = u / √m, for which distances, and with them gradients and steps,
are those of w.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.data_set import Layout, Shard
from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.types import Vector

__all__ = ["Tied", "TiedObjective"]


class Tied:
    """A corpus, and the features that it cannot tell apart.

    shards (Sequence[Shard]): the corpus, with G weights.
    layout (Layout): how these shards arrange weights.
    group (Optional[int32 [F]]): which of G weights each feature has; None if each has its own. All features
        of a group have the same precision.
    """

    def __init__(
        self, shards: Sequence[Shard], layout: Layout, group: NDArray[np.int32] | None
    ) -> None:
        self.shards, self.layout, self.group = shards, layout, group
        self._root = np.zeros(0) if group is None else np.sqrt(np.bincount(group))  # [G] √m

    def __len__(self) -> int:
        """Number of groups G."""
        return len(self._root)

    def sums(self, values: Vector) -> Vector:
        """Return the sum of the values of each group, float64 [G]."""
        assert self.group is not None
        sums = np.bincount(self.group, weights=values, minlength=len(self))
        return sums.astype(np.float64, copy=False)

    def precision(self, values: Vector) -> Vector:
        """Return 1/variance of the sums u, float64 [G], given that of every weight, float64 [F]."""
        return self.sums(values) / self._root**4

    def inside(self, weights: Vector) -> Vector:
        """Return v, float64 [G], for weights [F]."""
        return self.sums(weights) / self._root

    def outside(self, v: Vector) -> Vector:
        """Return the weights, float64 [F], for v."""
        weights: Vector = (v / self._root)[self.group]
        return weights

    def objective(self, sums: Objective) -> "TiedObjective":
        """Return the objective as a function of v, given that of the sums u."""
        return TiedObjective(sums, self._root)


class TiedObjective:
    """An objective as a function of v = u / √m.

    sums (Objective): objective of u. root (float64 [G]): √m.
    """

    def __init__(self, sums: Objective, root: Vector) -> None:
        self._sums, self._root = sums, root
        self._point = np.empty(len(root))

    @property
    def shards(self) -> Sequence[Shard]:
        """Shards of the data set."""
        return self._sums.shards

    @property
    def counts(self) -> Vector:
        """Empirical counts of the complete annotation, float64 [G]."""
        return self._sums.counts

    @property
    def curvature(self) -> Vector:
        """Diagonal of the curvature in v, float64 [G]; see `Objective.curvature`."""
        return self._sums.curvature * self._root**2

    def __call__(self, v: Vector) -> tuple[float, Vector]:
        """Value in nats, and gradient, float64 [G], which the next call overwrites."""
        np.multiply(v, self._root, out=self._point)
        value, gradient = self._sums(self._point)
        gradient *= self._root
        return value, gradient

    def release(self) -> None:
        """Free memory that the next evaluation allocates again."""
        self._sums.release()
