# Short sequences in which no segment has a score of its own: all lengths in one go.
#
# The segments that begin at u, and those that end at v, are products of what is known there,
#
#     started_u(k) = Σ_{o in k} entry_u(o) open_u(o) / Z
#     ended_v(k)   = Σ_{o in k} leaving_v(o) beta_v(target o) / Z          o = (k, target)
#
# so that no segment need be counted by itself, unless lengths have scores and are counted. A body with one
# open state has nested sums over lengths (Horner's scheme), without a weight for every length.
# Σ started - Σ ended, the segments that cover a token, drifts as its terms have scales that are rounded by
# themselves: by some 1e-16 times |log Z| for each token, which is why the sequences must be short.
#
# Where rows start, a mass that has lost its digits could be lifted by their factor as if it had them. None
# has if neither what it is the product of nor the weights of the arcs are below ROOT_OF_LOST; of the weights
# that is found out once.


cdef inline bint is_direct(Batch batch, Workspace ws) noexcept nogil:
    """Can the loaded sequences be counted so?"""
    return ws.multiplies and batch.spans == 0 and ws.tokens <= MOST_DIRECT


# leaving_v(o) = end(v-1) Σ_d relative_d length_d token(v-d) entry_{v-d}(o) Π_{v-d<t<v} step(t)
cdef lanes add_endings(Automaton fsa, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """leaving_v of all open states, but for the tails. RETURNS (lanes): its log scale."""
    cdef Py_ssize_t k, d, low, lengths, last = batch.lengths - 1, K = fsa.bodies, opens = fsa.opens
    cdef lanes high = scale_endings(fsa, batch, ws, v), value, weight
    cdef const double* length_weight
    cdef lanes* relative = at1(ws.relative, 0)
    cdef lanes* weights = at1(ws.weight, 0)
    cdef lanes* leaving = at2(ws.leaving, v, 0)
    cdef lanes* entry = at2(ws.entry, v - 1, 0)
    cdef lanes* token = at2(ws.lifted_token, v - 1, 0)
    cdef lanes* step = at2(ws.lifted_step, v - 1, 0)
    cdef lanes* end = at2(ws.lifted_end, v - 1, 0)
    for k in range(K):
        low, lengths = fsa.body_offsets[k], min(ws.window[k], v)
        length_weight = &ws.length_weight[k, 0]
        if fsa.body_offsets[k + 1] == low + 1:
            d = lengths - 1
            weight = relative[d] * splat(length_weight[min(d, last)])
            value = weight * token[k - d * K] * entry[low - d * opens]
            while d > 0:
                d -= 1
                weight = relative[d] * splat(length_weight[min(d, last)])
                value = value * step[k - d * K] + weight * token[k - d * K] * entry[low - d * opens]
            leaving[low] = end[k] * value
            continue
        weight = end[k]
        for d in range(lengths):
            value = weight * relative[d]
            weights[d] = value * (splat(length_weight[min(d, last)]) * token[k - d * K])
            weight = weight * step[k - d * K]
        sum_starts(SCALED, leaving, weights, entry, lengths, opens, low, fsa.body_offsets[k + 1])
    return high


# open_u(o) = token(u) Σ_d relative_d length_d end(u+d-1) beta_{u+d}(q) Π_{u<t<u+d} step(t)
#           + exp body(u, u+W+1) rest_{u+W+1}(o)
# started_u(k) = Σ_{o in k} entry_u(o) open_u(o) / Z
cdef void add_starts(
    Automaton fsa, Batch batch, Workspace ws, Py_ssize_t u, lanes high, lanes outer
) noexcept nogil:
    """open_u of all open states, and the segments that begin at u, by length where lengths have scores."""
    cdef Py_ssize_t k, o, low, high_open, lengths
    cdef bint by_length = batch.scored_lengths
    cdef lanes weight, dot
    cdef lanes* open_value = at1(ws.open_value, 0)
    cdef lanes* entry = at2(ws.entry, u, 0)
    cdef lanes* rest
    for k in range(fsa.bodies):
        low, high_open = fsa.body_offsets[k], fsa.body_offsets[k + 1]
        lengths = min(ws.window[k], ws.tokens - u)
        if high_open == low + 1 and not by_length:
            open_value[low] = _nested_ends(fsa, batch, ws, u, k, lengths)
        elif high_open == low + 1:
            open_value[low] = _counted_ends(fsa, batch, ws, u, k, lengths, outer)
        else:
            _sum_all_ends(fsa, batch, ws, u, k, lengths, outer, by_length)
        if ws.any_tail and ws.has_tail[k] and u + ws.window[k] + 1 <= ws.tokens:
            rest = at2(ws.rest, u + ws.window[k] + 1, 0)
            weight = lanes_exp(at1(ws.tail_score, k)[0] - high)
            for o in range(low, high_open):
                open_value[o] = open_value[o] + weight * rest[o]
        dot = splat(0.0)
        for o in range(low, high_open):
            dot = dot + entry[o] * open_value[o]
        at2(ws.started, u, k)[0] = dot * outer


cdef inline lanes _nested_ends(
    Automaton fsa, Batch batch, Workspace ws, Py_ssize_t u, Py_ssize_t k, Py_ssize_t lengths
) noexcept nogil:
    """open_u of a body with one open state."""
    cdef Py_ssize_t d = lengths - 1, last = batch.lengths - 1, K = fsa.bodies
    cdef const double* length_weight = &ws.length_weight[k, 0]
    cdef const long long* row = &ws.beta_row[0]
    cdef lanes* relative = at1(ws.relative, 0)
    cdef lanes* beta = at2(ws.beta, 0, fsa.open_target[fsa.body_offsets[k]])
    cdef lanes* step = at2(ws.lifted_step, u, k)
    cdef lanes* end = at2(ws.lifted_end, u, k)
    cdef lanes value = relative[d] * splat(length_weight[min(d, last)]) * end[d * K] * beta[row[d]]
    while d > 0:
        value = value * step[d * K]
        d -= 1
        value = value + relative[d] * splat(length_weight[min(d, last)]) * end[d * K] * beta[row[d]]
    return at2(ws.lifted_token, u, k)[0] * value


cdef inline lanes _counted_ends(
    Automaton fsa, Batch batch, Workspace ws, Py_ssize_t u, Py_ssize_t k, Py_ssize_t lengths, lanes outer
) noexcept nogil:
    """The same, and the segments of each length."""
    cdef Py_ssize_t d, low = fsa.body_offsets[k], last = batch.lengths - 1, K = fsa.bodies
    cdef const double* length_weight = &ws.length_weight[k, 0]
    cdef const long long* row = &ws.beta_row[0]
    cdef lanes* relative = at1(ws.relative, 0)
    cdef lanes* beta = at2(ws.beta, 0, fsa.open_target[low])
    cdef lanes* step = at2(ws.lifted_step, u, k)
    cdef lanes* end = at2(ws.lifted_end, u, k)
    cdef lanes* length_now = at2(ws.length_now, k, 0)
    cdef lanes weight = at2(ws.lifted_token, u, k)[0], entry = at2(ws.entry, u, low)[0]
    cdef lanes value, sum = splat(0.0)
    for d in range(lengths):
        if d > 0:
            weight = weight * step[d * K]
        value = weight * relative[d] * (splat(length_weight[min(d, last)]) * end[d * K]) * beta[row[d]]
        sum = sum + value
        length_now[min(d, last)] = length_now[min(d, last)] + entry * value * outer
    return sum


cdef inline void _sum_all_ends(
    Automaton fsa,
    Batch batch,
    Workspace ws,
    Py_ssize_t u,
    Py_ssize_t k,
    Py_ssize_t lengths,
    lanes outer,
    bint by_length,
) noexcept nogil:
    """open_u of a body with several open states, and, where lengths have scores, the segments of each."""
    cdef Py_ssize_t d, low = fsa.body_offsets[k], last = batch.lengths - 1, K = fsa.bodies
    cdef Py_ssize_t high_open = fsa.body_offsets[k + 1]
    cdef const double* length_weight = &ws.length_weight[k, 0]
    cdef const long long* row = &ws.beta_row[0]
    cdef const int* target = _first_of(fsa.open_target)
    cdef lanes* relative = at1(ws.relative, 0)
    cdef lanes* weights = at1(ws.weight, 0)
    cdef lanes* meeting = at1(ws.meeting, 0)
    cdef lanes* betas = at2(ws.beta, 0, 0)
    cdef lanes* entry = at2(ws.entry, u, 0)
    cdef lanes* open_value = at1(ws.open_value, 0)
    cdef lanes* step = at2(ws.lifted_step, u, k)
    cdef lanes* end = at2(ws.lifted_end, u, k)
    cdef lanes* length_now = at2(ws.length_now, k, 0)
    cdef lanes weight = at2(ws.lifted_token, u, k)[0]
    for d in range(lengths):
        if d > 0:
            weight = weight * step[d * K]
        weights[d] = weight * relative[d] * (splat(length_weight[min(d, last)]) * end[d * K])
    if not by_length:
        sum_ends(SCALED, open_value, weights, betas, row, target, lengths, low, high_open)
        return
    sum_and_meet(
        SCALED, open_value, meeting, weights, entry, betas, row, target, lengths, low, high_open
    )
    for d in range(lengths):
        length_now[min(d, last)] = length_now[min(d, last)] + weights[d] * meeting[d] * outer


# ended_v(k) = Σ_{o in k} leaving_v(o) beta_v(target o) / Z
cdef void count_ends(Automaton fsa, Workspace ws, Py_ssize_t v, lanes log_z) noexcept nogil:
    """The segments that end at v; sets `lost` where their scale leaves the range of a double."""
    cdef Py_ssize_t k, o
    cdef const int* target = _first_of(fsa.open_target)
    cdef lanes* leaving = at2(ws.leaving, v, 0)
    cdef lanes* beta = beta_row(ws, v)
    cdef lanes* ended = at2(ws.ended, v - 1, 0)
    cdef lanes outer = at1(ws.leaving_scale, v)[0] + at1(ws.beta_scale, v)[0] - log_z, dot
    cdef flags found
    outer = lanes_exp(choose(within(ws, v - 1), outer, splat(-INFINITY)))
    for k in range(fsa.bodies):
        dot = splat(0.0)
        for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
            dot = dot + leaving[o] * beta[target[o]]
        ended[k] = dot * outer
    found = ~less(outer, splat(INFINITY)) & within(ws, v - 1)
    if any_of(found):
        lose(ws, found)


# entry_u(o) = Σ_{c in o} m_u(c) ψ(c) factor_u(c)
cdef bint enter_with_rows(Automaton fsa, Workspace ws, Py_ssize_t u, lanes* entry) noexcept nogil:
    """The sums of `_enter` where rows start. RETURNS (bint): could no digits be lost? If not, nothing
    is done.
    """
    cdef Py_ssize_t i, o, p
    cdef const int* register = _first_of(fsa.open_register)
    cdef const int* arc = _first_of(fsa.open_arc)
    cdef const int* offset = &fsa.open_offsets[0]
    cdef const double* weight = &ws.open_weight[0]
    cdef lanes* x = at1(ws.x, 0)
    cdef lanes* factor = factor_row(ws, u)
    cdef lanes sum, low = splat(TOO_LARGE)
    for p in range(fsa.registers):
        low = smaller(choose(differ(x[p], splat(0.0)), x[p], splat(TOO_LARGE)), low)
    if not _factors_are_safe(ws, u, low):
        return False
    for o in range(fsa.opens):
        sum = splat(0.0)
        for i in range(offset[o], offset[o + 1]):
            sum = sum + x[register[i]] * splat(weight[i]) * factor[arc[i]]
        entry[o] = sum
    return True


# adjoint(register of c) += ψ(c) factor_u(c) open_u(o)
# P(c is taken at u) = m_u(c) ψ(c) factor_u(c) open_u(o) / Z          o the open state of c
cdef bint take_arcs_with_rows(Automaton fsa, Workspace ws, Py_ssize_t u, lanes outer) noexcept nogil:
    """The sums of `_take_arcs` where rows start. RETURNS (bint): as enter_with_rows."""
    cdef Py_ssize_t i = 0, o, p, n = fsa.taken.shape[0]
    cdef const int* register = _first_of(fsa.taken_register)
    cdef const int* entered = _first_of(fsa.taken_open)
    cdef const int* arc = _first_of(fsa.taken)
    cdef const double* weight = &ws.arc_weight[0]
    cdef lanes* x = at1(ws.x, 0)
    cdef lanes* adjoint = at1(ws.adjoint, 0)
    cdef lanes* arc_now = at1(ws.arc_now, 0)
    cdef lanes* arc_value = at1(ws.arc_value, 0)
    cdef lanes* open_weighted = at1(ws.open_weighted, 0)
    cdef lanes* open_value = at1(ws.open_value, 0)
    cdef lanes* first = at2(ws.first, u, 0)
    cdef lanes* factor = factor_row(ws, u)
    cdef lanes value, share, total, low = splat(TOO_LARGE)
    cdef flags alive
    for o in range(fsa.opens):
        alive = differ(open_value[o], splat(0.0)) & differ(first[fsa.open_label[o]], splat(0.0))
        low = smaller(choose(alive, open_weighted[o], splat(TOO_LARGE)), low)
    if ws.has_lost_start[u] or not _factors_are_safe(ws, u, low):
        return False
    while i < n:
        p = register[i]
        total = splat(0.0)
        while i < n and register[i] == p:
            value = open_weighted[entered[i]] * splat(weight[i]) * factor[arc[i]]
            share = x[p] * value * outer
            arc_value[arc[i]] = share
            arc_now[i] = arc_now[i] + share
            total = total + value
            i += 1
        adjoint[p] = total
    return True


cdef inline bint _factors_are_safe(Workspace ws, Py_ssize_t u, lanes low) noexcept nogil:
    """Can factors be multiplied with, if the least live value is `low`?"""
    cdef flags small = ~at_least(low, splat(ROOT_OF_LOST)) & within(ws, u)
    return ws.safe_weights and not ws.has_large_factor[u] and not any_of(small)
