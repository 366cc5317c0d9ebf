# The probable segments of a semi-CRF, and the probabilities of given segments, for probable.pxi.
#
# A span of a semi-CRF is one segment. With entry and beta at all boundaries,
#
#     P([u, v), y) = Σ_{k ends in y} Σ_{o in k} entry_u(o) exp body(u, v, k) beta_v(target o) / Z
#
# The probability of [u, v) is at most that of some segment of its label to start at u, to end at v, and
# to continue at each token between; and at most that of the start at u minus those of all shorter
# segments from u. Once any but the second of these is too small, all longer segments are too improbable.


cdef void _find_segments(
    bint logs,
    Automaton fsa,
    Batch batch,
    Workspace ws,
    int lane,
    Py_ssize_t low,
    Py_ssize_t high,
    Probable probable,
) noexcept nogil:
    """Find the probable segments of one lane that start at tokens low..high-1 and in its own part, and write
    what else `probable` and ws.edges ask for.
    """
    cdef Py_ssize_t s = ws.sequence[lane], u, i, y
    cdef double least = probable.least - ROUNDING
    if ws.has_edges:
        note_edges(fsa, batch, ws, lane, low, high, True)
    if probable.asks:
        _answer(logs, fsa, batch, ws, lane, low, high, probable)
    for u in range(max(low, batch.own[s, 0] - ws.low), min(high, batch.own[s, 1] - ws.low)):
        if probable.has_starts:
            for i in range(probable.start_labels.shape[0]):
                y = probable.start_labels[i]
                probable.starts[ws.base[lane] + u, i] = ws.started[u, y, lane]
                probable.covers[ws.base[lane] + u, i] = ws.cover[u, y, lane]
        for i in range(probable.rules.shape[0]):
            y = probable.rules[i, ONLY_LABEL]
            if ws.started[u, y, lane] >= least:
                _follow_start(logs, fsa, batch, ws, lane, u, y, i, probable)


cdef void _answer(
    bint logs,
    Automaton fsa,
    Batch batch,
    Workspace ws,
    int lane,
    Py_ssize_t low,
    Py_ssize_t high,
    Probable probable,
) noexcept nogil:
    """Write the probabilities of the lane's segments in `probable.asked` that start at tokens low..high-1."""
    cdef Py_ssize_t s = ws.sequence[lane], i, j, k, t, u, v, y
    cdef Py_ssize_t begin = probable.asked_offsets[s], end = probable.asked_offsets[s + 1], middle
    while begin < end:
        middle = (begin + end) // 2
        if probable.asked[middle, 0] - ws.low < low:
            begin = middle + 1
        else:
            end = middle
    for i in range(begin, probable.asked_offsets[s + 1]):
        u, v, y = probable.asked[i, 0] - ws.low, probable.asked[i, 1] - ws.low, probable.asked[i, 2]
        if u >= high:
            return
        if 0 < fsa.limits[y] < v - u:
            continue
        for j in range(fsa.tree_offsets[y], fsa.tree_offsets[y + 1]):
            k = fsa.tree[j]
            ws.steps[k] = 0.0
            for t in range(u + 1, v):
                ws.steps[k] += ws.step[t, k, lane]
        probable.asked_probability[i] = _segment_probability(
            logs, fsa, batch, ws, lane, u, v, y, probable
        )


cdef void _follow_start(
    bint logs,
    Automaton fsa,
    Batch batch,
    Workspace ws,
    int lane,
    Py_ssize_t u,
    Py_ssize_t y,
    Py_ssize_t rule,
    Probable probable,
) noexcept nogil:
    """Find the probable segments of label y that start at u."""
    cdef Py_ssize_t v, i, k, limit = fsa.limits[y]
    cdef double p, left = ws.started[u, y, lane], least = probable.least - ROUNDING
    for i in range(fsa.tree_offsets[y], fsa.tree_offsets[y + 1]):
        ws.steps[fsa.tree[i]] = 0.0
    for v in range(u + 1, ws.length[lane] + 1):
        if limit > 0 and v - u > limit:
            return
        if v - u > 1:
            if not ws.cover[v - 1, y, lane] - ws.started[v - 1, y, lane] >= least:
                return
            for i in range(fsa.tree_offsets[y], fsa.tree_offsets[y + 1]):
                k = fsa.tree[i]
                ws.steps[k] += ws.step[v - 1, k, lane]
        if ws.ended[v - 1, y, lane] >= least:
            p = _segment_probability(logs, fsa, batch, ws, lane, u, v, y, probable)
            _add_span(probable, ws.sequence[lane], ws.low + u, ws.low + v, rule, p)
            left -= p
            if not left >= least:
                return


# P([u, v), y) = Σ_{k ends in y} Σ_{o in k} entry_u(o) exp body(u, v, k) beta_v(target o) / Z
cdef double _segment_probability(
    bint logs,
    Automaton fsa,
    Batch batch,
    Workspace ws,
    int lane,
    Py_ssize_t u,
    Py_ssize_t v,
    Py_ssize_t y,
    Probable probable,
) noexcept nogil:
    """P([u, v), y) in one lane; ws.steps must have the sums of the steps u+1..v-1 of the label's bodies."""
    cdef Py_ssize_t i, k, o
    cdef double total = 0.0, dot, score
    cdef double scale = ws.entry_scale[u, lane] + ws.beta_scale[v, lane] - ws.log_partition[lane]
    for i in range(fsa.tree_offsets[y], fsa.tree_offsets[y + 1]):
        k = fsa.tree[i]
        score = ws.token[u, k, lane] + ws.steps[k] + ws.end[v - 1, k, lane] + scale
        score += batch.body_length[k, min(v - u, batch.lengths) - 1]
        if ws.span_low[lane] < ws.span_high[lane]:
            score += _whole_score(fsa, batch, ws, lane, u, v, k)
        if score == -INFINITY:
            continue
        dot = 0.0
        for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
            if logs:
                total += exp(ws.entry[u, o, lane] + ws.beta[v, fsa.open_target[o], lane] + score)
            else:
                dot += ws.entry[u, o, lane] * ws.beta[v, fsa.open_target[o], lane]
        if dot > 0.0:
            total += exp(log(dot) + score)  # exp(score) by itself may overflow
    return total


cdef double _whole_score(
    Automaton fsa, Batch batch, Workspace ws, int lane, Py_ssize_t u, Py_ssize_t v, Py_ssize_t k
) noexcept nogil:
    """Sum of the scores of all spans [u, v) of one lane whose pattern body k ends in."""
    cdef Py_ssize_t s, e
    cdef double score = 0.0
    for s in range(first_span(batch, ws, lane, ws.base[lane] + u), ws.span_high[lane]):
        if batch.span_start[s] > ws.base[lane] + u:
            break
        e = k if batch.span_end[s] == ws.base[lane] + v else -1
        while e >= 0:
            if fsa.pattern_body[batch.span_pattern[s]] == e:
                score += batch.span_score[s]
            e = fsa.body_suffix[e]
    return score
