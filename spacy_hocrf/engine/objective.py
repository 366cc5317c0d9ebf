"""Loss and gradient of a data set: the penalised negative log-likelihood and what L-BFGS needs of
it.

    loss(w) = Σ_docs [log Z(w) - log Z(w; segmentations that agree with the annotation)] + Σ_f (w_f
    - mean_f)² / 2 sigma_f²

Nguyen et al., JMLR 15 (2014) §2.3. Where the annotation is complete the second log Z is linear, w ·
empirical counts; where it is not, its gradient is an expectation as well, and the loss is no longer
convex.

The shards are fixed, each belongs to one of a fixed number of strands, and a strand adds up its
shards in order: the result does not depend, bit for bit, on the number of threads.
"""

from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, expectations
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.engine.vectors import sweep
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
        self._threads = Threads(min(threads, STRANDS))
        # one for each thread, with counts; a strand takes one
        self._workers: SimpleQueue[tuple[Buffers, Any]] = SimpleQueue()
        for _ in range(self._threads.count):
            self._workers.put((Buffers(automaton), None))
        counts = layout.nothing()
        for shard in shards:
            shard.add_gold_into(counts)
        self.counts = np.empty(len(precision))  # [F] empirical counts of the complete annotation
        layout.collect_into(self.counts, counts)
        self._placed: Any = None
        # of each strand, then of all in the first
        self._gradients = np.empty((max(1, min(STRANDS, len(shards))), len(precision)))

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        """Loss in nats and gradient. The weights, float64 [F], are not changed.

        RETURNS (tuple[float, float64 [F]]): the gradient is the objective's own array, which the
            next call overwrites.
        """
        self._placed = self.layout.place_weights(weights, self._placed)
        losses = self._threads.map(self._evaluate_strand, range(len(self._gradients)))
        arguments = self._gradients, weights, self.precision, self.mean, self.counts
        penalty, score = sweep(
            "penalise_into", len(weights), 2, *arguments, threads=self._threads
        ).tolist()
        return sum(losses, 0.5 * penalty - score), self._gradients[0]

    def _evaluate_strand(self, strand: int) -> float:
        """The loss of a strand; its expected counts become its row of the gradients."""
        loss, (buffers, counts) = 0.0, self._workers.get()
        try:
            counts = self.layout.nothing(counts)
            for shard in self.shards[strand::STRANDS]:
                potentials = shard.potentials(self._placed, buffers)
                loss += self._add_shard_into(shard, potentials, 1.0, counts, buffers)
                observed = shard.observed(potentials)
                if observed is not None:
                    loss += self._add_shard_into(shard, observed, -1.0, counts, buffers)
            self.layout.collect_into(self._gradients[strand], counts)
        except BaseException:
            counts = None  # what is in them would be added to the next strand's
            raise
        finally:
            self._workers.put((buffers, counts))
        return loss

    def _add_shard_into(
        self, shard: Shard, potentials: Potentials, sign: float, counts: Any, buffers: Buffers
    ) -> float:
        expected = expectations(potentials, self.automaton, buffers=buffers)
        bad = np.flatnonzero(np.isneginf(expected.log_partition))
        if len(bad):
            raise ValueError(Errors.H007.format(text=shard.describe(int(bad[0]))))
        shard.add_counts_into(expected, sign, counts)
        return sign * float(expected.log_partition.sum())
