"""Which clusters words are in: made of word vectors by k-means, or read from a file of Brown
clusters (Brown et al., Computational Linguistics 18, 1992), at several granularities.

Words that are together at every granularity are a leaf, of which there are few: a clustering
knows the leaf of every word, by the word's hash, and the clusters of every leaf.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore
from spacy.vectors import Vectors
from thinc.util import to_numpy

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.errors import ClusterErrors

__all__ = ["NONE", "VECTORS", "Clustering", "make_clustering", "read_paths"]

NONE = 0
"""Number of the cluster of words that are in none."""
VECTORS = "vectors"
"""The source that is not a file."""
PATH = re.compile("[01]+")
SEED = 0
BATCH = 4096
"""Vectors that k-means looks at together."""
LOOKS, MOST_LOOKS = 400_000, 20
"""How many it looks at in all, and how often at each of them: at most so often, and at least once."""


@dataclass(frozen=True, eq=False)
class Clustering:
    """The clusters of V words in U leaves, at G granularities."""

    words: NDArray[np.uint64]  # [V] hashes, ascending
    leaf: NDArray[np.unsignedinteger[Any]]  # [V]
    # [G, U + 1] clusters of each leaf, from 1; the last leaf is that of all other words, NONE
    numbers: NDArray[np.uint64]

    def clusters(self, hashes: NDArray[np.uint64], granularity: int) -> NDArray[np.uint64]:
        """Clusters of words, uint64 [n]; NONE for words without one."""
        place = np.minimum(np.searchsorted(self.words, hashes), len(self.words) - 1)
        none = self.numbers.shape[1] - 1
        leaf = np.where(self.words[place] == hashes, self.leaf[place], none)
        found: NDArray[np.uint64] = self.numbers[granularity][leaf]
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays that `from_arrays` restores it from."""
        return {"words": self.words, "leaf": self.leaf, "numbers": self.numbers.astype(np.int32)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], granularities: int) -> "Clustering":
        """The clustering that has been saved as these arrays.

        granularities (int): G.
        RAISES (ValueError): H039 for arrays that do not fit each other.
        """
        nothing = np.zeros(0)
        words, leaf, numbers = (arrays.get(key, nothing) for key in ("words", "leaf", "numbers"))
        _need(words.dtype == np.uint64 and words.ndim == 1 and len(words) > 0, "words")
        _need(bool((words[:-1] < words[1:]).all()), "words")
        _need(numbers.dtype == np.int32 and numbers.ndim == 2, "numbers")
        _need(numbers.shape[0] == granularities and numbers.shape[1] > 1, "numbers")
        _need(bool((numbers >= 0).all()) and not numbers[:, -1].any(), "numbers")
        _need(leaf.dtype.kind == "u" and leaf.shape == words.shape, "leaf")
        _need(int(leaf.max()) < numbers.shape[1] - 1, "leaf")
        return cls(words, leaf, numbers.astype(np.uint64))


def make_clustering(vectors: Vectors, sizes: Sequence[int], name: str) -> Clustering:
    """Clusters of the words of a table of vectors, by the directions of these; the same on every run.

    sizes (Sequence[int]): numbers of clusters.
    name (str): who asks, for errors.
    RAISES (ValueError): H170, H175 or H195 for vectors that cannot be used, H192 without scikit-learn.
    """
    if not vectors.size:
        raise ValueError(Errors.H170.format(name=name))
    fetch: Callable[[object], object] = to_numpy  # spaCy may keep vectors on a GPU
    rows: NDArray[np.float32] = np.asarray(fetch(vectors.data))
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise ValueError(Errors.H175.format(row=bad[0], name=name))
    words = np.fromiter(vectors.key2row, dtype=np.uint64)
    row = np.fromiter(vectors.key2row.values(), dtype=np.int64)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    used = np.isin(np.arange(len(rows)), row) & (lengths > 0)
    if used.sum() < max(sizes):
        text = ClusterErrors.H195.format(name=name, expected=max(sizes), found=used.sum())
        raise ValueError(text)
    units = (rows[used] / lengths[used, None]).astype(np.float32)
    numbers = np.zeros((len(rows), len(sizes)), dtype=np.uint64)
    for granularity, size in enumerate(sizes):
        numbers[used, granularity] = 1 + _k_means(units, size)
    known = used[row]
    return _clustering_of(words[known], row[known], numbers)


def read_paths(path: str, sizes: Sequence[int], strings: StringStore) -> Clustering:
    """Clusters of the words of a file: a path in the tree of clusters, a word and its count in each
    line. A cluster is known by the first bits of its path, with a 1 in front of them.

    sizes (Sequence[int]): numbers of bits.
    strings (StringStore): that gives the words' hashes.
    RAISES (ValueError): H193 or H196 for another file.
    """
    leaves: dict[str, int] = {}
    rows: dict[int, int] = {}
    try:
        with Path(path).open(encoding="utf8", newline="\n") as file:
            lines = [line.rstrip("\r\n") for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(ClusterErrors.H196.format(path=path, reason=error)) from error
    for number, line in enumerate(lines, start=1):
        bits, _, rest = line.partition("\t")
        word, _, count = rest.partition("\t")
        if not (PATH.fullmatch(bits) and word and count.strip().isdecimal()):
            found = repr(line[:60])
            raise ValueError(ClusterErrors.H193.format(line=number, path=path, found=found))
        rows.setdefault(strings[word], leaves.setdefault(bits, len(leaves)))
    if not rows:
        raise ValueError(ClusterErrors.H196.format(path=path, reason="it has no line"))
    numbers = [[int(f"1{bits[:size]}", 2) for size in sizes] for bits in leaves]
    return _clustering_of(
        np.fromiter(rows, dtype=np.uint64),
        np.fromiter(rows.values(), dtype=np.int64),
        np.array(numbers, dtype=np.uint64),
    )


def _clustering_of(
    words: NDArray[np.uint64], row: NDArray[np.int64], numbers: NDArray[np.uint64]
) -> Clustering:
    """Clustering of words [V], each with a row of the clusters [R, G]."""
    order = np.argsort(words)
    leaves, leaf = np.unique(numbers, axis=0, return_inverse=True)
    small = np.uint16 if len(leaves) <= 2**16 else np.uint64
    nothing = np.full((1, numbers.shape[1]), NONE, dtype=np.uint64)
    return Clustering(
        words[order],
        leaf.ravel()[row[order]].astype(small),
        np.ascontiguousarray(np.concatenate([leaves, nothing]).T),
    )


def _k_means(rows: NDArray[np.float32], size: int) -> NDArray[np.integer[Any]]:
    """Cluster of each row, from 0. One thread: sums have one order whatever the machine."""
    try:
        from sklearn.cluster import MiniBatchKMeans
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise ValueError(ClusterErrors.H192) from error
    search = MiniBatchKMeans(
        size,
        batch_size=BATCH,
        max_iter=min(MOST_LOOKS, -(-LOOKS // len(rows))),
        max_no_improvement=None,
        n_init=1,
        random_state=SEED,
    )
    with threadpool_limits(limits=1):
        labels: NDArray[np.integer[Any]] = search.fit(rows).labels_
    return labels


def _need(holds: bool, name: str) -> None:
    if not holds:
        raise ValueError(Errors.H039.format(name=f"clusters.{name}"))
