ctypedef unsigned long long uint64

cdef class Lexicon:
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t _width, _most
    cdef uint64[::1] _values  # [room] in the order in which they were met
    cdef object _numbers  # int32 [room, width]
    cdef int[::1] _slots  # [power of two] row of a value, -1 for none

    cdef _new(self, Py_ssize_t before)
    cdef _codes(self, const uint64[::1] column)
    cdef _grow(self)
    cdef Py_ssize_t _slot(self, uint64 value) noexcept nogil
