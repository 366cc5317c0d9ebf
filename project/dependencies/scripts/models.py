"""Models of a window's links: independent vertices, the 2D grid and the 3-wise one, learnt by the
averaged perceptron.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from features import Observed, Section, observe, sections
from grid import pattern_of
from logs import Window
from numpy.typing import NDArray

from spacy_hocrf.api import Decoding, Epoch, GraphInstance, GraphPerceptron

ORDERS = {"local": 1, "2D": 2, "3-wise": 3}
"""The models, and the number of vertices of their largest factors."""

Decoder = Callable[[GraphInstance, Observed], Decoding]


@dataclass(frozen=True)
class Model:
    """Weights, and what they belong to."""

    order: int
    weights: NDArray[np.float64]  # [F]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Those of its features."""
        return sections(self.order)

    def instance(self, observed: Observed) -> GraphInstance:
        """The decoding problem of a window."""
        return instance_of(observed, self.sections, self.weights)


@dataclass(frozen=True)
class WindowTask:
    """A window to learn from, as `spacy_hocrf.graph.learning.Task` has it; the loss is the number
    of wrong vertices.
    """

    observed: Observed
    sections: tuple[Section, ...]
    decoder: Decoder

    @cached_property
    def gold(self) -> NDArray[np.int32]:
        """The annotated states, int32 [V]."""
        return self.observed.gold

    def decode(
        self, weights: NDArray[np.float64], loss_weight: float = 0.0
    ) -> tuple[NDArray[np.int32], float, float]:
        """The best assignment found, its score and the bound; the loss is a unary score."""
        instance = instance_of(
            self.observed, self.sections, weights, loss_weight * (1.0 - 2.0 * self.gold)
        )
        constant = loss_weight * float(self.gold.sum())
        found = self.decoder(instance, self.observed)
        return found.assignment, found.primal + constant, found.bound + constant

    def counts(self, output: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The features that fire in an assignment, and how often, times their value."""
        features, counts = np.unique(
            fired(self.observed, self.sections, output), return_counts=True
        )
        section = np.searchsorted(
            [section.end for section in self.sections], features, side="right"
        )
        return features.astype(np.int32), counts * np.array(
            [section.scale for section in self.sections]
        )[section]

    def loss(self, output: NDArray[np.int32]) -> float:
        """The number of wrong vertices."""
        return float((output != self.gold).sum())


def train(
    windows: Sequence[Window],
    order: int,
    decoder: Decoder,
    *,
    epochs: int,
    seed: int = 0,
    report: Callable[[Epoch], None] = print,
) -> Model:
    """Averaged weights after some epochs of the perceptron.

    windows (Sequence[Window]): the training part.
    report (Callable): is given what happened in each epoch.
    """
    layout = sections(order)
    tasks = [WindowTask(observe(window, order), layout, decoder) for window in windows]
    perceptron = GraphPerceptron(tasks, np.zeros(layout[-1].end), seed=seed)
    for _ in range(epochs):
        report(perceptron.epoch())
    return Model(order, perceptron.average)


def one_each(instance: GraphInstance, observed: Observed) -> Decoding:
    """A decoder of independent vertices: of each message's vertices at most the best one is on, if
    its score is above 0.

    The bound is that of all assignments, so there is a certificate if no message wants a second
    link.
    """
    grid, scores = observed.grid, instance.unary[1::2] - instance.unary[::2]
    table = np.full((grid.size, grid.size), -np.inf)
    table[grid.source, grid.target] = scores
    best = table.argmax(axis=1)
    assignment = ((grid.target == best[grid.source]) & (scores > 0)).astype(np.int32)
    primal = instance.score(assignment)
    bound = primal + float(np.maximum(scores, 0.0)[assignment == 0].sum())
    return Decoding(
        assignment, primal, bound, bound == primal, np.array([bound]), np.array([primal])
    )


def instance_of(
    observed: Observed,
    layout: Sequence[Section],
    weights: NDArray[np.float64],
    extra: NDArray[np.float64] | float = 0.0,
) -> GraphInstance:
    """The decoding problem at some weights; `extra` (float64 [V]) is added to the scores of state
    1.
    """
    scores, *tables = (
        section.table(weights, values) for section, values in zip(layout, observed.values)
    )
    return observed.grid.instance(scores[:, 0] + extra, tuple(tables))


def fired(
    observed: Observed, layout: Sequence[Section], assignment: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Numbers of the features that fire in an assignment, once for each time."""
    on = observed.values[0][assignment == 1]
    found = [layout[0].first + on.ravel()]
    for section, values, factors in zip(layout[1:], observed.values[1:], observed.grid.factors):
        pattern = pattern_of(factors, assignment)
        found.append((section.first + values * section.n_patterns + pattern[:, None]).ravel())
    return np.concatenate(found)
