"""Rules on all labels of a sequence: small automata, and the price of ending where a rule is broken.

A rule is a deterministic automaton that reads the labels of the segments and tells for each state whether a
sequence that ends there has kept it, together with a price for breaking it: a number, or infinity. Several
rules are joined into one such automaton, whose states are tuples of theirs. Its product with the automaton
of the label patterns has a copy of every arc for each state m, and of the reachable states: arc (c, m)
leaves copy m, has the weights of c, and enters copy m' = after(m, y) of c's target; the price of broken
rules is subtracted in the last state. So forward and backward sum, and Viterbi maximises, over all
segmentations with exp(score - price of broken rules), and a rule of infinite price excludes those that
break it (the intersection of weighted automata: Mohri, Computational Linguistics 23, 1997, section 3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of, ranges
from spacy_hocrf.engine.automaton import Automaton

__all__ = ["MAX_STATES", "JoinedRules", "Rule", "joined_rules", "product_of", "side_by_side"]

MAX_STATES = 65_535
"""Most states of a rule: a state has two bytes in the kernels."""
DEAD = NOWHERE = -1


@dataclass(frozen=True)
class Rule:
    """A deterministic automaton over labels, and a price; a sequence begins in state 0."""

    after: NDArray[np.int32]  # [S, Y] state after a segment of a label
    kept: NDArray[np.bool_]  # [S] does a sequence that ends here keep the rule?
    price: float = np.inf  # of breaking it, nats, at least 0
    name: str = ""

    def __len__(self) -> int:
        """Number of states S."""
        return len(self.kept)

    def keeps(self, labels: Iterable[int]) -> bool:
        """Does a sequence of these labels keep the rule?"""
        state = 0
        for label in labels:
            state = int(self.after[state, label])
        return bool(self.kept[state])

    @cached_property
    def reach(self) -> NDArray[np.bool_]:
        """Which states can be reached from which? (bool [S, S], true on the diagonal)"""
        reachable = np.eye(len(self), dtype=bool)
        reachable[np.arange(len(self))[:, None], self.after] = True
        for _ in range(len(self).bit_length()):
            steps = reachable.astype(np.float32)
            reachable = steps @ steps > 0
        return reachable

    @cached_property
    def dead(self) -> NDArray[np.bool_]:
        """From which states can a rule of infinite price no longer be kept? (bool [S])"""
        if self.price < np.inf:
            return np.zeros(len(self), dtype=bool)
        return np.logical_not((self.reach & self.kept).any(axis=1))

    @cached_property
    def told_by(self) -> NDArray[np.bool_]:
        """Which labels change some state? (bool [Y])"""
        stays = np.arange(len(self), dtype=np.int32)[:, None]
        return np.asarray((self.after != stays).any(axis=0))


@dataclass(frozen=True)
class JoinedRules:
    """k rules as one automaton; its states are the reachable ones, state 0 first."""

    after: NDArray[np.int32]  # [M, Y] -1 where a rule of infinite price can no longer be kept
    broken: NDArray[np.bool_]  # [M, k] does a sequence that ends in a state break each rule?

    def __len__(self) -> int:
        """Number of states M."""
        return len(self.broken)


def joined_rules(rules: Sequence[Rule], n_labels: int, most: int) -> JoinedRules | None:
    """Join rules into one; return None if that takes more than `most` states.

    n_labels (int): number of labels Y.
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
    """Return n rules as tables, padded to the number of states S of the largest.

    n_labels (int): number of labels Y.
    RETURNS (tuple[int32 [n, S, Y], bool [n, S]]): the state after a segment of a label, and whether a
        sequence that ends there keeps the rule.
    """
    size = max(map(len, rules), default=1)
    after = np.empty((len(rules), size, n_labels), dtype=np.int32)
    after[:] = np.arange(size, dtype=np.int32)[:, None]
    kept = np.ones((len(rules), size), dtype=bool)
    for i, rule in enumerate(rules):
        after[i, : len(rule)], kept[i, : len(rule)] = rule.after, rule.kept
    return after, kept


