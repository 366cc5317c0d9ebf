# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Local search from a good assignment, changing one vertex at a time and occasionally completing a pattern.

Tabu search (Glover 1989): the best change of one vertex is made even if it lowers the score, and then that
vertex is not changed for a while. When many changes have not improved the best assignment, the search returns
to it and completes some pattern of positive weight there, since single changes do not reach patterns of
many cells.

gain[c] is the value of cell c given the states of all other vertices: its unary score, and the
weights of its patterns whose other cells are all on. A change of one vertex affects only the gains of
its patterns' cells.

Letters: V vertices, E cells, M vertex patterns, I cells of all patterns in sequence.
"""

import numpy as np

from spacy_hocrf.arrays import offsets_of

from libc.math cimport INFINITY

__all__ = ["LocalSearch"]


cdef class LocalSearch:
    """Improves assignments.

    offsets (int64 [V + 1]): first cell of each vertex.
    unary (float64 [E]): scores of the cells.
    pattern_offsets (int64 [M + 1]), cells (int64 [I]), weights (float64 [M]): the patterns.
    """

    cdef const long long[::1] offsets, pattern_offsets, cells
    cdef const double[::1] unary, weights
    cdef long long[::1] use_offsets, uses  # [E + 1], [I] patterns of each cell
    cdef long long[::1] kicks  # patterns worth completing
    cdef int[::1] vertex, off  # [E]; [M] number of cells of each pattern that are off
    cdef int[::1] state, target, dirty, until, kept  # [V]
    cdef unsigned char[::1] is_dirty  # [V]
    cdef double[::1] gain, rise  # [E], [V]
    cdef Py_ssize_t n_dirty
    cdef double score
    cdef unsigned long long random

    def __init__(
        self,
        const long long[::1] offsets not None,
        const double[::1] unary not None,
        const long long[::1] pattern_offsets not None,
        const long long[::1] cells not None,
        const double[::1] weights not None,
    ):
        n, n_cells, n_patterns = offsets.shape[0] - 1, unary.shape[0], weights.shape[0]
        sizes = np.diff(pattern_offsets)
        self.offsets, self.unary = offsets, unary
        self.pattern_offsets, self.cells, self.weights = pattern_offsets, cells, weights
        by_cell = np.argsort(cells, kind="stable")
        self.uses = np.repeat(np.arange(n_patterns, dtype=np.int64), sizes)[by_cell]
        self.use_offsets = offsets_of(np.bincount(cells, minlength=n_cells))
        self.kicks = _worth_completing(np.asarray(weights), sizes)
        self.vertex = np.repeat(np.arange(n, dtype=np.int32), np.diff(offsets))
        self.off = np.zeros(n_patterns, dtype=np.int32)
        self.state, self.target, self.dirty, self.until, self.kept = (
            np.zeros(n, dtype=np.int32) for _ in range(5)
        )
        self.is_dirty = np.zeros(n, dtype=np.uint8)
        self.gain, self.rise = np.zeros(n_cells), np.zeros(n)

    def improve(self, int[::1] assignment not None, Py_ssize_t steps, unsigned long long seed):
        """Search from an assignment, and replace it by the best that was found.

        assignment (int32 [V]): changed in place.
        steps (int): number of changes of one vertex.
        seed (int): determines the search.
        RETURNS (float): increase of the score.
        """
        cdef Py_ssize_t step, v, at, idle = 0, patience = 50 + self.state.shape[0]
        cdef double start, best
        self.random = seed * 2 + 1
        if not self.state.shape[0]:
            return 0.0
        with nogil:
            self._begin(assignment)
            start = best = self.score
            for step in range(steps):
                v = self._choose(<int> step, best)
                if v < 0:
                    idle = patience
                else:
                    self._change(v, self.target[v])
                    self.until[v] = <int> (step + 3 + self._draw(7 + self.state.shape[0] // 16))
                idle += 1
                if self.score > best + 1e-9 * (1.0 + abs(best)):
                    best = self.score
                    self.kept[:] = self.state
                    idle = 0
                elif idle > patience:
                    for at in range(self.state.shape[0]):
                        if self.state[at] != self.kept[at]:
                            self._change(at, self.kept[at])
                        self.until[at] = 0
                    self._kick(<int> step)
                    idle = 0
            assignment[:] = self.kept
        return best - start

    cdef void _begin(self, int[::1] assignment) noexcept nogil:
        """Compute score, gains and numbers of cells that are off for an assignment."""
        cdef Py_ssize_t p, e, c, v, unmet
        self.state[:] = assignment
        self.kept[:] = assignment
        self.gain[:] = self.unary
        self.until[:] = 0
        self.n_dirty = 0
        self.score = 0.0
        for v in range(self.state.shape[0]):
            self.is_dirty[v] = 0
            self._mark(v)
            self.score += self.unary[self.offsets[v] + self.state[v]]
        for p in range(self.weights.shape[0]):
            unmet = 0
            for e in range(self.pattern_offsets[p], self.pattern_offsets[p + 1]):
                c = self.cells[e]
                if not self._is_on(c):
                    unmet += 1
            self.off[p] = <int> unmet
            if unmet == 0:
                self.score += self.weights[p]
            if unmet < 2:
                for e in range(self.pattern_offsets[p], self.pattern_offsets[p + 1]):
                    if unmet == 0 or not self._is_on(self.cells[e]):
                        self.gain[self.cells[e]] += self.weights[p]

    cdef Py_ssize_t _choose(self, int step, double best) noexcept nogil:
        """Return the vertex whose change raises the score most, or lowers it least, among those that may
        change; -1 for none.
        """
        cdef Py_ssize_t i, v, c, chosen = -1
        cdef double here
        for i in range(self.n_dirty):
            v = self.dirty[i]
            self.is_dirty[v] = 0
            here = self.gain[self.offsets[v] + self.state[v]]
            self.rise[v] = -INFINITY
            for c in range(self.offsets[v], self.offsets[v + 1]):
                if c != self.offsets[v] + self.state[v] and self.gain[c] - here > self.rise[v]:
                    self.rise[v] = self.gain[c] - here
                    self.target[v] = <int> (c - self.offsets[v])
        self.n_dirty = 0
        for v in range(self.state.shape[0]):
            if self.rise[v] == -INFINITY:
                continue
            if self.until[v] <= step or self.score + self.rise[v] > best:
                if chosen < 0 or self.rise[v] > self.rise[chosen]:
                    chosen = v
        return chosen

    cdef void _kick(self, int step) noexcept nogil:
        """Complete a pattern of positive weight, and do not change its vertices for a while; or
        change a random vertex.
        """
        cdef Py_ssize_t p, e, v, _tries
        for _tries in range(8):
            if not self.kicks.shape[0]:
                break
            p = self.kicks[self._draw(self.kicks.shape[0])]
            if self.off[p] == 0:
                continue
            for e in range(self.pattern_offsets[p], self.pattern_offsets[p + 1]):
                v = self.vertex[self.cells[e]]
                if not self._is_on(self.cells[e]):
                    self._change(v, <int> (self.cells[e] - self.offsets[v]))
                self.until[v] = <int> (step + 10 + self._draw(20))
            return
        v = self._draw(self.state.shape[0])
        self._change(v, <int> self._draw(self.offsets[v + 1] - self.offsets[v]))
        self.until[v] = <int> (step + 10 + self._draw(20))

    cdef void _change(self, Py_ssize_t v, int state) noexcept nogil:
        """Change the state of a vertex, and update gains and score."""
        cdef Py_ssize_t old = self.offsets[v] + self.state[v], new = self.offsets[v] + state, i, p
        if old == new:
            return
        self.score += self.gain[new] - self.gain[old]
        self._mark(v)
        for i in range(self.use_offsets[old], self.use_offsets[old + 1]):
            p = self.uses[i]
            if self.off[p] < 2:
                self._add_to_others(p, old, -self.weights[p])
            self.off[p] += 1
        self.state[v] = state
        for i in range(self.use_offsets[new], self.use_offsets[new + 1]):
            p = self.uses[i]
            self.off[p] -= 1
            if self.off[p] < 2:
                self._add_to_others(p, new, self.weights[p])

    cdef void _add_to_others(self, Py_ssize_t p, Py_ssize_t cell, double weight) noexcept nogil:
        """Add the weight of a pattern to the gains that it is part of while `cell` is on: those of all other
        cells if all of them are on, or that of the only one that is off.
        """
        cdef Py_ssize_t e, c
        for e in range(self.pattern_offsets[p], self.pattern_offsets[p + 1]):
            c = self.cells[e]
            if c != cell and (self.off[p] == 0 or not self._is_on(c)):
                self.gain[c] += weight
                self._mark(self.vertex[c])

    cdef inline bint _is_on(self, Py_ssize_t cell) noexcept nogil:
        cdef Py_ssize_t v = self.vertex[cell]
        return self.offsets[v] + self.state[v] == cell

    cdef inline void _mark(self, Py_ssize_t v) noexcept nogil:
        if not self.is_dirty[v]:
            self.is_dirty[v] = 1
            self.dirty[self.n_dirty] = <int> v
            self.n_dirty += 1

    cdef inline Py_ssize_t _draw(self, Py_ssize_t n) noexcept nogil:
        """Return a random number below n (xorshift; Marsaglia 2003)."""
        self.random ^= self.random << 13
        self.random ^= self.random >> 7
        self.random ^= self.random << 17
        return <Py_ssize_t> (self.random % <unsigned long long> n)


def _worth_completing(weights, sizes):
    """Patterns of positive weight, only those larger than pairs if there are any; int64."""
    positive = weights > 0
    large = np.flatnonzero(positive & (sizes > 2))
    return (large if len(large) else np.flatnonzero(positive)).astype(np.int64)
