"""The trainable pipeline component: learns a segmentation model inside `nlp.update` and assigns its
best segmentation.

`initialize` learns labels, features and label patterns and keeps the corpus; `update` registers
examples and reports the loss; `finish_update` lets the trainer take its step on the whole corpus,
such as an L-BFGS iteration. So batches only pace the loop, and every batcher, every
`accumulate_gradient` and the plain loop reach the same optimum.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples
from spacy.util import logger
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import expectations
from spacy_hocrf.errors import Errors, Warnings
from spacy_hocrf.joint.batches import group_batches, numbered
from spacy_hocrf.joint.config import make_global_features
from spacy_hocrf.joint.decoding import DualDecomposition, JointDecoder
from spacy_hocrf.joint.features import GlobalFeatures
from spacy_hocrf.joint.groups import GROUP
from spacy_hocrf.joint.learning import GlobalLearning, is_due
from spacy_hocrf.joint.perceptron import JointRun, JointSettings
from spacy_hocrf.joint.saving import GlobalWeightsKeeper
from spacy_hocrf.joint.templates import GlobalTemplate
from spacy_hocrf.joint.trainers import GlobalPerceptronTrainer, GlobalTrainer
from spacy_hocrf.model.architectures import model_of
from spacy_hocrf.model.structure import Structure, token_batches
from spacy_hocrf.pipeline.annotation import constrain
from spacy_hocrf.pipeline.archive import Payload, read_bytes, read_files, write_bytes, write_files
from spacy_hocrf.pipeline.corpus import Connections
from spacy_hocrf.pipeline.decoding import Decoder
from spacy_hocrf.pipeline.learning import Learner, begin_run
from spacy_hocrf.pipeline.persistence import Keeper, read, to_payload
from spacy_hocrf.pipeline.targets import Prediction, Target, annotate_proofs, span_score
from spacy_hocrf.training.base import Loss, Run, Trainer, missing_members
from spacy_hocrf.training.perceptron import AveragedPerceptronTrainer
from spacy_hocrf.types import Expectations, Potentials

__all__ = ["SegmentationPipe"]


class SegmentationPipe(TrainablePipe):
    """High-order CRF component; see the factories for its settings.

    vocab (Vocab): the shared vocabulary.
    model (Model[List[Doc], Potentials]): one of the registered architectures.
    name (str): name in the pipeline.
    target (Target): what is predicted.
    trainer (Trainer): how it is learnt.
    threshold (Optional[float]): decoded spans of a lower probability are dropped.
    scores (bool): compute the probability of every span.
    scorer (Optional[Callable]): scoring method.
    global_features (Optional[Sequence[GlobalTemplate]]): what should agree in Docs, or in groups of
        them.
    decoder (Optional[DualDecomposition]): how Docs are decoded that global features connect; None
        ignores those.
    group_by (Optional[str]): neighbours with an equal value of this extension attribute are decoded
        together.
    global_trainer (Optional[GlobalTrainer]): how the weights of global features are learnt; None
        leaves them as they are.
    cfg (Any): further settings for the scorer.
    RAISES (ValueError): H055, H056 or H058 for a bad threshold, model or trainer; H096 to H101 for
        bad global features, decoder or group_by; H109 for a bad global trainer.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], Potentials],
        name: str,
        *,
        target: Target,
        trainer: Trainer,
        threshold: float | None = None,
        scores: bool = True,
        scorer: Callable | None = None,
        global_features: Sequence[GlobalTemplate] | None = None,
        decoder: DualDecomposition | None = None,
        group_by: str | None = None,
        global_trainer: GlobalTrainer | None = None,
        **cfg: Any,
    ) -> None:
        if "structure" not in model.attrs:
            raise ValueError(Errors.H056.format(name=name, found=model.name))
        _check_trainer(trainer, name)
        if threshold is not None and not 0 <= threshold <= 1:
            raise ValueError(Errors.H055.format(found=threshold, name=name))
        super().__init__(vocab, model, name, threshold=threshold, **cfg)
        self.target = target
        self.trainer = trainer
        self.scorer = scorer
        self._scores = scores
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
        _check_global_trainer(self.global_trainer, trainer, name)
        connections = (
            None if self.global_trainer is None else Connections(self._templates, group_by)
        )
        joint = self._joint_learning
        self._learner = Learner(
            model,
            target,
            trainer,
            connections=connections,
            begin_run=begin_run if joint is None else joint.begin,
        )
        for proof in ("hocrf_gap", "hocrf_certificate"):
            if not Doc.has_extension(proof):
                Doc.set_extension(proof, default=None)
        if not Span.has_extension("hocrf_score"):
            Span.set_extension("hocrf_score", getter=span_score)

    @property
    def structure(self) -> Structure:
        """Labels, label patterns and features."""
        return self._learner.structure

    @property
    def automaton(self) -> Automaton:
        """States and arcs of the model."""
        return self._learner.automaton

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order in which they became known."""
        return tuple(self._learner.labels)

    @property
    def label_data(self) -> list[str]:
        """What `spacy init labels` writes and `initialize` takes."""
        return list(self._learner.labels)

    def add_label(self, label: str) -> int:
        """Add a label; a trained model keeps its weights.

        RETURNS (int): 1, or 0 if the label is known.
        RAISES (ValueError): H057 for anything but a non-empty string.
        """
        if not isinstance(label, str) or not label:
            raise ValueError(Errors.H057.format(label=label))
        if label in self._learner.labels:
            return 0
        self._learner.add_label(label)
        return 1

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
        """Learn labels, label patterns and features, and keep the corpus; the weights start at 0.

        get_examples (Callable[[], Iterable[Example]]): the training corpus.
        nlp (Optional[Language]): unused; part of spaCy's interface.
        labels (Optional[Sequence[str]]): all labels, as `spacy init labels` writes them; by default
            those of the corpus.
        RAISES (ValueError): H049 without examples, H050 without labels, H051 for a template that
            reads the answer. Whatever goes wrong, the component is as it was.
        """
        learner = self._learner.untrained(self.labels)
        unannotated = learner.begin(
            _validated(get_examples(), f"{type(self).__name__}.initialize"), labels
        )
        if unannotated and len(learner.corpus):
            warnings.warn(Warnings.W004.format(found=unannotated, name=self.name), stacklevel=2)
        self._adopt(learner)
        self._global_weights = {}

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Register examples and report their share of the loss; the step is taken in
        `finish_update`.

        examples (Iterable[Example]): a batch.
        drop (float): unused; the objective is exact.
        sgd (Optional[Optimizer]): calls `finish_update` at once.
        losses (Optional[Dict[str, float]]): the objective is added under the component's name, so
            that an epoch sums to it.
        RETURNS (Dict[str, float]): the losses.
        RAISES (ValueError): H007 for a document that no allowed segmentation covers, H040 for an
            unknown label, H042 before `initialize`; the documents are not taken in then.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        if not any(len(example.predicted) for example in examples):
            return losses
        if not self.structure.ready:
            raise ValueError(Errors.H042)
        if self.trainer.batchwise:
            losses[self.name] += self._update_batch(examples)
        else:
            usable = self._learner.add(examples)
            losses[self.name] += self._learner.loss() * usable / max(1, len(self._learner.corpus))
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Take the trainer's number of iterations on the whole corpus; nothing once it has
        converged.

        sgd (Optimizer): takes the step of a batch-wise trainer, and of no other.
        """
        if self.trainer.batchwise:
            self.model.finish_update(sgd)
            return
        run = self.run
        if run is not None and run.running:
            self._learner.step()
            if not run.running:
                logger.info("%s: %s", self.name, run.status)
            due = is_due(self._learner.steps, run.running) and not self._learner.adapts
            if isinstance(run, JointRun):
                self.global_weights = run.global_weights
            elif self.global_trainer is not None and due:
                self._learn_global_weights(self.global_trainer)

    def get_loss(
        self, examples: Iterable[Example], scores: Potentials
    ) -> tuple[float, Expectations]:
        """Negative log-likelihood of a batch, and its derivative by the log potentials.

        scores (Potentials): what the model predicts for the examples' Docs.
        RETURNS (Tuple[float, Expectations]): nats, and expected minus observed counts.
        RAISES (ValueError): H007 if no allowed segmentation agrees with an example's annotation.
        """
        examples = list(examples)
        learner = self._learner
        pieces = np.split(scores.allowed, scores.offsets[1:-1])
        annotations = [learner.as_modelled(self.target.annotation(example)) for example in examples]
        bits = [
            constrain(learner.scheme, piece, annotation)
            for piece, annotation in zip(pieces, annotations)
        ]
        free = expectations(scores, learner.automaton)
        known = expectations(replace(scores, allowed=np.concatenate(bits)), learner.automaton)
        bad = np.flatnonzero(np.isneginf(known.log_partition))
        if len(bad):
            raise ValueError(
                Errors.H007.format(text=repr(examples[int(bad[0])].predicted.text[:60]))
            )
        pairs = {
            name: (getattr(free, name), getattr(known, name)) for name in free.__dataclass_fields__
        }
        difference: dict[str, Any] = {
            name: None if one is None or other is None else one - other
            for name, (one, other) in pairs.items()
        }
        return float((free.log_partition - known.log_partition).sum()), Expectations(**difference)

    def objective(self) -> Loss:
        """The training objective of the corpus as it is now: call it with float64 weights [F].

        RAISES (ValueError): H042 before `initialize`, H081 for a trainer that has none.
        """
        return self._learner.objective()

    def set_trainer(self, trainer: Trainer) -> None:
        """Train on with other settings, another sigma for instance: from the weights there are, on
        the corpus there is.

        RAISES (ValueError): H058 for what is no trainer, H109 for one that global weights cannot be
            learnt beside.
        """
        _check_trainer(trainer, self.name)
        _check_global_trainer(self.global_trainer, trainer, self.name)
        self.trainer = trainer
        self._learner.set_trainer(trainer)

    @property
    def run(self) -> Run | None:
        """The training on the corpus as it is now; None while there is nothing to learn from, or
        with SGD.
        """
        return self._learner.run

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

    def _update_batch(self, examples: Sequence[Example]) -> float:
        """Accumulate the gradient of one batch in the model, with the batch's share of the prior."""
        learner = self._learner
        learner.admit([self.target.annotation(example) for example in examples])
        potentials, backprop = self.model.begin_update([example.predicted for example in examples])
        loss, d_potentials = self.get_loss(examples, potentials)
        backprop(d_potentials)
        penalty, gradient = learner.penalty()
        share = len(examples) / max(1, learner.documents)
        self.model.inc_grad("W", (share * gradient).astype(np.float32))
        return loss + share * penalty

    def _adopt(self, learner: Learner) -> None:
        """Become what was learnt or loaded elsewhere; the thinc Model stays, since optimizers know
        it by its id.
        """
        self.model.attrs["structure"] = learner.structure
        self.model.set_param("W", learner.model.get_param("W"))
        learner.model = self.model
        self._learner = learner

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
            return self._predict(list(docs))
        grouped = list(self._numbered(docs, settings))
        return self._predict(
            [doc for _, doc in grouped], np.array([number for number, _ in grouped], dtype=np.int64)
        )

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
                self.set_annotations(docs, self._predict(docs, groups))
                yield from docs
            except Exception as error:
                handle_error(self.name, self, docs, error)

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Prediction]) -> None:
        """Write predictions to their Docs."""
        docs, predictions = list(docs), list(scores)
        self.target.annotate(docs, predictions)
        annotate_proofs(docs, predictions)

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

    def _predict(
        self, docs: Sequence[Doc], groups: NDArray[np.int64] | None = None
    ) -> list[Prediction]:
        learner, settings = self._learner, self._joint_settings
        joint = (
            None
            if settings is None
            else JointDecoder(self.global_features, self.global_weights, settings)
        )
        decoder = Decoder(
            learner.structure,
            learner.scheme,
            learner.automaton,
            learner.placed_weights,
            self.target,
            joint,
        )
        predictions: list[Prediction] = []
        for batch, first in token_batches(docs, groups=groups):
            here = None if groups is None else groups[first : first + len(batch.docs)]
            predictions += decoder.predict(
                batch, scores=self._scores, threshold=self.cfg["threshold"], groups=here
            )
        return predictions

    # Persistence

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Settings, labels, features and weights; neither the corpus nor the optimiser's state."""
        return write_bytes(self._payload())

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "SegmentationPipe":
        """Replace everything learnt. RAISES (ValueError): H039, H052, H053 or H054; nothing has
        changed then.
        """
        self._become(read_bytes(bytes_data))
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """As `to_bytes`, into a folder; an interruption leaves the older model there."""
        write_files(self._payload(), Path(path))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SegmentationPipe":
        """As `from_bytes`."""
        self._become(read_files(Path(path)))
        return self

    @property
    def _keepers(self) -> dict[str, Keeper]:
        """What besides the model is saved with it, by the names of the sections."""
        return {
            "global_features": GlobalWeightsKeeper(
                self._templates,
                self.name,
                lambda: self.global_features,
                lambda: self.global_weights,
                self._set_known_weights,
            )
        }

    def _set_known_weights(self, weights: Mapping[str, float]) -> None:
        self._global_weights = dict(weights)

    def _payload(self) -> Payload:
        return to_payload(self._learner.learnt(), self.structure.settings, self._keepers)

    def _become(self, payload: Payload) -> None:
        """Replace everything learnt, or nothing if the model is refused."""
        keepers = self._keepers
        model = read(payload, self.structure.settings, keepers, self.name)
        learner = self._learner.untrained(model.labels)
        learner.restore(model)
        self._adopt(learner)
        for name, keeper in keepers.items():
            keeper.adopt(model.extra.get(name))

    def __reduce__(self) -> tuple[Callable, tuple]:
        joint: dict[str, Any] = {
            "global_features": self._templates or None,
            "decoder": self.decoder,
            "group_by": self.group_by,
        }
        joint["global_trainer"] = self.global_trainer
        arguments = (
            self.vocab,
            self.name,
            self.target,
            self.trainer,
            self._scores,
            self.scorer,
            {**joint, **self.cfg},
        )
        return _unpickle, (type(self), self.structure.settings, arguments, self.to_bytes())


def _check_trainer(trainer: Any, name: str) -> None:
    missing = missing_members(trainer)
    if missing:
        found = type(trainer).__name__
        raise ValueError(Errors.H058.format(name=name, found=found, missing=", ".join(missing)))


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


def _validated(examples: Iterable[Example], method: str) -> Iterator[Example]:
    """The examples one by one, so that nobody need hold them all."""
    for example in examples:
        validate_examples([example], method)
        yield example


def _unpickle(cls: type, settings: Any, arguments: tuple, state: bytes) -> SegmentationPipe:
    vocab, name, target, trainer, scores, scorer, cfg = arguments
    pipe: SegmentationPipe = cls(
        vocab,
        model_of(settings),
        name,
        target=target,
        trainer=trainer,
        scores=scores,
        scorer=scorer,
        **cfg,
    )
    return pipe.from_bytes(state)
