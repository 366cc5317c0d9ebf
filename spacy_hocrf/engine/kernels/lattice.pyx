# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The segmentations of one sequence as the paths of a lattice: the best ones, as many as are asked for,
and random ones.

A path goes from choice to choice. In a state at u it takes an arc, which opens a segment; in an open
segment it takes an end, or is open for longer than the window of lengths with scores of their own, and
then ends or goes on token by token. Nothing is assumed of the automaton but that every segmentation
takes one path: from a state the arcs lead on whose sums (sums.py) it is part of.

The chart has the value of what follows every choice, in (max, +) or in (logaddexp, +). Choices are
looked at where a path comes by and nowhere else.
"""

from libc.math cimport INFINITY, exp, log, log1p
from libc.stdlib cimport calloc, free, qsort, realloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

__all__ = ["Graph", "Lattice", "Ruling", "Scores"]

include "lattice_types.pxi"


cdef class Graph:
    """What the lattice of a sequence knows of an automaton; see automaton.Automaton for the extents."""
    cdef Py_ssize_t states, arcs, registers, bodies, opens, labels
    cdef Py_ssize_t stride  # arcs c + i stride are copies of arc c < stride
    cdef const int[::1] limits, arc_suffix, arc_open, pattern_arc, pattern_body
    cdef const int[:, ::1] additions
    cdef const int[::1] body_label, body_suffix, body_offsets, open_body, open_target, open_label
    cdef const int[::1] tree_offsets, tree
    cdef const int[::1] taken, taken_register, taken_open  # [n] arcs that are not forbidden
    cdef const int[::1] exit_offsets, exits  # [P + 1], [m] the arcs that each state takes

    def __init__(self, automaton):
        self.states = len(automaton.states)
        self.arcs = len(automaton.arc_open)
        self.stride = self.arcs // automaton.copies
        self.registers = automaton.registers
        self.bodies = len(automaton.body_label)
        self.opens = len(automaton.open_target)
        self.labels = len(automaton.limits)
        self.limits = automaton.limits
        self.arc_suffix, self.arc_open = automaton.arc_suffix, automaton.arc_open
        self.pattern_arc, self.pattern_body = automaton.pattern_arc, automaton.pattern_body
        self.additions = automaton.additions
        self.body_label, self.body_suffix = automaton.body_label, automaton.body_suffix
        self.body_offsets = automaton.body_offsets
        sizes = np.diff(automaton.body_offsets)
        self.open_body = np.repeat(np.arange(self.bodies, dtype=np.int32), sizes)
        self.open_target, self.open_label = automaton.open_target, automaton.open_label
        self.tree_offsets, self.tree = automaton.tree_offsets, automaton.tree
        taken = np.flatnonzero(automaton.arc_open >= 0).astype(np.int32)
        taken = taken[np.argsort(automaton.arc_register[taken], kind="stable")]
        self.taken, self.taken_register = taken, automaton.arc_register[taken]
        self.taken_open = automaton.arc_open[taken]
        self._find_exits()

    def _find_exits(self):
        """The states of each register's sum take its arcs."""
        cdef Py_ssize_t i
        offsets, places = np.zeros(self.states + 1, dtype=np.int32), np.zeros(self.states, dtype=np.int32)
        cdef int[::1] stack = np.zeros(self.registers + 1, dtype=np.int32)
        cdef int[::1] place = places, found = np.zeros(0, dtype=np.int32)
        cdef bint ruling = True
        for _ in range(2):
            with nogil:
                for i in range(self.taken.shape[0]):
                    self._add_exits(self.taken_register[i], self.taken[i], stack, place, found, ruling)
            if ruling:
                np.cumsum(places, out=offsets[1:])
                places[:] = offsets[: self.states]
                found = np.zeros(offsets[self.states], dtype=np.int32)
                ruling = False
        self.exit_offsets, self.exits = offsets, found

    cdef void _add_exits(
        self, int register, int arc, int[::1] stack, int[::1] place, int[::1] found, bint ruling
    ) noexcept nogil:
        """One more arc for each state in the sum of a register: counted, or found."""
        cdef Py_ssize_t height = 1
        cdef int at
        stack[0] = register
        while height > 0:
            height -= 1
            at = stack[height]
            if at >= self.states:
                stack[height] = self.additions[at - self.states, 1]
                stack[height + 1] = self.additions[at - self.states, 2]
                height += 2
                continue
            if not ruling:
                found[place[at]] = arc
            place[at] += 1


