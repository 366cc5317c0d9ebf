# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rows of a table, gathered token by token, and the transpose."""

__all__ = ["add_gathered_into", "add_scattered_into"]


def add_gathered_into(
    double[:, ::1] scores not None, const double[:, ::1] table not None, const int[::1] codes not None
):
    """scores[t] += table[codes[t]].

    scores (float64 [N, Y]): changed in place.
    table (float64 [U, Y]); codes (int32 [N]): its row for each token.
    """
    cdef Py_ssize_t t, y, labels = table.shape[1]
    assert scores.shape[0] == codes.shape[0] and scores.shape[1] == labels
    with nogil:
        for t in range(codes.shape[0]):
            for y in range(labels):
                scores[t, y] += table[codes[t], y]


def add_scattered_into(
    double[:, ::1] table not None,
    const int[::1] codes not None,
    const double[:, ::1] expectations not None,
    double scale,
):
    """table[codes[t]] += scale · expectations[t].

    table (float64 [U, Y]): changed in place.
    codes (int32 [N]); expectations (float64 [N, Y]): of each token.
    """
    cdef Py_ssize_t t, y, labels = table.shape[1]
    assert expectations.shape[0] == codes.shape[0] and expectations.shape[1] == labels
    with nogil:
        for t in range(codes.shape[0]):
            for y in range(labels):
                table[codes[t], y] += scale * expectations[t, y]
