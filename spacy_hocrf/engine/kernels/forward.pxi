# The forward recurrence of a high-order semi-CRF over explicit arcs.
#
# With m_u(c) the mass of all histories that take arc c at boundary u (from the sum program of sums.py),
# body(u, v, k) the log score of the segment [u, v) in body k without its start scores, o = (k, q) an open
# state with body k and target q, and ψ_u(c) the weight of the arc's const and start scores:
#
#     entry_u(o) = Σ_{c in o} m_u(c) ψ_u(c)          arcs are applied once per boundary, not per length
#     alpha_v(q) = Σ_{o: target q} Σ_{u<v} entry_u(o) exp body(u, v, k)
#
# Nguyen et al., JMLR 15 (2014) §2.3.1, factored at the boundary. If every segment has one token (a CRF),
# all of its scores are known at its start, so body = 0 and entry_u is alpha_{u+1}.


cdef inline void run_forward(semiring* ring, Automaton fsa, Batch batch, Workspace ws) noexcept nogil:
    """Lift the loaded scores and run the forward recurrence."""
    lift_arcs(ring, fsa, batch, ws)
    lift_starts(ring, fsa, batch, ws)
    forward(ring, fsa, batch, ws)


cdef void forward(semiring* ring, Automaton fsa, Batch batch, Workspace ws) noexcept nogil:
    """Compute alpha, entry and log partition of the loaded sequences; sets `lost` where values are lost."""
    cdef Py_ssize_t v
    cdef int lane
    _start(ring, fsa, batch, ws)
    for lane in range(ws.count):
        if ws.length[lane] == 0:
            _finish(ring, fsa, batch, ws, lane)
    for v in range(1, ws.tokens + 1):
        _enter(ring, fsa, batch, ws, v - 1)
        if not fsa.one_token:
            _leave(ring, fsa, batch, ws, v)
        for lane in range(ws.count):
            if ws.length[lane] == v:
                _finish(ring, fsa, batch, ws, lane)


cdef void _start(semiring* ring, Automaton fsa, Batch batch, Workspace ws) noexcept nogil:
    """Set alpha before the first token: the batch's initial scores, or all mass on the empty history."""
    cdef Py_ssize_t p
    cdef int lane
    cdef double high, score
    cdef lanes* alpha = at2(ws.alpha, 0, 0)
    at1(ws.alpha_scale, 0)[0] = splat(0.0)
    for p in range(fsa.states):
        alpha[p] = zero(ring)
    if not batch.has_initial:
        alpha[0] = lift(ring, splat(0.0))
        return
    for lane in range(ws.count):
        high = -INFINITY
        for p in range(fsa.states):
            high = max(high, batch.initial[ws.sequence[lane], p])
        if semiring is not Scaled or high == -INFINITY:
            high = 0.0
        ws.alpha_scale[0, lane] = high
        for p in range(fsa.states):
            score = batch.initial[ws.sequence[lane], p] - high
            if semiring is Scaled:
                ws.alpha[0, p, lane] = exp(score)
                if ws.alpha[0, p, lane] < LOST and score > -INFINITY:
                    ws.lost[lane] = True
                    ws.extent[lane] = 0.0
            else:
                ws.alpha[0, p, lane] = score


# log Z = log Σ_q alpha_T(q) exp final(q)
cdef void _finish(semiring* ring, Automaton fsa, Batch batch, Workspace ws, int lane) noexcept nogil:
    """Set the log partition of a lane, in (max, +) the score of its best segmentation."""
    cdef Py_ssize_t p, v = ws.length[lane]
    cdef double last = 0.0, value, behind, high = -INFINITY
    if batch.has_final and semiring is Scaled:
        last = -INFINITY
        for p in range(fsa.states):
            last = max(last, batch.final[ws.sequence[lane], p])
        if last == -INFINITY:
            last = 0.0
    value = 0.0
    if semiring is Scaled:
        for p in range(fsa.states):
            behind = exp(final_score(batch, ws, lane, p) - last) if batch.has_final else 1.0
            value += ws.alpha[v, p, lane] * behind
        ws.log_partition[lane] = log(value) + ws.alpha_scale[v, lane] + last if value > 0.0 else -INFINITY
        if not value >= LOST:
            for p in range(fsa.states):
                if ws.alpha[v, p, lane] != 0.0 and final_score(batch, ws, lane, p) > -INFINITY:
                    ws.lost[lane] = True
                    ws.extent[lane] = 0.0
    else:
        for p in range(fsa.states):
            high = max(high, ws.alpha[v, p, lane] + final_score(batch, ws, lane, p))
        if semiring is Log and high > -INFINITY:
            for p in range(fsa.states):
                value += exp(ws.alpha[v, p, lane] + final_score(batch, ws, lane, p) - high)
            high += log(value)
        ws.log_partition[lane] = high
