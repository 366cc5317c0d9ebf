# log Z, expected counts and marginals: the backward recurrence over P and the products of both sides.
#
# The future depends on the history only through its longest suffix in P, so beta lives on P, as alpha does:
#
#     open_u(o)  = Σ_{v>u} exp body(u, v, k) beta_v(target o)          o = (k, target)
#     beta_u(p)  = Σ_y ψ_u(c) open_u(open state of c),  c = c(p, y)    the adjoint of the sum program
#
#     P(arc c is taken at u)        = m_u(c) ψ_u(c) open_u(o) / Z
#     P(segment [u, v) in body k)   = Σ_{o in k} entry_u(o) exp body(u, v, k) beta_v(target o) / Z
#
# and P(pattern z ends there) is the sum over the arcs or bodies that end in z: a sum over a suffix tree, made once per batch where
# it can be. Nguyen et al., JMLR 15 (2014) §2.3.2, whose beta over S = P·Y this replaces. Values of beta whose alpha is a structural
# zero are never used and left zero.


cdef class Counts:
    """Views of the arrays that expected counts go to, per token, row and span; see types.Expectations."""
    cdef double[:, ::1] start, end, token, inner
    cdef bint wants_start, wants_end, wants_inner
    cdef double[::1] row, span

    def __init__(self, expected):
        self.wants_start = expected.start is not None
        self.wants_end = expected.end is not None
        self.wants_inner = expected.inner is not None
        self.token = expected.token
        self.start = expected.start if self.wants_start else expected.token
        self.end = expected.end if self.wants_end else expected.token
        self.inner = expected.inner if self.wants_inner else expected.token
        self.row = expected.row
        self.span = expected.span


def log_partitions(
    Workspace ws not None, Batch batch not None, const long long[::1] chosen not None, space, double[::1] out not None
):
    """log Z of chosen sequences, LANES at a time in their order, into `out` [D].

    space (str): "scaled" or "log".
    RETURNS (tuple[list[int], bool]): sequences in which a value was lost, and whether some score is not finite.
    """
    cdef Chain chain = ws.chain
    cdef Py_ssize_t group = 0
    cdef int lane
    cdef bint logs = space == "log"
    cdef unsigned char[::1] lost = np.zeros(batch.sequences, dtype=np.uint8)
    ws.reserve(_longest(batch, chosen), batch.lengths, False, False)
    ws.strange = False
    with nogil:
        while group < chosen.shape[0]:
            load(chain, batch, ws, &chosen[group], <int> min(LANES, chosen.shape[0] - group))
            if logs:
                lift_arcs(<Log*> NULL, chain, batch, ws)
                lift_starts(<Log*> NULL, chain, batch, ws)
                forward(<Log*> NULL, chain, batch, ws)
            else:
                lift_arcs(<Scaled*> NULL, chain, batch, ws)
                lift_starts(<Scaled*> NULL, chain, batch, ws)
                forward(<Scaled*> NULL, chain, batch, ws)
            for lane in range(ws.count):
                out[ws.sequence[lane]] = ws.log_partition[lane]
                lost[ws.sequence[lane]] = ws.lost[lane]
            group += LANES
    return np.flatnonzero(lost).tolist(), ws.strange


def count(
    Workspace ws not None,
    Batch batch not None,
    Counts counts not None,
    const long long[::1] chosen not None,
    space,
    double[::1] out not None,
    double[::1] arc not None,
    double[:, ::1] body_length not None,
):
    """log Z and expected counts of chosen sequences, LANES at a time in their order.

    space (str): "scaled" or "log".
    out (float64 [D]), counts: get the values of these sequences; those of a lost one are meaningless.
    arc (float64 [C]), body_length (float64 [K, M]): what is added to: arcs taken, and segments of each body by length.
    RETURNS (tuple[list[int], bool]): sequences in which a value was lost, and whether some score is not finite.
    """
    cdef Chain chain = ws.chain
    cdef Py_ssize_t group = 0
    cdef int lane
    cdef bint logs = space == "log"
    cdef unsigned char[::1] lost = np.zeros(batch.sequences, dtype=np.uint8)
    ws.reserve(_longest(batch, chosen), batch.lengths, True, False)
    ws.strange = False
    _clear_sums(chain, batch, ws)
    with nogil:
        while group < chosen.shape[0]:
            load(chain, batch, ws, &chosen[group], <int> min(LANES, chosen.shape[0] - group))
            if logs:
                lift_arcs(<Log*> NULL, chain, batch, ws)
                lift_starts(<Log*> NULL, chain, batch, ws)
                forward(<Log*> NULL, chain, batch, ws)
                backward(<Log*> NULL, chain, batch, ws, counts, True)
            else:
                lift_arcs(<Scaled*> NULL, chain, batch, ws)
                lift_starts(<Scaled*> NULL, chain, batch, ws)
                forward(<Scaled*> NULL, chain, batch, ws)
                backward(<Scaled*> NULL, chain, batch, ws, counts, True)
            _collect(chain, batch, ws, counts)
            for lane in range(ws.count):
                out[ws.sequence[lane]] = ws.log_partition[lane]
                lost[ws.sequence[lane]] = ws.lost[lane]
            group += LANES
        _add_sums_into(chain, batch, ws, arc, body_length)
    return np.flatnonzero(lost).tolist(), ws.strange


