# Expected counts: the products of forward and backward values, summed to the entries of the potentials.
#
#     P(arc c is taken at u)        = m_u(c) ψ_u(c) open_u(o) / Z
#     P(segment [u, v) in body k)   = Σ_{o in k} entry_u(o) exp body(u, v, k) beta_v(target o) / Z
#
# and P(pattern z ends there) is the sum over the arcs or bodies that end in z: a sum over a suffix tree,
# computed once per batch if the score is the same at every token.


cdef void _count_spans(
    Automaton fsa, Batch batch, Workspace ws, Counts counts, Py_ssize_t u, bint counting
) noexcept nogil:
    """Add the probabilities in ws.share to the counts of the spans that start at u, if `counting`; move
    ws.span_next to the next span on the left.
    """
    cdef Py_ssize_t s, k, d, i, e
    cdef int lane
    for lane in range(ws.count):
        for s in range(ws.span_next[lane], ws.span_low[lane] - 1, -1):
            if batch.span_start[s] != ws.base[lane] + u:
                break
            ws.span_next[lane] = s - 1
            k = fsa.pattern_body[batch.span_pattern[s]]
            if k >= 0 and counting:
                d = batch.span_end[s] - batch.span_start[s]
                for i in range(fsa.tree_offsets[k], fsa.tree_offsets[k + 1]):
                    e = fsa.tree[i]
                    if d <= ws.window[e]:
                        counts.span[s] += ws.share[ws.window_offset[e] + d - 1, lane]


cdef void _count_rows(Automaton fsa, Batch batch, Workspace ws, Counts counts, Py_ssize_t u) noexcept nogil:
    """Count the rows and one-token spans of arcs at u from ws.arc_value, which the sums overwrite."""
    cdef Py_ssize_t c, r, s, z, t, copy
    cdef int lane
    cdef double count
    cdef lanes* arc_value = at1(ws.arc_value, 0)
    cdef const double* values = &ws.arc_value[0, 0]  # [C, LANES], flat
    cdef Rows rows = rows_of(batch)
    cdef double* row = &counts.row[0] if batch.rows else NULL
    for c in range(fsa.arcs - 1, -1, -1):
        if fsa.arc_suffix[c] >= 0:
            arc_value[fsa.arc_suffix[c]] += arc_value[c]
    for lane in range(ws.count):
        if u >= ws.length[lane]:
            continue
        t = ws.base[lane] + u
        for r in range(rows.offsets[t], rows.offsets[t + 1]):
            if rows.target[r] >= 0:
                count = values[rows.target[r] * LANES + lane]
                for copy in range(1, fsa.copies):
                    count += values[(rows.target[r] + copy * fsa.stride) * LANES + lane]
                row[r] = count
        for s in range(first_span(batch, ws, lane, t), ws.span_high[lane]):
            if batch.span_start[s] > t:
                break
            z = batch.span_pattern[s]
            if batch.span_end[s] == t + 1 and fsa.pattern_body[z] < 0:
                count = 0.0
                for copy in range(fsa.copies):
                    c = fsa.pattern_arc[z] + copy * fsa.stride
                    count += ws.arc_value[c, lane]
                counts.span[s] = count


# P(label y at u) = Σ_{o of label y} alpha_{u+1}(o) beta_{u+1}(o) / Z          in a CRF
cdef void _count_labels(
    summing* ring, Automaton fsa, Workspace ws, Counts counts, Py_ssize_t u, lanes log_z
) noexcept nogil:
    """Count the labels of a CRF at token u, from alpha and beta at the boundary after it; the counts of all
    parts of the segment are the same.
    """
    cdef Py_ssize_t o, y, t, Y = fsa.labels
    cdef int lane
    cdef lanes* starts = at1(ws.starts, 0)
    cdef lanes* alpha = at2(ws.alpha, u + 1, 0)
    cdef lanes* beta = beta_row(ws, u + 1)
    cdef const int* label = _first_of(fsa.open_label)
    cdef const double* source
    cdef double* into
    cdef lanes outer = at1(ws.alpha_scale, u + 1)[0] + at1(ws.beta_scale, u + 1)[0] - log_z
    outer = lift(ring, choose(within(ws, u), outer, splat(-INFINITY)))
    for y in range(Y):
        starts[y] = splat(0.0)
    for o in range(1, fsa.states):
        starts[label[o]] = starts[label[o]] + probability(ring, times(ring, alpha[o], beta[o]), outer)
    for lane in range(ws.count):
        if u >= ws.length[lane]:
            continue
        t = ws.base[lane] + u
        source = <double*> starts + lane
        into = &counts.token[t, 0]
        for y in range(Y):
            into[y] = source[y * LANES]
        if counts.wants_start:
            for y in range(Y):
                counts.start[t, y] = source[y * LANES]
        if counts.wants_end:
            for y in range(Y):
                counts.end[t, y] = source[y * LANES]


