cdef class Structure:
    cdef const long long[::1] feature_offsets
    cdef const int[::1] feature_pattern
    cdef const int[::1] state_offsets, state_arcs, state_suffix, entering_offsets, entering
    cdef const int[::1] arc_label, arc_suffix, arc_target, arc_pattern, arc_register
    cdef const int[:, ::1] additions
    cdef Py_ssize_t labels, states, arcs, registers, longest, width


cdef class Chain:
    cdef Structure structure
    cdef const long long[::1] offsets, row_offsets
    cdef const int[::1] attribute
    cdef const double[::1] value, weights
    cdef bint plain, deep, apart, summed, expected
    cdef double decay, spread, total
    cdef Py_ssize_t first, n_items
    # of the sequence that was read
    cdef double[:, ::1] scores, lifted, alpha, chance
    cdef double[::1] norm, arc_weight, arc_lifted, arc_count, x, below, beta
    cdef int[::1] gold_arc

    cdef void score(self, Py_ssize_t number, double decay) noexcept nogil
    cdef double sum(self) noexcept nogil
    cdef double expect(self) noexcept nogil
    cdef double score_of(self, const int[::1] label) noexcept nogil