def state_scores(
    Workspace ws not None,
    Batch batch not None,
    const long long[::1] chosen not None,
    space,
    double[:, ::1] log_alpha not None,
    double[:, ::1] log_beta not None,
):
    """Log alpha and log beta at every boundary of chosen sequences, into arrays [N + D, P].

    RETURNS (tuple[list[int], bool]): sequences in which a value was lost, and whether some score is not finite.
    """
    cdef Chain chain = ws.chain
    cdef Py_ssize_t group, v, p, row
    cdef int lane
    cdef bint logs = space == "log"
    cdef Counts counts = None
    ws.reserve(_longest(batch, chosen), batch.lengths, True, True)
    ws.strange = False
    _clear_sums(chain, batch, ws)
    lost = []
    for group in range(0, chosen.shape[0], LANES):
        with nogil:
            load(chain, batch, ws, &chosen[group], <int> min(LANES, chosen.shape[0] - group))
            if logs:
                lift_arcs(<Log*> NULL, chain, batch, ws)
                lift_starts(<Log*> NULL, chain, batch, ws)
                forward(<Log*> NULL, chain, batch, ws)
                backward(<Log*> NULL, chain, batch, ws, counts, False)
            else:
                lift_arcs(<Scaled*> NULL, chain, batch, ws)
                lift_starts(<Scaled*> NULL, chain, batch, ws)
                forward(<Scaled*> NULL, chain, batch, ws)
                backward(<Scaled*> NULL, chain, batch, ws, counts, False)
            for lane in range(ws.count):
                for v in range(ws.length[lane] + 1):
                    row = ws.base[lane] + ws.sequence[lane] + v
                    for p in range(chain.states):
                        if logs:
                            log_alpha[row, p], log_beta[row, p] = ws.alpha[v, p, lane], ws.beta[v, p, lane]
                        else:
                            log_alpha[row, p] = log(ws.alpha[v, p, lane]) + ws.alpha_scale[v, lane]
                            log_beta[row, p] = log(ws.beta[v, p, lane]) + ws.beta_scale[v, lane]
        for lane in range(ws.count):
            if ws.lost[lane]:
                lost.append(ws.sequence[lane])
    return lost, ws.strange


cdef Py_ssize_t _longest(Batch batch, const long long[::1] chosen):
    cdef Py_ssize_t i, longest = 0
    for i in range(chosen.shape[0]):
        longest = max(longest, batch.offsets[chosen[i] + 1] - batch.offsets[chosen[i]])
    return longest


cdef void _clear_sums(Chain chain, Batch batch, Workspace ws) noexcept nogil:
    cdef Py_ssize_t i, k, m
    for i in range(chain.taken.shape[0]):
        (<lanes*> &ws.arc_sum[i, 0])[0] = splat(0.0)
    for k in range(chain.bodies):
        for m in range(batch.lengths):
            (<lanes*> &ws.length_sum[k, m, 0])[0] = splat(0.0)
    if chain.dense:
        for i in range(chain.states):
            for m in range(chain.columns):
                (<lanes*> &ws.pair_sum[i, m, 0])[0] = splat(0.0)


cdef void _add_sums_into(Chain chain, Batch batch, Workspace ws, double[::1] arc, double[:, ::1] body_length) noexcept nogil:
    cdef Py_ssize_t i, k, m
    cdef int lane
    for i in range(chain.taken.shape[0]):
        for lane in range(LANES):
            arc[chain.taken[i]] += ws.arc_sum[i, lane]
    for k in range(chain.bodies):
        for m in range(batch.lengths):
            for lane in range(LANES):
                body_length[k, m] += ws.length_sum[k, m, lane]
    if chain.dense:
        for i in range(chain.states):
            for m in range(chain.labels):
                k = chain.pair_place[i, m]
                for lane in range(LANES if k >= 0 else 0):
                    arc[chain.taken[k]] += ws.pair_sum[i, m, lane] * ws.pair_weight[i, m]


cdef inline lanes probability(summing* _, lanes value, lanes outer) noexcept nogil:
    """A product of both sides as a probability; `outer` is the lifted scale, -log Z included."""
    if summing is Scaled:
        return value * outer
    else:
        return lanes_exp(value + outer)


cdef inline lanes* beta_row(Workspace ws, Py_ssize_t v) noexcept nogil:
    return <lanes*> &ws.beta[v % ws.beta_rows, 0, 0]


cdef inline lanes known_log_partition(Workspace ws) noexcept nogil:
    """log Z of each lane; +inf, which makes all its probabilities 0, where there is no segmentation."""
    cdef lanes found = splat(INFINITY)
    cdef int lane
    for lane in range(ws.count):
        if not ws.lost[lane] and ws.log_partition[lane] > -INFINITY:
            (<double*> &found)[lane] = ws.log_partition[lane]
    return found


cdef void backward(summing* _, Chain chain, Batch batch, Workspace ws, Counts counts, bint counting) noexcept nogil:
    """Fill beta and the group's own counts; sets `lost` where a live value was lost."""
    cdef Py_ssize_t T = ws.tokens, k, t, i, u, s, p
    cdef int lane
    cdef lanes log_z = known_log_partition(ws)
    for i in range(chain.taken.shape[0]):
        (<lanes*> &ws.arc_now[i, 0])[0] = splat(0.0)
    for i in range(chain.registers):
        (<lanes*> &ws.adjoint[i, 0])[0] = zero(_)
    if chain.dense:
        for p in range(chain.states):
            for k in range(chain.columns):
                (<lanes*> &ws.pair_now[p, k, 0])[0] = splat(0.0)
    if not chain.one_token:
        for k in range(chain.bodies):
            for t in range(batch.lengths):
                (<lanes*> &ws.length_now[k, t, 0])[0] = splat(0.0)
        for t in range(T + 1):
            for k in range(chain.bodies):
                (<lanes*> &ws.started[t, k, 0])[0] = splat(0.0)
                (<lanes*> &ws.ended[t, k, 0])[0] = splat(0.0)
    for lane in range(ws.count):
        ws.span_next[lane] = ws.span_high[lane] - 1
        if counting:
            for s in range(ws.span_low[lane], ws.span_high[lane]):
                counts.span[s] = 0.0
    for u in range(T, -1, -1):
        if u < T:
            if not chain.one_token:
                _open(_, chain, batch, ws, counts, u, log_z, counting)
            _take_arcs(_, chain, batch, ws, counts, u, log_z, counting)
        _end(_, chain, batch, ws, u)
        if not chain.one_token:
            _close(chain, ws, u)
            if ws.any_free:
                _rest(_, chain, batch, ws, u, log_z)
    if summing is Scaled and chain.dense and counting:
        _count_pairs(chain, ws)


