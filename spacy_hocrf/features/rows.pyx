# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sorts observations that were found template by template into rows by token, with a stable, linear counting
sort. Tokens and numbers have been checked before (`checks.py`), not again here. Also computes signatures
of observations, which tell which of them always occur together.
"""

from libc.stdint cimport uint64_t as uint64
from libc.string cimport memcpy

import numpy as np

from spacy_hocrf.types import Rows

__all__ = ["add_signatures_into", "rows_by_token"]


def rows_by_token(observations, Py_ssize_t n_tokens):
    """Sort observations into the rows of a batch; within a token they keep their order.

    observations (Sequence[Found]): what each template has found. Numbers of -1 are left out.
    n_tokens (int): number N of tokens in the batch.
    RETURNS (Rows): the observations; values are None if no template has weights.
    """
    offsets = np.zeros(n_tokens + 1, dtype=np.int64)
    cdef long long[::1] firsts = offsets
    cdef Py_ssize_t t
    for ids, token, _ in observations:
        _count_into(firsts, token, ids)
    for t in range(n_tokens):
        firsts[t + 1] += firsts[t]
    numbers = np.empty(int(firsts[n_tokens]), dtype=np.int32)
    values = None
    if any(entry.weight is not None for entry in observations):
        values = np.empty(len(numbers), dtype=np.float32)
    cdef long long[::1] cursor = offsets[:n_tokens].copy()
    for ids, token, weight in observations:
        _place_into(numbers, values, cursor, token, ids, weight)
    return Rows(offsets, numbers, values)


cdef int _count_into(
    long long[::1] counts, const long long[::1] token, const int[::1] ids
) except -1:
    """counts[t + 1] += number of known observations of token t."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(ids.shape[0]):
            counts[token[i] + 1] += ids[i] >= 0
    return 0


cdef int _place_into(
    int[::1] numbers,
    float[::1] values,
    long long[::1] cursor,
    const long long[::1] token,
    const int[::1] ids,
    const float[::1] weight,
) except -1:
    """Write known observations at their token's cursor, and advance it."""
    cdef Py_ssize_t i, t
    cdef bint real = values is not None, plain = weight is None
    with nogil:
        for i in range(ids.shape[0]):
            if ids[i] >= 0:
                t = token[i]
                numbers[cursor[t]] = ids[i]
                if real:
                    values[cursor[t]] = 1.0 if plain else weight[i]
                cursor[t] += 1
    return 0


def add_signatures_into(uint64[:, ::1] sums not None, rows, uint64 first):
    """Add two random numbers per token to the sums of its observations. Afterwards, except with probability
    2^-128, sums are equal if and only if observations occur at the same tokens with the same values.

    sums (uint64 [M, 2]): sums of each observation, modulo 2^64; changed in place.
    rows (Rows): observations of N tokens.
    first (int): number of the first token; numbers must be unique among all tokens.
    """
    cdef const long long[::1] offsets = rows.offsets
    cdef const int[::1] ids = rows.ids
    cdef const float[::1] values = rows.values
    cdef bint valued = rows.values is not None
    cdef Py_ssize_t t, r
    cdef uint64 a, b, odd = 1
    with nogil:
        for t in range(offsets.shape[0] - 1):
            a, b = _scrambled(2 * (first + <uint64> t)), _scrambled(2 * (first + <uint64> t) + 1)
            for r in range(offsets[t], offsets[t + 1]):
                if valued:
                    odd = 2 * <uint64> _bits_of(values[r]) + 1
                sums[ids[r], 0] += odd * a
                sums[ids[r], 1] += odd * b


cdef inline uint64 _scrambled(uint64 i) noexcept nogil:
    """The i-th number of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, figure 17)."""
    cdef uint64 z = (i + 1) * 0x9E3779B97F4A7C15ULL
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL
    return z ^ (z >> 31)


cdef inline unsigned int _bits_of(float value) noexcept nogil:
    cdef unsigned int bits
    memcpy(&bits, &value, sizeof(bits))
    return bits
