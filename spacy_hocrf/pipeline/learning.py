"""How a component learns: its labels, limits, label patterns and features grow with its corpus, and
its trainer runs on all of it.

Growing keeps the value of every weight. Nothing is kept of examples that turn out to be unusable.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from threading import RLock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model

from spacy_hocrf.engine.automaton import Automaton, compile_automaton
from spacy_hocrf.errors import Errors
from spacy_hocrf.model.architectures import model_of, set_weights, weights_of
from spacy_hocrf.model.placement import CompiledIndex, Placed
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Structure
from spacy_hocrf.pipeline.annotation import Annotation, known_segments
from spacy_hocrf.pipeline.corpus import Corpus, Memory
from spacy_hocrf.pipeline.documents import Document
from spacy_hocrf.pipeline.persistence import LearntModel
from spacy_hocrf.pipeline.shards import CorpusShard, make_shards
from spacy_hocrf.pipeline.survey import Survey, joins, patterns_of
from spacy_hocrf.pipeline.targets import Target
from spacy_hocrf.training.base import Loss, Run, Trainer
from spacy_hocrf.types import Potentials
from spacy_hocrf.warnings import Warnings

__all__ = ["BeginRun", "Learner", "Snapshot", "begin_run"]

GROWTH = 4
"""New documents wait until they are one in so many, or until an update brings none; then the model
grows.
"""


def begin_run(learner: "Learner") -> Run:
    """Begin the trainer's own run."""
    return learner.trainer.begin(learner)


BeginRun = Callable[["Learner"], Run]
"""Begins the training of a learner's model on its corpus as they are."""


class Snapshot(NamedTuple):
    """A trained model at one moment; nothing of it is changed later."""

    structure: Structure
    scheme: LabelScheme
    automaton: Automaton
    weights: NDArray[np.float32]  # [F]
    placed: Placed  # the weights as the structure's batches take them


