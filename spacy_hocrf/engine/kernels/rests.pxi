# Segments longer than the window W in the backward recurrence: tails.pxi with ends in place of starts.


# rest_v(o) = exp (end(v-1) + length) beta_v(target o) + exp step(v) rest_{v+1}(o)
cdef void _rest(
    summing* ring, Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v, lanes log_z
) noexcept nogil:
    """Compute rest_v of all open states, the sum over what may follow a segment that is longer than the
    window at v, and count the tails that end at v. Sets `lost` where values are lost.
    """
    cdef Py_ssize_t k, o, last = batch.lengths - 1
    cdef lanes ending, going, dot, share
    cdef lanes* after
    cdef lanes* tail
    cdef lanes* closed = at1(ws.closed, 0)
    cdef flags active, lost = nowhere()
    if v == 0:
        return
    active = within(ws, v - 1)
    after = at2(ws.rest, min(v + 1, ws.tokens), 0)
    tail = at2(ws.tail, v, 0)
    for k in range(fsa.bodies):
        if not ws.has_tail[k]:
            continue
        ending = _end_tails(fsa, batch, ws, v, k, closed)
        dot = zero(ring)
        for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
            dot = plus(ring, dot, times(ring, tail[o], closed[o]))
        share = probability(ring, dot, lift(ring, at2(ws.tail_scale, v, k)[0] + ending - log_z))
        lost |= ~less(share, splat(INFINITY))
        at2(ws.length_now, k, last)[0] += share
        at2(ws.ended, v - 1, k)[0] += share
        if ws.block[k] > 0:
            lost |= _rest_up_to_limit(ring, fsa, batch, ws, v, k, closed, ending)
            continue
        going = splat(-INFINITY)
        if v < ws.tokens:
            going = at2(ws.step, v, k)[0] + at2(ws.rest_scale, v + 1, k)[0]
        lost |= merge(
            ring,
            at2(ws.rest, v, 0),
            at2(ws.rest_scale, v, k),
            closed,
            ending,
            after,
            going,
            fsa.body_offsets[k],
            fsa.body_offsets[k + 1],
        )
    if any_of(lost & active):
        lose(ws, lost & active)


cdef inline lanes _end_tails(
    Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v, Py_ssize_t k, lanes* closed
) noexcept nogil:
    """Write beta_v of each open state's target into `closed`. RETURNS (lanes): log score of ending a tail at
    v, with the scale of beta.
    """
    cdef Py_ssize_t o
    cdef lanes* beta = beta_row(ws, v)
    for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
        closed[o] = beta[fsa.open_target[o]]
    return at2(ws.closing, v, k)[0] + splat(batch.body_length[k, batch.lengths - 1])


# rest_v(o) = Σ_{v ≤ e < v+D} exp body(v, e) beta_e(target o)
#           = the ends of this block from here on  +  the first ones of the next
cdef flags _rest_up_to_limit(
    summing* ring,
    Automaton fsa,
    Batch batch,
    Workspace ws,
    Py_ssize_t v,
    Py_ssize_t k,
    lanes* closed,
    lanes ending,
) noexcept nogil:
    """Compute rest_v of a body whose label has a limit, as `_lengthen_up_to_limit` does with starts. RETURNS
    (flags): the lanes in which a value is lost.
    """
    cdef Py_ssize_t e, place, low = fsa.body_offsets[k], high = fsa.body_offsets[k + 1], D = ws.block[k]
    cdef lanes* in_block = at1(ws.ends_in_block, 0)
    cdef lanes* scale = at1(ws.ends_scale, k)
    cdef lanes* run = at1(ws.ends_run, k)
    cdef lanes* behind
    cdef lanes* later = at1(ws.closed_later, 0)
    cdef lanes step = splat(-INFINITY), score
    cdef flags lost = nowhere()
    if v < ws.tokens:
        step = at2(ws.step, v, k)[0]
    run[0] = run[0] + step
    if v % D == D - 1 or v == ws.tokens:
        scale[0] = splat(-INFINITY)
        run[0] = step
        at2(ws.ends_behind_scale, 0, k)[0] = splat(-INFINITY)
        score = splat(0.0)
        for place in range(1, D):  # ends_behind[place] = sum of the first `place` ends of the next block
            e = v + place
            behind = at2(ws.ends_behind, place, 0)
            if v == ws.tokens or e > ws.tokens:
                at2(ws.ends_behind_scale, place, k)[0] = at2(ws.ends_behind_scale, place - 1, k)[0]
                _copy(behind, at2(ws.ends_behind, place - 1, 0), low, high)
                continue
            lost |= merge(
                ring,
                behind,
                at2(ws.ends_behind_scale, place, k),
                at2(ws.ends_behind, place - 1, 0),
                at2(ws.ends_behind_scale, place - 1, k)[0],
                later,
                _end_tails(fsa, batch, ws, e, k, later) + score,
                low,
                high,
            )
            if e < ws.tokens:
                score = score + at2(ws.step, e, k)[0]
    lost |= merge(ring, in_block, scale, closed, ending, in_block, scale[0] + step, low, high)
    place = v % D  # ends up to v + D - 1 include the first v % D ends of the next block
    behind = at2(ws.ends_behind, place, 0)
    score = at2(ws.ends_behind_scale, place, k)[0] + run[0]
    lost |= merge(
        ring, at2(ws.rest, v, 0), at2(ws.rest_scale, v, k), in_block, scale[0], behind, score, low, high
    )
    return lost


cdef inline void _copy(lanes* out, lanes* source, Py_ssize_t low, Py_ssize_t high) noexcept nogil:
    cdef Py_ssize_t o
    for o in range(low, high):
        out[o] = source[o]
