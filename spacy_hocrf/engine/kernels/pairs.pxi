# A CRF of order 1 with so many label patterns that it is faster to multiply all pairs of labels
# than to share their sums.


cdef inline bint in_pairs(semiring* ring, Automaton fsa, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Are the arcs at u taken pair by pair of labels?"""
    return semiring is not Log and fsa.dense and not ws.has_rows[u]


# entry_u(y) = Σ_p alpha_u(p) ψ(p, y)          a row of the matrix of all pairs times alpha
cdef void _enter_in_pairs(
    semiring* ring, Automaton fsa, Workspace ws, Py_ssize_t u, lanes* entry
) noexcept nogil:
    """The sums of `_enter`, a row of the matrix of all pairs times alpha; four labels at a time
    stay in registers.
    """
    cdef Py_ssize_t p, y, columns = fsa.columns
    cdef lanes* alpha = at2(ws.alpha, u, 0)
    cdef const double* weight
    cdef lanes mass, a, b, c, d
    entry[0] = zero(ring)
    for y in range(0, columns, 4):
        weight = &ws.pair_weight[0, y]
        a = b = c = d = zero(ring)
        for p in range(fsa.states):
            mass = alpha[p]
            a = plus(ring, a, times(ring, mass, splat(weight[0])))
            b = plus(ring, b, times(ring, mass, splat(weight[1])))
            c = plus(ring, c, times(ring, mass, splat(weight[2])))
            d = plus(ring, d, times(ring, mass, splat(weight[3])))
            weight += columns
        entry[y + 1] = a
        if y + 1 < fsa.labels:
            entry[y + 2] = b
        if y + 2 < fsa.labels:
            entry[y + 3] = c
        if y + 3 < fsa.labels:
            entry[y + 4] = d


# beta_u(p) = Σ_y ψ(p, y) open_u(y)
cdef void _take_pairs(summing* ring, Automaton fsa, Workspace ws, Py_ssize_t u, lanes outer) noexcept nogil:
    """The sums of `_take_arcs` over all pairs of labels, into ws.adjoint, and what `_count_pairs`
    needs.
    """
    cdef Py_ssize_t p, q, y, columns = fsa.columns
    cdef lanes* opened = at1(ws.open_weighted, 1)  # of label y
    cdef lanes* pair_open = at2(ws.pair_open, u, 0)
    cdef const double* weight
    cdef lanes value, a, b, c, d
    cdef lanes* adjoint = at1(ws.adjoint, 0)
    for y in range(fsa.labels):
        pair_open[y] = opened[y] * outer
    for y in range(fsa.labels, columns):
        pair_open[y] = splat(0.0)
    for p in range(0, fsa.states, 4):
        weight = &ws.pair_weight[p, 0]
        a = b = c = d = splat(0.0)
        if p + 4 <= fsa.states:
            for y in range(fsa.labels):
                value = opened[y]
                a = a + value * splat(weight[y])
                b = b + value * splat(weight[columns + y])
                c = c + value * splat(weight[2 * columns + y])
                d = d + value * splat(weight[3 * columns + y])
            adjoint[p] = a
            adjoint[p + 1] = b
            adjoint[p + 2] = c
            adjoint[p + 3] = d
        else:
            for q in range(p, fsa.states):
                a = splat(0.0)
                weight = &ws.pair_weight[q, 0]
                for y in range(fsa.labels):
                    a = a + opened[y] * splat(weight[y])
                adjoint[q] = a


# E[p, y] = ψ(p, y) Σ_u alpha_u(p) open_u(y) / Z          the weight is left to the end of the batch
cdef void _count_pairs(Automaton fsa, Workspace ws) noexcept nogil:
    """Counts of the pairs of labels, without their weights: alpha_u(p) open_u(y), four boundaries
    at a time.
    """
    cdef Py_ssize_t u, p, y, j, columns = fsa.columns, T = ws.tokens
    cdef lanes* alpha
    cdef lanes* opened
    cdef lanes* pairs
    cdef lanes a, b, c, d
    for u in range(T):
        if ws.has_rows[u]:
            for y in range(columns):
                at2(ws.pair_open, u, y)[0] = splat(0.0)
    for u in range(T, T + 3):
        for y in range(columns):
            at2(ws.pair_open, u, y)[0] = splat(0.0)
    for u in range(0, T, 4):
        opened = at2(ws.pair_open, u, 0)
        for p in range(fsa.states):
            a = at2(ws.alpha, u, p)[0]
            b = at2(ws.alpha, min(u + 1, T), p)[0]
            c = at2(ws.alpha, min(u + 2, T), p)[0]
            d = at2(ws.alpha, min(u + 3, T), p)[0]
            pairs = at2(ws.pair_now, p, 0)
            for y in range(columns):
                pairs[y] = (
                    (pairs[y] + a * opened[y] + b * opened[columns + y])
                    + (c * opened[2 * columns + y] + d * opened[3 * columns + y])
                )
