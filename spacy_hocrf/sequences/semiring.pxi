# The semirings of chain.pyx: sums of scaled probabilities, sums in log space, and maxima of scores.

from libc.math cimport INFINITY, exp, log, log1p

cdef struct Scaled:
    int never_read

cdef struct Log:
    int never_read

cdef struct Max:
    int never_read

cdef Scaled* SCALED = NULL
cdef Log* LOG = NULL
cdef Max* MAX = NULL

ctypedef fused semiring:
    Scaled
    Log
    Max


cdef inline double zero(semiring* ring) noexcept nogil:
    if semiring is Scaled:
        return 0.0
    else:
        return -INFINITY


cdef inline double lift(semiring* ring, double score) noexcept nogil:
    """The element of the semiring for a score in nats."""
    if semiring is Scaled:
        return exp(score)
    else:
        return score


cdef inline double logarithm(semiring* ring, double x) noexcept nogil:
    """The score in nats of an element of the semiring."""
    if semiring is Scaled:
        return log(x)
    else:
        return x


cdef inline double probability(semiring* ring, double x) noexcept nogil:
    if semiring is Scaled:
        return x
    else:
        return exp(x)


cdef inline double inverse(semiring* ring, double x) noexcept nogil:
    if semiring is Scaled:
        return 1.0 / x
    else:
        return -x


cdef inline double times(semiring* ring, double a, double b) noexcept nogil:
    if semiring is Scaled:
        return a * b
    else:
        return a + b


cdef inline double plus(semiring* ring, double a, double b) noexcept nogil:
    cdef double high, low
    if semiring is Scaled:
        return a + b
    elif semiring is Max:
        return a if a > b else b
    else:
        high, low = max(a, b), min(a, b)
        return high + log1p(exp(low - high)) if low > -INFINITY else high
