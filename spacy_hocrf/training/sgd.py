"""Batch-wise maximum likelihood with the training config's optimizer: `spacy-hocrf.SGD.v1`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.errors import Errors
from spacy_hocrf.training.base import (
    BaseTrainer,
    Trainable,
    checked_sigma,
    precision_of,
)
from spacy_hocrf.types import AUTO, Vector

__all__ = ["SGDTrainer"]


@dataclass(frozen=True)
class SGDTrainer(BaseTrainer):
    """Trains batch by batch with the training config's optimizer; for streamed or augmented corpora.

    sigma (Union[float, List[float]]): standard deviation of the Gaussian prior on the weights; a list gives
        one for each order, the last for all higher ones. Each batch gets its share of the penalty.
    RAISES (ValueError): H048 for a sigma out of range, H145 for "auto": no run reaches an optimum by which
        one could be chosen.
    """

    sigma: float | Sequence[float] | str = 1.0

    batchwise = True

    def __post_init__(self) -> None:
        if self.sigma == AUTO:
            raise ValueError(Errors.H145)
        object.__setattr__(self, "sigma", checked_sigma(self.sigma))

    @property
    def sigmas(self) -> tuple[float, ...]:
        """One sigma, or one for each order."""
        return checked_sigma(self.sigma)

    def objective(self, model: Trainable) -> Objective:
        """Return the penalised negative log-likelihood of the corpus, in nats."""
        precision = precision_of(self.sigmas, model.orders)
        mean = np.zeros(len(precision))
        shards = model.shards()
        return Objective(shards, model.layout, model.automaton, precision, mean)

    def penalty(self, model: Trainable) -> tuple[float, Vector]:
        """Return Σ w² / (2 sigma²) and its gradient, float64 [F]."""
        weights = model.weights
        gradient = precision_of(self.sigmas, model.orders) * weights
        return 0.5 * float(weights @ gradient), gradient
