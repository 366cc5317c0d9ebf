# beta_u, the sum over what may follow a history at u: the second line of backward.pxi's recurrence.


# beta_u(p) = Σ_y first_u(y) ψ(c) factor_u(c) open_u(open state of c),   c = c(p, y)
cdef void _take_arcs(
    summing* ring,
    Automaton fsa,
    Batch batch,
    Workspace ws,
    Counts counts,
    Py_ssize_t u,
    lanes log_z,
    bint counting,
) noexcept nogil:
    """Compute beta_u from open_u, in a CRF from beta_{u+1}, and count the arcs (if `counting`, also the rows,
    and the labels of a CRF) at u.
    """
    cdef Py_ssize_t o
    cdef const int* label = _first_of(fsa.open_label)
    cdef lanes outer, grown = splat(0.0)
    cdef lanes* first = at2(ws.first, u, 0)
    cdef lanes* open_weighted = at1(ws.open_weighted, 0)
    cdef lanes* open_value = at1(ws.open_value, 0)
    if fsa.one_token:
        open_value = beta_row(ws, u + 1)
        at1(ws.beta_scale, u)[0] = at1(ws.beta_scale, u + 1)[0]
        if counting:
            _count_labels(ring, fsa, ws, counts, u, log_z)
    outer = at1(ws.alpha_scale, u)[0] + at1(ws.first_scale, u)[0] + at1(ws.beta_scale, u)[0] - log_z
    outer = lift(ring, choose(within(ws, u), outer, splat(-INFINITY)))
    for o in range(fsa.opens):
        open_weighted[o] = times(ring, open_value[o], first[label[o]])
    if counting or ws.has_rows[u]:
        sum_entries(ring, fsa, ws, u)
    if ws.has_rows[u]:
        _take_arcs_with_rows(ring, fsa, batch, ws, counts, u, open_value, outer, counting)
    else:
        _take_plain_arcs(ring, fsa, ws, outer, counting)
    _reverse_sums(ring, fsa, ws)
    grown = _write_betas(ring, fsa, ws, u, open_value, outer, counting)
    at1(ws.beta_scale, u)[0] += at1(ws.first_scale, u)[0] + grown


# adjoint(register of c) += ψ_u(c) open_u(o)        o the open state of c, ψ_u(c) with first_u(y)
# P(c is taken at u) = m_u(c) ψ_u(c) open_u(o) / Z
cdef inline void _take_plain_arcs(
    summing* ring, Automaton fsa, Workspace ws, lanes outer, bint counting
) noexcept nogil:
    """Sum ψ_u(c) open_u(o) into the adjoint of each arc's register and, if `counting`, count the arcs, at a
    token without rows. Arcs of one register are consecutive.
    """
    cdef Py_ssize_t i, j, p
    cdef const int* offset = &fsa.entered_offsets[0]
    cdef const int* open_state = _first_of(fsa.taken_open)
    cdef lanes* x = at1(ws.x, 0)
    cdef lanes* adjoint = at1(ws.adjoint, 0)
    cdef lanes* arc_now = at1(ws.arc_now, 0)
    cdef lanes* open_weighted = at1(ws.open_weighted, 0)
    cdef double* weight = &ws.arc_weight[0]
    cdef lanes value, mass, total
    for j in range(fsa.entered.shape[0]):
        p = fsa.entered[j]
        mass, total = x[p], zero(ring)
        if counting:
            for i in range(offset[j], offset[j + 1]):
                value = times(ring, open_weighted[open_state[i]], splat(weight[i]))
                arc_now[i] = arc_now[i] + probability(ring, times(ring, mass, value), outer)
                total = plus(ring, total, value)
        else:
            for i in range(offset[j], offset[j + 1]):
                total = plus(ring, total, times(ring, open_weighted[open_state[i]], splat(weight[i])))
        adjoint[p] = total


