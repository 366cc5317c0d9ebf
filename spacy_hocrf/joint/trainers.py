"""`spacy-hocrf.JointMaxMargin.v1`: joint weights learnt with local scores from models that have not seen
the documents.

The corpus is divided into parts, by groups, and each part is scored by a model that is trained on the
others with the component's own settings, for as many steps as the component's model has had. Documents of
one part that must be decoded together are a task of `graph.frank_wolfe`.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.annotation.annotation import constrain_batch
from spacy_hocrf.errors import Errors
from spacy_hocrf.graph.frank_wolfe import FrankWolfe
from spacy_hocrf.graph.learning import Task
from spacy_hocrf.joint.corpus import JointDocuments, documents_together
from spacy_hocrf.joint.decoding import DualDecomposition
from spacy_hocrf.joint.features import JointFeatures
from spacy_hocrf.joint.learning import JointModel, LearntWeights
from spacy_hocrf.joint.tasks import JointTask
from spacy_hocrf.learning.corpus import Corpus
from spacy_hocrf.learning.heldout import cross_fitted
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.training.base import Run, Trainer
from spacy_hocrf.types import SIGMA_RANGE, is_number, is_sigma, is_whole
from spacy_hocrf.warnings import Warnings

__all__ = ["JointMaxMargin", "is_due"]

FIRST, FACTOR = 16, 4


@dataclass(frozen=True, kw_only=True)
class JointMaxMargin:
    """`spacy-hocrf.JointMaxMargin.v1`: the largest margin between the annotation of each group and
    all other segmentations.

    sigma (float): standard deviation of the Gaussian prior of the joint weights.
    folds (int): number of parts of the corpus; the local scores of each group come from a model that was
        trained without its part.
    nonnegative (bool): forbid weights below 0 for features of places that should agree; weights of
        `Pattern.v1` have either sign. If there are only features of the first kind, decoding is then nearly
        exact.
    epochs (int): most passes over the groups.
    tolerance (float): converged when the objective is at most this fraction of itself above its lower
        bound.
    seed (int): seed of the order of the groups, and of their division.
    RAISES (ValueError): H108 for settings out of range.
    """

    sigma: float = 1.0
    folds: int = 5
    nonnegative: bool = True
    epochs: int = 100
    tolerance: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("folds", 2), ("epochs", 1), ("seed", 0)):
            value, expected = getattr(self, name), f"a whole number, at least {least}"
            self._check(name, is_whole(value) and value >= least, expected)
        self._check("sigma", is_sigma(self.sigma), SIGMA_RANGE)
        between = is_number(self.tolerance) and 0 < self.tolerance < 1
        self._check("tolerance", between, "between 0 and 1")

    def lacks(self, trainer: Trainer) -> str | None:
        """Require a trainer on the whole corpus, since models of the folds are trained in step with it."""
        return "a trainer that runs over the whole corpus" if trainer.batchwise else None

    def learnt(self, run: Run, learner: Learner, joint: JointModel) -> LearntWeights | None:
        """Learn the weights anew if they are due; a loaded model that adapts to a small corpus keeps its
        own.
        """
        if learner.adapts or not is_due(learner.steps, run.running):
            return None
        weights = self.learn(learner, joint)
        if weights is None and not joint.features(learner.scheme).hard.all():
            warnings.warn(Warnings.W009.format(name=joint.name), stacklevel=2)
        return weights

    def learn(self, learner: Learner, joint: JointModel) -> LearntWeights | None:
        """Learn the weights from a corpus.

        learner (Learner): has the corpus, and the local settings; it is not changed.
        RETURNS (Optional[LearntWeights]): None if fewer than two groups have places for a joint feature.
        """
        features = joint.features(learner.scheme)
        groups = documents_together(learner.corpus, features, most=joint.most)
        if len(groups) < 2:
            return None
        decoder = replace(joint.decoder, local_search=False)  # a violation need not be the largest
        tasks: list[Task] = []
        members = [[document for part in group for document in part.documents] for group in groups]
        for model, unseen in cross_fitted(
            learner, members, folds=self.folds, seed=self.seed, steps=learner.steps
        ):
            assert model.scheme.names == features.scheme.names
            held_out_features = joint.features(model.scheme)
            tasks += (
                _task(model, learner.corpus, part, decoder, held_out_features)
                for number in unseen
                for part in groups[number]
            )
        return self.fit(tasks, features.agree)

    def fit(self, tasks: Sequence[Task], agree: NDArray[np.bool_]) -> LearntWeights:
        """Learn the weights of G joint features.

        tasks (Sequence[Task]): the last feature of their outputs, number G, is the local score with weight 1.
            Features with infinite weights must not occur.
        agree (bool [G]): `JointFeatures.agree`.
        RETURNS (LearntWeights): the weights, and the gap of their objective.
        """
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

    def _check(self, name: str, right: bool, expected: str) -> None:
        if not right:
            found = getattr(self, name)
            raise ValueError(Errors.H108.format(name=name, found=found, expected=expected))


def is_due(steps: int, running: bool) -> bool:
    """Are the joint weights to be learnt after this number of steps of the local training?

    At its end and, since a loop may stop earlier, after 16, 64, 256, … steps: all of these together cost
    little more than the last.
    """
    goal = FIRST
    while goal < steps:
        goal *= FACTOR
    return not running or steps == goal


def _task(
    model: Learner,
    corpus: Corpus,
    part: JointDocuments,
    decoder: DualDecomposition,
    features: JointFeatures,
) -> JointTask:
    """Make one task, with the local scores and joint features of this model."""
    tokens = corpus.batch(part.documents)
    allowed = model.structure.allowed(tokens)
    annotations = [document.annotation for document in part.documents]
    annotated = constrain_batch(model.scheme, allowed, tokens.offsets, annotations)
    potentials = model.potentials(tokens, allowed)
    return JointTask(
        part.problem, potentials, model.automaton, annotated, decoder, len(features.names)
    )
