"""The model's parts other than its weights: labels, label patterns, features and the automaton, and
how they are learnt.

`initialize` and a growing corpus call `learn`; everything else only reads. A model's structure is in its
thinc Model's `attrs["structure"]`. `add_pipe` makes an empty one; the modules that fill it are imported
by the methods that need them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spacy_hocrf.arrays import stretches
from spacy_hocrf.errors import Errors
from spacy_hocrf.features.tokens import TokenBatch, lengths_of
from spacy_hocrf.model.dense import dense_weights, moved_weights
from spacy_hocrf.model.heads import dense_of, inputs_of
from spacy_hocrf.model.words import numbers_of_words
from spacy_hocrf.types import CONST, CONTINUE

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from spacy.tokens import Doc
    from thinc.api import Model

    from spacy_hocrf.features.gold import GoldSegments
    from spacy_hocrf.features.index import FeatureIndex
    from spacy_hocrf.features.templates import Template
    from spacy_hocrf.model.compiled import CompiledBatch
    from spacy_hocrf.model.dense import Scores
    from spacy_hocrf.model.histories import Histories
    from spacy_hocrf.model.pattern_choice import PatternChoice
    from spacy_hocrf.model.placement import CompiledIndex
    from spacy_hocrf.model.scheme import LabelScheme
    from spacy_hocrf.types import LabelPattern, Observations

__all__ = ["Settings", "Structure", "token_batches"]

BATCH_TOKENS = 20_000
"""Number of tokens whose features are extracted together."""


@dataclass(frozen=True)
class Settings:
    """The checked arguments of `spacy-hocrf.HighOrderCRF.v1`. With an encoder, order "auto" has become 1;
    where segments are tokens, templates and scores have been moved to the token part.
    """

    templates: tuple[Template, ...]
    wider: frozenset[str] = frozenset()  # names of templates that are used only if `wide`
    wide: bool = False  # the latest choice
    order: int = 1  # if it is chosen automatically: the latest choice
    auto_order: bool = False  # is the order chosen when the component is initialised?
    endless: bool = False  # is the order that of the longest label pattern?
    encoding: str = "segments"
    outside: str = "token"
    repeats: bool | None = None
    max_length: int | Mapping[str, int] | None = None
    min_count: int = 1
    # for order 1, 2, …, the last number also for all higher ones
    min_pattern_counts: tuple[int, ...] = (1,)
    patterns: PatternChoice = "counts"
    unseen: bool = False
    unseen_transitions: bool = False
    scores: Scores = ()  # dense scores
    encoder: Model[list[Doc], Any] | None = None  # whose output heads among the scores read

    @property
    def used(self) -> tuple[Template, ...]:
        """Templates up to the model's order; those for all orders are expanded, others take precedence."""
        from spacy_hocrf.features.segments import TransitionTemplate

        unused = frozenset() if self.wide else self.wider
        templates = [template for template in self.templates if template.name not in unused]
        named = {template.name for template in templates}
        used: list[Template] = []
        for template in templates:
            if isinstance(template, TransitionTemplate) and template.every:
                used += [each for each in template.up_to(self.order) if each.name not in named]
                named.update(each.name for each in used)
            elif template.order <= self.order:
                used.append(template)
        return tuple(used)

    @property
    def highest(self) -> int | None:
        """The highest order of a template; None if there is a template for all orders."""
        from spacy_hocrf.features.segments import TransitionTemplate

        if any(isinstance(each, TransitionTemplate) and each.every for each in self.templates):
            return None
        return max((template.order for template in self.templates), default=0)

    @cached_property
    def dense(self) -> Scores:
        """The dense scores that have weights."""
        return tuple((name, score) for name, score in self.scores if score.width)

    @property
    def all_pairs(self) -> bool:
        """Is every pair of labels that may follow one another a pattern, even if unseen?"""
        return self.unseen_transitions and any(
            template.part == CONST and template.order == 1 for template in self.used
        )

    def limit(self, label: str, longest: int) -> int:
        """Return the longest segment of a label, 0 for no limit, given the longest in the training data."""
        if self.max_length is None:
            return max(1, longest)
        limit = (
            self.max_length if isinstance(self.max_length, int) else self.max_length.get(label, 0)
        )
        return limit if limit == 0 else max(limit, longest)


