# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The semirings, the views of one batch, and the recurrences that forward_backward and viterbi share."""

from libc.math cimport INFINITY, exp, log1p


cdef struct Scaled:  # (+, ×) on probabilities, rescaled at every boundary
    int tag

cdef struct Log:  # (logaddexp, +): slower, never underflows
    int tag

cdef struct Max:  # (max, +): the best segmentation
    int tag

ctypedef fused semiring:
    Scaled
    Log
    Max

ctypedef fused summing:
    Scaled
    Log

cdef enum:  # Potentials.allowed
    FIRST = 1
    CONTINUE = 2
    LAST = 4

cdef enum:  # Potentials.row_part
    PART_START = 0
    PART_END = 1
    PART_TOKEN = 2
    PART_INNER = 3


cdef inline double zero(semiring* _) noexcept nogil:
    if semiring is Scaled:
        return 0.0
    else:
        return -INFINITY


cdef inline double lift(semiring* _, double score) noexcept nogil:
    if semiring is Scaled:
        return exp(score)
    else:
        return score


cdef inline double times(semiring* _, double a, double b) noexcept nogil:
    if semiring is Scaled:
        return a * b
    else:
        return a + b


cdef inline double plus(semiring* _, double a, double b) noexcept nogil:
    cdef double high, low
    if semiring is Scaled:
        return a + b
    else:
        high = a if a > b else b
        low = b if a > b else a
        if semiring is Log and low > -INFINITY:  # log 0 + x = x, and -inf - -inf is nan
            return high + log1p(exp(low - high))
        return high


cdef class Chain:
    """Views of an automaton; see automaton.Automaton for the extents."""
    cdef readonly object automaton
    cdef Py_ssize_t states, arcs, registers, bodies, opens, labels, patterns
    cdef const int[::1] limits, state_suffix, state_offsets, state_arcs
    cdef const int[::1] arc_label, arc_suffix, arc_target, arc_open, arc_register
    cdef const int[:, ::1] additions
    cdef const int[::1] pattern_arc, pattern_body
    cdef const unsigned char[::1] pattern_folded
    cdef const int[::1] body_label, body_suffix, body_offsets, open_target
    cdef const int[::1] tree_offsets, tree  # [K + 1], the bodies that end in each body, itself included


cdef class Batch:
    """Views of the log potentials of a batch, and what depends on the batch but on no sequence."""
    cdef readonly Py_ssize_t sequences, tokens, longest, rows, spans, lengths
    cdef readonly bint scalable  # false if a weight alone would leave the range of a double
    cdef readonly object potentials
    cdef const long long[::1] offsets
    cdef const double[:, ::1] start, end, token, inner
    cdef const unsigned char[:, ::1] allowed
    cdef const long long[::1] row_offsets
    cdef const unsigned char[::1] row_part
    cdef const int[::1] row_pattern
    cdef const double[::1] row_score
    cdef const long long[::1] span_offsets  # [D + 1]
    cdef const long long[::1] span_start, span_end
    cdef const int[::1] span_pattern
    cdef const double[::1] span_score
    cdef const long long[::1] span_by_end  # [S] the spans in order of their end
    cdef const double[::1] arc_const  # [C] Σ const over the patterns that end the arc
    cdef const double[:, ::1] body_length  # [K, M] length score of a body, its suffixes included
    cdef const double[:, ::1] initial, final  # [D, P] log alpha before the first token, log beta after the last


cdef class Workspace:
    """Buffers for one sequence at a time; every call overwrites them. T tokens, W lengths of all windows together."""
    cdef Py_ssize_t base, tokens, sequence  # the loaded sequence
    cdef Py_ssize_t span_low, span_high, span_next
    cdef bint any_free
    cdef double[:, ::1] token, inner, end  # [K, T] scores of the bodies
    cdef unsigned char[::1] has_rows  # [T] some score belongs to arcs that start at this token
    cdef long long[::1] window, window_offset, reach  # [K] lengths summed one by one; their place in `score`; those allowed
    cdef unsigned char[::1] free  # [K] segments longer than the window are allowed
    cdef double[:, ::1] alpha, beta  # [T + 1, P]
    cdef double[:, ::1] entry  # [T + 1, O] segments that start here
    cdef double[:, ::1] tail, rest  # [T + 1, O] segments open for longer than the window, seen from the left and the right
    cdef double[::1] alpha_scale, beta_scale, entry_scale  # [T + 1] log scales
    cdef double[:, ::1] tail_scale, rest_scale  # [T + 1, K]
    cdef unsigned char[:, ::1] entering, tailing, resting  # [T + 1, K] any mass in this body?
    cdef double[::1] x, adjoint  # [registers]
    cdef double[::1] factor, arc_value  # [C] row scores of the arcs at one token, lifted; scratch
    cdef double[::1] first  # [Y] lifted score of starting a segment here
    cdef double first_scale
    cdef double[::1] arc_weight  # [C] lifted const scores
    cdef double[::1] score  # [W] log scores of the segments that meet at a boundary, -inf for impossible ones
    cdef double[::1] tail_score  # [K]
    cdef double[::1] total  # [O]
    cdef double log_partition


cdef void load(Chain chain, Batch batch, Workspace ws, Py_ssize_t sequence) noexcept nogil
cdef void lift_arcs(semiring* _, Chain chain, Batch batch, Workspace ws) noexcept nogil
cdef void weigh_starts(semiring* _, Chain chain, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil
cdef void sum_entries(semiring* _, Chain chain, Workspace ws, Py_ssize_t u) noexcept nogil
cdef bint forward(semiring* _, Chain chain, Batch batch, Workspace ws) noexcept nogil
cdef void score_endings(Chain chain, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil
