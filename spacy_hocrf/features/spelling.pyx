# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Spelling flags of words, computed in one pass over the letters.

    HAS_DIGIT     a digit
    HAS_UPPER     a capital after the first letter
    HAS_HYPHEN    a hyphen or dash
    HAS_PERIOD    a period
    HAS_PUNCT     any other punctuation or symbol, unless all letters are letters or numbers
"""

import unicodedata

import numpy as np

__all__ = ["HYPHENS", "SPELLINGS", "spellings"]

SPELLINGS = ("HAS_DIGIT", "HAS_UPPER", "HAS_HYPHEN", "HAS_PERIOD", "HAS_PUNCT")
HYPHENS = "-\u2010\u2011\u2012\u2013\u2014"

cdef object category = unicodedata.category


def spellings(list words not None, int first=0):
    """Return int32 [n, 1] with one number per word, whose bit first + i is set if SPELLINGS[i] is true."""
    result = np.empty((len(words), 1), dtype=np.int32)
    cdef int[:, ::1] out = result
    cdef Py_ssize_t i
    for i in range(len(words)):
        out[i, 0] = _spelling(words[i]) << first
    return result


cdef int _spelling(str word) except -1:
    cdef Py_UCS4 letter
    cdef bint first = True, digit = False, upper = False, hyphen = False, period = False
    cdef bint mark = False, other = False
    for letter in word:
        if letter == u".":
            period = other = True
        elif letter == u"-" or u"\u2010" <= letter <= u"\u2014":
            hyphen = other = True
        elif letter.isalpha():
            upper |= letter.isupper() and not first
        elif letter.isdigit():
            digit = True
        else:
            other |= not letter.isalnum()
            upper |= letter.isupper() and not first
            mark |= category(letter)[0] in "PS"
        first = False
    return digit | upper << 1 | hyphen << 2 | period << 3 | (mark and other) << 4
