"""Margin of a data set: what max-margin training minimises, and the planes that bound it from
below.

    value(w) = Σ_f (w_f - mean_f)² / 2 sigma_f² + risk(w)
    risk(w) = Σ_docs max_s [cost(s) + score(s; w) - score(gold; w)]

The cost of a segmentation is the number of tokens whose label is not the annotated one (margin
rescaling with the Hamming loss: Tsochantaridis et al., JMLR 6, 2005). It is a sum over tokens, so
that exact Viterbi with the cost added to the scores of the tokens finds the maximum. The risk is
convex, and each evaluation gives a plane that touches it and lies nowhere above it.

A boundary between two segments of one label costs nothing by itself. As in the likelihood, the result
does not depend on who works (`reduction.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.data_set import Layout, Shard
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.reduction import SumJob, ThreadWorkers, Workers, parts_of
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Scratch, Segments

__all__ = ["MarginObjective", "Plane", "labels_of", "most_violating", "violation"]

Vector = NDArray[np.float64]


class Plane(NamedTuple):
    """risk(w) ≥ offset + slope · w."""

    offset: float  # Σ cost of the segmentations that were found
    slope: Vector  # [F] their counts less those of the annotation


class MarginObjective:
    """Penalised risk of fixed shards, all completely annotated.

    shards (Sequence[Shard]): the data; their order matters to the last bit.
    layout (Layout): how the shards want the weights.
    automaton (Automaton): states and arcs of all of them.
    precision (float64 [F]): 1/sigma² of every weight.
    mean (float64 [F]): where the penalty is zero.
    threads (int): 1 or more. workers (Optional[Workers]): who works through the shards, if not these.
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
        workers: Workers | None = None,
    ) -> None:
        self.shards = shards
        self.precision = precision
        self.mean = mean
        counts = layout.nothing()

        def visit(shard: Shard) -> None:
            gold = shard.gold()
            assert gold is not None
            shard.add_segments_into(gold, -1.0, counts)

        workers = ThreadWorkers(threads) if workers is None else workers
        parts = parts_of(shards, layout.extent, workers.parts)
        self._summing = workers.scatter(SumJob(parts, violation, layout, automaton, visit))
        self._minus_gold = np.zeros(len(precision))
        layout.add_collected_into(self._minus_gold, counts)

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        """Value, and one of its subgradients, float64 [F]."""
        plane, distance = self.plane(weights), weights - self.mean
        gradient = self.precision * distance
        value = plane.offset + float(plane.slope @ weights) + 0.5 * float(gradient @ distance)
        return value, gradient + plane.slope

    def plane(self, weights: Vector) -> Plane:
        """The plane that touches the risk at these weights, float64 [F].

        RAISES (ValueError): H007 if some document has no allowed segmentation.
        """
        slope = self._minus_gold.copy()
        offset = self._summing.add_into(slope, weights)
        return Plane(offset, slope)


def violation(
    shard: Shard, placed: Any, automaton: Automaton, buffers: Buffers, counts: Any
) -> float:
    """Cost of the most violating segmentations of a shard; adds their counts."""
    known = shard.gold()
    assert known is not None
    gold = labels_of(known)
    found = most_violating(shard, placed, automaton, buffers, gold)
    shard.add_segments_into(found, 1.0, counts)
    return float((labels_of(found) != gold).sum())


def most_violating(
    shard: Shard,
    placed: Any,
    automaton: Automaton,
    buffers: Buffers,
    gold: NDArray[np.int32] | None = None,
) -> Segments:
    """The best segmentation of every sequence of a shard, by score and cost.

    placed (Any): weights as the layout has placed them.
    gold (Optional[int32 [N]]): the right labels of all tokens; None for no cost.
    RAISES (ValueError): H007 if a sequence has no allowed segmentation.
    """
    potentials = shard.potentials(placed, buffers)
    if gold is not None:
        potentials = replace(potentials, token=_with_cost(potentials.token, gold, buffers))
    best = viterbi(potentials, automaton, buffers=buffers)
    bad = np.flatnonzero(np.isneginf(best.scores))
    if len(bad):
        raise ValueError(Errors.H007.format(text=shard.describe(int(bad[0]))))
    return best.segments


def labels_of(segments: Segments) -> NDArray[np.int32]:
    """The label of every token, int32 [N], of segments that cover all."""
    return np.repeat(segments.label, segments.end - segments.start)


def _with_cost(token: Vector, gold: NDArray[np.int32], scratch: Scratch) -> Vector:
    """Scores of tokens, [N, Y], plus 1 for each label that is not the right one."""
    scores = np.add(token, 1.0, out=scratch.array("scores and costs", (len(gold), token.shape[1])))
    scores[np.arange(len(gold)), gold] -= 1.0
    return scores
