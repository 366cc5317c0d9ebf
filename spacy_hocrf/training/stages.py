"""Training in two stages: `spacy-hocrf.Stages.v1`.

First the training config's optimizer trains an encoder, its heads and the weights of features
together. Then the encoder stays as it is, its rows are constant, and everything linear is a convex
problem again: L-BFGS goes on to its exact optimum.
"""

from dataclasses import dataclass

from spacy_hocrf.training.base import Trainer, check_least
from spacy_hocrf.training.lbfgs import LBFGSTrainer
from spacy_hocrf.training.sgd import SGDTrainer

__all__ = ["StagesTrainer"]


@dataclass(frozen=True)
class StagesTrainer(SGDTrainer):
    """An encoder and all else by the training config's optimizer, then all else by L-BFGS.

    epochs (int): how often the corpus is shown to the encoder. A loaded model keeps its encoder.
    iterations (int): of L-BFGS, for each step of the training loop.
    threads (int): 0 for as many as the machine has.
    sigma is that of both stages, as for `SGDTrainer`.
    RAISES (ValueError): H048 for a setting out of range, H145 for a sigma that is "auto".
    """

    epochs: int = 5
    iterations: int = 1
    threads: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, epochs=0)
        self.refit  # noqa: B018 - checks its settings

    @property
    def refit(self) -> LBFGSTrainer:
        """The trainer of the second stage."""
        return LBFGSTrainer(sigma=self.sigma, iterations=self.iterations, threads=self.threads)

    def after(self, epochs: float) -> Trainer:
        """Itself, until the encoder has been shown enough."""
        return self if epochs < self.epochs else self.refit
