"""The trainers that `[components.*.global_trainer]` names: how the weights of document-level
patterns are learnt.

Both take the local scores as they are, of models that have not seen the documents, and learn the
few global weights on top of them. `GlobalMaxMargin.v1` minimises a convex objective and knows how
far it is from its minimum; `GlobalPerceptron.v1` is the learner of Qian and Liu, TACL 2 (2014) §4.
What either decodes with is approximate, but bounded.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.frank_wolfe import FrankWolfe
from spacy_hocrf.graph.learning import Task
from spacy_hocrf.graph.perceptron import GraphPerceptron

__all__ = [
    "GlobalMaxMarginTrainer",
    "GlobalPerceptronTrainer",
    "GlobalTrainer",
    "LearntWeights",
    "make_global_max_margin",
    "make_global_perceptron",
]


class LearntWeights(NamedTuple):
    """What was learnt, and how."""

    weights: NDArray[np.float64]  # [G]
    summary: str  # for the log


@dataclass(frozen=True)
class GlobalTrainer:
    """What both have in common.

    RAISES (ValueError): H108 for settings out of range.
    """

    folds: int
    nonnegative: bool
    seed: int

    joint = False
    """Are the local weights learnt together with the global ones, by the local trainer?"""

    def __post_init__(self) -> None:
        for name, least in (("folds", 2), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(
                    Errors.H108.format(
                        name=name, found=getattr(self, name), expected=f"at least {least}"
                    )
                )

    def learn(self, tasks: Sequence[Task], n_features: int) -> LearntWeights:
        """Learn the weights of G global features.

        tasks (Sequence[Task]): feature G of their outputs, the last one, is the local score; its
            weight is 1.
        n_features (int): G.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class GlobalMaxMarginTrainer(GlobalTrainer):
    """Settings of max-margin training; see `make_global_max_margin`."""

    sigma: float
    epochs: int
    tolerance: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.sigma < math.inf:
            raise ValueError(
                Errors.H108.format(name="sigma", found=self.sigma, expected="above 0 and finite")
            )
        if self.epochs < 1:
            raise ValueError(
                Errors.H108.format(name="epochs", found=self.epochs, expected="at least 1")
            )
        if not 0 < self.tolerance < 1:
            raise ValueError(
                Errors.H108.format(
                    name="tolerance", found=self.tolerance, expected="between 0 and 1"
                )
            )

    def learn(self, tasks: Sequence[Task], n_features: int) -> LearntWeights:
        """The weights that were found, and the gap of their objective."""
        local = np.arange(n_features + 1) == n_features
        learner = FrankWolfe(
            tasks,
            np.where(local, 0.0, self.sigma**2),
            mean=local,
            nonnegative=~local if self.nonnegative else None,
            tolerance=self.tolerance,
            seed=self.seed,
        )
        value = learner.learn(self.epochs)
        summary = f"{learner.status}, {learner.epochs} epochs, objective {value.value:.4g}, gap {value.gap:.1e}"
        return LearntWeights(learner.weights[:n_features].copy(), summary)


@dataclass(frozen=True)
class GlobalPerceptronTrainer(GlobalTrainer):
    """Settings of the averaged perceptron; see `make_global_perceptron`."""

    epochs: int
    bounded: bool
    joint: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epochs < 1:
            raise ValueError(
                Errors.H108.format(name="epochs", found=self.epochs, expected="at least 1")
            )

    def learn(self, tasks: Sequence[Task], n_features: int) -> LearntWeights:
        """The average of all weights there were, and what happened in the last epoch."""
        local = np.arange(n_features + 1) == n_features
        nonnegative = ~local if self.nonnegative else None
        perceptron = GraphPerceptron(
            tasks,
            local,
            learnt=~local,
            nonnegative=nonnegative,
            bounded=self.bounded,
            seed=self.seed,
        )
        for _ in range(self.epochs):
            last = perceptron.epoch()
        summary = (
            f"finished: in the last of {self.epochs} epochs {last.errors} of {len(tasks)} groups wrong, "
            f"{last.updates} updates, {last.search_errors} missed by the search"
        )
        return LearntWeights(perceptron.average[:n_features], summary)


def make_global_max_margin(
    sigma: float = 1.0,
    folds: int = 5,
    nonnegative: bool = True,
    epochs: int = 100,
    tolerance: float = 0.01,
    seed: int = 0,
) -> GlobalMaxMarginTrainer:
    """`spacy-hocrf.GlobalMaxMargin.v1`: the largest margin between the annotation of each group and
    everything else.

    sigma (float): standard deviation of the Gaussian prior of the global weights.
    folds (int): the local scores of each group come from a model that was trained without its part,
        one of so many, of the corpus.
    nonnegative (bool): weights below 0 are not allowed: places that should agree never count less
        for it. Decoding is nearly exact then.
    epochs (int): at most so many passes over the groups.
    tolerance (float): converged when the objective is at most this part of itself above its lower
        bound.
    seed (int): of the order of the groups, and of their division.
    RETURNS (GlobalMaxMarginTrainer): the trainer.
    RAISES (ValueError): H108 for settings out of range.
    """
    return GlobalMaxMarginTrainer(
        folds=folds,
        nonnegative=nonnegative,
        seed=seed,
        sigma=sigma,
        epochs=epochs,
        tolerance=tolerance,
    )


def make_global_perceptron(
    epochs: int = 10,
    folds: int = 5,
    nonnegative: bool = True,
    seed: int = 0,
    bounded: bool = True,
    joint: bool = False,
) -> GlobalPerceptronTrainer:
    """`spacy-hocrf.GlobalPerceptron.v1`: one update for each group that is decoded wrongly,
    averaged weights.

    epochs (int): passes over the groups.
    bounded (bool): an update goes no further than to where the annotation is ahead by the number of
        wrong tokens; false for the updates of the paper, which large groups make very large.
    joint (bool): local and global weights together, as in the paper: the epochs and the seed are
        then those of the local trainer, which must be `spacy-hocrf.AveragedPerceptron.v1`, and
        there are no folds.
    The other arguments are those of `make_global_max_margin`.
    RETURNS (GlobalPerceptronTrainer): the trainer.
    RAISES (ValueError): H108 for settings out of range.
    """
    return GlobalPerceptronTrainer(
        folds=folds, nonnegative=nonnegative, seed=seed, epochs=epochs, bounded=bounded, joint=joint
    )
