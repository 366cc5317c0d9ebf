"""A model that grows: labels, limits, label patterns and features are added while existing weights keep their
values.

Structure, automaton and weights are replaced together, under a lock; predictions work on a `Snapshot` of
them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Model

from spacy_hocrf.annotation.annotation import Annotation, known_segments, likely_segments
from spacy_hocrf.engine.automaton import Automaton, compile_automaton
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.presence import Watch, observed
from spacy_hocrf.features.pruning import pruned
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.learning.survey import Survey, joins, patterns_of
from spacy_hocrf.locks import new_lock
from spacy_hocrf.model.architectures import replace_weights, set_weights, weights_of
from spacy_hocrf.model.placement import CompiledIndex, Placed
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.model.structure import Settings, Structure
from spacy_hocrf.saving.persistence import LearntModel
from spacy_hocrf.types import LabelPattern, Potentials

__all__ = ["GrowingModel", "Snapshot", "automaton_of"]


class Snapshot(NamedTuple):
    """A trained model at one moment; never changed afterwards."""

    structure: Structure
    scheme: LabelScheme
    automaton: Automaton
    weights: NDArray[np.float32]  # [F]
    placed: Placed  # the weights in the layout of the compiled index


class GrowingModel:
    """Labels, structure and weights that fit each other.

    model (Model[List[Doc], Potentials]): holds the structure and the growing weights.
    labels (Iterable[str]): the labels so far.

    lock (RLock): held while structure, automaton and weights do not fit each other.
    watch (Optional[Watch]): compares new texts with the training texts; None until all of these are known.
    """

    def __init__(self, model: Model[list[Doc], Potentials], labels: Iterable[str] = ()) -> None:
        self.model = model
        self.labels = list(labels)
        self.lock = new_lock()
        self._automaton: Automaton | None = None
        self.watch: Watch | None = None
        self._loaded_counts: Mapping[str, int] = {}  # counts of the loaded model
        self._survey = Survey()
        self._snapshot: Snapshot | None = None
        # nan for new features
        self._loaded_weights: NDArray[np.float64] | None = None
        self._loaded_labels: Sequence[str] = ()
        self._loaded_documents = 0

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
    def documents(self) -> int:
        """Number of documents the model was trained on."""
        return self._loaded_documents

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

    def extend(
        self, annotations: Callable[[], Iterable[Annotation]], batches: Iterable[TokenBatch]
    ) -> None:
        """Add the limits, label patterns and features that new documents show; existing weights keep their
        values.

        annotations (Callable[[], Iterable[Annotation]]): annotations of the documents, in order; called
            twice, since all of them together take more memory than the documents.
        batches (Iterable[TokenBatch]): their tokens.
        """
        structure = copy(self.structure)
        self._survey.note(annotations(), structure.settings)
        self._survey.set_labels(structure, self.labels)
        scheme = structure.scheme
        segments, likely = list[NDArray[np.int32]](), list[NDArray[np.int32]]()
        for annotation in annotations():
            known = np.array(known_segments(scheme, annotation), dtype=np.int32).reshape(-1, 3)
            segments.append(known)
            likely.append(likely_segments(scheme, annotation, known))
        remaining = iter(likely)
        located = ((batch, list(islice(remaining, len(batch.offsets) - 1))) for batch in batches)
        patterns = patterns_of(segments, structure, scheme.n_labels)
        if structure.settings.endless and not structure.ready:
            structure.settings = replace(structure.settings, order=max(map(len, patterns)) - 1)
        features = structure.learn(patterns, located)
        self._install(structure, features)

    def set_order(self, order: int | None, *, wide: bool = False) -> None:
        """Set another order, if one is given, as long as there are no features.

        wide (bool): include the templates that only a wide model has.
        """
        settings = self.structure.settings
        settings = replace(settings, wide=wide)
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

    # Saving

    def restore(self, model: LearntModel) -> None:
        """Start from a loaded model; its extra "scores" are the weights of the dense scores."""
        self.labels = list(model.labels)
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


def automaton_of(structure: Structure, patterns: Sequence[LabelPattern] | None = None) -> Automaton:
    """Compile the states and arcs of a model.

    patterns (Optional[Sequence[LabelPattern]]): None for the model's own patterns.
    """
    scheme, index = structure.scheme, structure.index
    return compile_automaton(
        index.patterns if patterns is None else patterns,
        scheme.limits,
        forbidden=scheme.forbidden,
        carried=index.carried,
    )


def _moved(
    values: NDArray[np.float64], moved: NDArray[np.int64], size: int, new: float = 0.0
) -> NDArray[np.float64]:
    """Move values to their new indices and fill the others with a default, float64 [size]."""
    result = np.full(size, new)
    result[moved] = values
    return result
