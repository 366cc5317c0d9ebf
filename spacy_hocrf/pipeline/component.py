"""The trainable pipeline component: learns a segmentation model in `nlp.update` and sets its best
segmentation.

`initialize` learns labels, features and label patterns and keeps the corpus; `update` registers examples and
reports the loss; `finish_update` lets the trainer take its step on the whole corpus, such as an L-BFGS
iteration. So batches only set the pace of the loop: every batcher, every `accumulate_gradient` and the plain
loop reach the same optimum.

`add_pipe` should be fast, so everything for learning, predicting, saving and loading is imported where it is
used.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.util import logger, minibatch
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer

from spacy_hocrf.annotation.errors import ComponentErrors, ReadingErrors
from spacy_hocrf.annotation.groups import check_group_by, register
from spacy_hocrf.annotation.prediction import PredictedDocs
from spacy_hocrf.annotation.probabilities import register_scores
from spacy_hocrf.annotation.teachers import check_teachers
from spacy_hocrf.annotation.weights import WEIGHT
from spacy_hocrf.answers.decoders import Decoder, Reranked, checked_decoder
from spacy_hocrf.errors import Errors
from spacy_hocrf.learning.learnt_decoder import LearntDecoder
from spacy_hocrf.learning.rule_prices import RulePrices
from spacy_hocrf.locks import new_lock
from spacy_hocrf.model.architectures import model_of, replace_weights, weights_of
from spacy_hocrf.model.structure import Settings, Structure, token_batches
from spacy_hocrf.saving.storage import StoredPipe
from spacy_hocrf.training.base import Trainer, check_ratio, check_trainer
from spacy_hocrf.types import is_number
from spacy_hocrf.warnings import Warnings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from spacy.tokens import Span

    from spacy_hocrf.annotation.acceptance import Acceptance
    from spacy_hocrf.annotation.gold import Gold
    from spacy_hocrf.annotation.prediction import BatchPrediction, Prediction
    from spacy_hocrf.annotation.targets import Target
    from spacy_hocrf.answers.contrast import Asked
    from spacy_hocrf.answers.explaining import Explanation
    from spacy_hocrf.answers.predictor import Predictor, Revise
    from spacy_hocrf.answers.reading import Reading
    from spacy_hocrf.engine.automaton import Automaton
    from spacy_hocrf.features.tokens import TokenBatch
    from spacy_hocrf.joint.settings import Joint
    from spacy_hocrf.joint.together import JointDecoding
    from spacy_hocrf.learning.choice import Choice
    from spacy_hocrf.learning.learning import Learner, Snapshot
    from spacy_hocrf.rules.compiled import CompiledRules
    from spacy_hocrf.rules.constraints import Constraints
    from spacy_hocrf.saving.archive import Payload
    from spacy_hocrf.saving.persistence import Keeper
    from spacy_hocrf.training.base import Loss, Run
    from spacy_hocrf.types import Expectations, Potentials

__all__ = ["SegmentationPipe", "checked_threshold"]


class SegmentationPipe(StoredPipe, TrainablePipe):
    """High-order CRF component; see the factories for its settings.

    vocab (Vocab): the shared vocabulary.
    model (Model[List[Doc], Potentials]): a model made by `spacy-hocrf.HighOrderCRF.v1`.
    name (str): name in the pipeline.
    target (Target): what is predicted.
    trainer (Trainer): how the model is trained.
    threshold (Optional[float]): drop decoded spans with a lower probability.
    scores (bool): compute the probability of every span.
    scorer (Optional[Callable]): scoring method.
    decoder (Optional[Decoder]): how an answer is read off the model; None for `Viterbi`.
    constraints (Optional[Constraints]): constraints on the spans of every text.
    joint (Optional[Joint]): which Docs are decoded together, and how; None to decode every Doc by itself.
    group_by (Optional[str]): extension attribute of Docs; Docs with the same value are held out together.
        None for that of `joint`.
    positives_only (bool): in training texts, is everything outside the annotated spans unknown?
    teachers (Sequence[str]): span groups that complement the annotation of training texts.
    cfg (Any): further settings for the scorer.
    RAISES (ValueError): H055, H056, H058 or H118 for a bad threshold, model, trainer or decoder; H096 to
        H101, H109 and H121 for bad joint settings, H101 or H481 for a bad group_by, H214 for invalid
        constraints, H532 for settings that exclude positives_only, H537 for invalid teachers.
    """

    _settable = frozenset({"constraints", "error_handler", "scorer", "target", "threshold"})
    cfg: dict[str, Any]
    target: "Target"

    # each with the objects that it was made of: valid as long as these are the current ones
    _cached_predictor: "tuple[tuple[Any, ...], Predictor] | None" = None
    _cached_fingerprint: "tuple[tuple[Any, ...], str] | None" = None

    def __init__(
        self,
        vocab: Vocab,
        model: "Model[list[Doc], Potentials]",
        name: str,
        *,
        target: "Target",
        trainer: Trainer,
        threshold: float | None = None,
        scores: bool = True,
        scorer: Callable[..., Any] | None = None,
        decoder: Decoder | None = None,
        constraints: "Constraints | None" = None,
        joint: "Joint | None" = None,
        group_by: str | None = None,
        positives_only: bool = False,
        teachers: Sequence[str] = (),
        **cfg: Any,
    ) -> None:
        if "structure" not in model.attrs:
            raise ValueError(Errors.H056.format(name=name, found=model.name))
        check_trainer(trainer, name)
        if positives_only:
            check_ratio(trainer, name, joint is not None)
        check_teachers(teachers, target.place, name)
        super().__init__(vocab, model, name, threshold=checked_threshold(threshold, name), **cfg)
        self.target = target
        self._configured_threshold, self._configured_constraints = self.threshold, constraints
        self._trainer = trainer
        self.scorer = scorer
        self.constraints = constraints
        self._scores = scores
        settings: Settings = model.attrs["structure"].settings
        self._decoder = LearntDecoder(checked_decoder(decoder, name, settings.encoding), name)
        self._prices = RulePrices(self._constraints, name)
        self._lock = new_lock()
        self._learning: Learner | None = None
        self._joint_settings, self._joint = joint, None
        if joint is not None:
            self._joint = joint.decoding(name, target, lambda: self._learner.scheme)
            self._joint.check_beside(trainer)
            if group_by is not None and self._joint.group_by not in (None, group_by):
                both = {"found": group_by, "joint": self._joint.group_by}
                raise ValueError(Errors.H481.format(**both, name=name))
        check_group_by(group_by, name)
        register(WEIGHT)
        self._group_by = group_by
        self._positives_only, self._teachers = positives_only, tuple(teachers)
        self._acceptance: Acceptance | None = None
        register_scores()

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute.

        RAISES (ValueError): H460 for one that does not exist or is read-only, such as a setting: changing it
            would have no effect.
        """
        member = getattr(type(self), name, self)
        read_only = member is self or (isinstance(member, property) and member.fset is None)
        if read_only and not name.startswith("_") and name not in self._settable:
            known = ", ".join(sorted(self._settable))
            raise ValueError(ComponentErrors.H460.format(found=name, known=known, name=self.name))
        super().__setattr__(name, value)

    @property
    def trainer(self) -> Trainer:
        """How the model is trained; see `set_trainer`."""
        return self._trainer

    @property
    def threshold(self) -> float | None:
        """Decoded spans with a lower probability are dropped; None keeps all. It can be set, and is saved
        with the model: whoever loads it gets this threshold instead of that of the config, unless the config
        was changed, too.

        RAISES (ValueError): H055 for anything but a number from 0 to 1, H203 for None where all spans are
            written that reach it.
        """
        threshold: float | None = self.cfg["threshold"]
        return threshold

    @threshold.setter
    def threshold(self, value: float | None) -> None:
        if value is None and self.target.overlapping:
            raise ValueError(ReadingErrors.H203.format(found="threshold = None", name=self.name))
        self.cfg = {**self.cfg, "threshold": checked_threshold(value, self.name)}

    @property
    def constraints(self) -> "Constraints | None":
        """Constraints on the spans of every text; None for none. It can be set, but what was set is not
        saved: a loaded pipeline has the constraints of its config.

        RAISES (ValueError): H214 for anything but `Constraints`.
        """
        return self._constraints_setting

    @constraints.setter
    def constraints(self, value: "Constraints | None") -> None:
        if value is not None:
            from spacy_hocrf.rules.constraints import Constraints
            from spacy_hocrf.rules.templates import refuse_rule

            if not isinstance(value, Constraints):
                refuse_rule(
                    "constraints", type(value).__name__, "what spacy-hocrf.Constraints.v1 makes"
                )
        self._constraints_setting = value

    @property
    def acceptance(self) -> "Acceptance | None":
        """The probability from which a text is accepted unread, as found by `hocrf calibrate --accept`. Docs
        then have `doc._.hocrf_probability`, the probability that all their spans are right, and
        `doc._.hocrf_accepted`. It can be set and is saved with the model. It is removed when training
        continues, and (with a warning) when settings change that decide which spans are shown. If it depends
        on an extension attribute, that is registered.
        """
        if self._acceptance and self._acceptance.shown != self._output_fingerprint():
            warnings.warn(Warnings.W051.format(name=self.name), stacklevel=2)
            self._acceptance = None
        return self._acceptance

    @acceptance.setter
    def acceptance(self, value: "Acceptance | None") -> None:
        if value is not None:
            from msgspec.structs import replace

            value = replace(value, shown=value.shown or self._output_fingerprint())
            if value.by is not None:
                register(value.by)
        self._acceptance = value

    def _output_fingerprint(self) -> str:
        """Return a fingerprint of the settings that decide which spans are shown."""
        from spacy_hocrf.annotation.acceptance import fingerprint

        decoder, prices = self._decoder.current, self._prices.learnt
        key = decoder, self.constraints, prices, self.target, self.threshold
        if self._cached_fingerprint is None or not all(map(is_, key, self._cached_fingerprint[0])):
            sorted_prices = sorted((rule, float(price)) for rule, price in prices.items())
            target = self.target
            written = target.place, target.overlapping, getattr(target, "overwrite", None)
            settings = sorted_prices, *written, self.threshold, self._joint_settings
            self._cached_fingerprint = key, fingerprint(decoder, self._constraints(), *settings)
        return self._cached_fingerprint[1]

    @property
    def _learner(self) -> "Learner":
        """The learner of the model, created on first use."""
        with self._lock:
            if self._learning is None:
                from spacy_hocrf.annotation.gold import Gold
                from spacy_hocrf.learning.learning import Learner

                memory = None if self._joint is None else self._joint.memory
                self._learning = Learner(
                    self.model,
                    Gold(self.target, positives_only=self._positives_only, teachers=self._teachers),
                    self.trainer,
                    memory=memory,
                    constraints=self._constraints() if memory is None else None,
                    group_by=self.group_by,
                )
                self._learning.lock = self._lock
            return self._learning

    def _after_step(self, run: "Run") -> None:
        """Learn prices of rules, and what the decoder needs, after a step of the trainer."""
        self._acceptance = None  # its guarantee holds for the previous model
        self._prices.learn(self._learner, run)
        if self._joint is None or self._joint.decoder.ignores_patterns:
            self._decoder.learn(self._learner, run)
        else:
            self._joint.learn(self._learner, run)

    @property
    def joint(self) -> "JointDecoding | None":
        """Joint decoding of Docs, with its weights; None if every Doc is decoded by itself."""
        return self._joint

    @property
    def group_by(self) -> str | None:
        """Extension attribute of Docs; Docs with the same value are held out together. None if not set."""
        joint = None if self._joint is None else self._joint.group_by
        return joint if self._group_by is None else self._group_by

    @property
    def structure(self) -> Structure:
        """Labels, label patterns and features."""
        return self._learner.structure

    @property
    def automaton(self) -> "Automaton":
        """States and arcs of the model."""
        return self._learner.plain

    @property
    def choice(self) -> "Choice | None":
        """Values chosen for settings that are "auto": sigma, order, the width of the window, and the
        decoder's cost once it is learnt; and the temperature found by `temper`. None if nothing was chosen.
        """
        choice, cost = self._learner.choice, self._decoder.cost
        if cost is None:
            return choice
        from spacy_hocrf.learning.choice import Choice

        return replace(choice or Choice(), cost=cost)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order in which they became known."""
        return tuple(self._learner.labels)

    @property
    def label_data(self) -> list[str]:
        """Data for `spacy init labels`, which `initialize` takes."""
        return list(self._learner.labels)

    def add_label(self, label: str) -> int:
        """Add a label; a trained model keeps its weights.

        RETURNS (int): 1, or 0 if the label is known.
        RAISES (ValueError): H057 for anything but a non-empty string, H132 for invalid Unicode.
        """
        from spacy_hocrf.model.scheme import check_labels

        check_labels([label])
        if label in self._learner.labels:
            return 0
        self._learner.add_label(label)
        return 1

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Any = None,
        labels: Sequence[str] | None = None,
        corpus: Callable[[Any], Iterable[Example]] | None = None,
    ) -> None:
        """Learn labels, label patterns and features, and keep the corpus; the weights start at 0, or near the
        models by which settings were chosen.

        get_examples (Callable[[], Iterable[Example]]): the training corpus.
        nlp (Optional[Language]): the pipeline; its annotating components run first, if they are frozen.
        labels (Optional[Sequence[str]]): all labels, as `spacy init labels` writes them; by default those of
            the corpus.
        corpus (Optional[Callable[[Language], Iterable[Example]]]): reads the full training corpus when
            `spacy train` streams it, so that `get_examples` returns only its beginning.
        RAISES (ValueError): H049 without examples, H050 without labels, H051 for a template that reads the
            answer, H255 if all have weight 0, H267 or H268 for a setting, H600 in a memory zone. After any
            error the component is unchanged.
        """
        from spacy_hocrf.annotation.annotators import OnceAnnotated, annotated, validated
        from spacy_hocrf.learning import config_warnings as checks
        from spacy_hocrf.learning.choosing import ORDERS, choose_settings, watched
        from spacy_hocrf.learning.encoder import begun
        from spacy_hocrf.learning.heldout import begin_near
        from spacy_hocrf.pipeline import saved_settings
        from spacy_hocrf.pipeline.score_weights import weigh_spans

        saved_settings.check_saved(nlp, self.name)
        learner = self._learner.untrained(self.labels)
        read_corpus = get_examples if corpus is None else partial(corpus, nlp)
        annotates_once = nlp is not None and not learner.trainer.batchwise
        note = learner.corpus.note if annotates_once else None
        read = annotated(read_corpus, nlp, self.name, note)
        span_groups = set[str]()
        with begun(self.structure.settings.encoder, read):
            examples = validated(read(), f"{type(self).__name__}.initialize")
            unannotated = learner.begin(
                checks.noting_groups(examples, span_groups) if self._teachers else examples,
                labels,
                partial(choose_settings, name=self.name, shown=watched(nlp)),
            )
        begin_near(learner, learner.folds)
        checks.check_settings(learner.structure.settings, learner.labels, ORDERS)
        checks.check_teacher_groups(self._teachers, span_groups, self.name)
        checks.check_annotation(learner.corpus, unannotated, self.name, learner.gold.places, read)
        learner.watch = learner.watch or checks.check_initial_features(
            learner.structure, learner.corpus, nlp, self.name
        )
        self._adopt(learner)
        self._decoder.adopt(None)
        self._prices.adopt(None)
        if self._joint is not None:
            self._joint.adopt(None)
        if annotates_once:
            OnceAnnotated.begin(nlp, self.name)
        if nlp is not None and "spans_key" in self.cfg:
            weigh_spans(nlp, self.name, self.cfg["spans_key"])

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | Literal[False] | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Register examples and report the objective; the step is taken in `finish_update`.

        examples (Iterable[Example]): a batch.
        drop (float): dropout rate of an encoder; everything else is exact.
        sgd (Optional[Optimizer]): if given, `finish_update` is called at once.
        losses (Optional[Dict[str, float]]): receives the objective of the whole corpus under the component's
            name, however many batches it is shown in; a batch-wise trainer adds the batch's loss.
        RETURNS (Dict[str, float]): the losses.
        RAISES (ValueError): H007 for a document that no allowed segmentation covers, H040 for an unknown
            label, H042 before `initialize`, H600 for texts of a memory zone, which a component cannot keep;
            the documents are not added then.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        if not any(len(example.predicted) for example in examples):
            return losses
        if not self.structure.ready:
            raise ValueError(Errors.H042)
        if self._learner.trainer.batchwise:
            from spacy_hocrf.learning.likelihood import add_gradient_into

            losses[self.name] += add_gradient_into(self.model, self._learner, examples, drop)
        else:
            from spacy_hocrf.learning.encoder import check_constant

            encoder = self.structure.settings.encoder
            if encoder is not None and not self.knows(examples):
                check_constant(encoder, examples, self.name)
            usable, loss = self._learner.add(examples), self._learner.loss()
            losses[self.name] = loss if usable else losses[self.name]
        if sgd is not None and sgd is not False:
            self.finish_update(sgd)
        return losses

    def knows(self, examples: Iterable[Example]) -> bool:
        """Did `initialize` read all of these examples, in their state before the frozen annotating components
        write to them? Then these components need not run before `update`.
        """
        return self._learner.corpus.recognized(examples) is not None

    def finish_update(self, sgd: Optimizer) -> None:
        """Take the trainer's iterations on the whole corpus; does nothing once it has converged.

        sgd (Optimizer): used by batch-wise trainers only.
        """
        if self._learner.trainer.batchwise:
            with self._lock:  # predictions keep their own array of weights
                self.model.set_param("W", self.model.get_param("W").copy())
                self.model.finish_update(sgd)
            return
        run = self.run
        if run is not None and run.running:
            self._learner.step(run)
            if not run.running:
                logger.info("%s: %s", self.name, run.status)
            self._after_step(run)

    def get_loss(
        self, examples: Iterable[Example], scores: "Potentials"
    ) -> "tuple[float, Expectations]":
        """Return the negative log-likelihood of a batch, and its derivative by the log potentials.

        scores (Potentials): the model's predictions for the examples' Docs.
        RETURNS (Tuple[float, Expectations]): nats, and expected minus observed counts.
        RAISES (ValueError): H007 if no allowed segmentation agrees with an example's annotation.
        """
        from spacy_hocrf.learning.likelihood import loss_of

        return loss_of(self._learner, list(examples), scores)

    def objective(self) -> "Loss":
        """Return the training objective of the current corpus; call it with float64 weights [F].

        RAISES (ValueError): H042 before `initialize`, H081 for a trainer that has none.
        """
        return self._learner.objective()

    def set_trainer(self, trainer: Trainer) -> None:
        """Continue training with other settings, such as another sigma: from the current weights, on the
        current corpus.

        RAISES (ValueError): H058 for an object that is no trainer, H109 for one that cannot learn joint
            weights, H532 for one without a ratio if the corpus has positives only.
        """
        check_trainer(trainer, self.name)
        if self._positives_only:
            check_ratio(trainer, self.name)
        if self._joint is not None:
            self._joint.check_beside(trainer)
        self._trainer = trainer
        self._learner.set_trainer(trainer)

    @property
    def run(self) -> "Run | None":
        """The training run on the current corpus; None if there is nothing to learn from, or with SGD."""
        return self._learner.run

    def _adopt(self, learner: "Learner") -> None:
        """Take over a learner trained or loaded elsewhere; the thinc Model stays, others refer to it."""
        with self._lock:
            self.model.attrs["structure"] = learner.structure
            replace_weights(self.model, weights_of(learner.model))
            learner.model, learner.lock = self.model, self._lock
            self._learning = learner
            self._acceptance = None

    # Prediction

    def predict(self, docs: Iterable[Doc]) -> "list[Prediction]":
        """Return the best segmentation of each Doc; the Docs are not changed.

        docs (Iterable[Doc]): Docs to predict. With `joint`, consecutive Docs of one group (by default a
            single Doc) are decoded together.
        RETURNS (List[Prediction]): decoded spans, trimmed of whitespace, without those below the threshold.
        RAISES (ValueError): H007 if a Doc has no allowed segmentation, H042 before training.
        """
        predictions = self._predict(list(docs))
        predictions.unchanged = False  # the caller may change the Docs
        return predictions

    def _predict(
        self, docs: Sequence[Doc], groups: "NDArray[np.int64] | None" = None
    ) -> PredictedDocs:
        """Return the predictions together with what was read of the Docs.

        groups (Optional[int64 [D]]): group numbers of Docs that are decoded together, if they are known.
        """
        predictor, watch, joint = self._predictor(), self._learner.watch, self._joint
        predictions = PredictedDocs()
        batches: Iterable[tuple[TokenBatch, Revise | None]]
        if joint is None or joint.decoder.ignores_patterns:
            batches = zip(token_batches(docs), repeat(None))
        else:
            batches = joint.batches(docs, groups, predictor)
        for batch, revise in batches:
            batch_predictions = predictor.predict(
                batch,
                scores=self._scores,
                threshold=self.cfg["threshold"],
                revise=revise,
                text_probability=self.acceptance is not None,
            )
            predictions.add(batch, batch_predictions)
            if watch is not None:
                watch.look(batch, self.name)
        return predictions

    def _predictor(self) -> "Predictor":
        """Return the predictor for the current model and constraints, cached."""
        with self._lock:
            model = self._learner.snapshot()
        decoder, learnt = self._decoder.current, self._prices.learnt
        key = model.automaton, model.placed, self.target, decoder, self.constraints, learnt
        cached = self._cached_predictor
        if cached is None or not all(map(is_, key, cached[0])):
            cached = self._cached_predictor = key, self._make_predictor(model, decoder)
        return cached[1]

    def _make_predictor(self, model: "Snapshot", decoder: Decoder) -> "Predictor":
        from spacy_hocrf.answers.predictor import Predictor
        from spacy_hocrf.rules.compiled import CompiledRules

        has_learnt = self._learner.n_shown or model.structure.scheme.settled
        if not has_learnt and not self.model.get_param("W").any():
            warnings.warn(Warnings.W035.format(name=self.name), stacklevel=2)
        constraints, learnt = self._constraints(), self._prices.learnt
        rules = None if self._cached_predictor is None else self._cached_predictor[1].rules
        if (
            rules is None
            or rules.model_automaton is not model.automaton
            or rules.constraints != constraints
            or rules.learnt is not learnt
        ):
            carried = model.structure.index.carried
            rules = CompiledRules(constraints, model.scheme, model.automaton, carried, learnt)
        exact = self._decoder.exact
        return Predictor(model.structure, model.placed, self.target, rules, decoder, exact)

    def __call__(self, doc: Doc) -> Doc | None:
        """Predict and annotate one Doc.

        RETURNS (Optional[Doc]): the Doc; None after an error that the error handler ignores.
        """
        return next(iter(self._annotated([doc], None)), None)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Predict and annotate a stream of Docs.

        batch_size (int): number of Docs in a batch; more if needed to complete a group that is decoded
            together.
        YIELDS (Doc): the Docs, in order.
        """
        joint = self._joint
        batches: Iterable[tuple[list[Doc], NDArray[np.int64] | None]]
        if joint is None or joint.group_by is None or joint.decoder.ignores_patterns:
            batches = ((docs, None) for docs in minibatch(stream, batch_size))  # type: ignore[no-untyped-call]
        else:
            batches = joint.group_batches(stream, batch_size)
        for docs, groups in batches:
            yield from self._annotated(docs, groups)

    def _annotated(self, docs: list[Doc], groups: "NDArray[np.int64] | None") -> list[Doc]:
        """Predict and annotate Docs, and return them without the groups in which an error was handled.

        groups (Optional[int64 [D]]): group of each Doc, ascending; None if each Doc is a group of its own.
        """
        try:
            self.set_annotations(docs, self._predict(docs, groups))
            return docs
        except Exception as error:
            if len(docs) == 1 or (groups is not None and groups[0] == groups[-1]):
                self.get_error_handler()(self.name, self, docs, error)
                return []
        from spacy_hocrf.joint.batches import groups_apart

        return [doc for some in groups_apart(docs, groups) for doc in self._annotated(*some)]

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Return the scorer's results, for examples with whitespace trimmed from their spans, and the share
        of texts that are completely right, as "hocrf_texts_acc", "spans_KEY_texts_acc" or "tag_texts_acc";
        None if no text is annotated completely.

        kwargs (Any): arguments of the scorer.
        """
        from spacy_hocrf.annotation.scoring import comparable, count_whole

        compared = comparable(examples, self.target)
        right, texts = count_whole(compared, self.target)
        share = right / texts if texts else None
        return {**super().score(compared, **kwargs), self.target.texts_metric: share}

    def set_annotations(self, docs: Iterable[Doc], scores: "Sequence[Prediction]") -> None:
        """Write predictions to their Docs, with certificates if Docs were decoded together."""
        docs = list(docs)
        if isinstance(scores, PredictedDocs) and scores.unchanged:
            for batch, predictions in scores.batches:
                self.target.annotate(batch.docs, predictions, batch)
        else:
            self.target.annotate(docs, list(scores))
        if self._acceptance is not None:
            from spacy_hocrf.annotation.acceptance import mark

            mark(docs, scores, self._acceptance)
        if self._joint is not None:
            self._joint.set_proofs(docs, scores)

    # Questions and corrections

    def reading(self, doc: Doc) -> "Reading":
        """Return the model's posterior for a Doc: exact probabilities of spans, tokens and whole readings.

        doc (Doc): a Doc that earlier components have processed; it is not changed. Entities with
            probabilities, which the component itself has predicted, are not taken as given.
        RETURNS (Reading): answers of the current model; Docs are read one by one, even if they are decoded
            together.
        RAISES (ValueError): H007 if the Doc has no allowed segmentation, H042 before training.
        """
        return next(self.readings([doc]))

    def readings(self, docs: Iterable[Doc], *, keeps_own: bool = False) -> "Iterator[Reading]":
        """Yield a reading of each Doc, made in batches, which is faster than one by one.

        docs (Iterable[Doc]): Docs that earlier components have processed; they are not changed.
        keeps_own (bool): also take entities with probabilities as given, as predictions do; for Docs that
            this component has not processed yet, where an earlier `hocrf` component has set them.
        YIELDS (Reading): one for each Doc, in their order.
        RAISES (ValueError): H007 if a Doc has no allowed segmentation, H042 before training, H461 for an
            object that is not a Doc.
        """
        from spacy_hocrf.annotation.targets import EntsTarget
        from spacy_hocrf.answers.reading import readings_of

        predictor, acceptance = self._predictor(), self.acceptance
        if isinstance(predictor.target, EntsTarget) and not keeps_own:
            predictor = replace(predictor, target=replace(predictor.target, keeps_own=False))
        for batch in token_batches(list(docs)):
            yield from readings_of(predictor, batch, acceptance)

    def predict_batches(self, batches: "Iterable[TokenBatch]") -> "Iterator[BatchPrediction]":
        """Yield predictions for batches of tokens from any source; each Doc by itself, no alternatives."""
        predictor, watch = self._predictor(), self._learner.watch
        for batch in batches:
            yield predictor.spans(batch, scores=self._scores, threshold=self.cfg["threshold"])
            if watch is not None:
                watch.look(batch, self.name)

    def explain(
        self, doc: Doc, span: "Span | tuple[int, int, str]", instead: "Asked | None" = None
    ) -> "Explanation":
        """Explain why the model sets a span, or why not: what every feature contributes to the log-odds of
        the best reading with the span against the best one without it.

        doc (Doc): a Doc that earlier components have processed; it is not changed.
        span (Union[Span, Tuple[int, int, str]]): any span, predicted or not.
        instead (Optional[Asked]): a span: compare with the best reading that has it instead of the other;
            several spans: with the reading that has exactly these.
        RAISES (ValueError): H007 or H042 as in `reading`; H224 to H227 for spans that the model cannot
            produce, or cannot do without, H569 for an object that is no span.
        """
        return self.reading(doc).explain(span, instead)

    def temper(self, examples: Iterable[Example]) -> float:
        """Calibrate the model's confidence on annotated texts that it has not seen. Prices of rules and
        joint weights do not change.

        examples (Iterable[Example]): examples whose predicted Docs earlier components have processed.
        RETURNS (float): temperature that the features' weights are divided by: above 1, the model was
            overconfident.
        RAISES (ValueError): H042 before training, H220 if the model can represent the annotation of no text.
        """
        from spacy_hocrf.learning.choice import Choice
        from spacy_hocrf.learning.temperature import HeldOut

        learner, self._acceptance = self._learner, None
        temperature = HeldOut.of(learner, list(examples)).temperature()
        with learner.lock:
            self.model.set_param("W", self.model.get_param("W") / temperature)
            learner.choice = replace(learner.choice or Choice(), temperature=temperature)
            self._decoder.temper(temperature)
        return temperature

    def extend(
        self,
        examples: Iterable[Example],
        *,
        alone: bool | None = None,
        sigma: float | None = None,
    ) -> list[str]:
        """Learn from more texts while forgetting little. Only some labels need be annotated, such as new
        ones: where nothing is annotated, the current model fills in a distribution of the others
        (`learning/loaded.py`). Afterwards the component is as if it had been saved and loaded: further
        training uses its own texts, not these.

        examples (Iterable[Example]): annotated texts; earlier components have processed the predicted Docs.
            Texts without a span teach where the labels do not occur.
        alone (Optional[bool]): are the labels that occur in the texts the only ones annotated there? None:
            yes if all of them are new, or if some are and the component was trained with positives only.
        sigma (Optional[float]): how far the existing weights may change, as a standard deviation; None for 1
            if there are new labels, else the trainer's `adapt_sigma`.
        RETURNS (List[str]): the new labels.
        RAISES (ValueError): H042 before training, H510 for a trainer without a prior centred on loaded
            weights, H048 for a sigma that is no number from 1e-9 to 1e9, H255 if all texts have weight 0,
            H511 without a span, H582 for a new label that the constraints exclude from every text, H600 in a
            memory zone. The component is then unchanged.
        """
        from spacy_hocrf.learning.extending import learn_more

        if not self.structure.ready:
            raise ValueError(Errors.H042)
        examples = list(examples)
        saved = super().to_bytes()
        self.from_bytes(saved)  # a learner with the loaded model and without a corpus
        try:
            options = alone, sigma, self._after_step, lambda: self.rules
            new_labels = learn_more(self._learner, examples, *options)
        except BaseException:
            self.from_bytes(saved)
            raise
        self.from_bytes(super().to_bytes())
        decoder = self._decoder.current
        if new_labels and isinstance(decoder, Reranked) and decoder.reranker is not None:
            text = Warnings.W055.format(name=self.name, labels=", ".join(new_labels))
            warnings.warn(text, stacklevel=2)
        return new_labels

    @property
    def texts_since_loaded(self) -> int:
        """Number of texts, with copies, that a loaded model was trained on since; 0 if none was loaded."""
        learner = self._learner
        return 0 if learner.loaded_weights is None else len(learner.corpus)

    @property
    def gold(self) -> "Gold":
        """Reads the annotation of training texts."""
        return self._learner.gold

    def constrain(self, doc: Doc, span: "Span | tuple[int, int, str]", kind: str = "span") -> None:
        """Add a constraint to the Doc's span group, which predictions and readings then satisfy.

        span (Union[Span, Tuple[int, int, str]]): tokens and label.
        kind (str): "span": exactly this span is there; "not": it is not; "outside": no span has any of these
            tokens; "inside": one span of the label has all of them, and maybe more; "only": spans with any of
            these tokens have this label, or that of another such constraint on them.
        RAISES (ValueError): H217 for an unknown kind, H569 for an object that is no span.
        """
        from spacy_hocrf.annotation.annotation import TextConstraint
        from spacy_hocrf.annotation.spans import row_of
        from spacy_hocrf.annotation.text_constraints import add

        add(doc, self._constraints().spans_key, TextConstraint(*row_of(span), kind))

    def correct(
        self, doc: Doc, span: "Span | tuple[int, int, str]", kind: str | None = None
    ) -> Doc:
        """Accept a person's correction of a span, and predict everything else again, in the time of one
        prediction. The Doc keeps the correction as a constraint, and may get more of them. It takes the place
        of entities or tags on its tokens that earlier components have set; others stay.

        span (Union[Span, Tuple[int, int, str]]): the correct span; without a label, no span is there.
        kind (Optional[str]): as in `constrain`; by default "span", or "outside" without a label.
        RETURNS (Doc): the same Doc, with the new spans.
        RAISES (ValueError): H216 if the model cannot produce the span, or not with the other constraints;
            H217 for an unknown kind or label, H569 for an object that is no span. The Doc is then unchanged.
        """
        from spacy_hocrf.annotation.spans import row_of

        row = row_of(span)
        kind = kind or ("span" if row[2] else "outside")
        trial = doc.copy()
        self.constrain(trial, row, kind)
        self.target.forget(trial, *row[:2])
        prediction = self.predict([trial])
        self.constrain(doc, row, kind)
        self.target.forget(doc, *row[:2])
        self.set_annotations([doc], prediction)
        return doc

    @property
    def rule_prices(self) -> dict[str, float]:
        """Price of breaking each rule about all spans, nats, by rule name; infinity for rules that must be
        kept. Prices of rules with price "learnt" can be set; they are saved with the model.

        RAISES (ValueError): H042 before there are labels; when set, H214 for another rule, or an invalid
            price.
        """
        return {rule.name: rule.price for rule in self.rules.rules}

    @rule_prices.setter
    def rule_prices(self, prices: Mapping[str, float]) -> None:
        from spacy_hocrf.rules.compiled import checked_prices

        self._prices.learnt = {**self._prices.learnt, **checked_prices(self.rules, prices)}

    @property
    def rules(self) -> "CompiledRules":
        """The constraints, compiled for the model. RAISES (ValueError): H042 before there are labels."""
        return self._predictor().rules

    def _constraints(self) -> "Constraints":
        from spacy_hocrf.rules.constraints import Constraints

        return self.constraints or Constraints()

    # Persistence

    def _keepers(self, settings: Settings) -> "dict[str, Keeper]":
        """Return the parts that save something besides the features' weights, by section name."""
        from spacy_hocrf.annotation.acceptance import Acceptance
        from spacy_hocrf.learning.choice import ChoiceKeeper
        from spacy_hocrf.learning.encoder import EncoderKeeper
        from spacy_hocrf.learning.scores import ScoresKeeper
        from spacy_hocrf.learning.values import ThresholdSet, ValueKeeper

        def threshold() -> ThresholdSet | None:
            before = self._configured_threshold
            return None if self.threshold == before else ThresholdSet(before, self.threshold)

        def set_threshold(saved: ThresholdSet | None) -> None:
            if saved is not None and saved.before == self._configured_threshold:
                self.threshold = saved.after

        accept = partial(setattr, self, "acceptance")
        joint = {} if self._joint is None else {"joint": self._joint}
        return {
            "scores": ScoresKeeper(settings, self.name, lambda: self._learner.dense_weights),
            "encoder": EncoderKeeper(settings.encoder, self.name),
            "choice": ChoiceKeeper(lambda: self._learner.choice),
            "cost": self._decoder,
            "rules": self._prices,
            "threshold": ValueKeeper("threshold", ThresholdSet, threshold, set_threshold),
            "acceptance": ValueKeeper("acceptance", Acceptance, lambda: self.acceptance, accept),
            **joint,
        }

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save what is learnt to a folder; if interrupted, the older model stays there. Settings are those of
        the config, except for a threshold that was set.
        """
        self._warn_of_unsaved()
        super().to_disk(path, exclude=exclude)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise what is learnt. Settings are those of the config, except for a threshold that was set."""
        self._warn_of_unsaved()
        return super().to_bytes(exclude=exclude)

    def _warn_of_unsaved(self) -> None:
        if self.constraints is not self._configured_constraints:
            warnings.warn(Warnings.W054.format(name=self.name), stacklevel=3)

    def _payload(self) -> "Payload":
        from spacy_hocrf.saving.persistence import to_payload

        settings = self.structure.settings
        return to_payload(self._learner.learnt(), settings, self._keepers(settings))

    def _become(self, payload: "Payload") -> None:
        """Replace everything learnt, or nothing if the model is refused."""
        from spacy_hocrf.learning.scores import as_saved
        from spacy_hocrf.saving.persistence import restored

        settings = as_saved(self.structure.settings, self.vocab, payload)
        keepers = self._keepers(settings)
        model = restored(payload, settings, keepers, self.name)
        learner = self._learner.untrained(model.labels, settings)
        learner.restore(model)
        self._adopt(learner)
        for name, keeper in keepers.items():
            keeper.adopt(model.extra.get(name))

    def _untrained(self) -> "Callable[[], SegmentationPipe]":
        arguments = self.vocab, self.structure.settings, self.name, self._settings()
        return partial(_component, type(self), *arguments, (self.threshold, self.constraints))

    def _settings(self) -> dict[str, Any]:
        """Return the arguments that this component was made with, except vocab, model and name."""
        return {
            "target": self.target,
            "trainer": self.trainer,
            "scores": self._scores,
            "scorer": self.scorer,
            "decoder": self._decoder.configured,
            "constraints": self._configured_constraints,
            "joint": self._joint_settings,
            "group_by": self._group_by,
            "positives_only": self._positives_only,
            "teachers": self._teachers,
            **self.cfg,
            "threshold": self._configured_threshold,
        }


def checked_threshold(threshold: Any, name: str) -> float | None:
    """Check a threshold and return it; None for none.

    name (str): name of the component.
    RAISES (ValueError): H055 for anything but a number from 0 to 1.
    """
    if threshold is None:
        return None
    if is_number(threshold) and 0 <= float(threshold) <= 1:
        return float(threshold)
    raise ValueError(Errors.H055.format(found=repr(threshold), name=name))


def _component(
    cls: type[SegmentationPipe],
    vocab: Vocab,
    model_settings: Settings,
    name: str,
    settings: Mapping[str, Any],
    changed: "tuple[float | None, Constraints | None]",
) -> SegmentationPipe:
    pipe = cls(vocab, model_of(model_settings), name, **settings)
    pipe.threshold, pipe.constraints = changed
    return pipe
