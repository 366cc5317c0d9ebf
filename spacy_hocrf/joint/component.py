"""A component that also decodes documents together: what should agree in them, how they are decoded,
and how the weights of that are learnt.
"""

import warnings
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

from spacy_hocrf.errors import Errors, Warnings
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.batches import group_batches, numbered
from spacy_hocrf.joint.config import make_global_features
from spacy_hocrf.joint.connections import Connections
from spacy_hocrf.joint.decoding import DualDecomposition, JointDecoder
from spacy_hocrf.joint.features import GlobalFeatures
from spacy_hocrf.joint.groups import GROUP
from spacy_hocrf.joint.learning import GlobalLearning, is_due
from spacy_hocrf.joint.perceptron import JointRun, JointSettings
from spacy_hocrf.joint.saving import GlobalWeightsKeeper
from spacy_hocrf.joint.templates import GlobalTemplate
from spacy_hocrf.joint.trainers import GlobalPerceptronTrainer, GlobalTrainer
from spacy_hocrf.model.structure import token_batches
from spacy_hocrf.pipeline.component import SegmentationPipe
from spacy_hocrf.pipeline.decoding import Revise
from spacy_hocrf.pipeline.learning import Learner, begin_run
from spacy_hocrf.pipeline.persistence import Keeper
from spacy_hocrf.pipeline.targets import Prediction, Target
from spacy_hocrf.training.base import Run, Trainer
from spacy_hocrf.training.perceptron import AveragedPerceptronTrainer
from spacy_hocrf.types import Potentials

__all__ = ["JointPipe"]


