"""Places of the numbers that belong to features: weights, or expected counts.

The optimiser's vectors are compact, one number for each of the F features. To add up scores fast,
the numbers of one observation are stored next to each other. Its *kind* says at which K parts of a segment
it has features on single labels; for each label it has a *cell* of K places. An observation with features
on many labels has a *row*, Y places for each of the K parts, which is added as one vector; rows of
observations with few labels would be mostly zeros, so these have only the cells of their labels. The
weights are spread into this arrangement once per evaluation of the objective, and the gradient is collected
from it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.model.dense import DenseWeights
from spacy_hocrf.model.scores import expand_rows, place_cells, sort_cells
from spacy_hocrf.types import INNER, TOKEN, Rows

__all__ = ["Cells", "CompiledIndex", "Placed"]

NO_PARTS, NO_NUMBERS = np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.int32)

VECTOR = 8
"""Numbers in the widest vector register; rows are padded to a multiple of it."""
SHORT = 2**16
"""Steps of VECTOR that fit into a uint16."""
SPARSE = (6, 3, 3, 3)
"""An observation has a row if it has features on at least 1/SPARSE[K - 1] of the labels, K being the places
of a cell (measured for one and for three: about where a row becomes faster than cells)."""


@dataclass(frozen=True)
class Placed:
    """One number for each feature, in the kernels' arrangement, and sums of them that do not depend on Docs;
    views of one array.
    """

    numbers: NDArray[np.float64]  # [extent]
    values: NDArray[np.float64]  # [S] at a 64-byte boundary
    const: NDArray[np.float64]  # [Z] score, or expected count, of every pattern
    length: NDArray[np.float64]  # [G, M] for every pattern with length features, and every length
    dense: NDArray[np.float64]  # [H] numbers of dense scores
    # [U + 1, Y] scores of the known words, for each dense score of words; 0 in the last row
    words: tuple[NDArray[np.float64], ...] = ()


class Cells(NamedTuple):
    """Observations of one kind on single labels, for N tokens: those that have a row of weights, and
    separately the cells of the others; see `placement.py`.
    """

    row_offsets: NDArray[np.int32]  # [N + 1] rows of each token
    row: NDArray[np.uint16 | np.int32]  # [·] first place of the row, in steps of VECTOR
    row_value: NDArray[np.float32] | None  # [·] value of the observation, None for 1
    cell_offsets: NDArray[np.int32]  # [N + 1] cells of each token
    cell: NDArray[np.int32]  # [·] first place of the cell
    cell_label: NDArray[np.uint16]  # [·]
    cell_value: NDArray[np.float32] | None  # [·]


class CompiledIndex:
    """The arrangement of an index's features, constants and length scores.

    index (FeatureIndex): the features; compile anew when it has learnt more.
    dense (Optional[DenseWeights]): weights of dense scores, which come after those of the F features in
        every vector.
    """

    def __init__(self, index: FeatureIndex, dense: DenseWeights | None = None) -> None:
        self.dense_weights = dense
        self.n_dense = 0 if dense is None else dense.size
        self.known_words = None if dense is None else dense.known_words
        self.tables = () if dense is None else dense.tables
        n_words = 0 if self.known_words is None else len(self.known_words.numbers)
        self.word_rows = tuple(n_words + 1 for _ in self.tables)
        # what is read from the index: patterns, and the features of each observation
        assert index.n_labels <= 2**16  # the labels of cells are uint16
        self.n_labels = index.n_labels
        self.n_patterns = len(index.patterns)
        # [Z] last label of each pattern
        self.last_label = np.array([pattern[-1] for pattern in index.patterns], dtype=np.int64)
        # [Z] earlier labels
        self.pattern_level = np.array(
            [len(pattern) - 1 for pattern in index.patterns], dtype=np.int64
        )
        self.feature_offsets = index.feature_offsets  # int64 [M + 1] features of each observation
        self.feature_pattern = index.feature_pattern  # int32 [F]
        self.feature_part = index.feature_part  # uint8 [F]
        # whether tokens have features on longer patterns, which become rows of the potentials
        on_tokens = self.feature_part <= INNER
        self.has_longer = bool((on_tokens & (self.feature_pattern >= self.n_labels)).any())
        self._no_rows = np.zeros(0, dtype=np.int64)  # shared by batches without rows
        self._place_features(index)
        # constants: placed.const[z] += the weights of the features with the pattern z
        self.const_feature = np.array(index.constants(), dtype=np.int32)
        self.const_pattern = index.feature_pattern[self.const_feature]
        # length scores: a row for each pattern with some, a column for each length; the last column
        # is for M tokens or more
        lengths = index.lengths()
        self.length_feature = np.array([feature for feature, _, _ in lengths], dtype=np.int32)
        columns = max((max(low, high + 1) for _, low, high in lengths), default=1)
        patterns, self.length_row = np.unique(
            index.feature_pattern[self.length_feature], return_inverse=True
        )
        self.length_pattern = patterns.astype(np.int32)  # [G]
        # [features, M] 1 where the length is in the feature's bin
        self.length_bins = np.zeros((len(lengths), columns))
        for row, (_, low, high) in enumerate(lengths):
            self.length_bins[row, low - 1 : high or columns] = 1.0

    def _place_features(self, index: FeatureIndex) -> None:
        """Assign places: first to rows, then to cells, both by observation, then to all other features."""
        # each observer's templates of order 0, and their parts, ascending: its kind
        templates = index.templates
        of_observer = [
            [number for number in observer.templates if templates[number].order == 0]
            if observer.looks and templates[observer.templates[0]].part <= INNER
            else []
            for observer in index.observers
        ]
        kinds = [tuple(sorted(templates[number].part for number in some)) for some in of_observer]
        self.kinds = tuple(dict.fromkeys(kind for kind in kinds if kind))
        # the kinds if every segment has one token, so that all parts are scores of the token
        self.folded_kinds = tuple(
            tuple(None if part == INNER else TOKEN for part in kind) for kind in self.kinds
        )
        # the number of each observer's kind, and the place of each template's part within its kind
        number_of = {kind: number for number, kind in enumerate(self.kinds)}
        numbers = np.array([number_of.get(kind, -1) for kind in kinds], dtype=np.int32)
        slot = np.full(len(templates), -1, dtype=np.int32)
        for some, kind in zip(of_observer, kinds):
            slot[some] = [kind.index(templates[number].part) for number in some]
        # int32 [M] kind of each observation, -1 for none
        self.observation_kind = np.append(numbers, np.int32(-1))[index.table.observers]
        # int32 [M] first place of an observation's row, -1 without; int64 [M + 1] its cells, uint16
        # and int32 [·] label and first place of each; int32 [F] place of each feature; S
        (
            self.row_place,
            self.cell_offsets,
            self.cell_label,
            self.cell_place,
            self.place,
            self.places,
        ) = place_cells(
            self.feature_offsets,
            slot[index.feature_template],
            self.feature_pattern,
            self.observation_kind,
            np.array([len(kind) for kind in self.kinds], dtype=np.int32),
            np.array([SPARSE[len(kind) - 1] for kind in self.kinds], dtype=np.int32),
            self.n_labels,
            VECTOR,
        )
        # do the places of all rows, in steps of VECTOR, fit into uint16?
        self.short_rows = bool(self.row_place.max(initial=0) < VECTOR * SHORT)
        # int32 [S] the feature at each place, -1 for none; made on demand
        self._feature_at: NDArray[np.int32] | None = None

    @cached_property
    def entries(self) -> NDArray[np.int32]:
        """int32 [M, 4] kind, first place, first cell and number of cells of each observation, in a table for
        look-ups; without cells it has a row, or neither if the place is -1.
        """
        cells = np.diff(self.cell_offsets)
        entries = np.empty((len(cells), 4), dtype=np.int32)
        entries[:, 0], entries[:, 1] = self.observation_kind, self.row_place
        entries[:, 2], entries[:, 3] = self.cell_offsets[:-1], cells
        has_cells = cells > 0
        entries[has_cells, 1] = self.cell_place[self.cell_offsets[:-1][has_cells]]
        return entries

    @property
    def extent(self) -> int:
        """Total count of places."""
        return sum(map(math.prod, self._shapes))

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        lengths = len(self.length_pattern), self.length_bins.shape[1]
        words = ((rows, self.n_labels) for rows in self.word_rows)
        return [(self.places,), (self.n_patterns,), lengths, (self.n_dense,), *words]

    def zeros(self) -> Placed:
        """Return zeros, at a 64-byte boundary."""
        numbers = np.zeros(self.extent + VECTOR)
        shift = -(numbers.ctypes.data // numbers.itemsize) % VECTOR
        numbers = numbers[shift : shift + self.extent]
        arrays, at = [], 0
        for shape in self._shapes:
            size = math.prod(shape)
            arrays.append(numbers[at : at + size].reshape(shape))
            at += size
        values, const, length, dense, *words = arrays
        return Placed(numbers, values, const, length, dense, tuple(words))

    def merge(self, counts: Placed, others: Placed) -> None:
        """Add `others` to `counts`, and reset `others` to zero."""
        np.add(counts.numbers, others.numbers, out=counts.numbers)
        others.numbers.fill(0.0)

    def cells_of(self, tokens: Rows, kind: int) -> Cells:
        """Return the known observations of one kind of N tokens as cells."""
        return Cells(
            *sort_cells(
                tokens,
                kind,
                self.observation_kind,
                self.row_place,
                self.cell_offsets,
                self.cell_label,
                self.cell_place,
                self.short_rows,
            )
        )

    def rows_of(
        self, tokens: Rows, folded: NDArray[np.bool_]
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.uint8],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.float32] | None,
    ]:
        """Return the features of known observations of N tokens on longer patterns, as from `expand_rows`.

        folded (bool [Y]): labels whose segments have one token.
        """
        if not self.has_longer:
            if len(self._no_rows) < len(tokens.offsets):
                self._no_rows = np.zeros(len(tokens.offsets), dtype=np.int64)
            offsets = self._no_rows[: len(tokens.offsets)]
            return offsets, NO_PARTS, NO_NUMBERS, NO_NUMBERS, None
        return expand_rows(
            tokens,
            self.feature_offsets,
            self.feature_pattern,
            self.feature_part,
            self.place,
            folded[self.last_label].astype(np.uint8),
            self.n_labels,
        )

    def place_weights(self, weights: NDArray[np.float64], placed: Placed | None = None) -> Placed:
        """Spread float64 weights [F] into the arrangement.

        placed (Optional[Placed]): an earlier result to overwrite.
        """
        placed = self.nothing(placed)
        n_features = len(self.place)
        placed.values[self.place] = weights[:n_features]
        placed.dense[:] = weights[n_features:]
        self._add_words_into(placed.words, placed.dense)
        np.add.at(placed.const, self.const_pattern, weights[self.const_feature])
        np.add.at(
            placed.length, self.length_row, weights[self.length_feature, None] * self.length_bins
        )
        return placed

    def nothing(self, collected: Placed | None = None) -> Placed:
        """Return zeros, for accumulating expected counts.

        collected (Optional[Placed]): collected counts to reuse.
        """
        if collected is not None:
            collected.const.fill(0.0)
            collected.length.fill(0.0)
            collected.dense.fill(0.0)
            for table in collected.words:
                table.fill(0.0)
            return collected
        return self.zeros()

    def collect(self, counts: Placed) -> NDArray[np.float64]:
        """Return the count of every feature, float64 [F], and reset `counts`: the transpose of
        `place_weights`.
        """
        gradient = np.zeros(len(self.place) + self.n_dense)
        self.add_collected_into(gradient, counts)
        return gradient

    def add_collected_into(self, gradient: NDArray[np.float64], counts: Placed) -> None:
        """Add counts to float64 [F], and reset them."""
        n_features = len(self.place)
        gradient[:n_features] += counts.values[self.place]
        counts.values[self.place] = 0.0
        gradient[n_features:] += self._dense_counts(counts)
        np.add.at(gradient, self.const_feature, counts.const[self.const_pattern])
        np.add.at(gradient, self.length_feature, self._length_counts(counts))

    def take(self, counts: Placed) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Take a few counts without a pass over all features, and reset them.

        RETURNS (tuple[int32 [n], float64 [n]]): the features with a count, without duplicates, and their
            counts; some may be 0.
        """
        if self._feature_at is None:
            self._feature_at = np.full(self.places, -1, dtype=np.int32)
            self._feature_at[self.place] = np.arange(len(self.place))
        # the places with a count, and their features
        touched = np.flatnonzero(counts.values)
        features, values = self._feature_at[touched], counts.values[touched]
        counts.values[touched] = 0.0
        has_feature = features >= 0  # a row has places without a feature
        features, values = features[has_feature], values[has_feature]
        # constants, lengths and dense weights are few: all of them
        const, length = counts.const[self.const_pattern], self._length_counts(counts)
        dense = self._dense_counts(counts)
        self.nothing(counts)
        n_features = len(self.place)
        dense_features = np.arange(n_features, n_features + self.n_dense, dtype=np.int32)
        return (
            np.concatenate([features, self.const_feature, self.length_feature, dense_features]),
            np.concatenate([values, const, length, dense]),
        )

    def add_into(
        self, placed: Placed, features: NDArray[np.int32], amounts: NDArray[np.float64]
    ) -> None:
        """Add amounts to placed weights.

        features (int32 [n]): the result of `take`. amounts (float64 [n]): amount for each.
        """
        # the four sections of `take`: features by place, constants, lengths, dense weights
        n_const, n_length = len(self.const_feature), len(self.length_feature)
        behind = len(features) - self.n_dense
        at = behind - n_length
        values, const, length, dense = np.split(amounts, [at - n_const, at, behind])
        placed.values[self.place[features[: len(values)]]] += values
        np.add.at(placed.const, self.const_pattern, const)
        np.add.at(placed.length, self.length_row, length[:, None] * self.length_bins)
        placed.dense[:] += dense
        self._add_words_into(placed.words, dense)

    def _add_words_into(
        self, words: Sequence[NDArray[np.float64]], dense: NDArray[np.float64]
    ) -> None:
        """Add the scores of words that dense weights, float64 [H], imply."""
        for table, scores in zip(self.tables, words):
            scores[:-1] += table.score.of_rows(table.vectors, table.weights(dense, self.n_labels))

    def _dense_counts(self, counts: Placed) -> NDArray[np.float64]:
        """Expected counts of all dense weights, float64 [H]."""
        dense: NDArray[np.float64] = counts.dense.copy()
        for table, expected in zip(self.tables, counts.words):
            table_counts = table.weights(dense, self.n_labels)
            table_counts += table.score.from_rows(table.vectors, expected[:-1])
        return dense

    def _length_counts(self, counts: Placed) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = (counts.length[self.length_row] * self.length_bins).sum(axis=1)
        return sums
