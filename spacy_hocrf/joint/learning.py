"""The interface for learning joint weights: `[components.*.joint.trainer]` may name anything with the members
of `JointTrainer`.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.joint.decoding import DualDecomposition
from spacy_hocrf.joint.features import JointFeatures
from spacy_hocrf.joint.templates import JointTemplate
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.training.base import Run, Trainer

__all__ = ["JointModel", "JointTrainer", "LearntWeights"]


class LearntWeights(NamedTuple):
    """Learnt weights, and how they were learnt."""

    weights: NDArray[np.float64]  # [G]
    summary: str = ""  # for the log


@dataclass(frozen=True)
class JointModel:
    """The parts of a component that a trainer of joint weights needs."""

    name: str
    templates: tuple[JointTemplate, ...]
    decoder: DualDecomposition
    most: int  # most tokens that are decoded together; 0 if every Doc is decoded alone

    def features(self, scheme: LabelScheme) -> JointFeatures:
        """Return the templates' features for these labels."""
        return JointFeatures(self.templates, scheme)


class JointTrainer(Protocol):
    """A method for learning joint weights."""

    def lacks(self, trainer: Trainer) -> str | None:
        """Return why it cannot learn beside a local trainer, worded for H109; None if it can."""
        ...

    def learnt(self, run: Run, learner: Learner, joint: JointModel) -> LearntWeights | None:
        """Return new joint weights after a step; None to keep the present ones.

        run (Run): the training run of the local model.
        """
        ...
