"""Rules about all labels of a sequence: small automata, and the price of ending where a rule is broken.

A rule is a deterministic automaton that reads the labels of the segments, says in each state whether a
sequence that ends there has kept it, and what it costs not to: a number, or infinity. Several rules
together are one such automaton, whose states are theirs. Its product with the automaton of the label
patterns has a copy of every state and arc for each state m: arc (c, m) leaves copy m, has the weights of
c, and enters copy m' = after(m, y) of c's target; what breaking rules costs is taken off in the last
state. So forward and backward sum over, and Viterbi chooses among, all segmentations with
exp(score - what they break), and a rule of infinite price leaves out those that break it (the intersection
of weighted automata: Mohri, Computational Linguistics 23, 1997, section 3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton

__all__ = ["MOST_STATES", "JoinedRules", "Rule", "joined", "product_of", "side_by_side"]

MOST_STATES = 65_535
"""Of a rule: a state is two bytes in the kernels."""
DEAD = -1


@dataclass(frozen=True)
class Rule:
    """A deterministic automaton over labels, and a price; a sequence begins in state 0."""

    after: NDArray[np.int32]  # [S, Y] state after a segment of a label
    kept: NDArray[np.bool_]  # [S] does a sequence that ends here keep the rule?
    price: float = np.inf  # what breaking it costs, nats, at least 0
    name: str = ""

    def __len__(self) -> int:
        """Number of states S."""
        return len(self.kept)

    def keeps(self, labels: Iterable[int]) -> bool:
        """Is the rule kept by a sequence of these labels?"""
        state = 0
        for label in labels:
            state = int(self.after[state, label])
        return bool(self.kept[state])

    @cached_property
    def reach(self) -> NDArray[np.bool_]:
        """Which states may follow which, after any number of segments? bool [S, S], true on the diagonal."""
        found = np.eye(len(self), dtype=bool)
        found[np.arange(len(self))[:, None], self.after] = True
        for _ in range(len(self).bit_length()):
            steps = found.astype(np.float32)
            found = steps @ steps > 0
        return found

    @cached_property
    def dead(self) -> NDArray[np.bool_]:
        """From which states can the rule no longer be kept, though it must? bool [S]"""
        if self.price < np.inf:
            return np.zeros(len(self), dtype=bool)
        return np.logical_not((self.reach & self.kept).any(axis=1))

    @cached_property
    def told_by(self) -> NDArray[np.bool_]:
        """Which labels lead from some state to another one? bool [Y]"""
        stays = np.arange(len(self), dtype=np.int32)[:, None]
        return np.asarray((self.after != stays).any(axis=0))


@dataclass(frozen=True)
class JoinedRules:
    """k rules as one automaton; its states are those that can be reached, state 0 first."""

    after: NDArray[np.int32]  # [M, Y] -1 where a rule that must be kept no longer can be
    broken: NDArray[np.bool_]  # [M, k] does a sequence that ends in a state break each rule?

    def __len__(self) -> int:
        """Number of states M."""
        return len(self.broken)


def joined(rules: Sequence[Rule], n_labels: int, most: int) -> JoinedRules | None:
    """Some rules as one; None if that takes more than `most` states.

    n_labels (int): Y.
    """
    if not rules:
        return JoinedRules(np.zeros((1, n_labels), dtype=np.int32), np.zeros((1, 0), dtype=bool))
    after, kept = side_by_side(rules, n_labels)
    dead = np.zeros_like(kept)
    for i, rule in enumerate(rules):
        dead[i, : len(rule)] = rule.dead
    every = np.arange(len(rules))
    states = [np.zeros(len(rules), dtype=np.int32)]
    number, rows = {states[0].tobytes(): 0}, list[list[int]]()
    for state in states:
        reached = np.ascontiguousarray(after[every, state].T)  # [Y, k]
        lost = dead[every, reached].any(axis=1).tolist()
        rows.append([])
        for target, is_lost in zip(reached, lost):
            key = target.tobytes()
            if not is_lost and key not in number:
                if len(states) == most:
                    return None
                number[key] = len(states)
                states.append(target)
            rows[-1].append(DEAD if is_lost else number[key])
    broken = ~kept[every, np.stack(states)]
    return JoinedRules(np.array(rows, dtype=np.int32), broken)


def side_by_side(
    rules: Sequence[Rule], n_labels: int
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """n rules as tables, each with as many states S as the largest needs.

    n_labels (int): Y.
    RETURNS (tuple[int32 [n, S, Y], bool [n, S]]): the state after a segment of a label, and does a sequence
        that ends there keep the rule?
    """
    size = max(map(len, rules), default=1)
    after = np.empty((len(rules), size, n_labels), dtype=np.int32)
    after[:] = np.arange(size, dtype=np.int32)[:, None]
    kept = np.ones((len(rules), size), dtype=bool)
    for i, rule in enumerate(rules):
        after[i, : len(rule)], kept[i, : len(rule)] = rule.after, rule.kept
    return after, kept


def product_of(automaton: Automaton, rules: JoinedRules, prices: NDArray[np.float64]) -> Automaton:
    """The product of an automaton and rules: M copies of all states and arcs.

    automaton (Automaton): P states, C arcs. rules (JoinedRules): k, over labels of the same Y.
    prices (float64 [k]): what breaking each rule costs, nats; inf if no segmentation may.
    RETURNS (Automaton): for the same potentials. Copy m of state p is state m P + p, that of arc c
        is m C + c; a pattern's arc is the one in copy 0.
    """
    copies, labels = len(rules), automaton.arc_label
    n_states, n_arcs = len(automaton.states), len(automaton.arcs)
    after = rules.after[:, labels]  # [M, C]
    alive = (after != DEAD) & (automaton.arc_register >= 0)
    target = np.maximum(after, 0) * n_states + automaton.arc_target
    body = np.searchsorted(automaton.body_offsets, automaton.arc_open, side="right") - 1
    pair = body * (copies * n_states) + target
    pairs, number = np.unique(pair[alive], return_inverse=True)
    opens = np.full((copies, n_arcs), DEAD, dtype=np.int32)
    opens[alive] = number.reshape(-1)
    arcs = np.flatnonzero(alive.reshape(-1))
    by_open = arcs[np.argsort(opens.reshape(-1)[arcs], kind="stable")]
    sums = _Sums(automaton, copies)
    bodies, states = pairs // (copies * n_states), pairs % (copies * n_states)
    final = np.repeat(-np.where(rules.broken, prices, 0.0).sum(axis=1), n_states)
    if automaton.final is not None:
        final += np.tile(automaton.final, copies)
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
        arc_register=np.where(alive, sums.registers(automaton.arc_register), DEAD)
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
        copies=copies * automaton.copies,
        final=final if final.any() else None,
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
