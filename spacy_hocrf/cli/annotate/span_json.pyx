# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Spans of many texts as JSON, letter by letter what Python's `json` writes of lists of dicts."""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

__all__ = ["span_json"]

cdef enum:
    ROOM = 128  # of a span without its label: names of fields, three numbers of at most 20 letters
    DIGITS = 6
    MILLION = 1000000


def span_json(
    const long long[::1] bounds not None,
    const long long[::1] start not None,
    const long long[::1] end not None,
    const int[::1] label not None,
    const long long[::1] millionths,
    names,
):
    """A list of objects for each text.

    bounds (int64 [D + 1]): first span of each text.
    start, end (int64 [S]): characters of each span, at least 0. label (int32 [S]): place of its label.
    millionths (Optional[int64 [S]]): its score in millionths, 0 to a million; None for null.
    names (Sequence[bytes]): the labels as JSON.
    RETURNS (List[str]): the lists.
    """
    assert start.shape[0] == end.shape[0] == label.shape[0] == bounds[bounds.shape[0] - 1]
    assert millionths is None or millionths.shape[0] == start.shape[0]
    cdef Py_ssize_t d, i, longest = max(map(len, names), default=0), most = 0
    for d in range(bounds.shape[0] - 1):
        most = max(most, bounds[d + 1] - bounds[d])
    cdef char* letters = <char*> malloc(most * (ROOM + longest) + 2)
    if letters == NULL:
        raise MemoryError()
    cdef char* at
    cdef bytes name
    found = []
    try:
        for d in range(bounds.shape[0] - 1):
            at = _put(letters, b"[", 1)
            for i in range(bounds[d], bounds[d + 1]):
                if i > bounds[d]:
                    at = _put(at, b", ", 2)
                at = _put(at, b'{"start": ', 10)
                at = _put_number(at, start[i])
                at = _put(at, b', "end": ', 9)
                at = _put_number(at, end[i])
                at = _put(at, b', "label": ', 11)
                name = names[label[i]]
                at = _put(at, name, len(name))
                at = _put(at, b', "score": ', 11)
                at = _put(at, b"null", 4) if millionths is None else _put_millionths(at, millionths[i])
                at = _put(at, b"}", 1)
            at = _put(at, b"]", 1)
            found.append(PyUnicode_DecodeUTF8(letters, at - letters, NULL))
    finally:
        free(letters)
    return found


cdef inline char* _put(char* at, const char* letters, Py_ssize_t n) noexcept nogil:
    """Write letters; where to go on."""
    memcpy(at, letters, n)
    return at + n


cdef inline char* _put_number(char* at, long long number) noexcept nogil:
    cdef char digits[20]
    cdef Py_ssize_t n = 0
    while True:
        digits[19 - n] = <char> (48 + number % 10)
        number //= 10
        n += 1
        if number == 0:
            return _put(at, &digits[20 - n], n)


cdef inline char* _put_millionths(char* at, long long number) noexcept nogil:
    """A number as Python writes it: 0.25, 1.0, but 2.5e-05."""
    cdef Py_ssize_t i
    if 0 < number < 10:
        at = _put_number(at, number)
        return _put(at, b"e-06", 4)
    if 10 <= number < 100:
        at = _put_number(at, number // 10)
        if number % 10:
            at = _put(at, b".", 1)
            at = _put_number(at, number % 10)
        return _put(at, b"e-05", 4)
    at = _put_number(at, number // MILLION)
    at = _put(at, b".", 1)
    number %= MILLION
    for i in range(DIGITS):
        at[DIGITS - 1 - i] = <char> (48 + number % 10)
        number //= 10
    i = DIGITS
    while i > 1 and at[i - 1] == 48:
        i -= 1
    return at + i
