"""How joint weights are learnt: `[components.*.joint.trainer]` may name whatever has the members of
`JointTrainer`.
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
    """The view of a component that a trainer of joint weights has."""

    name: str
    templates: tuple[JointTemplate, ...]
    decoder: DualDecomposition
    most: int  # tokens that are decoded together; 0 for every Doc by itself

    def features(self, scheme: LabelScheme) -> JointFeatures:
        """The templates' features for some labels."""
        return JointFeatures(self.templates, scheme)


class JointTrainer(Protocol):
    """How joint weights are learnt."""

    def lacks(self, trainer: Trainer) -> str | None:
        """Reason why it cannot learn beside a local trainer, in words for H109; None if it can."""
        ...

    def learnt(self, run: Run, learner: Learner, joint: JointModel) -> LearntWeights | None:
        """New joint weights after a step; None for those that there are.

        run (Run): the training of the local model.
        """
        ...
