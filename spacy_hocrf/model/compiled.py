"""Observations laid out for scoring: which weight goes to which entry of the log potentials, decided once.

With w the weights, the potentials are linear, Potentials = A·w, and the gradient is the transpose, A'·expected counts. The
empirical counts of a gold segmentation are A' applied to the 0/1 counts of that segmentation.
"""

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.features.index import FeatureIndex, GoldSegments
from spacy_hocrf.model.scores import add_dense_gradient_into, add_dense_scores_into, add_rows_into, expand
from spacy_hocrf.types import (
    END,
    INNER,
    START,
    TOKEN,
    Expectations,
    Observations,
    PartRows,
    Potentials,
)

__all__ = ["CompiledBatch", "CompiledIndex"]


class CompiledIndex:
    """What the features say without a Doc: constants and length scores.

    index (FeatureIndex): the features; compile anew when it has learnt more.
    """

    def __init__(self, index: FeatureIndex) -> None:
        self.index = index
        self.n_labels = index.n_labels
        self.feature_offsets = index.feature_offsets
        self.feature_pattern = index.feature_pattern
        self.const_feature = np.array(index.constants(), dtype=np.int32)
        self.const_pattern = index.feature_pattern[self.const_feature]
        lengths = index.lengths()
        self.length_feature = np.array([feature for feature, _, _ in lengths], dtype=np.int32)
        columns = max((max(low, high + 1) for _, low, high in lengths), default=1)  # the last one is of M tokens and more
        patterns = index.feature_pattern[self.length_feature]
        self.length_pattern, self.length_row = np.unique(patterns, return_inverse=True)
        self.length_bins = np.zeros((len(lengths), columns))  # [features, M] 1 where the length is in the feature's bin
        for row, (_, low, high) in enumerate(lengths):
            self.length_bins[row, low - 1 : high or columns] = 1.0

    def const(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [Z] score of every pattern."""
        scores = np.zeros(len(self.index.patterns))
        np.add.at(scores, self.const_pattern, weights[self.const_feature])
        return scores

    def length(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [G, M] score of every pattern with length features and every length."""
        scores = np.zeros((len(self.length_pattern), self.length_bins.shape[1]))
        np.add.at(scores, self.length_row, weights[self.length_feature, None] * self.length_bins)
        return scores

    def add_gradient_into(
        self, const: NDArray[np.float64], length: NDArray[np.float64], scale: float, gradient: NDArray[np.float64]
    ) -> None:
        """The transpose of `const` and `length`; changes `gradient` [F]."""
        np.add.at(gradient, self.const_feature, scale * const[self.const_pattern])
        np.add.at(gradient, self.length_feature, scale * (length[self.length_row] * self.length_bins).sum(axis=1))


class CompiledBatch:
    """A batch of sequences, ready to be scored again and again.

    compiled (CompiledIndex): the features.
    observations (Observations): N tokens.
    allowed (uint8 [N, Y]): bits FIRST, CONTINUE and LAST of each token and label.
    """

    def __init__(self, compiled: CompiledIndex, observations: Observations, allowed: NDArray[np.uint8]) -> None:
        self.compiled = compiled
        self.offsets = observations.offsets
        self.dense = observations.dense
        self.allowed = allowed
        self._expand_rows(observations.sparse)
        spans = observations.spans
        position, self.span_feature = expand(spans.ids, compiled.feature_offsets)
        self.span_start, self.span_end = spans.start[position], spans.end[position]
        self.span_value = spans.values[position]
        self.span_pattern = compiled.feature_pattern[self.span_feature]

    def _expand_rows(self, sparse: PartRows) -> None:
        """Rows of all parts in token order: token, part, pattern, feature and value."""
        pieces = []
        for part, rows in zip((START, END, TOKEN, INNER), sparse):
            tokens = np.repeat(np.arange(len(rows.offsets) - 1), np.diff(rows.offsets))
            position, feature = expand(rows.ids, self.compiled.feature_offsets)
            values = np.ones(len(feature), dtype=np.float32) if rows.values is None else rows.values[position]
            pieces.append((tokens[position], np.full(len(feature), part, dtype=np.uint8), feature, values))
        token, part_of, feature, value = (np.concatenate(arrays) for arrays in zip(*pieces))
        order = np.argsort(token, kind="stable")
        n_tokens = int(self.offsets[-1])
        self.row_offsets = np.concatenate([[0], np.cumsum(np.bincount(token, minlength=n_tokens))]).astype(np.int64)
        self.row_token = token[order]
        self.row_part = part_of[order]
        self.row_feature = feature[order]
        self.row_value = value[order]
        self.row_pattern = self.compiled.feature_pattern[self.row_feature]

    def potentials(self, weights: NDArray[np.float64]) -> Potentials:
        """Log potentials under float64 weights [F]."""
        n_tokens, compiled = int(self.offsets[-1]), self.compiled
        parts = []
        for rows in self.dense:
            scores = np.zeros((n_tokens, compiled.n_labels))
            if len(rows.ids):
                add_dense_scores_into(scores, rows, compiled.feature_offsets, compiled.feature_pattern, weights)
            parts.append(scores)
        start, end, token, inner = parts
        return Potentials(
            offsets=self.offsets,
            const=compiled.const(weights),
            start=start,
            end=end,
            token=token,
            inner=inner,
            row_offsets=self.row_offsets,
            row_part=self.row_part,
            row_pattern=self.row_pattern,
            row_score=weights[self.row_feature] * self.row_value,
            length_pattern=compiled.length_pattern.astype(np.int32),
            length_score=compiled.length(weights),
            span_start=self.span_start,
            span_end=self.span_end,
            span_pattern=self.span_pattern,
            span_score=weights[self.span_feature] * self.span_value,
            allowed=self.allowed,
        )

    def add_gradient_into(self, expected: Expectations, scale: float, gradient: NDArray[np.float64]) -> None:
        """Add scale · A'·expected to `gradient` [F]."""
        compiled = self.compiled
        for rows, counts in zip(self.dense, (expected.start, expected.end, expected.token, expected.inner)):
            if len(rows.ids):
                add_dense_gradient_into(gradient, rows, compiled.feature_offsets, compiled.feature_pattern, counts, scale)
        add_rows_into(gradient, self.row_feature, expected.row, scale, self.row_value)
        add_rows_into(gradient, self.span_feature, expected.span, scale, self.span_value)
        compiled.add_gradient_into(expected.const, expected.length, scale, gradient)

    def gold_counts(self, gold: GoldSegments) -> Expectations:
        """How often each entry fires in a segmentation of all sequences.

        gold (GoldSegments): segments that cover every token of the batch.
        """
        n_tokens, n_labels = len(self.allowed), self.compiled.n_labels
        label = gold.pattern[0]
        segment = gold.of_token(n_tokens)
        start, end, token, inner = (np.zeros((n_tokens, n_labels)) for _ in range(4))
        token[np.arange(n_tokens), label[segment]] = 1.0
        start[gold.start, label] = 1.0
        end[gold.end - 1, label] = 1.0
        inner[:] = token
        inner[gold.start, label] = 0.0
        const = np.bincount(gold.pattern[gold.pattern >= 0], minlength=len(self.compiled.index.patterns)).astype(float)
        length = np.zeros((len(self.compiled.length_pattern), self.compiled.length_bins.shape[1]))
        column = np.minimum(gold.end - gold.start, length.shape[1]) - 1
        for patterns in gold.pattern:
            for row, z in enumerate(self.compiled.length_pattern):
                length[row] += np.bincount(column[patterns == z], minlength=length.shape[1])
        row_segment = segment[self.row_token]
        at = {
            START: gold.start[row_segment] == self.row_token,
            END: gold.end[row_segment] - 1 == self.row_token,
            TOKEN: np.ones(len(row_segment), dtype=bool),
            INNER: gold.start[row_segment] != self.row_token,
        }
        row_fires = np.zeros(len(row_segment), dtype=bool)
        for part, there in at.items():
            row_fires |= there & (self.row_part == part)
        span_segment = segment[self.span_start]
        span_fires = (gold.start[span_segment] == self.span_start) & (gold.end[span_segment] == self.span_end)
        return Expectations(
            log_partition=np.zeros(len(self.offsets) - 1),
            const=const,
            start=start,
            end=end,
            token=token,
            inner=inner,
            row=(row_fires & self._ends_in(gold, row_segment, self.row_pattern)).astype(float),
            length=length,
            span=(span_fires & self._ends_in(gold, span_segment, self.span_pattern)).astype(float),
        )

    def _ends_in(self, gold: GoldSegments, segment: NDArray[np.int64], pattern: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Does the history of each segment, itself included, end in the pattern?"""
        return (gold.pattern[:, segment] == pattern).any(axis=0)
