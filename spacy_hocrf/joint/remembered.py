"""Rules about all spans of a Doc as the engine's labels have them: which a segmentation breaks, and
automata that remember what some of them need.

Letters: D sequences, Y labels of the engine, L those of users, n rules, M states of a memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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

__all__ = ["MOST_STATES", "Remembering", "Rules", "SpanRules"]

MOST_STATES = 128
"""Of a memory: copies of the automaton."""
KEPT_STATES = 2048
"""Of all automata that are kept for further texts."""
KEPT_TABLES = 4096
"""Sets of rules whose memories are kept, without an automaton."""
Rules = tuple[int, ...]
"""Numbers of rules, ascending."""


class Remembering(NamedTuple):
    """An automaton that remembers some rules."""

    rules: Rules  # k of them
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
        self._kept: dict[Rules, Remembering] = {}
        self._joints: dict[Rules, _Joint | None] = {}
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

    def fits(self, rules: Rules) -> bool:
        """Can some rules be remembered together?

        rules (tuple[int, ...]): ascending.
        """
        with self._lock:
            return self._joint(rules) is not None

    def remembering(self, automaton: Automaton, rules: Rules) -> Remembering | None:
        """What remembers some rules; None if that takes too many states.

        automaton (Automaton): without a memory; what another one remembers is forgotten.
        rules (tuple[int, ...]): ascending.
        """
        with self._lock:
            if automaton is not self._automaton:
                self._automaton, self._kept = automaton, {}
            if rules in self._kept:
                return self._kept[rules]
            joint = self._joint(rules)
            if joint is None:
                return None
            if sum(len(each.broken) for each in self._kept.values()) + len(joint) > KEPT_STATES:
                self._kept = {}
            memory = Memory(joint.after, np.ones(len(joint), dtype=bool))
            product = remembering(automaton, memory) if rules else automaton
            self._kept[rules] = Remembering(rules, joint.broken, product)
            return self._kept[rules]

    def _joint(self, rules: Rules) -> "_Joint | None":
        """All states of several memories that can be reached together; None for too many.

        Rules are added one by one: what the first of them need together is known from other sets.
        """
        if rules in self._joints:
            return self._joints[rules]
        if len(self._joints) >= KEPT_TABLES:
            self._joints = {}
        found: _Joint | None = _nothing(self._after.shape[2])
        for n, rule in enumerate(rules, 1):
            if rules[:n] not in self._joints:
                assert found is not None
                self._joints[rules[:n]] = found.beside(self._after[rule], self._ends[rule])
            found = self._joints[rules[:n]]
            if found is None:
                break
        self._joints[rules] = found
        return found


@dataclass(frozen=True)
class _Joint:
    """Several memories as one, its states in the order in which they are reached."""

    after: NDArray[np.int32]  # [M, Y]
    broken: NDArray[np.bool_]  # [M, k] does a sequence that ends in a state break each rule?

    def __len__(self) -> int:
        """Number of states M."""
        return len(self.broken)

    def beside(self, after: NDArray[np.int32], ends: NDArray[np.bool_]) -> "_Joint | None":
        """These and one more; None for too many states.

        after (int32 [S, Y]), ends (bool [S]): its states, as `tables_of` has them.
        """
        size = len(ends)
        queue, number, rows = [0], {0: 0}, list[list[int]]()
        scaled = self.after * size  # state m with state s is number m S + s
        for pair in queue:
            reached = (scaled[pair // size] + after[pair % size]).tolist()
            for new in dict.fromkeys(reached):
                if new not in number:
                    if len(number) == MOST_STATES:
                        return None
                    number[new] = len(number)
                    queue.append(new)
            rows.append([number[each] for each in reached])
        own, last = np.divmod(np.array(queue), size)
        broken = np.concatenate([self.broken[own], ~ends[last][:, None]], axis=1)
        return _Joint(np.array(rows, dtype=np.int32), broken)


def _nothing(n_labels: int) -> _Joint:
    """No memory at all, which has one state."""
    return _Joint(np.zeros((1, n_labels), dtype=np.int32), np.zeros((1, 0), dtype=bool))


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
