# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Weights × observations → scores, and the transpose: expected counts × observations → gradient.

The score of a dense entry (token, label) is Σ weight · value over the features of the token's observations. The features of
observation i are feature_offsets[i] to feature_offsets[i + 1].
"""

import numpy as np

__all__ = ["add_dense_gradient_into", "add_dense_scores_into", "add_rows_into", "expand"]


def add_dense_scores_into(
    double[:, ::1] scores not None,
    rows,
    const long long[::1] feature_offsets not None,
    const int[::1] feature_pattern not None,
    const double[::1] weights not None,
):
    """scores[t, y] += Σ weights[f] · value, over observations of token t and their features f on label y.

    scores (float64 [N, Y]): changed in place.
    rows (Rows): observations whose features are on single labels.
    """
    cdef const long long[::1] offsets = rows.offsets
    cdef const int[::1] ids = rows.ids
    cdef const float[::1] values = rows.values
    cdef Py_ssize_t t, r, f
    cdef double value
    cdef bint plain = values is None
    with nogil:
        for t in range(offsets.shape[0] - 1):
            for r in range(offsets[t], offsets[t + 1]):
                value = 1.0 if plain else values[r]
                for f in range(feature_offsets[ids[r]], feature_offsets[ids[r] + 1]):
                    scores[t, feature_pattern[f]] += weights[f] * value


def add_dense_gradient_into(
    double[::1] gradient not None,
    rows,
    const long long[::1] feature_offsets not None,
    const int[::1] feature_pattern not None,
    const double[:, ::1] expected not None,
    double scale,
):
    """gradient[f] += scale · expected[t, y] · value: the transpose of `add_dense_scores_into`.

    gradient (float64 [F]): changed in place.
    expected (float64 [N, Y]): expected counts of the dense entries.
    """
    cdef const long long[::1] offsets = rows.offsets
    cdef const int[::1] ids = rows.ids
    cdef const float[::1] values = rows.values
    cdef Py_ssize_t t, r, f
    cdef double value
    cdef bint plain = values is None
    with nogil:
        for t in range(offsets.shape[0] - 1):
            for r in range(offsets[t], offsets[t + 1]):
                value = scale if plain else scale * values[r]
                for f in range(feature_offsets[ids[r]], feature_offsets[ids[r] + 1]):
                    gradient[f] += expected[t, feature_pattern[f]] * value


def add_rows_into(
    double[::1] gradient not None,
    const int[::1] features not None,
    const double[::1] expected not None,
    double scale,
    const float[::1] values=None,
):
    """gradient[features[r]] += scale · expected[r] · values[r], values of 1 if None.

    gradient (float64 [F]): changed in place.
    """
    cdef Py_ssize_t r
    cdef bint plain = values is None
    with nogil:
        for r in range(features.shape[0]):
            gradient[features[r]] += scale * expected[r] * (1.0 if plain else values[r])


def expand(const int[::1] ids not None, const long long[::1] feature_offsets not None):
    """Every feature of every observation of a list.

    ids (int32 [n]): observations.
    RETURNS (tuple[int64 [m], int32 [m]]): position in the list and feature, in the list's order.
    """
    cdef Py_ssize_t i, f, m = 0
    for i in range(ids.shape[0]):
        m += feature_offsets[ids[i] + 1] - feature_offsets[ids[i]]
    position, feature = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int32)
    cdef long long[::1] positions = position
    cdef int[::1] features = feature
    m = 0
    with nogil:
        for i in range(ids.shape[0]):
            for f in range(feature_offsets[ids[i]], feature_offsets[ids[i] + 1]):
                positions[m] = i
                features[m] = <int> f
                m += 1
    return position, feature