class Learner:
    """What a component has learnt, and how it learns more.

    model (Model[List[Doc], Potentials]): holds the structure and the weights, which grow here.
    target (Target): what is predicted.
    trainer (Trainer): how it is learnt.
    labels (Iterable[str]): the labels so far.
    memory (Optional[Memory]): what the corpus remembers besides features and annotation.
    begin_run (Callable[[Learner], Run]): begins the training on the corpus as it is.

    steps (int): that the trainer has taken.
    lock (RLock): held while structure, automaton and weights do not fit each other.
    """

    def __init__(
        self,
        model: Model[list[Doc], Potentials],
        target: Target,
        trainer: Trainer,
        labels: Iterable[str] = (),
        memory: Memory | None = None,
        begin_run: "BeginRun" = begin_run,
    ) -> None:
        self.model = model
        self.target = target
        self.trainer = trainer
        self.labels = list(labels)
        settings = self.structure.settings
        blanks = settings.encoding == "segments"
        self.corpus = Corpus(
            target, settings.templates, scores=settings.scores, blanks=blanks, memory=memory
        )
        self.steps = 0
        self._memory = memory
        self._begin_run = begin_run
        self._automaton: Automaton | None = None
        self._survey = Survey()
        self._waiting: list[Document] = []
        # those of the last growth, until the objective could be had with them
        self._newest: Sequence[Document] = ()
        self._run: Run | None = None
        self._changed = False  # since the run was made
        self.lock = RLock()
        self._snapshot: Snapshot | None = None
        self._loaded_weights: NDArray[np.float64] | None = None
        self._loaded_documents = 0

    def untrained(self, labels: Iterable[str] = ()) -> "Learner":
        """One with the same settings that knows nothing but labels; its model is its own."""
        model = model_of(self.structure.settings)
        return Learner(model, self.target, self.trainer, labels, self._memory, self._begin_run)

    @property
    def structure(self) -> Structure:
        """Labels, label patterns and features."""
        structure: Structure = self.model.attrs["structure"]
        return structure

    @property
    def scheme(self) -> LabelScheme:
        """The engine's labels. RAISES (ValueError): H042 before there are any."""
        if self.structure.scheme is None:
            raise ValueError(Errors.H042)
        return self.structure.scheme

    @property
    def automaton(self) -> Automaton:
        """States and arcs of the model. RAISES (ValueError): H042 before there are any."""
        if self._automaton is None:
            raise ValueError(Errors.H042)
        return self._automaton

    @property
    def documents(self) -> int:
        """How many documents the model was trained on, those of the loaded model included."""
        return max(len(self.corpus), self._loaded_documents)

    @property
    def adapts(self) -> bool:
        """Does training change a loaded model a little, rather than learn from this corpus alone?"""
        return self.trainer.adapts(self)

    def snapshot(self) -> "Snapshot":
        """What predictions work on, whatever training does meanwhile; another object only where
        structure or weights have changed.

        RAISES (ValueError): H042 before there are any.
        """
        with self.lock:
            structure, automaton = self.structure, self.automaton
            weights = np.array(self.model.get_param("W"))
        kept, scheme, compiled = self._snapshot, structure.scheme, structure.compiled
        if kept is not None and kept.structure is structure:
            if np.array_equal(kept.weights, weights):
                return kept
        if scheme is None or compiled is None:
            raise ValueError(Errors.H042)
        placed = compiled.place_weights(weights.astype(np.float64))
        self._snapshot = Snapshot(structure, scheme, automaton, weights, placed)
        return self._snapshot

    def add_label(self, label: str) -> None:
        """Add a label that is not known yet; the weights stay those of their features."""
        self.labels.append(label)
        if self.structure.ready:
            structure = copy(self.structure)
            self._survey.set_labels(structure, self.labels)
            structure.widen()
            self._changed = True
            self._become(structure)

    def set_trainer(self, trainer: Trainer) -> None:
        """Go on with other settings, from the weights there are."""
        self.trainer = trainer
        self._changed = True

    def begin(self, examples: Iterable[Example], labels: Sequence[str] | None) -> int:
        """Learn labels, features and patterns of a first corpus; the weights start at 0.

        examples (Iterable[Example]): the corpus; read once, and not kept.
        labels (Optional[Sequence[str]]): labels besides those that were added; by default those of
            the corpus.
        RETURNS (int): number of examples without any annotation.
        RAISES (ValueError): H040 for an unknown label, H049 without examples, H050 without labels,
            H051 for a template that reads the answer, H080 without a complete annotation where the
            trainer needs one.
        """
        difference = self.corpus.compare(examples, initial=True)
        if not difference.read:
            raise ValueError(Errors.H049)
        found = {label for document in difference.documents.values() for label in document.labels}
        self.labels = list(
            dict.fromkeys([*self.labels, *(sorted(found) if labels is None else labels)])
        )
        if not self.labels:
            raise ValueError(Errors.H050.format(found=difference.read, place=self.target.place))
        documents = difference.documents.values()
        self._check_labels(document.annotation for document in documents)
        if self.trainer.complete_only and not any(document.complete for document in documents):
            raise ValueError(Errors.H080.format(found=len(documents)))
        self._warn_of_partial(documents)
        # Where something is unknown everywhere, there may be unlabelled text.
        self._survey.has_outside = any(d.annotation.has_outside for d in documents) or not any(
            d.complete for d in documents
        )
        self._grow(self.corpus.add(difference))
        return difference.read - difference.empty - difference.usable

    def add(self, examples: Sequence[Example]) -> int:
        """Take in the examples of an update.

        RETURNS (int): how many of them are in the corpus, that is, have some annotation.
        RAISES (ValueError): H040 for an unknown label, H041 for unlabelled text where there was
            none; nothing is taken in then.
        """
        difference = self.corpus.compare(examples)
        self._check_labels(document.annotation for document in difference.documents.values())
        self._waiting += self.corpus.add(difference)
        if self._waiting and (
            not difference.documents or GROWTH * len(self._waiting) >= len(self.corpus)
        ):
            self._newest = self._waiting
            self._warn_of_partial(self._waiting)
            self._grow(self._waiting)
        return difference.usable

    def admit(self, annotations: Sequence[Annotation]) -> None:
        """Raise the limits, and allow the successions, that some annotation needs, without new
        features.
        """
        self._check_labels(annotations)
        if self._survey.note(annotations, self.structure.settings):
            structure = copy(self.structure)
            self._survey.set_labels(structure, self.labels)
            self._become(structure)

    def as_modelled(self, annotation: Annotation) -> Annotation:
        """The annotation with the distinctions that this model cannot make taken out."""
        return annotation.merged() if joins(self.structure.settings) else annotation

    def without(self, documents: Iterable[Document]) -> "Learner":
        """One that has never seen some documents of the corpus; untrained, but with the same labels
        and limits.

        RAISES (ValueError): H080 if none is left that teaches anything.
        """
        other = self.untrained(self.labels)
        other._survey = self._survey.copy()
        other.corpus = self.corpus.without(documents)
        if not other._teaches:
            raise ValueError(Errors.H080.format(found=len(other.corpus)))
        other._grow(other.corpus.documents)
        return other

    # What a trainer may use

    @property
    def weights(self) -> NDArray[np.float64]:
        """The model's weights, float64 [F]; a copy."""
        return weights_of(self.model)

    @property
    def loaded_weights(self) -> NDArray[np.float64] | None:
        """Weights of the model that was loaded, float64 [F], 0 for features that are new since;
        None if the model began untrained.
        """
        return self._loaded_weights

    @property
    def orders(self) -> NDArray[np.int32]:
        """Number of earlier segments whose labels each feature sees, int32 [F].

        RAISES (ValueError): H042 before there are features.
        """
        return self.structure.orders

    @property
    def corpus_size(self) -> int:
        """Documents of the corpus, copies included."""
        return len(self.corpus)

    @property
    def loaded_size(self) -> int:
        """Documents that the loaded model was trained on; 0 if none was loaded."""
        return self._loaded_documents

    @property
    def layout(self) -> CompiledIndex:
        """How the shards want the weights. RAISES (ValueError): H042 before there are features."""
        if self.structure.compiled is None:
            raise ValueError(Errors.H042)
        return self.structure.compiled

    def shards(self, *, complete_only: bool = False) -> list[CorpusShard]:
        """The corpus as the engine's objectives take it.

        complete_only (bool): leave out documents that are not completely annotated.
        """
        return make_shards(self.structure, self.corpus, complete_only=complete_only)

    # Training

    def objective(self) -> Loss:
        """The training objective of the corpus as it is now: call it with float64 weights [F].

        RAISES (ValueError): H042 before there are features, H081 if the trainer has none.
        """
        if not self.structure.ready:
            raise ValueError(Errors.H042)
        return self.trainer.objective(self)

    def penalty(self) -> tuple[float, NDArray[np.float64]]:
        """What a batch-wise trainer adds to the loss of all documents that the model has learnt
        from, and its gradient, float64 [F].
        """
        return self.trainer.penalty(self)

    @property
    def run(self) -> Run | None:
        """The training on the corpus as it is now; None while there is nothing to learn from, or
        with a batch-wise trainer.
        """
        if self._changed and self._teaches and not self.trainer.batchwise:
            self._run = self._begin_run(self)
            self._changed = False
        return self._run

    def loss(self) -> float:
        """The objective of the corpus at the model's weights; 0 while there is nothing to learn
        from.

        RAISES (ValueError): H007 for a document that no allowed segmentation covers; those that
            came with it are taken out again.
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

    def step(self) -> None:
        """Let the trainer take its step; the model has the last accepted weights, also after an
        interruption.
        """
        run = self.run
        assert run is not None
        self.steps += 1
        try:
            run.step()
        except BaseException:
            # the optimiser may have been left half-way: begin another from here
            self._changed = True
            raise
        finally:
            set_weights(self.model, run.weights)

    def restore(self, model: LearntModel) -> None:
        """Start from a loaded model; its extra "scores" are the weights of dense scores."""
        self.labels = list(model.labels)
        if model.scheme is None or model.index is None:
            return
        self._survey = Survey(dict(model.longest), model.scheme.outside >= 0, model.repeats)
        self._loaded_documents = model.documents
        weights = np.concatenate([model.weights, model.extra["scores"]])
        self._loaded_weights = weights.astype(np.float64)
        structure = copy(self.structure)
        structure.restore(model.scheme, model.index)
        with self.lock:
            self.model.attrs["structure"] = structure
            set_weights(self.model, weights)
            self._become(structure)

    def learnt(self) -> LearntModel:
        """What `restore` makes another component of."""
        with self.lock:
            structure, weights = self.structure, np.array(self.model.get_param("W"))
        return LearntModel(
            tuple(self.labels),
            structure.scheme,
            structure.index,
            weights[: structure.size - structure.n_dense].astype(np.float32),
            dict(self._survey.longest),
            self._survey.repeats,
            self.documents,
        )

    @property
    def _teaches(self) -> bool:
        """Is there something to learn from?"""
        return any(
            document.complete or not self.trainer.complete_only
            for document in self.corpus.documents
        )

    # Growing

    def _grow(self, documents: Sequence[Document]) -> None:
        """Extend limits, label patterns and features by what new documents show; the weights keep
        their values.
        """
        self._join_neighbours(documents)
        structure = copy(self.structure)
        self._survey.note((document.annotation for document in documents), structure.settings)
        self._survey.set_labels(structure, self.labels)
        scheme = structure.scheme
        assert scheme is not None
        segments = [
            np.array(known_segments(scheme, d.annotation), dtype=np.int32).reshape(-1, 3)
            for d in documents
        ]
        batches = (
            (batch, segments[first : first + len(part)])
            for batch, part, first in self.corpus.batches(documents)
        )
        features = structure.learn(patterns_of(segments, structure, scheme.n_labels), batches)
        self._waiting = []
        self._changed = True
        self._become(structure, features)

    def _become(self, structure: Structure, features: NDArray[np.int64] | None = None) -> None:
        """Make a structure the model's, with every weight where its feature is now; new features
        have the weight 0.

        features (Optional[int64 [F before]]): new number of every feature; None if all stay.
        """
        scheme, index = structure.scheme, structure.index
        assert scheme is not None and index is not None
        automaton = compile_automaton(
            index.patterns, scheme.limits, forbidden=scheme.forbidden, carried=index.carried
        )
        with self.lock:
            if features is None:
                features = np.arange(len(index))
            moved = structure.moved(self.structure, features)
            if len(moved) < structure.size or not np.array_equal(moved, np.arange(len(moved))):
                set_weights(self.model, _moved(self.weights, moved, structure.size))
                if self._loaded_weights is not None:
                    self._loaded_weights = _moved(self._loaded_weights, moved, structure.size)
            self.model.attrs["structure"] = structure
            self._automaton = automaton

    def _warn_of_partial(self, documents: Iterable[Document]) -> None:
        partial = (
            sum(not document.complete for document in documents)
            if self.trainer.complete_only
            else 0
        )
        if partial:
            warnings.warn(Warnings.W005.format(found=partial), stacklevel=2)

    def _join_neighbours(self, documents: Sequence[Document]) -> None:
        settings = self.structure.settings
        if not joins(settings):
            return
        touching = sum(document.annotation.repeats for document in documents)
        if touching:
            reason = "encoding = 'io'" if settings.encoding == "io" else "repeats = false"
            warnings.warn(Warnings.W001.format(found=touching, reason=reason), stacklevel=2)
        for document in documents if touching else ():
            document.annotation = self.as_modelled(document.annotation)

    # Checks

    def _check_labels(self, annotations: Iterable[Annotation]) -> None:
        scheme, known = self.structure.scheme, set(self.labels)
        for annotation in annotations:
            for _, _, label in annotation.spans:
                if label not in known:
                    raise ValueError(Errors.H040.format(label=label, known=", ".join(self.labels)))
            if scheme is not None and scheme.outside < 0 and annotation.has_outside:
                known_segments(scheme, annotation)  # raises H041


def _moved(values: NDArray[np.float64], moved: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Values at their new places, 0 elsewhere, float64 [size]."""
    result = np.zeros(size)
    result[moved] = values
    return result
