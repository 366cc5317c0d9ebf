# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of attribute values, processed by distinct value.

Most words of a text occur in it more than once, and occurred in earlier texts. What depends on one value
alone, such as the number of its observation or its letters, is computed once per distinct value, and then
copied to the tokens.
"""

import numpy as np

__all__ = [
    "Lexicon",
    "any_set",
    "distinct",
    "end_to_end",
    "entity_columns",
    "packed_flags",
    "set_labels",
    "spread_lists",
]

cdef enum:  # values of ENT_IOB
    INSIDE = 1
    OUTSIDE = 2
    BEGINNING = 3


def distinct(const uint64[::1] column not None):
    """Return the distinct values of a column, without sorting.

    column (uint64 [N]): one value per token.
    RETURNS (tuple[uint64 [V], int32 [N]]): distinct values, in the order of their first occurrence,
        and for each token the number of its value.
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


def end_to_end(list strings not None):
    """Return the UTF-8 bytes of strings, concatenated.

    RETURNS (tuple[uint8 [B], int64 [V + 1]]): the bytes, and the first byte of each string.
    """
    cdef Py_ssize_t v
    encoded = [(<str> string).encode() for string in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    cdef long long[::1] first = offsets
    for v in range(len(encoded)):
        first[v + 1] = first[v] + len(<bytes> encoded[v])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def any_set(const uint64[::1] column not None):
    """Is any value not 0?"""
    cdef Py_ssize_t t
    cdef uint64 bits = 0
    for t in range(column.shape[0]):
        bits |= column[t]
    return bits != 0


cdef class Lexicon:
    """A cache, kept from batch to batch, of values and the whole numbers that depend on each value alone.

    width (int): numbers per value.
    most (int): values that are kept; when there are more, the cache is cleared.

    Threads that share it hold `locks.CACHES`; arrays that it has returned never change.
    """

    def __init__(self, Py_ssize_t width, Py_ssize_t most):
        self._width, self._most = width, most
        self.clear()

    def clear(self):
        """Forget all values."""
        self._slots = np.full(256, -1, dtype=np.int32)  # first, so that nothing has changed if it fails
        self.count = 0
        self._values = np.empty(64, dtype=np.uint64)
        self._numbers = np.empty((64, self._width), dtype=np.int32)

    def look_up(self, const uint64[::1] column not None, find):
        """Return the numbers of every value of a column.

        column (uint64 [N]): the values.
        find (Callable[[uint64 [n]], int32 [n, width]]): computes the numbers of values that are not cached.
        RETURNS (tuple[int32 [N], int32 [V, width]]): row of each value, and the rows.
        """
        cdef Py_ssize_t before
        if self.count > self._most:
            self.clear()
        before = self.count
        try:
            codes = self._codes(column)
            if self.count > before:
                self._numbers[before : self.count] = find(self._new(before))
        except BaseException:  # also MemoryError and KeyboardInterrupt: some values have no numbers yet
            self.clear()
            raise
        return codes, self._numbers

    cdef _new(self, Py_ssize_t before):
        """The values from number `before` on, uint64 [n]."""
        cdef Py_ssize_t i
        values = np.empty(self.count - before, dtype=np.uint64)
        cdef uint64[::1] out = values
        for i in range(before, self.count):
            out[i - before] = self._values[i]
        return values

    cdef _codes(self, const uint64[::1] column):
        """The row of each value, int32 [N]; new values are appended as new rows."""
        cdef Py_ssize_t t, n = column.shape[0], slot
        codes = np.empty(n, dtype=np.int32)
        cdef int[::1] out = codes
        for t in range(n):
            slot = self._slot(column[t])
            if self._slots[slot] < 0:
                if self.count == self._values.shape[0]:
                    self._grow()
                    slot = self._slot(column[t])
                self._values[self.count] = column[t]
                self._slots[slot] = <int> self.count
                self.count += 1
            out[t] = self._slots[slot]
        return codes

    cdef _grow(self):
        """Double the capacity, in new arrays."""
        cdef Py_ssize_t i, room = 2 * self.count
        values, numbers = np.empty(room, np.uint64), np.empty((room, self._width), np.int32)
        values[: self.count], numbers[: self.count] = self._values, self._numbers
        self._values, self._numbers = values, numbers
        self._slots = np.full(4 * room, -1, dtype=np.int32)
        for i in range(self.count):
            self._slots[self._slot(self._values[i])] = <int> i

    cdef inline Py_ssize_t _slot(self, uint64 value) noexcept nogil:
        """Slot of the value, or the free slot for it."""
        cdef uint64 h = value * 0x9E3779B97F4A7C15ULL
        cdef Py_ssize_t mask = self._slots.shape[0] - 1, slot = <Py_ssize_t> ((h ^ (h >> 32)) & <uint64> mask)
        while self._slots[slot] >= 0 and self._values[self._slots[slot]] != value:
            slot = (slot + 1) & mask
        return slot


def entity_columns(
    const long long[::1] offsets not None, spans, const uint64[::1] hashes not None
):
    """Return ENT_IOB and ENT_TYPE of the tokens of D sequences with these entities and no others.

    offsets (int64 [D + 1]): first token of each sequence.
    spans (Segments): the entities, which do not overlap.
    hashes (uint64 [Y]): hashes of the labels.
    RETURNS (uint64 [N, 2]): both attributes.
    """
    cdef const long long[::1] first = spans.offsets
    cdef const int[::1] start = spans.start, end = spans.end, label = spans.label
    cdef Py_ssize_t d, s, t, D = offsets.shape[0] - 1
    assert first.shape[0] == D + 1 and first[D] <= min(start.shape[0], end.shape[0], label.shape[0])
    columns = np.empty((offsets[D], 2), dtype=np.uint64)
    cdef uint64[:, ::1] out = columns
    for t in range(out.shape[0]):
        out[t, 0], out[t, 1] = OUTSIDE, 0
    for d in range(D):
        for s in range(first[d], first[d + 1]):
            assert 0 <= start[s] < end[s] <= offsets[d + 1] - offsets[d]
            assert 0 <= label[s] < hashes.shape[0]
            for t in range(offsets[d] + start[s], offsets[d] + end[s]):
                out[t, 0], out[t, 1] = INSIDE, hashes[label[s]]
            out[offsets[d] + start[s], 0] = BEGINNING
    return columns


def set_labels(
    uint64[::1] column not None,
    const long long[::1] offsets not None,
    spans,
    const uint64[::1] hashes not None,
):
    """Set the tokens of spans in D sequences to the spans' labels.

    column (uint64 [N]): hash of each token's label, changed in place.
    offsets (int64 [D + 1]), spans (Segments), hashes (uint64 [Y]): as in `entity_columns`.
    """
    cdef const long long[::1] first = spans.offsets
    cdef const int[::1] start = spans.start, end = spans.end, label = spans.label
    cdef Py_ssize_t d, s, t, D = offsets.shape[0] - 1
    assert column.shape[0] == offsets[D] and first.shape[0] == D + 1
    assert first[D] <= min(start.shape[0], end.shape[0], label.shape[0])
    for d in range(D):
        for s in range(first[d], first[d + 1]):
            assert 0 <= start[s] < end[s] <= offsets[d + 1] - offsets[d]
            assert 0 <= label[s] < hashes.shape[0]
            for t in range(offsets[d] + start[s], offsets[d] + end[s]):
                column[t] = hashes[label[s]]


def packed_flags(columns, const int[::1] codes not None, const int[:, ::1] others not None):
    """Pack the flags of every token into one number: those of the columns in the lowest bits, bit 0 first.

    columns (Sequence[uint64 [N]]): the flags, true where they are not 0.
    codes (int32 [N]), others (int32 [V, 1]): row of each token, and the higher bits of each row.
    RETURNS (uint64 [N]): all bits.
    """
    packed = np.empty(codes.shape[0], dtype=np.uint64)
    cdef uint64[::1] out = packed
    cdef const uint64[::1] column
    cdef Py_ssize_t t, bit
    for t in range(codes.shape[0]):
        out[t] = others[codes[t], 0]
    for bit, column in enumerate(columns):
        assert column.shape[0] == codes.shape[0]
        for t in range(codes.shape[0]):
            out[t] |= <uint64> (column[t] != 0) << bit
    return packed


def spread_lists(const long long[::1] firsts not None, const int[::1] codes not None):
    """Return all entries of the list that belongs to each token's value.

    firsts (int64 [V + 1]): first entry of each distinct value's list, in the concatenated lists.
    codes (int32 [N]): distinct value of each token.
    RETURNS (tuple[int64 [n], int64 [n]]): token and entry, sorted by both.
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
