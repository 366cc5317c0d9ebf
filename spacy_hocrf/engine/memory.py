"""What must be remembered of a segmentation besides its last labels, so that rules about all of its
labels hold: how often a label has come, say.

A memory is a deterministic automaton M that reads the labels of the segments. Its product with the
automaton of the label patterns has a copy of every state and arc for each state of M: arc (c, m)
leaves copy m, has the weights of c, and enters copy m' = after(m, y) of c's target, so that forward and
backward sum over, and Viterbi chooses among, the segmentations that M accepts, and no others (the
intersection of weighted automata: Mohri, Computational Linguistics 23, 1997, §3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton

__all__ = ["Count", "Memory", "counting", "remembering", "tables_of"]

BARRED = -1


@dataclass(frozen=True)
class Memory:
    """A deterministic automaton over labels; a sequence begins in state 0."""

    after: NDArray[np.int32]  # [M, Y] state after a segment of a label, -1 if none may come
    ends: NDArray[np.bool_]  # [M] may the sequence end here?

    def __len__(self) -> int:
        """Number of states M."""
        return len(self.ends)

    def accepts(self, labels: Iterable[int]) -> bool:
        """Does a segmentation with these labels keep the rules?"""
        state = 0
        for label in labels:
            state = int(self.after[state, label])
            if state < 0:
                return False
        return bool(self.ends[state])


class Count(NamedTuple):
    """How often some labels may come, all of them together.

    Where several segments make a span, the labels that begin one count, and so do, if `runs`, only
    those behind another label.
    """

    labels: frozenset[int]
    least: int
    most: int | None  # None for any number
    runs: bool = False


def counting(rules: Sequence[Count], n_labels: int) -> Memory:
    """The memory of all rules together; no more states than can be reached.

    n_labels (int): Y.
    """
    return reduce(_both, (_counter(rule, n_labels) for rule in rules), _nothing(n_labels))


def tables_of(
    memories: Sequence[Memory], n_labels: int
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """n memories side by side, each with as many states as the largest needs.

    n_labels (int): Y.
    RETURNS (tuple[int32 [n, S, Y], bool [n, S]]): the state after a segment of a label, and may a sequence
        end there? Where no segment of a label may come, one leads to a state that is not left and no end.
    """
    states = 1 + max(map(len, memories), default=0)
    after = np.empty((len(memories), states, n_labels), dtype=np.int32)
    after[:] = np.arange(states, dtype=np.int32)[:, None]
    ends = np.zeros((len(memories), states), dtype=bool)
    for i, memory in enumerate(memories):
        after[i, : len(memory)] = np.where(memory.after == BARRED, states - 1, memory.after)
        ends[i, : len(memory)] = memory.ends
    return after, ends


def remembering(automaton: Automaton, memory: Memory) -> Automaton:
    """The product of an automaton and a memory: M copies of all states and arcs.

    automaton (Automaton): without copies. memory (Memory): reads labels of the same Y.
    RETURNS (Automaton): for the same potentials. Copy m of state p is state m P + p, that of arc c
        is m C + c; a pattern's arc is the one in copy 0.
    """
    copies, labels = len(memory), automaton.arc_label
    n_states, n_arcs = len(automaton.states), len(automaton.arcs)
    after = memory.after[:, labels]  # [M, C]
    alive = (after != BARRED) & (automaton.arc_register >= 0)
    target = np.maximum(after, 0) * n_states + automaton.arc_target
    body = np.searchsorted(automaton.body_offsets, automaton.arc_open, side="right") - 1
    pair = body * (copies * n_states) + target
    pairs, number = np.unique(pair[alive], return_inverse=True)
    opens = np.full((copies, n_arcs), BARRED, dtype=np.int32)
    opens[alive] = number.reshape(-1)
    arcs = np.flatnonzero(alive.reshape(-1))
    by_open = arcs[np.argsort(opens.reshape(-1)[arcs], kind="stable")]
    sums = _Sums(automaton, copies)
    bodies, states = pairs // (copies * n_states), pairs % (copies * n_states)
    return replace(
        automaton,
        states=automaton.states * copies,
        arcs=automaton.arcs * copies,
        state_suffix=_tiled(automaton.state_suffix, copies, n_states),
        state_offsets=np.append(
            _tiled(automaton.state_offsets[:-1], copies, n_arcs), copies * n_arcs
        ).astype(np.int32),
        state_arcs=_tiled(automaton.state_arcs, copies, n_arcs),
        arc_label=np.tile(labels, copies),
        arc_suffix=_tiled(automaton.arc_suffix, copies, n_arcs),
        arc_target=target.reshape(-1).astype(np.int32),
        arc_pattern=np.tile(automaton.arc_pattern, copies),
        arc_open=opens.reshape(-1),
        arc_register=np.where(alive, sums.registers(automaton.arc_register), BARRED)
        .reshape(-1)
        .astype(np.int32),
        additions=sums.additions(),
        registers=copies * automaton.registers,
        body_offsets=np.searchsorted(bodies, np.arange(len(automaton.body_offsets))).astype(
            np.int32
        ),
        open_target=states.astype(np.int32),
        open_label=automaton.body_label[bodies],
        open_offsets=np.searchsorted(opens.reshape(-1)[by_open], np.arange(len(pairs) + 1)).astype(
            np.int32
        ),
        open_arcs=by_open.astype(np.int32),
        copies=copies,
        final=None if memory.ends.all() else np.repeat(_log(memory.ends), n_states),
    )


class _Sums:
    """The sum program of every copy, each on the states of its own."""

    def __init__(self, automaton: Automaton, copies: int) -> None:
        self._automaton, self._states = automaton, len(automaton.states)
        self._copy = np.arange(copies)[:, None]

    def registers(self, own: NDArray[np.int32]) -> NDArray[np.int64]:
        """Registers of an automaton in each copy, int64 [M, n]: all states come first."""
        states, sums = self._states, len(self._automaton.additions)
        copies = len(self._copy)
        of_sum = copies * states + self._copy * sums + own - states
        return np.asarray(np.where(own < states, self._copy * states + own, of_sum))

    def additions(self) -> NDArray[np.int32]:
        """int32 [M A, 3]"""
        program = self._automaton.additions
        moved = self.registers(program.reshape(-1))
        return moved.reshape(-1, 3).astype(np.int32)


def _tiled(places: NDArray[np.int32], copies: int, step: int) -> NDArray[np.int32]:
    """Places of each copy, `step` behind those of the one before; -1 stays."""
    moved = places + np.arange(copies, dtype=np.int32)[:, None] * np.int32(step)
    return np.where(places < 0, places, moved).reshape(-1).astype(np.int32)


def _log(ends: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.where(ends, 0.0, -np.inf)


def _nothing(n_labels: int) -> Memory:
    return Memory(np.zeros((1, n_labels), dtype=np.int32), np.ones(1, dtype=bool))


def _counter(rule: Count, n_labels: int) -> Memory:
    """The memory of one rule: how many have come, and where that matters whether the last label was
    one of them.
    """
    top = rule.least if rule.most is None else rule.most
    sides = 2 if rule.runs else 1
    after = np.zeros(((top + 1) * sides, n_labels), dtype=np.int32)
    for n in range(top + 1):
        for side in range(sides):
            state = n * sides + side
            after[state] = n * sides
            for label in rule.labels:
                here = n if side else n + 1
                if here > top:
                    here = BARRED if rule.most is not None else top
                after[state, label] = BARRED if here == BARRED else here * sides + sides - 1
    return Memory(after, np.arange(len(after)) // sides >= rule.least)


def _both(first: Memory, second: Memory) -> Memory:
    """What two memories remember together: the pairs of states that can be reached."""
    number = {(0, 0): 0}
    rows, queue = list[list[int]](), [(0, 0)]
    for a, b in queue:
        row = []
        for pair in zip(first.after[a].tolist(), second.after[b].tolist()):
            if min(pair) == BARRED:
                row.append(BARRED)
                continue
            if pair not in number:
                number[pair] = len(number)
                queue.append(pair)
            row.append(number[pair])
        rows.append(row)
    ends = np.array([first.ends[a] and second.ends[b] for a, b in queue], dtype=bool)
    return Memory(np.array(rows, dtype=np.int32).reshape(len(queue), -1), ends)
