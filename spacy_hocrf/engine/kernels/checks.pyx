# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Questions about small arrays that numpy would take longer to begin with than to answer."""

from numpy import ndarray

from libc.math cimport isfinite

__all__ = ["all_between", "all_finite", "all_of_kinds", "first_uncarried", "rises_from_0"]


def all_finite(const double[::1] values not None):
    """Is no value infinite or nan? RETURNS (bool): true for none."""
    cdef Py_ssize_t i
    cdef bint finite = True
    with nogil:
        for i in range(values.shape[0]):
            finite &= isfinite(values[i]) != 0
    return finite


def all_between(const int[::1] values not None, Py_ssize_t least, Py_ssize_t most):
    """Is every value at least `least` and at most `most`? RETURNS (bool): true for none."""
    cdef Py_ssize_t i
    cdef bint inside = True
    with nogil:
        for i in range(values.shape[0]):
            inside &= least <= values[i] <= most
    return inside


def all_of_kinds(owner, dict kinds not None, tuple optional=()):
    """Are all attributes of an object contiguous arrays of their types and dimensions?

    kinds (Dict[str, Tuple[dtype, int]]): type and number of dimensions by the attribute's name.
    optional (Tuple[str, ...]): those that may be None.
    RETURNS (bool): false where one is None, too, or of an equal type that is another object.
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
    """Is there a first value, 0, and none below the one before it?"""
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
    """Where the first label pattern stands that no open state remembers.

    patterns (int32 [n]): label patterns.
    pattern_body (int32 [Z]), pattern_folded (uint8 [Z]): of the automaton.
    parts (Optional[uint8 [n]]): where in its segment each is asked for; at `start` none needs to be
        remembered. None for elsewhere.
    RETURNS (int): -1 if there is none.
    """
    cdef Py_ssize_t i, found = -1
    cdef bint anywhere = parts is not None
    assert not anywhere or parts.shape[0] == patterns.shape[0]
    with nogil:
        for i in range(patterns.shape[0]):
            if pattern_body[patterns[i]] < 0 and not pattern_folded[patterns[i]]:
                if not (anywhere and parts[i] == start):
                    found = i
                    break
    return found
