# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sums over suffix trees: of what all suffixes of a node say, and its transpose."""

__all__ = ["add_suffixes", "add_to_suffixes"]


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
