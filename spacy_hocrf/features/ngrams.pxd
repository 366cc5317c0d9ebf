ctypedef unsigned long long uint64

cdef uint64 affix(
    const unsigned char* text, Py_ssize_t first, Py_ssize_t last, Py_ssize_t size, bint at_end
) noexcept nogil
