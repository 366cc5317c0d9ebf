# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Spans of many sequences, and weighted interval scheduling: the spans without overlap of largest total gain.
"""

import numpy as np

__all__ = ["by_sequence", "schedule"]


def by_sequence(const long long[:, ::1] places not None, Py_ssize_t sequences):
    """Convert spans to the columns of `types.Segments`.

    places (int64 [n, 4]): sequence, start, end and label of each span, ordered by sequence.
    sequences (int): number D of sequences.
    RETURNS (tuple): int64 [D + 1] first span of each sequence, and int32 [n] starts, ends and labels.
    """
    cdef Py_ssize_t n = places.shape[0], i, d = 0
    columns = np.empty((3, n), dtype=np.int32)
    offsets = np.empty(sequences + 1, dtype=np.int64)
    cdef int[:, ::1] out = columns
    cdef long long[::1] first = offsets
    with nogil:
        for i in range(n):
            while d <= places[i, 0]:
                first[d] = i
                d += 1
            out[0, i], out[1, i], out[2, i] = <int> places[i, 1], <int> places[i, 2], <int> places[i, 3]
        while d <= sequences:
            first[d] = n
            d += 1
    return offsets, *columns


# best_i = max(best_{i+1}, gain_i + best_{next i})          spans by their start
def schedule(
    const long long[::1] offsets not None,
    const int[:] start not None,
    const int[:] end not None,
    const double[::1] gain not None,
):
    """Choose spans that do not overlap, with the largest sum of gains (Kleinberg and Tardos, Algorithm
    Design, 2006, §6.1).

    offsets (int64 [D + 1]): first span of each sequence.
    start, end (int32 [n]): the spans of each sequence, by ascending start.
    gain (float64 [n]): gain of each span; a span whose gain is not above 0 is never chosen.
    RETURNS (int64 [m]): indices of the chosen spans, ascending; deterministic if several sums are equal.
    """
    chosen = np.empty(start.shape[0], dtype=np.int64)
    cdef long long[::1] places = chosen
    cdef unsigned char[::1] keep = np.zeros(start.shape[0], dtype=np.uint8)
    cdef double[::1] best = np.zeros(start.shape[0] + 1)
    cdef int[::1] following = np.empty(start.shape[0], dtype=np.int32)
    cdef Py_ssize_t d, i, low, high, middle, last, count = 0
    with nogil:
        for d in range(offsets.shape[0] - 1):
            last = offsets[d + 1]
            best[last] = 0.0
            for i in range(last - 1, offsets[d] - 1, -1):
                low, high = i + 1, last  # find the first span that starts at or after the end of this one
                while low < high:
                    middle = (low + high) // 2
                    if start[middle] < end[i]:
                        low = middle + 1
                    else:
                        high = middle
                following[i] = <int> low
                best[i] = best[i + 1]
                if gain[i] > 0.0 and gain[i] + best[low] > best[i + 1]:
                    best[i] = gain[i] + best[low]
                    keep[i] = 1
            i = offsets[d]
            while i < last:  # follow the choices from the first span on
                if keep[i]:
                    places[count] = i
                    count += 1
                    i = following[i]
                else:
                    i += 1
    return chosen[:count]
