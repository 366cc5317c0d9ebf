"""Compiles label patterns to the automaton that reads segmentations: states, explicit arcs, sum program.

P holds the labels, the empty history and the proper prefixes of all patterns; C is the trie of P
and Z. The arc (p, y) has the weight and the target of the longest suffix of p·y in C, so an arc
*is* a node of C and only |C| of the |P||Y| arcs are distinct. Nguyen et al., JMLR 15 (2014) §2.2
for P and Z; the sharing as in Takhanov and Kolmogorov, ICML 2013.

The mass that enters arc c is the sum of alpha over all states p with c(p, y) = c. That 0/1 map is
compiled to a straight list of additions (sums.py; no subtraction, hence valid in every semiring and
exact near zero); its adjoint, the same list read backwards, takes the arcs' values back to beta.

While a segment is open its future depends on the state that it will enter and on the longest
*carried* pattern that ends its history: one with observations after the segment's start. The pairs
(body, target) are the open states.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.sums import compile_sums
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import LabelPattern, is_whole

__all__ = ["Automaton", "compile_automaton"]

IntArray = NDArray[np.int32]


@dataclass(frozen=True)
class Automaton:
    """Static description of a model's states and arcs; everything is referred to by number, nothing
    depends on weights.
    """

    patterns: tuple[LabelPattern, ...]  # [Z] the Y single labels first
    states: tuple[LabelPattern, ...]  # [P] shortest first, states[0] == ()
    arcs: tuple[LabelPattern, ...]  # [C] shortest first
    limits: IntArray  # [Y] longest segment, 0 for no limit
    state_suffix: IntArray  # [P] fail(p): next shorter state that ends p, -1 for the empty history
    state_offsets: IntArray  # [P + 1] into state_arcs
    state_arcs: IntArray  # [C] arcs that extend each state by one label
    arc_label: IntArray  # [C] last label
    arc_suffix: IntArray  # [C] next shorter arc that fires with it, -1 for none
    arc_target: IntArray  # [C] forward state that the arc enters
    arc_pattern: IntArray  # [C] pattern that it completes, -1 for none
    arc_open: IntArray  # [C] open state of its segment, -1 if the transition is forbidden
    # [C] register of the sum program that holds the mass entering the arc, -1 if it is forbidden
    arc_register: IntArray
    additions: IntArray  # [A, 3] sum program: x[d] = x[a] + x[b]; registers 0..P-1 hold alpha
    registers: int
    pattern_arc: IntArray  # [Z]
    # [Z] body of a carried pattern or label, -1 for others, and for all patterns if every segment has
    # one token
    pattern_body: IntArray
    # [Z] 1 if its segments have one token, so that all its parts are at the start
    pattern_folded: NDArray[np.uint8]
    body_label: IntArray  # [K]
    body_suffix: IntArray  # [K] next shorter body whose observations it shares, -1 for a label
    body_offsets: IntArray  # [K + 1] open states of each body
    open_target: IntArray  # [O] forward state entered when the segment ends
    open_label: IntArray  # [O] label of the open segment
    open_offsets: IntArray  # [O + 1] into open_arcs
    open_arcs: IntArray  # [n] arcs that enter each open state; forbidden ones are left out
    tree_offsets: IntArray  # [K + 1] into tree
    tree: IntArray  # [m] the bodies of which each body is a suffix, including itself
    # number of copies of all arcs, which are consecutive; a copy remembers a state of rules, see rules.py
    copies: int = 1
    state_copy: NDArray[np.int64] | None = (
        None  # [P] the copy that each state is in; None if there is only one
    )
    # [P] log score of ending in each state, -inf where a sequence must not end; None for 0 in all
    final: NDArray[np.float64] | None = None

    @cached_property
    def longest(self) -> int:
        """Longest segment of all labels, 0 if some label has no limit."""
        return int(self.limits.max(initial=1)) if self.limits.min(initial=1) else 0

    @cached_property
    def exits(self) -> NDArray[np.int64]:
        """The arc from each state by each label, int64 [P, Y]: the state's own, or else that of its longest
        suffix.
        """
        arcs = np.zeros((len(self.states), len(self.limits)), dtype=np.int64)
        for p, suffix in enumerate(self.state_suffix.tolist()):
            if suffix >= 0:
                arcs[p] = arcs[suffix]
            own = self.state_arcs[self.state_offsets[p] : self.state_offsets[p + 1]]
            arcs[p, self.arc_label[own]] = own
        return arcs


def compile_automaton(
    patterns: Sequence[LabelPattern],
    limits: Sequence[int],
    *,
    forbidden: Iterable[tuple[int, int]] = (),
    carried: Collection[LabelPattern] = (),
) -> Automaton:
    """Compile label patterns (Nguyen et al., JMLR 15, §2.2).

    patterns (Sequence[LabelPattern]): Z patterns of labels 0..Y-1, in the order of the potentials'
        pattern numbers. The single labels must be patterns 0..Y-1.
    limits (Sequence[int]): longest segment of each label in tokens, 0 for no limit. All 1 gives a CRF.
    forbidden (Iterable[tuple[int, int]]): pairs (previous, label) that never follow one another.
    carried (Collection[LabelPattern]): patterns of two or more labels with observations at the end,
        over the tokens or on the whole of their last segment. Each costs an open state; patterns of
        one-token labels need not be included.
    RETURNS (Automaton): states, arcs and sum program.
    RAISES (ValueError): H001 or H002 for a bad pattern, H003 for a limit that is no whole number from 0 up,
        H008 if the single labels do not come first, H592 for a pattern that occurs twice, or that is carried
        but does not occur.
    """
    patterns, carried = [tuple(z) for z in patterns], [tuple(z) for z in carried]
    forbidden_pairs = {tuple(pair) for pair in forbidden}
    _check(patterns, limits, forbidden_pairs, carried)
    trie = _Trie(patterns, len(limits), forbidden_pairs)
    registers, additions = _sum_program(trie)
    bodies = _Bodies(trie, limits, carried)
    opens = _OpenStates(trie, bodies)
    by_state = sorted(range(len(trie.arcs)), key=lambda arc: (trie.state[arc], arc))
    by_open = sorted(trie.alive, key=lambda arc: (opens.of_arc[arc], arc))
    trees = _trees(bodies.suffix)
    return Automaton(
        patterns=tuple(patterns),
        states=tuple(trie.states),
        arcs=tuple(trie.arcs),
        limits=_ints(limits),
        state_suffix=_ints(trie.tails.suffix),
        state_offsets=_offsets([trie.state[arc] for arc in by_state], len(trie.states)),
        state_arcs=_ints(by_state),
        arc_label=_last_labels(trie.arcs),
        arc_suffix=_ints(trie.suffix),
        arc_target=_ints(trie.target),
        arc_pattern=_numbers(trie.arcs, patterns),
        arc_open=_ints(opens.of_arc),
        arc_register=registers,
        additions=additions,
        registers=len(trie.states) + len(additions),
        pattern_arc=_numbers(patterns, trie.arcs),
        pattern_body=_pattern_bodies(patterns, bodies.histories, limits),
        pattern_folded=np.array([limits[z[-1]] == 1 for z in patterns], dtype=np.uint8),
        body_label=_last_labels(bodies.histories),
        body_suffix=_ints(bodies.suffix),
        body_offsets=_offsets(opens.body, len(bodies.histories)),
        open_target=_ints(opens.target),
        open_label=_last_labels([bodies.histories[body] for body in opens.body]),
        open_offsets=_offsets([opens.of_arc[arc] for arc in by_open], len(opens.body)),
        open_arcs=_ints(by_open),
        tree_offsets=offsets_of([len(tree) for tree in trees]).astype(np.int32),
        tree=_ints(chain.from_iterable(trees)),
    )


class _Trie:
    """The states P and the arcs C, a trie whose arcs know their next shorter suffix and their
    target.

    patterns (Sequence[LabelPattern]): Z patterns.
    forbidden_pairs (set[tuple[int, int]]): the pairs of labels that never follow one another.

    states (list[LabelPattern]): [P], shortest first.
    arcs (list[LabelPattern]): [C], shortest first.
    state (list[int]): [C] the state that each arc leaves.
    suffix (list[int]): [C] next shorter arc that fires with it, -1 for none.
    target (list[int]): [C] the state that it enters, its longest suffix among the states.
    alive (list[int]): arcs without a forbidden pair.
    """

    def __init__(
        self, patterns: Sequence[LabelPattern], n_labels: int, forbidden_pairs: set[LabelPattern]
    ) -> None:
        prefixes = {z[:i] for z in patterns for i in range(1, len(z))}
        self.states = _sorted({(), *((y,) for y in range(n_labels)), *prefixes})
        self.tails = tails = _Tails(self.states)
        self.arcs = _sorted(_closure({*self.states[1:], *patterns, *forbidden_pairs}, tails))
        self.number = {arc: i for i, arc in enumerate(self.arcs)}
        self.state = [tails.number[arc[:-1]] for arc in self.arcs]
        self.suffix = [tails.next(arc, self.number) for arc in self.arcs]
        self.target = [
            tails.number[arc] if arc in tails.number else tails.next(arc, tails.number)
            for arc in self.arcs
        ]
        self.alive = [
            i
            for i, arc in enumerate(self.arcs)
            if not any(pair in forbidden_pairs for pair in pairwise(arc))
        ]


class _Bodies:
    """Bodies: what an open segment remembers of the history, its label or a carried pattern.

    histories (list[LabelPattern]): [K] the labels, then the carried patterns, shortest first.
    suffix (list[int]): [K] next shorter body whose observations it shares, -1 for a label.
    of_arc (list[int]): [C] the longest body that is a suffix of the arc, possibly all of it.
    """

    def __init__(
        self, trie: _Trie, limits: Sequence[int], carried: Collection[LabelPattern]
    ) -> None:
        n_labels = len(limits)
        longer = _sorted({z for z in carried if len(z) > 1 and limits[z[-1]] != 1})
        self.histories = [*((y,) for y in range(n_labels)), *longer]
        number = {z: body for body, z in enumerate(self.histories)}
        self.of_arc: list[int] = []
        for arc, suffix in zip(trie.arcs, trie.suffix):
            self.of_arc.append(number[arc] if arc in number else self.of_arc[suffix])
        self.suffix = [-1] * n_labels
        self.suffix += [self.of_arc[trie.suffix[trie.number[z]]] for z in longer]


class _OpenStates:
    """The pairs of a body and the state that the segment will enter.

    body, target (list[int]): [O] body and target of each pair, ascending.
    of_arc (list[int]): [C] open state of the arc's segment, -1 if it is forbidden.
    """

    def __init__(self, trie: _Trie, bodies: _Bodies) -> None:
        pairs = sorted({(bodies.of_arc[arc], trie.target[arc]) for arc in trie.alive})
        number = {pair: i for i, pair in enumerate(pairs)}
        self.body = [body for body, _ in pairs]
        self.target = [target for _, target in pairs]
        self.of_arc = [-1] * len(trie.arcs)
        for arc in trie.alive:
            self.of_arc[arc] = number[bodies.of_arc[arc], trie.target[arc]]


def _sum_program(trie: _Trie) -> tuple[IntArray, IntArray]:
    """Compile the additions that compute the mass which enters each arc; see sums.py.

    RETURNS (tuple[int32 [C], int32 [A, 3]]): register of each arc, -1 if it is forbidden, and the
        additions.
    """
    children: list[list[int]] = [[] for _ in trie.states]
    for state, suffix in enumerate(trie.tails.suffix[1:], 1):
        children[suffix].append(state)
    sums = []
    for arc in trie.alive:
        state, label = trie.state[arc], trie.arcs[arc][-1]
        shared = [q for q in children[state] if (*trie.states[q], label) not in trie.number]
        sums.append((state, shared))
    registers = np.full(len(trie.arcs), -1, dtype=np.int32)
    registers[trie.alive], additions = compile_sums(children, sums)
    return registers, np.array(additions, dtype=np.int32).reshape(-1, 3)


def _pattern_bodies(
    patterns: Sequence[LabelPattern], histories: Sequence[LabelPattern], limits: Sequence[int]
) -> IntArray:
    """Body of each pattern, int32 [Z], -1 for none; a CRF, all of whose segments have one token,
    needs no bodies.
    """
    if all(limit == 1 for limit in limits):
        return np.full(len(patterns), -1, dtype=np.int32)
    return _numbers(patterns, histories)


def _check(
    patterns: Sequence[LabelPattern],
    limits: Sequence[int],
    forbidden: Iterable[LabelPattern],
    carried: Iterable[LabelPattern],
) -> None:
    last = len(limits) - 1
    for pattern in [*patterns, *forbidden]:
        if not pattern:
            raise ValueError(Errors.H002)
        for label in pattern:
            if not is_whole(label) or not 0 <= label <= last:
                raise ValueError(Errors.H001.format(pattern=pattern, label=label, last=last))
    for label, limit in enumerate(limits):
        if not is_whole(limit) or not 0 <= limit < 2**31:
            raise ValueError(Errors.H003.format(limit=limit, label=label))
    if [tuple(z) for z in patterns[: len(limits)]] != [(y,) for y in range(len(limits))]:
        raise ValueError(
            Errors.H008.format(found=list(patterns[: len(limits)]), expected=len(limits))
        )
    distinct = set(patterns)
    if len(distinct) < len(patterns):
        twice = next(z for i, z in enumerate(patterns) if z in patterns[:i])
        raise ValueError(Errors.H592.format(pattern=twice, reason="occurs twice"))
    for pattern in carried:
        if pattern not in distinct:
            raise ValueError(Errors.H592.format(pattern=pattern, reason="is carried, but missing"))


class _Tails:
    """Suffixes of states and arcs. If q·y is a suffix of p·y then q is a suffix of p, and the suffixes of p
    among the states form a chain.

    The longest one is suffix[p], the next one suffix[suffix[p]], and the last one is the empty
    history.
    """

    def __init__(self, states: Sequence[LabelPattern]) -> None:
        self.states = states
        self.number = {p: i for i, p in enumerate(states)}
        self.suffix = [-1]  # [P]
        for state in states[1:]:
            self.suffix.append(max(0, self.next(state, self.number)))

    def next(self, arc: LabelPattern, among: Mapping[LabelPattern, int]) -> int:
        """Number of the longest proper suffix of an arc among some states or arcs, except the empty one; -1
        for none.
        """
        state = self.suffix[self.number[arc[:-1]]]
        while state >= 0:
            shorter = (*self.states[state], arc[-1])
            if shorter in among:
                return among[shorter]
            state = self.suffix[state]
        return -1


def _closure(arcs: set[LabelPattern], tails: _Tails) -> set[LabelPattern]:
    """Add p·y for every arc p'·y and state p that is a suffix of p', so that the sum program needs
    no subtraction.
    """
    closed = set(arcs)
    for arc in arcs:
        state = tails.suffix[tails.number[arc[:-1]]]
        # stop at a suffix that is there: its own suffixes are, too, or will be
        while state >= 0 and (shorter := (*tails.states[state], arc[-1])) not in closed:
            closed.add(shorter)
            state = tails.suffix[state]
    return closed


def _trees(suffixes: Sequence[int]) -> list[list[int]]:
    """For every node, the nodes that it is a suffix of, itself included."""
    trees: list[list[int]] = [[] for _ in suffixes]
    for node in range(len(suffixes)):
        suffix = node
        while suffix >= 0:
            trees[suffix].append(node)
            suffix = suffixes[suffix]
    return trees


def _sorted(patterns: Iterable[LabelPattern]) -> list[LabelPattern]:
    return sorted(patterns, key=lambda z: (len(z), z))


def _numbers(patterns: Iterable[LabelPattern], among: Iterable[LabelPattern]) -> IntArray:
    """Position of each pattern in a list, int32, -1 if it is not there."""
    places = {z: i for i, z in enumerate(among)}
    return _ints(places.get(z, -1) for z in patterns)


def _last_labels(patterns: Iterable[LabelPattern]) -> IntArray:
    """Last label of each pattern, int32."""
    return _ints(z[-1] for z in patterns)


def _ints(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int32)


def _offsets(groups: Sequence[int], n: int) -> IntArray:
    """Offsets of n groups, for group numbers in ascending order."""
    return np.searchsorted(np.asarray(groups, dtype=np.int64), np.arange(n + 1)).astype(np.int32)
