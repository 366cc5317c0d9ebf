# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Maxima of single factors: the best states of a few vertices under scores of their cells and the
weights of listed patterns.

All patterns of a factor exclude each other, so a factor as a whole is tighter than its patterns one
by one: the best is a listed pattern, or the best combination that is not listed and has weight 0. The
sorted patterns form a trie; combinations that leave it at some vertex continue with the best state
of every later one. So the search visits each node of the trie once, whatever the signs of the
weights. If no weight is negative, no trie is needed: the best states regardless of weights are at least as
good as the best unlisted ones.

Letters: B factors; K vertices of one of them; X copies of cells, those of all factors and
vertices together.
"""

import numpy as np

from spacy_hocrf.arrays import offsets_of

from libc.math cimport INFINITY
from libc.string cimport memcmp, memcpy

__all__ = ["FactorMaxima"]


cdef class FactorMaxima:
    """Maximises B factors separately and repeatedly, for different scores.

    vertex_offsets (int64 [B + 1]): first vertex of each factor, in a list of all their vertices.
    cell_offsets (int64 [vertices + 1]): first of the X cells of each of these vertices.
    pattern_offsets (int64 [B + 1]): first pattern of each factor; those of a factor are ascending, without
        duplicates.
    states (int32 [·]): the states of each pattern, K for each.
    weights (float64 [·]): weight of each pattern.
    """

    cdef const long long[::1] vertex_offsets, cell_offsets, pattern_offsets
    cdef const int[::1] states
    cdef const double[::1] weights
    cdef long long[::1] state_offsets  # [B] first of the states of each factor
    cdef unsigned char[::1] signed, before  # [B] has it a negative weight? [X] cells of the best states
    cdef double[::1] seen, value  # [X] scores of the last call; [B] maximum of each factor
    cdef double[::1] rest  # [K + 1] sum of the best scores of all later vertices
    cdef int[::1] path, best, top  # [K]

    def __init__(
        self,
        const long long[::1] vertex_offsets not None,
        const long long[::1] cell_offsets not None,
        const long long[::1] pattern_offsets not None,
        const int[::1] states not None,
        const double[::1] weights not None,
    ):
        sizes, counts = np.diff(vertex_offsets), np.diff(pattern_offsets)
        most, n_cells = int(sizes.max(initial=0)), cell_offsets[cell_offsets.shape[0] - 1]
        self.vertex_offsets, self.cell_offsets = vertex_offsets, cell_offsets
        self.pattern_offsets, self.states, self.weights = pattern_offsets, states, weights
        self.state_offsets = (np.cumsum(sizes * counts) - sizes * counts).astype(np.int64)
        negatives = offsets_of(np.asarray(weights) < 0)[np.asarray(pattern_offsets)]
        self.signed = (np.diff(negatives) > 0).astype(np.uint8)
        self.seen, self.value = np.full(n_cells, np.nan), np.zeros(len(sizes))
        self.rest = np.zeros(most + 1)
        self.before = np.zeros(n_cells, dtype=np.uint8)
        self.path, self.best, self.top = (np.zeros(most, dtype=np.int32) for _ in range(3))

    def maximise(self, const double[::1] scores not None, unsigned char[::1] chosen not None):
        """Return the sum of all factors' maxima.

        scores (float64 [X]): scores of all cells of the factors' vertices.
        chosen (uint8 [X]): set to 1 for the best states, to 0 elsewhere.
        RETURNS (float): the sum, for cells and patterns together.
        """
        cdef Py_ssize_t b, begin, end
        cdef double total = 0.0
        with nogil:
            for b in range(self.value.shape[0]):
                begin = self.cell_offsets[self.vertex_offsets[b]]
                end = self.cell_offsets[self.vertex_offsets[b + 1]]
                if memcmp(&scores[begin], &self.seen[begin], (end - begin) * sizeof(double)):
                    memcpy(&self.seen[begin], &scores[begin], (end - begin) * sizeof(double))
                    self._solve(b)
                total += self.value[b]
            chosen[:] = self.before
        return total

    cdef void _solve(self, Py_ssize_t b) noexcept nogil:
        """Find the best states of factor b, and its maximum."""
        cdef Py_ssize_t j, cell, first = self.vertex_offsets[b]
        cdef Py_ssize_t K = self.vertex_offsets[b + 1] - first
        cdef double* scores
        self.rest[K] = 0.0
        for j in range(K - 1, -1, -1):
            scores = &self.seen[self.cell_offsets[first + j]]
            self.top[j] = 0
            for cell in range(1, self.cell_offsets[first + j + 1] - self.cell_offsets[first + j]):
                if scores[cell] > scores[self.top[j]]:
                    self.top[j] = <int> cell
            self.rest[j] = self.rest[j + 1] + scores[self.top[j]]
        if self.signed[b]:
            self.value[b] = -INFINITY
            self._descend(b, K, 0, self.pattern_offsets[b], self.pattern_offsets[b + 1], 0.0)
        else:
            self._compare(b, K)
        for cell in range(self.cell_offsets[first], self.cell_offsets[first + K]):
            self.before[cell] = 0
        for j in range(K):
            self.before[self.cell_offsets[first + j] + self.best[j]] = 1

    cdef void _compare(self, Py_ssize_t b, Py_ssize_t K) noexcept nogil:
        """Take the best of the listed patterns and the best states without weights; correct if no weight
        is negative.
        """
        cdef Py_ssize_t j, i, first = self.vertex_offsets[b]
        cdef const int* states = &self.states[self.state_offsets[b]]
        cdef double score
        self.value[b] = self.rest[0]
        for j in range(K):
            self.best[j] = self.top[j]
        for i in range(self.pattern_offsets[b], self.pattern_offsets[b + 1]):
            score = self.weights[i]
            for j in range(K):
                score += self.seen[self.cell_offsets[first + j] + states[j]]
            if score > self.value[b]:
                self.value[b] = score
                for j in range(K):
                    self.best[j] = states[j]
            states += K

    cdef void _descend(
        self,
        Py_ssize_t b,
        Py_ssize_t K,
        Py_ssize_t j,
        Py_ssize_t low,
        Py_ssize_t high,
        double score,
    ) noexcept nogil:
        """Search patterns low to high - 1, which agree on the states of the first j vertices: those in
        `path`, the sum of whose scores is `score`.
        """
        cdef Py_ssize_t i, k, s, end, other = -1
        cdef Py_ssize_t first = self.cell_offsets[self.vertex_offsets[b] + j]
        cdef Py_ssize_t n_states = self.cell_offsets[self.vertex_offsets[b] + j + 1] - first
        cdef Py_ssize_t base = self.pattern_offsets[b]
        # K states for each pattern, from `base` on
        cdef const int* states = &self.states[self.state_offsets[b]]
        if score + self.rest[j] + self._highest(low, high) <= self.value[b]:
            return
        i = low
        for s in range(n_states):
            if i == high or states[(i - base) * K + j] > s:  # no pattern continues with this state
                if other < 0 or self.seen[first + s] > self.seen[first + other]:
                    other = s
                continue
            end = i + 1
            while end < high and states[(end - base) * K + j] == s:
                end += 1
            self.path[j] = <int> s
            if j + 1 < K:
                self._descend(b, K, j + 1, i, end, score + self.seen[first + s])
            elif score + self.seen[first + s] + self.weights[i] > self.value[b]:
                self.value[b] = score + self.seen[first + s] + self.weights[i]
                for k in range(K):
                    self.best[k] = self.path[k]
            i = end
        if other >= 0 and score + self.seen[first + other] + self.rest[j + 1] > self.value[b]:
            self.value[b] = score + self.seen[first + other] + self.rest[j + 1]
            for k in range(j):
                self.best[k] = self.path[k]
            self.best[j] = <int> other
            for k in range(j + 1, K):
                self.best[k] = self.top[k]

    cdef double _highest(self, Py_ssize_t low, Py_ssize_t high) noexcept nogil:
        """The highest weight of some patterns, at least 0."""
        cdef Py_ssize_t i
        cdef double highest = 0.0
        for i in range(low, high):
            highest = max(highest, self.weights[i])
        return highest
