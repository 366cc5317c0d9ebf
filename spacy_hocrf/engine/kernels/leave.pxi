# alpha_v, from the segments that end at v: the second line of the forward recurrence in forward.pxi.


cdef void _leave(semiring* ring, Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Compute alpha_v of all states, and its scale, from the segments and tails that end at v."""
    cdef int lane
    cdef lanes high = splat(0.0), grown = splat(0.0)
    if v == 1:
        for lane in range(ws.count):
            ws.span_next[lane] = ws.span_low[lane]
    if ws.any_tail:
        _lengthen(ring, fsa, ws, v)
    if semiring is Scaled:
        if ws.multiplies:
            high = _weigh_endings(fsa, batch, ws, v)
        else:
            score_endings(fsa, batch, ws, v)
            high = _lift_segments(fsa, ws, v)
    else:
        score_endings(fsa, batch, ws, v)
    _sum_segments(ring, fsa, ws, v)
    _sum_tails(ring, fsa, ws, v, high)
    if semiring is Scaled:
        grown = check_alphas(fsa, batch, ws, v)
    at1(ws.alpha_scale, v)[0] = high + grown


# leaving(o) = Σ_{1≤d≤W} entry_{v-d}(o) exp body(v-d, v, k)          o = (k, q)
cdef inline void _sum_segments(semiring* ring, Automaton fsa, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Sum the segments that end at v over the lengths within the window, by open state, into ws.leaving."""
    cdef Py_ssize_t k, o, d
    cdef lanes* leaving = at1(ws.leaving, 0)
    cdef lanes* entry = at2(ws.entry, v - 1, 0)  # entry[o - d * opens] is entry_{v-1-d}(o)
    cdef lanes* weights
    cdef lanes mass
    for k in range(fsa.bodies):
        weights = at1(ws.weight, ws.window_offset[k])
        for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
            mass = zero(ring)
            for d in range(min(ws.window[k], v)):
                mass = plus(ring, mass, times(ring, weights[d], entry[o - d * fsa.opens]))
            leaving[o] = mass


# leaving(o) += tail_v(o) exp (end + length)
# alpha_v(q) = Σ_{o: target q} leaving(o)          o = (k, q)
cdef inline void _sum_tails(
    semiring* ring, Automaton fsa, Workspace ws, Py_ssize_t v, lanes high
) noexcept nogil:
    """Add the tails that end at v to ws.leaving, whose log scale is `high`, and sum it by forward state."""
    cdef Py_ssize_t k, o, p
    cdef const int* target = _first_of(fsa.open_target)
    cdef lanes weight
    cdef lanes* alpha = at2(ws.alpha, v, 0)
    cdef lanes* leaving = at1(ws.leaving, 0)
    cdef lanes* tail
    for k in range(fsa.bodies if ws.any_tail else 0):
        if ws.has_tail[k]:
            tail = at2(ws.tail, v, 0)
            weight = lift(ring, at1(ws.tail_score, k)[0] - high)
            for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
                leaving[o] = plus(ring, leaving[o], times(ring, weight, tail[o]))
    for p in range(fsa.states):
        alpha[p] = zero(ring)
    for o in range(fsa.opens):
        alpha[target[o]] = plus(ring, alpha[target[o]], leaving[o])
