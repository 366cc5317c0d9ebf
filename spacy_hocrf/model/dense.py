"""Dense scores: numbers that are added for every label of every token, besides the weights of observations.

A dense score belongs to one part of the segment and has a matrix of weights with K rows and a column for
each of Y labels. It is linear in them, so that the objective keeps its form and every trainer works:

    scores [N, Y] = A(inputs) · weights [K, Y]        counts [K, Y] = A(inputs)' · expectations [N, Y]

The weights come after those of the features, in the order of `[components.*.model.scores]`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.products import multiply, multiply_transposed
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.features.vectors import Vectors
from spacy_hocrf.model.words import KnownWords, Table, known_words, tables_of
from spacy_hocrf.types import PARTS, Matrix

__all__ = [
    "Dense",
    "DenseScore",
    "DenseWeights",
    "LinearScore",
    "Scores",
    "checked_array",
    "checked_scores",
    "dense_weights",
    "moved_weights",
    "n_dense",
]


class DenseScore(Protocol):
    """One source of dense scores; it has no state but its settings."""

    @property
    def part(self) -> str:
        """Part of the segment to which it is added: "start", "end", every "token", or every "inner"
        token, which are all but the first.
        """
        ...

    @property
    def width(self) -> int:
        """Number of rows of weights K."""
        ...

    def inputs(self, batch: TokenBatch) -> NDArray[Any]:
        """Compute the inputs of the scores: an array with a row for each of N tokens, and without a
        reference to a Doc.
        """
        ...

    def scores(self, inputs: NDArray[Any], weights: Matrix) -> Matrix:
        """Return the scores of tokens, float64 [N, Y], linear in the weights [K, Y]."""
        ...

    def counts(self, inputs: NDArray[Any], expectations: Matrix) -> Matrix:
        """Return the expected counts of the weights, float64 [K, Y], from expectations [N, Y]: the
        transpose of `scores`.
        """
        ...


Scores = tuple[tuple[str, DenseScore], ...]
"""Dense scores with their names, in order."""


class LinearScore:
    """Scores that are inputs float64 [N, K] · weights."""

    def scores(self, inputs: NDArray[Any], weights: Matrix) -> Matrix:
        """Return inputs · weights, float64 [N, Y]."""
        return multiply(inputs, weights)

    def counts(self, inputs: NDArray[Any], expectations: Matrix) -> Matrix:
        """Return inputs' · expectations, float64 [K, Y]."""
        return multiply_transposed(inputs, expectations)


class Dense(NamedTuple):
    """A dense score of a batch."""

    score: DenseScore
    part: int  # where it is added, as in `types`
    inputs: NDArray[Any]  # [N, …]
    first: int  # place of its first weight among the dense ones

    def weights_of(self, dense: Matrix, n_labels: int) -> Matrix:
        """Return its part of all dense weights, float64 [K, Y], as a view."""
        last = self.first + self.score.width * n_labels
        return dense[self.first : last].reshape(self.score.width, n_labels)

    def add_into(self, scores: Matrix, dense: Matrix, tables: Sequence[Matrix]) -> None:
        """Add its scores to those of its part, float64 [N, Y].

        dense (float64 [H]): all dense weights. tables: tables of word scores, not used.
        RAISES (ValueError): H117 for scores of another shape.
        """
        added = self.score.scores(self.inputs, self.weights_of(dense, scores.shape[1]))
        scores += checked_array(self.score, "scores", added, scores.shape)

    def add_counts_into(
        self, dense: Matrix, tables: Sequence[Matrix], expectations: Matrix, scale: float
    ) -> None:
        """Add `scale` times its counts to those of all dense weights, float64 [H].

        RAISES (ValueError): H117 for counts of another shape.
        """
        own_counts = self.weights_of(dense, expectations.shape[1])
        added = self.score.counts(self.inputs, expectations)
        own_counts += scale * checked_array(self.score, "counts", added, own_counts.shape)

    def only(self, tokens: slice) -> "Dense":
        """Return the dense score of a slice of tokens."""
        return self._replace(inputs=self.inputs[tokens])


def checked_scores(
    scores: Mapping[str, DenseScore] | None, vectors: Iterable[Vectors] = ()
) -> Scores:
    """Check dense scores, and return them with their names, in order.

    vectors (Iterable[Vectors]): further dense scores, from the features.
    RAISES (ValueError): H116 for an object that is not a dense score.
    """
    members = [name for name in vars(DenseScore) if not name.startswith("_")]
    named = tuple(({} if scores is None else scores).items())
    for name, score in named:
        missing = sorted(member for member in members if not hasattr(score, member))
        reason = f"lacks {', '.join(missing)}" if missing else ""
        if not missing and score.part not in PARTS:
            reason = f"has the part '{score.part}', but must have one of {', '.join(PARTS)}"
        elif not missing and score.width < 1:
            reason = f"has the width {score.width}, but must have at least 1"
        if reason:
            raise ValueError(Errors.H116.format(name=name, reason=reason))
    return (*named, *((each.name, each) for each in vectors))


def n_dense(scores: Sequence[tuple[str, DenseScore]], n_labels: int) -> int:
    """Number of dense weights H."""
    return sum(score.width for _, score in scores) * n_labels


class DenseWeights(NamedTuple):
    """The weights of dense scores, which a model has in addition to those of features."""

    size: int  # number of weights H
    known_words: KnownWords | None  # the words that have rows in the tables
    tables: tuple[Table, ...]
    scores: tuple[DenseScore, ...]


def dense_weights(
    scores: Scores, n_labels: int, words: NDArray[np.int32] | None
) -> DenseWeights | None:
    """Layout of the weights of all dense scores; None without any.

    words (Optional[int32 [U]]): numbers of the words of the training texts, ascending; None if they
        are not known.
    """
    if not scores:
        return None
    known = known_words(scores, words)
    tables = tables_of(scores, n_labels, known)
    return DenseWeights(n_dense(scores, n_labels), known, tables, tuple(each for _, each in scores))


def moved_weights(
    scores: Sequence[tuple[str, DenseScore]], before: int, after: int
) -> NDArray[np.int64]:
    """Return the new places of dense weights after labels were appended, int64 [H before].

    before, after (int): numbers of labels.
    """
    rows = sum(score.width for _, score in scores)
    return (np.arange(rows)[:, None] * after + np.arange(before)).ravel()


def checked_array(score: DenseScore, what: str, returned: Any, shape: tuple[int, ...]) -> Matrix:
    """Check the shape of an array that a dense score returned. RAISES (ValueError): H117 for
    another shape.
    """
    array: Matrix = np.asarray(returned)
    if array.shape != shape:
        name = type(score).__name__
        raise ValueError(
            Errors.H117.format(score=name, what=what, found=array.shape, expected=shape)
        )
    return array
