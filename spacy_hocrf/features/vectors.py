"""Scores of precomputed token arrays, such as word vectors: `spacy-hocrf.Vectors.v1`.

Each is a dense score, linear in the array: dimension k has a weight for every label. An additional
dimension is 1 if there is no array, or one of zeros.

The vectors of a vocabulary belong to words, not to tokens: for every token only the number of its word is
stored, and the scores of each word are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from spacy.vectors import Mode
from thinc.util import to_numpy

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.columns import Lexicon
from spacy_hocrf.features.config import check_offsets, check_source, checked_parts
from spacy_hocrf.features.products import multiply, multiply_transposed
from spacy_hocrf.features.tokens import TokenBatch, beginning
from spacy_hocrf.locks import CACHES
from spacy_hocrf.types import PARTS as NAMES
from spacy_hocrf.types import Matrix

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

__all__ = ["FETCH", "VectorRows", "Vectors", "Words", "check_scale", "make_vectors"]

VectorRows = NDArray[np.float32] | NDArray[np.float64]

NOWHERE = -1
"""Number of the position beyond either end of a Doc."""
FETCH: Callable[[object], NDArray[Any]] = to_numpy  # spaCy may keep vectors on a GPU
MAX_CACHED = 2**15
"""Words whose numbers are cached for later batches."""
BLOCK = 1024
"""Rows that are computed together."""


class Words:
    """The vectors of a vocabulary, as they were when the model was made; number V stands for all words
    without one.

    vocab (Vocab): vocabulary with V vectors.
    normalize (bool): are they scaled to length 1?
    """

    def __init__(self, vocab: Vocab, normalize: bool) -> None:
        self._numbers = vocab.vectors.key2row
        self._vectors = FETCH(vocab.vectors.data)
        lengths = np.sqrt(np.einsum("ij,ij->i", self._vectors, self._vectors, dtype=np.float64))
        self._factor = 1.0 / np.where(lengths > 0, lengths, 1.0) if normalize else None
        self._empty = np.append(lengths == 0, True)  # [V + 1] is there no vector?
        self._cache = Lexicon(1, MAX_CACHED)

    def __len__(self) -> int:
        """Number of words V, without that of words without vectors."""
        return len(self._vectors)

    def numbers(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the number of each word, int32 [n].

        hashes (uint64 [n]): hashes of the words.
        """
        with CACHES:
            rows, numbers = self._cache.look_up(hashes, self._find)
        result: NDArray[np.int32] = numbers[rows, 0]
        return result

    def _find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Look up the number of each word, int32 [n, 1]."""
        number_of, none = self._numbers, len(self)
        values = [[number_of.get(value, none)] for value in hashes.tolist()]
        numbers = np.minimum(np.array(values, dtype=np.int32), none)  # later vectors have larger
        return np.where(self._empty[numbers], np.int32(none), numbers)

    def rows(self, numbers: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the rows by which words are scored, float32 [n, K]; zeros for NOWHERE."""
        rows = np.zeros((len(numbers), self._vectors.shape[1] + 1), dtype=np.float32)
        scored = np.flatnonzero((numbers >= 0) & (numbers < len(self)))
        for first in range(0, len(scored), BLOCK):
            block = scored[first : first + BLOCK]
            vectors = self._vectors[numbers[block]]
            if self._factor is not None:
                vectors = vectors * self._factor[numbers[block], None]
            rows[block, :-1] = vectors
        rows[numbers == len(self), -1] = 1.0
        return rows


