"""Joint decoding of a component's Docs: its features, the decoder, and how the weights are learnt."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray
from spacy.tokens import Doc
from spacy.util import logger

from spacy_hocrf.annotation.groups import check_group_by, register
from spacy_hocrf.annotation.prediction import Prediction
from spacy_hocrf.annotation.targets import Target
from spacy_hocrf.answers.predictor import Predictor, Revise
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.saved import need
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.batches import group_batches, numbered
from spacy_hocrf.joint.corpus import JointMemory
from spacy_hocrf.joint.decoding import DualDecomposition, JointDecoder
from spacy_hocrf.joint.extensions import PROOFS, set_proof
from spacy_hocrf.joint.features import JointFeatures
from spacy_hocrf.joint.learning import JointModel, JointTrainer
from spacy_hocrf.joint.templates import HEAVIEST, JointTemplate, check_templates, refuse_joint
from spacy_hocrf.learning.learning import Learner
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import token_batches
from spacy_hocrf.saving.persistence import Section, described, differences
from spacy_hocrf.training.base import Run, Trainer, missing_members

__all__ = ["JointDecoding"]


class _Header(Struct, forbid_unknown_fields=True):
    """The saved header, beside the array of weights."""

    templates: dict[str, Any]  # meaning of each template, by name
    names: list[str]  # names of the features


class JointDecoding:
    """Decodes Docs of a component together where joint features connect them: `pipe.joint`. It saves its
    weights by the names of their features.

    templates (Sequence[JointTemplate]): find places that should agree, in Docs or in groups of them.
    decoder (DualDecomposition): how Docs are decoded together. It can be set.
    group_by (Optional[str]): consecutive Docs with an equal value of this extension attribute are decoded
        together. It can be set.
    trainer (Optional[JointTrainer]): how the joint weights are learnt; None leaves them as they are.
    name (str): name of the component. scheme (Callable[[], LabelScheme]): returns its labels.
    RAISES (ValueError): H096 to H101 for bad templates, decoder or group_by; H121 for an object that is not
        a trainer of joint weights.
    """

    setting = "[components.*.joint]"

    def __init__(
        self,
        templates: Sequence[JointTemplate],
        decoder: DualDecomposition,
        group_by: str | None,
        trainer: JointTrainer | None,
        *,
        name: str,
        target: Target,
        scheme: Callable[[], LabelScheme],
    ) -> None:
        self.templates = check_templates(templates)
        for template in self.templates:
            attribute = getattr(template, "attr", None)
            if attribute in target.answers:
                expected = "an attribute that the component itself does not predict"
                refuse_joint("attr", attribute, expected)
        if not isinstance(decoder, DualDecomposition):
            raise ValueError(Errors.H100.format(name=name, found=type(decoder).__name__))
        check_group_by(group_by, f"{name}.joint")
        register(*PROOFS)
        self.decoder, self.group_by = decoder, group_by
        self.trainer = None if decoder.ignores_patterns else trainer
        if self.trainer is not None and (missing := missing_members(self.trainer, JointTrainer)):
            kind, names = type(trainer).__name__, ", ".join(missing)
            raise ValueError(Errors.H121.format(name=name, found=kind, missing=names))
        self._name, self._scheme = name, scheme
        # by the names of the features; others have the initial weight of their template
        self._learnt: Mapping[str, float] = {}

    # Joint features

    @property
    def features(self) -> JointFeatures:
        """The templates' features for the labels. RAISES (ValueError): H042 before there are any labels."""
        return JointFeatures(self.templates, self._scheme())

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each joint feature, in the order of `weights`: its template, and label or state."""
        return self.features.names

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the joint features, float64 [G], nats. They can be set, except infinite ones, which
        stay infinite.

        RAISES (ValueError): H042 before there are any labels; when set, H102 for anything but G
            numbers of at most a million, apart from infinite weights.
        """
        return self._weights_of(self.features)

    @weights.setter
    def weights(self, weights: ArrayLike) -> None:
        features = self.features
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
        self._learnt = dict(zip(names, values.tolist()))

    def _weights_of(self, features: JointFeatures) -> NDArray[np.float64]:
        initial = features.initial_weights
        values = [self._learnt.get(*pair) for pair in zip(features.names, initial.tolist())]
        return np.where(features.hard, initial, np.array(values, dtype=np.float64))

    # Training

    @property
    def model(self) -> JointModel:
        """The parts of the component that trainers of joint weights need."""
        most = 0 if self.group_by is None else self.decoder.max_group_tokens
        return JointModel(self._name, self.templates, self.decoder, most)

    def check_beside(self, trainer: Trainer) -> None:
        """Check the local trainer. RAISES (ValueError): H109 if joint weights cannot be learnt beside it."""
        needs = None if self.trainer is None else self.trainer.lacks(trainer)
        if needs is not None:
            found = type(trainer).__name__
            raise ValueError(Errors.H109.format(name=self._name, found=found, needs=needs))

    @property
    def memory(self) -> JointMemory | None:
        """What a corpus stores for learning the joint weights; None if they are not learnt."""
        return None if self.trainer is None else JointMemory(self.templates)

    def learn(self, learner: Learner, run: Run) -> None:
        """Learn the joint weights after a step of the local trainer, if they are due."""
        learnt = None if self.trainer is None else self.trainer.learnt(run, learner, self.model)
        if learnt is None:
            return
        self.weights = learnt.weights
        if learnt.summary:
            pairs = zip(self.feature_names, learnt.weights.tolist())
            weights = "; ".join(f"{name}: {weight:.3g}" for name, weight in pairs)
            message = "%s: joint weights after %d steps: %s (%s)"
            logger.info(message, self._name, learner.steps, weights, learnt.summary)

    # Prediction

    def group_batches(
        self, stream: Iterable[Doc], size: int
    ) -> Iterator[tuple[list[Doc], NDArray[np.int64]]]:
        """Yield Docs of a stream in batches that split no group, and the numbers of their groups, int64 [D].

        size (int): least number of Docs in a batch; the last group is completed.
        """
        return group_batches(self._numbered(stream), size)

    def batches(
        self, docs: Sequence[Doc], groups: NDArray[np.int64] | None, predictor: Predictor
    ) -> Iterator[tuple[TokenBatch, Revise]]:
        """Yield Docs in batches, each with a function that revises its best segmentations.

        groups (Optional[int64 [D]]): numbers of the Docs' groups; None to compute them.
        """
        if groups is None:
            groups = np.array([number for number, _ in self._numbered(docs)], dtype=np.int64)
        features, rules = self.features, predictor.rules
        weights, pool = self._weights_of(features), predictor.exact.pool
        decoder = JointDecoder(features, weights, self.decoder, rules, pool)
        first = 0
        for batch in token_batches(docs, groups):
            last = first + len(batch.docs)
            yield batch, partial(decoder.decode, groups[first:last])
            first = last

    def set_proofs(self, docs: Iterable[Doc], predictions: Iterable[Prediction]) -> None:
        """Set `doc._.hocrf_gap`, `doc._.hocrf_certificate` and `doc._.hocrf_trace` of Docs that were decoded
        together.
        """
        for doc, prediction in zip(docs, predictions):
            if prediction.gap is not None:
                set_proof(doc, prediction.gap, prediction.certificate, prediction.trace)

    def _numbered(self, docs: Iterable[Doc]) -> Iterator[tuple[int, Doc]]:
        most = self.decoder.max_group_tokens
        return numbered(docs, self.group_by, most=most, name=self._name)

    # Persistence

    def saved(self) -> Section:
        """Return a section with the weights, and the meaning of their features."""
        header = {"templates": self._described(), "names": list(self.feature_names)}
        weights = self.weights
        return Section(header, {"weights": np.where(np.isinf(weights), 0.0, weights)})

    def checked(self, section: Section | None, scheme: LabelScheme) -> dict[str, float]:
        """Check a loaded section, and return weights by feature name; {} if saved without joint features.

        RAISES (ValueError): H039 or H134 for damaged data, H103 for other templates than the saved ones.
        """
        if section is None:
            return {}
        header = section.read("joint", _Header, ["weights"])
        changes = differences(header.templates, self._described(), "template ")
        if changes:
            raise ValueError(Errors.H103.format(difference="; ".join(changes), name=self._name))
        names, weights = header.names, section.arrays["weights"]
        need(names == list(JointFeatures(self.templates, scheme).names), "joint.names")
        need(weights.shape == (len(names),), "joint.weights")
        need((np.abs(weights) <= HEAVIEST).all(), "joint.weights")
        return dict(zip(names, weights.tolist()))

    def adopt(self, value: Mapping[str, float] | None) -> None:
        """Use these weights, by feature name; None for those of the templates."""
        self._learnt = value or {}

    def _described(self) -> dict[str, Any]:
        """Meaning of the templates, apart from their initial weights."""
        return {
            template.name: described(template, outside=template.outside, weight=None)
            for template in self.templates
        }