@dataclass(eq=False)
class Structure:
    """Labels, features and patterns of a model. Once in a model it is never changed: learning works on a
    copy, which then replaces it.

    settings (Settings): settings from the config.

    scheme (LabelScheme): the engine's labels.
    index (FeatureIndex): patterns and features. compiled (CompiledIndex): their arrangement.
    RAISES (ValueError): H042 on access to one of these before it is learnt or loaded.
    """

    settings: Settings
    scheme: LabelScheme = field(init=False, repr=False)
    index: FeatureIndex = field(init=False, repr=False)
    compiled: CompiledIndex = field(init=False, repr=False)
    histories: Histories | None = field(default=None, repr=False)
    # [U] numbers of the words in the texts that it has learnt from, if words have scores; None if it
    # was loaded, or has learnt nothing
    words: NDArray[np.int32] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """The sizes of the model, for `spacy debug model`."""
        templates = f"{len(self.settings.used):,} templates up to order {self.settings.order}"
        if not self.ready:
            return f"{templates}; nothing is learnt"
        return (
            f"{templates}, {self.scheme.n_labels:,} labels, {len(self.patterns):,} label patterns, "
            f"{self.size:,} features"
        )

    if not TYPE_CHECKING:  # else mypy would accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Called only for missing attributes."""
            if name in ("scheme", "index", "compiled"):
                raise ValueError(Errors.H042)
            raise AttributeError(name)

    @property
    def ready(self) -> bool:
        """Has it been initialized, learnt or loaded?"""
        return "index" in vars(self)

    @property
    def patterns(self) -> tuple[LabelPattern, ...]:
        """Label patterns, the Y single labels first."""
        return self.index.patterns if self.ready else ()

    def set_labels(
        self, labels: Sequence[str], longest: Mapping[str, int], *, outside: bool, repeats: bool
    ) -> None:
        """Make the label scheme.

        labels (Sequence[str]): the users' labels.
        longest (Mapping[str, int]): longest training segment of each label.
        outside (bool): is there unlabelled text?
        repeats (bool): do neighbouring segments of one label occur in training? Used where the
            setting is null.
        """
        from spacy_hocrf.model.scheme import make_scheme

        settings = self.settings
        self.scheme = make_scheme(
            labels,
            encoding=settings.encoding,
            outside=settings.outside if outside else None,
            repeats=repeats if settings.repeats is None else settings.repeats,
            limits=[settings.limit(label, longest.get(label, 0)) for label in labels],
        )
        if settings.encoding == "segments" and settings.max_length is None and self.scheme.settled:
            self.scheme = replace(self.scheme, limits=(0,))  # longer texts have one reading, too

    def learn(
        self,
        patterns: Sequence[LabelPattern],
        batches: Iterator[tuple[TokenBatch, Sequence[ArrayLike]]],
    ) -> NDArray[np.int64]:
        """Add the features of annotated batches; if that fails, nothing has changed.

        patterns (Sequence[LabelPattern]): all label patterns, those already known first.
        batches (Iterator[tuple[TokenBatch, Sequence[ArrayLike]]]): Docs and their known segments, as in
            `Histories.gold`.
        RETURNS (int64 [F before]): new number of every earlier feature.
        """
        from spacy_hocrf.features.index import FeatureIndex
        from spacy_hocrf.features.table import ObservationTable
        from spacy_hocrf.model.histories import Histories

        index = FeatureIndex(tuple(patterns), self.settings.used)
        if self.ready:
            index.table = ObservationTable.from_rows(self.index.table.rows)
            index.feature_offsets = self.index.feature_offsets
            index.feature_template = self.index.feature_template
            index.feature_pattern = self.index.feature_pattern
            index.feature_count = self.index.feature_count
        histories = Histories(patterns)
        seen: list[NDArray[np.int32]] = []

        def gold() -> Iterator[tuple[TokenBatch, GoldSegments]]:
            for batch, segments in batches:
                seen.append(numbers_of_words(self.settings.dense, batch))
                yield batch, histories.gold(segments, batch.offsets)

        renumbered = index.learn(
            gold(),
            min_count=self.settings.min_count,
            unseen=self.settings.unseen,
            all_pairs=self.settings.all_pairs,
        )
        if self.words is not None or not self.ready:
            before = np.zeros(0, dtype=np.int32) if self.words is None else self.words
            self.words = np.unique(np.concatenate([before, *seen]))
        self._take(index)
        return renumbered

    def restore(self, scheme: LabelScheme, index: FeatureIndex) -> None:
        """Set a loaded scheme and index."""
        self.scheme = scheme
        self._take(index)

    def _take(self, index: FeatureIndex) -> None:
        from spacy_hocrf.model.placement import CompiledIndex

        self.index = index
        dense = dense_weights(self.settings.dense, index.n_labels, self.words)
        self.compiled = CompiledIndex(index, dense)

    @property
    def n_dense(self) -> int:
        """Number of weights of dense scores."""
        return self.compiled.n_dense if self.ready else 0

    @property
    def size(self) -> int:
        """Number of weights: those of the F features, and of dense scores after them."""
        return len(self.index) + self.n_dense if self.ready else 0

    @property
    def orders(self) -> NDArray[np.int32]:
        """Number of earlier segments that each weight's score sees, int32 [size]; 0 for dense ones."""
        nothing = np.zeros(self.compiled.n_dense, dtype=np.int32)
        return np.concatenate([self.index.feature_order, nothing])

    def moved(self, before: Structure, features: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the new place of every weight of an older structure, int64 [size before].

        features (int64 [F before]): new number of every earlier feature.
        """
        if not before.ready:
            return features
        scores = self.settings.dense
        dense = moved_weights(scores, before.index.n_labels, self.index.n_labels)
        return np.concatenate([features, len(self.index) + dense])

    def found_in(self, other: Structure) -> NDArray[np.int64]:
        """Return the place of every weight in another structure with the same labels, int64 [size]; -1 if
        it is unknown there.
        """
        index, others = self.index, other.index
        number = {pattern: z for z, pattern in enumerate(others.patterns)}
        patterns = np.array([number.get(pattern, -1) for pattern in index.patterns], dtype=np.int64)
        pattern = patterns[index.feature_pattern]
        template = _templates_in(index, others)[index.feature_template]
        observation = _observations_in(index, others)[index.feature_observation]
        matched = (pattern >= 0) & (observation >= 0) & (template >= 0)
        # the place of each feature's key among the ascending keys of the other index
        keys = others.keys(
            others.feature_observation, others.feature_template, others.feature_pattern
        )
        key = np.where(matched, others.keys(observation, template, pattern), -1)
        place = np.searchsorted(keys, key)
        matched &= np.append(keys, -1)[place] == key
        dense_place = len(others) + np.arange(self.n_dense, dtype=np.int64)
        return np.concatenate([np.where(matched, place, -1), dense_place])

    def widen(self) -> None:
        """Insert the single-label patterns of labels that are new in the scheme after those of the earlier
        labels, before the longer patterns.
        """
        index, n_labels = copy(self.index), self.scheme.n_labels
        numbers = np.arange(len(index.patterns), dtype=np.int32)
        numbers[index.n_labels :] += n_labels - index.n_labels
        longer = index.patterns[index.n_labels :]
        index.renumber((*((y,) for y in range(n_labels)), *longer), numbers)
        self.restore(self.scheme, index)

    def observe(
        self, docs: Sequence[Doc] | TokenBatch, rows: NDArray[np.float64] | None = None
    ) -> Observations:
        """Return the known observations of some Docs.

        rows (Optional[float64 [N, K]]): the encoder's output for the tokens; computed by default.
        """
        batch = _batch_of(docs)
        observations = self.index.observe(batch)
        if not self.settings.dense:
            return observations
        return replace(observations, inputs=inputs_of(self.settings.dense, batch, rows))

    def allowed(self, docs: Sequence[Doc] | TokenBatch) -> NDArray[np.uint8]:
        """Return the bits of every token and label, uint8 [N, Y]: the scheme's, except that no span begins or
        ends on white space, as far as labels tell.
        """
        batch = _batch_of(docs)
        bits = self.scheme.allowed(batch.offsets)
        if len(self.scheme.off_blank) and batch.has_blank:
            bits[np.ix_(batch.blank, self.scheme.off_blank)] &= CONTINUE
        return bits

    def compile(
        self, observations: Observations, allowed: NDArray[np.uint8], *, once: bool = False
    ) -> CompiledBatch:
        """Compile a batch for scoring.

        once (bool): as in `CompiledBatch`.
        """
        from spacy_hocrf.model.compiled import CompiledBatch

        compiled, one_token = self.compiled, self.scheme.one_token
        scores, inputs = self.settings.dense, observations.inputs
        if not scores:
            return CompiledBatch(compiled, observations, allowed, one_token, once=once)
        dense = dense_of(scores, inputs, compiled.n_labels, compiled.known_words, compiled.tables)
        return CompiledBatch(compiled, observations, allowed, one_token, dense, once=once)

    @property
    def trie(self) -> Histories:
        """Trie of the label patterns."""
        from spacy_hocrf.model.histories import Histories

        if self.histories is None or self.histories.patterns is not self.patterns:
            self.histories = Histories(self.patterns)
        return self.histories


def token_batches(
    docs: Sequence[Doc], groups: NDArray[np.int64] | None = None
) -> Iterator[TokenBatch]:
    """Split Docs into batches of about BATCH_TOKENS tokens.

    groups (Optional[int64 [D]]): number of each Doc's group; adjacent Docs of one group stay in one
        batch.
    """
    lengths = lengths_of(docs)
    for first, last in stretches(lengths, BATCH_TOKENS, groups):
        yield TokenBatch(docs[first:last], lengths=lengths[first:last])


def _templates_in(index: FeatureIndex, other: FeatureIndex) -> NDArray[np.int64]:
    """Number of every template in another index, matched by name, -1 for none."""
    numbers = {template.name: number for number, template in enumerate(other.templates)}
    return np.array(
        [numbers.get(template.name, -1) for template in index.templates], dtype=np.int64
    )


def _observations_in(index: FeatureIndex, other: FeatureIndex) -> NDArray[np.int64]:
    """Number of every observation in another index, int64 [M], -1 for none."""
    other_observers = {observer.name: observer.number for observer in other.observers}
    rows, numbers = index.table.rows, np.full(len(index.table), -1, dtype=np.int64)
    for observer in index.observers:
        if observer.name in other_observers:
            observed = rows[:, 0] == observer.number
            values = np.ascontiguousarray(rows[observed, 1 : 1 + observer.template.width])
            numbers[observed] = other.table.lookup(other_observers[observer.name], values)
    return numbers


def _batch_of(docs: Sequence[Doc] | TokenBatch) -> TokenBatch:
    return docs if isinstance(docs, TokenBatch) else TokenBatch(docs)
