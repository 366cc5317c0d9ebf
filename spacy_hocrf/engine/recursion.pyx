# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The forward recurrence of a high-order semi-CRF over explicit arcs, in three semirings.

With m_u(c) the mass of all histories that take arc c at boundary u (automaton.py's sum program), body(u, v, k) the log score of
the segment [u, v) after its start, o = (k, q) the open states and ψ_u(c) the weight of the arc's const and start scores:

    entry_u(o) = Σ_{c in o} m_u(c) ψ_u(c)                        arcs are applied once per boundary, not once per length
    alpha_v(q) = Σ_{o: target q} Σ_{u<v} entry_u(o) exp body(u, v, k)

Nguyen et al., JMLR 15 (2014) §2.3.1, factored at the boundary. A label without a length limit has a window of lengths that are
summed one by one (those with a length or span score of their own); all longer segments share one recursion, since their scores
add up token by token:

    tail_v(o) = tail_{v-1}(o) exp step(v-1) + entry_{v-1-W}(o) exp body(v-1-W, v)

Scaled space keeps one log scale per boundary, taken as the largest log score of the segments that end there, so nothing
overflows. A value may still underflow. Structural zeros are exact zeros, hence a value that is (nearly) zero although one of its
sources is not has been lost; the sequence is then redone in log space.
"""

import numpy as np

from libc.math cimport INFINITY, log

from spacy_hocrf.errors import Errors
from spacy_hocrf.types import END, INNER, START, TOKEN

__all__ = ["Batch", "Chain", "Workspace"]

cdef double LOST = 1e-280
PART_NAMES = {START: "start", END: "end", TOKEN: "tokens", INNER: "inner tokens"}


cdef class Chain:
    def __init__(self, automaton):
        self.automaton = automaton
        self.states = len(automaton.states)
        self.arcs = len(automaton.arcs)
        self.registers = automaton.registers
        self.bodies = len(automaton.body_label)
        self.opens = len(automaton.open_target)
        self.labels = len(automaton.limits)
        self.patterns = len(automaton.patterns)
        self.limits = automaton.limits
        self.state_suffix = automaton.state_suffix
        self.state_offsets = automaton.state_offsets
        self.state_arcs = automaton.state_arcs
        self.arc_label = automaton.arc_label
        self.arc_suffix = automaton.arc_suffix
        self.arc_target = automaton.arc_target
        self.arc_open = automaton.arc_open
        self.arc_register = automaton.arc_register
        self.additions = automaton.additions
        self.pattern_arc = automaton.pattern_arc
        self.pattern_body = automaton.pattern_body
        self.pattern_folded = automaton.pattern_folded
        self.body_label = automaton.body_label
        self.body_suffix = automaton.body_suffix
        self.body_offsets = automaton.body_offsets
        self.open_target = automaton.open_target
        trees = [[] for _ in range(self.bodies)]
        for body in range(self.bodies):
            suffix = body
            while suffix >= 0:
                trees[suffix].append(body)
                suffix = automaton.body_suffix[suffix]
        self.tree_offsets = np.cumsum([0, *map(len, trees)]).astype(np.int32)
        self.tree = np.fromiter((body for tree in trees for body in tree), dtype=np.int32)


cdef class Batch:
    def __init__(self, potentials, Chain chain not None, initial=None, final=None):
        self.potentials = potentials
        self.offsets = potentials.offsets
        self.sequences = self.offsets.shape[0] - 1
        self.tokens = self.offsets[self.sequences]
        self.longest = int(np.diff(potentials.offsets).max(initial=0))
        self.rows = len(potentials.row_score)
        self.spans = len(potentials.span_score)
        self.lengths = potentials.length_score.shape[1]
        _check_extents(potentials, chain, self.tokens)
        _check_finite(potentials)
        _check_carried(potentials, chain.automaton)
        nothing = np.zeros((self.tokens, chain.labels))
        self.start = nothing if potentials.start is None else potentials.start
        self.end = nothing if potentials.end is None else potentials.end
        self.token = potentials.token
        self.inner = nothing if potentials.inner is None else potentials.inner
        self.allowed = potentials.allowed
        self.row_offsets = potentials.row_offsets
        self.row_part = potentials.row_part
        self.row_pattern = potentials.row_pattern
        self.row_score = potentials.row_score
        self.span_start = potentials.span_start
        self.span_end = potentials.span_end
        self.span_pattern = potentials.span_pattern
        self.span_score = potentials.span_score
        self.span_offsets = np.searchsorted(potentials.span_start, potentials.offsets).astype(np.int64)
        self.span_by_end = np.argsort(potentials.span_end, kind="stable").astype(np.int64)
        arc_const = _arc_const(potentials, chain.automaton)
        self.scalable = bool(np.abs(arc_const).max(initial=0.0) < 300.0)
        self.arc_const = arc_const
        self.body_length = _body_length(potentials, chain.automaton)
        start_here = np.full((1, chain.states), -np.inf)
        start_here[0, 0] = 0.0
        self.initial = np.repeat(start_here, self.sequences, axis=0) if initial is None else initial
        self.final = np.zeros((self.sequences, chain.states)) if final is None else final


cdef class Workspace:
    def __init__(self, Chain chain not None, Batch batch not None):
        """Buffers for the longest sequence of the batch."""
        cdef Py_ssize_t T = batch.longest, K = chain.bodies
        limits = np.asarray(chain.limits)[np.asarray(chain.body_label)] if K else np.zeros(0, dtype=np.int32)
        free = bool((limits == 0).any())
        self.token = np.zeros((K, T))
        self.inner = np.zeros((K, T))
        self.end = np.zeros((K, T))
        self.has_rows = np.zeros(T, dtype=np.uint8)
        self.window = np.zeros(K, dtype=np.int64)
        self.window_offset = np.zeros(K, dtype=np.int64)
        self.reach = np.zeros(K, dtype=np.int64)
        self.free = np.zeros(K, dtype=np.uint8)
        self.alpha = np.zeros((T + 1, chain.states))
        self.beta = np.zeros((T + 1, chain.states))
        self.entry = np.zeros((T + 1, chain.opens))
        self.tail = np.zeros((T + 1 if free else 1, chain.opens))
        self.rest = np.zeros((T + 1 if free else 1, chain.opens))
        self.alpha_scale = np.zeros(T + 1)
        self.beta_scale = np.zeros(T + 1)
        self.entry_scale = np.zeros(T + 1)
        self.tail_scale = np.zeros((T + 1 if free else 1, K))
        self.rest_scale = np.zeros((T + 1 if free else 1, K))
        self.entering = np.zeros((T + 1, K), dtype=np.uint8)
        self.tailing = np.zeros((T + 1, K), dtype=np.uint8)
        self.resting = np.zeros((T + 1, K), dtype=np.uint8)
        self.x = np.zeros(chain.registers)
        self.adjoint = np.zeros(chain.registers)
        self.factor = np.zeros(chain.arcs)
        self.arc_value = np.zeros(chain.arcs)
        self.first = np.zeros(chain.labels)
        self.arc_weight = np.zeros(chain.arcs)
        self.score = np.zeros(int(np.where(limits == 0, T, np.minimum(limits, T)).sum()) + K)
        self.tail_score = np.zeros(K)
        self.total = np.zeros(chain.opens)


cdef void load(Chain chain, Batch batch, Workspace ws, Py_ssize_t sequence) noexcept nogil:
    """Lay out the scores of one sequence by body, and choose the windows of the labels without a limit."""
    cdef Py_ssize_t base = batch.offsets[sequence], T = batch.offsets[sequence + 1] - base
    cdef Py_ssize_t K = chain.bodies, Y = chain.labels, t, k, r, s, y, z, place
    cdef int suffix
    ws.base = base
    ws.tokens = T
    ws.sequence = sequence
    ws.span_low = batch.span_offsets[sequence]
    ws.span_high = batch.span_offsets[sequence + 1]
    for y in range(Y):
        for t in range(T):
            ws.token[y, t] = batch.token[base + t, y]
            ws.inner[y, t] = batch.inner[base + t, y]
            ws.end[y, t] = batch.end[base + t, y]
    for k in range(Y, K):
        for t in range(T):
            ws.token[k, t] = ws.inner[k, t] = ws.end[k, t] = 0.0
    for t in range(T):
        ws.has_rows[t] = False
        for r in range(batch.row_offsets[base + t], batch.row_offsets[base + t + 1]):
            z = batch.row_pattern[r]
            if batch.row_part[r] == PART_START or chain.pattern_folded[z]:
                ws.has_rows[t] = True
            elif batch.row_part[r] == PART_TOKEN:
                ws.token[chain.pattern_body[z], t] += batch.row_score[r]
            elif batch.row_part[r] == PART_INNER:
                ws.inner[chain.pattern_body[z], t] += batch.row_score[r]
            else:
                ws.end[chain.pattern_body[z], t] += batch.row_score[r]
    for k in range(Y, K):
        suffix = chain.body_suffix[k]
        for t in range(T):
            ws.token[k, t] += ws.token[suffix, t]
            ws.inner[k, t] += ws.inner[suffix, t]
            ws.end[k, t] += ws.end[suffix, t]

    for k in range(K):
        y = chain.body_label[k]
        ws.window[k] = chain.limits[y] if chain.limits[y] > 0 else max(1, batch.lengths - 1)
    for s in range(ws.span_low, ws.span_high):
        k = chain.pattern_body[batch.span_pattern[s]]
        if k < 0:
            ws.has_rows[batch.span_start[s] - base] = True
            continue
        y = chain.body_label[k]
        if chain.limits[y] == 0:
            for k in range(K):
                if chain.body_label[k] == y:
                    ws.window[k] = max(ws.window[k], batch.span_end[s] - batch.span_start[s])
    place = 0
    ws.any_free = False
    for k in range(K):
        ws.free[k] = chain.limits[chain.body_label[k]] == 0 and ws.window[k] < T
        ws.any_free |= ws.free[k]
        ws.window[k] = min(ws.window[k], T)
        ws.window_offset[k] = place
        place += ws.window[k]


cdef void lift_arcs(semiring* _, Chain chain, Batch batch, Workspace ws) noexcept nogil:
    """Lift the scores that are the same at every boundary, once per batch."""
    cdef Py_ssize_t c
    for c in range(chain.arcs):
        ws.arc_weight[c] = lift(_, batch.arc_const[c])


cdef void weigh_starts(semiring* _, Chain chain, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """ψ_u: first[y] = exp(start_y(u) - shift) and factor[c] = exp of the rows that start here, along the suffixes of c."""
    cdef Py_ssize_t t = ws.base + u, y, c, r, s, z
    cdef double shift = -INFINITY, own
    cdef double* sum_of = &ws.arc_value[0]  # logs are added up before they are lifted: e^600 and e^-800 alone leave the range
    for y in range(chain.labels):
        if batch.allowed[t, y] & FIRST and batch.start[t, y] > shift:
            shift = batch.start[t, y]
    if semiring is not Scaled or shift == -INFINITY:
        shift = 0.0
    ws.first_scale = shift
    for y in range(chain.labels):
        ws.first[y] = lift(_, batch.start[t, y] - shift) if batch.allowed[t, y] & FIRST else zero(_)
    if not ws.has_rows[u]:
        return
    for c in range(chain.arcs):
        ws.factor[c] = 0.0
    for r in range(batch.row_offsets[t], batch.row_offsets[t + 1]):
        z = batch.row_pattern[r]
        if batch.row_part[r] == PART_START or (chain.pattern_folded[z] and batch.row_part[r] != PART_INNER):
            ws.factor[chain.pattern_arc[z]] += batch.row_score[r]
    for s in range(ws.span_low, ws.span_high):
        z = batch.span_pattern[s]
        if batch.span_start[s] == t and batch.span_end[s] == t + 1 and chain.pattern_body[z] < 0:
            ws.factor[chain.pattern_arc[z]] += batch.span_score[s]
    for c in range(chain.arcs):
        own = ws.factor[c]
        if chain.arc_suffix[c] < 0:
            sum_of[c] = own
            ws.factor[c] = lift(_, own)
        elif own == 0.0:
            sum_of[c] = sum_of[chain.arc_suffix[c]]
            ws.factor[c] = ws.factor[chain.arc_suffix[c]]
        else:
            sum_of[c] = sum_of[chain.arc_suffix[c]] + own
            ws.factor[c] = lift(_, sum_of[c])


cdef void sum_entries(semiring* _, Chain chain, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Run the sum program on alpha_u: afterwards x[arc_register[c]] is m_u(c)."""
    cdef Py_ssize_t p, i
    for p in range(chain.states):
        ws.x[p] = ws.alpha[u, p]
    for i in range(chain.additions.shape[0]):
        ws.x[chain.additions[i, 0]] = plus(_, ws.x[chain.additions[i, 1]], ws.x[chain.additions[i, 2]])


cdef bint forward(semiring* _, Chain chain, Batch batch, Workspace ws) noexcept nogil:
    """Fill alpha and entry of the loaded sequence and set its log partition; true if a live value was lost."""
    cdef Py_ssize_t p, v, T = ws.tokens
    cdef double high = -INFINITY, last = -INFINITY, value = zero(_)
    for p in range(chain.states):
        high = max(high, batch.initial[ws.sequence, p])
        last = max(last, batch.final[ws.sequence, p])
    if semiring is not Scaled or high == -INFINITY:
        high = 0.0
    if semiring is not Scaled or last == -INFINITY:
        last = 0.0
    for p in range(chain.states):
        ws.alpha[0, p] = lift(_, batch.initial[ws.sequence, p] - high)
        if semiring is Scaled and ws.alpha[0, p] < LOST and batch.initial[ws.sequence, p] > -INFINITY:
            return True
    ws.alpha_scale[0] = high
    for v in range(1, T + 1):
        if _enter(_, chain, batch, ws, v - 1) or _leave(_, chain, batch, ws, v):
            return True
    for p in range(chain.states):
        value = plus(_, value, times(_, ws.alpha[T, p], lift(_, batch.final[ws.sequence, p] - last)))
    if semiring is Scaled:
        ws.log_partition = log(value) + ws.alpha_scale[T] + last if value > 0.0 else -INFINITY
        if value < LOST:
            for p in range(chain.states):
                if ws.alpha[T, p] != 0.0 and batch.final[ws.sequence, p] > -INFINITY:
                    return True
        return False
    else:
        ws.log_partition = value
        return False


cdef bint _enter(semiring* _, Chain chain, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """entry_u(o) = Σ_{c in o} m_u(c) ψ_u(c)."""
    cdef Py_ssize_t c, o, k
    cdef double* entry = &ws.entry[u, 0]
    cdef double value, least, high = 0.0
    cdef bint small = False
    weigh_starts(_, chain, batch, ws, u)
    sum_entries(_, chain, ws, u)
    for o in range(chain.opens):
        entry[o] = zero(_)
    for c in range(chain.arcs):
        o = chain.arc_open[c]
        if o < 0 or ws.x[chain.arc_register[c]] == zero(_):
            continue
        value = times(_, times(_, ws.x[chain.arc_register[c]], ws.arc_weight[c]), ws.first[chain.arc_label[c]])
        if ws.has_rows[u]:
            if semiring is Scaled and value < LOST and ws.factor[c] > 1.0:  # its digits may be gone before the factor lifts it
                if batch.allowed[ws.base + u, chain.arc_label[c]] & FIRST:
                    return True
            value = times(_, value, ws.factor[c])
        entry[o] = plus(_, entry[o], value)
    ws.entry_scale[u] = ws.alpha_scale[u] + ws.first_scale
    if semiring is Scaled:
        for o in range(chain.opens):
            high = max(high, entry[o])
        least = LOST * max(1.0, high)
        for o in range(chain.opens):
            small |= not entry[o] >= least
        if not high < 1e300 or (small and _lost_entry(chain, batch, ws, u, least)):
            return True
        if high > 0.0:
            for o in range(chain.opens):
                entry[o] /= high
            ws.entry_scale[u] += log(high)
    for k in range(chain.bodies):
        ws.entering[u, k] = False
        for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
            ws.entering[u, k] |= entry[o] != zero(_)
    return False


cdef bint _lost_entry(Chain chain, Batch batch, Workspace ws, Py_ssize_t u, double least) noexcept nogil:
    """Has an entry vanished, by itself or beside the largest, that an arc with mass and an allowed label leads to?"""
    cdef Py_ssize_t c, o
    for c in range(chain.arcs):
        o = chain.arc_open[c]
        if o >= 0 and ws.x[chain.arc_register[c]] != 0.0 and batch.allowed[ws.base + u, chain.arc_label[c]] & FIRST:
            if not ws.entry[u, o] >= least:
                return True
    return False


cdef void score_endings(Chain chain, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Log scores, after the start, of all segments that end at v: one per body and length, and one per body for the tail.

    score[window_offset[k] + d - 1] = body(v-d, v, k) + scale of the entry; -inf for what is impossible or has no mass.
    """
    cdef Py_ssize_t k, d, u, y, e, s, i, bound, length
    cdef double run, score
    cdef double* scores
    cdef bint last
    for k in range(chain.bodies):
        y = chain.body_label[k]
        scores = &ws.score[ws.window_offset[k]]
        last = batch.allowed[ws.base + v - 1, y] & LAST
        bound = min(ws.window[k], v)
        run = 0.0
        d = 0
        while d < bound:
            u = v - 1 - d
            run += ws.token[k, u]
            if d > 0:
                run += ws.inner[k, u + 1]
            if last and ws.entering[u, k]:
                length = min(d, batch.lengths - 1)
                scores[d] = run + ws.end[k, v - 1] + batch.body_length[k, length] + ws.entry_scale[u]
            else:
                scores[d] = -INFINITY
            d += 1
            if not batch.allowed[ws.base + u, y] & CONTINUE:
                break
        ws.reach[k] = d
        if ws.any_free:
            ws.tail_score[k] = -INFINITY
            if ws.free[k] and last and ws.tailing[v, k]:
                ws.tail_score[k] = ws.tail_scale[v, k] + ws.end[k, v - 1] + batch.body_length[k, batch.lengths - 1]
    while ws.span_next < ws.span_high and batch.span_end[batch.span_by_end[ws.span_next]] == ws.base + v:
        s = batch.span_by_end[ws.span_next]
        ws.span_next += 1
        k = chain.pattern_body[batch.span_pattern[s]]
        if k >= 0:
            d = batch.span_end[s] - batch.span_start[s]
            score = batch.span_score[s]
            for i in range(chain.tree_offsets[k], chain.tree_offsets[k + 1]):
                e = chain.tree[i]
                if d <= ws.reach[e]:
                    ws.score[ws.window_offset[e] + d - 1] += score


cdef bint _leave(semiring* _, Chain chain, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """alpha_v(q) = Σ_{o: target q} (Σ_d entry_{v-d}(o) exp body(v-d, v, k) + tail_v(o) exp(end + length))."""
    cdef Py_ssize_t k, d, o, q
    cdef double high = -INFINITY, weight, largest = 0.0
    cdef double* alpha = &ws.alpha[v, 0]
    cdef double* total = &ws.total[0]
    cdef double* scores
    cdef double* entry
    cdef bint small = False
    if v == 1:
        ws.span_next = ws.span_low
    if ws.any_free and _lengthen(_, chain, batch, ws, v):
        return True
    score_endings(chain, batch, ws, v)
    if semiring is Scaled:
        for k in range(chain.bodies):
            scores = &ws.score[ws.window_offset[k]]
            for d in range(ws.reach[k]):
                if scores[d] > high:
                    high = scores[d]
            if ws.any_free and ws.tail_score[k] > high:
                high = ws.tail_score[k]
    if high == -INFINITY:
        high = 0.0
    for o in range(chain.opens):
        total[o] = zero(_)
    for k in range(chain.bodies):
        scores = &ws.score[ws.window_offset[k]]
        for d in range(ws.reach[k]):
            if scores[d] > -INFINITY:
                weight = lift(_, scores[d] - high)
                entry = &ws.entry[v - 1 - d, 0]
                for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
                    total[o] = plus(_, total[o], times(_, weight, entry[o]))
        if ws.any_free and ws.tail_score[k] > -INFINITY:
            weight = lift(_, ws.tail_score[k] - high)
            entry = &ws.tail[v, 0]
            for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
                total[o] = plus(_, total[o], times(_, weight, entry[o]))
    for q in range(chain.states):
        alpha[q] = zero(_)
    for o in range(chain.opens):
        q = chain.open_target[o]
        alpha[q] = plus(_, alpha[q], total[o])
    ws.alpha_scale[v] = high
    if semiring is Scaled:
        for q in range(chain.states):
            largest = max(largest, alpha[q])
            small |= not alpha[q] >= LOST
        if not largest < 1e300 or (small and _lost_alpha(chain, ws, v)):
            return True
        if largest > 0.0:
            for q in range(chain.states):
                alpha[q] /= largest
            ws.alpha_scale[v] += log(largest)
    return False


cdef bint _lost_alpha(Chain chain, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Has a state vanished that an allowed segment with mass leads to? Before scaling, none is much above 1."""
    cdef Py_ssize_t k, d, o
    for k in range(chain.bodies):
        for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
            if ws.alpha[v, chain.open_target[o]] >= LOST:
                continue
            for d in range(ws.reach[k]):
                if ws.score[ws.window_offset[k] + d] > -INFINITY and ws.entry[v - 1 - d, o] != 0.0:
                    return True
            if ws.any_free and ws.tail_score[k] > -INFINITY and ws.tail[v, o] != 0.0:
                return True
    return False


cdef bint _lengthen(semiring* _, Chain chain, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """tail_v(o): segments open at v for more than the window; true if one that is open has been lost."""
    cdef Py_ssize_t k, o, y, u, t
    cdef double old, new, high, largest, a, b
    cdef bint lost
    for k in range(chain.bodies):
        ws.tailing[v, k] = False
        if not ws.free[k]:
            continue
        y = chain.body_label[k]
        old = new = -INFINITY
        if ws.tailing[v - 1, k] and batch.allowed[ws.base + v - 1, y] & CONTINUE:
            old = ws.tail_scale[v - 1, k] + ws.token[k, v - 1] + ws.inner[k, v - 1]
        u = v - 1 - ws.window[k]
        if u >= 0 and ws.entering[u, k]:
            new = ws.entry_scale[u] + ws.token[k, u]
            for t in range(u + 1, v):
                new += ws.token[k, t] + ws.inner[k, t]
                if not batch.allowed[ws.base + t, y] & CONTINUE:
                    new = -INFINITY
                    break
        if old == -INFINITY and new == -INFINITY:
            continue
        high = max(old, new) if semiring is Scaled else 0.0
        largest = 0.0
        for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
            a = times(_, lift(_, old - high), ws.tail[v - 1, o]) if old > -INFINITY else zero(_)
            b = times(_, lift(_, new - high), ws.entry[u, o]) if new > -INFINITY else zero(_)
            ws.tail[v, o] = plus(_, a, b)
            if semiring is Scaled:
                largest = max(largest, ws.tail[v, o])
                lost = (old > -INFINITY and ws.tail[v - 1, o] != 0.0) or (new > -INFINITY and ws.entry[u, o] != 0.0)
                if lost and not ws.tail[v, o] >= LOST:
                    return True
        if semiring is Scaled:
            for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
                ws.tail[v, o] /= largest
            high += log(largest)
        ws.tail_scale[v, k] = high
        ws.tailing[v, k] = True
    return False


def _check_extents(potentials, Chain chain, tokens):
    expected = {
        "const": (chain.patterns,),
        "start": (tokens, chain.labels),
        "end": (tokens, chain.labels),
        "token": (tokens, chain.labels),
        "inner": (tokens, chain.labels),
        "allowed": (tokens, chain.labels),
        "row_offsets": (tokens + 1,),
        "row_part": potentials.row_score.shape,
        "row_pattern": potentials.row_score.shape,
        "length_score": (len(potentials.length_pattern), max(1, potentials.length_score.shape[1])),
        "span_start": potentials.span_score.shape,
        "span_end": potentials.span_score.shape,
        "span_pattern": potentials.span_score.shape,
    }
    for name, extents in expected.items():
        if getattr(potentials, name) is not None and getattr(potentials, name).shape != extents:
            raise ValueError(Errors.H004.format(name=name, found=getattr(potentials, name).shape, expected=extents))
    rows = int(potentials.row_offsets[tokens])
    if rows != len(potentials.row_score):
        raise ValueError(Errors.H004.format(name="row_score", found=potentials.row_score.shape, expected=(rows,)))
    for name in ("row_pattern", "length_pattern", "span_pattern"):
        values = getattr(potentials, name)
        if len(values) and not 0 <= values.min() <= values.max() < chain.patterns:
            found = (int(values.min()), int(values.max()))
            raise ValueError(Errors.H004.format(name=name, found=found, expected=(0, chain.patterns - 1)))
    if len(potentials.span_score):
        starts, ends = potentials.span_start, potentials.span_end
        first = np.searchsorted(potentials.offsets, starts, side="right")
        inside = first == np.searchsorted(potentials.offsets, ends, side="left")
        if not (inside & (starts < ends)).all() or (np.diff(starts) < 0).any():
            raise ValueError(Errors.H009)


def _check_finite(potentials):
    for name in ("const", "start", "end", "token", "inner", "row_score", "length_score", "span_score"):
        values = getattr(potentials, name)
        if values is not None and not np.isfinite(values).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
            raise ValueError(Errors.H006.format(name=name, found=values[where], where=where))


def _check_carried(potentials, automaton):
    """An observation after the start of a segment needs a body that remembers its pattern."""
    needs_body = (automaton.pattern_body < 0) & (automaton.pattern_folded == 0)
    used = [
        (potentials.row_pattern[potentials.row_part == part], PART_NAMES[part]) for part in (END, TOKEN, INNER)
    ]
    used += [(potentials.length_pattern, "length"), (potentials.span_pattern, "whole")]
    for patterns, part in used:
        missing = patterns[needs_body[patterns]]
        if len(missing):
            raise ValueError(Errors.H005.format(pattern=automaton.patterns[missing[0]], part=part))


def _arc_const(potentials, automaton):
    """[C] what every segment that takes the arc gets; a one-token segment's length score is known at its start."""
    const = potentials.const.copy()
    for z, scores in zip(potentials.length_pattern, potentials.length_score):
        if automaton.pattern_body[z] < 0:
            const[z] += scores[0]
    score = np.where(automaton.arc_pattern >= 0, const[automaton.arc_pattern], 0.0)
    for arc, suffix in enumerate(automaton.arc_suffix):
        if suffix >= 0:
            score[arc] += score[suffix]
    return score


def _body_length(potentials, automaton):
    scores = np.zeros((len(automaton.body_label), potentials.length_score.shape[1]))
    for z, row in zip(potentials.length_pattern, potentials.length_score):
        if automaton.pattern_body[z] >= 0:
            scores[automaton.pattern_body[z]] += row
    for body, suffix in enumerate(automaton.body_suffix):
        if suffix >= 0:
            scores[body] += scores[suffix]
    return scores
