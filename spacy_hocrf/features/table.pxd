ctypedef unsigned long long uint64

cdef class ObservationTable:
    cdef readonly Py_ssize_t width
    cdef Py_ssize_t count
    cdef uint64[:, ::1] _rows  # [capacity, 1 + width] observer, values…
    cdef int[::1] _slots  # [power of two] observation number, -1 for none

    cdef Py_ssize_t _find(self, uint64 observer, const uint64* values, Py_ssize_t n) noexcept nogil
