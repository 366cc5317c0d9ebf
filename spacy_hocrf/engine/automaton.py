"""Label patterns → the automaton that reads a segmentation: forward states, explicit arcs, sum
program.

P holds the labels, the empty history and the proper prefixes of all patterns; C is the trie of P
and Z. The arc (p, y) has the weight and the target of the longest suffix of p·y in C, so an arc
*is* a node of C and only |C| of the |P||Y| arcs are distinct. Nguyen et al., JMLR 15 (2014) §2.2
    for P and Z; the sharing as in Takhanov and Kolmogorov, ICML 2013.

The mass that enters arc c is the sum of alpha over all states p with c(p, y) = c. That 0/1 map is
compiled to a straight list of additions (sums.py; no subtraction, hence valid in every semiring and
exact near zero); its adjoint, the same list read backwards, takes the arcs' values back to beta.

While a segment is open its future depends on the state that it will enter and on the longest
*carried* pattern that ends its
history: one with observations after the segment's start. The pairs (body, target) are the open
    states.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.sums import compile_sums
from spacy_hocrf.errors import Errors
from spacy_hocrf.types import LabelPattern

__all__ = ["Automaton", "compile_automaton"]

IntArray = NDArray[np.int32]


@dataclass(frozen=True)
class Automaton:
    """Static description of a model's states and arcs; everything is indexed by number, nothing
    depends on weights.
    """

    patterns: tuple[LabelPattern, ...]  # [Z] the Y single labels first
    states: tuple[LabelPattern, ...]  # [P] shortest first, states[0] == ()
    arcs: tuple[LabelPattern, ...]  # [C] shortest first
    limits: IntArray  # [Y] longest segment, 0 for none
    state_suffix: IntArray  # [P] fail(p): next shorter state that ends p, -1 for the empty history
    state_offsets: IntArray  # [P + 1] into state_arcs
    state_arcs: IntArray  # [C] arcs that extend each state by one label
    arc_label: IntArray  # [C] last label
    arc_suffix: IntArray  # [C] next shorter arc that fires with it, -1 for none
    arc_target: IntArray  # [C] forward state that the arc enters
    arc_pattern: IntArray  # [C] pattern that it completes, -1 for none
    arc_open: IntArray  # [C] open state that its segment is in, -1 if the succession is forbidden
    # [C] register of the sum program that holds the mass entering the arc, -1 if it is forbidden
    arc_register: IntArray
    additions: IntArray  # [A, 3] sum program: x[d] = x[a] + x[b]; registers 0..P-1 hold alpha
    registers: int
    pattern_arc: IntArray  # [Z]
    # [Z] body of a carried pattern or label, -1 for others, and for all if every segment has one
    # token
    pattern_body: IntArray
    # [Z] 1 if its segments have one token, so that all its parts are at the start
    pattern_folded: NDArray[np.uint8]
    body_label: IntArray  # [K]
    body_suffix: IntArray  # [K] next shorter body whose observations it shares, -1 for a label
    body_offsets: IntArray  # [K + 1] open states of each body
    open_target: IntArray  # [O] forward state entered when the segment ends
    open_label: IntArray  # [O] label of the open segment
    open_offsets: IntArray  # [O + 1] into open_arcs
    open_arcs: IntArray  # [n] arcs that enter each open state; the forbidden ones are in none
    tree_offsets: IntArray  # [K + 1] into tree
    tree: IntArray  # [m] the bodies that end in each body, itself included


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
    limits (Sequence[int]): longest segment of each label in tokens, 0 for none. All 1 gives a CRF.
    forbidden (Iterable[tuple[int, int]]): pairs (previous, label) that never follow one another.
    carried (Collection[LabelPattern]): patterns of two or more labels with observations at the end,
        over the tokens or on the whole of their last segment. Each costs an open state; patterns of
        one-token labels need not be named.
    RETURNS (Automaton): states, arcs and sum program.
    RAISES (ValueError): H001 or H002 for a bad pattern, H003 for a negative limit.
    """
    n_labels = len(limits)
    barred = {tuple(pair) for pair in forbidden}
    _check(patterns, limits, barred)
    states = _sorted(
        {(), *((y,) for y in range(n_labels)), *(z[:i] for z in patterns for i in range(1, len(z)))}
    )
    tails = _Tails(states)
    arcs = _sorted(_closure({*states[1:], *patterns, *barred}, tails))
    arc_id = {c: i for i, c in enumerate(arcs)}
    arc_state = [tails.number[c[:-1]] for c in arcs]
    arc_suffix = [tails.next(c, arc_id) for c in arcs]
    arc_target = [
        tails.number[c] if c in tails.number else tails.next(c, tails.number) for c in arcs
    ]
    alive = [i for i, c in enumerate(arcs) if not any(pair in barred for pair in pairwise(c))]
    kids: list[list[int]] = [[] for _ in states]
    for state, suffix in enumerate(tails.suffix[1:], 1):
        kids[suffix].append(state)
    shared = [
        [kid for kid in kids[p] if (*states[kid], c[-1]) not in arc_id]
        for c, p in zip(arcs, arc_state)
    ]
    arc_register = np.full(len(arcs), -1, dtype=np.int32)
    arc_register[alive], additions = compile_sums(kids, [(arc_state[i], shared[i]) for i in alive])

    bodies = [(y,) for y in range(n_labels)] + _sorted(
        {z for z in carried if len(z) > 1 and limits[z[-1]] != 1}
    )
    body_id = {z: i for i, z in enumerate(bodies)}
    arc_body: list[int] = []  # longest body that ends the arc, maybe all of it
    for c, suffix in zip(arcs, arc_suffix):
        arc_body.append(body_id[c] if c in body_id else arc_body[suffix])
    body_suffix = [-1] * n_labels + [arc_body[arc_suffix[arc_id[z]]] for z in bodies[n_labels:]]
    trees = _trees(body_suffix)
    opens = sorted({(arc_body[i], arc_target[i]) for i in alive})
    open_id = {o: i for i, o in enumerate(opens)}
    arc_open = np.full(len(arcs), -1, dtype=np.int32)
    arc_open[alive] = [open_id[arc_body[i], arc_target[i]] for i in alive]
    by_state = sorted(range(len(arcs)), key=lambda i: (arc_state[i], i))
    by_open = sorted(alive, key=lambda i: (arc_open[i], i))
    pattern_id = {z: i for i, z in enumerate(patterns)}
    one_token = all(limit == 1 for limit in limits)

    return Automaton(
        patterns=tuple(patterns),
        states=tuple(states),
        arcs=tuple(arcs),
        limits=_ints(limits),
        state_suffix=_ints(tails.suffix),
        state_offsets=_offsets([arc_state[i] for i in by_state], len(states)),
        state_arcs=_ints(by_state),
        arc_label=_ints(c[-1] for c in arcs),
        arc_suffix=_ints(arc_suffix),
        arc_target=_ints(arc_target),
        arc_pattern=_ints(pattern_id.get(c, -1) for c in arcs),
        arc_open=arc_open,
        arc_register=arc_register,
        additions=np.array(additions, dtype=np.int32).reshape(-1, 3),
        registers=len(states) + len(additions),
        pattern_arc=_ints(arc_id[z] for z in patterns),
        pattern_body=_ints(-1 if one_token else body_id.get(z, -1) for z in patterns),
        pattern_folded=np.array([limits[z[-1]] == 1 for z in patterns], dtype=np.uint8),
        body_label=_ints(z[-1] for z in bodies),
        body_suffix=_ints(body_suffix),
        body_offsets=_offsets([body for body, _ in opens], len(bodies)),
        open_target=_ints(target for _, target in opens),
        open_label=_ints(bodies[body][-1] for body, _ in opens),
        open_offsets=_offsets([arc_open[i] for i in by_open], len(opens)),
        open_arcs=_ints(by_open),
        tree_offsets=np.cumsum([0, *map(len, trees)]).astype(np.int32),
        tree=_ints(body for tree in trees for body in tree),
    )


