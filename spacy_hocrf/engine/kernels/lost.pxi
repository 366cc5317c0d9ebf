# Finds the lanes that have lost a value: one that is no structural zero but has become 0, too small to
# keep all of its digits, or too large. Their sequences are computed again in log space.


cdef inline flags within(Workspace ws, Py_ssize_t u) noexcept nogil:
    """The lanes whose sequence has a token u and has lost no value."""
    return less(splat(u), (<lanes*> &ws.extent[0])[0])


cdef void lose(Workspace ws, flags lost) noexcept nogil:
    """Set `ws.lost` in the lanes of `lost`, which `within` excludes from now on."""
    cdef int lane
    for lane in range(LANES):
        if (<long long*> &lost)[lane]:
            ws.lost[lane] = True
            ws.extent[lane] = 0.0


cdef inline lanes check_alphas(Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Set `lost` in the lanes in which an alpha_v has left the range of a double, and rescale alpha_v.
    RETURNS (lanes): log of the divisor.
    """
    cdef Py_ssize_t p
    cdef lanes* alpha = at2(ws.alpha, v, 0)
    cdef lanes largest = splat(0.0), low = splat(TOO_LARGE)
    cdef flags active, lost
    for p in range(1, fsa.states):
        largest = larger(alpha[p], largest)
        low = smaller(alpha[p], low)
    active = within(ws, v - 1)
    lost = ~less(largest, splat(TOO_LARGE)) & active
    if any_of(lost):
        lose(ws, lost)
    if any_of(~at_least(low, splat(LOST)) & active):
        score_endings(fsa, batch, ws, v)
        lose(ws, _lost_alphas(fsa, ws, v) & active)
    return rescale(alpha, fsa.states, largest, active)


cdef flags _lost_alphas(Automaton fsa, Workspace ws, Py_ssize_t v) noexcept nogil:
    """The lanes in which alpha_v of a state is below LOST although a segment with mass leads to it. Before
    rescaling, the largest alpha_v is not much above 1.
    """
    cdef Py_ssize_t k, d, o
    cdef lanes* alpha = at2(ws.alpha, v, 0)
    cdef lanes* scores
    cdef flags lost = nowhere(), small, possible
    for k in range(fsa.bodies):
        scores = at1(ws.score, ws.window_offset[k])
        for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
            small = ~at_least(alpha[fsa.open_target[o]], splat(LOST))
            if not any_of(small):
                continue
            for d in range(min(ws.window[k], v)):
                possible = less(splat(-INFINITY), scores[d])
                lost |= small & possible & differ(at2(ws.entry, v - 1 - d, o)[0], splat(0.0))
            if ws.any_tail and ws.has_tail[k]:
                possible = less(splat(-INFINITY), at1(ws.tail_score, k)[0])
                lost |= small & possible & differ(at2(ws.tail, v, o)[0], splat(0.0))
    return lost


cdef inline lanes check_opens(Automaton fsa, Workspace ws, Py_ssize_t u, lanes outer) noexcept nogil:
    """Set `lost` in the lanes in which an open_u has left the range of a double, and rescale open_u.
    RETURNS (lanes): log of the divisor.
    """
    cdef Py_ssize_t o, opens = fsa.opens
    cdef lanes* open_value = at1(ws.open_value, 0)
    cdef lanes* entry = at2(ws.entry, u, 0)
    cdef lanes largest = splat(0.0), low = splat(TOO_LARGE), value
    cdef flags active = within(ws, u), lost
    for o in range(opens):
        largest = larger(open_value[o], largest)
        value = choose(differ(entry[o], splat(0.0)), open_value[o], splat(TOO_LARGE))
        low = smaller(value, low)
    lost = (~less(largest, splat(TOO_LARGE)) | ~less(outer, splat(INFINITY))) & active
    if any_of(lost):
        lose(ws, lost)
    if any_of(~at_least(low, splat(LOST)) & active):
        lose(ws, _lost_opens(fsa, ws, u) & active)
    return rescale(open_value, opens, largest, active)


cdef flags _lost_opens(Automaton fsa, Workspace ws, Py_ssize_t u) noexcept nogil:
    """The lanes in which open_u(o) of an open state with mass is below LOST although an allowed segment leads
    from it to a nonzero beta.
    """
    cdef Py_ssize_t k, d, o
    cdef lanes* beta
    cdef flags lost = nowhere(), small, allowed, going_on
    for k in range(fsa.bodies):
        for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
            small = ~at_least(at1(ws.open_value, o)[0], splat(LOST))
            small &= differ(at2(ws.entry, u, o)[0], splat(0.0))
            if not any_of(small):
                continue
            going_on = small
            for d in range(min(ws.window[k], ws.tokens - u)):
                if d > 0:
                    going_on &= less(splat(-INFINITY), at2(ws.step, u + d, k)[0])
                allowed = less(splat(-INFINITY), at2(ws.end, u + d, k)[0])
                beta = beta_row(ws, u + d + 1)
                lost |= going_on & allowed & differ(beta[fsa.open_target[o]], splat(0.0))
            if ws.any_tail and ws.has_tail[k] and u + ws.window[k] + 1 <= ws.tokens:
                allowed = less(splat(-INFINITY), at1(ws.tail_score, k)[0])
                lost |= small & allowed & differ(at2(ws.rest, u + ws.window[k] + 1, o)[0], splat(0.0))
    return lost


cdef inline lanes check_betas(
    summing* ring,
    Automaton fsa,
    Workspace ws,
    Py_ssize_t u,
    lanes* open_value,
    lanes outer,
    lanes largest,
    lanes low,
    bint counting,
) noexcept nogil:
    """Set `lost` in the lanes in which a beta_u has left the range of a double, and rescale beta_u.

    largest, low (lanes): the largest beta_u, and the smallest one of a state with mass.
    RETURNS (lanes): log of the divisor.
    """
    cdef lanes* beta = beta_row(ws, u)
    cdef flags active = within(ws, u)
    cdef lanes least = splat(LOST) * larger(largest, splat(1.0))
    cdef flags lost = (~less(largest, splat(TOO_LARGE)) | ~less(outer, splat(INFINITY))) & active
    if any_of(lost):
        lose(ws, lost)
    if any_of(~at_least(low, least) & active):
        if not ws.has_rows[u] and not counting:
            sum_entries(ring, fsa, ws, u)
        lose(ws, _lost_betas(fsa, ws, u, open_value, beta, least) & active)
    return rescale(beta, fsa.states, largest, active)


cdef flags _lost_betas(
    Automaton fsa, Workspace ws, Py_ssize_t u, lanes* open_value, lanes* beta, lanes least
) noexcept nogil:
    """The lanes in which beta_u of a state with mass is below `least` although an arc leads from it to a
    nonzero open_u: runs the sum program backwards on 0s and 1s.
    """
    cdef Py_ssize_t o, i, p, P = fsa.states
    cdef const int* addition
    cdef lanes* x = at1(ws.x, 0)
    cdef lanes* adjoint = at1(ws.adjoint, 0)
    cdef lanes* alpha = at2(ws.alpha, u, 0)
    cdef flags lost = nowhere(), open_here
    for i in range(fsa.taken.shape[0]):
        p = fsa.taken_register[i]
        o = fsa.taken_open[i]
        open_here = differ(open_value[o], splat(0.0))
        open_here &= differ(at2(ws.first, u, fsa.open_label[o])[0], splat(0.0))
        adjoint[p] = choose(open_here & differ(x[p], splat(0.0)), splat(1.0), adjoint[p])
    for i in range(fsa.additions.shape[0] - 1, -1, -1):
        addition = &fsa.additions[i, 0]
        adjoint[addition[1]] = larger(adjoint[addition[1]], adjoint[P + i])
        adjoint[addition[2]] = larger(adjoint[addition[2]], adjoint[P + i])
    for p in range(P):
        lost |= differ(alpha[p], splat(0.0)) & differ(adjoint[p], splat(0.0)) & ~at_least(beta[p], least)
    for i in range(fsa.registers):
        adjoint[i] = splat(0.0)
    return lost
