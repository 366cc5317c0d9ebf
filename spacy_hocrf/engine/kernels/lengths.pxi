# Sums over the lengths within the window. Four open states at a time stay in registers: a body often has so
# few that what is added to memory would have to be read back at once.


# out(o) = Σ_d weight_d entry_{v-d}(o)          low <= o < high
cdef inline void sum_starts(
    semiring* ring,
    lanes* out,
    lanes* weights,
    lanes* entry,
    Py_ssize_t lengths,
    Py_ssize_t opens,
    Py_ssize_t low,
    Py_ssize_t high,
) noexcept nogil:
    """Segments that end at one boundary, by open state; `entry` is that of the shortest, and the others
    lie `opens` before one another.
    """
    cdef Py_ssize_t d, o = low
    cdef lanes weight, a, b, c, e
    cdef lanes* source
    while o + 4 <= high:
        a = b = c = e = zero(ring)
        source = entry + o
        for d in range(lengths):
            weight = weights[d]
            a = plus(ring, a, times(ring, weight, source[0]))
            b = plus(ring, b, times(ring, weight, source[1]))
            c = plus(ring, c, times(ring, weight, source[2]))
            e = plus(ring, e, times(ring, weight, source[3]))
            source -= opens
        out[o] = a
        out[o + 1] = b
        out[o + 2] = c
        out[o + 3] = e
        o += 4
    while o < high:
        a = zero(ring)
        for d in range(lengths):
            a = plus(ring, a, times(ring, weights[d], entry[o - d * opens]))
        out[o] = a
        o += 1


# out(o) = Σ_d weight_d beta_{u+d}(target o)          low <= o < high
cdef inline void sum_ends(
    summing* ring,
    lanes* out,
    lanes* weights,
    lanes* betas,
    const long long* row,
    const int* target,
    Py_ssize_t lengths,
    Py_ssize_t low,
    Py_ssize_t high,
) noexcept nogil:
    """Segments that start at one boundary, by open state; beta behind those of each length begins at
    `row`.
    """
    cdef Py_ssize_t d, i, j, m, n, o = low
    cdef lanes weight, a, b, c, e
    cdef lanes* beta
    while o + 4 <= high:
        a = b = c = e = zero(ring)
        i, j, m, n = target[o], target[o + 1], target[o + 2], target[o + 3]
        for d in range(lengths):
            weight, beta = weights[d], betas + row[d]
            a = plus(ring, a, times(ring, weight, beta[i]))
            b = plus(ring, b, times(ring, weight, beta[j]))
            c = plus(ring, c, times(ring, weight, beta[m]))
            e = plus(ring, e, times(ring, weight, beta[n]))
        out[o] = a
        out[o + 1] = b
        out[o + 2] = c
        out[o + 3] = e
        o += 4
    while o < high:
        a = zero(ring)
        for d in range(lengths):
            a = plus(ring, a, times(ring, weights[d], betas[row[d] + target[o]]))
        out[o] = a
        o += 1


# meeting_d = Σ_o entry_u(o) beta_{u+d}(target o)
cdef inline void sum_and_meet(
    summing* ring,
    lanes* out,
    lanes* meeting,
    lanes* weights,
    lanes* entry,
    lanes* betas,
    const long long* row,
    const int* target,
    Py_ssize_t lengths,
    Py_ssize_t low,
    Py_ssize_t high,
) noexcept nogil:
    """`sum_ends`, and what the segments of each length are multiplied with to be counted."""
    cdef Py_ssize_t d, i, j, m, n, o = low
    cdef lanes weight, met, a, b, c, e, w, x, y, z
    cdef lanes* beta
    for d in range(lengths):
        meeting[d] = zero(ring)
    while o + 4 <= high:
        a = b = c = e = zero(ring)
        w, x, y, z = entry[o], entry[o + 1], entry[o + 2], entry[o + 3]
        i, j, m, n = target[o], target[o + 1], target[o + 2], target[o + 3]
        for d in range(lengths):
            weight, beta = weights[d], betas + row[d]
            a = plus(ring, a, times(ring, weight, beta[i]))
            b = plus(ring, b, times(ring, weight, beta[j]))
            c = plus(ring, c, times(ring, weight, beta[m]))
            e = plus(ring, e, times(ring, weight, beta[n]))
            met = plus(ring, times(ring, w, beta[i]), times(ring, x, beta[j]))
            met = plus(ring, met, plus(ring, times(ring, y, beta[m]), times(ring, z, beta[n])))
            meeting[d] = plus(ring, meeting[d], met)
        out[o] = a
        out[o + 1] = b
        out[o + 2] = c
        out[o + 3] = e
        o += 4
    while o < high:
        a, w = zero(ring), entry[o]
        for d in range(lengths):
            beta = betas + row[d] + target[o]
            a = plus(ring, a, times(ring, weights[d], beta[0]))
            meeting[d] = plus(ring, meeting[d], times(ring, w, beta[0]))
        out[o] = a
        o += 1
