# The backward recurrence over the forward states P, and the counts made on the way.
#
# What may follow depends on the history only through its longest suffix in P, so beta is indexed by
# P, as alpha is:
#
#     open_u(o)  = Σ_{v>u} exp body(u, v, k) beta_v(target o)          o = (k, target)
#     beta_u(p)  = Σ_y ψ_u(c) open_u(open state of c),  c = c(p, y)    the adjoint of the sum program
#
# Nguyen et al., JMLR 15 (2014) §2.3.2, with P in place of the paper's S = P·Y. A beta whose alpha is a
# structural zero is never used.


cdef void backward(
    summing* ring, Automaton fsa, Batch batch, Workspace ws, Counts counts, bint counting
) noexcept nogil:
    """Compute beta and the group's counts, those in `counts` if `counting`; sets `lost` like `forward`."""
    cdef Py_ssize_t T = ws.tokens, u
    cdef int lane
    cdef lanes log_z = known_log_partition(ws)
    if counting and counts.weighted:  # weight · exp(… - log Z) = exp(… - (log Z - log weight))
        for lane in range(ws.count):
            (<double*> &log_z)[lane] -= counts.log_weight[ws.sequence[lane]]
    _clear_group(ring, fsa, batch, ws, counts, counting)
    for u in range(T, -1, -1):
        if u < T:
            if not fsa.one_token:
                _open(ring, fsa, batch, ws, counts, u, log_z, counting)
            _take_arcs(ring, fsa, batch, ws, counts, u, log_z, counting)
        _end(ring, fsa, batch, ws, u)
        if not fsa.one_token:
            _close(fsa, ws, u)
            if ws.any_tail:
                _rest(ring, fsa, batch, ws, u, log_z)


cdef inline void _clear_group(
    summing* ring, Automaton fsa, Batch batch, Workspace ws, Counts counts, bint counting
) noexcept nogil:
    """Set the group's counts and the adjoints to zero, and go to the last span of each lane."""
    cdef Py_ssize_t T = ws.tokens, k, t, i, s
    cdef int lane
    for i in range(fsa.taken.shape[0]):
        at1(ws.arc_now, i)[0] = splat(0.0)
    for i in range(fsa.registers):
        at1(ws.adjoint, i)[0] = zero(ring)
    if not fsa.one_token:
        for k in range(fsa.bodies):
            for t in range(batch.lengths):
                at2(ws.length_now, k, t)[0] = splat(0.0)
        for t in range(T + 1):
            for k in range(fsa.bodies):
                at2(ws.started, t, k)[0] = splat(0.0)
                at2(ws.ended, t, k)[0] = splat(0.0)
    for lane in range(ws.count):
        ws.span_next[lane] = ws.span_high[lane] - 1
        if counting:
            for s in range(ws.span_low[lane], ws.span_high[lane]):
                counts.span[s] = 0.0


cdef void _end(summing* ring, Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Set beta_v to the final scores where a sequence ends at v, and to zero after a shorter one."""
    cdef Py_ssize_t p
    cdef int lane
    cdef double high, value
    cdef bint dead
    for lane in range(LANES):
        if ws.length[lane] != v and not (v == ws.tokens and ws.length[lane] < v):
            continue
        ws.beta_scale[v, lane] = 0.0
        dead = ws.length[lane] != v or lane >= ws.count or ws.lost[lane]
        dead |= ws.log_partition[lane] == -INFINITY
        high = 0.0
        if batch.has_final and not dead and summing is Scaled:
            high = -INFINITY
            for p in range(fsa.states):
                high = max(high, batch.final[ws.sequence[lane], p])
            ws.beta_scale[v, lane] = high
        for p in range(fsa.states):
            ws.beta[v % ws.beta_rows, p, lane] = 0.0 if summing is Scaled else -INFINITY
            if not dead:
                if summing is Scaled:
                    value = exp(batch.final[ws.sequence[lane], p] - high) if batch.has_final else 1.0
                    ws.beta[v % ws.beta_rows, p, lane] = value
                else:
                    ws.beta[v % ws.beta_rows, p, lane] = final_score(batch, ws, lane, p)


cdef void _close(Automaton fsa, Workspace ws, Py_ssize_t v) noexcept nogil:
    """closing_v(k) = end_k(v-1) + scale of beta_v of every body."""
    cdef Py_ssize_t k
    if v == 0:
        return
    for k in range(fsa.bodies):
        at2(ws.closing, v, k)[0] = at2(ws.end, v - 1, k)[0] + at1(ws.beta_scale, v)[0]


cdef inline lanes known_log_partition(Workspace ws) noexcept nogil:
    """log Z of each lane; +inf, so that all probabilities are 0, if it is lost or has no segmentation."""
    cdef lanes log_z = splat(INFINITY)
    cdef int lane
    for lane in range(ws.count):
        if not ws.lost[lane] and ws.log_partition[lane] > -INFINITY:
            (<double*> &log_z)[lane] = ws.log_partition[lane]
    return log_z
