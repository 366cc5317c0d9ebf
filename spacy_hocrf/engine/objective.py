"""Loss and gradient of a data set: the penalised negative log-likelihood and what L-BFGS needs of it.

    loss(w) = Σ_docs [log Z(w) - log Z(w; segmentations that agree with the annotation)] + Σ_f (w_f - mean_f)² / 2 sigma_f²

Nguyen et al., JMLR 15 (2014) §2.3. Where the annotation is complete the second log Z is linear, w · empirical counts; where it is
not, its gradient is an expectation as well, and the loss is no longer convex.

The shards are fixed, each belongs to one of a fixed number of strands, and a strand adds up its shards in order: the result does
not depend, bit for bit, on the number of threads.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, expectations
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Potentials, Shard

__all__ = ["STRANDS", "Objective"]

STRANDS = 4
"""Parts that the shards are divided into; more threads than this are not used."""

Vector = NDArray[np.float64]


class Objective:
    """Penalised negative log-likelihood of fixed shards.

    shards (Sequence[Shard]): the data; their order matters to the last bit.
    automaton (Automaton): states and arcs of all of them.
    precision (float64 [F]): 1/sigma² of every weight, 0 for no penalty.
    mean (float64 [F]): where the penalty is zero.
    threads (int): 1 or more.
    RAISES (ValueError): H007 if some document has no allowed segmentation.
    """

    def __init__(self, shards: Sequence[Shard], automaton: Automaton, precision: Vector, mean: Vector, *, threads: int = 1) -> None:
        self.shards = shards
        self.automaton = automaton
        self.precision = precision
        self.mean = mean
        self.threads = threads
        self._buffers = [Buffers(automaton) for _ in range(STRANDS)]
        self.counts = np.zeros(len(precision))  # [F] empirical counts of the complete annotation
        for shard in shards:
            self.counts += shard.gold()

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        """Loss in nats and gradient, float64 [F]. The weights, float64 [F], are not changed."""
        strands = range(STRANDS)
        evaluate = partial(self._evaluate_strand, weights)
        if self.threads > 1:
            with ThreadPoolExecutor(min(self.threads, STRANDS)) as pool:
                results = list(pool.map(evaluate, strands))
        else:
            results = [evaluate(strand) for strand in strands]
        distance = weights - self.mean
        loss = -float(weights @ self.counts) + 0.5 * float(distance @ (self.precision * distance))
        gradient = self.precision * distance - self.counts
        for strand_loss, strand_gradient in results:
            loss += strand_loss
            if strand_gradient is not None:
                gradient += strand_gradient
        return loss, gradient

    def _evaluate_strand(self, weights: Vector, strand: int) -> tuple[float, Vector | None]:
        shards = self.shards[strand::STRANDS]
        if not shards:
            return 0.0, None
        loss, gradient = 0.0, np.zeros(len(weights))
        for shard in shards:
            potentials = shard.potentials(weights)
            loss += self._add_shard_into(shard, potentials, 1.0, gradient, self._buffers[strand])
            observed = shard.observed(potentials)
            if observed is not None:
                loss += self._add_shard_into(shard, observed, -1.0, gradient, self._buffers[strand])
        return loss, gradient

    def _add_shard_into(self, shard: Shard, potentials: Potentials, sign: float, gradient: Vector, buffers: Buffers) -> float:
        expected = expectations(potentials, self.automaton, buffers=buffers)
        bad = np.flatnonzero(np.isneginf(expected.log_partition))
        if len(bad):
            raise ValueError(Errors.H007.format(text=shard.describe(int(bad[0]))))
        shard.add_gradient_into(expected, sign, gradient)
        return sign * float(expected.log_partition.sum())