cdef class Scores:
    """Views of the log potentials of a batch; see problem.Problem."""
    cdef Py_ssize_t sequences, rows, lengths
    cdef bint has_start, has_end, has_inner, has_final
    cdef const long long[::1] offsets
    cdef const double[:, ::1] start, end, token, inner
    cdef const unsigned char[:, ::1] allowed
    cdef const long long[::1] row_offsets
    cdef const int[::1] row_target
    cdef const double[::1] row_score
    cdef const long long[::1] span_offsets, span_start, span_end
    cdef const int[::1] span_pattern
    cdef const double[::1] span_score
    cdef const double[::1] arc_const, weight  # [C], [n] of the arcs that are taken
    cdef const double[:, ::1] body_length, final

    def __init__(self, problem, Graph graph not None):
        potentials = problem.potentials
        self.offsets = problem.offsets
        self.sequences = self.offsets.shape[0] - 1
        self.rows = len(potentials.row_score)
        self.lengths = potentials.length_score.shape[1]
        self.has_start = potentials.start is not None
        self.has_end = potentials.end is not None
        self.has_inner = potentials.inner is not None
        self.has_final = problem.final is not None
        self.token = potentials.token
        self.start = potentials.start if self.has_start else potentials.token
        self.end = potentials.end if self.has_end else potentials.token
        self.inner = potentials.inner if self.has_inner else potentials.token
        self.allowed = potentials.allowed
        self.row_offsets, self.row_target = potentials.row_offsets, problem.row_target
        self.row_score = potentials.row_score
        self.span_offsets = problem.span_offsets
        self.span_start, self.span_end = potentials.span_start, potentials.span_end
        self.span_pattern, self.span_score = potentials.span_pattern, potentials.span_score
        self.arc_const, self.body_length = problem.arc_const, problem.body_length
        self.weight = problem.arc_const[np.asarray(graph.taken)]
        if self.has_final:
            self.final = problem.final


