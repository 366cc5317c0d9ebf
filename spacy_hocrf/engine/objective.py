"""Loss and gradient of a data set: the penalised negative log-likelihood and what L-BFGS needs of it.

    loss(w) = Σ_docs [log Z(w) - log Z(w; segmentations that agree with the annotation)] + Σ_f (w_f - mean_f)² / 2 sigma_f²

Nguyen et al., JMLR 15 (2014) §2.3. Where the annotation is complete the second log Z is linear, w · empirical counts; where it is
not, its gradient is an expectation as well, and the loss is no longer convex.

The shards are fixed, each belongs to one of a fixed number of strands, and a strand adds up its shards in order: the result does
not depend, bit for bit, on the number of threads.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, expectations
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.engine.vectors import dot
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Layout, Potentials, Shard

__all__ = ["STRANDS", "Objective"]

STRANDS = 4
"""Parts that the shards are divided into; more threads than this are not used."""

Vector = NDArray[np.float64]


class Objective:
    """Penalised negative log-likelihood of fixed shards.

    shards (Sequence[Shard]): the data; their order matters to the last bit.
    layout (Layout): how the shards want the weights.
    automaton (Automaton): states and arcs of all of them.
    precision (float64 [F]): 1/sigma² of every weight, 0 for no penalty.
    mean (float64 [F]): where the penalty is zero.
    threads (int): 1 or more.
    RAISES (ValueError): H007 if some document has no allowed segmentation.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        layout: Layout,
        automaton: Automaton,
        precision: Vector,
        mean: Vector,
        *,
        threads: int = 1,
    ) -> None:
        self.shards = shards
        self.layout = layout
        self.automaton = automaton
        self.precision = precision
        self.mean = mean
        self.threads = threads
        self._buffers: SimpleQueue[Buffers] = SimpleQueue()  # one for each thread; a strand takes one while it runs
        for _ in range(min(threads, STRANDS)):
            self._buffers.put(Buffers(automaton))
        counts = layout.nothing()
        for shard in shards:
            shard.add_gold_into(counts)
        self.counts = layout.collect(counts)  # [F] empirical counts of the complete annotation

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        """Loss in nats and gradient, float64 [F]. The weights, float64 [F], are not changed."""
        evaluate = partial(self._evaluate_strand, self.layout.place_weights(weights))
        distance = weights - self.mean
        gradient = self.precision * distance
        loss = 0.5 * dot(distance, gradient, Threads()) - dot(weights, self.counts, Threads())
        gradient -= self.counts
        with ThreadPoolExecutor(min(self.threads, STRANDS)) if self.threads > 1 else nullcontext() as pool:
            for strand_loss, strand_gradient in (map if pool is None else pool.map)(evaluate, range(STRANDS)):
                loss += strand_loss
                if strand_gradient is not None:
                    gradient += strand_gradient
        return loss, gradient

    def _evaluate_strand(self, weights: Any, strand: int) -> tuple[float, Vector | None]:
        shards = self.shards[strand::STRANDS]
        if not shards:
            return 0.0, None
        loss, counts, buffers = 0.0, self.layout.nothing(), self._buffers.get()
        try:
            for shard in shards:
                potentials = shard.potentials(weights, buffers)
                loss += self._add_shard_into(shard, potentials, 1.0, counts, buffers)
                observed = shard.observed(potentials)
                if observed is not None:
                    loss += self._add_shard_into(shard, observed, -1.0, counts, buffers)
        finally:
            self._buffers.put(buffers)
        return loss, self.layout.collect(counts)

    def _add_shard_into(self, shard: Shard, potentials: Potentials, sign: float, counts: Any, buffers: Buffers) -> float:
        expected = expectations(potentials, self.automaton, buffers=buffers)
        bad = np.flatnonzero(np.isneginf(expected.log_partition))
        if len(bad):
            raise ValueError(Errors.H007.format(text=shard.describe(int(bad[0]))))
        shard.add_counts_into(expected, sign, counts)
        return sign * float(expected.log_partition.sum())
