"""A trained model of sequences: weights of attributes with labels and of label patterns, and what it
says about items.

The score of the labels y of a sequence is

    Σ_t Σ_z [Σ_a value_a(t) · weight(a, z) + weight(z)]

over the attributes a of item t and all label patterns z that end there; weight(z) is 0 for single
labels. With attributes of single labels and pairs of labels it is the linear-chain CRF of Lafferty
et al. (ICML 2001), with more its extension to sparse label patterns of any order (Nguyen et al., JMLR
15 (2014) §2.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, stretches
from spacy_hocrf.engine.automaton import Automaton, compile_automaton
from spacy_hocrf.engine.forward_backward import expectations, log_partition
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.model.scores import expand
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.items import Attributes, Items, look_up
from spacy_hocrf.types import CONTINUE, FIRST, LAST, START, LabelPattern, Potentials

__all__ = ["ANYTHING", "SequenceModel"]

BATCH_ITEMS = 20_000
"""Items that are scored together."""
ANYTHING = FIRST | CONTINUE | LAST


@dataclass(frozen=True)
class SequenceModel:
    """Labels, attributes, label patterns and their weights; never changed.

    labels (tuple[str, ...]): [Y]
    attributes (Mapping[str, int]): number of each of the A attributes.
    feature_offsets (int64 [A + 1]): first feature of each attribute.
    feature_pattern (int32 [F]): of each feature of an attribute, its label, or Y + the place of a longer
        pattern in `patterns`; ascending for each attribute.
    feature_weight (float64 [F]): its weight.
    patterns (tuple[LabelPattern, ...]): patterns of two or more labels, with weights of their own.
    pattern_weight (float64 [len(patterns)]): theirs.
    """

    labels: tuple[str, ...]
    attributes: Mapping[str, int]
    feature_offsets: NDArray[np.int64]
    feature_pattern: NDArray[np.int32]
    feature_weight: NDArray[np.float64]
    patterns: tuple[LabelPattern, ...]
    pattern_weight: NDArray[np.float64]
    _pool: BufferPool = field(default_factory=BufferPool, init=False, repr=False, compare=False)

    @property
    def order(self) -> int:
        """Earlier labels that the longest pattern sees."""
        return max(map(len, self.patterns), default=1) - 1

    @cached_property
    def automaton(self) -> Automaton:
        """States and arcs of the label patterns."""
        singles = [(y,) for y in range(len(self.labels))]
        return compile_automaton([*singles, *self.patterns], [1] * len(singles))

    @cached_property
    def number_of(self) -> dict[str, int]:
        """Number of each label."""
        return {label: y for y, label in enumerate(self.labels)}

    def without_zeros(self) -> "SequenceModel":
        """The same model without features whose weight is 0, and attributes without features."""
        n_labels = len(self.labels)
        kept = np.flatnonzero(self.feature_weight)
        attribute = np.repeat(np.arange(len(self.attributes)), np.diff(self.feature_offsets))[kept]
        used = np.unique(attribute)
        pattern = self.feature_pattern[kept]
        needed = self.pattern_weight != 0.0
        needed[pattern[pattern >= n_labels] - n_labels] = True
        renumbered = np.append(np.arange(n_labels), n_labels + np.cumsum(needed) - 1)
        names = list(self.attributes)
        return SequenceModel(
            labels=self.labels,
            attributes={names[old]: new for new, old in enumerate(used.tolist())},
            feature_offsets=np.append(np.searchsorted(attribute, used), len(kept)),
            feature_pattern=renumbered[pattern].astype(np.int32),
            feature_weight=self.feature_weight[kept],
            patterns=tuple(z for z, keep in zip(self.patterns, needed.tolist()) if keep),
            pattern_weight=self.pattern_weight[needed],
        )

    def best(self, sequences: Sequence[Sequence[Attributes]]) -> list[list[str]]:
        """The most probable labels of each sequence."""
        found: list[list[str]] = []
        for items in self._batches(sequences):
            names = [self.labels[y] for y in self.label_numbers(items).tolist()]
            found += [names[a:b] for a, b in pairwise(items.offsets.tolist())]
        return found

    def label_numbers(self, items: Items) -> NDArray[np.int32]:
        """Numbers of the most probable labels of N items, int32 [N]."""
        potentials = self._potentials(items)
        with self._pool.lend(self.automaton) as buffers:
            return viterbi(potentials, self.automaton, buffers=buffers).segments.label

    def marginals(self, sequences: Sequence[Sequence[Attributes]]) -> list[NDArray[np.float64]]:
        """P(label | sequence) of every item, float64 [T, Y] of each sequence."""
        found: list[NDArray[np.float64]] = []
        for items in self._batches(sequences):
            potentials = self._potentials(items)
            bounds = pairwise(items.offsets.tolist())
            with self._pool.lend(self.automaton) as buffers:
                token = expectations(potentials, self.automaton, buffers=buffers).token
                assert token is not None
                found += [token[first:last].copy() for first, last in bounds]
        return found

    def log_probability(self, sequence: Sequence[Attributes], labels: Sequence[str]) -> float:
        """Log of the probability of all labels of a sequence, in nats.

        RAISES (ValueError): H272 for more or fewer labels than items, H273 for an unknown label.
        """
        if len(sequence) != len(labels):
            text = SequenceErrors.H272.format(items=len(sequence), labels=len(labels))
            raise ValueError(text)
        numbers = [self.label_number(label) for label in labels]
        if not numbers:
            return 0.0
        (items,) = self._batches([sequence])
        potentials = self._potentials(items)
        with self._pool.lend(self.automaton) as buffers:
            total = log_partition(potentials, self.automaton, buffers=buffers)
        return min(0.0, self._score(potentials, numbers) - float(total[0]))

    def transitions(self) -> dict[tuple[str, ...], float]:
        """Weight of each label pattern, oldest label first."""
        weights = zip(self.patterns, self.pattern_weight.tolist())
        return {tuple(self.labels[y] for y in pattern): weight for pattern, weight in weights}

    def state_features(self) -> dict[tuple[str, ...], float]:
        """Weight of each attribute with a label, or with the labels of a longer pattern."""
        names = list(self.attributes)
        attribute = np.repeat(np.arange(len(names)), np.diff(self.feature_offsets))
        patterns = [*((label,) for label in self.labels), *self.transitions()]
        features = zip(
            attribute.tolist(), self.feature_pattern.tolist(), self.feature_weight.tolist()
        )
        return {(names[a], *patterns[z]): weight for a, z, weight in features}

    def label_number(self, label: str) -> int:
        """RAISES (ValueError): H273 for an unknown label."""
        if label not in self.number_of:
            known = ", ".join(self.labels)
            raise ValueError(SequenceErrors.H273.format(found=repr(label), known=known))
        return self.number_of[label]

    def _batches(self, sequences: Sequence[Sequence[Attributes]]) -> Iterator[Items]:
        """The known attributes of the sequences, batch by batch."""
        if not self.labels and any(map(len, sequences)):
            raise ValueError(SequenceErrors.H273.format(found="of an item", known="none"))
        for first, last in stretches(map(len, sequences), BATCH_ITEMS):
            yield look_up(sequences[first:last], self.attributes.get)

    def _potentials(self, items: Items) -> Potentials:
        """Log potentials of items."""
        n_items, n_labels = len(items.row_offsets) - 1, len(self.labels)
        row, feature = expand(items.attribute, self.feature_offsets)
        score = self.feature_weight[feature]
        if items.value is not None:
            score = score * items.value[row]
        item = np.repeat(np.arange(n_items), np.diff(items.row_offsets))[row]
        pattern = self.feature_pattern[feature]
        if self._has_longer:
            longer = pattern >= n_labels
            later = _Rows(item[longer], pattern[longer], score[longer])
            item, pattern, score = item[~longer], pattern[~longer], score[~longer]
        else:
            later = NO_ROWS
        token = np.bincount(item * n_labels + pattern, score, n_items * n_labels)
        dense = token.astype(np.float64, copy=False).reshape(n_items, n_labels)
        return _potentials_of(items, dense, later, self.pattern_weight)

    @cached_property
    def _has_longer(self) -> bool:
        """Are there attributes with patterns of two or more labels?"""
        return bool((self.feature_pattern >= len(self.labels)).any())

    def _score(self, potentials: Potentials, labels: Sequence[int]) -> float:
        """Of the labels of one sequence, by their numbers."""
        patterns = self.automaton.patterns
        ends = dict(zip(patterns, potentials.const.tolist()))
        score = float(potentials.token[np.arange(len(labels)), labels].sum())
        for length in range(2, self.order + 2):
            for end in range(length, len(labels) + 1):
                score += ends.get(tuple(labels[end - length : end]), 0.0)
        item = np.repeat(np.arange(len(labels)), np.diff(potentials.row_offsets)).tolist()
        rows = zip(item, potentials.row_pattern.tolist(), potentials.row_score.tolist())
        for t, number, more in rows:
            pattern = patterns[number]
            if tuple(labels[t + 1 - len(pattern) : t + 1]) == pattern:
                score += more
        return score


class _Rows(NamedTuple):
    """Scores of items with patterns of two or more labels, n of them, item by item."""

    item: NDArray[np.int64]
    pattern: NDArray[np.int32]
    score: NDArray[np.float64]


NO_ROWS = _Rows(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0))


def _potentials_of(
    items: Items,
    token: NDArray[np.float64],
    rows: _Rows,
    pattern_weight: NDArray[np.float64],
) -> Potentials:
    """Log potentials of items whose attributes are scored, with weights of label patterns.

    token (float64 [N, Y]): scores of items and labels.
    pattern_weight (float64 [Z - Y]): weights of the patterns of two or more labels.
    """
    nothing = np.zeros(0)
    return Potentials(
        offsets=items.offsets,
        const=np.concatenate([np.zeros(token.shape[1]), pattern_weight]),
        start=None,
        end=None,
        token=token,
        inner=None,
        row_offsets=offsets_of(np.bincount(rows.item, minlength=len(token))),
        row_part=np.full(len(rows.item), START, dtype=np.uint8),
        row_pattern=rows.pattern,
        row_score=rows.score,
        length_pattern=nothing.astype(np.int32),
        length_score=np.zeros((0, 1)),
        span_start=nothing.astype(np.int64),
        span_end=nothing.astype(np.int64),
        span_pattern=nothing.astype(np.int32),
        span_score=nothing,
        allowed=np.full(token.shape, ANYTHING, dtype=np.uint8),
    )