cdef void _collect(Automaton fsa, Batch batch, Workspace ws, Counts counts) noexcept nogil:
    """Add the counts of the group's arcs and lengths to those of the batch, without lost sequences; write the
    counts of tokens and of the rows of bodies.
    """
    cdef Py_ssize_t i, k, m
    cdef int lane
    cdef lanes kept = splat(0.0)
    cdef flags fine
    for lane in range(ws.count):
        (<double*> &kept)[lane] = 0.0 if ws.lost[lane] else 1.0
    fine = differ(kept, splat(0.0))
    for i in range(fsa.taken.shape[0]):
        at1(ws.arc_sum, i)[0] += choose(fine, at1(ws.arc_now, i)[0], splat(0.0))
    if fsa.one_token:
        return
    for k in range(fsa.bodies):
        for m in range(batch.lengths):
            at2(ws.length_sum, k, m)[0] += choose(fine, at2(ws.length_now, k, m)[0], splat(0.0))
    _cover(fsa, ws)
    for lane in range(ws.count):
        _write_tokens(fsa, batch, ws, counts, lane)


# inside_t(k) = inside_{t-1}(k) + started_t(k) - ended_{t-1}(k)          segments in body k that cover token t
cdef void _cover(Automaton fsa, Workspace ws) noexcept nogil:
    """Compute ws.cover from ws.started and ws.ended, and add the counts of each body to those of its suffix:
    afterwards all three count the segments of all bodies that end in a body.
    """
    cdef Py_ssize_t t, k, suffix
    cdef lanes* inside = at1(ws.inside, 0)
    cdef lanes* started
    cdef lanes* ended
    for k in range(fsa.bodies):
        inside[k] = splat(0.0)
    for t in range(ws.tokens):
        started = at2(ws.started, t, 0)
        ended = at2(ws.ended, t, 0)
        for k in range(fsa.bodies - 1, -1, -1):
            suffix = fsa.body_suffix[k]
            inside[k] = inside[k] + started[k]
            at2(ws.cover, t, k)[0] = inside[k]
            inside[k] = inside[k] - ended[k]
            if suffix >= 0:
                started[suffix] = started[suffix] + started[k]
                ended[suffix] = ended[suffix] + ended[k]


cdef void _write_tokens(Automaton fsa, Batch batch, Workspace ws, Counts counts, int lane) noexcept nogil:
    """Write the counts of one lane's tokens and of the rows that belong to bodies."""
    cdef Py_ssize_t t, y, i, r, k
    cdef int target, part
    cdef Rows rows = rows_of(batch)
    cdef double* row = &counts.row[0] if batch.rows else NULL
    cdef double* started
    cdef double* ended
    cdef double* cover
    for t in range(ws.length[lane]):
        i = ws.base[lane] + t
        started, ended, cover = &ws.started[t, 0, lane], &ws.ended[t, 0, lane], &ws.cover[t, 0, lane]
        for y in range(fsa.labels):
            counts.token[i, y] = ws.cover[t, y, lane]
        if counts.wants_start:
            for y in range(fsa.labels):
                counts.start[i, y] = ws.started[t, y, lane]
        if counts.wants_inner:
            for y in range(fsa.labels):
                counts.inner[i, y] = ws.cover[t, y, lane] - ws.started[t, y, lane]
        if counts.wants_end:
            for y in range(fsa.labels):
                counts.end[i, y] = ws.ended[t, y, lane]
        if batch.rows == 0:
            continue
        for r in range(rows.first_of_body[i], rows.offsets[i + 1]):
            target = rows.target[r]
            if target >= 0:
                continue  # the row of an arc, see _count_rows
            k, part = (~target >> 2) * LANES, ~target & 3
            if part == PART_TOKEN:
                row[r] = cover[k]
            elif part == PART_INNER:
                row[r] = cover[k] - started[k]
            elif part == PART_END:
                row[r] = ended[k]


cdef void _clear_sums(Automaton fsa, Batch batch, Workspace ws) noexcept nogil:
    """Set the counts of arcs and lengths of all groups to zero."""
    cdef Py_ssize_t i, k, m
    for i in range(fsa.taken.shape[0]):
        at1(ws.arc_sum, i)[0] = splat(0.0)
    for k in range(fsa.bodies):
        for m in range(batch.lengths):
            at2(ws.length_sum, k, m)[0] = splat(0.0)


cdef void _add_sums_into(
    Automaton fsa, Batch batch, Workspace ws, double[::1] arc, double[:, ::1] body_length
) noexcept nogil:
    """Add the counts of all groups to `arc`, float64 [C], and `body_length`, float64 [K, M]."""
    cdef Py_ssize_t i, k, m
    cdef int lane
    for i in range(fsa.taken.shape[0]):
        for lane in range(LANES):
            arc[fsa.taken[i]] += ws.arc_sum[i, lane]
    for k in range(fsa.bodies):
        for m in range(batch.lengths):
            for lane in range(LANES):
                body_length[k, m] += ws.length_sum[k, m, lane]