cdef class Lattice:
    """The lattice of one sequence after another; `load` begins with the next one.

    graph (Graph): of the automaton.
    sums (bool): for `draw`, else for `next`.
    """
    cdef Graph graph
    cdef Scores scores
    cdef readonly bint sums
    cdef readonly Py_ssize_t tokens
    cdef readonly double total  # score of the best segmentation, or log Z; -inf if there is none
    cdef Py_ssize_t base, span_low, span_high  # first token in the batch, and the sequence's spans
    cdef bint full  # there is no more memory
    # chart.pxi
    cdef double* numbers
    cdef size_t numbers_room
    cdef double *token  # [T, K]
    cdef double *step
    cdef double *end
    cdef double *ended  # [T + 1, O] beta of the state that the open state enters
    cdef double *opened  # [T, O] the start's score, and what follows it
    cdef double *rest  # [T + 2, O] what follows a segment that is open for longer than its window
    cdef double *beta  # [registers] of the boundary at hand
    cdef double *own  # [C] rows of arcs at the token at hand, else 0
    cdef double *summed  # [C] with those of their suffixes
    cdef double *extra  # [K, widest + 1] spans that begin at the token at hand, by length, else 0
    cdef long long[::1] window  # [K] lengths that are looked at one by one
    cdef unsigned char[::1] has_tail  # [K]
    cdef Py_ssize_t widest
    cdef bint any_tail
    # what paths have come by
    cdef Node* nodes
    cdef int* at_place  # [T + 1] the first node of each
    cdef int* node_at  # [T + 1, kinds] number of each node, -1 for none; see choices.pxi
    cdef Choice* choices
    cdef readonly int node_count
    cdef int choice_count, place_count, kinds
    cdef size_t node_room, choice_room, place_room, node_at_room
    # detours.pxi
    cdef Detour* detours
    cdef Path* paths
    cdef int* queue  # a heap of paths
    cdef int* way  # detours of a path, first one last
    cdef int* found  # [n, 3] start, end and label of segments
    cdef int detour_count, path_count, queue_count, way_count, found_count
    cdef size_t detour_room, path_room, queue_room, way_room, found_room

    def __init__(self, Graph graph not None, bint sums):
        self.graph, self.sums = graph, sums
        self.window = np.zeros(graph.bodies, dtype=np.int64)
        self.has_tail = np.zeros(graph.bodies, dtype=np.uint8)

    def __dealloc__(self):
        free(self.numbers)
        free(self.nodes)
        free(self.at_place)
        free(self.node_at)
        free(self.choices)
        free(self.detours)
        free(self.paths)
        free(self.queue)
        free(self.way)
        free(self.found)

    def load(self, Scores scores not None, Py_ssize_t sequence):
        """Begin with the paths of a sequence. RAISES (MemoryError)."""
        self.scores = scores
        self._clear()
        with nogil:
            load(self, sequence)
            if not self.full:
                begin_paths(self)
        self._check()

    def values(self):
        """float64 [P]: value of what follows each state before the first token, if there is one."""
        values = np.empty(self.graph.states)
        cdef double[::1] out = values
        cdef Py_ssize_t p
        for p in range(self.graph.states):
            out[p] = self.beta[p]
        return values

    def next(self):
        """The next best path.

        RETURNS (Optional[tuple[float, int32 [n, 3]]]): its score, and start, end and label of its
            segments; None if there is no further one.
        RAISES (MemoryError)
        """
        cdef bint more
        cdef double score
        self.found_count = 0
        with nogil:
            more = next_path(self, &score)
        self._check()
        return (score, self._segments()) if more else None

    def best(self, Scores scores not None, Py_ssize_t n):
        """The n best paths of every sequence of a batch.

        RETURNS (tuple): int64 [D + 1] first path of each sequence; float64 [m] scores, best ones first;
            int64 [m + 1] first segment of each path; int32 [s, 3] start, end and label.
        RAISES (MemoryError)
        """
        cdef Py_ssize_t d, m = 0, D = scores.sequences
        cdef double score
        offsets = np.zeros(D + 1, dtype=np.int64)
        values, bounds = np.empty(D * n), np.zeros(D * n + 1, dtype=np.int64)
        cdef long long[::1] offset = offsets, bound = bounds
        cdef double[::1] value = values
        self.scores = scores
        self._clear()
        with nogil:
            for d in range(D):
                load(self, d)
                if not self.full:
                    begin_paths(self)
                while m < offset[d] + n and next_path(self, &score):
                    value[m] = score
                    m += 1
                    bound[m] = self.found_count
                offset[d + 1] = m
        self._check()
        return offsets, values[:m], bounds[: m + 1], self._segments()

    def draw(self, const double[:, ::1] uniform not None):
        """A random path, each with its probability.

        uniform (float64 [T + 1, 3]): independent random numbers of [0, 1).
        RETURNS (int32 [n, 3]): start, end and label of its segments; there is a segmentation.
        RAISES (MemoryError)
        """
        with nogil:
            draw_path(self, uniform)
        self._check()
        return self._segments()

    def _segments(self):
        cdef int[:, ::1] out
        cdef Py_ssize_t i
        segments = np.empty((self.found_count, 3), dtype=np.int32)
        out = segments
        for i in range(3 * self.found_count):
            (&out[0, 0])[i] = self.found[i]
        return segments

    def _clear(self):
        self.full = False
        self.found_count = 0

    def _check(self):
        if self.full:
            raise MemoryError(f"{self.node_count} choices, {self.path_count} paths")


include "chart.pxi"
include "rows.pxi"
include "choices.pxi"
include "detours.pxi"
include "draws.pxi"
include "ruled.pxi"
include "ruled_paths.pxi"
include "ruled_spans.pxi"
