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
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import Buffers, expectations
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.engine.vectors import CHUNK, sweep
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Expectations, Layout, Shard

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
        self._precision, self._mean = _chunk_of(precision), _chunk_of(mean)
        self._threads = Threads(min(threads, STRANDS))
        counts = layout.nothing()
        for shard in shards:
            shard.add_gold_into(counts)
        self.counts = np.zeros(len(precision))  # [F] empirical counts of the complete annotation
        layout.add_collected_into(self.counts, counts)
        self._gradient = np.empty(len(precision))
        self._strands = min(STRANDS, len(shards))
        self._lock = Lock()  # held while counts of strands are collected
        self._finished: dict[int, Any] = {}  # counts of strands that wait for those before them
        self._collected = 0  # strands
        self._placed: Any = None
        self._workers: SimpleQueue[Buffers]  # one for each thread; a strand takes one
        self._spare: SimpleQueue[Any]  # counts that have been collected
        self._clear()
        self._spare.put(counts)

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        """Loss in nats and gradient. The weights, float64 [F], are not changed.

        RETURNS (tuple[float, float64 [F]]): the gradient is the objective's own array, which the
            next call overwrites.
        """
        self._placed = self.layout.place_weights(weights, self._placed)
        self._gradient.fill(0.0)
        self._finished, self._collected = {}, 0
        losses = self._threads.map(self._evaluate_strand, range(self._strands))
        arguments = self._gradient, weights, self._precision, self._mean, self.counts
        penalty, score = sweep(
            "penalise_into", len(weights), 2, *arguments, threads=self._threads
        ).tolist()
        return sum(losses, 0.5 * penalty - score), self._gradient

    def rest(self) -> None:
        """Give back memory that the next evaluation takes again."""
        for shard in self.shards:
            shard.rest()
        self._clear()

    def _clear(self) -> None:
        self._placed, self._workers, self._spare = None, SimpleQueue(), SimpleQueue()
        for _ in range(self._threads.count):
            self._workers.put(Buffers(self.automaton))

    def _evaluate_strand(self, strand: int) -> float:
        """The loss of a strand; its expected counts are added to the gradient."""
        loss, counts, buffers = 0.0, self._nothing(), self._workers.get()
        try:
            for shard in self.shards[strand::STRANDS]:
                potentials = shard.potentials(self._placed, buffers)
                expected = expectations(potentials, self.automaton, buffers=buffers)
                loss += self._add_into(counts, shard, expected, 1.0)
                if shard.observed is not None:
                    known = shard.observed.expectations(potentials, self.automaton, buffers)
                    loss += self._add_into(counts, shard, known, -1.0)
        finally:
            self._workers.put(buffers)
        self._collect(strand, counts)
        return loss

    def _nothing(self) -> Any:
        """Counts of nothing, for a strand."""
        try:
            return self.layout.nothing(self._spare.get_nowait())
        except Empty:
            return self.layout.nothing()

    def _collect(self, strand: int, counts: Any) -> None:
        """Add counts to the gradient as soon as those of the strands before have been added, and, if
        some are handed on, those of the next one are there.
        """
        with self._lock:
            self._finished[strand] = counts
            while self._collected in self._finished:
                after = self._collected + 1
                others = None
                if self.layout.hands_on and after < self._strands:
                    if after not in self._finished:
                        break
                    others = self._finished[after]
                ready = self._finished.pop(self._collected)
                self.layout.add_collected_into(self._gradient, ready, others)
                self._spare.put(ready)
                self._collected = after

    def _add_into(self, counts: Any, shard: Shard, expected: Expectations, sign: float) -> float:
        bad = np.flatnonzero(np.isneginf(expected.log_partition))
        if len(bad):
            raise ValueError(Errors.H007.format(text=shard.describe(int(bad[0]))))
        weight = sign * shard.copies
        shard.add_counts_into(expected, weight, counts)
        return weight * float(expected.log_partition.sum())


def _chunk_of(vector: Vector) -> Vector:
    """A chunk, which stands for every chunk, of a vector that has one value everywhere; of others all."""
    alike = len(vector) > CHUNK and bool((vector == vector[0]).all())
    return vector[:CHUNK].copy() if alike else vector
