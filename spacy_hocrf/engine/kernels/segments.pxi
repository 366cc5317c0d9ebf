# Log scores and weights of the segments that end at one boundary, and of those that start there.


# weight_d(k) = exp (end(v-1) + token(v-d) + Σ_{v-d<t<v} step(t) + length(d) + scale of entry_{v-d}
# - high)
cdef lanes _weigh_endings(Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Compute ws.weight, exp of the scores of `score_endings` less a scale, as products of the tokens' lifted
    scores. RETURNS (lanes): the scale.
    """
    cdef Py_ssize_t k, d, bound, last = batch.lengths - 1, K = fsa.bodies
    cdef lanes high = scale_endings(fsa, batch, ws, v), weight
    cdef lanes* relative = at1(ws.relative, 0)
    cdef lanes* weights
    cdef lanes* token
    cdef lanes* step
    cdef const double* length_weight
    for k in range(K):
        weights = at1(ws.weight, ws.window_offset[k])
        length_weight = &ws.length_weight[k, 0]
        token, step = at2(ws.lifted_token, v - 1, k), at2(ws.lifted_step, v - 1, k)  # [-d * K]: token v-1-d
        weight = at2(ws.lifted_end, v - 1, k)[0]
        bound = min(ws.window[k], v)
        for d in range(bound):
            weights[d] = (weight * relative[d]) * (splat(length_weight[min(d, last)]) * token[-d * K])
            weight = weight * step[-d * K]
    return high


# relative_d = exp (Σ_{v-d≤t<v} shift(t) + shift of the end + scale of entry_{v-d} - high)
cdef lanes scale_endings(Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Compute ws.relative: by length, the scales that all segments which end at v have in common, as weights
    relative to the largest of them and of the tails. RETURNS (lanes): log score of the largest.
    """
    cdef Py_ssize_t k, d, u
    cdef lanes high = splat(-INFINITY), run = at1(ws.end_shift, v - 1)[0]
    cdef lanes* relative = at1(ws.relative, 0)
    for d in range(min(ws.widest, v)):
        u = v - 1 - d
        run = run + at1(ws.shift, u)[0]
        relative[d] = run + at1(ws.entry_scale, u)[0]
        high = larger(relative[d], high)
    for k in range(fsa.bodies if ws.any_tail else 0):
        if ws.has_tail[k]:
            at1(ws.tail_score, k)[0] = _ending_tail(batch, ws, v, k)
            high = larger(at1(ws.tail_score, k)[0], high)
    high = finite_or_zero(high)
    for d in range(min(ws.widest, v)):
        relative[d] = lanes_exp(relative[d] - high)
    return high


cdef inline lanes _ending_tail(Batch batch, Workspace ws, Py_ssize_t v, Py_ssize_t k) noexcept nogil:
    """Log score, with the scale of the tail, of ending a tail of body k at v."""
    cdef lanes ending = at2(ws.tail_scale, v, k)[0] + at2(ws.end, v - 1, k)[0]
    return ending + splat(batch.body_length[k, batch.lengths - 1])


# score_d(k) = end(v-1) + token(v-d) + Σ_{v-d<t<v} step(t) + length(d) + scale of entry_{v-d} +
# span(v-d, v)
cdef void score_endings(Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Compute the log scores, without start scores, of the segments that end at v: score_d of body k into
    ws.score[window_offset[k] + d - 1], -inf if there are none, and those of its tail into ws.tail_score[k].
    """
    cdef Py_ssize_t k, d, e, s, i, bound, last = batch.lengths - 1, K = fsa.bodies
    cdef int lane
    cdef lanes run, ending
    cdef lanes* scores
    cdef lanes* step
    cdef lanes* opening
    for k in range(K):
        scores = at1(ws.score, ws.window_offset[k])
        ending = at2(ws.end, v - 1, k)[0]
        bound = min(ws.window[k], v)
        step = at2(ws.step, v - 1, k)  # [-d * K]: token v-1-d
        opening = at2(ws.opening, v - 1, k)
        run = ending
        for d in range(bound):
            scores[d] = run + opening[-d * K] + splat(batch.body_length[k, min(d, last)])
            run = run + step[-d * K]
        if ws.any_tail and ws.has_tail[k]:
            at1(ws.tail_score, k)[0] = _ending_tail(batch, ws, v, k)
    for lane in range(ws.count):
        while ws.span_next[lane] < ws.span_high[lane]:
            s = batch.span_by_end[ws.span_next[lane]]
            if batch.span_end[s] != ws.base[lane] + v:
                break
            ws.span_next[lane] += 1
            k = fsa.pattern_body[batch.span_pattern[s]]
            if k >= 0:
                d = batch.span_end[s] - batch.span_start[s]
                for i in range(fsa.tree_offsets[k], fsa.tree_offsets[k + 1]):
                    e = fsa.tree[i]
                    if d <= ws.window[e]:
                        ws.score[ws.window_offset[e] + d - 1, lane] += batch.span_score[s]


# weight_d(k) = exp (token(u) + Σ_{u<t<u+d} step(t) + end(u+d-1) + length(d) + scale of beta_{u+d} -
# high)
cdef lanes _weigh_starts(Automaton fsa, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Compute ws.weight, exp of the scores of `score_starts` less a scale, as products of the tokens' lifted
    scores. RETURNS (lanes): the scale.
    """
    cdef Py_ssize_t k, d, bound, last = batch.lengths - 1, K = fsa.bodies
    cdef lanes high = scale_starts(fsa, ws, u), weight
    cdef lanes* relative = at1(ws.relative, 0)
    cdef lanes* weights
    cdef lanes* step
    cdef lanes* end
    cdef const double* length_weight
    for k in range(K):
        weights = at1(ws.weight, ws.window_offset[k])
        length_weight = &ws.length_weight[k, 0]
        step, end = at2(ws.lifted_step, u, k), at2(ws.lifted_end, u, k)  # [d * K]: token u+d
        weight = at2(ws.lifted_token, u, k)[0]
        bound = min(ws.window[k], ws.tokens - u)
        for d in range(bound):
            if d > 0:
                weight = weight * step[d * K]
            weights[d] = (weight * relative[d]) * (splat(length_weight[min(d, last)]) * end[d * K])
    return high


# relative_d = exp (Σ_{u≤t<u+d} shift(t) + shift of the end + scale of beta_{u+d} - high)
cdef lanes scale_starts(Automaton fsa, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Compute ws.relative: by length, the scales that all segments which start at u have in common, as
    weights relative to the largest of them and of the tails. RETURNS (lanes): log score of the largest.
    """
    cdef Py_ssize_t k, d, longest = min(ws.widest, ws.tokens - u)
    cdef lanes high = splat(-INFINITY), run = splat(0.0)
    cdef lanes* relative = at1(ws.relative, 0)
    for d in range(longest):
        run = run + at1(ws.shift, u + d)[0]
        relative[d] = run + at1(ws.end_shift, u + d)[0] + at1(ws.beta_scale, u + d + 1)[0]
        high = larger(relative[d], high)
    for k in range(fsa.bodies if ws.any_tail else 0):
        if ws.has_tail[k]:
            at1(ws.tail_score, k)[0] = _starting_tail(ws, u, k)
            high = larger(at1(ws.tail_score, k)[0], high)
    high = finite_or_zero(high)
    for d in range(longest):
        relative[d] = lanes_exp(relative[d] - high)
    return high


cdef lanes _starting_tail(Workspace ws, Py_ssize_t u, Py_ssize_t k) noexcept nogil:
    """Log score, with the scale of rest, of the first W + 1 tokens of the segments that start at u and
    outgrow the window W; -inf if there are none.
    """
    cdef Py_ssize_t t, v = u + ws.window[k] + 1
    cdef lanes run = at2(ws.token, u, k)[0]
    if v > ws.tokens:
        return splat(-INFINITY)
    for t in range(u + 1, v):
        run = run + at2(ws.step, t, k)[0]
    run = run + at2(ws.rest_scale, v, k)[0]
    return choose(less(splat(-INFINITY), at2(ws.opening, u, k)[0]), run, splat(-INFINITY))


# score_d(k) = token(u) + Σ_{u<t<u+d} step(t) + end(u+d-1) + length(d) + scale of beta_{u+d} +
# span(u, u+d)
cdef void score_starts(Automaton fsa, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Compute the log scores, without start scores, of the segments that start at u: score_d of body k into
    ws.score[window_offset[k] + d - 1], -inf if there are none, and those of its tail into ws.tail_score[k].
    """
    cdef Py_ssize_t k, d, s, i, e, bound, last = batch.lengths - 1, K = fsa.bodies
    cdef int lane
    cdef lanes run
    cdef lanes* scores
    cdef lanes* step
    cdef lanes* closing
    for k in range(K):
        scores = at1(ws.score, ws.window_offset[k])
        run = choose(
            less(splat(-INFINITY), at2(ws.opening, u, k)[0]), at2(ws.token, u, k)[0], splat(-INFINITY)
        )
        bound = min(ws.window[k], ws.tokens - u)
        step = at2(ws.step, u, k)  # [d * K]: token u+d
        closing = at2(ws.closing, u + 1, k)  # [d * K]: boundary u+d+1
        for d in range(bound):
            if d > 0:
                run = run + step[d * K]
            scores[d] = run + closing[d * K] + splat(batch.body_length[k, min(d, last)])
        if ws.any_tail and ws.has_tail[k]:
            at1(ws.tail_score, k)[0] = _starting_tail(ws, u, k)
    for lane in range(ws.count):
        for s in range(ws.span_next[lane], ws.span_low[lane] - 1, -1):
            if batch.span_start[s] != ws.base[lane] + u:
                break
            k = fsa.pattern_body[batch.span_pattern[s]]
            if k >= 0:
                d = batch.span_end[s] - batch.span_start[s]
                for i in range(fsa.tree_offsets[k], fsa.tree_offsets[k + 1]):
                    e = fsa.tree[i]
                    if d <= ws.window[e]:
                        ws.score[ws.window_offset[e] + d - 1, lane] += batch.span_score[s]


cdef lanes _lift_segments(Automaton fsa, Workspace ws, Py_ssize_t longest) noexcept nogil:
    """Lift ws.score, of lengths up to `longest`, to ws.weight in the same memory, relative to the largest of
    them and of the tails. RETURNS (lanes): log score of the largest.
    """
    cdef Py_ssize_t k, d
    cdef lanes high = splat(-INFINITY)
    cdef lanes* scores
    cdef lanes* weights
    for k in range(fsa.bodies):
        scores = at1(ws.score, ws.window_offset[k])
        for d in range(min(ws.window[k], longest)):
            high = larger(scores[d], high)
        if ws.any_tail and ws.has_tail[k]:
            high = larger(at1(ws.tail_score, k)[0], high)
    high = finite_or_zero(high)
    for k in range(fsa.bodies):
        scores = at1(ws.score, ws.window_offset[k])
        weights = at1(ws.weight, ws.window_offset[k])
        for d in range(min(ws.window[k], longest)):
            weights[d] = lanes_exp(scores[d] - high)
    return high
