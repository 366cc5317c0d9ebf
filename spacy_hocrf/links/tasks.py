"""A thread to learn from: a `graph.learning.Task`. The loss is the number of wrong vertices."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.links.decoding import LinkDecoder
from spacy_hocrf.links.model import LinkModel, ObservedThread

__all__ = ["LinkTask"]

Vector = NDArray[np.float64]
States = NDArray[np.int32]


@dataclass(frozen=True)
class LinkTask:
    """A thread as a model sees it, and its annotation."""

    model: LinkModel
    observed: ObservedThread
    gold: States  # [V]
    decoder: LinkDecoder
    one_each: bool  # has each source one link at most?

    def decode(self, weights: Vector, loss_weight: float = 0.0) -> tuple[States, float, float]:
        """The best states found, their score and the bound; the loss is a score of state 1."""
        extra = np.where(self.gold == 1, -loss_weight, loss_weight)
        constant = loss_weight * float(self.gold.sum())
        tables = self.model.tables(self.observed, weights, extra)
        found = self.decoder.decode(self.observed.grid, tables, self.one_each)
        return found.assignment, found.primal + constant, found.bound + constant

    def counts(self, output: States) -> tuple[NDArray[np.int32], Vector]:
        """The features that fire, and how often, times their value."""
        return self.model.counts(self.observed, output)

    def loss(self, output: States) -> float:
        """The number of wrong vertices."""
        return float((output != self.gold).sum())