cdef void _take_arcs_with_rows(
    summing* ring,
    Automaton fsa,
    Batch batch,
    Workspace ws,
    Counts counts,
    Py_ssize_t u,
    lanes* open_value,
    lanes outer,
    bint counting,
) noexcept nogil:
    """Sum ψ_u(c) open_u(o) into the adjoint of each arc's register and count the arcs, if `counting` also the
    rows, at a token with rows; sets `lost` as `_enter_with_rows` does.
    """
    cdef Py_ssize_t i, c, o
    cdef lanes* x = at1(ws.x, 0)
    cdef lanes* adjoint = at1(ws.adjoint, 0)
    cdef lanes* arc_now = at1(ws.arc_now, 0)
    cdef lanes* arc_value = at1(ws.arc_value, 0)
    cdef lanes* factor = factor_row(ws, u)
    cdef lanes* first = at2(ws.first, u, 0)
    cdef lanes value, mass, share
    cdef flags alive, lost = nowhere()
    if not ws.keeps_factors:
        weigh_rows(ring, fsa, batch, ws, u)
    for c in range(fsa.arcs):
        arc_value[c] = splat(0.0)
    for i in range(fsa.taken.shape[0]):
        c = fsa.taken[i]
        mass = x[fsa.taken_register[i]]
        o = fsa.taken_open[i]
        value = times(ring, at1(ws.open_weighted, o)[0], splat(ws.arc_weight[i]))
        if summing is Scaled:
            alive = differ(mass, splat(0.0)) & differ(open_value[o], splat(0.0))
            alive &= differ(first[fsa.open_label[o]], splat(0.0))
            lost |= less(value, splat(LOST)) & less(splat(1.0), factor[c]) & alive
            value = choose(alive, value * factor[c], splat(0.0))
        else:
            value = times(ring, value, factor[c])
        share = probability(ring, times(ring, mass, value), outer)
        arc_value[c] = share
        arc_now[i] = arc_now[i] + share
        adjoint[fsa.taken_register[i]] = plus(ring, adjoint[fsa.taken_register[i]], value)
    if summing is Scaled:
        if any_of(lost & within(ws, u)):
            lose(ws, lost & within(ws, u))
    if counting:
        _count_rows(fsa, batch, ws, counts, u)


# x[d] = x[a] + x[b]   backwards:   adjoint[a] += adjoint[d],  adjoint[b] += adjoint[d]
cdef inline void _reverse_sums(summing* ring, Automaton fsa, Workspace ws) noexcept nogil:
    """Run the sum program backwards: the adjoint of each sum moves to both of its terms."""
    cdef Py_ssize_t i = fsa.additions.shape[0], P = fsa.states
    cdef const int* addition = &fsa.additions[0, 0] + 3 * i if i else NULL
    cdef lanes* adjoint = at1(ws.adjoint, 0)
    cdef lanes value = zero(ring)
    cdef bint held = False
    while i > 0:
        i -= 1
        addition -= 3
        value = plus(ring, value, adjoint[P + i]) if held else adjoint[P + i]
        adjoint[P + i] = zero(ring)
        adjoint[addition[2]] = plus(ring, adjoint[addition[2]], value)
        held = i > 0 and addition[1] == P + i - 1  # the next iteration's sum: keep it in `value`
        if not held:
            adjoint[addition[1]] = plus(ring, adjoint[addition[1]], value)


cdef inline lanes _write_betas(
    summing* ring,
    Automaton fsa,
    Workspace ws,
    Py_ssize_t u,
    lanes* open_value,
    lanes outer,
    bint counting,
) noexcept nogil:
    """Move the adjoint of alpha_u to beta_u, check and rescale it. RETURNS (lanes): log of the divisor."""
    cdef Py_ssize_t p, P = fsa.states
    cdef lanes* adjoint = at1(ws.adjoint, 0)
    cdef lanes* alpha = at2(ws.alpha, u, 0)
    cdef lanes* beta = beta_row(ws, u)
    cdef lanes value, largest = splat(0.0), low = splat(TOO_LARGE)
    for p in range(P):
        value = adjoint[p]
        adjoint[p] = zero(ring)
        beta[p] = value
        if summing is Scaled:
            largest = larger(value, largest)
            value = choose(differ(alpha[p], splat(0.0)), value, splat(TOO_LARGE))
            low = smaller(value, low)
    if summing is Log:
        return splat(0.0)
    else:
        return check_betas(ring, fsa, ws, u, open_value, outer, largest, low, counting)
