# Segments longer than the window W in the forward recurrence: one sum, the tail, for all of their lengths.
# A segment that has not ended at v yet has neither end nor length score in body(u, v).
#
# Without a limit the tail is a recursion,
#
#     tail_v(o) = tail_{v-1}(o) exp step(v-1) + entry_{v-1-W}(o) exp body(v-1-W, v)
#
# and with a limit L a sum over the last D = L - W starts. Starts are cut into blocks of D. The sum has
# two parts: the starts of the current block so far, by the same recursion from the block's beginning,
# and the last starts of the block before, by sums over its last 1, 2, …, D starts, which are made once
# when that block is complete. So the cost per token does not depend on L, and nothing is subtracted.


# tail_v(o) = tail_{v-1}(o) exp step(v-1) + entry_{v-1-W}(o) exp body(v-1-W, v)
cdef void _lengthen(semiring* ring, Automaton fsa, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Compute tail_v, the mass of segments longer than the window at v, and its scale; sets `lost`."""
    cdef Py_ssize_t k, o, start
    cdef lanes old, late
    cdef lanes* entry
    cdef lanes* tail = at2(ws.tail, v, 0)
    cdef lanes* scale
    cdef flags lost = nowhere()
    for k in range(fsa.bodies):
        if not ws.has_tail[k]:
            continue
        scale = at2(ws.tail_scale, v, k)
        start = v - 1 - ws.window[k]
        if start < 0:
            scale[0] = splat(-INFINITY)
            for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
                tail[o] = zero(ring)
            continue
        if ws.block[k] > 0:
            lost |= _lengthen_up_to_limit(ring, fsa, ws, v, k, start)
            continue
        late = late_entry(ws, v, k)
        old = splat(-INFINITY)
        if v > 1:
            old = at2(ws.tail_scale, v - 1, k)[0] + at2(ws.step, v - 1, k)[0]
        entry = at2(ws.entry, start, 0)
        lost |= merge(
            ring,
            tail,
            scale,
            at2(ws.tail, v - 1, 0),
            old,
            entry,
            late,
            fsa.body_offsets[k],
            fsa.body_offsets[k + 1],
        )
    if semiring is Scaled:
        if any_of(lost & within(ws, v - 1)):
            lose(ws, lost & within(ws, v - 1))


# tail_v(o) = Σ_{v-L ≤ u < v-W} entry_u(o) exp body(u, v)
#           = the starts of this block so far  +  the last ones of the one before
cdef flags _lengthen_up_to_limit(
    semiring* ring, Automaton fsa, Workspace ws, Py_ssize_t v, Py_ssize_t k, Py_ssize_t start
) noexcept nogil:
    """Compute tail_v of a body whose label has a limit; `start` = v - 1 - W is the latest start. RETURNS
    (flags): the lanes in which a value is lost.
    """
    cdef Py_ssize_t u, place, low = fsa.body_offsets[k], high = fsa.body_offsets[k + 1], D = ws.block[k]
    cdef lanes* in_block = at1(ws.starts_in_block, 0)
    cdef lanes* scale = at1(ws.starts_scale, k)
    cdef lanes* run = at1(ws.starts_run, k)
    cdef lanes* before
    cdef lanes* longer
    cdef lanes step = at2(ws.step, v - 1, k)[0], late, score
    cdef flags lost = nowhere()
    run[0] = run[0] + step
    # a new block begins: starts_before[place] becomes the sum of the last D - place starts of the one before
    if start % D == 0:
        scale[0] = splat(-INFINITY)
        run[0] = step if start > 0 else splat(-INFINITY)
        at2(ws.starts_before_scale, D, k)[0] = splat(-INFINITY)
        score = splat(0.0)
        if start > 0:
            for u in range(start, v - 1):
                score = score + at2(ws.step, u, k)[0]
            for u in range(start - 1, start - 1 - D, -1):
                place = u - (start - D)
                before = at2(ws.starts_before, place, 0)
                longer = at2(ws.starts_before, place + 1, 0)
                lost |= merge(
                    ring,
                    before,
                    at2(ws.starts_before_scale, place, k),
                    longer,
                    at2(ws.starts_before_scale, place + 1, k)[0],
                    at2(ws.entry, u, 0),
                    score + at2(ws.opening, u, k)[0],
                    low,
                    high,
                )
                score = score + at2(ws.step, u, k)[0]
    late = late_entry(ws, v, k)
    lost |= merge(ring, in_block, scale, in_block, scale[0] + step, at2(ws.entry, start, 0), late, low, high)
    place = start % D + 1  # v - L is this place of the block before; D if it is in the current block
    before = at2(ws.starts_before, place, 0)
    score = at2(ws.starts_before_scale, place, k)[0] + run[0]
    lost |= merge(
        ring, at2(ws.tail, v, 0), at2(ws.tail_scale, v, k), in_block, scale[0], before, score, low, high
    )
    return lost


cdef lanes late_entry(Workspace ws, Py_ssize_t v, Py_ssize_t k) noexcept nogil:
    """Log score up to v, with the entry's scale, of segments that outgrow the window at v; -inf for none."""
    cdef Py_ssize_t t, u = v - 1 - ws.window[k]
    cdef lanes run
    if u < 0:
        return splat(-INFINITY)
    run = at2(ws.opening, u, k)[0]
    for t in range(u + 1, v):
        run = run + at2(ws.step, t, k)[0]
    return run


# out(o) exp out_scale = a(o) exp a_scale + b(o) exp b_scale          one scale for all open states of a body
cdef flags merge(
    semiring* ring,
    lanes* out,
    lanes* out_scale,
    lanes* a,
    lanes a_scale,
    lanes* b,
    lanes b_scale,
    Py_ssize_t low,
    Py_ssize_t high,
) noexcept nogil:
    """Add two vectors with log scales for low <= o < high, into `out` and `out_scale`, which may be the
    arguments themselves; a scale of -inf means that there is no mass.

    RETURNS (flags): the lanes in which a value is lost.
    """
    cdef Py_ssize_t o
    cdef lanes top = larger(a_scale, b_scale), largest = splat(0.0), shift
    cdef lanes less_weight, weight_a, weight_b, from_a, from_b
    cdef flags has_a = less(splat(-INFINITY), a_scale), has_b = less(splat(-INFINITY), b_scale), source
    cdef flags lost = nowhere()
    if semiring is Scaled:  # the larger of the two weights is 1; one is nan where neither has mass
        less_weight = lanes_exp(choose(less(a_scale, b_scale), a_scale - b_scale, b_scale - a_scale))
        weight_a = choose(less(a_scale, b_scale), less_weight, splat(1.0))
        weight_b = choose(less(a_scale, b_scale), splat(1.0), less_weight)
    else:
        weight_a = a_scale
        weight_b = b_scale
    for o in range(low, high):
        from_a = choose(has_a, times(ring, weight_a, a[o]), zero(ring))
        from_b = choose(has_b, times(ring, weight_b, b[o]), zero(ring))
        if semiring is Scaled:
            source = (has_a & differ(a[o], splat(0.0))) | (has_b & differ(b[o], splat(0.0)))
            out[o] = from_a + from_b
            largest = larger(out[o], largest)
            lost |= source & ~at_least(out[o], splat(LOST))
        else:
            out[o] = plus(ring, from_a, from_b)
    if semiring is Scaled:
        shift = exponent(largest)
        weight_a = power_of_two(-shift)
        for o in range(low, high):
            out[o] = out[o] * weight_a
        out_scale[0] = choose(less(splat(0.0), largest), top + shift * splat(LN2), splat(-INFINITY))
    else:
        out_scale[0] = choose(has_a | has_b, splat(0.0), splat(-INFINITY))
    return lost