def _check(
    patterns: Sequence[LabelPattern], limits: Sequence[int], forbidden: Iterable[LabelPattern]
) -> None:
    last = len(limits) - 1
    for pattern in [*patterns, *forbidden]:
        if not pattern:
            raise ValueError(Errors.H002)
        for label in pattern:
            if not 0 <= label <= last:
                raise ValueError(Errors.H001.format(pattern=pattern, label=label, last=last))
    for label, limit in enumerate(limits):
        if limit < 0:
            raise ValueError(Errors.H003.format(limit=limit, label=label))
    if [tuple(z) for z in patterns[: len(limits)]] != [(y,) for y in range(len(limits))]:
        raise ValueError(
            Errors.H008.format(found=list(patterns[: len(limits)]), expected=len(limits))
        )


class _Tails:
    """Shorter states and arcs that end longer ones. If q·y ends p·y then q ends p, and the states
    that end p are a chain.

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
        """Number of the longest proper suffix of an arc `among` the states or the arcs but the
        empty one, -1 for none.
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
        # else what ends it is there or to come
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


def _ints(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int32)


def _offsets(groups: Sequence[int], n: int) -> IntArray:
    """Offsets of n groups, for group numbers in ascending order."""
    return np.searchsorted(np.asarray(groups, dtype=np.int64), np.arange(n + 1)).astype(np.int32)
