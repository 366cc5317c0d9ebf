# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sums over the suffix trees of arcs and bodies, in both directions, and the scores they begin with."""

import numpy as np

__all__ = ["add_suffixes", "add_to_suffixes", "arc_constants"]


def add_suffixes(double[:, ::1] values not None, const int[::1] suffix not None):
    """Add the values of all of its suffixes to each node.

    values (float64 [n, M]): changed in place.
    suffix (int32 [n]): the longest suffix of each node, a node before it; -1 for none.
    """
    cdef Py_ssize_t node, m
    with nogil:
        for node in range(suffix.shape[0]):
            if suffix[node] >= 0:
                for m in range(values.shape[1]):
                    values[node, m] += values[suffix[node], m]


def add_to_suffixes(double[:, ::1] values not None, const int[::1] suffix not None):
    """Add the values of each node to all of its suffixes: the transpose of `add_suffixes`.

    values (float64 [n, M]): changed in place.
    suffix (int32 [n]): the longest suffix of each node, a node before it; -1 for none.
    """
    cdef Py_ssize_t node, m
    with nogil:
        for node in range(suffix.shape[0] - 1, -1, -1):
            if suffix[node] >= 0:
                for m in range(values.shape[1]):
                    values[suffix[node], m] += values[node, m]


def arc_constants(
    const double[::1] const not None,
    const int[::1] length_pattern not None,
    const double[:, ::1] length_score not None,
    const int[::1] pattern_body not None,
    const int[::1] arc_pattern not None,
):
    """The score that every segment which takes an arc gets for the pattern that the arc completes: the
    pattern's constant and, if the pattern has no body, the score of length 1.

    const (float64 [Z]), length_pattern (int32 [G]), length_score (float64 [G, M]): potentials.
    pattern_body (int32 [Z]), arc_pattern (int32 [C]): arrays of the automaton.
    RETURNS (float64 [C]): 0 for arcs that complete no pattern.
    """
    of_pattern, of_arc = np.array(const), np.zeros(arc_pattern.shape[0])
    cdef double[::1] scores = of_pattern, out = of_arc
    cdef Py_ssize_t i
    with nogil:
        for i in range(length_pattern.shape[0]):
            if pattern_body[length_pattern[i]] < 0:
                scores[length_pattern[i]] += length_score[i, 0]
        for i in range(arc_pattern.shape[0]):
            if arc_pattern[i] >= 0:
                out[i] = scores[arc_pattern[i]]
    return of_arc
