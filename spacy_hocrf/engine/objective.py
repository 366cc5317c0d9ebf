"""Loss and gradient of a data set: the penalised negative log-likelihood, for L-BFGS.

    loss(w) = Σ_docs weight · [log Z(w) - log Z(w; segmentations that agree with the annotation)]
            + Σ_f (w_f - mean_f)² / 2 sigma_f²
            + the penalties of expected shares of the tokens (`ratio.py`), if such are given

Nguyen et al., JMLR 15 (2014) §2.3, where all texts have the weight 1. If the annotation is complete,
the second log Z is linear, w · empirical counts, and so it is for soft targets (`forbidden.py`); if it
is not, its gradient is an expectation as well, and the loss is no longer convex.

The shards are fixed, and so are the parts with a sum of their own and the order in which their sums are
added (`reduction.py`): the result does not depend, bit for bit, on the number of threads.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.data_set import Compiled, Layout, Shard
from spacy_hocrf.engine.forward_backward import Buffers, expectations
from spacy_hocrf.engine.ratio import Ratio, RatioPenalty
from spacy_hocrf.engine.reduction import ShardSum
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.engine.vectors import CHUNK, sweep
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Expectations, Vector

__all__ = ["Objective", "likelihood"]


class Objective:
    """Penalised negative log-likelihood of fixed shards.

    shards (Sequence[Shard]): the data; their order matters to the last bit.
    layout (Layout): how the shards arrange weights.
    automaton (Automaton): states and arcs of all shards.
    precision (float64 [F]): 1/sigma² of every weight, 0 for no penalty.
    mean (float64 [F]): weights with zero penalty.
    ratios (Sequence[Ratio]): expected shares of the tokens in texts with incomplete annotation.
    threads (int): at least 1.
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
        ratios: Sequence[Ratio] = (),
        threads: int = 1,
    ) -> None:
        self.shards = shards
        self._precision, self._mean = _chunk_of(precision), _chunk_of(mean)
        self._threads = Threads(threads)
        self._sum = ShardSum(shards, likelihood, layout, automaton, threads)
        counts, buffers = layout.nothing(), Buffers(automaton)
        partial = list[Shard]()
        tokens = 0
        for shard in chain.from_iterable(self._sum.parts):
            compiled = shard.compiled
            _add_fixed_counts(compiled, automaton, buffers, counts)
            if ratios and compiled.observed is not None and compiled.observed.scores is None:
                partial.append(shard)
                tokens += compiled.copies * len(compiled.observed.allowed)
        self.counts = np.zeros(len(precision))  # [F] empirical counts of the complete annotation
        layout.add_collected_into(self.counts, counts)
        self._gradient = np.empty(len(precision))
        shared = partial, tokens, layout, automaton, threads
        self._ratios = [RatioPenalty(ratio, *shared) for ratio in ratios if tokens]

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        """Return loss in nats and gradient. The weights, float64 [F], are not changed.

        RETURNS (tuple[float, float64 [F]]): the gradient is the objective's array, which the
            next call overwrites.
        """
        self._gradient.fill(0.0)
        loss = self._sum.add_into(self._gradient, weights)
        for ratio in self._ratios:
            loss += ratio.add_into(self._gradient, weights)
        arguments = self._gradient, weights, self._precision, self._mean, self.counts
        penalty, score = sweep(
            "penalise_into", len(weights), 2, *arguments, threads=self._threads
        ).tolist()
        return loss + (0.5 * penalty - score), self._gradient

    @property
    def curvature(self) -> Vector:
        """Rough size of the Hessian's diagonal at zero weights: precision + counts, float64
        [F], above 0.
        """
        constant = len(self._precision) < len(self.counts)
        curvature = np.abs(self.counts) + (self._precision[0] if constant else self._precision)
        curvature[curvature == 0.0] = 1.0
        return curvature

    def release(self) -> None:
        """Free memory that the next evaluation allocates again."""
        self._sum.release()
        for ratio in self._ratios:
            ratio.release()


def likelihood(
    shard: Compiled, placed: Any, automaton: Automaton, buffers: Buffers, counts: Any
) -> float:
    """Return Σ log Z of a shard, less log Z of what agrees with incomplete annotation; add expected counts.

    RAISES (ValueError): H007 if some document has no allowed segmentation.
    """
    potentials = shard.potentials(placed, buffers)
    expected = expectations(potentials, automaton, buffers=buffers, weights=shard.weights)
    loss = _added(counts, shard, expected, 1.0)
    if shard.observed is not None and shard.observed.scores is None:
        constrained = shard.observed.expectations(potentials, automaton, buffers, shard.weights)
        loss += _added(counts, shard, constrained, -1.0)
    return loss


def _add_fixed_counts(shard: Compiled, automaton: Automaton, buffers: Buffers, counts: Any) -> None:
    """Add the counts that do not depend on the weights."""
    if shard.observed is None:
        shard.add_gold_into(counts)
    elif (scores := shard.observed.scores) is not None:
        constrained = shard.observed.expectations(scores, automaton, buffers, shard.weights)
        _added(counts, shard, constrained, 1.0)


def _added(counts: Any, shard: Compiled, expected: Expectations, sign: float) -> float:
    """Add expected counts. RETURNS (float): Σ weight · log Z."""
    bad = np.flatnonzero(np.isneginf(expected.log_partition))
    if len(bad):
        raise ValueError(Errors.H007.format(text=shard.describe(int(bad[0]))))
    copies, weights = sign * shard.copies, shard.weights
    shard.add_counts_into(expected, copies, counts)
    log_z = expected.log_partition if weights is None else weights * expected.log_partition
    return copies * float(log_z.sum())


def _chunk_of(vector: Vector) -> Vector:
    """One chunk of a vector that is constant, to stand for every chunk; other vectors as they are."""
    constant = len(vector) > CHUNK and bool((vector == vector[0]).all())
    return vector[:CHUNK].copy() if constant else vector
