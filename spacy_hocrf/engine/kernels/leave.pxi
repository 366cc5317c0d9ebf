# alpha_v: segments end. The second line of the forward recurrence, forward.pxi.


cdef void _leave(semiring* ring, Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """alpha_v of all states, from the segments and tails that end at v."""
    cdef int lane
    cdef lanes high = splat(0.0), grown = splat(0.0)
    cdef bint added = False
    if v == 1:
        for lane in range(ws.count):
            ws.span_next[lane] = ws.span_low[lane]
    if ws.any_tail:
        _lengthen(ring, fsa, ws, v)
    if semiring is Scaled:
        added = ws.direct
        if ws.direct:
            high = add_endings(fsa, batch, ws, v)
        elif ws.multiplies:
            high = _weigh_endings(fsa, batch, ws, v)
        else:
            score_endings(fsa, batch, ws, v)
            high = _lift_segments(fsa, ws, v)
    else:
        score_endings(fsa, batch, ws, v)
    if not added:
        _sum_segments(ring, fsa, ws, v, high)
    _sum_tails(ring, fsa, ws, v, high)
    if semiring is Scaled:
        grown = _check_alphas(fsa, batch, ws, v)
    at1(ws.alpha_scale, v)[0] = high + grown


# leaving(o) = Σ_{1≤d≤W} entry_{v-d}(o) exp body(v-d, v, k)          o = (k, q)
cdef inline void _sum_segments(
    semiring* ring, Automaton fsa, Workspace ws, Py_ssize_t v, lanes high
) noexcept nogil:
    """The sum of the recurrence over the lengths within the window."""
    cdef Py_ssize_t k, low, high_open, lengths
    cdef lanes* leaving = at2(ws.leaving, leaving_row(ws, v), 0)
    cdef lanes* entry = at2(ws.entry, v - 1, 0)
    cdef lanes* weights
    for k in range(fsa.bodies):
        weights, lengths = at1(ws.weight, ws.window_offset[k]), min(ws.window[k], v)
        low, high_open = fsa.body_offsets[k], fsa.body_offsets[k + 1]
        sum_starts(ring, leaving, weights, entry, lengths, fsa.opens, low, high_open)


# leaving(o) += tail_v(o) exp (end + length)
# alpha_v(q) = Σ_{o: target q} leaving(o)          o = (k, q)
cdef inline void _sum_tails(
    semiring* ring, Automaton fsa, Workspace ws, Py_ssize_t v, lanes high
) noexcept nogil:
    """What is longer than the window, and the sum over the open states of a forward state."""
    cdef Py_ssize_t k, o, p
    cdef const int* target = _first_of(fsa.open_target)
    cdef lanes weight
    cdef lanes* alpha = at2(ws.alpha, v, 0)
    cdef lanes* leaving = at2(ws.leaving, leaving_row(ws, v), 0)
    cdef lanes* tail
    for k in range(fsa.bodies if ws.any_tail else 0):
        if ws.has_tail[k]:
            tail = at2(ws.tail, v, 0)
            weight = lift(ring, at1(ws.tail_score, k)[0] - high)
            for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
                leaving[o] = plus(ring, leaving[o], times(ring, weight, tail[o]))
    at1(ws.leaving_scale, leaving_row(ws, v))[0] = high
    for p in range(fsa.states):
        alpha[p] = zero(ring)
    for o in range(fsa.opens):
        alpha[target[o]] = plus(ring, alpha[target[o]], leaving[o])


cdef inline lanes _check_alphas(Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Note the lanes in which a value has left the range of a double, and rescale. RETURNS (lanes):
    log factor.
    """
    cdef Py_ssize_t p
    cdef lanes* alpha = at2(ws.alpha, v, 0)
    cdef lanes largest = splat(0.0), low = splat(TOO_LARGE)
    cdef flags active, found
    for p in range(1, fsa.states):
        largest = larger(alpha[p], largest)
        low = smaller(alpha[p], low)
    active = within(ws, v - 1)
    found = ~less(largest, splat(TOO_LARGE)) & active
    if any_of(found):
        lose(ws, found)
    if any_of(~at_least(low, splat(LOST)) & active):
        score_endings(fsa, batch, ws, v)
        lose(ws, _lost_alphas(fsa, ws, v) & active)
    return rescale(alpha, fsa.states, largest, active)


cdef flags _lost_alphas(Automaton fsa, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Has a state vanished that an allowed segment with mass leads to? Before scaling, none is much
    above 1.
    """
    cdef Py_ssize_t k, d, o
    cdef lanes* alpha = at2(ws.alpha, v, 0)
    cdef lanes* scores
    cdef flags found = nowhere(), small, possible
    for k in range(fsa.bodies):
        scores = at1(ws.score, ws.window_offset[k])
        for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
            small = ~at_least(alpha[fsa.open_target[o]], splat(LOST))
            if not any_of(small):
                continue
            for d in range(min(ws.window[k], v)):
                possible = less(splat(-INFINITY), scores[d])
                found |= small & possible & differ(at2(ws.entry, v - 1 - d, o)[0], splat(0.0))
            if ws.any_tail and ws.has_tail[k]:
                possible = less(splat(-INFINITY), at1(ws.tail_score, k)[0])
                found |= small & possible & differ(at2(ws.tail, v, o)[0], splat(0.0))
    return found