def product_of(
    automaton: Automaton,
    rules: JoinedRules,
    prices: NDArray[np.float64],
    begins: Sequence[int] = (0,),
) -> Automaton:
    """Return the product of an automaton and rules, restricted to what a sequence can reach: M copies of all
    arcs, and of reachable states.

    automaton (Automaton): P states, C arcs. rules (JoinedRules): k rules, on the same Y labels.
    prices (float64 [k]): price of breaking each rule, nats; inf if no segmentation may.
    begins (Sequence[int]): states in which a sequence may begin.
    RETURNS (Automaton): for the same potentials. States are sorted by copy, then as before; copy m of
        arc c is m C + c, and a pattern's arc is the one in copy 0.
    """
    n_states, n_arcs, copies = len(automaton.states), len(automaton.arcs), len(rules)
    # the states of the product: reached ones, and the suffixes of these
    reached, alive = _reached(automaton, rules.after, begins)
    kept = reached.copy()
    for p in range(n_states - 1, 0, -1):  # suffixes of kept states are needed for their arcs
        kept[:, automaton.state_suffix[p]] |= kept[:, p]
    copy, state = np.nonzero(kept)
    number = np.full(kept.shape, NOWHERE, dtype=np.int64)
    number[kept] = np.arange(len(state))
    # the target of each arc, and its open state: one for each pair of a body and a target
    into = np.maximum(rules.after[:, automaton.arc_label], 0)  # [M, C]
    target = np.where(alive, number[into, automaton.arc_target], 0)
    body = np.searchsorted(automaton.body_offsets, automaton.arc_open, side="right") - 1
    pairs, opened = np.unique((body * len(state) + target)[alive], return_inverse=True)
    bodies = pairs // len(state)
    opens = np.full(alive.shape, NOWHERE, dtype=np.int32)
    opens[alive] = opened.reshape(-1)
    by_open = np.flatnonzero(alive)[np.argsort(opened.reshape(-1), kind="stable")]
    # how many arcs each state has of its own, and which
    offsets = automaton.state_offsets.astype(np.int64)
    n_own = np.diff(offsets)[state]
    own_arcs = automaton.state_arcs[ranges(offsets[state], n_own)] + np.repeat(copy * n_arcs, n_own)
    suffix = automaton.state_suffix[state]
    register, additions = _sums(automaton, np.where(reached, number, NOWHERE), alive, len(state))
    final = -np.where(rules.broken, prices, 0.0).sum(axis=1)[copy]
    if automaton.final is not None:
        final += automaton.final[state]
    return replace(
        automaton,
        states=tuple(automaton.states[p] for p in state.tolist()),
        arcs=automaton.arcs * copies,
        state_suffix=np.where(suffix < 0, NOWHERE, number[copy, suffix]).astype(np.int32),
        state_offsets=offsets_of(n_own).astype(np.int32),
        state_arcs=own_arcs.astype(np.int32),
        arc_label=np.tile(automaton.arc_label, copies),
        arc_suffix=_tiled(automaton.arc_suffix, copies, n_arcs),
        arc_target=target.reshape(-1).astype(np.int32),
        arc_pattern=np.tile(automaton.arc_pattern, copies),
        arc_open=opens.reshape(-1),
        arc_register=register.reshape(-1).astype(np.int32),
        additions=additions,
        registers=len(state) + len(additions),
        body_offsets=np.searchsorted(bodies, np.arange(len(automaton.body_offsets))).astype(
            np.int32
        ),
        open_target=(pairs % len(state)).astype(np.int32),
        open_label=automaton.body_label[bodies],
        open_offsets=np.searchsorted(np.sort(opened), np.arange(len(pairs) + 1)).astype(np.int32),
        open_arcs=by_open.astype(np.int32),
        copies=copies * automaton.copies,
        state_copy=copy,
        final=final if final.any() else None,
    )


def _reached(
    automaton: Automaton, after: NDArray[np.int32], begins: Sequence[int]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the states that a sequence can reach, bool [M, P], and the arcs that it can take, bool [M, C].

    after (int32 [M, Y]): as in `JoinedRules`.
    """
    n_states, exits = len(automaton.states), automaton.exits
    reached = np.zeros((len(after), n_states), dtype=bool)
    alive = np.zeros((len(after), len(automaton.arcs)), dtype=bool)
    frontier = np.array(begins, dtype=np.int64)
    while len(frontier):
        reached.reshape(-1)[frontier] = True
        copy, state = np.divmod(frontier, n_states)
        arc, behind = exits[state], after[copy]  # [n, Y]
        taken = (behind >= 0) & (automaton.arc_register[arc] >= 0)
        alive[np.repeat(copy, taken.sum(axis=1)), arc[taken]] = True
        entered = np.unique(behind[taken] * n_states + automaton.arc_target[arc[taken]])
        frontier = entered[~reached.reshape(-1)[entered]]
    return reached, alive


def _sums(
    automaton: Automaton, states: NDArray[np.int64], alive: NDArray[np.bool_], n_states: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the register of each arc in each copy, int64 [M, C], and the additions of all copies, int32
    [n, 3]: the sum program without sums that are always zero, or that no arc uses.

    states (int64 [M, P]): their numbers among `n_states`, -1 where there is no mass.
    alive (bool [M, C]): arcs that can be taken.
    """
    program, (copies, plain) = automaton.additions, states.shape
    extents = copies, plain + len(program)
    register, needed = np.full(extents, NOWHERE), np.zeros(extents, dtype=bool)
    register[:, :plain] = states
    copy, arc = np.nonzero(alive)
    needed[copy, automaton.arc_register[arc]] = True
    for d, a, b in program[::-1].tolist():
        needed[:, a] |= needed[:, d]
        needed[:, b] |= needed[:, d]
    first = n_states + np.arange(copies) * len(program)
    for i, (d, a, b) in enumerate(program.tolist()):
        left, right = register[:, a], register[:, b]
        added = (left >= 0) & (right >= 0) & needed[:, d]
        register[:, d] = np.where(added, first + i, np.maximum(left, right))
    rows = register[:, program]  # [M, A, 3]
    used = np.flatnonzero(rows[..., 0] == first[:, None] + np.arange(len(program)))
    number = np.arange(n_states + copies * len(program))
    number[n_states + used] = n_states + np.arange(len(used))
    registers = np.where(alive, number[register[:, automaton.arc_register]], NOWHERE)
    return registers, number[rows.reshape(-1, 3)[used]].astype(np.int32)


def _tiled(places: NDArray[np.int32], copies: int, step: int) -> NDArray[np.int32]:
    """Repeat places for each copy, shifted by `step` each time; -1 stays."""
    moved = places + np.arange(copies, dtype=np.int32)[:, None] * np.int32(step)
    return np.where(places < 0, places, moved).reshape(-1).astype(np.int32)
