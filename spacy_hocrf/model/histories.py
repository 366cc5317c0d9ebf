"""Looks up which label pattern ends the history of each known segment, for all segments at once.

The patterns' prefixes form a trie. With node_l(i) the prefix of l labels that ends at segment i,
node_l(i) is the child of node_{l-1}(i-1) for the label of segment i: each level of the trie takes one
search in a sorted list of (parent, label) pairs.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spacy_hocrf.features.gold import GoldSegments
from spacy_hocrf.types import LabelPattern, Segments

__all__ = ["Histories", "as_segments"]


class Histories:
    """A trie of label patterns.

    patterns (Sequence[LabelPattern]): the patterns, numbered by position.
    """

    def __init__(self, patterns: Sequence[LabelPattern]) -> None:
        self.patterns = patterns
        numbers = {pattern: i for i, pattern in enumerate(patterns)}
        self._labels = 1 + max((y for pattern in numbers for y in pattern), default=0)
        # (parent, label) pairs, and number of each node
        self._levels: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        node: dict[LabelPattern, int] = {(): 0}
        for length in range(1, 1 + max(map(len, numbers), default=1)):
            prefixes = {pattern[:length] for pattern in numbers if len(pattern) >= length}
            pairs = {node[prefix[:-1]] * self._labels + prefix[-1]: prefix for prefix in prefixes}
            keys = np.array(sorted(pairs), dtype=np.int64)
            node = {pairs[key]: i for i, key in enumerate(keys.tolist())}
            numbered = np.array(
                [numbers.get(pairs[key], -1) for key in keys.tolist()] + [-1], dtype=np.int32
            )
            self._levels.append((keys, numbered))

    def gold(self, segmentations: Sequence[ArrayLike], offsets: NDArray[np.int64]) -> GoldSegments:
        """Return known segments as arrays; a gap between two of them ends the history.

        segmentations (Sequence[ArrayLike]): for each of D sequences start, end and label of its
            segments, [·, 3]; positions in the sequence.
        offsets (int64 [D + 1]): first token of each sequence.
        """
        return self.locate(as_segments(segmentations), offsets)

    def locate(self, segments: Segments, offsets: NDArray[np.int64]) -> GoldSegments:
        """Return known segments with their label patterns; a gap between two of them ends the history."""
        sequence = np.repeat(np.arange(len(segments.offsets) - 1), np.diff(segments.offsets))
        start, end, label = (part.astype(np.int64) for part in segments[1:])
        touches = np.zeros(len(start), dtype=bool)  # is it adjacent to the segment before it?
        touches[1:] = (start[1:] == end[:-1]) & (sequence[1:] == sequence[:-1])
        pattern = np.full((len(self._levels), len(start)), -1, dtype=np.int32)
        parent = np.zeros(len(start), dtype=np.int64)
        for level_pattern, (keys, numbers) in zip(pattern, self._levels):
            pair = parent * self._labels + label  # negative without a parent
            node = np.searchsorted(keys, pair)
            in_trie = (np.append(keys, -1)[node] == pair) & (label < self._labels)
            level_pattern[:] = numbers[np.where(in_trie, node, -1)]
            parent = np.where(touches, np.append(-1, np.where(in_trie, node, -1)[:-1]), -1)
        return GoldSegments(offsets[sequence] + start, offsets[sequence] + end, pattern)


def as_segments(segmentations: Sequence[ArrayLike]) -> Segments:
    """Concatenate the segments of D sequences, [·, 3] each, into arrays of start, end and label."""
    tables = [np.asarray(segments, dtype=np.int32).reshape(-1, 3) for segments in segmentations]
    start, end, label = np.concatenate([np.zeros((0, 3), dtype=np.int32), *tables]).T
    return Segments(np.cumsum([0, *map(len, tables)], dtype=np.int64), start, end, label)
