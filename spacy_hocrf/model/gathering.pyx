# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What lies at some places, rows of a table or single weights, and the transpose."""

import numpy as np

__all__ = ["add_gathered_into", "add_rows_into", "add_scattered_into", "gather"]


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


def gather(
    const double[::1] placed not None,
    const int[::1] place not None,
    const float[::1] values=None,
    result=None,
):
    """What lies at some places, times values of 1 if None.

    result (Optional[float64 [n]]): where it goes; by default an array of its own.
    RETURNS (float64 [n]): placed[place[i]] · values[i].
    """
    if result is None:
        result = np.empty(place.shape[0])
    cdef double[::1] out = result
    assert out.shape[0] == place.shape[0]
    cdef bint plain = values is None
    cdef Py_ssize_t i
    with nogil:
        if plain:
            for i in range(place.shape[0]):
                out[i] = placed[place[i]]
        else:
            for i in range(place.shape[0]):
                out[i] = placed[place[i]] * values[i]
    return result


def add_rows_into(
    double[::1] placed not None,
    const int[::1] places not None,
    const double[::1] expected not None,
    double scale,
    const float[::1] values=None,
):
    """placed[places[r]] += scale · expected[r] · values[r], values of 1 if None.

    placed (float64 [S]): the gradient; changed in place.
    """
    assert places.shape[0] == expected.shape[0]
    cdef Py_ssize_t r
    cdef bint plain = values is None
    with nogil:
        if plain:
            for r in range(places.shape[0]):
                placed[places[r]] += scale * expected[r]
        else:
            for r in range(places.shape[0]):
                placed[places[r]] += scale * expected[r] * values[r]
