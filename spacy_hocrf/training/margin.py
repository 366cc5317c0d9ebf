"""Max-margin training: `spacy-hocrf.MaxMargin.v1`, cutting planes over the exact Viterbi.

It minimises the Gaussian prior plus, over all documents, how far the best other segmentation comes
up to the annotated one, each of its wrong tokens asking for a margin of 1 (Tsochantaridis et al.,
JMLR 6, 2005; suggested for high-order CRFs in Nguyen et al., JMLR 15, 2014, §1, and Ye et al., NIPS
2009, §4.4). The scores are no log probabilities: nothing in this objective calibrates them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spacy_hocrf.engine.cutting_planes import CuttingPlanes
from spacy_hocrf.engine.data_set import Shard
from spacy_hocrf.engine.margin import MarginObjective
from spacy_hocrf.errors import Errors
from spacy_hocrf.training.base import FullBatchTrainer, Trainable, Vector
from spacy_hocrf.training.optimiser import OptimiserRun

__all__ = ["MaxMarginRun", "MaxMarginTrainer"]

QUICK = 0.1
"""Tolerance of runs that are only compared."""


@dataclass(frozen=True)
class MaxMarginTrainer(FullBatchTrainer):
    """The largest margin between the annotation and everything else, on the whole corpus.

    The penalty of a weight is w² / (2 sigma²); support vector machines call sigma² C, counted for
    each document. `iterations` are cutting planes, that is, evaluations of the objective.

    tolerance (float): converged when the objective is at most this part of itself above its lower
        bound.
    The other settings are those of `FullBatchTrainer`; without a prior, weights and margins would
    grow without limit, so every sigma is finite.
    RAISES (ValueError): H047 or H048 for settings out of range.
    """

    candidates = (0.05, 0.1, 0.2, 0.5, 1.0)

    tolerance: float = 0.01

    complete_only = True
    probabilistic = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.tolerance < 1:
            expected = "at least 0 and below 1"
            raise ValueError(
                Errors.H048.format(name="tolerance", found=self.tolerance, expected=expected)
            )
        for name, value in (("sigma", self.sigmas), ("adapt_sigma", self.adapt_sigma)):
            largest = float(np.max(value))
            if np.isinf(largest):
                raise ValueError(Errors.H048.format(name=name, found=largest, expected="finite"))

    def objective(self, model: Trainable) -> MarginObjective:
        """The penalised risk of the completely annotated documents."""
        return MarginObjective(
            model.shards(complete_only=True),
            model.layout,
            model.automaton,
            self.precision(model),
            self.mean(model),
            threads=self.n_threads,
            workers=self.workers,
        )

    def quick(self) -> "MaxMarginTrainer":
        """The same settings, but a larger gap is good enough."""
        return replace(self, tolerance=max(self.tolerance, QUICK))

    def risk(self, model: Trainable, shards: Sequence[Shard]) -> float:
        """How far the best other segmentations come up to the annotated ones, all documents
        together.
        """
        nothing = np.zeros(len(model.orders))
        loss = MarginObjective(
            shards, model.layout, model.automaton, nothing, nothing, threads=self.n_threads
        )
        return loss(model.weights)[0]

    def begin(self, model: Trainable) -> "MaxMarginRun":
        """Cutting planes from the model's weights on."""
        return MaxMarginRun(self, self.objective(model), model.weights)


class MaxMarginRun(OptimiserRun):
    """Cutting planes of one objective.

    trainer (MaxMarginTrainer): settings.
    objective (MarginObjective): the corpus.
    weights (float64 [F]): where to start.
    """

    def __init__(
        self, trainer: MaxMarginTrainer, objective: MarginObjective, weights: Vector
    ) -> None:
        self._objective = objective
        planes = CuttingPlanes(weights, objective.precision, objective.mean, trainer.tolerance)
        super().__init__(trainer.iterations, planes)

    @property
    def bound(self) -> float:
        """No weights have a lower value."""
        return float(self._optimiser.bound)

    @property
    def gap(self) -> float:
        """Value less bound, as a part of the value."""
        return float(self._optimiser.gap)

    @property
    def status(self) -> str:
        """Why it ended, and after how much, for the log."""
        spent = f"{self.evaluations} evaluations, {self._optimiser.planes} planes kept"
        return f"{self._optimiser.status} {self.gap:.2e} after {spent}"

    @property
    def iterations(self) -> int:
        """Planes that were asked for."""
        return self.evaluations

    def _evaluate(self) -> None:
        self._optimiser.tell(*self._objective.plane(self._optimiser.x))
