"""A trained model of sequences: weights of attributes with labels and of label patterns, and inference with
them.

The score of the labels y of a sequence is

    Σ_t Σ_z [Σ_a value_a(t) · weight(a, z) + weight(z)]

over the attributes a of item t and all label patterns z that end there; weight(z) is 0 for single
labels. With attributes of single labels and pairs of labels it is the linear-chain CRF of Lafferty
et al. (ICML 2001), with more its extension to sparse label patterns of any order (Nguyen et al., JMLR
15 (2014) §2.1).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.sequences.chain import Chain, CompiledModel
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.items import Attributes, Items, look_up
from spacy_hocrf.types import LabelPattern

__all__ = ["SequenceModel"]


@dataclass(frozen=True)
class SequenceModel:
    """Labels, attributes, label patterns and their weights; immutable.

    labels (tuple[str, ...]): [Y]
    attributes (dict[str, int]): number of each of the A attributes.
    feature_offsets (int64 [A + 1]): first feature of each attribute.
    feature_pattern (int32 [F]): label of each feature of an attribute, or Y + the place of a longer
        pattern in `patterns`; ascending for each attribute.
    feature_weight (float64 [F]): weight of each feature.
    patterns (tuple[LabelPattern, ...]): patterns of two or more labels, which have weights of their own.
    pattern_weight (float64 [len(patterns)]): weight of each pattern.
    """

    labels: tuple[str, ...]
    attributes: dict[str, int]
    feature_offsets: NDArray[np.int64]
    feature_pattern: NDArray[np.int32]
    feature_weight: NDArray[np.float64]
    patterns: tuple[LabelPattern, ...]
    pattern_weight: NDArray[np.float64]

    @property
    def order(self) -> int:
        """Number of earlier labels in the longest pattern."""
        return max(map(len, self.patterns), default=1) - 1

    @cached_property
    def number_of(self) -> dict[str, int]:
        """Number of each label."""
        return {label: y for y, label in enumerate(self.labels)}

    def without_zeros(self) -> "SequenceModel":
        """Return a copy without features of weight 0, and without attributes that have no features."""
        n_labels = len(self.labels)
        # the features that are kept, and the attributes and patterns that these need
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

    def chain(self, sequence: Sequence[Attributes], last: Chain | None = None) -> Chain:
        """Return a chain that has read one sequence, for inference.

        last (Optional[Chain]): a chain of this model that nobody needs any more, to be used again.
        RAISES (ValueError): H273 for items in a model without labels, H420 for values that make a score
            infinite or nan.
        """
        if sequence and not self.labels:
            raise ValueError(SequenceErrors.H273.format(found="of an item", known="none"))
        items = look_up([sequence], self.attributes)
        if last is None:
            last = Chain(self._compiled, items)
        else:
            last.take(items)
        last.read(0)
        return last

    def chains(self, sequences: Iterable[Sequence[Attributes]]) -> Iterator[Chain]:
        """Yield a chain that has read each sequence, for inference until the next one is asked for."""
        chain = None
        for sequence in sequences:
            chain = self.chain(sequence, chain)
            yield chain

    def best(self, chain: Chain) -> list[str]:
        """Return the most probable labels of a sequence."""
        labels = self.labels
        return [labels[y] for y in chain.best().tolist()]

    def label_numbers(self, items: Items) -> NDArray[np.int32]:
        """Return the numbers of the most probable labels of N items, int32 [N]."""
        chain = Chain(self._compiled, items)
        numbers = [np.zeros(0, dtype=np.int32)]
        for sequence in range(len(items.offsets) - 1):
            chain.read(sequence)
            numbers.append(chain.best())
        return np.concatenate(numbers)

    def transitions(self) -> dict[tuple[str, ...], float]:
        """Return the weight of each label pattern, oldest label first."""
        weights = zip(self.patterns, self.pattern_weight.tolist())
        return {tuple(self.labels[y] for y in pattern): weight for pattern, weight in weights}

    def state_features(self) -> dict[tuple[str, ...], float]:
        """Return the weight of each attribute with a label, or with the labels of a longer pattern."""
        names = list(self.attributes)
        attribute = np.repeat(np.arange(len(names)), np.diff(self.feature_offsets))
        patterns = [*((label,) for label in self.labels), *self.transitions()]
        features = zip(
            attribute.tolist(), self.feature_pattern.tolist(), self.feature_weight.tolist()
        )
        return {(names[a], *patterns[z]): weight for a, z, weight in features}

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields only: cached properties are computed anew."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _compiled(self) -> CompiledModel:
        """The model as a chain needs it."""
        singles = [(y,) for y in range(len(self.labels))]
        automaton = compile_automaton([*singles, *self.patterns], [1] * len(singles))
        weights = np.concatenate([self.feature_weight, self.pattern_weight])
        return CompiledModel(self.feature_offsets, self.feature_pattern, weights, automaton)
