# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of attribute values by their distinct values.

Most words of a text occur in it more than once. What depends on one value alone, the number of its
observation or its letters, is found once for each distinct value, and then handed to the tokens.
"""

import numpy as np

__all__ = ["distinct", "entity_columns", "packed_flags", "spread", "spread_lists"]

ctypedef unsigned long long uint64

cdef enum:  # values of ENT_IOB
    INSIDE = 1
    OUTSIDE = 2
    BEGINNING = 3


def distinct(const uint64[::1] column not None):
    """The distinct values of a column, without sorting.

    column (uint64 [N]): one value a token.
    RETURNS (tuple[uint64 [V], int32 [N]]): distinct values, in the order of their first occurrence,
        and the number of each token's.
    """
    cdef Py_ssize_t n = column.shape[0], mask = (1 << int(2 * n).bit_length()) - 1
    cdef Py_ssize_t t, slot, count = 0
    values, codes = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.int32)
    cdef uint64[::1] known = values
    cdef int[::1] out = codes, slots = np.full(mask + 1, -1, dtype=np.int32)
    cdef uint64 h
    with nogil:
        for t in range(n):
            h = column[t] * 0x9E3779B97F4A7C15ULL
            slot = <Py_ssize_t> ((h ^ (h >> 32)) & <uint64> mask)
            while slots[slot] >= 0 and known[slots[slot]] != column[t]:
                slot = (slot + 1) & mask
            if slots[slot] < 0:
                known[count] = column[t]
                slots[slot] = <int> count
                count += 1
            out[t] = slots[slot]
    return values[:count].copy(), codes


def entity_columns(
    Py_ssize_t n,
    const long long[::1] start not None,
    const long long[::1] end not None,
    const uint64[::1] label not None,
):
    """ENT_IOB and ENT_TYPE of n tokens in which there are some entities and nothing else.

    start, end (int64 [S]): first token of each entity, and one past its last; they do not overlap.
    label (uint64 [S]): hash of each one's label.
    RETURNS (uint64 [n, 2]): both attributes.
    """
    columns = np.zeros((n, 2), dtype=np.uint64)
    cdef uint64[:, ::1] out = columns
    cdef Py_ssize_t s, t
    for t in range(n):
        out[t, 0] = OUTSIDE
    for s in range(start.shape[0]):
        assert 0 <= start[s] < end[s] <= n
        for t in range(start[s], end[s]):
            out[t, 0] = INSIDE if t > start[s] else BEGINNING
            out[t, 1] = label[s]
    return columns


def packed_flags(columns, const uint64[::1] others not None, const int[::1] codes not None):
    """Flags of every token in one number: the columns' in the lowest bits, the first one's in bit 0.

    columns (Sequence[uint64 [N]]): the flags, true where they are not 0.
    others (uint64 [V]): higher bits, by distinct value of another column.
    codes (int32 [N]): distinct value of each token.
    RETURNS (uint64 [N]): all bits.
    """
    packed = np.empty(codes.shape[0], dtype=np.uint64)
    cdef uint64[::1] out = packed
    cdef const uint64[::1] column
    cdef Py_ssize_t t, bit
    for t in range(codes.shape[0]):
        out[t] = others[codes[t]]
    for bit, column in enumerate(columns):
        assert column.shape[0] == codes.shape[0]
        for t in range(codes.shape[0]):
            out[t] |= <uint64> (column[t] != 0) << bit
    return packed


def spread(
    const int[::1] numbers not None,
    int at_edge,
    const int[::1] codes not None,
    const long long[::1] offsets not None,
    Py_ssize_t shift,
):
    """The number that belongs to the value `shift` tokens to the right (left if negative) of each
    token, in its own sequence.

    numbers (int32 [V]): number of each distinct value.
    at_edge (int): number just before the first and just after the last token of a sequence.
    codes (int32 [N]): distinct value of each token.
    offsets (int64 [D + 1]): first token of each sequence.
    RETURNS (int32 [N]): -1 for what lies beyond the edges.
    """
    found = np.empty(codes.shape[0], dtype=np.int32)
    cdef int[::1] out = found
    cdef Py_ssize_t d, t, there
    with nogil:
        for d in range(offsets.shape[0] - 1):
            for t in range(offsets[d], offsets[d + 1]):
                there = t + shift
                if offsets[d] <= there < offsets[d + 1]:
                    out[t] = numbers[codes[there]]
                else:
                    out[t] = at_edge if there == offsets[d] - 1 or there == offsets[d + 1] else -1
    return found


def spread_lists(const long long[::1] firsts not None, const int[::1] codes not None):
    """Every entry of the list that belongs to the value of each token.

    firsts (int64 [V + 1]): first entry of each distinct value's list, the lists laid end to end.
    codes (int32 [N]): distinct value of each token.
    RETURNS (tuple[int64 [n], int64 [n]]): token and entry, in the order of both.
    """
    cdef Py_ssize_t t, i, n = 0
    for t in range(codes.shape[0]):
        n += firsts[codes[t] + 1] - firsts[codes[t]]
    token, entry = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    cdef long long[::1] tokens = token, entries = entry
    n = 0
    with nogil:
        for t in range(codes.shape[0]):
            for i in range(firsts[codes[t]], firsts[codes[t] + 1]):
                tokens[n] = t
                entries[n] = i
                n += 1
    return token, entry
