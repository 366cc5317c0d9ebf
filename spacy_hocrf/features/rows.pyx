# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Observations found template by template, laid out token by token: a counting sort, stable and
linear. Tokens and numbers have been checked (`checks.py`): nothing here does it again.
"""

import numpy as np

from spacy_hocrf.types import Rows

__all__ = ["rows_by_token"]


def rows_by_token(found, Py_ssize_t n_tokens):
    """Rows of a batch; within a token they are in the order in which they come here.

    found (Sequence[Found]): what each template has found, `token` None for one number a token.
        Numbers of -1 are left out.
    n_tokens (int): N tokens of the batch.
    RETURNS (Rows): the observations; their values are None if no template has weights.
    """
    offsets = np.zeros(n_tokens + 1, dtype=np.int64)
    cdef long long[::1] firsts = offsets
    cdef Py_ssize_t t
    for ids, token, _ in found:
        _count_into(firsts, token, ids)
    for t in range(n_tokens):
        firsts[t + 1] += firsts[t]
    numbers = np.empty(int(firsts[n_tokens]), dtype=np.int32)
    values = None
    if any(entry.weight is not None for entry in found):
        values = np.empty(len(numbers), dtype=np.float32)
    cdef long long[::1] cursor = offsets[:n_tokens].copy()
    for ids, token, weight in found:
        _place_into(numbers, values, cursor, token, ids, weight)
    return Rows(offsets, numbers, values)


cdef int _count_into(
    long long[::1] counts, const long long[::1] token, const int[::1] ids
) except -1:
    """counts[t + 1] += the known observations of token t."""
    cdef Py_ssize_t i
    cdef bint everywhere = token is None
    with nogil:
        for i in range(ids.shape[0]):
            counts[(i if everywhere else token[i]) + 1] += ids[i] >= 0
    return 0


cdef int _place_into(
    int[::1] numbers,
    float[::1] values,
    long long[::1] cursor,
    const long long[::1] token,
    const int[::1] ids,
    const float[::1] weight,
) except -1:
    """Write known observations where the cursor of their token is, and move that on."""
    cdef Py_ssize_t i, t
    cdef bint everywhere = token is None, real = values is not None, plain = weight is None
    with nogil:
        for i in range(ids.shape[0]):
            if ids[i] >= 0:
                t = i if everywhere else token[i]
                numbers[cursor[t]] = ids[i]
                if real:
                    values[cursor[t]] = 1.0 if plain else weight[i]
                cursor[t] += 1
    return 0
