"""A component that also decodes documents together: what should agree in them, how they are decoded,
and how the weights of that are learnt.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import logger
from spacy.vocab import Vocab
from thinc.api import Model

from spacy_hocrf.annotation.prediction import Prediction
from spacy_hocrf.annotation.targets import Target
from spacy_hocrf.answers.predictor import Revise
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.batches import group_batches, numbered
from spacy_hocrf.joint.corpus import JointMemory
from spacy_hocrf.joint.decoding import DualDecomposition, JointDecoder
from spacy_hocrf.joint.extensions import GROUP, PROOFS, register, set_proof
from spacy_hocrf.joint.features import JointFeatures
from spacy_hocrf.joint.learning import JointModel, JointTrainer
from spacy_hocrf.joint.saving import JointWeightsKeeper
from spacy_hocrf.joint.templates import HEAVIEST, JointTemplate, check_templates
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.model.structure import Settings, token_batches
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.saving.persistence import Keeper
from spacy_hocrf.training.base import Run, Trainer, missing_members
from spacy_hocrf.types import Potentials

__all__ = ["JointPipe"]


class JointPipe(SegmentationPipe):
    """A component whose Docs are decoded together where joint features connect them.

    templates (Sequence[JointTemplate]): what should agree in Docs, or in groups of them.
    joint_decoder (DualDecomposition): how Docs are decoded together.
    group_by (Optional[str]): neighbours with an equal value of this extension attribute are decoded
        together.
    joint_trainer (Optional[JointTrainer]): how the joint weights are learnt; None leaves them as
        they are.
    settings (Any): those of a `SegmentationPipe`.
    RAISES (ValueError): H096 to H101 for bad templates, decoder or group_by; H109 for a local
        trainer beside which the joint weights cannot be learnt, H121 for what is no trainer of
        those; what a `SegmentationPipe` raises.
    """

    _settable = SegmentationPipe._settable | {"group_by", "joint_decoder", "joint_trainer"}

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], Potentials],
        name: str,
        *,
        target: Target,
        trainer: Trainer,
        templates: Sequence[JointTemplate],
        joint_decoder: DualDecomposition,
        group_by: str | None = None,
        joint_trainer: JointTrainer | None = None,
        **settings: Any,
    ) -> None:
        self._templates = check_templates(templates)
        for template in self._templates:
            attribute = getattr(template, "attr", None)
            if attribute in target.answers:
                expected = "an attribute that the component itself does not predict"
                raise ValueError(
                    Errors.H099.format(name="attr", found=attribute, expected=expected)
                )
        if not isinstance(joint_decoder, DualDecomposition):
            raise ValueError(Errors.H100.format(name=name, found=type(joint_decoder).__name__))
        self.joint_decoder = joint_decoder
        # by the names of the features; others have their template's weight
        self._joint_weights: dict[str, float] = {}
        if group_by is not None and not Doc.has_extension(group_by):
            if group_by != GROUP:
                raise ValueError(Errors.H101.format(name=group_by, pipe=name))
            register(GROUP)
        self.group_by = group_by
        self.joint_trainer = None if joint_decoder.ignores_patterns else joint_trainer
        register(*PROOFS)
        super().__init__(vocab, model, name, target=target, trainer=trainer, **settings)
        _check_joint_trainer(self.joint_trainer, trainer, name)

    def _make_learner(self, model: Model[list[Doc], Potentials]) -> Learner:
        if self.joint_trainer is None:
            return super()._make_learner(model)
        memory = JointMemory(self._templates, self.group_by)
        begin = partial(_begin, self.joint_trainer, self._joint_model)
        return Learner(model, self.target, self.trainer, memory=memory, begin_run=begin)

    # Joint features

    @property
    def joint_templates(self) -> tuple[JointTemplate, ...]:
        """What should agree."""
        return self._templates

    @property
    def joint_features(self) -> JointFeatures:
        """The templates' features for the labels. RAISES (ValueError): H042 before there are any
        labels.
        """
        return JointFeatures(self._templates, self._learner.scheme)

    @property
    def joint_feature_names(self) -> tuple[str, ...]:
        """Of each joint feature its template, and its label or state: what each of `joint_weights`
        is for.
        """
        return self.joint_features.names

    @property
    def joint_weights(self) -> NDArray[np.float64]:
        """Weights of the joint features, float64 [G], nats; can be set, but for those that are infinite
        and remain so.

        RAISES (ValueError): H042 before there are any labels; when set, H102 for anything but G
            numbers of at most a million, but for those.
        """
        return self._weights_of(self.joint_features)

    @joint_weights.setter
    def joint_weights(self, weights: ArrayLike) -> None:
        features = self.joint_features
        names = features.names
        values = np.asarray(weights, dtype=np.float64)
        within = np.abs(values) <= HEAVIEST
        if values.shape != (len(names),) or not (within | features.hard).all():
            found = (
                values.tolist()
                if values.ndim == 1 and len(values) < 10
                else f"an array of the extents {values.shape}"
            )
            raise ValueError(Errors.H102.format(found=found, expected=len(names), most=HEAVIEST))
        self._joint_weights = dict(zip(names, values.tolist()))

    def _weights_of(self, features: JointFeatures) -> NDArray[np.float64]:
        known, initial = self._joint_weights, features.initial_weights
        found = [known.get(*pair) for pair in zip(features.names, initial.tolist())]
        return np.where(features.hard, initial, np.array(found, dtype=np.float64))

    @property
    def _joint_model(self) -> JointModel:
        return JointModel(
            self.name, self._templates, self.joint_decoder, lambda: self.joint_weights
        )

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Any = None,
        labels: Sequence[str] | None = None,
        corpus: Callable[[Any], Iterable[Example]] | None = None,
    ) -> None:
        """As `SegmentationPipe.initialize`; the joint weights are those of their templates."""
        super().initialize(get_examples, nlp=nlp, labels=labels, corpus=corpus)
        self._joint_weights = {}

    def set_trainer(self, trainer: Trainer) -> None:
        """As `SegmentationPipe.set_trainer`.

        RAISES (ValueError): H058 for what is no trainer, H109 for one that joint weights cannot be
            learnt beside.
        """
        _check_joint_trainer(self.joint_trainer, trainer, self.name)
        super().set_trainer(trainer)

    def _after_step(self, run: Run) -> None:
        if self.joint_decoder.ignores_patterns:
            super()._after_step(run)
            return
        if self.joint_trainer is None:
            return
        learner = self._learner
        learnt = self.joint_trainer.learnt(run, learner, self._joint_model)
        if learnt is None:
            return
        self.joint_weights = learnt.weights
        if learnt.summary:
            weights = "; ".join(
                f"{name}: {weight:.3g}"
                for name, weight in zip(self.joint_feature_names, learnt.weights.tolist())
            )
            logger.info(
                "%s: joint weights after %d steps: %s (%s)",
                self.name,
                learner.steps,
                weights,
                learnt.summary,
            )

    # Prediction

    def predict(self, docs: Iterable[Doc]) -> list[Prediction]:
        """The best segmentation of each Doc; the Docs are not changed.

        docs (Iterable[Doc]): neighbours of one group, which is a single Doc by default, are decoded
            together where joint features connect them.
        RETURNS (List[Prediction]): decoded spans, trimmed of white space and filtered by the
            threshold.
        RAISES (ValueError): H007 if a Doc has no allowed segmentation, H042 before training.
        """
        if self.joint_decoder.ignores_patterns:
            return super().predict(docs)
        grouped = list(self._numbered(docs))
        numbers = np.array([number for number, _ in grouped], dtype=np.int64)
        return self._predict(self._batches([doc for _, doc in grouped], numbers))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Predict and annotate a stream of Docs.

        batch_size (int): Docs decoded at a time; with `group_by`, as many more as complete a group.
        RETURNS (Iterator[Doc]): the Docs, in order.
        """
        if self.joint_decoder.ignores_patterns or self.group_by is None:
            yield from super().pipe(stream, batch_size=batch_size)
            return
        handle_error = self.get_error_handler()
        for docs, groups in group_batches(self._numbered(stream), batch_size):
            try:
                self._annotate(docs, self._predict(self._batches(docs, groups)))
                yield from docs
            except Exception as error:
                handle_error(self.name, self, docs, error)

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Prediction]) -> None:
        """Write predictions to their Docs, and `doc._.hocrf_gap`, `doc._.hocrf_certificate` and
        `doc._.hocrf_trace` where Docs are decoded together.
        """
        docs = list(docs)
        super().set_annotations(docs, scores)
        for doc, prediction in zip(docs, scores):
            if prediction.gap is not None:
                set_proof(doc, prediction.gap, prediction.certificate, prediction.trace)

    def _numbered(self, docs: Iterable[Doc]) -> Iterator[tuple[int, Doc]]:
        most = self.joint_decoder.max_group_tokens
        return numbered(docs, self.group_by, most=most, name=self.name)

    def _batches(
        self, docs: Sequence[Doc], groups: NDArray[np.int64]
    ) -> Iterator[tuple[TokenBatch, Revise]]:
        features, rules = self.joint_features, self._compiled_rules()
        known = features, self._weights_of(features), self.joint_decoder, rules
        decoder = JointDecoder(*known, self._reader.exact.pool)
        for batch, first in token_batches(docs, groups=groups):
            yield batch, partial(decoder.decode, groups[first : first + len(batch.docs)])

    # Persistence

    def _keepers(self, settings: Settings) -> dict[str, Keeper]:
        keeper = JointWeightsKeeper(
            self._templates,
            self.name,
            lambda: self.joint_features,
            lambda: self.joint_weights,
            self._set_known_weights,
        )
        return {**super()._keepers(settings), "joint": keeper}

    def _set_known_weights(self, weights: Mapping[str, float]) -> None:
        self._joint_weights = dict(weights)

    def _settings(self) -> dict[str, Any]:
        return {
            **super()._settings(),
            "templates": self._templates,
            "joint_decoder": self.joint_decoder,
            "group_by": self.group_by,
            "joint_trainer": self.joint_trainer,
        }


def _begin(trainer: JointTrainer, joint: JointModel, learner: Learner) -> Run:
    return trainer.begin(learner, joint)


def _check_joint_trainer(joint_trainer: Any, trainer: Trainer, name: str) -> None:
    if joint_trainer is None:
        return
    missing = missing_members(joint_trainer, JointTrainer)
    if missing:
        found = type(joint_trainer).__name__
        raise ValueError(Errors.H121.format(name=name, found=found, missing=", ".join(missing)))
    needs = joint_trainer.lacks(trainer)
    if needs is not None:
        raise ValueError(Errors.H109.format(name=name, found=type(trainer).__name__, needs=needs))
