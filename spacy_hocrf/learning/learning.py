"""Learning of a component: its model grows with its corpus, and its trainer runs on the whole corpus.

Labels, limits, label patterns and features are added while existing weights keep their values. Structure,
automaton and weights are replaced together, under a lock; predictions work on a `Snapshot` of them. Nothing
is kept of examples that turn out to be unusable.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model

from spacy_hocrf.annotation.annotation import Annotation, known_segments, likely_segments
from spacy_hocrf.annotation.documents import Document
from spacy_hocrf.annotation.gold import Gold
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.tying import Tied
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.presence import Watch, observed
from spacy_hocrf.features.pruning import pruned
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.learning.choice import Choice
from spacy_hocrf.learning.config_warnings import check_features
from spacy_hocrf.learning.corpus import Corpus, Difference, Memory
from spacy_hocrf.learning.loaded import LoadedModel
from spacy_hocrf.learning.positives import check_positives
from spacy_hocrf.learning.shards import CorpusShard, make_shards, tied_shards
from spacy_hocrf.learning.survey import Survey, joins, patterns_of
from spacy_hocrf.learning.training_rules import (
    TrainingRules,
    allowed_in,
    automaton_of,
    check_constraints,
    satisfiable,
)
from spacy_hocrf.locks import new_lock
from spacy_hocrf.model.architectures import model_of, replace_weights, set_weights, weights_of
from spacy_hocrf.model.heads import learning_from
from spacy_hocrf.model.placement import CompiledIndex, Placed
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Settings, Structure
from spacy_hocrf.rules.compiled import CompiledRules
from spacy_hocrf.rules.constraints import Constraints
from spacy_hocrf.rules.errors import ConstraintErrors
from spacy_hocrf.saving.persistence import LearntModel
from spacy_hocrf.training.base import Loss, Run, Trainer, checked_run, checked_weights
from spacy_hocrf.types import Potentials
from spacy_hocrf.warnings import Warnings

__all__ = ["Choose", "Learner", "Snapshot", "View"]

GROWTH = 4
"""The model grows when one in this many documents is new, when an update brings none, or before a run."""

Choose = Callable[["Learner"], Choice]
"""Callable that chooses the settings that are "auto"."""


class View(NamedTuple):
    """The current model and its corpus: `training.base.Trainable`."""

    weights: NDArray[np.float64]
    loaded_weights: NDArray[np.float64] | None
    new_features: NDArray[np.bool_]
    orders: NDArray[np.int32]
    positives: Mapping[str, NDArray[np.bool_]] | None
    layout: CompiledIndex
    automaton: Automaton
    shards: Callable[..., Sequence[CorpusShard]]
    tied: Callable[[int], Tied]


class Snapshot(NamedTuple):
    """A trained model at one moment; never changed afterwards."""

    structure: Structure
    scheme: LabelScheme
    automaton: Automaton
    weights: NDArray[np.float32]  # [F]
    placed: Placed  # the weights in the layout of the compiled index


class Learner:
    """What a component has learnt, and how it learns more.

    model (Model[List[Doc], Potentials]): holds the structure and the growing weights.
    gold (Gold): reads the annotation; `constraints` tell where the constraints of single texts are.
    trainer (Trainer): how it is learnt.
    labels (Iterable[str]): the labels so far.
    memory (Optional[Memory]): what the corpus keeps besides features and annotation.
    constraints (Optional[Constraints]): constraints that training observes, and the key of those of single
        texts.
    group_by (Optional[str]): extension attribute of Docs that are held out together.

    choice (Optional[Choice]): chosen values of settings that are "auto". folds (Sequence[Trained]): models
        that they were chosen by.
    trainer (Trainer): with the chosen sigma.
    steps (int): steps that the trainer has taken. n_shown (int): number of examples in all updates.
    lock (RLock): held while structure, automaton and weights do not fit each other.
    watch (Optional[Watch]): compares new texts with the training texts; None until all of these are known.
    """

    def __init__(
        self,
        model: Model[list[Doc], Potentials],
        gold: Gold,
        trainer: Trainer,
        labels: Iterable[str] = (),
        memory: Memory | None = None,
        constraints: Constraints | None = None,
        group_by: str | None = None,
    ) -> None:
        self.model = model
        self.labels = list(labels)
        self.constraints = constraints
        self.gold = replace(gold, constraints_key=self.constraints_key)
        self._configured_trainer = self.trainer = trainer
        self.choice: Choice | None = None
        self.folds: Sequence[Any] = ()
        self.lock = new_lock()
        self._automaton: Automaton | None = None
        self._rules: TrainingRules | None = None
        self._snapshot: Snapshot | None = None
        # the corpus and what is known of it
        self._memory = memory
        settings = self.structure.settings
        blanks = settings.encoding not in ("io", "tags") or self.constrained
        readers = self.gold, settings.templates, settings.dense
        self.corpus = Corpus(*readers, blanks=blanks, memory=memory, group_by=group_by)
        self._survey = Survey()
        self.watch: Watch | None = None
        self._waiting: list[Document] = []
        # documents of the last growth, until the objective was computed with them
        self._newest: Sequence[Document] = ()
        # the run, and how far it is
        self._run: Run | None = None
        self._changed = False  # since the run began
        self.steps = 0
        self.n_shown = 0
        # the loaded model; its weights are nan for new features
        self._loaded_weights: NDArray[np.float64] | None = None
        self._loaded_labels: Sequence[str] = ()
        self._loaded_documents = 0
        self._loaded_counts: Mapping[str, int] = {}

    def untrained(self, labels: Iterable[str] = (), settings: Settings | None = None) -> "Learner":
        """Return an untrained learner with some labels and a model of its own.

        settings (Optional[Settings]): settings of the model; None for the same.
        """
        model = model_of(self.structure.settings if settings is None else settings)
        gold, group_by = replace(self.gold, alone=None), self.corpus.group_by
        arguments = self._configured_trainer, labels, self._memory, self.constraints, group_by
        return Learner(model, gold, *arguments)

    @property
    def structure(self) -> Structure:
        """Labels, label patterns and features."""
        structure: Structure = self.model.attrs["structure"]
        return structure

    @property
    def scheme(self) -> LabelScheme:
        """The engine's labels. RAISES (ValueError): H042 before there are any."""
        return self.structure.scheme

    @property
    def plain(self) -> Automaton:
        """States and arcs of the model without constraints. RAISES (ValueError): H042 if there are none."""
        if self._automaton is None:
            raise ValueError(Errors.H042)
        return self._automaton

    @property
    def constraints_key(self) -> str | None:
        """Key of `doc.spans` for the constraints of single texts; None if training ignores them."""
        if self.constraints is None or self.constraints.training == "none":
            return None
        return self.constraints.spans_key

    @property
    def constrained(self) -> bool:
        """Does training observe any constraints?"""
        return self.constraints is not None and self.constraints.in_training

    @property
    def rules(self) -> TrainingRules | None:
        """The constraints compiled for the current model; None if training observes none.

        RAISES (ValueError): H042 before there are labels, H215 for a label that the model does not have, H221
            if there are too many states.
        """
        if self.constraints is None or not self.constrained:
            return None
        if self._rules is None or self._rules.rules.model_automaton is not self.plain:
            carried = self.structure.index.carried
            rules = CompiledRules(self.constraints, self.scheme, self.plain, carried)
            self._rules = TrainingRules(rules)
        return self._rules

    @property
    def automaton(self) -> Automaton:
        """States and arcs of the segmentations that training sums over. RAISES (ValueError): H042 before
        there are any, and as `rules`.
        """
        rules = self.rules
        return self.plain if rules is None else rules.automaton

    def allowed(self, tokens: TokenBatch) -> NDArray[np.uint8]:
        """Return the bits of every token and label that training allows, uint8 [N, Y]."""
        return allowed_in(self.structure, self.rules, tokens)

    def potentials(
        self, tokens: TokenBatch, allowed: NDArray[np.uint8] | None = None
    ) -> Potentials:
        """Return the log potentials of some texts under the current weights.

        allowed (Optional[uint8 [N, Y]]): bits of every token and label; None for what training allows.
        """
        bits = self.allowed(tokens) if allowed is None else allowed
        compiled = self.structure.compile(self.structure.observe(tokens), bits)
        return compiled.potentials(self.snapshot().placed)

    @property
    def documents(self) -> int:
        """Number of documents the model was trained on, including those of the loaded model."""
        return max(len(self.corpus), self._loaded_documents)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The model's weights, float64 [F]; a copy."""
        return weights_of(self.model)

    @property
    def loaded_weights(self) -> NDArray[np.float64] | None:
        """Weights of the loaded model, float64 [F], 0 for features added since; None if none was loaded."""
        return None if self._loaded_weights is None else np.nan_to_num(self._loaded_weights)

    @property
    def new_features(self) -> NDArray[np.bool_]:
        """Which features were added since the model was loaded, bool [F]; all, if it began untrained."""
        loaded = self._loaded_weights
        return np.ones(self.structure.size, dtype=bool) if loaded is None else np.isnan(loaded)

    @property
    def new_labels(self) -> list[str]:
        """Labels that were added since the model was loaded."""
        return [label for label in self.labels if label not in self._loaded_labels]

    @property
    def orders(self) -> NDArray[np.int32]:
        """Number of earlier segments whose labels each feature sees, int32 [F].

        RAISES (ValueError): H042 before there are features.
        """
        return self.structure.orders

    @property
    def layout(self) -> CompiledIndex:
        """Layout in which the shards expect the weights. RAISES (ValueError): H042 without features."""
        return self.structure.compiled

    def snapshot(self) -> "Snapshot":
        """Return a snapshot for predictions, which further training does not affect; its `placed` is a new
        object only if structure or weights have changed. The model's weight array becomes read-only, so that
        changes can be detected by identity: changing weights means setting a new array.

        RAISES (ValueError): H042 before there are any.
        """
        with self.lock:
            structure, automaton = self.structure, self.plain
            weights = np.asarray(self.model.get_param("W"))
            weights.flags.writeable = False
        cached = self._snapshot
        if cached is not None and cached.structure is structure:
            if cached.weights is weights:
                return cached
            if np.array_equal(cached.weights, weights):
                self._snapshot = cached._replace(weights=weights)
                return self._snapshot
        placed = structure.compiled.place_weights(weights.astype(np.float64))
        placed.const.flags.writeable = placed.length.flags.writeable = False
        self._snapshot = Snapshot(structure, structure.scheme, automaton, weights, placed)
        return self._snapshot

    @property
    def dense_weights(self) -> NDArray[np.float32]:
        """The weights of dense scores, float32 [H]."""
        structure = self.structure
        weights: NDArray[np.float32] = np.asarray(self.model.get_param("W"))
        return weights[structure.size - structure.n_dense :]

    @property
    def adapts(self) -> bool:
        """Does training adapt a loaded model, rather than learn from this corpus alone?"""
        return self.trainer.adapts(self)

    @property
    def auto(self) -> bool:
        """Is a setting "auto"?"""
        return self.structure.settings.auto_order or bool(self._configured_trainer.choices)

    def set_trainer(self, trainer: Trainer) -> None:
        """Continue with another trainer, from the current weights."""
        self._configured_trainer = trainer
        self._settle(self.choice)
        self._changed = True

    def _settle(self, choice: Choice | None) -> None:
        """Apply a choice of settings."""
        self.choice, self.trainer = choice, self._configured_trainer
        if choice is not None:
            self.trainer = self.trainer.with_sigma(choice.sigma)

    def begin(
        self,
        examples: Iterable[Example],
        labels: Sequence[str] | None,
        choose: "Choose | None" = None,
    ) -> int:
        """Learn labels, features and patterns of a first corpus; the weights start at 0.

        examples (Iterable[Example]): the corpus; read once, and not kept.
        labels (Optional[Sequence[str]]): labels besides those that were added; by default those of the
            corpus.
        choose (Optional[Callable[[Learner], Choice]]): chooses the settings that are "auto", for a learner
            that has its corpus but no features yet.
        RETURNS (int): number of examples without any annotation.
        RAISES (ValueError): H040 for an unknown label, H049 without examples, H050 without labels, H051 for a
            template that reads the answer, H255 if all have weight 0, H182 for a span group that no document
            has and no update can add; with positives only, H533 if there are none (of some label), H534 if
            there are too many.
        """
        difference = self.corpus.compare(self._fitted_to_first(examples), initial=True)
        documents = difference.documents.values()
        self._set_first_labels(difference, labels)
        # If no document is annotated completely, there may be unlabelled text.
        self._survey.has_outside = (
            self.gold.positives_only
            or any(d.annotation.has_outside for d in documents)
            or not any(d.complete for d in documents)
        )
        added = self.corpus.add(difference)
        if choose is not None and self.auto:
            self._join_neighbours(added)
            self._survey.note((document.annotation for document in added), self.structure.settings)
            choice = choose(self)
            self._settle(choice)
            self.set_order(choice.order, wide=bool(choice.wide))
        self._grow(added)
        self._check_constraints(added)
        if self.trainer.batchwise:
            self.watch = check_features(self.structure, self.corpus, self.watch)
        return difference.read - difference.empty - difference.usable

    def _set_first_labels(self, difference: Difference, labels: Sequence[str] | None) -> None:
        """Set the labels of a first corpus, and check its annotation; see `begin`."""
        if not difference.read:
            raise ValueError(Errors.H049)
        documents = difference.documents.values()
        if labels is None:
            labels = sorted({label for document in documents for label in document.labels})
        self.labels = list(dict.fromkeys([*self.labels, *labels]))
        if self.gold.positives_only:
            check_positives(documents, self.labels, self._configured_trainer)
        if not self.labels:
            if difference.weightless and difference.empty == difference.read:
                raise ValueError(Errors.H255.format(found=difference.weightless))
            raise ValueError(Errors.H050.format(found=difference.read, place=self.gold.places))
        self._check_labels(document.annotation for document in documents)

    def _fitted_to_first(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Pass examples through, after the first one with tokens was shown to templates and dense scores."""
        fitted = False
        for example in examples:
            if not fitted and len(example.predicted):
                settings = self.structure.settings
                scores = learning_from(settings.scores, example.predicted)
                settings = replace(settings, scores=scores)
                self._set(settings)
                self.corpus.set_readers(settings.templates, settings.dense)
                fitted = True
            yield example

    def add(self, examples: Sequence[Example]) -> int:
        """Add the examples of an update.

        RETURNS (int): how many of them are in the corpus, that is, have some annotation.
        RAISES (ValueError): H040 for an unknown label, H041 for unlabelled text where there was none; nothing
            is added then. H182 once the corpus has been shown in full, if no document has a span group that a
            template reads.
        """
        difference = self.corpus.recognized(examples) or self.corpus.compare(examples)
        self._check_labels(document.annotation for document in difference.documents.values())
        self._waiting += self.corpus.add(difference)
        many_new = GROWTH * len(self._waiting) >= len(self.corpus)
        if self._waiting and (many_new or not difference.documents or self._changed):
            self._newest = self._waiting
            self._grow(self._newest)
            self._check_constraints(self._newest)
        shown_before, self.n_shown = self.n_shown, self.n_shown + difference.read
        if shown_before < len(self.corpus) <= self.n_shown:
            self.watch = check_features(self.structure, self.corpus, self.watch)
        return difference.usable

    def without(self, documents: Iterable[Document]) -> "Learner":
        """Return an untrained learner that has never seen some documents, with the same labels and limits.

        RAISES (ValueError): H080 if no document is left.
        """
        return self._learner_of(self.corpus.without(documents), self.structure.settings)

    def seeing(self, documents: Iterable[Document], **settings: Any) -> "Learner":
        """Return an untrained learner that has seen only some documents, with the same labels and limits.

        settings (Any): settings of its model that differ.
        RAISES (ValueError): H080 without any documents.
        """
        configured = self.structure.settings
        return self._learner_of(self.corpus.only(documents), replace(configured, **settings))

    def _learner_of(self, corpus: Corpus, settings: Settings) -> "Learner":
        """Return an untrained learner for a part of the corpus."""
        other = self.untrained(self.labels, settings)
        other.choice, other.trainer = self.choice, self.trainer
        other._survey = self._survey.copy()
        other.corpus = corpus
        if not corpus.documents:
            raise ValueError(Errors.H080.format(found=len(self.corpus)))
        other._grow(other.corpus.documents)
        return other

    # What a trainer may use

    def view(self) -> View:
        """Return the current corpus as a trainer sees it; its shards are made once, on first use."""
        model = self.new_features, self.orders, self.positives, self.layout, self.automaton
        return View(self.weights, self.loaded_weights, *model, cache(self.shards), cache(self.tied))

    @property
    def positives(self) -> Mapping[str, NDArray[np.bool_]] | None:
        """Which of the engine's labels belong to each label, bool [Y]; None unless the corpus has positives
        only, and no loaded model fills in the rest.
        """
        if not self.gold.positives_only or self.adapts:
            return None
        numbers = np.arange(self.scheme.n_labels)
        return {x: np.isin(numbers, self.scheme.engine_labels(x)) for x in self.labels}

    def shards(self) -> list[CorpusShard]:
        """Return the corpus as shards, the form that the engine's objectives take."""
        return self.shards_of(self.corpus)

    def tied(self, threads: int) -> Tied:
        """Return the corpus with tied weights: features that it cannot distinguish share one weight; all have
        their own if a loaded model is adapted.
        """
        if self.adapts:
            return Tied(self.shards(), self.layout, None)
        return tied_shards(self.structure, self.shards(), threads)

    def shards_of(self, corpus: Corpus) -> list[CorpusShard]:
        """Return the shards of another corpus."""
        return make_shards(self.structure, corpus, self.rules, self.loaded)

    @property
    def loaded(self) -> LoadedModel | None:
        """The loaded model, which fills in what the annotation leaves open while it is adapted; else None."""
        weights = self.loaded_weights
        if weights is None or not self.adapts:
            return None
        annotated = dict.fromkeys([*self.new_labels, *(self.gold.alone or ())])
        engine_labels = [y for label in annotated for y in self.scheme.engine_labels(label)]
        return LoadedModel(weights, engine_labels)

    # Training

    def objective(self) -> Loss:
        """Return the training objective of the current corpus; call it with float64 weights [F].

        RAISES (ValueError): H042 before there are features, H081 if the trainer has none.
        """
        if not self.structure.ready:
            raise ValueError(Errors.H042)
        return self.trainer.objective(self)

    @property
    def run(self) -> Run | None:
        """The training run on the current corpus; None without documents, or with a batch-wise trainer."""
        if self._changed and self.corpus.documents and not self.trainer.batchwise:
            self.release()  # the workers of the previous run
            self._run = checked_run(self.trainer.begin(self), self.trainer)
            self._changed = False
        return self._run

    def release(self) -> None:
        """Release memory that the next step allocates again, before other models are trained."""
        getattr(self._run, "release", lambda: None)()  # not every trainer's run has it

    def loss(self) -> float:
        """Return the objective of the corpus at the model's weights; 0 if there is nothing to learn from.

        RAISES (ValueError): H007 for a document that no allowed segmentation covers; the documents added with
            it are removed again.
        """
        try:
            run = self.run
            loss = 0.0 if run is None else run.loss
        except ValueError:
            self.corpus.discard(self._newest)
            self._changed = True
            raise
        self._newest = ()
        return loss

    def step(self, run: Run) -> None:
        """Let the trainer take a step of the run; afterwards, even after an interruption, the model has the
        last accepted weights.

        RAISES (ValueError): H593 for weights of another number, or that are not finite.
        """
        self.steps += 1
        if self.choice is not None and self.choice.temperature is not None:
            self.choice = replace(self.choice, temperature=None)
        try:
            run.step()
        except BaseException:
            # the optimiser may be in an inconsistent state: begin another from here
            self._changed = True
            raise
        finally:
            set_weights(self.model, checked_weights(run, self.trainer, self.structure.size))

    def _check_constraints(self, documents: Sequence[Document]) -> None:
        """Warn of documents of the corpus whose annotation breaks the constraints that training observes.

        RAISES (ValueError): H223 if these are all documents; H243 for a document whose own constraints
            contradict its annotation: none of the documents is then in the corpus.
        """
        constrained = [(each.text, each.annotation) for each in documents if each.constraints]
        if constrained and self.constraints_key is not None:
            texts, annotations = zip(*constrained)
            try:
                check_constraints(self.structure, texts, annotations, self.constraints_key)
            except ValueError:
                self.corpus.discard(documents)
                raise
        usable = set(satisfiable(self.structure, self.rules, self.corpus, documents))
        broken = [document.text for document in documents if document not in usable]
        if not broken:
            return
        n_broken, text = len(broken), broken[0]
        if n_broken == len(self.corpus.documents):
            raise ValueError(ConstraintErrors.H223.format(found=n_broken, text=text))
        message = Warnings.W030.format(found=n_broken, all=len(documents), text=text)
        warnings.warn(message, stacklevel=3)

    # Growing

    def add_label(self, label: str) -> None:
        """Add an unknown label; existing features keep their weights."""
        self.labels.append(label)
        if self.structure.ready:
            structure = copy(self.structure)
            self._survey.set_labels(structure, self.labels)
            structure.widen()
            self._install(structure)

    def admit(self, annotations: Sequence[Annotation]) -> None:
        """Raise limits and allow transitions as some annotation needs, without adding features."""
        self._check_labels(annotations)
        if self._survey.note(annotations, self.structure.settings):
            structure = copy(self.structure)
            self._survey.set_labels(structure, self.labels)
            self._install(structure)

    def set_order(self, order: int | None, *, wide: bool) -> None:
        """Set another order, if one is given, as long as there are no features.

        wide (bool): include the templates that only a wide model has.
        """
        settings = replace(self.structure.settings, wide=wide)
        if order is not None:
            settings = replace(settings, order=order)
        self._set(settings)

    def _set(self, settings: Settings) -> None:
        """Replace the settings, as long as there are no features."""
        structure = copy(self.structure)
        structure.settings = settings
        self.model.attrs["structure"] = structure

    def _install(self, structure: Structure, features: NDArray[np.int64] | None = None) -> None:
        """Make a structure the model's and move every weight to the new number of its feature; new features
        get weight 0.

        features (Optional[int64 [F before]]): new number of every feature; None if unchanged.
        """
        self._changed = True
        automaton = automaton_of(structure)
        with self.lock:
            if features is None:
                features = np.arange(len(structure.index))
            moved = structure.moved(self.structure, features)
            if len(moved) < structure.size or not np.array_equal(moved, np.arange(len(moved))):
                replace_weights(self.model, _moved(self.weights, moved, structure.size))
                if self._loaded_weights is not None:
                    self._loaded_weights = _moved(
                        self._loaded_weights, moved, structure.size, np.nan
                    )
            self.model.attrs["structure"] = structure
            self._automaton = automaton

    def _grow(self, documents: Sequence[Document]) -> None:
        """Add the limits, label patterns and features that new documents show; existing weights keep their
        values.
        """
        self._join_neighbours(documents)

        # read twice, since all of them together take more memory than the documents
        def readings() -> Iterator[Annotation]:
            return (reading for each in documents for reading in each.annotation.readings)

        structure = copy(self.structure)
        self._survey.note(readings(), structure.settings)
        self._survey.set_labels(structure, self.labels)
        scheme = structure.scheme
        segments, likely = list[NDArray[np.int32]](), list[NDArray[np.int32]]()
        for annotation in readings():
            known = np.array(known_segments(scheme, annotation), dtype=np.int32).reshape(-1, 3)
            segments.append(known)
            likely.append(likely_segments(scheme, annotation, known))
        repeated = [document for document in documents for _ in document.annotation.readings]
        batches, remaining = self.corpus.batches(repeated, learn=True), iter(likely)
        located = ((tokens, list(islice(remaining, len(some)))) for some, tokens in batches)
        patterns = patterns_of(segments, structure, scheme.n_labels)
        if structure.settings.endless and not structure.ready:
            structure.settings = replace(structure.settings, order=max(map(len, patterns)) - 1)
        self._install(structure, structure.learn(patterns, located))
        self._waiting = []

    def _join_neighbours(self, documents: Sequence[Document]) -> None:
        settings = self.structure.settings
        if not joins(settings):
            return
        touching = [document for document in documents if document.annotation.repeats]
        if touching:
            reason = "encoding = 'io'" if settings.encoding == "io" else "repeats = false"
            warnings.warn(Warnings.W001.format(found=len(touching), reason=reason), stacklevel=2)
        for document in touching:
            document.annotation = document.annotation.merged()

    # Saving

    def restore(self, model: LearntModel) -> None:
        """Start from a loaded model: its extra "scores" are the weights of the dense scores, "choice" is its
        choice of settings.
        """
        self.labels = list(model.labels)
        self._settle(model.extra.get("choice"))
        if model.scheme is None or model.index is None:
            return
        self._survey = Survey(dict(model.longest), model.scheme.outside >= 0, model.repeats)
        self._loaded_documents, self._loaded_labels = model.documents, model.labels
        weights = np.concatenate([model.weights, model.extra["scores"]])
        self._loaded_weights = weights.astype(np.float64)
        self.set_order(model.order, wide=model.wide)
        structure = copy(self.structure)
        structure.restore(model.scheme, model.index)
        with self.lock:
            self.model.attrs["structure"] = structure
            set_weights(self.model, weights)
            self._install(structure)
        self._loaded_counts = model.said
        self.watch = Watch(self._source_counts(), model.documents)

    def _source_counts(self) -> dict[str, int]:
        """Count how often each source set by other components was observed in training; sources that may have
        been too rare for a feature are left out.
        """
        rare = self.structure.settings.min_count > 1
        counts = observed(self.structure.index) if self.structure.ready else {}
        loaded = self._loaded_counts
        counts = {source: max(times, loaded.get(source, 0)) for source, times in counts.items()}
        return {source: times for source, times in counts.items() if times or not rare}

    def learnt(self) -> LearntModel:
        """Return the model for `restore` in another component. Features with weight 0 are left out, unless
        all weights are 0 (before training).
        """
        with self.lock:
            structure, weights = self.structure, np.array(self.model.get_param("W"))
            source_counts = self._source_counts()
        weights = weights[: structure.size - structure.n_dense].astype(np.float32)
        nonzero, ready = weights != 0, structure.ready
        scheme, index = (structure.scheme, structure.index) if ready else (None, None)
        if index is not None and nonzero.any() and not nonzero.all():
            index, weights = pruned(index, nonzero), weights[nonzero]
        return LearntModel(
            tuple(self.labels),
            scheme,
            index,
            weights,
            dict(self._survey.longest),
            self._survey.repeats,
            self.documents,
            order=structure.settings.order,
            wide=structure.settings.wide,
            said=source_counts,
        )

    # Annotation

    def as_modelled(self, annotation: Annotation) -> Annotation:
        """Return the annotation without distinctions that this model cannot represent."""
        return annotation.merged() if joins(self.structure.settings) else annotation

    def _check_labels(self, annotations: Iterable[Annotation]) -> None:
        labels = set(self.labels)
        for annotation in annotations:
            for label in annotation.labels:
                if label not in labels:
                    raise ValueError(Errors.H040.format(label=label, known=", ".join(self.labels)))
            if self.structure.ready and self.scheme.outside < 0 and annotation.has_outside:
                known_segments(self.scheme, annotation)  # raises H041


def _moved(
    values: NDArray[np.float64], moved: NDArray[np.int64], size: int, new: float = 0.0
) -> NDArray[np.float64]:
    """Move values to their new indices and fill the others with a default, float64 [size]."""
    result = np.full(size, new)
    result[moved] = values
    return result
