# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sums over suffix trees: of what all suffixes of a node say, and its transpose; and what the nodes
begin with.
"""

import numpy as np

__all__ = ["add_suffixes", "add_to_suffixes", "arc_constants"]


def add_suffixes(double[:, ::1] values not None, const int[::1] suffix not None):
    """Add to each node what its suffixes have, the longest of which is suffix[node], -1 for none.

    values (float64 [n, M]): changed in place; nodes come after their suffixes.
    """
    cdef Py_ssize_t node, m
    with nogil:
        for node in range(suffix.shape[0]):
            if suffix[node] >= 0:
                for m in range(values.shape[1]):
                    values[node, m] += values[suffix[node], m]


def add_to_suffixes(double[:, ::1] values not None, const int[::1] suffix not None):
    """Add what each node has to all of its suffixes: the transpose of `add_suffixes`.

    values (float64 [n, M]): changed in place.
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
    """What every segment that completes a pattern gets: its constant and, where it has one token, the
    score of that length.

    const (float64 [Z]); length_pattern (int32 [G]); length_score (float64 [G, M]): of the potentials.
    pattern_body (int32 [Z]), arc_pattern (int32 [C]): of the automaton.
    RETURNS (float64 [C]): 0 for an arc that completes no pattern.
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
