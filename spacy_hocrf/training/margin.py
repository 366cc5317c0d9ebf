"""Max-margin training: `spacy-hocrf.MaxMargin.v1`, cutting planes over the exact Viterbi.

It minimises the Gaussian prior plus, over all documents, how far the best other segmentation comes
up to the annotated one, each of its wrong tokens asking for a margin of 1 (Tsochantaridis et al.,
JMLR 6, 2005; suggested for high-order CRFs in Nguyen et al., JMLR 15, 2014, §1, and Ye et al., NIPS
2009, §4.4). The scores are no log probabilities: nothing in this objective calibrates them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.cutting_planes import CuttingPlanes
from spacy_hocrf.engine.margin import MarginObjective
from spacy_hocrf.errors import Errors
from spacy_hocrf.training.trainers import FullBatchTrainer, OptimiserRun, checked_sigmas

__all__ = ["MaxMarginRun", "MaxMarginTrainer", "make_max_margin"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class MaxMarginTrainer(FullBatchTrainer):
    """Settings of max-margin training; see `make_max_margin`."""

    tolerance: float

    complete_only = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.tolerance < 1:
            raise ValueError(
                Errors.H048.format(
                    name="tolerance", found=self.tolerance, expected="at least 0 and below 1"
                )
            )
        for name, value in (("sigma", max(self.sigma)), ("adapt_sigma", self.adapt_sigma)):
            if math.isinf(value):  # without a prior, weights and margins grow for ever
                raise ValueError(Errors.H048.format(name=name, found=value, expected="finite"))


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
        return self._optimiser.bound

    @property
    def gap(self) -> float:
        """Value less bound, as a part of the value."""
        return self._optimiser.gap

    @property
    def status(self) -> str:
        """Why it ended, and after how much, for the log."""
        return f"{self._optimiser.status} {self.gap:.2e} after {self.evaluations} evaluations, {self._optimiser.planes} planes kept"

    @property
    def iterations(self) -> int:
        """Planes that were asked for."""
        return self.evaluations

    def _evaluate(self) -> None:
        self._optimiser.tell(*self._objective.plane(self._optimiser.x))


def make_max_margin(
    sigma: float | Sequence[float] = 1.0,
    iterations: int = 1,
    tolerance: float = 0.01,
    threads: int = 0,
    prior: str = "auto",
    adapt_sigma: float = 0.1,
) -> MaxMarginTrainer:
    """`spacy-hocrf.MaxMargin.v1`: the largest margin between the annotation and everything else, on
    the whole corpus.

    sigma (Union[float, List[float]]): as in `make_lbfgs`: the penalty of a weight is w² / (2
        sigma²). Support vector machines call sigma² C, counted for each document.
    iterations (int): cutting planes, that is, evaluations of the objective, for each step of the
        training loop.
    tolerance (float): converged when the objective is at most this part of itself above its lower
        bound.
    threads, prior, adapt_sigma: as in `make_lbfgs`.
    RETURNS (MaxMarginTrainer): the trainer.
    RAISES (ValueError): H047 or H048 for settings out of range.
    """
    return MaxMarginTrainer(
        sigma=checked_sigmas(sigma),
        iterations=iterations,
        threads=threads,
        prior=prior,
        adapt_sigma=adapt_sigma,
        tolerance=tolerance,
    )
