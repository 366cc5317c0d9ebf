"""The index of features: which observations were seen with which label patterns.

A feature is an observation, one of the templates that produce it, and a label pattern; it has one
weight. Features are numbered observation by observation: those of observation i are
feature_offsets[i] to feature_offsets[i + 1], sorted by template and then by pattern (Nguyen et al., JMLR 15
(2014) §2.1: the features of the models are the pairs that occur in the training data).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore

from spacy_hocrf.features.checks import checked_template
from spacy_hocrf.features.gold import GoldSegments
from spacy_hocrf.features.observers import Observer, observers_of, planned
from spacy_hocrf.features.plan import Plan
from spacy_hocrf.features.rows import rows_by_token
from spacy_hocrf.features.saved import check_arrays, patterns_to
from spacy_hocrf.features.segments import LengthTemplate
from spacy_hocrf.features.table import ObservationTable
from spacy_hocrf.features.templates import Events, Found, Template, spelled
from spacy_hocrf.features.tokens import EDGE, TokenBatch
from spacy_hocrf.types import (
    CONST,
    END,
    INNER,
    LENGTH,
    SPAN,
    TOKEN,
    LabelPattern,
    Observations,
    Rows,
    Spans,
)

__all__ = ["FeatureIndex"]

MERGED = 100_000
"""Number of counts that may accumulate before they are merged."""


@dataclass
class FeatureIndex:
    """Templates, observations and features of a model.

    patterns (tuple[LabelPattern, ...]): the Y single labels, then the longer patterns; Z in all.
    templates (Sequence[Template]): in the order of the config.
    """

    patterns: tuple[LabelPattern, ...]
    templates: Sequence[Template]
    table: ObservationTable = field(init=False)
    observers: tuple[Observer, ...] = field(init=False)
    # token attributes that the templates declare
    attributes: tuple[str, ...] = field(init=False)
    _plan: Plan = field(init=False, repr=False)
    _others: tuple[Observer, ...] = field(init=False, repr=False)  # not covered by the plan
    feature_offsets: NDArray[np.int64] = field(init=False)  # [M + 1]
    feature_template: NDArray[np.int32] = field(init=False)  # [F]
    feature_pattern: NDArray[np.int32] = field(init=False)  # [F]
    # [F] occurrences in the training data
    feature_count: NDArray[np.unsignedinteger[Any]] = field(init=False)

    def __post_init__(self) -> None:
        for template in self.templates:
            checked_template(template)
        self.table = ObservationTable(
            max([template.width for template in self.templates], default=0)
        )
        self.observers = observers_of(self.templates)
        self._plan, self._others = planned(self.observers)
        reads = (getattr(each, "attributes", ()) for each in self.templates)
        self.attributes = tuple(dict.fromkeys(name for names in reads for name in names))
        self.feature_offsets = np.zeros(1, dtype=np.int64)
        self.feature_template = np.zeros(0, dtype=np.int32)
        self.feature_pattern = np.zeros(0, dtype=np.int32)
        self.feature_count = np.zeros(0, dtype=np.uint8)

    def __len__(self) -> int:
        """Number of features F."""
        return len(self.feature_pattern)

    @property
    def n_labels(self) -> int:
        """Number of labels Y."""
        return sum(len(pattern) == 1 for pattern in self.patterns)

    @property
    def feature_observation(self) -> NDArray[np.int32]:
        """Observation of every feature, int32 [F]."""
        return np.repeat(np.arange(len(self.table), dtype=np.int32), np.diff(self.feature_offsets))

    @property
    def feature_order(self) -> NDArray[np.int32]:
        """Number of earlier segments that every feature sees, int32 [F]."""
        lengths = np.array([len(pattern) for pattern in self.patterns], dtype=np.int32)
        return lengths[self.feature_pattern] - 1

    @property
    def feature_part(self) -> NDArray[np.uint8]:
        """Part of a segment of every feature, uint8 [F]."""
        parts = np.array([template.part for template in self.templates], dtype=np.uint8)
        return parts[self.feature_template]

    @property
    def carried(self) -> set[LabelPattern]:
        """Patterns of two or more labels with a feature that is not observed at the start of a segment."""
        late = np.isin(self.feature_part, [END, TOKEN, INNER, SPAN, LENGTH])
        return {
            self.patterns[z]
            for z in np.unique(self.feature_pattern[late])
            if len(self.patterns[z]) > 1
        }

    def keys(
        self,
        observation: NDArray[np.integer],
        template: NDArray[np.integer] | int,
        pattern: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        """Return one number per feature, in the order of the features."""
        number: NDArray[np.int64] = observation.astype(np.int64) * len(self.templates) + template
        keys: NDArray[np.int64] = number * len(self.patterns) + pattern
        return keys

    def learn(
        self,
        gold: Iterator[tuple[TokenBatch, GoldSegments]],
        *,
        min_count: int = 1,
        unseen: bool = False,
        all_pairs: bool = False,
    ) -> NDArray[np.int64]:
        """Add the features that fire in annotated batches.

        gold (Iterator[tuple[TokenBatch, GoldSegments]]): batches and their known segments.
        min_count (int): features that fire less often are left out.
        unseen (bool): pair every observation of order 0 with all labels, even those never seen with it.
        all_pairs (bool): give every pattern of two labels a feature of each template that observes
            nothing else, even if it never fires.
        RETURNS (int64 [F before]): new number of every earlier feature.
        """
        old = self.keys(self.feature_observation, self.feature_template, self.feature_pattern)
        fired = [(old, self.feature_count.astype(np.int64))]
        for batch, segments in gold:
            fired += self._fired(batch, segments)
            # keeps memory close to what the final index needs
            if sum(len(keys) for keys, _ in fired) > max(MERGED, 2 * len(fired[0][0])):
                fired = [_merged(fired)]
        keys, counts = _merged(fired)
        keep = (counts >= min_count) | np.isin(keys, old)
        keys, counts = keys[keep], counts[keep]
        if unseen:
            keys, counts = _with_more(keys, counts, self._unseen(keys))
        if all_pairs:
            keys, counts = _with_more(keys, counts, self._all_pairs())
        self.table.trim()
        # the parts of each key, which are ascending: pattern, template and observation
        n_patterns, n_templates = len(self.patterns), len(self.templates)
        self.feature_pattern = (keys % n_patterns).astype(np.int32)
        self.feature_template = (keys // n_patterns % n_templates).astype(np.int32)
        self.feature_count = _small(counts)
        observation = keys // (n_patterns * n_templates)
        bounds = np.arange(len(self.table) + 1)
        self.feature_offsets = np.searchsorted(observation, bounds).astype(np.int64)
        return np.searchsorted(keys, old)

    def renumber(self, patterns: tuple[LabelPattern, ...], numbers: NDArray[np.int32]) -> None:
        """Take a longer list of patterns; numbers[z] is the new number of pattern z, ascending."""
        self.patterns = patterns
        self.feature_pattern = numbers[self.feature_pattern].astype(np.int32)

    def observe(self, batch: TokenBatch) -> Observations:
        """Return the known observations of a batch; unknown ones are left out."""
        batch.prefetch(self.attributes)
        columns = list(map(batch.column, self._plan.columns))
        plan_rows = self._plan.find(self.table, columns, batch.texts_of, batch.offsets, int(EDGE))
        rows = Rows(*plan_rows, None)
        unplanned, spans = [], []
        for observer in self._others:
            if observer.template.part == SPAN:
                events = observer.events(batch)
                ids = self.table.lookup(observer.number, events.values)
                assert events.end is not None
                spans.append(_known_spans(events, events.end, ids))
            else:
                unplanned.append(observer.found(batch, self.table))
        if unplanned:
            tokens = np.repeat(np.arange(len(batch)), np.diff(rows.offsets))
            rows = rows_by_token([Found(rows.ids, tokens, None), *unplanned], len(batch))
        return Observations(offsets=batch.offsets, tokens=rows, spans=_spans(spans))

    def lengths(self) -> list[tuple[int, int, int]]:
        """Return the features on the length: (feature, smallest length, largest length); 0 is no upper
        limit.
        """
        return [
            (feature, bins[b], bins[b + 1] - 1 if b + 1 < len(bins) else 0)
            for number, template in enumerate(self.templates)
            if isinstance(template, LengthTemplate)
            for bins in [template.bins]
            for feature, b in self._features_of(number)
        ]

    def constants(self) -> list[int]:
        """Return the features that fire with every segment that matches their label pattern."""
        return [
            feature
            for number, template in enumerate(self.templates)
            if template.part == CONST
            for feature, _ in self._features_of(number)
        ]

    def describe(
        self, feature: int, strings: StringStore, labels: Sequence[str]
    ) -> tuple[str, str]:
        """Describe a feature by its observation and its label pattern, oldest label first.

        strings (StringStore): store of the Docs that the feature was learnt from.
        labels (Sequence[str]): names of the labels.
        """
        observation = int(np.searchsorted(self.feature_offsets, feature, side="right")) - 1
        template = self.templates[self.feature_template[feature]]
        numbers = [int(value) for value in self.table.row(observation)[1 : 1 + template.width]]
        describe = getattr(template, "describe", spelled)
        values = describe(numbers, strings)
        pattern = " ".join(labels[y] for y in self.patterns[self.feature_pattern[feature]])
        return (f"{template.name}={values}" if values else template.name), pattern

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return named arrays from which `from_arrays` restores the index."""
        return {
            "observations": self.table.rows,
            "feature_offsets": self.feature_offsets,
            "feature_template": self.feature_template,
            "feature_pattern": self.feature_pattern,
            "feature_count": self.feature_count.astype(np.int64),
            **patterns_to(self.patterns),
        }

    @classmethod
    def from_arrays(
        cls,
        patterns: tuple[LabelPattern, ...],
        templates: Sequence[Template],
        arrays: Mapping[str, NDArray[Any]],
    ) -> "FeatureIndex":
        """Restore an index from these arrays.

        patterns (tuple[LabelPattern, ...]): the result of `patterns_from`.
        RAISES (ValueError): H021 or H039 for arrays that do not fit each other.
        """
        index = cls(patterns, templates)
        check_arrays(arrays, patterns, templates, index.observers, index.table.width)
        index.table = ObservationTable.from_rows(arrays["observations"])
        index.feature_offsets = np.asarray(arrays["feature_offsets"], dtype=np.int64)
        index.feature_template = np.asarray(arrays["feature_template"], dtype=np.int32)
        index.feature_pattern = np.asarray(arrays["feature_pattern"], dtype=np.int32)
        index.feature_count = _small(arrays["feature_count"])
        return index

    def _fired(
        self, batch: TokenBatch, gold: GoldSegments
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the keys of the features that fire in a batch, and their counts, observer by observer."""
        segment = gold.of_token(len(batch))
        for observer in self.observers:
            if not observer.looks:
                yield from self._fired_by_segments(observer, gold)
                continue
            events = observer.events(batch)
            fired = {
                number: gold.patterns_at(template.part, template.order, events, segment)
                for number in observer.templates
                for template in [self.templates[number]]
            }
            occurs = np.any([patterns >= 0 for patterns in fired.values()], axis=0)
            ids = np.full(len(occurs), -1, dtype=np.int32)
            values = np.ascontiguousarray(events.values[occurs])
            ids[occurs] = self.table.add(observer.number, values)
            for number, patterns in fired.items():
                fires = patterns >= 0
                keys = self.keys(ids[fires], number, patterns[fires])
                yield np.unique(keys, return_counts=True)

    def _fired_by_segments(
        self, observer: Observer, gold: GoldSegments
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield keys of features, and their counts, for a template that does not look at Docs."""
        template, number = observer.template, observer.templates[0]
        if template.order < len(gold.pattern):
            patterns = gold.pattern[template.order]
            fires = patterns >= 0
            values = np.ascontiguousarray(_segment_events(template, gold).values[fires])
            keys = self.keys(self.table.add(observer.number, values), number, patterns[fires])
            yield np.unique(keys, return_counts=True)

    def _unseen(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keys that pair all labels with every observation that was seen with any label."""
        n = len(self.patterns)
        observed = np.unique(keys[keys % n < self.n_labels] // n)
        return (observed[:, None] * n + np.arange(self.n_labels)).ravel()

    def _all_pairs(self) -> NDArray[np.int64]:
        """Keys that pair all patterns of two labels with the empty observation."""
        pairs = np.flatnonzero([len(pattern) == 2 for pattern in self.patterns])
        nothing = np.zeros((1, 0), dtype=np.uint64)
        keys = [
            self.keys(self.table.add(observer.number, nothing), observer.templates[0], pairs)
            for observer in self.observers
            if observer.template.part == CONST and observer.template.order == 1
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *keys])

    def _features_of(self, template: int) -> Iterator[tuple[int, int]]:
        """Yield the features of a template, each with the first attribute value of its observation."""
        features = np.flatnonzero(self.feature_template == template)
        observations = np.searchsorted(self.feature_offsets, features, side="right") - 1
        for feature, observation in zip(features.tolist(), observations.tolist()):
            row = self.table.row(observation)
            yield feature, int(row[1]) if len(row) > 1 else 0


def _small(counts: NDArray[np.int64]) -> NDArray[np.unsignedinteger[Any]]:
    """Counts in the smallest type that can hold them."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


def _merged(
    fired: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct keys, ascending, and the sum of the counts of each, both int64."""
    all_keys, all_counts = (np.concatenate(arrays) for arrays in zip(*fired))
    keys, inverse = np.unique(all_keys, return_inverse=True)
    return keys, np.bincount(inverse, all_counts, minlength=len(keys)).astype(np.int64)


def _with_more(
    keys: NDArray[np.int64], counts: NDArray[np.int64], new_keys: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Insert further keys into ascending ones; new keys have the count 0."""
    merged = np.union1d(keys, new_keys)
    merged_counts = np.zeros(len(merged), dtype=np.int64)
    merged_counts[np.searchsorted(merged, keys)] = counts
    return merged, merged_counts


def _segment_events(template: Template, gold: GoldSegments) -> Events:
    """Observations of a LENGTH or CONST template for each gold segment."""
    if isinstance(template, LengthTemplate):
        bins = np.searchsorted(template.bins, gold.end - gold.start, side="right") - 1
        return Events(gold.start, bins.astype(np.uint64).reshape(-1, 1))
    return Events(gold.start, np.zeros((len(gold.start), 0), dtype=np.uint64))


def _known_spans(events: Events, end: NDArray[np.int64], ids: NDArray[np.int32]) -> Spans:
    """Known events of a template on whole segments."""
    weight = np.ones(len(ids), dtype=np.float32) if events.weight is None else events.weight
    known = ids >= 0
    return Spans(events.token[known], end[known], ids[known], weight[known])


NOTHING = np.zeros(0, dtype=np.int64)
NO_SPANS = Spans(NOTHING, NOTHING, NOTHING.astype(np.int32), None)


def _spans(entries: list[Spans]) -> Spans:
    """Merge the spans of several templates into one table, sorted by start and end."""
    if not entries:
        return NO_SPANS
    columns = ((spans.start, spans.end, spans.ids, spans.values) for spans in entries)
    start, end, ids, values = (np.concatenate(arrays) for arrays in zip(*columns))
    order = np.lexsort((end, start))
    return Spans(start[order], end[order], ids[order], values[order])
