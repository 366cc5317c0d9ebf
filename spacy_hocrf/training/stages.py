"""Training in two stages: `spacy-hocrf.Stages.v1`.

First the training config's optimizer trains an encoder, its heads and the weights of features
together. Then encoder and heads stay as they are, and everything else is a convex problem again:
L-BFGS goes on to its exact optimum. What the second stage may know of an encoder that has learnt the
same texts is in `spacy_hocrf.learning.stages`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.training.base import (
    AUTO,
    DEFAULT_SIGMA,
    Trainable,
    Trainer,
    Vector,
    check_least,
    checked_sigma,
)
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.training.sgd import SGDTrainer

__all__ = ["RefitTrainer", "StagesTrainer"]


@dataclass(frozen=True)
class StagesTrainer(SGDTrainer):
    """An encoder and all else by the training config's optimizer, then all else by L-BFGS.

    sigma (Union[float, List[float], str]): as for `SGDTrainer`, of both stages. With "auto" it is 1
        in the first; in the second it is chosen by the loss of texts held back.
    epochs (int): how often the corpus is shown to the encoder. A loaded model keeps its encoder. With
        0 the heads of the encoder, which stays as it is, are trained by L-BFGS, too.
    folds (int): copies of the model that learn along in the first stage, each without a part of the
        texts, so that the second one knows what the encoder says of texts that it has not learnt
        from; 0 for none.
    iterations (int): of L-BFGS, for each step of the training loop.
    threads (int): 0 for as many as the machine has.
    RAISES (ValueError): H048 for a setting out of range.
    """

    sigma: float | Sequence[float] | str = AUTO
    epochs: int = 5
    folds: int = 3
    iterations: int = 1
    threads: int = 0

    def __post_init__(self) -> None:
        if self.sigma != AUTO:
            super().__post_init__()
        check_least(self, epochs=0, folds=0)
        self.refit  # noqa: B018 - checks its settings

    @property
    def sigmas(self) -> tuple[float, ...]:
        """Of the first stage: one, or one for each order."""
        return checked_sigma(DEFAULT_SIGMA if self.sigma == AUTO else self.sigma)

    @property
    def refit(self) -> "RefitTrainer":
        """The trainer of the second stage."""
        return RefitTrainer(
            sigma=self.sigma,
            iterations=self.iterations,
            threads=self.threads,
            keeps_heads=self.epochs > 0,
        )

    def with_sigma(self, sigma: float | None) -> Trainer:
        """The same settings with the sigma that was chosen where it is "auto", if one was."""
        return self if sigma is None or self.sigma != AUTO else replace(self, sigma=sigma)

    def after(self, epochs: float) -> Trainer:
        """Itself, until the encoder has been shown enough."""
        return self if epochs < self.epochs else self.refit


@dataclass(frozen=True)
class RefitTrainer(LBFGSTrainer):
    """The second stage: L-BFGS on all weights but those of an encoder's heads.

    keeps_heads (bool): do the heads stay as they are?
    """

    candidates: ClassVar[tuple[float, ...]] = (0.25, 0.35, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)

    keeps_heads: bool = False

    def objective(self, model: Trainable) -> Objective:
        """The penalised negative log-likelihood of the corpus, in nats, of the weights that change."""
        if not self.keeps_heads:
            return super().objective(model)
        kept, mean = model.heads, self.mean(model)
        precision = np.where(kept, 0.0, self.precision(model))
        return _Part(model, precision, mean, kept, self.n_threads)


class _Part(Objective):
    """An objective of some weights; the others, bool [F], stay as they are."""

    def __init__(
        self,
        model: Trainable,
        precision: Vector,
        mean: Vector,
        kept: NDArray[np.bool_],
        threads: int,
    ) -> None:
        shards = model.shards(weighted=True)
        super().__init__(shards, model.layout, model.automaton, precision, mean, threads=threads)
        self._kept = kept

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        value, gradient = super().__call__(weights)
        gradient[self._kept] = 0.0
        return value, gradient
