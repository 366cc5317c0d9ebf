"""Rules about all spans of a Doc as the engine's labels have them: which a segmentation breaks, and
automata that remember what some of them need.

Letters: D sequences, Y labels of the engine, L those of users, n rules, M states of a memory.
"""

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.memory import Memory, remembering, tables_of
from spacy_hocrf.engine.pool import BufferPool
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.pipeline.ends import Ends
from spacy_hocrf.types import Segments

__all__ = ["MOST_STATES", "Remembering", "SpanRules"]

MOST_STATES = 128
"""Of a memory: copies of the automaton."""
KEPT_STATES = 2048
"""Of all memories that are kept for further texts."""


class Remembering(NamedTuple):
    """An automaton that remembers some rules."""

    rules: tuple[int, ...]  # k of them
    broken: NDArray[np.bool_]  # [M, k] does a sequence that ends in a state break each of them?
    automaton: Automaton  # that has the memory of M states


class SpanRules:
    """n rules for the labels of one model.

    memories (Sequence[Memory]): over the L labels of `scheme.labels`, one for each rule.
    feature (int64 [n]): the joint feature of each.
    hard (bool [n]): does no reading break it?

    pool (BufferPool): of automata that remember some of them.
    """

    def __init__(
        self,
        memories: Sequence[Memory],
        scheme: LabelScheme,
        feature: NDArray[np.int64],
        hard: NDArray[np.bool_],
    ) -> None:
        self.feature, self.hard = feature, hard
        self.pool = BufferPool()
        self._memories = [_over_segments(memory, scheme) for memory in memories]
        self._after, self._ends = tables_of(self._memories, scheme.n_labels)
        # labels of the engine that leave every memory as it is
        self._idle = (self._after == np.arange(self._ends.shape[1])[:, None]).all(axis=(0, 1))
        self._idle |= np.arange(scheme.n_labels) == (scheme.outside if not _runs(scheme) else -1)
        self._kept: dict[tuple[int, ...], Remembering | None] = {}
        self._automaton: Automaton | None = None  # of those
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.feature)

    def broken(self, segments: Segments) -> NDArray[np.bool_]:
        """Which rules D segmentations break, bool [D, n]."""
        sequence = np.repeat(np.arange(len(segments.offsets) - 1), np.diff(segments.offsets))
        told = ~self._idle[segments.label]
        sequence, label = sequence[told], segments.label[told]
        counts = np.bincount(sequence, minlength=len(segments.offsets) - 1)
        first = np.cumsum(counts) - counts
        rules = np.arange(len(self))
        state = np.zeros((len(counts), len(self)), dtype=np.int32)
        for i in range(int(counts.max(initial=0))):
            here = np.flatnonzero(counts > i)
            state[here] = self._after[rules, state[here], label[first[here] + i][:, None]]
        return ~self._ends[rules, state]

    def remembering(self, automaton: Automaton, rules: tuple[int, ...]) -> Remembering | None:
        """What remembers some rules; None if that takes too many states.

        automaton (Automaton): without a memory; what another one remembers is forgotten.
        rules (tuple[int, ...]): ascending.
        """
        with self._lock:
            if automaton is not self._automaton:
                self._automaton, self._kept = automaton, {}
            if rules in self._kept:
                return self._kept[rules]
            found = self._product(automaton, rules)
            states = sum(len(each.broken) for each in self._kept.values() if each is not None)
            if found is not None and states + len(found.broken) > KEPT_STATES:
                self._kept = {}
            self._kept[rules] = found
            return found

    def _product(self, automaton: Automaton, rules: tuple[int, ...]) -> Remembering | None:
        """All states of several memories that can be reached together."""
        if not rules:
            return Remembering(rules, np.zeros((1, 0), dtype=bool), automaton)
        after, ends = self._after[list(rules)], self._ends[list(rules)]
        each = np.arange(len(rules))
        number = {(0,) * len(rules): 0}
        rows = list[list[int]]()
        queue = list(number)
        for states in queue:
            row = list[int]()
            for reached in map(tuple, after[each, list(states)].T.tolist()):
                if reached not in number:
                    if len(number) == MOST_STATES:
                        return None
                    number[reached] = len(number)
                    queue.append(reached)
                row.append(number[reached])
            rows.append(row)
        memory = Memory(np.array(rows, dtype=np.int32), np.ones(len(rows), dtype=bool))
        broken = ~ends[each, np.array(queue)]
        return Remembering(rules, broken, remembering(automaton, memory))


def _runs(scheme: LabelScheme) -> bool:
    """Is a span all neighbours of one label, so that unlabelled text ends it?"""
    return scheme.encoding == "io"


def _over_segments(memory: Memory, scheme: LabelScheme) -> Memory:
    """A memory over the labels of spans as one over those of the segments that they are written with,
    Y. What begins a span is read, all else is not; where a span is a run, the last label is remembered.
    """
    firsts = [Ends(scheme).firsts(label) for label in scheme.labels]
    states = np.arange(len(memory))
    after = np.repeat(states[:, None], scheme.n_labels, axis=1).astype(np.int32)
    for label, own in enumerate(firsts):
        after[:, own] = memory.after[:, label][:, None]
    if not _runs(scheme):
        return Memory(after, memory.ends)
    told = np.flatnonzero((after != states[:, None]).any(axis=0))
    sides = len(told) + 1  # the last label is each of these, or another one
    last = np.zeros(scheme.n_labels, dtype=np.int64)
    last[told] = 1 + np.arange(len(told))
    found = np.zeros((len(memory), sides, scheme.n_labels), dtype=np.int32)
    found[:] = after[:, None, :] * sides + last
    for side, label in enumerate(told.tolist(), 1):
        found[:, side, label] = states * sides + side
    return Memory(found.reshape(-1, scheme.n_labels), np.repeat(memory.ends, sides))
