"""A trained model of sequences: weights of attributes with labels and of label patterns, and what it
says about items.

The score of the labels y of a sequence is

    Σ_t Σ_a value_a(t) · weight(a, y_t) + Σ_t Σ_z weight(z)

over the attributes a of item t and all patterns z of two or more labels that end there: the
linear-chain CRF of Lafferty et al. (ICML 2001) at order 1, and its extension to sparse label patterns
of any order (Nguyen et al., JMLR 15 (2014) §2.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import stretches
from spacy_hocrf.engine.automaton import Automaton, compile_automaton
from spacy_hocrf.engine.forward_backward import expectations, log_partition
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.model.scores import expand
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.items import Attributes, Items, look_up
from spacy_hocrf.types import CONTINUE, FIRST, LAST, LabelPattern, Potentials

__all__ = ["SequenceModel", "potentials_of"]

BATCH_ITEMS = 20_000
"""Items that are scored together."""
ANYTHING = FIRST | CONTINUE | LAST


@dataclass(frozen=True)
class SequenceModel:
    """Labels, attributes, label patterns and their weights; never changed.

    labels (tuple[str, ...]): [Y]
    attributes (Mapping[str, int]): number of each of the A attributes.
    feature_offsets (int64 [A + 1]): first feature of each attribute.
    feature_label (int32 [F]): label of each feature of an attribute.
    feature_weight (float64 [F]): its weight.
    patterns (tuple[LabelPattern, ...]): patterns of two or more labels, with weights of their own.
    pattern_weight (float64 [len(patterns)]): theirs.
    """

    labels: tuple[str, ...]
    attributes: Mapping[str, int]
    feature_offsets: NDArray[np.int64]
    feature_label: NDArray[np.int32]
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
        weights = dict(zip(self.patterns, self.pattern_weight.tolist()))
        score = float(potentials.token[np.arange(len(numbers)), numbers].sum())
        for length in range(2, self.order + 2):
            score += sum(
                weights.get(tuple(numbers[end - length : end]), 0.0)
                for end in range(length, len(numbers) + 1)
            )
        with self._pool.lend(self.automaton) as buffers:
            total = log_partition(potentials, self.automaton, buffers=buffers)
        return min(0.0, score - float(total[0]))

    def transitions(self) -> dict[tuple[str, ...], float]:
        """Weight of each label pattern, oldest label first."""
        weights = zip(self.patterns, self.pattern_weight.tolist())
        return {tuple(self.labels[y] for y in pattern): weight for pattern, weight in weights}

    def state_features(self) -> dict[tuple[str, str], float]:
        """Weight of each attribute with a label."""
        names = list(self.attributes)
        attribute = np.repeat(np.arange(len(names)), np.diff(self.feature_offsets))
        features = zip(
            attribute.tolist(), self.feature_label.tolist(), self.feature_weight.tolist()
        )
        return {(names[a], self.labels[y]): weight for a, y, weight in features}

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
        return potentials_of(items, self._token_scores(items), self.pattern_weight)

    def _token_scores(self, items: Items) -> NDArray[np.float64]:
        """Scores of attributes with labels, float64 [N, Y]."""
        n_items, n_labels = len(items.row_offsets) - 1, len(self.labels)
        row, feature = expand(items.attribute, self.feature_offsets)
        score = self.feature_weight[feature]
        if items.value is not None:
            score = score * items.value[row]
        item = np.repeat(np.arange(n_items), np.diff(items.row_offsets))
        cell = item[row] * n_labels + self.feature_label[feature]
        scores = np.bincount(cell, score, n_items * n_labels).astype(np.float64, copy=False)
        return scores.reshape(n_items, n_labels)


def potentials_of(
    items: Items, token: NDArray[np.float64], pattern_weight: NDArray[np.float64]
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
        row_offsets=np.zeros(len(token) + 1, dtype=np.int64),
        row_part=nothing.astype(np.uint8),
        row_pattern=nothing.astype(np.int32),
        row_score=nothing,
        length_pattern=nothing.astype(np.int32),
        length_score=np.zeros((0, 1)),
        span_start=nothing.astype(np.int64),
        span_end=nothing.astype(np.int64),
        span_pattern=nothing.astype(np.int32),
        span_score=nothing,
        allowed=np.full(token.shape, ANYTHING, dtype=np.uint8),
    )
