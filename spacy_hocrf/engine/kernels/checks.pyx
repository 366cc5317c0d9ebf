# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checks of small arrays, for which a call of NumPy would take longer than the check itself."""

from numpy import ndarray

from libc.math cimport isfinite

__all__ = ["all_between", "all_finite", "all_of_kinds", "first_uncarried", "rises_from_0"]


def all_finite(const double[::1] values not None):
    """Is every value finite? RETURNS (bool): true for an empty array."""
    cdef Py_ssize_t i
    cdef bint finite = True
    with nogil:
        for i in range(values.shape[0]):
            finite &= isfinite(values[i]) != 0
    return finite


def all_between(const int[::1] values not None, Py_ssize_t least, Py_ssize_t most):
    """Is every value at least `least` and at most `most`? RETURNS (bool): true for an empty array."""
    cdef Py_ssize_t i
    cdef bint inside = True
    with nogil:
        for i in range(values.shape[0]):
            inside &= least <= values[i] <= most
    return inside


def all_of_kinds(owner, dict kinds not None, tuple optional=()):
    """Are the attributes of an object C-contiguous arrays of the right types and dimensions?

    kinds (Dict[str, Tuple[dtype, int]]): dtype and number of dimensions by attribute name.
    optional (Tuple[str, ...]): names of attributes that may be None.
    RETURNS (bool): false also if another attribute is None, or if a dtype is equal but not the same object.
    """
    for name, (dtype, dimensions) in kinds.items():
        array = getattr(owner, name)
        if array is None and name in optional:
            continue
        if type(array) is not ndarray or array.dtype is not dtype:
            return False
        if array.ndim != dimensions or not array.flags.c_contiguous:
            return False
    return True


def rises_from_0(const long long[::1] offsets not None):
    """Do offsets begin with 0 and never decrease? RETURNS (bool): false for an empty array."""
    cdef Py_ssize_t i
    cdef bint rises = offsets.shape[0] > 0 and offsets[0] == 0
    with nogil:
        for i in range(1, offsets.shape[0]):
            rises &= offsets[i - 1] <= offsets[i]
    return rises


def first_uncarried(
    const int[::1] patterns not None,
    const int[::1] pattern_body not None,
    const unsigned char[::1] pattern_folded not None,
    const unsigned char[::1] parts=None,
    int start=0,
):
    """Find the first label pattern that open states would have to carry, but do not.

    patterns (int32 [n]): numbers of label patterns.
    pattern_body (int32 [Z]), pattern_folded (uint8 [Z]): arrays of the automaton.
    parts (Optional[uint8 [n]]): part of the segment where each is observed; patterns at the part `start`
        need not be carried. None if all are observed elsewhere.
    RETURNS (int): index into `patterns`, -1 if there is none.
    """
    cdef Py_ssize_t i, place = -1
    cdef bint anywhere = parts is not None
    assert not anywhere or parts.shape[0] == patterns.shape[0]
    with nogil:
        for i in range(patterns.shape[0]):
            if pattern_body[patterns[i]] < 0 and not pattern_folded[patterns[i]]:
                if not (anywhere and parts[i] == start):
                    place = i
                    break
    return place
