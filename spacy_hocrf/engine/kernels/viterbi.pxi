# The best segmentation: the forward recurrence in (max, +), then the arg max along the best path only.
#
# Nguyen et al., JMLR 15 (2014) §2.4. No back-pointers are kept. The best paths of all lanes are traced
# together from right to left. Where a segment of a path begins, the sum program is run again on alpha,
# the best arc into the segment's open state is found, and from the arc's register the larger term of
# each addition leads back to a state. The segment that ends in this state is found by scoring again all
# segments that end there.


def viterbi(
    Workspace ws not None,
    Batch batch not None,
    const long long[::1] chosen not None,
    int[:, ::1] segments not None,
    long long[::1] counts not None,
    double[::1] scores not None,
    edges,
):
    """Find the best segmentation of chosen sequences, LANES at a time in their order.

    chosen (int64 [n]): numbers of the sequences.
    segments (int32 [N, 3]): gets start, end and label of each sequence's segments, the last one first,
        from row `batch.offsets[d]` of sequence d on.
    counts (int64 [D]), scores (float64 [D]): get the number of segments and the score; -inf if there
        is no segmentation.
    edges (Optional[Edges]): gets alpha where the own part of each sequence begins and ends.
    RETURNS (bool): whether some score is not finite.
    """
    cdef Automaton fsa = ws.fsa
    cdef Py_ssize_t group = 0
    cdef int lane
    ws.reserve(_longest(batch, chosen), batch.lengths, False, False)
    ws.not_finite = False
    take_edges(ws, edges)
    with nogil:
        while group < chosen.shape[0]:
            load(fsa, batch, ws, &chosen[group], <int> min(LANES, chosen.shape[0] - group))
            run_forward(MAX, fsa, batch, ws)
            _trace(fsa, batch, ws, segments, counts)
            for lane in range(ws.count):
                scores[ws.sequence[lane]] = ws.log_partition[lane]
                if ws.has_edges:
                    note_edges(fsa, batch, ws, lane, 0, ws.length[lane], False)
            group += LANES
    return ws.not_finite


cdef struct Step:
    Py_ssize_t begin  # first token of the segment that was traced last
    Py_ssize_t open_state  # its open state
    Py_ssize_t state  # forward state at its end


cdef void _trace(
    Automaton fsa, Batch batch, Workspace ws, int[:, ::1] segments, long long[::1] counts
) noexcept nogil:
    """Write the best segments of every lane, last one first."""
    cdef Py_ssize_t u, p, at
    cdef int lane
    cdef bint wanted
    cdef double best
    cdef Step steps[MAX_LANES]
    cdef Step* step
    for lane in range(ws.count):
        counts[ws.sequence[lane]] = 0
        steps[lane].begin = -1
        ws.span_next[lane] = ws.span_high[lane]
    for u in range(ws.tokens, -1, -1):
        wanted = False
        for lane in range(ws.count):
            wanted |= steps[lane].begin == u
        if wanted:
            sum_entries(MAX, fsa, ws, u)
            if ws.has_rows[u] and not ws.keeps_factors:
                weigh_rows(MAX, fsa, batch, ws, u)
        for lane in range(ws.count):
            step = &steps[lane]
            if ws.length[lane] == u and ws.log_partition[lane] > -INFINITY:
                best = -INFINITY
                for p in range(fsa.states):
                    if ws.alpha[u, p, lane] + final_score(batch, ws, lane, p) > best:
                        best = ws.alpha[u, p, lane] + final_score(batch, ws, lane, p)
                        step.state = p
            elif step.begin == u:
                step.state = _state_before(fsa, ws, u, lane, step.open_state)
            else:
                continue
            if u > 0:
                _last_segment(fsa, batch, ws, u, lane, step)
                at = batch.offsets[ws.sequence[lane]] + counts[ws.sequence[lane]]
                segments[at, 0] = <int> step.begin
                segments[at, 1] = <int> u
                segments[at, 2] = fsa.open_label[step.open_state]
                counts[ws.sequence[lane]] += 1