cdef void _end(summing* _, Chain chain, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """beta of the lanes whose sequence ends at v; nothing lies behind those that are shorter still."""
    cdef Py_ssize_t p
    cdef int lane
    cdef double high
    cdef bint dead
    for lane in range(LANES):
        if ws.length[lane] != v and not (v == ws.tokens and ws.length[lane] < v):
            continue
        ws.beta_scale[v, lane] = 0.0
        dead = ws.length[lane] != v or lane >= ws.count or ws.lost[lane] or ws.log_partition[lane] == -INFINITY
        high = 0.0
        if batch.has_final and not dead and summing is Scaled:
            high = -INFINITY
            for p in range(chain.states):
                high = max(high, batch.final[ws.sequence[lane], p])
            ws.beta_scale[v, lane] = high
        for p in range(chain.states):
            ws.beta[v % ws.beta_rows, p, lane] = 0.0 if summing is Scaled else -INFINITY
            if not dead:
                if summing is Scaled:
                    ws.beta[v % ws.beta_rows, p, lane] = exp(batch.final[ws.sequence[lane], p] - high) if batch.has_final else 1.0
                else:
                    ws.beta[v % ws.beta_rows, p, lane] = batch.final[ws.sequence[lane], p] if batch.has_final else 0.0


cdef void _close(Chain chain, Workspace ws, Py_ssize_t v) noexcept nogil:
    """closing_v(k): log score of a last token before v, with the scale of beta."""
    cdef Py_ssize_t k
    if v == 0:
        return
    for k in range(chain.bodies):
        (<lanes*> &ws.closing[v, k, 0])[0] = (<lanes*> &ws.end[v - 1, k, 0])[0] + (<lanes*> &ws.beta_scale[v, 0])[0]


cdef lanes _weigh_starts(Chain chain, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """exp of what `_score_starts` gives less some scale, which is returned; as _weigh_endings."""
    cdef Py_ssize_t k, d, bound, last = batch.lengths - 1, longest = min(ws.widest, ws.tokens - u), K = chain.bodies
    cdef lanes high = splat(-INFINITY), run = splat(0.0), weight
    cdef lanes* relative = <lanes*> &ws.relative[0, 0]
    cdef lanes* scores
    cdef lanes* step
    cdef lanes* end
    cdef const double* length_weight
    for d in range(longest):
        run = run + (<lanes*> &ws.shift[u + d, 0])[0]
        relative[d] = run + (<lanes*> &ws.end_shift[u + d, 0])[0] + (<lanes*> &ws.beta_scale[u + d + 1, 0])[0]
        high = larger(relative[d], high)
    for k in range(chain.bodies if ws.any_free else 0):
        if ws.free[k]:
            (<lanes*> &ws.tail_score[k, 0])[0] = _starting_tail(ws, u, k)
            high = larger((<lanes*> &ws.tail_score[k, 0])[0], high)
    high = finite_or_zero(high)
    for d in range(longest):
        relative[d] = lanes_exp(relative[d] - high)
    for k in range(K):
        scores = <lanes*> &ws.score[ws.window_offset[k], 0]
        length_weight = &ws.length_weight[k, 0]
        step, end = <lanes*> &ws.lifted_step[u, k, 0], <lanes*> &ws.lifted_end[u, k, 0]
        weight = (<lanes*> &ws.lifted_token[u, k, 0])[0]
        bound = min(ws.window[k], ws.tokens - u)
        for d in range(bound):
            if d > 0:
                weight = weight * step[d * K]
            scores[d] = (weight * relative[d]) * (splat(length_weight[min(d, last)]) * end[d * K])
    return high


cdef lanes _starting_tail(Workspace ws, Py_ssize_t u, Py_ssize_t k) noexcept nogil:
    """Log score of the segments that start at u and are longer than the window, with the scale of what follows."""
    cdef Py_ssize_t t, v = u + ws.window[k] + 1
    cdef lanes run = (<lanes*> &ws.token[u, k, 0])[0]
    if v > ws.tokens:
        return splat(-INFINITY)
    for t in range(u + 1, v):
        run = run + (<lanes*> &ws.step[t, k, 0])[0]
    run = run + (<lanes*> &ws.rest_scale[v, k, 0])[0]
    return choose(less(splat(-INFINITY), (<lanes*> &ws.opening[u, k, 0])[0]), run, splat(-INFINITY))


cdef void _score_starts(Chain chain, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Log scores, after the start, of all segments that start at u; as score_endings, with the scale of beta."""
    cdef Py_ssize_t k, d, s, i, e, bound, last = batch.lengths - 1, K = chain.bodies
    cdef int lane
    cdef lanes run
    cdef lanes* scores
    cdef lanes* step
    cdef lanes* closing
    for k in range(K):
        scores = <lanes*> &ws.score[ws.window_offset[k], 0]
        run = choose(
            less(splat(-INFINITY), (<lanes*> &ws.opening[u, k, 0])[0]), (<lanes*> &ws.token[u, k, 0])[0], splat(-INFINITY)
        )
        bound = min(ws.window[k], ws.tokens - u)
        step = <lanes*> &ws.step[u, k, 0]
        closing = <lanes*> &ws.closing[u + 1, k, 0]
        for d in range(bound):
            if d > 0:
                run = run + step[d * K]
            scores[d] = run + closing[d * K] + splat(batch.body_length[k, min(d, last)])
        if ws.any_free and ws.free[k]:
            (<lanes*> &ws.tail_score[k, 0])[0] = _starting_tail(ws, u, k)
    for lane in range(ws.count):
        for s in range(ws.span_next[lane], ws.span_low[lane] - 1, -1):
            if batch.span_start[s] != ws.base[lane] + u:
                break
            k = chain.pattern_body[batch.span_pattern[s]]
            if k >= 0:
                d = batch.span_end[s] - batch.span_start[s]
                for i in range(chain.tree_offsets[k], chain.tree_offsets[k + 1]):
                    e = chain.tree[i]
                    if d <= ws.window[e]:
                        ws.score[ws.window_offset[e] + d - 1, lane] += batch.span_score[s]


cdef void _open(
    summing* _, Chain chain, Batch batch, Workspace ws, Counts counts, Py_ssize_t u, lanes log_z, bint counting
) noexcept nogil:
    """open_u(o) into ws.total, and the marginals of the segments that start at u."""
    cdef Py_ssize_t k, d, o, low_open, high_open, bound, last = batch.lengths - 1, opens = chain.opens
    cdef const int* target = _first_of(chain.open_target)
    cdef lanes high = splat(0.0), largest = splat(0.0), low = splat(VAST), weight, dot, value, share, begun, outer, shrink
    cdef lanes grown = splat(0.0)
    cdef lanes* scores
    cdef lanes* total = <lanes*> &ws.total[0, 0]
    cdef lanes* entry = <lanes*> &ws.entry[u, 0, 0]
    cdef lanes* betas = <lanes*> &ws.beta[0, 0, 0]
    cdef lanes* beta
    cdef lanes* ended
    cdef lanes* length_now
    cdef const long long* ring = &ws.ring[0]
    cdef flags active, found
    for d in range(min(ws.widest, ws.tokens - u)):
        ws.ring[d] = (u + d + 1) % ws.beta_rows * chain.states
    if summing is Scaled:
        if ws.multiplies:
            high = _weigh_starts(chain, batch, ws, u)
        else:
            _score_starts(chain, batch, ws, u)
            high = _lift_segments(chain, ws, ws.tokens - u)
    else:
        _score_starts(chain, batch, ws, u)
    outer = choose(within(ws, u), (<lanes*> &ws.entry_scale[u, 0])[0] + high - log_z, splat(-INFINITY))
    outer = lift(_, outer)
    for o in range(opens):
        total[o] = zero(_)
    for k in range(chain.bodies):
        scores = <lanes*> &ws.score[ws.window_offset[k], 0]
        bound = min(ws.window[k], ws.tokens - u)
        begun = splat(0.0)
        low_open, high_open = chain.body_offsets[k], chain.body_offsets[k + 1]
        ended, length_now = <lanes*> &ws.ended[u, k, 0], <lanes*> &ws.length_now[k, 0, 0]
        for d in range(bound):
            beta = betas + ring[d]
            weight = scores[d]
            dot = zero(_)
            for o in range(low_open, high_open):
                value = times(_, weight, beta[target[o]])
                dot = plus(_, dot, times(_, entry[o], value))
                total[o] = plus(_, total[o], value)
            share = probability(_, dot, outer)
            scores[d] = share
            begun = begun + share
            ended[0] = ended[0] + share
            length_now[min(d, last)] = length_now[min(d, last)] + share
            ended += chain.bodies
        if ws.any_free and ws.free[k] and u + ws.window[k] + 1 <= ws.tokens:
            beta = <lanes*> &ws.rest[u + ws.window[k] + 1, 0, 0]
            weight = lift(_, (<lanes*> &ws.tail_score[k, 0])[0] - high)
            dot = zero(_)
            for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
                value = times(_, weight, beta[o])
                dot = plus(_, dot, times(_, entry[o], value))
                total[o] = plus(_, total[o], value)
            begun = begun + probability(_, dot, outer)
        (<lanes*> &ws.started[u, k, 0])[0] = begun
    _count_spans(chain, batch, ws, counts, u, counting)
    if summing is Scaled:
        active = within(ws, u)
        for o in range(opens):
            largest = larger(total[o], largest)
            value = choose(differ(entry[o], splat(0.0)), total[o], splat(VAST))
            low = smaller(value, low)
        found = (~less(largest, splat(VAST)) | ~less(outer, splat(INFINITY))) & active
        if any_of(found):
            lose(ws, found)
        if any_of(~at_least(low, splat(LOST)) & active):
            lose(ws, _lost_opens(chain, ws, u) & active)
        if leaves_range(largest, active):
            grown = exponent(largest)
            shrink = power_of_two(-grown)
            for o in range(opens):
                total[o] = total[o] * shrink
            grown = grown * splat(LN2)
    (<lanes*> &ws.beta_scale[u, 0])[0] = high + grown


cdef void _count_spans(Chain chain, Batch batch, Workspace ws, Counts counts, Py_ssize_t u, bint counting) noexcept nogil:
    """The marginals of the spans that start at u, from the shares that `_open` has left in ws.score."""
    cdef Py_ssize_t s, k, d, i, e
    cdef int lane
    for lane in range(ws.count):
        while ws.span_next[lane] >= ws.span_low[lane] and batch.span_start[ws.span_next[lane]] == ws.base[lane] + u:
            s = ws.span_next[lane]
            ws.span_next[lane] -= 1
            k = chain.pattern_body[batch.span_pattern[s]]
            if k >= 0 and counting:
                d = batch.span_end[s] - batch.span_start[s]
                for i in range(chain.tree_offsets[k], chain.tree_offsets[k + 1]):
                    e = chain.tree[i]
                    if d <= ws.window[e]:
                        counts.span[s] += ws.score[ws.window_offset[e] + d - 1, lane]


cdef flags _lost_opens(Chain chain, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Has open_u(o) vanished although an allowed segment leads from it to a live beta? As _lost_alphas."""
    cdef Py_ssize_t k, d, o
    cdef lanes* beta
    cdef flags found = differ(splat(0.0), splat(0.0)), small, allowed, going_on
    for k in range(chain.bodies):
        for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
            small = ~at_least((<lanes*> &ws.total[o, 0])[0], splat(LOST)) & differ((<lanes*> &ws.entry[u, o, 0])[0], splat(0.0))
            if not any_of(small):
                continue
            going_on = small
            for d in range(min(ws.window[k], ws.tokens - u)):
                if d > 0:
                    going_on &= less(splat(-INFINITY), (<lanes*> &ws.step[u + d, k, 0])[0])
                allowed = less(splat(-INFINITY), (<lanes*> &ws.end[u + d, k, 0])[0])
                beta = beta_row(ws, u + d + 1)
                found |= going_on & allowed & differ(beta[chain.open_target[o]], splat(0.0))
            if ws.any_free and ws.free[k] and u + ws.window[k] + 1 <= ws.tokens:
                allowed = less(splat(-INFINITY), (<lanes*> &ws.tail_score[k, 0])[0])
                found |= small & allowed & differ((<lanes*> &ws.rest[u + ws.window[k] + 1, o, 0])[0], splat(0.0))
    return found


cdef void _take_arcs(
    summing* _, Chain chain, Batch batch, Workspace ws, Counts counts, Py_ssize_t u, lanes log_z, bint counting
) noexcept nogil:
    """beta_u from open_u, in a CRF beta_{u+1}, by the adjoint of the sum program, and the counts of the arcs taken at u."""
    cdef Py_ssize_t o, p, i, P = chain.states
    cdef const int* addition
    cdef const int* register = _first_of(chain.taken_register)
    cdef const int* entered = _first_of(chain.taken_open)
    cdef const int* label = _first_of(chain.open_label)
    cdef lanes value, outer, least, grown = splat(0.0), largest = splat(0.0), low = splat(VAST), shrink = splat(1.0)
    cdef lanes* x = <lanes*> &ws.x[0, 0]
    cdef lanes* adjoint = <lanes*> &ws.adjoint[0, 0]
    cdef lanes* arc_now = <lanes*> &ws.arc_now[0, 0]
    cdef lanes* first = <lanes*> &ws.first[u, 0, 0]
    cdef lanes* opened = <lanes*> &ws.opened[0, 0]
    cdef lanes* alpha = <lanes*> &ws.alpha[u, 0, 0]
    cdef lanes* beta = beta_row(ws, u)
    cdef lanes* total = <lanes*> &ws.total[0, 0]
    cdef double* weight = &ws.arc_weight[0]
    cdef bint held = False
    cdef flags found, active
    if chain.one_token:
        total = beta_row(ws, u + 1)
        (<lanes*> &ws.beta_scale[u, 0])[0] = (<lanes*> &ws.beta_scale[u + 1, 0])[0]
        if counting:
            _count_labels(_, chain, ws, counts, u, log_z)
    outer = (<lanes*> &ws.alpha_scale[u, 0])[0] + (<lanes*> &ws.first_scale[u, 0])[0] + (<lanes*> &ws.beta_scale[u, 0])[0] - log_z
    outer = lift(_, choose(within(ws, u), outer, splat(-INFINITY)))
    for o in range(chain.opens):
        opened[o] = times(_, total[o], first[label[o]])
    if in_pairs(_, chain, ws, u):
        _take_pairs(_, chain, ws, u, outer)
    else:
        sum_entries(_, chain, ws, u)
    if ws.has_rows[u]:
        _take_arcs_with_rows(_, chain, batch, ws, counts, u, total, outer, counting)
    elif not in_pairs(_, chain, ws, u):
        for i in range(chain.taken.shape[0]):
            p = register[i]
            value = times(_, opened[entered[i]], splat(weight[i]))
            arc_now[i] = arc_now[i] + probability(_, times(_, x[p], value), outer)
            adjoint[p] = plus(_, adjoint[p], value)
    i = 0 if in_pairs(_, chain, ws, u) else chain.additions.shape[0]
    value = zero(_)
    addition = &chain.additions[0, 0] + 3 * i if i else NULL
    while i > 0:
        i -= 1
        addition -= 3
        value = plus(_, value, adjoint[P + i]) if held else adjoint[P + i]
        adjoint[P + i] = zero(_)
        adjoint[addition[2]] = plus(_, adjoint[addition[2]], value)
        held = i > 0 and addition[1] == P + i - 1  # its own turn is next: no need to write it and read it back
        if not held:
            adjoint[addition[1]] = plus(_, adjoint[addition[1]], value)
    for p in range(P):
        value = adjoint[p]
        adjoint[p] = zero(_)
        beta[p] = value
        if summing is Scaled:
            largest = larger(value, largest)
            value = choose(differ(alpha[p], splat(0.0)), value, splat(VAST))
            low = smaller(value, low)
    if summing is Scaled:
        active = within(ws, u)
        least = splat(LOST) * larger(largest, splat(1.0))
        found = (~less(largest, splat(VAST)) | ~less(outer, splat(INFINITY))) & active
        if any_of(found):
            lose(ws, found)
        if any_of(~at_least(low, least) & active):
            if in_pairs(_, chain, ws, u):
                sum_entries(_, chain, ws, u)
            lose(ws, _lost_betas(chain, ws, u, total, beta, least) & active)
        if leaves_range(largest, active):
            grown = exponent(largest)
            shrink = power_of_two(-grown)
            for p in range(P):
                beta[p] = beta[p] * shrink
            grown = grown * splat(LN2)
    (<lanes*> &ws.beta_scale[u, 0])[0] += (<lanes*> &ws.first_scale[u, 0])[0] + grown


cdef void _take_pairs(summing* _, Chain chain, Workspace ws, Py_ssize_t u, lanes outer) noexcept nogil:
    """The sums of `_take_arcs` over all pairs of labels, into ws.adjoint, and what `_count_pairs` needs."""
    cdef Py_ssize_t p, q, y, columns = chain.columns
    cdef lanes* opened = <lanes*> &ws.opened[1, 0]  # of label y
    cdef lanes* pair_open = <lanes*> &ws.pair_open[u, 0, 0]
    cdef const double* weight
    cdef lanes value, a, b, c, d
    cdef lanes* adjoint = <lanes*> &ws.adjoint[0, 0]
    for y in range(chain.labels):
        pair_open[y] = opened[y] * outer
    for y in range(chain.labels, columns):
        pair_open[y] = splat(0.0)
    for p in range(0, chain.states, 4):
        weight = &ws.pair_weight[p, 0]
        a = b = c = d = splat(0.0)
        if p + 4 <= chain.states:
            for y in range(chain.labels):
                value = opened[y]
                a = a + value * splat(weight[y])
                b = b + value * splat(weight[columns + y])
                c = c + value * splat(weight[2 * columns + y])
                d = d + value * splat(weight[3 * columns + y])
            adjoint[p] = a
            adjoint[p + 1] = b
            adjoint[p + 2] = c
            adjoint[p + 3] = d
        else:
            for q in range(p, chain.states):
                a = splat(0.0)
                weight = &ws.pair_weight[q, 0]
                for y in range(chain.labels):
                    a = a + opened[y] * splat(weight[y])
                adjoint[q] = a


cdef void _count_pairs(Chain chain, Workspace ws) noexcept nogil:
    """Counts of the pairs of labels, without their weights: alpha_u(p) open_u(y), four boundaries at a time."""
    cdef Py_ssize_t u, p, y, j, columns = chain.columns, T = ws.tokens
    cdef lanes* alpha
    cdef lanes* opened
    cdef lanes* pairs
    cdef lanes a, b, c, d
    for u in range(T):
        if ws.has_rows[u]:
            for y in range(columns):
                (<lanes*> &ws.pair_open[u, y, 0])[0] = splat(0.0)
    for u in range(T, T + 3):
        for y in range(columns):
            (<lanes*> &ws.pair_open[u, y, 0])[0] = splat(0.0)
    for u in range(0, T, 4):
        opened = <lanes*> &ws.pair_open[u, 0, 0]
        for p in range(chain.states):
            a = (<lanes*> &ws.alpha[u, p, 0])[0]
            b = (<lanes*> &ws.alpha[min(u + 1, T), p, 0])[0]
            c = (<lanes*> &ws.alpha[min(u + 2, T), p, 0])[0]
            d = (<lanes*> &ws.alpha[min(u + 3, T), p, 0])[0]
            pairs = <lanes*> &ws.pair_now[p, 0, 0]
            for y in range(columns):
                pairs[y] = (
                    (pairs[y] + a * opened[y] + b * opened[columns + y])
                    + (c * opened[2 * columns + y] + d * opened[3 * columns + y])
                )


cdef void _take_arcs_with_rows(
    summing* _, Chain chain, Batch batch, Workspace ws, Counts counts, Py_ssize_t u, lanes* total, lanes outer, bint counting
) noexcept nogil:
    """The sums of `_take_arcs` where rows start, and the counts of those rows."""
    cdef Py_ssize_t i, c, o
    cdef lanes* x = <lanes*> &ws.x[0, 0]
    cdef lanes* adjoint = <lanes*> &ws.adjoint[0, 0]
    cdef lanes* arc_now = <lanes*> &ws.arc_now[0, 0]
    cdef lanes* arc_value = <lanes*> &ws.arc_value[0, 0]
    cdef lanes* factor = factor_row(ws, u)
    cdef lanes* first = <lanes*> &ws.first[u, 0, 0]
    cdef lanes value, mass, share
    cdef flags alive, found = differ(splat(0.0), splat(0.0))
    if not ws.keeps_factors:
        weigh_rows(_, chain, batch, ws, u)
    for c in range(chain.arcs):
        arc_value[c] = splat(0.0)
    for i in range(chain.taken.shape[0]):
        c = chain.taken[i]
        mass = x[chain.taken_register[i]]
        o = chain.taken_open[i]
        value = times(_, (<lanes*> &ws.opened[o, 0])[0], splat(ws.arc_weight[i]))
        if summing is Scaled:  # as in _enter_with_rows
            alive = differ(mass, splat(0.0)) & differ(total[o], splat(0.0)) & differ(first[chain.open_label[o]], splat(0.0))
            found |= less(value, splat(LOST)) & less(splat(1.0), factor[c]) & alive
            value = choose(alive, value * factor[c], splat(0.0))
        else:
            value = times(_, value, factor[c])
        share = probability(_, times(_, mass, value), outer)
        arc_value[c] = share
        arc_now[i] = arc_now[i] + share
        adjoint[chain.taken_register[i]] = plus(_, adjoint[chain.taken_register[i]], value)
    if summing is Scaled:
        if any_of(found & within(ws, u)):
            lose(ws, found & within(ws, u))
    if counting:
        _count_rows(chain, batch, ws, counts, u)


cdef void _count_rows(Chain chain, Batch batch, Workspace ws, Counts counts, Py_ssize_t u) noexcept nogil:
    """Counts of the rows and spans that belong to the arcs at u: sums over the suffix tree, overwriting arc_value."""
    cdef Py_ssize_t c, r, s, z, t
    cdef int lane
    cdef lanes* arc_value = <lanes*> &ws.arc_value[0, 0]
    cdef Rows rows = rows_of(batch)
    cdef double* row = &counts.row[0] if batch.rows else NULL
    for c in range(chain.arcs - 1, -1, -1):
        if chain.arc_suffix[c] >= 0:
            arc_value[chain.arc_suffix[c]] += arc_value[c]
    for lane in range(ws.count):
        if u >= ws.length[lane]:
            continue
        t = ws.base[lane] + u
        for r in range(rows.offsets[t], rows.offsets[t + 1]):
            if rows.target[r] >= 0:
                row[r] = (<double*> &arc_value[rows.target[r]])[lane]
        for s in range(first_span(batch, ws, lane, t), ws.span_high[lane]):
            if batch.span_start[s] > t:
                break
            z = batch.span_pattern[s]
            if batch.span_end[s] == t + 1 and chain.pattern_body[z] < 0:
                counts.span[s] = ws.arc_value[chain.pattern_arc[z], lane]


cdef void _count_labels(summing* _, Chain chain, Workspace ws, Counts counts, Py_ssize_t u, lanes log_z) noexcept nogil:
    """Counts of a CRF's labels at token u, from alpha and beta behind it: all that is seen at the token counts as often."""
    cdef Py_ssize_t o, y, t, Y = chain.labels
    cdef int lane
    cdef lanes* starts = <lanes*> &ws.starts[0, 0]
    cdef lanes* alpha = <lanes*> &ws.alpha[u + 1, 0, 0]
    cdef lanes* beta = beta_row(ws, u + 1)
    cdef const int* label = _first_of(chain.open_label)
    cdef const double* source
    cdef double* into
    cdef lanes outer = (<lanes*> &ws.alpha_scale[u + 1, 0])[0] + (<lanes*> &ws.beta_scale[u + 1, 0])[0] - log_z
    outer = lift(_, choose(within(ws, u), outer, splat(-INFINITY)))
    for y in range(Y):
        starts[y] = splat(0.0)
    for o in range(1, chain.states):
        starts[label[o]] = starts[label[o]] + probability(_, times(_, alpha[o], beta[o]), outer)
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


cdef flags _lost_betas(Chain chain, Workspace ws, Py_ssize_t u, lanes* total, lanes* beta, lanes least) noexcept nogil:
    """Has beta_u of a live state vanished although an arc leads from it to a live open state? The adjoint of 0s and 1s."""
    cdef Py_ssize_t o, i, p, P = chain.states
    cdef const int* addition
    cdef lanes* x = <lanes*> &ws.x[0, 0]
    cdef lanes* adjoint = <lanes*> &ws.adjoint[0, 0]
    cdef lanes* alpha = <lanes*> &ws.alpha[u, 0, 0]
    cdef flags found = differ(splat(0.0), splat(0.0)), open_here
    for i in range(chain.taken.shape[0]):
        p = chain.taken_register[i]
        o = chain.taken_open[i]
        open_here = differ(total[o], splat(0.0))
        open_here &= differ((<lanes*> &ws.first[u, chain.open_label[o], 0])[0], splat(0.0))
        adjoint[p] = choose(open_here & differ(x[p], splat(0.0)), splat(1.0), adjoint[p])
    for i in range(chain.additions.shape[0] - 1, -1, -1):
        addition = &chain.additions[i, 0]
        adjoint[addition[1]] = larger(adjoint[addition[1]], adjoint[P + i])
        adjoint[addition[2]] = larger(adjoint[addition[2]], adjoint[P + i])
    for p in range(P):
        found |= differ(alpha[p], splat(0.0)) & differ(adjoint[p], splat(0.0)) & ~at_least(beta[p], least)
    for i in range(chain.registers):
        adjoint[i] = splat(0.0)
    return found


cdef void _rest(summing* _, Chain chain, Batch batch, Workspace ws, Py_ssize_t v, lanes log_z) noexcept nogil:
    """rest_v(o): what follows segments that were open for the whole window at v - 1, and the counts of the tails that end at v.

    rest_v(o) = exp(end + length) beta_v + exp step(v) rest_{v+1}(o), over the next D ends only if there is a limit.
    """
    cdef Py_ssize_t k, o, last = batch.lengths - 1
    cdef lanes ending, going, dot, share
    cdef lanes* after
    cdef lanes* tail
    cdef lanes* closed = <lanes*> &ws.opened[0, 0]
    cdef flags active, found = differ(splat(0.0), splat(0.0))
    if v == 0:
        return
    active = within(ws, v - 1)
    after = <lanes*> &ws.rest[min(v + 1, ws.tokens), 0, 0]
    tail = <lanes*> &ws.tail[v, 0, 0]
    for k in range(chain.bodies):
        if not ws.free[k]:
            continue
        ending = _end_tails(chain, batch, ws, v, k, closed)
        dot = zero(_)
        for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
            dot = plus(_, dot, times(_, tail[o], closed[o]))
        share = probability(_, dot, lift(_, (<lanes*> &ws.tail_scale[v, k, 0])[0] + ending - log_z))
        found |= ~less(share, splat(INFINITY))
        (<lanes*> &ws.ended[v - 1, k, 0])[0] += share
        (<lanes*> &ws.length_now[k, last, 0])[0] += share
        if ws.block[k] > 0:
            found |= _rest_up_to_limit(_, chain, batch, ws, v, k, closed, ending)
            continue
        going = splat(-INFINITY)
        if v < ws.tokens:
            going = (<lanes*> &ws.step[v, k, 0])[0] + (<lanes*> &ws.rest_scale[v + 1, k, 0])[0]
        found |= merge(
            _,
            <lanes*> &ws.rest[v, 0, 0],
            <lanes*> &ws.rest_scale[v, k, 0],
            closed,
            ending,
            after,
            going,
            chain.body_offsets[k],
            chain.body_offsets[k + 1],
        )
    if any_of(found & active):
        lose(ws, found & active)


cdef inline lanes _end_tails(Chain chain, Batch batch, Workspace ws, Py_ssize_t v, Py_ssize_t k, lanes* closed) noexcept nogil:
    """beta_v by open state, into `closed`; RETURNS the log score of ending a tail there, with the scale of beta."""
    cdef Py_ssize_t o
    cdef lanes* beta = beta_row(ws, v)
    for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
        closed[o] = beta[chain.open_target[o]]
    return (<lanes*> &ws.closing[v, k, 0])[0] + splat(batch.body_length[k, batch.lengths - 1])


cdef flags _rest_up_to_limit(
    summing* _, Chain chain, Batch batch, Workspace ws, Py_ssize_t v, Py_ssize_t k, lanes* closed, lanes ending
) noexcept nogil:
    """rest_v(o) of a label with a limit: the mirror image of _lengthen_up_to_limit, over ends instead of starts."""
    cdef Py_ssize_t e, place, low = chain.body_offsets[k], high = chain.body_offsets[k + 1], D = ws.block[k]
    cdef lanes* prefix = <lanes*> &ws.prefix[0, 0]
    cdef lanes* scale = <lanes*> &ws.prefix_scale[k, 0]
    cdef lanes* run = <lanes*> &ws.run[k, 0]
    cdef lanes* suffix
    cdef lanes* other = <lanes*> &ws.total[0, 0]
    cdef lanes step = splat(-INFINITY), score
    cdef flags found = differ(splat(0.0), splat(0.0))
    if v < ws.tokens:
        step = (<lanes*> &ws.step[v, k, 0])[0]
    run[0] = run[0] + step
    if v % D == D - 1 or v == ws.tokens:
        scale[0] = splat(-INFINITY)
        run[0] = step
        (<lanes*> &ws.suffix_scale[0, k, 0])[0] = splat(-INFINITY)
        score = splat(0.0)
        for place in range(1, D):  # suffix[place]: the first `place` ends of the block behind
            e = v + place
            suffix = <lanes*> &ws.suffix[place, 0, 0]
            if v == ws.tokens or e > ws.tokens:
                (<lanes*> &ws.suffix_scale[place, k, 0])[0] = (<lanes*> &ws.suffix_scale[place - 1, k, 0])[0]
                _copy(suffix, <lanes*> &ws.suffix[place - 1, 0, 0], low, high)
                continue
            found |= merge(
                _,
                suffix,
                <lanes*> &ws.suffix_scale[place, k, 0],
                <lanes*> &ws.suffix[place - 1, 0, 0],
                (<lanes*> &ws.suffix_scale[place - 1, k, 0])[0],
                other,
                _end_tails(chain, batch, ws, e, k, other) + score,
                low,
                high,
            )
            if e < ws.tokens:
                score = score + (<lanes*> &ws.step[e, k, 0])[0]
    found |= merge(_, prefix, scale, closed, ending, prefix, scale[0] + step, low, high)
    place = v % D  # the last end is v + D - 1, which is so far in the block behind
    suffix = <lanes*> &ws.suffix[place, 0, 0]
    score = (<lanes*> &ws.suffix_scale[place, k, 0])[0] + run[0]
    found |= merge(_, <lanes*> &ws.rest[v, 0, 0], <lanes*> &ws.rest_scale[v, k, 0], prefix, scale[0], suffix, score, low, high)
    return found


cdef inline void _copy(lanes* out, lanes* source, Py_ssize_t low, Py_ssize_t high) noexcept nogil:
    cdef Py_ssize_t o
    for o in range(low, high):
        out[o] = source[o]


cdef void _collect(Chain chain, Batch batch, Workspace ws, Counts counts) noexcept nogil:
    """Take over the group's counts: sum the bodies over their suffix trees, write the labels' tokens and the rows."""
    cdef Py_ssize_t i, k, m
    cdef int lane
    cdef lanes kept = splat(0.0)
    cdef flags fine
    for lane in range(ws.count):
        (<double*> &kept)[lane] = 0.0 if ws.lost[lane] else 1.0
    fine = differ(kept, splat(0.0))
    for i in range(chain.taken.shape[0]):
        (<lanes*> &ws.arc_sum[i, 0])[0] += choose(fine, (<lanes*> &ws.arc_now[i, 0])[0], splat(0.0))
    if chain.dense:
        for i in range(chain.states):
            for m in range(chain.columns):
                (<lanes*> &ws.pair_sum[i, m, 0])[0] += choose(fine, (<lanes*> &ws.pair_now[i, m, 0])[0], splat(0.0))
    if chain.one_token:
        return
    for k in range(chain.bodies):
        for m in range(batch.lengths):
            (<lanes*> &ws.length_sum[k, m, 0])[0] += choose(fine, (<lanes*> &ws.length_now[k, m, 0])[0], splat(0.0))
    _cover(chain, ws)
    for lane in range(ws.count):
        _write_tokens(chain, batch, ws, counts, lane)


cdef void _cover(Chain chain, Workspace ws) noexcept nogil:
    """Tokens inside a body's segments from those that begin and end them; the next shorter body sees them as well."""
    cdef Py_ssize_t t, k, suffix
    cdef lanes* inside = <lanes*> &ws.inside[0, 0]
    cdef lanes* started
    cdef lanes* ended
    for k in range(chain.bodies):
        inside[k] = splat(0.0)
    for t in range(ws.tokens):
        started = <lanes*> &ws.started[t, 0, 0]
        ended = <lanes*> &ws.ended[t, 0, 0]
        for k in range(chain.bodies - 1, -1, -1):
            suffix = chain.body_suffix[k]
            inside[k] = inside[k] + started[k]
            (<lanes*> &ws.cover[t, k, 0])[0] = inside[k]
            inside[k] = inside[k] - ended[k]
            if suffix >= 0:
                started[suffix] = started[suffix] + started[k]
                ended[suffix] = ended[suffix] + ended[k]


cdef void _write_tokens(Chain chain, Batch batch, Workspace ws, Counts counts, int lane) noexcept nogil:
    """The counts of one lane's tokens, and of the rows on bodies."""
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
        for y in range(chain.labels):
            counts.token[i, y] = ws.cover[t, y, lane]
        if counts.wants_start:
            for y in range(chain.labels):
                counts.start[i, y] = ws.started[t, y, lane]
        if counts.wants_inner:
            for y in range(chain.labels):
                counts.inner[i, y] = ws.cover[t, y, lane] - ws.started[t, y, lane]
        if counts.wants_end:
            for y in range(chain.labels):
                counts.end[i, y] = ws.ended[t, y, lane]
        for r in range(rows.offsets[i], rows.offsets[i + 1]):
            target = rows.target[r]
            if target >= 0:
                continue  # _count_rows
            k, part = (~target >> 2) * LANES, ~target & 3
            if part == PART_TOKEN:
                row[r] = cover[k]
            elif part == PART_INNER:
                row[r] = cover[k] - started[k]
            elif part == PART_END:
                row[r] = ended[k]
