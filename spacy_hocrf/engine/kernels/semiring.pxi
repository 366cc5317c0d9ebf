# The three semirings of the recurrences, for LANES sequences side by side.
#
#     SCALED  (+, ×) on probabilities, one log scale per lane and boundary
#     LOG     (logaddexp, +) on log probabilities: slower, never underflows
#     MAX     (max, +) on log scores: the best segmentation
#
# A recurrence is written once and compiled for each of them. Its first argument is a pointer that
# is never dereferenced: SCALED, LOG and MAX are null pointers of different *types*, from which
# Cython's fused types choose the specialisation. So `plus(ring, a, b)` is a + b in the code that
# `forward(SCALED, …)` calls, and `if semiring is Scaled` costs nothing at run time.
#
# In scaled space a value may still underflow. Since structural zeros are exact zeros, a value that
# is (nearly) zero although one of the values it is computed from is not has been *lost*, and the
# sequence is computed again in log space. Impossible segments have the log score -inf, and so does
# every token of a lane beyond the end of its sequence.

cdef extern from "lanes.h" nogil:
    enum:
        LANES
    ctypedef double lanes
    ctypedef long long flags
    lanes splat(double x)
    flags as_flags(lanes x)
    flags less(lanes a, lanes b)
    flags at_least(lanes a, lanes b)
    flags differ(lanes a, lanes b)
    int any_of "any" (flags f)
    lanes choose(flags f, lanes a, lanes b)
    lanes larger(lanes a, lanes b)
    lanes smaller(lanes a, lanes b)
    lanes lanes_exp(lanes x)
    lanes exponent(lanes x)
    lanes power_of_two(lanes e)
    lanes log_add(lanes a, lanes b)

cdef enum:
    MAX_LANES = 8

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

ctypedef fused summing:
    Scaled
    Log

cdef double LN2 = 0.6931471805599453
cdef double LOST = 1e-280  # a nonzero value below this may have lost digits
cdef double TOO_LARGE = 1e300
# the largest value at a boundary may be in this range without rescaling
cdef double RESCALE_ABOVE = 2.0 ** 40, RESCALE_BELOW = 2.0 ** -40


cdef inline lanes zero(semiring* ring) noexcept nogil:
    if semiring is Scaled:
        return splat(0.0)
    else:
        return splat(-INFINITY)


cdef inline lanes lift(semiring* ring, lanes score) noexcept nogil:
    """The element of the semiring for a log score."""
    if semiring is Scaled:
        return lanes_exp(score)
    else:
        return score


cdef inline lanes times(semiring* ring, lanes a, lanes b) noexcept nogil:
    if semiring is Scaled:
        return a * b
    else:
        return a + b


cdef inline lanes plus(semiring* ring, lanes a, lanes b) noexcept nogil:
    if semiring is Scaled:
        return a + b
    elif semiring is Log:
        return log_add(a, b)
    else:
        return larger(a, b)


cdef inline lanes probability(summing* ring, lanes value, lanes outer) noexcept nogil:
    """A product of forward and backward values as a probability; `outer`: their scale less log Z, lifted."""
    if summing is Scaled:
        return value * outer
    else:
        return lanes_exp(value + outer)


cdef inline lanes finite_or_zero(lanes score) noexcept nogil:
    """The score, or 0 where it is -inf: a scale that can be subtracted."""
    return choose(less(splat(-INFINITY), score), score, splat(0.0))


cdef inline flags nowhere() noexcept nogil:
    """Flags that are set in no lane."""
    return differ(splat(0.0), splat(0.0))


cdef inline lanes rescale(lanes* values, Py_ssize_t n, lanes largest, flags active) noexcept nogil:
    """Divide n values by the power of two that brings `largest` into [1, 2), if an active lane's has left
    RESCALE_BELOW..RESCALE_ABOVE. RETURNS (lanes): log of the divisor, 0 if nothing was divided.
    """
    cdef Py_ssize_t i
    cdef lanes grown, shrink
    if not any_of((less(splat(RESCALE_ABOVE), largest) | less(largest, splat(RESCALE_BELOW))) & active):
        return splat(0.0)
    grown = exponent(largest)
    shrink = power_of_two(-grown)
    for i in range(n):
        values[i] = values[i] * shrink
    return grown * splat(LN2)
