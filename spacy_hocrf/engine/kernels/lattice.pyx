# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The segmentations of one sequence as the paths of a lattice: the n best ones, and random ones.

A path is a sequence of choices. In a state at u it takes an arc, which opens a segment. In a segment it
chooses the end, or to be longer than the window of lengths with scores of their own; then it ends or goes
on token by token. The only assumption about the automaton is that every segmentation has exactly one
path: a state takes the arcs whose sums in the sum program (sums.py) contain it.

The chart has the value of all that may follow each choice, in (max, +) or in (logaddexp, +). Choices
themselves are only listed at nodes that a path reaches.
"""

from libc.math cimport INFINITY, exp, log, log1p
from libc.stdlib cimport calloc, free, qsort, realloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

__all__ = ["Graph", "Lattice", "Ruling", "Scores"]

include "lattice_types.pxi"


cdef class Graph:
    """Views of an automaton for lattices; see automaton.Automaton for the extents."""
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
        """List the arcs that each state takes: those whose register's sum contains the state."""
        cdef Py_ssize_t i
        offsets, places = np.zeros(self.states + 1, dtype=np.int32), np.zeros(self.states, dtype=np.int32)
        cdef int[::1] stack = np.zeros(self.registers + 1, dtype=np.int32)
        cdef int[::1] place = places, exits = np.zeros(0, dtype=np.int32)
        cdef bint ruling = True
        for _ in range(2):
            with nogil:
                for i in range(self.taken.shape[0]):
                    self._add_exits(self.taken_register[i], self.taken[i], stack, place, exits, ruling)
            if ruling:
                np.cumsum(places, out=offsets[1:])
                places[:] = offsets[: self.states]
                exits = np.zeros(offsets[self.states], dtype=np.int32)
                ruling = False
        self.exit_offsets, self.exits = offsets, exits

    cdef void _add_exits(
        self, int register, int arc, int[::1] stack, int[::1] place, int[::1] exits, bint ruling
    ) noexcept nogil:
        """For each state in the sum of a register, count the arc in `place`, and list it unless `ruling`."""
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
                exits[place[at]] = arc
            place[at] += 1


cdef class Scores:
    """Views of the log potentials of a batch; see problem.Problem."""
    cdef Py_ssize_t sequences, rows, lengths
    cdef bint has_start, has_end, has_inner, has_final
    cdef const long long[::1] offsets
    cdef const double[:, ::1] start, end, token, inner
    cdef const unsigned char[:, ::1] allowed
    cdef const long long[::1] row_offsets
    cdef const int[::1] row_target  # an arc, or ~(4 · body + part)
    cdef const double[::1] row_score
    cdef const long long[::1] span_offsets, span_start, span_end
    cdef const int[::1] span_pattern
    cdef const double[::1] span_score
    cdef const double[::1] arc_const, weight  # [C], [n] const scores of the arcs, in the order of `taken`
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
    """A lattice of one sequence at a time, which `load` replaces by the next one.

    graph (Graph): views of the automaton.
    sums (bool): the chart has sums, for `draw`, instead of best values, for `next` and `best`.
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
    cdef double *ended  # [T + 1, O] beta of the open state's target
    cdef double *opened  # [T, O] value of a segment that starts at a token, start score included
    cdef double *rest  # [T + 2, O] value of what may follow in a segment longer than its window
    cdef double *beta  # [registers] at the current boundary
    cdef double *own  # [C] scores of the arcs' own rows at the current token; 0 otherwise
    cdef double *summed  # [C] the same with the rows of their suffixes
    cdef double *extra  # [K, widest + 1] scores of spans from the current token, by length; 0 otherwise
    cdef long long[::1] window  # [K] lengths that are summed one by one
    cdef unsigned char[::1] has_tail  # [K]
    cdef Py_ssize_t widest
    cdef bint any_tail
    # choices.pxi
    cdef Node* nodes
    cdef int* at_place  # [T + 1] first node of each place, -1 for none
    cdef int* node_at  # [T + 1, kinds] number of each node, -1 for none
    cdef Choice* choices
    cdef readonly int node_count
    cdef int choice_count, place_count, kinds
    cdef size_t node_room, choice_room, place_room, node_at_room
    # detours.pxi
    cdef Detour* detours
    cdef Path* paths
    cdef int* queue  # a heap of paths
    cdef int* way  # stack: nodes without a heap of detours, or paths from one back to the best
    cdef int* segments  # [n, 3] start, end and label of segments
    cdef int detour_count, path_count, queue_count, way_count, segment_count
    cdef size_t detour_room, path_room, queue_room, way_room, segment_room

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
        free(self.segments)

    def load(self, Scores scores not None, Py_ssize_t sequence):
        """Make the lattice of a sequence of a batch. RAISES (MemoryError)."""
        self.scores = scores
        self._clear()
        with nogil:
            load(self, sequence)
            if not self.full:
                begin_paths(self)
        self._check()

    def values(self):
        """Value, float64 [P], of all that may follow each state before the first token; T must be above 0."""
        values = np.empty(self.graph.states)
        cdef double[::1] out = values
        cdef Py_ssize_t p
        for p in range(self.graph.states):
            out[p] = self.beta[p]
        return values

    def next(self):
        """Find the next best path.

        RETURNS (Optional[tuple[float, int32 [n, 3]]]): its score, and start, end and label of its
            segments; None if there are no more paths.
        RAISES (MemoryError)
        """
        cdef bint more
        cdef double score
        self.segment_count = 0
        with nogil:
            more = next_path(self, &score)
        self._check()
        return (score, self._segments()) if more else None

    def best(self, Scores scores not None, Py_ssize_t n):
        """Find the n best paths of every sequence of a batch, or all if there are fewer.

        RETURNS (tuple): int64 [D + 1] first path of each sequence; float64 [m] scores, best ones first;
            int64 [m + 1] first segment of each path; int32 [s, 3] start, end and label of the segments.
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
                    bound[m] = self.segment_count
                offset[d + 1] = m
        self._check()
        return offsets, values[:m], bounds[: m + 1], self._segments()

    def draw(self, const double[:, ::1] uniform not None):
        """Draw a path with its probability; the sequence must have a segmentation.

        uniform (float64 [T + 1, 3]): independent random numbers in [0, 1).
        RETURNS (int32 [n, 3]): start, end and label of the path's segments.
        RAISES (MemoryError)
        """
        with nogil:
            draw_path(self, uniform)
        self._check()
        return self._segments()

    def _segments(self):
        cdef int[:, ::1] out
        cdef Py_ssize_t i
        segments = np.empty((self.segment_count, 3), dtype=np.int32)
        out = segments
        for i in range(3 * self.segment_count):
            (&out[0, 0])[i] = self.segments[i]
        return segments

    def _clear(self):
        self.full = False
        self.segment_count = 0

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
