# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Which patterns occur in an assignment, and what they are worth together.

Extents: N vertices, M patterns, E cells of patterns.
"""

__all__ = ["add_up"]


def add_up(
    const int[::1] assignment not None,
    const long long[::1] offsets not None,
    const int[::1] vertices not None,
    const int[::1] states not None,
    const double[::1] weights not None,
    unsigned char[::1] fires=None,
):
    """The weights of all patterns that occur in an assignment.

    assignment (int32 [N]): state of each vertex.
    offsets (int64 [M + 1]), vertices, states (int32 [E]), weights (float64 [M]): the patterns.
    fires (Optional[uint8 [M]]): gets 1 for the patterns that occur, 0 for the others.
    RETURNS (float): their sum.
    """
    cdef Py_ssize_t p, e
    cdef double total = 0.0
    with nogil:
        for p in range(weights.shape[0]):
            e = offsets[p]
            while e < offsets[p + 1] and assignment[vertices[e]] == states[e]:
                e += 1
            if e == offsets[p + 1]:
                total += weights[p]
            if fires is not None:
                fires[p] = e == offsets[p + 1]
    return total
