"""Which features exist: the observations, each with the label patterns that it was seen with.

A feature is an (observation, label pattern) pair with one weight. Features are numbered observation
by observation, so that the features of observation i are feature_offsets[i] to feature_offsets[i +
1], with ascending patterns (Nguyen et al., JMLR 15 (2014) §2.1: the features of the models are the
pairs that occur in the training data).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore

from spacy_hocrf.arrays import ranges
from spacy_hocrf.features.checks import checked_events, checked_found, checked_template
from spacy_hocrf.features.rows import rows_by_token
from spacy_hocrf.features.saved import check_arrays, patterns_to
from spacy_hocrf.features.segments import LengthTemplate
from spacy_hocrf.features.table import ObservationTable
from spacy_hocrf.features.templates import Events, Finder, Found, Template, spell
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.types import (
    CONST,
    END,
    INNER,
    LENGTH,
    SPAN,
    START,
    TOKEN,
    LabelPattern,
    Observations,
    PartRows,
    Spans,
)

__all__ = ["FeatureIndex", "GoldSegments"]

MERGED = 100_000
"""Counts that may wait to be added up."""


@dataclass(frozen=True)
class GoldSegments:
    """Known segments of a batch of N tokens, in order; n of them."""

    start: NDArray[np.int64]  # [n] first token
    end: NDArray[np.int64]  # [n] one past the last token
    # [order + 1, n] number of the pattern of the last 1, 2, … labels, -1 if it is none
    pattern: NDArray[np.int32]

    def of_token(self, n_tokens: int) -> NDArray[np.int64]:
        """Number of the segment that each token is in, int64 [N], -1 for none."""
        segment = np.full(n_tokens, -1, dtype=np.int64)
        lengths = self.end - self.start
        segment[ranges(self.start, lengths)] = np.repeat(np.arange(len(self.start)), lengths)
        return segment

    def patterns_at(
        self, part: int, order: int, events: Events, n_tokens: int
    ) -> NDArray[np.int32]:
        """Pattern of order + 1 labels that each event fires with, int32 [n], -1 for none."""
        if order >= len(self.pattern):
            return np.full(len(events.token), -1, dtype=np.int32)
        padded = np.append(self.pattern[order], np.int32(-1))
        segment = self.of_token(n_tokens)[events.token]
        start, end = np.append(self.start, -1)[segment], np.append(self.end, -1)[segment]
        fires = {
            START: events.token == start,
            END: events.token == end - 1,
            TOKEN: segment >= 0,
            INNER: (segment >= 0) & (events.token != start),
            SPAN: (events.token == start) & (end == events.end)
            if events.end is not None
            else segment < -1,
        }[part]
        return np.where(fires, padded[segment], -1).astype(np.int32)


@dataclass
class FeatureIndex:
    """Templates, observations and features of a model.

    patterns (tuple[LabelPattern, ...]): the Y single labels, then the longer patterns; Z in all.
    templates (Sequence[Template]): in the order of the config.
    """

    patterns: tuple[LabelPattern, ...]
    templates: Sequence[Template]
    table: ObservationTable = field(init=False)
    feature_offsets: NDArray[np.int64] = field(init=False)  # [M + 1]
    feature_pattern: NDArray[np.int32] = field(init=False)  # [F]
    feature_count: NDArray[np.int64] = field(init=False)  # [F] occurrences in the training data

    def __post_init__(self) -> None:
        for template in self.templates:
            checked_template(template)
        self.table = ObservationTable(
            max([template.width for template in self.templates], default=0)
        )
        self.feature_offsets = np.zeros(1, dtype=np.int64)
        self.feature_pattern = np.zeros(0, dtype=np.int32)
        self.feature_count = np.zeros(0, dtype=np.int64)

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
    def attributes(self) -> list[str]:
        """Token attributes that the templates are known to read."""
        return [name for template in self.templates for name in getattr(template, "attributes", ())]

    @property
    def carried(self) -> set[LabelPattern]:
        """Patterns of two or more labels that have a feature after the start of their segment."""
        parts = np.array([template.part for template in self.templates], dtype=np.int32)
        template = self.table.rows[:, 0].astype(np.int64)
        late = np.isin(parts[template[self.feature_observation]], [END, TOKEN, INNER, SPAN, LENGTH])
        return {
            self.patterns[z]
            for z in np.unique(self.feature_pattern[late])
            if len(self.patterns[z]) > 1
        }

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
        unseen (bool): pair every observation of order 0 with all labels, those never seen with it
            included.
        all_pairs (bool): give every pattern of two labels a feature of each template that observes
            nothing else, those that never fire included.
        RETURNS (int64 [F before]): new number of every feature that there was before.
        """
        n_patterns = len(self.patterns)
        old = self.feature_observation.astype(np.int64) * n_patterns + self.feature_pattern
        keys, counts = [old], [self.feature_count]
        for batch, segments in gold:
            for key, count in self._pairs(batch, segments):
                keys.append(key)
                counts.append(count)
            # never much more at hand than there will be in the end
            if sum(map(len, keys)) > max(MERGED, 2 * len(keys[0])):
                pairs, total = _merged(keys, counts)
                keys, counts = [pairs], [total]
        pairs, total = _merged(keys, counts)
        keep = (total >= min_count) | np.isin(pairs, old)
        pairs, total = pairs[keep], total[keep]
        if unseen:
            pairs, total = _with_more(pairs, total, self._unseen(pairs))
        if all_pairs:
            pairs, total = _with_more(pairs, total, self._all_pairs())
        self.feature_pattern = (pairs % n_patterns).astype(np.int32)
        self.feature_count = total
        self.feature_offsets = np.searchsorted(
            pairs // n_patterns, np.arange(len(self.table) + 1)
        ).astype(np.int64)
        return np.searchsorted(pairs, old)

    def renumber(self, patterns: tuple[LabelPattern, ...], numbers: NDArray[np.int32]) -> None:
        """Take a longer list of patterns; numbers[z] is the new number of pattern z, ascending."""
        self.patterns = patterns
        self.feature_pattern = numbers[self.feature_pattern].astype(np.int32)

    def observe(self, batch: TokenBatch) -> Observations:
        """The known observations of a batch; unknown ones are left out."""
        batch.prefetch(self.attributes)
        found: dict[tuple[int, bool], list[Found]] = {}
        spans = []
        for number, template in enumerate(self.templates):
            if template.part in (LENGTH, CONST):
                continue
            if _finds(template):
                these = template.find(batch, self.table, number)
                these = checked_found(template, these, len(batch), len(self.table))
            else:
                events = checked_events(template, batch)
                ids = self.table.lookup(number, events.values)
                if events.end is not None:
                    spans.append(_known_spans(events, events.end, ids))
                    continue
                these = Found(ids, events.token, events.weight)
            found.setdefault((template.part, template.order > 0), []).append(these)
        dense, sparse = (
            PartRows(
                *(
                    rows_by_token(found.get((part, longer), []), len(batch))
                    for part in (START, END, TOKEN, INNER)
                )
            )
            for longer in (False, True)
        )
        return Observations(offsets=batch.offsets, dense=dense, sparse=sparse, spans=_spans(spans))

    def lengths(self) -> list[tuple[int, int, int]]:
        """Features on the length: (feature, smallest length, largest length), the latter 0 for no
        end.
        """
        return [
            (feature, bins[b], bins[b + 1] - 1 if b + 1 < len(bins) else 0)
            for number, template in enumerate(self.templates)
            if isinstance(template, LengthTemplate)
            for bins in [template.bins]
            for feature, b in self._features_of(number)
        ]

    def constants(self) -> list[int]:
        """Features that fire with every segment after their label pattern."""
        return [
            feature
            for number, template in enumerate(self.templates)
            if template.part == CONST
            for feature, _ in self._features_of(number)
        ]

    def describe(
        self, feature: int, strings: StringStore, labels: Sequence[str]
    ) -> tuple[str, str]:
        """A feature in words: its observation and its label pattern, oldest label first.

        strings (StringStore): store of the Docs that it was learnt from.
        labels (Sequence[str]): names of the labels.
        """
        observation = int(np.searchsorted(self.feature_offsets, feature, side="right")) - 1
        row = self.table.row(observation)
        template = self.templates[int(row[0])]
        numbers = [int(value) for value in row[1 : 1 + template.width]]
        describe = getattr(template, "describe", None)
        values = (
            describe(numbers, strings)
            if describe
            else "|".join(spell(value, strings) for value in numbers)
        )
        pattern = " ".join(labels[y] for y in self.patterns[self.feature_pattern[feature]])
        return (f"{template.name}={values}" if values else template.name), pattern

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays that `from_arrays` restores the index from."""
        return {
            "observations": self.table.rows,
            "feature_offsets": self.feature_offsets,
            "feature_pattern": self.feature_pattern,
            "feature_count": self.feature_count,
            **patterns_to(self.patterns),
        }

    @classmethod
    def from_arrays(
        cls,
        patterns: tuple[LabelPattern, ...],
        templates: Sequence[Template],
        arrays: Mapping[str, NDArray[Any]],
    ) -> "FeatureIndex":
        """The index that has been saved as these arrays.

        patterns (tuple[LabelPattern, ...]): as `patterns_from` gives them.
        RAISES (ValueError): H021 or H039 for arrays that do not fit each other.
        """
        index = cls(patterns, templates)
        check_arrays(arrays, patterns, templates, index.table.width)
        index.table = ObservationTable.from_rows(arrays["observations"])
        index.feature_offsets = np.asarray(arrays["feature_offsets"], dtype=np.int64)
        index.feature_pattern = np.asarray(arrays["feature_pattern"], dtype=np.int32)
        index.feature_count = np.asarray(arrays["feature_count"], dtype=np.int64)
        return index

    def _pairs(
        self, batch: TokenBatch, gold: GoldSegments
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """(observation, pattern) pairs of a batch as single numbers, and how often each fires,
        template by template.
        """
        for number, template in enumerate(self.templates):
            if template.part in (LENGTH, CONST):
                if template.order >= len(gold.pattern):
                    continue
                events = _segment_events(template, gold)
                patterns = gold.pattern[template.order]
            else:
                events = checked_events(template, batch)
                patterns = gold.patterns_at(template.part, template.order, events, len(batch))
            fires = patterns >= 0
            ids = self.table.add(number, np.ascontiguousarray(events.values[fires]))
            yield np.unique(
                ids.astype(np.int64) * len(self.patterns) + patterns[fires], return_counts=True
            )

    def _unseen(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Pairs of all labels with the observations that have some label."""
        n = len(self.patterns)
        single = np.unique(pairs[pairs % n < self.n_labels] // n)
        return (single[:, None] * n + np.arange(self.n_labels)).ravel()

    def _all_pairs(self) -> NDArray[np.int64]:
        """Pairs of all patterns of two labels with the observation of nothing."""
        two = np.flatnonzero([len(pattern) == 2 for pattern in self.patterns])
        numbers = [
            number
            for number, template in enumerate(self.templates)
            if template.part == CONST and template.order == 1
        ]
        nothing = np.zeros((1, 0), dtype=np.uint64)
        ids = np.array([self.table.add(number, nothing)[0] for number in numbers], dtype=np.int64)
        return (ids[:, None] * len(self.patterns) + two).ravel()

    def _features_of(self, template: int) -> Iterator[tuple[int, int]]:
        """Features of a template, each with the first attribute value of its observation."""
        rows = self.table.rows
        for observation in np.flatnonzero(rows[:, 0] == template):
            value = int(rows[observation, 1]) if rows.shape[1] > 1 else 0
            for feature in range(
                self.feature_offsets[observation], self.feature_offsets[observation + 1]
            ):
                yield int(feature), value


def _merged(
    keys: list[NDArray[np.int64]], counts: list[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct keys, ascending, and the sum of each one's counts, both int64."""
    pairs, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    return pairs, np.bincount(inverse, weights=np.concatenate(counts), minlength=len(pairs)).astype(
        np.int64
    )


def _with_more(
    keys: NDArray[np.int64], counts: NDArray[np.int64], more: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ascending keys with further ones among them, which count 0 where they are new."""
    merged = np.union1d(keys, more)
    found = np.zeros(len(merged), dtype=np.int64)
    found[np.searchsorted(merged, keys)] = counts
    return merged, found


def _segment_events(template: Template, gold: GoldSegments) -> Events:
    """What LENGTH and CONST templates observe at each gold segment."""
    if isinstance(template, LengthTemplate):
        bins = np.searchsorted(template.bins, gold.end - gold.start, side="right") - 1
        return Events(gold.start, bins.astype(np.uint64).reshape(-1, 1))
    return Events(gold.start, np.zeros((len(gold.start), 0), dtype=np.uint64))


def _finds(template: Template) -> TypeGuard[Finder]:
    """Has it a `find` that knows its `events`? A class that replaces only the latter must not
    inherit the former.
    """
    for cls in type(template).__mro__:
        if "find" in vars(cls) or "events" in vars(cls):
            return "find" in vars(cls)
    return False


def _known_spans(events: Events, end: NDArray[np.int64], ids: NDArray[np.int32]) -> Spans:
    """The known events of a template on whole segments."""
    weight = np.ones(len(ids), dtype=np.float32) if events.weight is None else events.weight
    known = ids >= 0
    return Spans(events.token[known], end[known], ids[known], weight[known])


def _spans(entries: list[Spans]) -> Spans:
    """All of them by start and end."""
    if not entries:
        empty = np.zeros(0, dtype=np.int64)
        return Spans(empty, empty, empty.astype(np.int32), empty.astype(np.float32))
    columns = ((spans.start, spans.end, spans.ids, spans.values) for spans in entries)
    start, end, ids, values = (np.concatenate(arrays) for arrays in zip(*columns))
    order = np.lexsort((end, start))
    return Spans(start[order], end[order], ids[order], values[order])
