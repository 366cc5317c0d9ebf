# open_u, the sum over what may follow a segment's start at u: the first line of backward.pxi's recurrence.


cdef void _open(
    summing* ring,
    Automaton fsa,
    Batch batch,
    Workspace ws,
    Counts counts,
    Py_ssize_t u,
    lanes log_z,
    bint counting,
) noexcept nogil:
    """Compute open_u of all open states, and count the segments and spans that begin at u."""
    cdef Py_ssize_t d
    cdef lanes high = splat(0.0), grown = splat(0.0), outer
    for d in range(min(ws.widest, ws.tokens - u)):
        ws.beta_row[d] = (u + d + 1) % ws.beta_rows * fsa.states
    if summing is Scaled:
        if ws.multiplies:
            high = _weigh_starts(fsa, batch, ws, u)
        else:
            score_starts(fsa, batch, ws, u)
            high = _lift_segments(fsa, ws, ws.tokens - u)
    else:
        score_starts(fsa, batch, ws, u)
    outer = choose(within(ws, u), at1(ws.entry_scale, u)[0] + high - log_z, splat(-INFINITY))
    outer = lift(ring, outer)
    _sum_ends(ring, fsa, batch, ws, u, high, outer)
    _count_spans(fsa, batch, ws, counts, u, counting)
    if summing is Scaled:
        grown = check_opens(fsa, ws, u, outer)
    at1(ws.beta_scale, u)[0] = high + grown


# open_u(o) = Σ_{1≤d≤W} exp body(u, u+d, k) beta_{u+d}(q) + exp body(u, u+W+1) rest_{u+W+1}(o)
# where body(u, u+W+1), of a segment that goes on, has no end or length score.
# P([u, u+d) in k) = Σ_{o in k} entry_u(o) exp body(u, u+d, k) beta_{u+d}(q) / Z          o = (k, q)
cdef inline void _sum_ends(
    summing* ring, Automaton fsa, Batch batch, Workspace ws, Py_ssize_t u, lanes high, lanes outer
) noexcept nogil:
    """Compute open_u(o) and, into ws.share, P([u, u+d) in k) of each body and length. `high` is the log scale
    of ws.weight; `outer` turns products into probabilities.
    """
    cdef Py_ssize_t k, d, o, low, high_open, lengths, last = batch.lengths - 1
    cdef const int* target = _first_of(fsa.open_target)
    cdef const long long* row = &ws.beta_row[0]
    cdef lanes weight, dot, value, beta, share, begun
    cdef lanes* open_value = at1(ws.open_value, 0)
    cdef lanes* entry = at2(ws.entry, u, 0)
    cdef lanes* betas = at2(ws.beta, 0, 0)
    cdef lanes* meeting = at1(ws.meeting, 0)
    cdef lanes* rest
    cdef lanes* ended
    cdef lanes* length_now
    cdef lanes* weights
    cdef lanes* shares
    for k in range(fsa.bodies):
        weights, shares = at1(ws.weight, ws.window_offset[k]), at1(ws.share, ws.window_offset[k])
        lengths = min(ws.window[k], ws.tokens - u)
        begun = splat(0.0)
        low, high_open = fsa.body_offsets[k], fsa.body_offsets[k + 1]
        ended, length_now = at2(ws.ended, u, k), at2(ws.length_now, k, 0)  # `ended` moves from token to token
        for d in range(lengths):
            meeting[d] = zero(ring)
        for o in range(low, high_open):
            value = zero(ring)
            for d in range(lengths):
                beta = betas[row[d] + target[o]]  # beta_{u+d+1}(target o)
                value = plus(ring, value, times(ring, weights[d], beta))
                meeting[d] = plus(ring, meeting[d], times(ring, entry[o], beta))
            open_value[o] = value
        for d in range(lengths):
            share = probability(ring, times(ring, weights[d], meeting[d]), outer)
            shares[d] = share
            begun = begun + share
            ended[0] = ended[0] + share
            length_now[min(d, last)] = length_now[min(d, last)] + share
            ended += fsa.bodies
        if ws.any_tail and ws.has_tail[k] and u + ws.window[k] + 1 <= ws.tokens:
            rest = at2(ws.rest, u + ws.window[k] + 1, 0)
            weight = lift(ring, at1(ws.tail_score, k)[0] - high)
            dot = zero(ring)
            for o in range(low, high_open):
                value = times(ring, weight, rest[o])
                dot = plus(ring, dot, times(ring, entry[o], value))
                open_value[o] = plus(ring, open_value[o], value)
            begun = begun + probability(ring, dot, outer)
        at2(ws.started, u, k)[0] = begun
