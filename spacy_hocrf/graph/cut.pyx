# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Supermodular quadratic pseudo-Boolean functions, maximised by a minimum cut (Qian and Liu, TACL 2
(2014) §2.3).

For x in {0, 1}^n the function is

    f(x) = Σ_i profit_i x_i - Σ_arcs (i → j) capacity · x_i (1 - x_j),        capacity ≥ 0;

w x_i x_j is w x_i - w x_i (1 - x_j), so a term costs one arc. The source is joined to nodes of
positive profit, the others to the sink. A flow moves profit along arcs and rewrites f without changing
it: with excess_i the remaining profit of a node and residual the remaining capacity of an arc,
f(x) = Σ excess_i x_i - Σ residual x_i (1 - x_j). So Σ max(0, excess_i) is an upper bound
for any flow, and the maximum once no positive excess can reach a negative one. Between calls
only profits change: the flow stays valid, and the next call continues from it. Flows are found by
shortest paths in phases (Dinic 1970). Connected components are solved separately, and only if
some profit has changed.

Letters: n nodes, m arcs.
"""

import numpy as np

from spacy_hocrf.arrays import offsets_of

__all__ = ["MinimumCut"]

cdef double MIN_FLOW = 1e-11  # smaller amounts do not flow


cdef class MinimumCut:
    """Maximises f repeatedly for different profits.

    constant (float64 [n]): the part of the profits that never changes.
    tail, head (int32 [m]): ends of the arcs.
    capacity (float64 [m]): capacities of the arcs, not negative.
    """

    cdef Py_ssize_t n_nodes
    cdef const double[::1] constant
    cdef long long[::1] first  # [n + 1] half-arcs of each node: every arc and its reverse
    cdef int[::1] head, twin  # [2m] where a half-arc leads, and the half-arc back
    cdef double[::1] residual, excess, profit  # [2m], [n], [n]
    cdef unsigned char[::1] x  # [n]
    cdef int[::1] member, queue, distance, path  # [n]; member: nodes by component
    cdef long long[::1] component  # [components + 1] first member of each
    cdef long long[::1] current  # [n] half-arc to be tried next

    def __init__(
        self,
        const double[::1] constant not None,
        const int[::1] tail not None,
        const int[::1] head not None,
        const double[::1] capacity not None,
    ):
        m, n_nodes = tail.shape[0], constant.shape[0]
        ends = np.concatenate([tail, head]).astype(np.int64)
        order = np.argsort(ends, kind="stable")
        place = np.empty(2 * m, dtype=np.int64)
        place[order] = np.arange(2 * m)
        self.n_nodes, self.constant = n_nodes, constant
        self.first = offsets_of(np.bincount(ends, minlength=n_nodes))
        self.head = np.concatenate([head, tail]).astype(np.int32)[order]
        self.twin = np.concatenate([place[m:], place[:m]]).astype(np.int32)[order]
        self.residual = np.concatenate([capacity, np.zeros(m)])[order]
        self.excess, self.profit = np.zeros(n_nodes), np.zeros(n_nodes)
        self.x = np.zeros(n_nodes, dtype=np.uint8)
        self.member, self.queue, self.distance, self.path = (
            np.zeros(n_nodes, dtype=np.int32) for _ in range(4)
        )
        self.current = np.zeros(n_nodes, dtype=np.int64)
        self._find_components()

    def maximise(self, const double[::1] scores not None, unsigned char[::1] chosen not None):
        """Return the maximum of f; among equal solutions the smallest set of ones is chosen.

        scores (float64 [k]): added to the constant profits of the first k nodes.
        chosen (uint8 [k]): set to x of these nodes.
        RETURNS (float): the maximum, or an upper bound that exceeds it by rounding errors only.
        """
        cdef Py_ssize_t c, i, at
        cdef double total = 0.0, profit
        cdef bint changed
        with nogil:
            for c in range(self.component.shape[0] - 1):
                changed = False
                for at in range(self.component[c], self.component[c + 1]):
                    i = self.member[at]
                    profit = self.constant[i] + (scores[i] if i < scores.shape[0] else 0.0)
                    if profit != self.profit[i]:
                        self.excess[i] += profit - self.profit[i]
                        self.profit[i] = profit
                        changed = True
                if changed:
                    while self._measure(c):
                        self._push(c)
                    self._choose(c)
            for i in range(self.n_nodes):
                total += max(0.0, self.excess[i])
            chosen[:] = self.x[: chosen.shape[0]]
        return total

    cdef void _find_components(self):
        cdef Py_ssize_t i, r, at = 0, last = 0
        starts = []
        self.distance[:] = 0
        for i in range(self.n_nodes):
            if self.distance[i]:
                continue
            starts.append(last)
            self.distance[i] = 1
            self.member[last] = <int> i
            last += 1
            while at < last:
                for r in range(self.first[self.member[at]], self.first[self.member[at] + 1]):
                    if not self.distance[self.head[r]]:
                        self.distance[self.head[r]] = 1
                        self.member[last] = self.head[r]
                        last += 1
                at += 1
        self.component = np.array([*starts, last], dtype=np.int64)

    cdef bint _measure(self, Py_ssize_t c) noexcept nogil:
        """Compute the distance of every node of a component to a negative excess. RETURNS: can a positive one
        reach a negative one?
        """
        cdef Py_ssize_t at, i, j, r, begin = 0, end = 0
        cdef bint reaches = False
        for at in range(self.component[c], self.component[c + 1]):
            i = self.member[at]
            self.current[i] = self.first[i]
            self.distance[i] = -1
            if self.excess[i] < -MIN_FLOW:
                self.distance[i] = 0
                self.queue[end] = <int> i
                end += 1
        while begin < end:
            j = self.queue[begin]
            begin += 1
            for r in range(self.first[j], self.first[j + 1]):
                i = self.head[r]
                if self.distance[i] < 0 and self.residual[self.twin[r]] > MIN_FLOW:
                    self.distance[i] = self.distance[j] + 1
                    self.queue[end] = <int> i
                    end += 1
                    reaches |= self.excess[i] > MIN_FLOW
        return reaches

    cdef void _push(self, Py_ssize_t c) noexcept nogil:
        """Move positive excess along shortest paths until none is left."""
        cdef Py_ssize_t at
        for at in range(self.component[c], self.component[c + 1]):
            if self.distance[self.member[at]] > 0:
                while self.excess[self.member[at]] > MIN_FLOW and self._augment(self.member[at]):
                    pass

    cdef bint _augment(self, Py_ssize_t source) noexcept nogil:
        """Augment one path from a node with excess to a negative one. RETURNS: was there a path?"""
        cdef Py_ssize_t i = source, j, r, k, depth = 0
        cdef double amount
        while self.distance[i] > 0:
            r = self.current[i]
            if r == self.first[i + 1]:  # a dead end
                if depth == 0:
                    return False
                depth -= 1
                i = self.head[self.twin[self.path[depth]]]
                self.current[i] += 1
                continue
            j = self.head[r]
            if self.residual[r] > MIN_FLOW and self.distance[j] == self.distance[i] - 1 and (
                self.distance[j] > 0 or self.excess[j] < -MIN_FLOW
            ):
                self.path[depth] = <int> r
                depth += 1
                i = j
            else:
                self.current[i] += 1
        amount = min(self.excess[source], -self.excess[i])
        for k in range(depth):
            amount = min(amount, self.residual[self.path[k]])
        for k in range(depth):
            self.residual[self.path[k]] -= amount
            self.residual[self.twin[self.path[k]]] += amount
        self.excess[source] -= amount
        self.excess[i] += amount
        return True

    cdef void _choose(self, Py_ssize_t c) noexcept nogil:
        """Set x to one for the nodes that positive excess can reach."""
        cdef Py_ssize_t at, i, r, begin = 0, end = 0
        for at in range(self.component[c], self.component[c + 1]):
            i = self.member[at]
            self.x[i] = self.excess[i] > MIN_FLOW
            if self.x[i]:
                self.queue[end] = <int> i
                end += 1
        while begin < end:
            i = self.queue[begin]
            begin += 1
            for r in range(self.first[i], self.first[i + 1]):
                if self.residual[r] > MIN_FLOW and not self.x[self.head[r]]:
                    self.x[self.head[r]] = 1
                    self.queue[end] = self.head[r]
                    end += 1
