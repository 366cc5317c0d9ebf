"""`spacy-hocrf.Joint.v1`: what `[components.*.joint]` may be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Model

from spacy_hocrf.joint.component import JointPipe
from spacy_hocrf.joint.decoding import DualDecomposition
from spacy_hocrf.joint.trainers import JointMaxMargin

__all__ = ["Joint"]


@dataclass(frozen=True, kw_only=True)
class Joint:
    """Docs are decoded together where joint features connect them.

    features (Mapping[str, JointTemplate]): what should agree, by the names of the config's blocks.
    group_by (Optional[str]): extension attribute of Docs; neighbours with an equal value are
        decoded together. None: every Doc is decoded by itself.
    decoder (Optional[DualDecomposition]): how Docs are decoded together; None is
        `spacy-hocrf.DualDecomposition.v1` with its own settings.
    trainer (Optional[JointTrainer]): how the weights are learnt; None is
        `spacy-hocrf.JointMaxMargin.v1` with its own settings.
    learn (bool): are the weights learnt? If not, they are those of the templates or what is loaded
        or set.
    """

    features: Mapping[str, Any]
    group_by: str | None = None
    decoder: Any = None
    trainer: Any = None
    learn: bool = True

    def pipe(
        self, vocab: Vocab, model: Model[list[Doc], Any], name: str, **settings: Any
    ) -> JointPipe:
        """The component.

        settings (Any): those of a `SegmentationPipe`.
        RAISES (ValueError): H096 to H101 for bad features, decoder or group_by, H109 or H121 for a
            bad trainer; what a `SegmentationPipe` raises.
        """
        trainer = (self.trainer or JointMaxMargin()) if self.learn else None
        return JointPipe(
            vocab,
            model,
            name,
            templates=tuple(self.features.values()),
            group_by=self.group_by,
            joint_decoder=self.decoder or DualDecomposition(),
            joint_trainer=trainer,
            **settings,
        )
