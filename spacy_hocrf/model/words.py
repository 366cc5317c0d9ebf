"""Scores of word vectors, computed once per word and shared by all its tokens.

A model keeps the scores of the words that it has learnt from in tables, one for each dense score of
words; the last row of a table stands for no word. Training uses only the tables: with W the
weights and E the vectors of the words, a table is E·W, and the counts of tokens, added up by word, are
multiplied by E' to get those of the weights. Other words are scored when they occur.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.features.vectors import VectorRows, Vectors
from spacy_hocrf.types import Matrix

__all__ = ["KnownWords", "Table", "WordScore", "known_words", "numbers_of_words", "tables_of"]


MAX_KNOWN_WORDS = 2**15
"""Largest vocabulary of which a loaded model keeps scores for all words; for larger ones it keeps none."""


MAX_CONVERTED = 2**21
"""Most numbers in a table of vectors that is kept as float64, the type used in products; a larger one would
take too much memory.
"""


class KnownWords:
    """Words whose scores a model keeps: U of the V words and the one that stands for all without a vector.

    numbers (int32 [U]): numbers as in `Vectors.inputs`, ascending.
    total (int): V + 1.
    """

    def __init__(self, numbers: NDArray[np.int32], total: int) -> None:
        self.numbers = numbers
        # [V + 2] row of each word, -1 for an unknown one; the last is beyond the end of a Doc
        self._row = np.full(total + 1, -1, dtype=np.int32)
        self._row[numbers] = np.arange(len(numbers), dtype=np.int32)
        self._row[-1] = len(numbers)

    def rows(self, inputs: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the row of each token's word in the tables, int32 [N], and the tokens with unknown words,
        int64 [n], which get the last row.
        """
        rows = self._row[inputs]
        unknown = np.flatnonzero(rows < 0)
        rows[unknown] = len(self.numbers)
        return rows, unknown


class Table(NamedTuple):
    """The scores that a dense score gives to known words."""

    score: Vectors
    first: int  # place of its first weight among the dense ones
    vectors: VectorRows  # [U, K] rows of the known words

    def weights(self, dense: Matrix, n_labels: int) -> Matrix:
        """Return its part of all dense weights, float64 [K, Y], as a view."""
        last = self.first + self.score.width * n_labels
        return dense[self.first : last].reshape(self.score.width, n_labels)


class WordScore(NamedTuple):
    """The dense score of the words of N tokens."""

    table: Table
    number: int  # number of its table
    part: int  # where it is added, as in `types`
    inputs: NDArray[np.int32]  # [N] numbers of the words
    rows: NDArray[np.int32]  # [N] rows in the table
    unknown: NDArray[np.int64]  # [n] tokens whose words are not in the table

    def add_into(self, scores: Matrix, dense: Matrix, tables: Sequence[Matrix]) -> None:
        """Add its scores to those of its part, float64 [N, Y].

        dense (float64 [H]): all dense weights. tables (Sequence[float64 [U + 1, Y]]): computed from them.
        """
        scores += tables[self.number][self.rows]
        if len(self.unknown):
            weights = self.table.weights(dense, scores.shape[1])
            scores[self.unknown] += self.table.score.scores(self.inputs[self.unknown], weights)

    def add_counts_into(
        self, dense: Matrix, tables: Sequence[Matrix], expectations: Matrix, scale: float
    ) -> None:
        """Add `scale` times its counts to those of the words, or of the dense weights."""
        table, n_labels = tables[self.number], expectations.shape[1]
        places = self.rows[:, None] * np.int64(n_labels) + np.arange(n_labels)
        np.add.at(table.reshape(-1), places.ravel(), (scale * expectations).ravel())
        if len(self.unknown):
            own_counts = self.table.weights(dense, expectations.shape[1])
            inputs, expectations = self.inputs[self.unknown], expectations[self.unknown]
            own_counts += scale * self.table.score.counts(inputs, expectations)

    def only(self, tokens: slice) -> "WordScore":
        """Return the word score of a slice of tokens."""
        inside = (self.unknown >= tokens.start) & (self.unknown < tokens.stop)
        return self._replace(
            inputs=self.inputs[tokens],
            rows=self.rows[tokens],
            unknown=self.unknown[inside] - tokens.start,
        )


def known_words(
    scores: Iterable[tuple[str, Any]], seen: NDArray[np.int32] | None
) -> KnownWords | None:
    """Return the words whose scores a model keeps; None without a dense score of words.

    seen (Optional[int32 [U]]): numbers of the words in the training texts, ascending; None if they
        are not known.
    """
    for _, score in scores:
        if isinstance(score, Vectors) and score.words is not None:
            total = len(score.words) + 1
            if seen is None:
                seen = np.arange(total if total <= MAX_KNOWN_WORDS else 0, dtype=np.int32)
            return KnownWords(seen, total)
    return None


def numbers_of_words(scores: Iterable[tuple[str, Any]], batch: TokenBatch) -> NDArray[np.int32]:
    """Return the numbers of the words in some texts, ascending; empty without a dense score of words."""
    for _, score in scores:
        if isinstance(score, Vectors) and score.words is not None:
            return np.unique(score.words.numbers(batch.distinct("ORTH")[0]))
    return np.zeros(0, dtype=np.int32)


def tables_of(
    scores: Iterable[tuple[str, Any]], n_labels: int, known_words: KnownWords | None
) -> tuple[Table, ...]:
    """Return the tables of the dense scores of words, in their order."""
    tables, first = list[Table](), 0
    vectors: dict[bool, VectorRows] = {}  # by `normalize`, shared by several scores
    for _, score in scores:
        if isinstance(score, Vectors) and score.words is not None and known_words is not None:
            if score.normalize not in vectors:
                vectors[score.normalize] = _as_multiplied(score.words.rows(known_words.numbers))
            tables.append(Table(score, first, vectors[score.normalize]))
        first += score.width * n_labels
    return tuple(tables)


def _as_multiplied(vectors: NDArray[np.float32]) -> VectorRows:
    """Convert few vectors to float64 in advance, since the conversion takes as long as the product."""
    return vectors.astype(np.float64) if vectors.size <= MAX_CONVERTED else vectors
