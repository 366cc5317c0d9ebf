"""Selects the label patterns of a model: those seen in training, up to its order."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, count
from math import inf

import numpy as np

from spacy_hocrf.types import LabelPattern

__all__ = ["select_patterns", "subpatterns"]


def select_patterns(
    histories: Iterable[Sequence[int]],
    n_labels: int,
    order: int | None,
    *,
    min_counts: Sequence[int] = (1,),
    more: Iterable[LabelPattern] = (),
    most: float = inf,
    most_labels: float = inf,
) -> tuple[LabelPattern, ...]:
    """Select the label n-grams of the training data (Nguyen et al., JMLR 15, §2.1: label pattern sparsity).

    histories (Iterable[Sequence[int]]): labels of consecutive known segments.
    n_labels (int): number of labels Y.
    order (Optional[int]): length of the longest pattern minus one; None for no limit.
    min_counts (Sequence[int]): minimum counts of patterns of order 1, 2, …, the last for all higher ones.
        Rarer patterns are left out, and so are those that begin or end with one that is left out.
    more (Iterable[LabelPattern]): patterns of two or more labels that are always included.
    most, most_labels (float): longer patterns are not searched for once there are more patterns of two or
        more labels, or more labels in all of them.
    RETURNS (tuple[LabelPattern, ...]): the Y single labels, then longer patterns by length and label.
    """
    patterns = {*more}
    n_spelt = sum(map(len, patterns))
    for length, frequent in enumerate(_by_length(histories, min_counts), 2):
        if order is not None and length > order + 1:
            break
        patterns |= frequent
        n_spelt += length * len(frequent)
        if len(patterns) > most or n_spelt > most_labels:
            break
    longer = sorted(patterns, key=lambda z: (len(z), z))
    return (*((y,) for y in range(n_labels)), *longer)


def subpatterns(pattern: LabelPattern) -> Iterator[LabelPattern]:
    """Yield the pattern itself, and all contiguous parts of it with two or more labels."""
    for first, last in combinations(range(len(pattern) + 1), 2):
        if last - first > 1:
            yield pattern[first:last]


def _least(min_counts: Sequence[int], length: int) -> int:
    """Return the minimum count of a pattern with this many labels."""
    return min_counts[min(length - 1, len(min_counts)) - 1]


def _by_length(
    histories: Iterable[Sequence[int]], min_counts: Sequence[int]
) -> Iterator[set[LabelPattern]]:
    """Yield the sets of sufficiently frequent patterns of two labels, of three, and so on, until there are
    none.

    A pattern of n + 1 labels is a pair of patterns of n labels, its prefix and its suffix. Such pairs are
    renumbered for every length, so a pattern is spelt out once, however often it is seen (Karp, Miller and
    Rosenberg, STOC 1972).
    """
    texts = [(*labels, -1) for labels in histories]
    labels = np.array([*chain.from_iterable(texts)], dtype=np.int64)
    start = np.flatnonzero(labels >= 0)  # [n] where patterns of the previous length begin
    number = labels[start]  # [n] number of each pattern, the same for equal ones
    for length in count(2):
        begins = np.flatnonzero(np.diff(start) == 1)
        if not len(begins):
            return
        pairs = number[begins] * (number.max() + 1) + number[begins + 1]
        _, first, pair, seen = np.unique(
            pairs, return_index=True, return_inverse=True, return_counts=True
        )
        frequent = seen >= _least(min_counts, length)
        places = start[begins]
        yield {tuple(labels[i : i + length].tolist()) for i in places[first[frequent]].tolist()}
        start, number = places[frequent[pair]], pair[frequent[pair]]
