"""Scores of word vectors: computed once a word for all the tokens that it is.

A model keeps the scores of the words that it has learnt from in tables, one for each dense score of
words; the last row of a table is that of no word. Training goes through the tables alone: with W the
weights and E the vectors of the words, a table is E·W, and the counts of tokens, added up by word,
become those of the weights by E'. Other words are scored when they come.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.features.vectors import Vectors

__all__ = ["KnownWords", "Table", "WordScore", "known_words", "tables_of", "words_of"]

Matrix = NDArray[np.float64]
Rows = NDArray[np.float32] | NDArray[np.float64]

MOST = 2**15
"""Of a smaller vocabulary all words are known to a loaded model, of a larger one none."""


SMALL = 2**21
"""Numbers in a table of vectors that is kept as float64, as which it is multiplied; a larger one would
take too much memory.
"""


class KnownWords:
    """Words of which a model keeps the scores, U of V and the one that stands for all without a
    vector.

    numbers (int32 [U]): as `Vectors.inputs` gives them, ascending.
    total (int): V + 1.
    """

    def __init__(self, numbers: NDArray[np.int32], total: int) -> None:
        self.numbers = numbers
        # [V + 2] row of each word, -1 for an unknown one; the last is beyond the end of a Doc
        self._row = np.full(total + 1, -1, dtype=np.int32)
        self._row[numbers] = np.arange(len(numbers), dtype=np.int32)
        self._row[-1] = len(numbers)

    def rows(self, inputs: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Row of each token's word in the tables, int32 [N], and the tokens whose word is not
        known, int64 [n], which have the last row.
        """
        rows = self._row[inputs]
        unknown = np.flatnonzero(rows < 0)
        rows[unknown] = len(self.numbers)
        return rows, unknown


class Table(NamedTuple):
    """Table of the scores that a dense score gives to known words."""

    score: Vectors
    first: int  # of its weights among the dense ones
    vectors: Rows  # [U, K] of the known words

    def weights(self, dense: Matrix, n_labels: int) -> Matrix:
        """Its own of all dense weights, float64 [K, Y]; a view."""
        last = self.first + self.score.width * n_labels
        return dense[self.first : last].reshape(self.score.width, n_labels)


class WordScore(NamedTuple):
    """The dense score of the words of N tokens."""

    table: Table
    number: int  # of its table
    part: int  # where it is added, as in `types`
    inputs: NDArray[np.int32]  # [N] numbers of the words
    rows: NDArray[np.int32]  # [N] in the table
    unknown: NDArray[np.int64]  # [n] tokens whose words are not in the table

    def add_into(self, scores: Matrix, dense: Matrix, tables: Sequence[Matrix]) -> None:
        """Add to the scores of its part, float64 [N, Y].

        dense (float64 [H]): all dense weights. tables (Sequence[float64 [U + 1, Y]]): made of them.
        """
        scores += tables[self.number][self.rows]
        if len(self.unknown):
            weights = self.table.weights(dense, scores.shape[1])
            scores[self.unknown] += self.table.score.scores(self.inputs[self.unknown], weights)

    def add_counts_into(
        self, dense: Matrix, tables: Sequence[Matrix], expectations: Matrix, scale: float
    ) -> None:
        """Add scale times its counts to those of the words, or of the dense weights."""
        table, n_labels = tables[self.number], expectations.shape[1]
        places = self.rows[:, None] * np.int64(n_labels) + np.arange(n_labels)
        np.add.at(table.reshape(-1), places.ravel(), (scale * expectations).ravel())
        if len(self.unknown):
            mine = self.table.weights(dense, expectations.shape[1])
            some = expectations[self.unknown]
            mine += scale * self.table.score.counts(self.inputs[self.unknown], some)

    def only(self, tokens: slice) -> "WordScore":
        """Word score of a slice of tokens."""
        inside = (self.unknown >= tokens.start) & (self.unknown < tokens.stop)
        return self._replace(
            inputs=self.inputs[tokens],
            rows=self.rows[tokens],
            unknown=self.unknown[inside] - tokens.start,
        )


def known_words(
    scores: Iterable[tuple[str, Any]], seen: NDArray[np.int32] | None
) -> KnownWords | None:
    """The words that a model with these dense scores keeps the scores of; None without such a score.

    seen (Optional[int32 [U]]): numbers of the words of the training texts, ascending; None if they
        are not known.
    """
    for _, score in scores:
        if isinstance(score, Vectors) and score.words is not None:
            total = len(score.words) + 1
            if seen is None:
                seen = np.arange(total if total <= MOST else 0, dtype=np.int32)
            return KnownWords(seen, total)
    return None


def words_of(scores: Iterable[tuple[str, Any]], batch: TokenBatch) -> NDArray[np.int32]:
    """Numbers of the words of some texts, ascending; none without a dense score of words."""
    for _, score in scores:
        if isinstance(score, Vectors) and score.words is not None:
            return np.unique(score.words.numbers(batch.distinct("ORTH")[0]))
    return np.zeros(0, dtype=np.int32)


def tables_of(
    scores: Iterable[tuple[str, Any]], n_labels: int, known: KnownWords | None
) -> tuple[Table, ...]:
    """The tables of the dense scores that are words', in their order."""
    found, first = list[Table](), 0
    vectors: dict[bool, Rows] = {}  # normalized or not: one for several scores
    for _, score in scores:
        if isinstance(score, Vectors) and score.words is not None and known is not None:
            if score.normalize not in vectors:
                vectors[score.normalize] = _as_multiplied(score.words.rows(known.numbers))
            found.append(Table(score, first, vectors[score.normalize]))
        first += score.width * n_labels
    return tuple(found)


def _as_multiplied(vectors: NDArray[np.float32]) -> Rows:
    """Vectors in float64 if they are few: converting them takes as long as multiplying."""
    return vectors.astype(np.float64) if vectors.size <= SMALL else vectors