class JointPipe(SegmentationPipe):
    """A component whose Docs are decoded together where global features connect them.

    global_features (Optional[Sequence[GlobalTemplate]]): what should agree in Docs, or in groups of
        them.
    decoder (Optional[DualDecomposition]): how Docs are decoded that global features connect; None
        ignores those.
    group_by (Optional[str]): neighbours with an equal value of this extension attribute are decoded
        together.
    global_trainer (Optional[GlobalTrainer]): how the weights of global features are learnt; None
        leaves them as they are.
    settings (Any): those of a `SegmentationPipe`.
    RAISES (ValueError): H096 to H101 for bad global features, decoder or group_by; H109 for a bad
        global trainer; what a `SegmentationPipe` raises.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], Potentials],
        name: str,
        *,
        target: Target,
        trainer: Trainer,
        global_features: Sequence[GlobalTemplate] | None = None,
        decoder: DualDecomposition | None = None,
        group_by: str | None = None,
        global_trainer: GlobalTrainer | None = None,
        **settings: Any,
    ) -> None:
        self._templates = (
            () if global_features is None else tuple(make_global_features(global_features))
        )
        for template in self._templates:
            attribute = getattr(template, "attr", None)
            if attribute in target.answers:
                expected = "an attribute that the component itself does not predict"
                raise ValueError(
                    Errors.H099.format(name="attr", found=attribute, expected=expected)
                )
        if not isinstance(decoder, DualDecomposition | None):
            raise ValueError(Errors.H100.format(name=name, found=type(decoder).__name__))
        self.decoder = decoder
        # by the names of the features; others have their template's weight
        self._global_weights: dict[str, float] = {}
        if group_by is not None and not Doc.has_extension(group_by):
            if group_by != GROUP:
                raise ValueError(Errors.H101.format(name=group_by, pipe=name))
            Doc.set_extension(GROUP, default=None)
        self.group_by = group_by
        self.global_trainer = global_trainer if self._joint_settings is not None else None
        for proof in ("hocrf_gap", "hocrf_certificate"):
            if not Doc.has_extension(proof):
                Doc.set_extension(proof, default=None)
        super().__init__(vocab, model, name, target=target, trainer=trainer, **settings)
        _check_global_trainer(self.global_trainer, trainer, name)

    def _make_learner(self, model: Model[list[Doc], Potentials]) -> Learner:
        joint = self._joint_learning
        return Learner(
            model,
            self.target,
            self.trainer,
            memory=None
            if self.global_trainer is None
            else Connections(self._templates, self.group_by),
            begin_run=begin_run if joint is None else joint.begin,
        )

    # Global features

    @property
    def global_templates(self) -> tuple[GlobalTemplate, ...]:
        """What should agree; none without `[components.*.global_features]`."""
        return self._templates

    @property
    def global_features(self) -> GlobalFeatures:
        """The templates' features for the labels. RAISES (ValueError): H042 before there are any
        labels.
        """
        return GlobalFeatures(self._templates, self._learner.scheme)

    @property
    def global_feature_names(self) -> tuple[str, ...]:
        """Of each global feature its template, and its label or state: what each of
        `global_weights` is for.
        """
        return self.global_features.names

    @property
    def global_weights(self) -> NDArray[np.float64]:
        """Weights of the global features, float64 [G], nats; can be set.

        RAISES (ValueError): H042 before there are any labels; when set, H102 for anything but G
            finite numbers.
        """
        features = self.global_features
        known = self._global_weights
        return np.array(
            [known.get(*pair) for pair in zip(features.names, features.initial_weights.tolist())],
            dtype=np.float64,
        )

    @global_weights.setter
    def global_weights(self, weights: ArrayLike) -> None:
        names = self.global_feature_names
        values = np.asarray(weights, dtype=np.float64)
        if values.shape != (len(names),) or not np.isfinite(values).all():
            found = (
                values.tolist()
                if values.ndim == 1 and len(values) < 10
                else f"an array of the extents {values.shape}"
            )
            raise ValueError(Errors.H102.format(found=found, expected=len(names)))
        self._global_weights = dict(zip(names, values.tolist()))

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Any = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        """As `SegmentationPipe.initialize`; the global weights are those of their templates."""
        super().initialize(get_examples, nlp=nlp, labels=labels)
        self._global_weights = {}

    def set_trainer(self, trainer: Trainer) -> None:
        """As `SegmentationPipe.set_trainer`.

        RAISES (ValueError): H058 for what is no trainer, H109 for one that global weights cannot be
            learnt beside.
        """
        _check_global_trainer(self.global_trainer, trainer, self.name)
        super().set_trainer(trainer)

    def _after_step(self, run: Run) -> None:
        learner = self._learner
        if isinstance(run, JointRun):
            self.global_weights = run.global_weights
        elif self.global_trainer is not None and not learner.adapts:
            if is_due(learner.steps, run.running):
                self._learn_global_weights(self.global_trainer)

    @property
    def _joint_learning(self) -> JointSettings | None:
        """None unless the local trainer learns the global weights."""
        trainer, settings = self.global_trainer, self._joint_settings
        if (
            not isinstance(trainer, GlobalPerceptronTrainer)
            or settings is None
            or not trainer.joint
        ):
            return None
        return JointSettings(
            self._templates,
            settings,
            trainer.nonnegative,
            trainer.bounded,
            lambda: self.global_weights,
        )

    def _learn_global_weights(self, trainer: GlobalTrainer) -> None:
        """Learn them anew from the corpus, beside local models that have had as many steps as this
        one.
        """
        features, settings = self.global_features, self._joint_settings
        assert settings is not None
        learnt = GlobalLearning(trainer, features, settings).learn(self._learner)
        if learnt is None:
            warnings.warn(Warnings.W009.format(name=self.name), stacklevel=2)
            return
        self.global_weights = learnt.weights
        weights = "; ".join(
            f"{name}: {weight:.3g}" for name, weight in zip(features.names, learnt.weights.tolist())
        )
        logger.info(
            "%s: global weights after %d steps: %s (%s)",
            self.name,
            self._learner.steps,
            weights,
            learnt.summary,
        )

    # Prediction

    def predict(self, docs: Iterable[Doc]) -> list[Prediction]:
        """The best segmentation of each Doc; the Docs are not changed.

        docs (Iterable[Doc]): neighbours of one group, which is a single Doc by default, are decoded
            together where global features connect them.
        RETURNS (List[Prediction]): decoded spans, trimmed of white space and filtered by the
            threshold.
        RAISES (ValueError): H007 if a Doc has no allowed segmentation, H042 before training.
        """
        settings = self._joint_settings
        if settings is None:
            return super().predict(docs)
        grouped = list(self._numbered(docs, settings))
        numbers = np.array([number for number, _ in grouped], dtype=np.int64)
        return self._predict(self._batches([doc for _, doc in grouped], numbers, settings))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Predict and annotate a stream of Docs.

        batch_size (int): Docs decoded at a time; with `group_by`, as many more as complete a group.
        RETURNS (Iterator[Doc]): the Docs, in order.
        """
        settings = self._joint_settings
        if settings is None or self.group_by is None:
            yield from super().pipe(stream, batch_size=batch_size)
            return
        handle_error = self.get_error_handler()
        for docs, groups in group_batches(self._numbered(stream, settings), batch_size):
            try:
                batches = self._batches(docs, groups, settings)
                self.set_annotations(docs, self._predict(batches))
                yield from docs
            except Exception as error:
                handle_error(self.name, self, docs, error)

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Prediction]) -> None:
        """Write predictions to their Docs, and `doc._.hocrf_gap` and `doc._.hocrf_certificate`
        where Docs are decoded together.
        """
        docs, predictions = list(docs), list(scores)
        super().set_annotations(docs, predictions)
        for doc, prediction in zip(docs, predictions):
            if prediction.gap is not None:
                doc._.hocrf_gap, doc._.hocrf_certificate = prediction.gap, prediction.certificate

    def _numbered(
        self, docs: Iterable[Doc], settings: DualDecomposition
    ) -> Iterator[tuple[int, Doc]]:
        return numbered(docs, self.group_by, most=settings.max_group_tokens, name=self.name)

    @property
    def _joint_settings(self) -> DualDecomposition | None:
        """None if every Doc is decoded by itself and for itself."""
        return (
            self.decoder
            if self._templates and self.decoder is not None and not self.decoder.ignores_patterns
            else None
        )

    def _batches(
        self, docs: Sequence[Doc], groups: NDArray[np.int64], settings: DualDecomposition
    ) -> Iterator[tuple[TokenBatch, Revise]]:
        decoder = JointDecoder(self.global_features, self.global_weights, settings)
        for batch, first in token_batches(docs, groups=groups):
            yield batch, partial(decoder.decode, groups[first : first + len(batch.docs)])

    # Persistence

    @property
    def _keepers(self) -> dict[str, Keeper]:
        keeper = GlobalWeightsKeeper(
            self._templates,
            self.name,
            lambda: self.global_features,
            lambda: self.global_weights,
            self._set_known_weights,
        )
        return {**super()._keepers, "global_features": keeper}

    def _set_known_weights(self, weights: Mapping[str, float]) -> None:
        self._global_weights = dict(weights)

    def _settings(self) -> dict[str, Any]:
        return {
            **super()._settings(),
            "global_features": self._templates or None,
            "decoder": self.decoder,
            "group_by": self.group_by,
            "global_trainer": self.global_trainer,
        }


def _check_global_trainer(global_trainer: Any, trainer: Trainer, name: str) -> None:
    if not isinstance(global_trainer, GlobalTrainer | None):
        raise ValueError(
            Errors.H109.format(name=name, found=type(global_trainer).__name__, needs="or null")
        )
    if global_trainer is not None and trainer.batchwise:
        needs = "beside a trainer that runs over the whole corpus"
        raise ValueError(Errors.H109.format(name=name, found=type(trainer).__name__, needs=needs))
    if (
        global_trainer is not None
        and global_trainer.joint
        and not isinstance(trainer, AveragedPerceptronTrainer)
    ):
        needs = "with joint = true beside spacy-hocrf.AveragedPerceptron.v1"
        raise ValueError(Errors.H109.format(name=name, found=type(trainer).__name__, needs=needs))
