"""Trainers of joint weights: `[components.*.joint.trainer]`.

Both take the local scores as they are, of models that have not seen the documents, and learn the
few joint weights on top of them. `JointMaxMargin.v1` minimises a convex objective and knows how far
it is from its minimum; `JointPerceptron.v1` is the learner of Qian and Liu, TACL 2 (2014) §4. What
either decodes with is approximate, but bounded.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.graph.frank_wolfe import FrankWolfe
from spacy_hocrf.graph.learning import Task
from spacy_hocrf.graph.perceptron import GraphPerceptron
from spacy_hocrf.joint.learning import CrossFittedTrainer, LearntWeights

__all__ = ["JointMaxMargin", "JointPerceptron"]


@dataclass(frozen=True, kw_only=True)
class JointMaxMargin(CrossFittedTrainer):
    """`spacy-hocrf.JointMaxMargin.v1`: the largest margin between the annotation of each group and
    everything else.

    sigma (float): standard deviation of the Gaussian prior of the joint weights.
    folds (int): the local scores of each group come from a model that was trained without its part,
        one of so many, of the corpus.
    nonnegative (bool): weights below 0 are not allowed for places that should agree, which never
        count less for it; those of `Pattern.v1` have either sign. Without any of these, decoding is
        nearly exact then.
    epochs (int): at most so many passes over the groups.
    tolerance (float): converged when the objective is at most this part of itself above its lower
        bound.
    seed (int): of the order of the groups, and of their division.
    RAISES (ValueError): H108 for settings out of range.
    """

    sigma: float = 1.0
    epochs: int = 100
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("sigma", 0 < self.sigma < math.inf, "above 0 and finite")
        self._check("epochs", self.epochs >= 1, "at least 1")
        self._check("tolerance", 0 < self.tolerance < 1, "between 0 and 1")

    def fit(self, tasks: Sequence[Task], agree: NDArray[np.bool_]) -> LearntWeights:
        """The weights that were found, and the gap of their objective."""
        n_features = len(agree)
        local = np.arange(n_features + 1) == n_features
        learner = FrankWolfe(
            tasks,
            np.where(local, 0.0, self.sigma**2),
            mean=local,
            nonnegative=np.append(agree, False) if self.nonnegative else None,
            tolerance=self.tolerance,
            seed=self.seed,
        )
        value = learner.learn(self.epochs)
        summary = (
            f"{learner.status}, {learner.epochs} epochs, objective {value.value:.4g}, "
            f"gap {value.gap:.1e}"
        )
        return LearntWeights(learner.weights[:n_features].copy(), summary)


@dataclass(frozen=True, kw_only=True)
class JointPerceptron(CrossFittedTrainer):
    """`spacy-hocrf.JointPerceptron.v1`: one update for each group that is decoded wrongly, averaged
    weights.

    epochs (int): passes over the groups.
    folds (int): the local scores of each group come from a model that was trained without its part,
        one of so many, of the corpus.
    nonnegative (bool): weights below 0 are not allowed for places that should agree, which never
        count less for it; those of `Pattern.v1` have either sign. Without any of these, decoding is
        nearly exact then.
    seed (int): of the order of the groups, and of their division.
    bounded (bool): an update goes no further than to where the annotation is ahead by the number of
        wrong tokens; false for the updates of the paper, which large groups make very large.
    RAISES (ValueError): H108 for settings out of range.
    """

    epochs: int = 10
    bounded: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("epochs", self.epochs >= 1, "at least 1")

    def fit(self, tasks: Sequence[Task], agree: NDArray[np.bool_]) -> LearntWeights:
        """The average of all weights there were, and what happened in the last epoch."""
        n_features = len(agree)
        local = np.arange(n_features + 1) == n_features
        perceptron = GraphPerceptron(
            tasks,
            local,
            learnt=~local,
            nonnegative=np.append(agree, False) if self.nonnegative else None,
            bounded=self.bounded,
            seed=self.seed,
        )
        for _ in range(self.epochs):
            last = perceptron.epoch()
        summary = (
            f"finished: in the last of {self.epochs} epochs {last.errors} of {len(tasks)} groups "
            f"wrong, {last.updates} updates, {last.search_errors} missed by the search"
        )
        return LearntWeights(perceptron.average[:n_features], summary)
