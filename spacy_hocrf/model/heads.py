"""Heads: dense scores of an encoder's output; and functions on dense scores that treat heads and vectors
specially.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Model

from spacy_hocrf.features.products import multiply
from spacy_hocrf.features.tokens import TokenBatch, beginning
from spacy_hocrf.features.vectors import Vectors
from spacy_hocrf.model.dense import Dense, DenseScore, LinearScore, Scores, checked_array
from spacy_hocrf.model.errors import EncoderErrors
from spacy_hocrf.model.words import KnownWords, Table, WordScore
from spacy_hocrf.types import PARTS, Expectations, Matrix

__all__ = [
    "Head",
    "dense_of",
    "gradient_of_rows",
    "inputs_of",
    "learning_from",
    "learnt",
    "listens",
]


class Head(LinearScore):
    """Scores of an encoder's output for tokens, at one part of the segment.

    encoder (Model[List[Doc], Floats2d]): see `spacy_hocrf.model.neural`.
    width (int): number of columns K of its output; 0 before it is known.
    """

    def __init__(self, encoder: Model[list[Doc], Matrix], part: str, width: int = 0) -> None:
        self.encoder = encoder
        self.part = part
        self.width = width

    def learning_from(self, doc: Doc) -> "Head":
        """Return a head with the width of the encoder's output for a training text."""
        return Head(self.encoder, self.part, self.encoder.predict([doc]).shape[1])

    def learnt(self, vocab: Vocab, width: int) -> "Head":
        """Return a head for a saved model, with the width that it had."""
        return Head(self.encoder, self.part, width)

    def inputs(self, batch: TokenBatch) -> Matrix:
        """Return the encoder's output for every token, float64 [N, K].

        RAISES (ValueError): H176 or H177 for unexpected arrays.
        """
        rows = self.encoder.predict(list(batch.docs)) if len(batch) else np.zeros((0, self.width))
        return self.checked(rows, batch)

    def checked(self, rows: Matrix, batch: TokenBatch) -> Matrix:
        """Check the rows of a batch. RAISES (ValueError): H176 for rows of another width than K."""
        if not len(batch):
            return np.zeros((0, self.width))
        if rows.shape[1] == self.width:
            return rows
        doc = next(doc for doc in batch.docs if len(doc))
        found, expected = (f"{len(doc)} x {width - 1}" for width in (rows.shape[1], self.width))
        raise ValueError(
            EncoderErrors.H176.format(found=found, expected=expected, text=beginning(doc))
        )


def learning_from(scores: Scores, doc: Doc) -> Scores:
    """Adapt dense scores to the arrays of tokens, where they depend on these.

    doc (Doc): a training text with tokens.
    RAISES (ValueError): as `Vectors.learning_from`.
    """
    return tuple(
        (name, score.learning_from(doc) if isinstance(score, (Vectors, Head)) else score)
        for name, score in scores
    )


def learnt(scores: Scores, vocab: Vocab, widths: Mapping[str, int]) -> Scores:
    """Restore the dense scores of a saved model.

    widths (Mapping[str, int]): saved widths, by name.
    RAISES (ValueError): as `Vectors.learnt`.
    """
    return tuple(
        (
            name,
            score.learnt(vocab, widths.get(name, 0))
            if isinstance(score, (Vectors, Head))
            else score,
        )
        for name, score in scores
    )


def dense_of(
    scores: Iterable[tuple[str, DenseScore]],
    inputs: Iterable[NDArray[Any]],
    n_labels: int,
    known_words: KnownWords | None,
    tables: Iterable[Table],
) -> list[Dense | WordScore]:
    """Return the dense scores of a batch, with the places of their weights.

    known_words (Optional[KnownWords]): the words that have rows in the tables.
    """
    dense, first = list[Dense | WordScore](), 0
    by_place = {table.first: (number, table) for number, table in enumerate(tables)}
    for (_, score), rows in zip(scores, inputs):
        part = PARTS.index(score.part)
        if known_words is not None and first in by_place:
            number, table = by_place[first]
            dense.append(WordScore(table, number, part, rows, *known_words.rows(rows)))
        else:
            dense.append(Dense(score, part, rows, first))
        first += score.width * n_labels
    return dense


def inputs_of(
    scores: Iterable[tuple[str, DenseScore]],
    batch: TokenBatch,
    rows: Matrix | None = None,
) -> tuple[NDArray[Any], ...]:
    """Compute the inputs of each dense score for a batch, arrays with N rows.

    rows (Optional[float64 [N, K]]): the encoder's output for the tokens, if computed before; else the
        encoder is run once for all its heads.
    RAISES (ValueError): H117 unless there are N rows, of K numbers for a `LinearScore`; H176 or H177 for
        those of an encoder.
    """
    arrays = list[NDArray[Any]]()
    for _, score in scores:
        if isinstance(score, Head):
            rows = score.inputs(batch) if rows is None else score.checked(rows, batch)
            arrays.append(rows)
            continue
        inputs = np.asarray(score.inputs(batch))
        row = (score.width,) if isinstance(score, LinearScore) else inputs.shape[1:]
        arrays.append(checked_array(score, "inputs", inputs, (len(batch), *row)))
    return tuple(arrays)


def gradient_of_rows(
    dense: Iterable[Dense | WordScore], weights: Matrix, expected: Expectations
) -> Matrix | None:
    """Return the derivative by the encoder's output, float64 [N, K]; None without a head.

    weights (float64 [H]): all dense weights. expected (Expectations): the derivative by the log
        potentials.
    """
    parts = (expected.start, expected.end, expected.token, expected.inner)
    gradient: Matrix | None = None
    for score in dense:
        part = parts[score.part]
        if isinstance(score, Dense) and isinstance(score.score, Head) and part is not None:
            head_gradient = multiply(part, score.weights_of(weights, part.shape[1]).T)
            gradient = head_gradient if gradient is None else gradient + head_gradient
    return gradient


def listens(encoder: Model[Any, Any]) -> bool:
    """Is an encoder a listener, which passes on the output of another component?"""
    return any(hasattr(node, "upstream_name") for node in encoder.walk())
