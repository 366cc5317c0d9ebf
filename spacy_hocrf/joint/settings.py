"""`spacy-hocrf.Joint.v1`: the settings of `[components.*.joint]`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spacy_hocrf.annotation.targets import Target
from spacy_hocrf.joint.decoding import DualDecomposition
from spacy_hocrf.joint.together import JointDecoding
from spacy_hocrf.joint.trainers import JointMaxMargin
from spacy_hocrf.model.scheme import LabelScheme

__all__ = ["Joint"]


@dataclass(frozen=True, kw_only=True)
class Joint:
    """Joint decoding of Docs that joint features connect.

    features (Mapping[str, JointTemplate]): joint templates, by the names of the config's blocks.
    group_by (Optional[str]): extension attribute of Docs; consecutive Docs with an equal value are
        decoded together. None: every Doc is decoded alone.
    decoder (Optional[DualDecomposition]): how Docs are decoded together; None is
        `spacy-hocrf.DualDecomposition.v1` with its default settings.
    trainer (Optional[JointTrainer]): how the weights are learnt; None is
        `spacy-hocrf.JointMaxMargin.v1` with its default settings.
    learn (bool): learn the weights. Otherwise they are the templates' weights, or those that are loaded
        or set.
    """

    features: Mapping[str, Any]
    group_by: str | None = None
    decoder: Any = None
    trainer: Any = None
    learn: bool = True

    def decoding(
        self, name: str, target: Target, scheme: Callable[[], LabelScheme]
    ) -> JointDecoding:
        """Make the object that decodes a component's Docs together; see `JointDecoding`."""
        trainer = (self.trainer or JointMaxMargin()) if self.learn else None
        decoder = self.decoder or DualDecomposition()
        parts = tuple(self.features.values()), decoder, self.group_by, trainer
        return JointDecoding(*parts, name=name, target=target, scheme=scheme)