@dataclass(frozen=True)
class Vectors:
    """A dense score of a token's array, or of a neighbour's; see `make_vectors`."""

    source: str
    part: str  # "start", "end", "token" or "inner"
    offset: int
    normalize: bool
    scale: float
    optional: bool = False  # may the vocabulary have no vectors?
    width: int = 0  # dimensions K, including the flag; 0 until arrays are known, or without any

    @property
    def name(self) -> str:
        """Name made of the part of a segment, the array and the offset."""
        place = "" if self.part == "token" else f"{self.part}:"
        return f"{place}{self.source}[{self.offset}]"

    def learning_from(self, doc: Doc) -> Vectors:
        """Return a copy with the width of the arrays in a training text.

        RAISES (ValueError): H025, H027 or H137 for bad arrays, H170 if there are no vectors.
        """
        if self.source != "vector":
            (rows,) = TokenBatch([doc]).real(self.source)
            return replace(self, width=rows.shape[1] + 1)
        vectors = doc.vocab.vectors
        if not vectors.size and not self.optional:
            raise ValueError(Errors.H170.format(name=self.name))
        return self._of(doc.vocab, vectors.shape[1] + 1 if vectors.size else 0)

    def learnt(self, vocab: Vocab, width: int) -> Vectors:
        """Return a copy for the vectors of a vocabulary, in a model that was saved.

        width (int): width that it had, 0 for none.
        RAISES (ValueError): H171 if the vectors have another width now.
        """
        if self.source != "vector" or not width:
            return replace(self, width=width)
        found = vocab.vectors.shape[1] if vocab.vectors.size else 0
        if found != width - 1:
            raise ValueError(Errors.H171.format(name=self.name, found=found, expected=width - 1))
        return self._of(vocab, width)

    def _of(self, vocab: Vocab, width: int) -> Vectors:
        """Bind to the vectors of a vocabulary. RAISES (ValueError): H175 if one is not finite."""
        bound = replace(self, width=width)
        if not width:
            return bound
        object.__setattr__(bound, "_vocab", vocab)
        bad = np.flatnonzero(~np.isfinite(FETCH(vocab.vectors.data)).all(axis=1))
        if len(bad):
            raise ValueError(Errors.H175.format(row=bad[0], name=self.name))
        if vocab.vectors.mode == Mode.default:
            object.__setattr__(bound, "_words", Words(vocab, self.normalize))
        return bound

    @property
    def words(self) -> Words | None:
        """The words, if words are scored; None if every token has its own array."""
        return getattr(self, "_words", None)

    def inputs(self, batch: TokenBatch) -> NDArray[Any]:
        """Return the number of each token's word, int32 [N]; or its array, float32 [N, K].

        RAISES (ValueError): H025, H027 or H137 for bad arrays, H172 for arrays of another width.
        """
        if self.words is not None:
            return self._shifted(batch, self.words.numbers(batch.column("ORTH")), NOWHERE)
        rows = self._arrays(batch)
        arrays = np.zeros((len(batch), self.width), dtype=np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        arrays[:, -1] = lengths == 0
        arrays[:, :-1] = (
            rows / np.where(lengths > 0, lengths, 1.0)[:, None] if self.normalize else rows
        )
        return self._shifted(batch, arrays, 0.0)

    def check(self, doc: Doc) -> None:
        """Check a text. RAISES (ValueError): H025, H027, H137 or H172 for arrays that cannot be used."""
        if self.source != "vector":
            self._arrays(TokenBatch([doc]))

    def scores(self, inputs: NDArray[Any], weights: Matrix) -> Matrix:
        """Return array · weights of each token, float64 [N, Y]."""
        if self.words is None:
            return self.of_rows(inputs, weights)
        numbers, codes = np.unique(inputs, return_inverse=True)
        return self.of_rows(self.words.rows(numbers), weights)[codes]

    def counts(self, inputs: NDArray[Any], expectations: Matrix) -> Matrix:
        """Return arrays' · expectations, float64 [K, Y]."""
        if self.words is None:
            return self.from_rows(inputs, expectations)
        numbers, codes = np.unique(inputs, return_inverse=True)
        summed = np.zeros((len(numbers), expectations.shape[1]))
        np.add.at(summed, codes, expectations)
        return self.from_rows(self.words.rows(numbers), summed)

    def of_rows(self, rows: VectorRows, weights: Matrix) -> Matrix:
        """Return arrays [n, K] · weights [K, Y], float64 [n, Y]."""
        return multiply(rows, self.scale * weights)

    def from_rows(self, rows: VectorRows, expectations: Matrix) -> Matrix:
        """Apply the transpose of `of_rows`: arrays' · expectations [n, Y], float64 [K, Y]."""
        counts = multiply_transposed(rows, expectations)
        counts *= self.scale
        return counts

    def _arrays(self, batch: TokenBatch) -> Matrix:
        """Unscaled arrays of all tokens, float64 [N, K - 1]."""
        if self.source == "vector":
            values, codes = batch.distinct("ORTH")
            strings, vectors = batch.strings, self._vocab.vectors  # type: ignore[attr-defined]
            arrays = vectors.get_batch([strings[value] for value in values.tolist()])
            return np.asarray(FETCH(arrays), dtype=np.float64)[codes]
        arrays = batch.real(self.source)
        for i, rows in enumerate(arrays):
            if len(rows) and rows.shape[1] + 1 != self.width:
                text = beginning(batch.docs[i])
                raise ValueError(
                    Errors.H172.format(
                        name=self.name, found=rows.shape[1], expected=self.width - 1, text=text
                    )
                )
        return np.concatenate(
            [np.zeros((0, self.width - 1)), *(rows for rows in arrays if len(rows))]
        )

    def _shifted(self, batch: TokenBatch, values: NDArray[Any], beyond: float) -> NDArray[Any]:
        """Shift values by `offset` tokens within their Doc."""
        if not self.offset:
            return values
        target = np.arange(len(batch)) + self.offset
        first, last = batch.offsets[:-1][batch.sequence], batch.offsets[1:][batch.sequence]
        inside = (target >= first) & (target < last)
        shifted = np.full_like(values, beyond)
        shifted[inside] = values[target[inside]]
        return shifted

    def __deepcopy__(self, memo: Any) -> Vectors:
        """Return self: the vectors never change."""
        return self

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        settings = self.source, self.part, self.offset, self.normalize, self.scale
        return Vectors, (*settings, self.optional, self.width)  # bound anew when a model is loaded


def make_vectors(
    source: str = "vector",
    window: Sequence[int] = (0,),
    parts: Sequence[str] = ("tokens",),
    normalize: bool = True,
    scale: float = 4.0,
) -> list[Vectors]:
    """`spacy-hocrf.Vectors.v1`: scores an array of every token, such as its word vector, with a weight for
    each pair of dimension and label, and a flag for tokens without an array.

    source (str): "vector" (the word's, in `nlp.vocab.vectors`), "tensor" (`doc.tensor`), or
        "_.name", an extension attribute with a number or an array.
    window (Sequence[int]): offsets from the observed token; nothing is observed beyond the Doc.
    parts (Sequence[str]): where in a segment: "tokens", "start", "end", "inner".
    normalize (bool): scale every array to length 1.
    scale (float): factor of the array. A prior of sigma on its weights equals a prior of scale · sigma on
        weights of the unscaled array.
    RETURNS (list[Vectors]): one dense score for each part and offset.
    RAISES (ValueError): H024, H030, H031, H034, H038, H140 or H173; at training or prediction H025,
        H027, H137, H170 to H172 or H175 for arrays that cannot be used.
    """
    check_source(source)
    check_offsets(window)
    check_scale(scale)
    places = [NAMES[part] for part in checked_parts(parts)]
    return [
        Vectors(source, part, offset, normalize, float(scale))
        for part in places
        for offset in window
    ]


def check_scale(scale: float) -> None:
    """Check a scale. RAISES (ValueError): H173 unless it is a number above 0."""
    if type(scale) not in (int, float) or not 0 < scale < float("inf"):
        raise ValueError(Errors.H173.format(found=repr(scale)))
