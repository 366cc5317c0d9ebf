# Which lanes have lost a live value. The sequences of these are redone in log space.


cdef inline flags within(Workspace ws, Py_ssize_t u) noexcept nogil:
    """The lanes whose sequence has a token u and has not been lost."""
    return less(splat(u), (<lanes*> &ws.extent[0])[0])


cdef void lose(Workspace ws, flags found) noexcept nogil:
    """Note the lanes in which a live value has been lost."""
    cdef int lane
    for lane in range(LANES):
        if (<long long*> &found)[lane]:
            ws.lost[lane] = True
            ws.extent[lane] = 0.0