cdef void _last_segment(
    Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v, int lane, Step* step
) noexcept nogil:
    """Start and open state of the best segment that ends at v in state step.state."""
    cdef Py_ssize_t k, d, o, last = batch.lengths - 1
    cdef double best = -INFINITY, value, run, score
    cdef bint in_tail = False
    if fsa.one_token:
        step.begin = v - 1
        step.open_state = step.state
        return
    while ws.span_next[lane] > ws.span_low[lane]:
        if batch.span_end[batch.span_by_end[ws.span_next[lane] - 1]] <= ws.base[lane] + v:
            break
        ws.span_next[lane] -= 1
    for k in range(fsa.bodies):
        for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
            if fsa.open_target[o] != step.state:
                continue
            run = ws.end[v - 1, k, lane]
            for d in range(min(ws.window[k], v)):
                score = run + ws.opening[v - 1 - d, k, lane] + batch.body_length[k, min(d, last)]
                if ws.span_low[lane] < ws.span_high[lane]:
                    score += _span_score(fsa, batch, ws, lane, k, v - 1 - d, v)
                value = score + ws.entry[v - 1 - d, o, lane]
                if score > -INFINITY and value > best:
                    best = value
                    step.begin = v - 1 - d
                    step.open_state = o
                    in_tail = False
                run += ws.step[v - 1 - d, k, lane]
            if ws.any_tail and ws.has_tail[k]:
                score = ws.tail_scale[v, k, lane] + ws.end[v - 1, k, lane] + batch.body_length[k, last]
                if score > -INFINITY and score + ws.tail[v, o, lane] > best:
                    best = score + ws.tail[v, o, lane]
                    step.open_state = o
                    in_tail = True
    if in_tail:
        step.begin = _tail_start(fsa, ws, v, lane, step.open_state)


cdef double _span_score(
    Automaton fsa, Batch batch, Workspace ws, int lane, Py_ssize_t k, Py_ssize_t u, Py_ssize_t v
) noexcept nogil:
    """Sum of the scores of all spans [u, v) whose pattern body k ends in; ws.span_next must be one past the
    last span that ends at v.
    """
    cdef Py_ssize_t i, s, e
    cdef double score = 0.0
    for i in range(ws.span_next[lane] - 1, ws.span_low[lane] - 1, -1):
        s = batch.span_by_end[i]
        if batch.span_end[s] != ws.base[lane] + v:
            break
        e = k if batch.span_start[s] == ws.base[lane] + u else -1
        while e >= 0:
            if fsa.pattern_body[batch.span_pattern[s]] == e:
                score += batch.span_score[s]
            e = fsa.body_suffix[e]
    return score


cdef Py_ssize_t _tail_start(Automaton fsa, Workspace ws, Py_ssize_t v, int lane, Py_ssize_t o) noexcept nogil:
    """The start of the best tail that is in open state o at v: the best of all possible starts.

    Without a limit, the search to the left ends where the best start so far beats all earlier ones.
    """
    cdef Py_ssize_t k = 0, u, t, best_start = -1
    cdef double best = -INFINITY, here, behind = 0.0, since = 0.0
    while o >= fsa.body_offsets[k + 1]:
        k += 1
    u = v - 1 - ws.window[k]
    for t in range(u + 1, v):
        behind += ws.step[t, k, lane]
    while u >= 0 and behind > -INFINITY and (ws.block[k] == 0 or u >= v - ws.window[k] - ws.block[k]):
        here = behind + ws.opening[u, k, lane] + ws.entry[u, o, lane]
        if here > best:
            best = here
            best_start = u
        behind += ws.step[u, k, lane]
        t = u + ws.window[k]  # boundary at which tails that began before u are open
        since += ws.step[t, k, lane]
        if ws.block[k] == 0:
            if ws.tail_scale[t, k, lane] == -INFINITY or best >= ws.tail[t, o, lane] + since:
                break
        u -= 1
    return best_start


cdef Py_ssize_t _state_before(
    Automaton fsa, Workspace ws, Py_ssize_t u, int lane, Py_ssize_t o
) noexcept nogil:
    """The best state at u from which an arc enters open state o; the sum program must have run on alpha_u."""
    cdef Py_ssize_t place, i, register = -1, P = fsa.states
    cdef double best = -INFINITY, value
    for place in range(fsa.open_offsets[o], fsa.open_offsets[o + 1]):
        i = fsa.open_taken[place]
        value = ws.x[fsa.taken_register[i], lane] + ws.arc_weight[i]
        if ws.has_rows[u]:
            value += (<double*> &factor_row(ws, u)[fsa.taken[i]])[lane]
        if value > best:
            best = value
            register = fsa.taken_register[i]
    while register >= P:
        i = register - P
        if ws.x[fsa.additions[i, 2], lane] > ws.x[fsa.additions[i, 1], lane]:
            register = fsa.additions[i, 2]
        else:
            register = fsa.additions[i, 1]
    return register
