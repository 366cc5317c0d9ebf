"""The sum program of an automaton: a straight list of additions, from alpha over P to the mass that
enters each arc.

The children of a state p are the states whose longest proper suffix is p, and T(p) = alpha(p) +
Σ_{children k} T(k) is the total of all states that end in p. If k·y is no arc then, C being closed,
no state that ends in k has an arc for y: all of them take p·y, hence

    m(p·y) = alpha(p) + Σ_{children k of p without an arc k·y} T(k)

These sums, and T(p) if it is a term in a sum of a shorter state, are subsets of p's own terms:
alpha(p) and the T(k). Which pairs of terms are added first, so that many subsets can use the
result, is chosen greedily, state by state. A sum of a state without children is alpha(p) itself and
costs nothing.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import combinations

__all__ = ["compile_sums"]

# terms of a sum that are searched together: the search costs Y / BLOCK times that of a block
BLOCK = 64


def compile_sums(
    children: Sequence[Sequence[int]], wanted: Sequence[tuple[int, Sequence[int]]]
) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Compile sums alpha(p) + Σ T(k).

    children (Sequence[Sequence[int]]): [P] children of each state; their numbers are higher than its own.
    wanted (Sequence[tuple[int, Sequence[int]]]): the state p of each sum, and the children k in it,
        in ascending order.
    RETURNS (tuple[list[int], list[tuple[int, int, int]]]): the register of each sum, where registers below P
        hold alpha, and the additions (d, a, b): x[d] = x[a] + x[b]. The i-th addition writes register P +
        i, and each is used.
    """
    n_states = len(children)
    # children in a sum of each state → its node
    node_of: list[dict[tuple[int, ...], int]] = [{} for _ in children]
    for state, summands in wanted:
        node_of[state][tuple(summands)] = -1
    for sums in node_of:
        for child in {child for summands in sums for child in summands}:
            node_of[child][tuple(children[child])] = -1
    pairs: list[tuple[int, int]] = []  # the nodes whose sum is node P + i; nodes 0..P-1 are alpha
    for state in reversed(range(n_states)):
        total = {
            child: node_of[child][tuple(children[child])]
            for summands in node_of[state]
            for child in summands
        }
        nodes = _share(
            [{state, *map(total.__getitem__, summands)} for summands in node_of[state]],
            pairs,
            n_states,
        )
        node_of[state] = dict(zip(node_of[state], nodes))
    register, additions = _in_chains(pairs, n_states)
    return [register[node_of[state][tuple(summands)]] for state, summands in wanted], additions


def _share(sums: Sequence[set[int]], pairs: list[tuple[int, int]], first: int) -> list[int]:
    """Return nodes of sums of nodes; the additions that make them are appended to `pairs`, as nodes
    from `first` on.

    The two nodes that most sums have in common are added first, and so on until no two sums share a
    pair (Paar, "Optimized arithmetic for Reed-Solomon encoders", ISIT 1997). Of several such pairs
    the newest is taken, so that sums build on one another.
    """
    terms_of: list[list[int]] = [[] for _ in sums]
    terms = sorted(set().union(*sums))
    for start in range(0, len(terms), BLOCK):
        uses = {
            node: sum(1 << i for i, nodes in enumerate(sums) if node in nodes)
            for node in terms[start : start + BLOCK]
        }
        _pair(uses, pairs, first)
        for node in sorted(uses, reverse=True):
            for i in range(len(sums)):
                if uses[node] >> i & 1:
                    terms_of[i].append(node)
    nodes = []
    node_of: dict[tuple[int, int], int] = {}  # sums may still share their first blocks
    for node, *others in terms_of:
        for other in others:
            if (node, other) not in node_of:
                node_of[node, other] = first + len(pairs)
                pairs.append((node, other))
            node = node_of[node, other]
        nodes.append(node)
    return nodes


def _pair(uses: dict[int, int], pairs: list[tuple[int, int]], first: int) -> None:
    """Replace pairs of nodes by their sum as long as two sums share one. Bit i of uses[node] is set if
    node is a term of sum i.
    """
    heap = [
        (-n, -b, -a) for a, b in combinations(uses, 2) if (n := (uses[a] & uses[b]).bit_count()) > 1
    ]
    heapify(heap)
    while heap:
        a, b = -heap[0][2], -heap[0][1]
        shared = uses.get(a, 0) & uses.get(b, 0)
        count = shared.bit_count()
        # the uses of a node only become fewer, so that no pair is more frequent than the heap says
        if count < -heap[0][0]:
            if count > 1:
                heapreplace(heap, (-count, -b, -a))
            else:
                heappop(heap)
            continue
        heappop(heap)
        for node in a, b:
            uses[node] ^= shared
            if not uses[node]:
                del uses[node]
        new = first + len(pairs)
        pairs.append((a, b))
        for node, used in uses.items():
            if (count := (used & shared).bit_count()) > 1:
                heappush(heap, (-count, -new, -node))
        uses[new] = shared


def _in_chains(
    pairs: Sequence[tuple[int, int]], first: int
) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Return registers of all nodes, and the additions, each followed by one that uses its result if such
    an addition is ready.

    The result is then the first operand, and the kernels need not read it back.
    """
    users: list[list[int]] = [[] for _ in range(first + len(pairs))]
    for i, pair in enumerate(pairs):
        for node in pair:
            users[node].append(i)
    missing = [sum(node >= first for node in pair) for pair in pairs]
    ready = [i for i in reversed(range(len(pairs))) if not missing[i]]
    register = list(range(first + len(pairs)))
    additions: list[tuple[int, int, int]] = []
    while ready:
        i = ready.pop()
        a, b = (register[node] for node in pairs[i])
        new = register[first + i] = first + len(additions)
        additions.append((new, b, a) if b == new - 1 else (new, a, b))
        for user in users[first + i]:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return register, additions
