"""The averaged perceptron (Collins, EMNLP 2002): `spacy-hocrf.AveragedPerceptron.v1`.

No prior, no learning rate, no objective: only the number of epochs. The scores are no log
probabilities: nothing in these updates asks for more than the right order of the segmentations.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.perceptron import AveragedPerceptron
from spacy_hocrf.training.base import BaseTrainer, Trainable, check_least

__all__ = ["AveragedPerceptronTrainer", "Epochs", "Perceptron", "PerceptronRun", "epochs_of"]


class Epochs(Protocol):
    """How often, and in which order, a perceptron goes through its corpus."""

    @property
    def epochs(self) -> int:
        """Passes over the corpus."""
        ...

    @property
    def seed(self) -> int:
        """Seed of the random order in each epoch."""
        ...


@dataclass(frozen=True)
class AveragedPerceptronTrainer(BaseTrainer):
    """One update for each document that is decoded wrongly, averaged weights.

    epochs (int): how often to go through the corpus; each step of the training loop is one.
    seed (int): of the random order of the documents in each epoch.
    RAISES (ValueError): H048 for settings out of range.
    """

    epochs: int = 10
    seed: int = 0

    complete_only = True
    probabilistic = False

    def __post_init__(self) -> None:
        check_least(self, epochs=1, seed=0)

    @property
    def perceptron(self) -> Epochs:
        """What `epochs_of` finds: others may learn more weights in the same epochs."""
        return self

    def begin(self, model: Trainable) -> "PerceptronRun":
        """Epochs from the model's weights on."""
        shards = model.shards(complete_only=True)
        perceptron = AveragedPerceptron(shards, model.layout, model.automaton, model.weights)
        return PerceptronRun(self, perceptron)


class Perceptron(Protocol):
    """What has epochs."""

    def __len__(self) -> int:
        """Number of documents, or of what else is decoded."""
        ...

    @property
    def average(self) -> NDArray[np.float64]:
        """The averaged weights, float64 [F]."""
        ...

    def epoch(self, order: Iterable[int]) -> int:
        """Go through all documents in this order. RETURNS (int): how many were wrong."""
        ...

    def mistakes(self) -> int:
        """How many the weights of the last update get wrong."""
        ...


class PerceptronRun:
    """So many epochs of one perceptron.

    settings (Epochs): how many, and in which order.
    perceptron (Perceptron): the corpus, and where to start.
    """

    def __init__(self, settings: Epochs, perceptron: Perceptron) -> None:
        self._settings = settings
        self.perceptron = perceptron
        self._random = np.random.default_rng(settings.seed)
        self._mistakes: int | None = None
        self._epochs = 0

    @property
    def loss(self) -> float:
        """Documents that got an update in the last epoch; before the first, those that the weights
        at the start get wrong.
        """
        if self._mistakes is None:
            self._mistakes = self.perceptron.mistakes()
        return float(self._mistakes)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The average so far, float64 [F]."""
        return self.perceptron.average

    @property
    def running(self) -> bool:
        """Are there epochs left?"""
        return self._epochs < self._settings.epochs

    @property
    def status(self) -> str:
        """How it ended, for the log."""
        wrong = f"{self._mistakes} of {len(self.perceptron)} documents wrong"
        return f"finished: {wrong} in the last of {self._epochs} epochs"

    @property
    def evaluations(self) -> int:
        """Epochs gone through."""
        return self._epochs

    def step(self) -> None:
        """One epoch, in an order of its own; nothing after the last."""
        if self.running:
            self._mistakes = self.perceptron.epoch(
                self._random.permutation(len(self.perceptron)).tolist()
            )
            self._epochs += 1


def epochs_of(trainer: object) -> Epochs | None:
    """The epochs of a trainer whose member `perceptron` tells them; None of any other."""
    epochs: Epochs | None = getattr(trainer, "perceptron", None)
    return epochs
