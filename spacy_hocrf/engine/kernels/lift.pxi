# Lifts log scores to weights: once per batch, once per token, and at tokens with rows.
#
# exp body(u, v, k) is a product over the tokens of the segment. In scaled space the factors of each
# token are lifted once, relative to the token's largest, and multiplied as a segment grows
# (segments.pxi). Logs are added instead only if whole segments have scores.

cdef double MIN_WEIGHT = 1e-300  # of an allowed start, so that its weight is no structural zero


cdef void lift_arcs(semiring* ring, Automaton fsa, Batch batch, Workspace ws) noexcept nogil:
    """Compute the weights that are the same at every boundary, once per call."""
    cdef Py_ssize_t i, k
    cdef lanes weight
    if ws.has_arcs:
        return
    ws.has_arcs = True
    for k in range(fsa.bodies):
        for i in range(batch.lengths):
            ws.length_weight[k, i] = exp(batch.body_length[k, i])
    for i in range(fsa.taken.shape[0]):
        weight = lift(ring, splat(batch.arc_const[fsa.taken[i]]))
        ws.arc_weight[i] = (<double*> &weight)[0]
    for i in range(fsa.taken.shape[0]):
        ws.open_weight[i] = ws.arc_weight[fsa.open_taken[i]]


# first_y(t) = exp (start_y(t) - shift(t)),   shift(t) = max_y start_y(t)
cdef void lift_starts(semiring* ring, Automaton fsa, Batch batch, Workspace ws) noexcept nogil:
    """Lift the start scores of all tokens, at least to MIN_WEIGHT, in scaled space also those of bodies."""
    cdef Py_ssize_t t, y
    cdef bint no_starts = not (fsa.one_token or batch.has_start)
    cdef lanes shift, score
    cdef lanes* first
    cdef flags allowed, faint
    for t in range(ws.tokens):
        first = at2(ws.first, t, 0)
        if semiring is Scaled and no_starts:  # all scores are 0 or -inf
            for y in range(fsa.labels):
                first[y] = choose(less(splat(-INFINITY), first[y]), splat(1.0), splat(0.0))
            at1(ws.first_scale, t)[0] = splat(0.0)
            ws.has_lost_start[t] = False
            continue
        shift = splat(-INFINITY)
        faint = nowhere()
        ws.has_lost_start[t] = False
        if semiring is Scaled:
            for y in range(fsa.labels):
                shift = larger(first[y], shift)
        shift = finite_or_zero(shift)
        at1(ws.first_scale, t)[0] = shift
        if semiring is Scaled:
            for y in range(fsa.labels):
                score = first[y]
                allowed = less(splat(-INFINITY), score)
                score = lanes_exp(score - shift)
                faint |= allowed & less(score, splat(LOST))
                first[y] = choose(allowed, larger(score, splat(MIN_WEIGHT)), splat(0.0))
            ws.has_lost_start[t] = any_of(faint)
    if semiring is Scaled:
        if ws.multiplies:
            _lift_bodies(fsa, batch, ws)


# exp (token - shift),  exp (step - shift),  exp (end - end_shift);   the largest of a token is 1
cdef void _lift_bodies(Automaton fsa, Batch batch, Workspace ws) noexcept nogil:
    """Lift the scores of all bodies; each token has its own log scales, ws.shift and ws.end_shift."""
    cdef Py_ssize_t t, k
    cdef bint same_steps = not (batch.has_inner or batch.has_inner_rows)
    cdef bint no_ends = not (batch.has_end or batch.has_end_rows)
    cdef lanes shift, end_shift
    cdef lanes* token
    cdef lanes* step
    cdef lanes* end
    cdef lanes* lifted_token
    cdef lanes* lifted_step
    cdef lanes* lifted_end
    for t in range(ws.tokens):
        token, step, end = at2(ws.token, t, 0), at2(ws.step, t, 0), at2(ws.end, t, 0)
        shift = end_shift = splat(-INFINITY)
        for k in range(fsa.bodies):
            shift = larger(step[k], larger(token[k], shift))
            end_shift = larger(end[k], end_shift)
        shift, end_shift = finite_or_zero(shift), finite_or_zero(end_shift)
        at1(ws.shift, t)[0] = shift
        at1(ws.end_shift, t)[0] = end_shift
        lifted_token, lifted_step = at2(ws.lifted_token, t, 0), at2(ws.lifted_step, t, 0)
        lifted_end = at2(ws.lifted_end, t, 0)
        for k in range(fsa.bodies):
            lifted_token[k] = lanes_exp(token[k] - shift)
            if same_steps:
                lifted_step[k] = choose(less(splat(-INFINITY), step[k]), lifted_token[k], splat(0.0))
            else:
                lifted_step[k] = lanes_exp(step[k] - shift)
            if no_ends:
                lifted_end[k] = choose(less(splat(-INFINITY), end[k]), splat(1.0), splat(0.0))
            else:
                lifted_end[k] = lanes_exp(end[k] - end_shift)


cdef inline lanes* factor_row(Workspace ws, Py_ssize_t u) noexcept nogil:
    """Pointer to factor_u of all arcs; without room for all tokens, to that of the last token weighed."""
    return at2(ws.factor, u if ws.keeps_factors else 0, 0)


# factor_u(c) = exp Σ_{c' ends c} Σ rows of c' that start at u
cdef void weigh_rows(semiring* ring, Automaton fsa, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Compute factor_u of all arcs. Logs are summed before they are lifted, since e^600 and e^-800 may cancel
    but are out of range by themselves.
    """
    cdef Py_ssize_t i, c, r, s, z, copy
    cdef int lane
    cdef lanes* own = at1(ws.own, 0)
    cdef lanes* summed = at1(ws.summed, 0)
    cdef lanes* factor = factor_row(ws, u)
    cdef Rows rows = rows_of(batch)
    cdef unsigned char* touched = &ws.touched[0]
    for c in range(fsa.arcs):
        touched[c] = False
        own[c] = splat(0.0)
    for lane in range(ws.count):
        if u >= ws.length[lane]:
            continue
        i = ws.base[lane] + u
        for r in range(rows.offsets[i], rows.offsets[i + 1]):
            if rows.target[r] >= 0:
                for copy in range(fsa.copies):
                    c = rows.target[r] + copy * fsa.stride
                    touched[c] = True
                    (<double*> &own[c])[lane] += rows.score[r]
        for s in range(first_span(batch, ws, lane, i), ws.span_high[lane]):
            if batch.span_start[s] > i:
                break
            z = batch.span_pattern[s]
            if batch.span_end[s] == i + 1 and fsa.pattern_body[z] < 0:
                for copy in range(fsa.copies):
                    c = fsa.pattern_arc[z] + copy * fsa.stride
                    touched[c] = True
                    (<double*> &own[c])[lane] += batch.span_score[s]
    for c in range(fsa.arcs):
        if fsa.arc_suffix[c] < 0:
            summed[c] = own[c]
            factor[c] = lift(ring, own[c])
        elif not touched[c]:
            summed[c] = summed[fsa.arc_suffix[c]]
            factor[c] = factor[fsa.arc_suffix[c]]
        else:
            summed[c] = summed[fsa.arc_suffix[c]] + own[c]
            factor[c] = lift(ring, summed[c])
