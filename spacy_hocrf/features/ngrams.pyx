# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Letter n-grams as their StringStore hashes, computed without creating the strings.

The value of a string is its ID if it is one of spaCy's symbols, else the 64-bit
MurmurHash2 of its UTF-8 bytes with seed 1 (Appleby's MurmurHash64A, as in spaCy's `strings.pyx`).
Letters are code points, as in Python's slices.
"""

import numpy as np
from spacy.symbols import IDS

from libc.string cimport memcpy

__all__ = ["affixes", "infixes"]

cdef uint64 MULTIPLIER = 0xC6A4A7935BD1E995ULL
cdef uint64 SEED = 1
cdef Py_ssize_t longest_symbol = 0  # bytes
# hash and ID of each symbol, a hash table with linear probing; 0 for a free slot
cdef uint64[:, ::1] symbols = np.zeros((2048, 2), dtype=np.uint64)


def affixes(
    const unsigned char[::1] text not None,
    const long long[::1] offsets not None,
    Py_ssize_t size,
    bint at_end,
):
    """Return the prefixes or suffixes of one size of V strings.

    text (uint8 [B]): the strings' UTF-8 bytes, concatenated.
    offsets (int64 [V + 1]): first byte of each string.
    size (int): number of letters, at least 1.
    RETURNS (uint64 [V]): the values of the prefixes, or suffixes if `at_end`; 0 for a string that is
        shorter.
    """
    values = np.zeros(offsets.shape[0] - 1, dtype=np.uint64)
    cdef uint64[::1] out = values
    cdef Py_ssize_t v
    cdef const unsigned char* first = &text[0] if text.shape[0] else NULL
    with nogil:
        for v in range(out.shape[0]):
            out[v] = affix(first, offsets[v], offsets[v + 1], size, at_end)
    return values


cdef uint64 affix(
    const unsigned char* text, Py_ssize_t first, Py_ssize_t last, Py_ssize_t size, bint at_end
) noexcept nogil:
    """The value of the first letters of a string, or of the last ones if `at_end`; 0 if it is shorter."""
    cdef Py_ssize_t i
    if at_end:
        i = _letters_back(text, first, last, size)
        return 0 if i < 0 else _value(text, i, last)
    i = _letters_on(text, first, last, size)
    return 0 if i < 0 else _value(text, first, i)


def infixes(
    const unsigned char[::1] text not None, const long long[::1] offsets not None, Py_ssize_t size
):
    """Return all n-grams of each of V strings, in order of position.

    The arguments are those of `affixes`.
    RETURNS (tuple[int64 [V + 1], uint64 [R]]): first n-gram of each string, and the values.
    """
    firsts = np.zeros(offsets.shape[0], dtype=np.int64)
    cdef long long[::1] first_of = firsts
    cdef const unsigned char* letters = &text[0] if text.shape[0] else NULL
    cdef Py_ssize_t v, i, j, n = 0
    with nogil:
        for v in range(offsets.shape[0] - 1):
            for i in range(offsets[v], offsets[v + 1]):
                n += _begins(text[i])
            n -= min(n - first_of[v], size - 1)
            first_of[v + 1] = n
    values = np.empty(n, dtype=np.uint64)
    cdef uint64[::1] out = values
    with nogil:
        for v in range(offsets.shape[0] - 1):
            i = offsets[v]
            j = _letters_on(letters, i, offsets[v + 1], size)
            for n in range(first_of[v], first_of[v + 1]):
                out[n] = _value(letters, i, j)
                i = _letters_on(letters, i, offsets[v + 1], 1)
                j = _letters_on(letters, j, offsets[v + 1], 1)
    return firsts, values


cdef inline bint _begins(unsigned char byte) noexcept nogil:
    """Is this the first byte of a code point?"""
    return byte & 0xC0 != 0x80


cdef inline Py_ssize_t _letters_on(
    const unsigned char* text, Py_ssize_t i, Py_ssize_t last, Py_ssize_t size
) noexcept nogil:
    """Position `size` letters after position i, -1 if that is beyond `last`."""
    while size > 0:
        if i >= last:
            return -1
        i += 1
        while i < last and not _begins(text[i]):
            i += 1
        size -= 1
    return i


cdef inline Py_ssize_t _letters_back(
    const unsigned char* text, Py_ssize_t first, Py_ssize_t i, Py_ssize_t size
) noexcept nogil:
    """Position `size` letters before position i, -1 if that is before `first`."""
    while size > 0:
        if i <= first:
            return -1
        i -= 1
        while not _begins(text[i]):
            i -= 1
        size -= 1
    return i


cdef uint64 _value(const unsigned char* text, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """The StringStore value of a string that is not empty."""
    cdef uint64 h = _hash(text + first, last - first)
    cdef Py_ssize_t slot
    if last - first <= longest_symbol:
        slot = <Py_ssize_t> (h & 2047)
        while symbols[slot, 0]:
            if symbols[slot, 0] == h:
                return symbols[slot, 1]
            slot = (slot + 1) & 2047
    return h


cdef uint64 _hash(const unsigned char* text, Py_ssize_t length) noexcept nogil:
    """MurmurHash64A: eight bytes at a time, in native byte order, then the rest."""
    cdef uint64 h = SEED ^ (<uint64> length * MULTIPLIER), k = 0
    cdef Py_ssize_t i, j
    for i in range(length // 8):
        memcpy(&k, text + 8 * i, 8)
        k *= MULTIPLIER
        k ^= k >> 47
        h = (h ^ (k * MULTIPLIER)) * MULTIPLIER
    if length % 8:
        k = 0
        for j in range(length % 8):
            k |= <uint64> text[length - length % 8 + j] << (8 * j)
        h = (h ^ k) * MULTIPLIER
    h = (h ^ (h >> 47)) * MULTIPLIER
    return h ^ (h >> 47)


def _keep_symbols():
    """Fill `symbols` to at most a half, so that the loop in `_value` is short."""
    global longest_symbol
    cdef const unsigned char[::1] text
    cdef uint64 h
    cdef Py_ssize_t slot
    assert 2 * len(IDS) <= symbols.shape[0]
    for name, number in IDS.items():
        if name:
            text = name.encode()
            h = _hash(&text[0], text.shape[0])
            slot = <Py_ssize_t> (h & 2047)
            while symbols[slot, 0]:
                slot = (slot + 1) & 2047
            symbols[slot, 0], symbols[slot, 1] = h, number
            longest_symbol = max(longest_symbol, text.shape[0])


_keep_symbols()
