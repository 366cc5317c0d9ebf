# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Forests over the vertices of a graph: choice of edges, and the best assignment by max-sum
(Qian and Liu, TACL 2 (2014) §3.3).

Letters: V vertices, E cells, n edges.
"""

import numpy as np

from libc.math cimport INFINITY

__all__ = ["MaxSum", "spanning_forest"]


def spanning_forest(
    const int[::1] one not None, const int[::1] other not None, Py_ssize_t n_vertices
):
    """Return the forest that takes, in order, every edge that does not close a cycle.

    one, other (int32 [n]): ends of the edges.
    n_vertices (int): number of vertices V.
    RETURNS (tuple[int32 [V], int32 [V], int32 [V]]): the vertices, each before its parent; the
        parent of each, -1 for a root; and the edge to it, -1 for none.
    """
    cdef Py_ssize_t i, j, e, v, last = 0, at = 0, n = one.shape[0]
    order_array = np.empty(n_vertices, dtype=np.int32)
    parent_array = np.full(n_vertices, -1, dtype=np.int32)
    edge_array = np.full(n_vertices, -1, dtype=np.int32)
    cdef int[::1] order = order_array, parent = parent_array, edge = edge_array
    cdef int[::1] group = np.arange(n_vertices, dtype=np.int32)
    cdef int[::1] taken = np.zeros(n, dtype=np.int32), adjacent = np.empty(2 * n, dtype=np.int32)
    cdef int[::1] seen = np.zeros(n_vertices, dtype=np.int32)
    cdef int[::1] start = np.zeros(n_vertices + 1, dtype=np.int32)
    cdef int[::1] free = np.zeros(n_vertices, dtype=np.int32)
    with nogil:
        for e in range(n):
            i, j = _root(group, one[e]), _root(group, other[e])
            if i != j:
                group[max(i, j)] = <int> min(i, j)
                taken[e] = 1
                start[one[e] + 1] += 1
                start[other[e] + 1] += 1
        for v in range(n_vertices):
            free[v] = start[v]
            start[v + 1] += start[v]
        for e in range(n):
            if taken[e]:
                adjacent[free[one[e]]] = adjacent[free[other[e]]] = <int> e
                free[one[e]] += 1
                free[other[e]] += 1
        # breadth first, parents before their children, reversed at the end
        for v in range(n_vertices):
            if seen[v]:
                continue
            seen[v] = 1
            order[last] = <int> v
            last += 1
            while at < last:
                i = order[at]
                at += 1
                for e in range(start[i], start[i + 1]):
                    j = one[adjacent[e]] if other[adjacent[e]] == i else other[adjacent[e]]
                    if not seen[j]:
                        seen[j] = 1
                        parent[j] = <int> i
                        edge[j] = adjacent[e]
                        order[last] = <int> j
                        last += 1
    return np.ascontiguousarray(order_array[::-1]), parent_array, edge_array


cdef Py_ssize_t _root(int[::1] group, Py_ssize_t v) noexcept nogil:
    while group[v] != v:
        group[v] = group[group[v]]
        v = group[v]
    return v


cdef class MaxSum:
    """The best assignment of a forest, from the leaves to the roots and back.

    offsets (int64 [V + 1]): first cell of each vertex.
    order (int32 [V]): the vertices, each before its parent.
    parent (int32 [V]): parent of each vertex, -1 for a root.
    table_offsets (int64 [V + 1]): first entry of the table of each vertex and its parent; empty for
        a root.
    tables (float64 [·]): scores of the edges, [states of the vertex, states of its parent].
    """

    cdef const long long[::1] offsets, table_offsets
    cdef const int[::1] order, parent
    cdef const double[::1] tables
    cdef double[::1] best, message

    def __init__(
        self,
        const long long[::1] offsets not None,
        const int[::1] order not None,
        const int[::1] parent not None,
        const long long[::1] table_offsets not None,
        const double[::1] tables not None,
    ):
        self.offsets, self.order, self.parent = offsets, order, parent
        self.table_offsets, self.tables = table_offsets, tables
        self.best = np.zeros(offsets[offsets.shape[0] - 1])
        self.message = np.zeros(np.diff(offsets).max(initial=1))

    def maximise(self, const double[::1] scores not None, int[::1] assignment not None):
        """Return the highest total score of cells and edges; the lowest states among equals.

        scores (float64 [E]): scores of all cells.
        assignment (int32 [V]): set to the state of each vertex.
        RETURNS (float): the score.
        """
        cdef double total
        with nogil:
            self.best[:] = scores
            total = self._collect()
            self._distribute(assignment)
        return total

    def max_marginals_into(self, const double[::1] scores not None, double[::1] marginals not None):
        """Compute for each cell the highest total score of its tree's assignments that contain the cell.

        scores (float64 [E]): scores of all cells.
        marginals (float64 [E]): set to the result.
        """
        with nogil:
            self.best[:] = scores
            self._collect()
            self._spread(marginals)

    cdef double _collect(self) noexcept nogil:
        """Set `best` to the highest score of the subtree below each cell; return the sum over the roots'
        maxima.
        """
        cdef Py_ssize_t i, v, p, s, width
        cdef double* message = &self.message[0]
        cdef double* here
        cdef double total = 0.0
        for i in range(self.order.shape[0]):
            v = self.order[i]
            p = self.parent[v]
            here = &self.best[self.offsets[v]]
            if p < 0:
                total += here[_argmax(here, self.offsets[v + 1] - self.offsets[v])]
                continue
            width = self.offsets[p + 1] - self.offsets[p]
            self._send(v, width)
            here = &self.best[self.offsets[p]]
            for s in range(width):
                here[s] += message[s]
        return total

    cdef inline void _send(self, Py_ssize_t v, Py_ssize_t width) noexcept nogil:
        """message(s) = max_t (best(v, t) + table(t, s)), s being the states of the vertex's parent.
        """
        cdef Py_ssize_t s, t
        cdef const double* row = &self.tables[self.table_offsets[v]]
        cdef const double* here = &self.best[self.offsets[v]]
        cdef double* message = &self.message[0]
        cdef double score
        for s in range(width):
            message[s] = -INFINITY
        for t in range(self.offsets[v + 1] - self.offsets[v]):
            for s in range(width):
                score = here[t] + row[s]
                message[s] = score if score > message[s] else message[s]
            row += width

    cdef void _spread(self, double[::1] marginals) noexcept nogil:
        """Compute marginals(v, t) = best(v, t) + max_s (table(t, s) + marginals(p, s) - message(s)),
        removing v's message from its parent's value.
        """
        cdef Py_ssize_t i, v, p, s, t, width
        cdef const double* row
        cdef double* message = &self.message[0]
        cdef double* here
        cdef double most
        for i in range(self.order.shape[0] - 1, -1, -1):
            v = self.order[i]
            p = self.parent[v]
            here = &self.best[self.offsets[v]]
            if p < 0:
                for t in range(self.offsets[v + 1] - self.offsets[v]):
                    marginals[self.offsets[v] + t] = here[t]
                continue
            width = self.offsets[p + 1] - self.offsets[p]
            self._send(v, width)
            for s in range(width):
                message[s] = marginals[self.offsets[p] + s] - message[s]
            row = &self.tables[self.table_offsets[v]]
            for t in range(self.offsets[v + 1] - self.offsets[v]):
                most = -INFINITY
                for s in range(width):
                    most = row[s] + message[s] if row[s] + message[s] > most else most
                marginals[self.offsets[v] + t] = here[t] + most
                row += width

    cdef void _distribute(self, int[::1] assignment) noexcept nogil:
        """Set the best states, from the roots to the leaves."""
        cdef Py_ssize_t i, v, p, t, width, states
        cdef const double* entry
        cdef double best
        for i in range(self.order.shape[0] - 1, -1, -1):
            v = self.order[i]
            p = self.parent[v]
            states = self.offsets[v + 1] - self.offsets[v]
            if p < 0:
                assignment[v] = <int> _argmax(&self.best[self.offsets[v]], states)
                continue
            width = self.offsets[p + 1] - self.offsets[p]
            entry = &self.tables[self.table_offsets[v] + assignment[p]]
            best = -INFINITY
            for t in range(states):
                if self.best[self.offsets[v] + t] + entry[0] > best:
                    best = self.best[self.offsets[v] + t] + entry[0]
                    assignment[v] = <int> t
                entry += width


cdef inline Py_ssize_t _argmax(const double* scores, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, best = 0
    for i in range(1, n):
        if scores[i] > scores[best]:
            best = i
    return best
