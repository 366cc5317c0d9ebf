# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""log Z, expected counts and marginals: the backward recurrence over P and the products of both sides.

The future depends on the history only through its longest suffix in P, so beta lives on P, as alpha does:

    open_u(o)  = Σ_{v>u} exp body(u, v, k) beta_v(target o)          o = (k, target)
    beta_u(p)  = Σ_y ψ_u(c) open_u(open state of c),  c = c(p, y)    the adjoint of the sum program

    P(arc c is taken at u)        = m_u(c) ψ_u(c) open_u(o) / Z
    P(segment [u, v) in body k)   = Σ_{o in k} entry_u(o) exp body(u, v, k) beta_v(target o) / Z

and P(pattern z ends there) is the sum over the arcs or bodies that end in z: a sum over a suffix tree, made once per batch where
it can be. Nguyen et al., JMLR 15 (2014) §2.3.2, whose beta over S = P·Y this replaces. Values of beta whose alpha is a structural
zero are never used and left zero.
"""

import numpy as np

from libc.math cimport INFINITY, NAN, exp, isfinite, log

from spacy_hocrf.engine.recursion cimport (
    CONTINUE,
    FIRST,
    LAST,
    PART_INNER,
    PART_START,
    PART_TOKEN,
    Batch,
    Chain,
    Log,
    Scaled,
    Workspace,
    forward,
    lift,
    lift_arcs,
    load,
    plus,
    sum_entries,
    summing,
    times,
    weigh_starts,
    zero,
)

from spacy_hocrf.errors import Errors
from spacy_hocrf.types import Expectations

__all__ = ["expectations", "log_partition", "log_state_scores"]

cdef double LOST = 1e-280
SPACES = {"auto": (True, True), "scaled": (True, False), "log": (False, True)}


def log_partition(potentials, automaton, *, space="auto", initial=None, final=None):
    """Log of the total score of all allowed segmentations (Nguyen et al., JMLR 15, §2.3.1).

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): the arcs of the same Z patterns.
    space (str): "scaled", "log", or "auto", which takes scaled probabilities and redoes a sequence in log space where a live
        value was lost. In "scaled" such a sequence gets nan.
    initial (float64 [D, P]): log alpha before the first token; by default all mass is in the empty history.
    final (float64 [D, P]): log beta after the last token; by default 0.
    RETURNS (float64 [D]): log Z in nats; 0.0 for an empty sequence, -inf if no segmentation is allowed.
    RAISES (ValueError): H004, H005, H006, H009 or H010 for potentials that do not fit.
    """
    cdef Chain chain = Chain(automaton)
    cdef Batch batch = Batch(potentials, chain, initial, final)
    cdef Workspace ws = Workspace(chain, batch)
    cdef bint scaled, logs
    cdef Py_ssize_t i
    scaled, logs = _space(space)
    result = np.zeros(batch.sequences)
    cdef double[::1] out = result
    with nogil:
        for i in range(batch.sequences):
            _forward_any(chain, batch, ws, i, scaled, logs)
            out[i] = ws.log_partition
    return result


def expectations(potentials, automaton, *, space="auto"):
    """Expected number of times that each entry of the potentials fires (Nguyen et al., JMLR 15, §2.3.2).

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): the arcs of the same Z patterns.
    space (str): as in `log_partition`; a sequence that gets nan in "scaled" has no meaningful counts.
    RETURNS (Expectations): log Z, and for each const, dense entry, row, length and span its expected count, which is the
        derivative of Σ log Z with respect to it. A span's is the probability of that segment after that history. Sequences
        without an allowed segmentation contribute nothing.
    RAISES (ValueError): as `log_partition`.
    """
    cdef Chain chain = Chain(automaton)
    cdef Batch batch = Batch(potentials, chain)
    cdef Workspace ws = Workspace(chain, batch)
    cdef _Counts counts = _Counts(chain, batch)
    cdef bint scaled, logs
    cdef Py_ssize_t i
    cdef double[::1] out
    scaled, logs = _space(space)
    result = np.zeros(batch.sequences)
    out = result
    with nogil:
        for i in range(batch.sequences):
            _both_any(chain, batch, ws, counts, i, scaled, logs)
            out[i] = ws.log_partition
    return counts.expectations(result)


def log_state_scores(potentials, automaton, *, space="auto"):
    """Log alpha and log beta of every state at every boundary of every sequence (Nguyen et al., JMLR 15, §2.3).

    potentials (Potentials): log potentials of D sequences with N tokens.
    automaton (Automaton): the arcs of the same Z patterns, P states.
    space (str): as in `log_partition`.
    RETURNS (tuple[float64 [N + D, P], float64 [N + D, P]]): sequence i has rows offsets[i] + i to offsets[i + 1] + i, one more
        than tokens. Where log alpha is -inf, log beta may be -inf too, whatever its true value.
    RAISES (ValueError): as `log_partition`.
    """
    cdef Chain chain = Chain(automaton)
    cdef Batch batch = Batch(potentials, chain)
    cdef Workspace ws = Workspace(chain, batch)
    cdef _Counts counts = _Counts(chain, batch)
    cdef bint scaled, logs, in_logs
    cdef Py_ssize_t i, v, p, row
    cdef double[:, ::1] log_alpha, log_beta
    scaled, logs = _space(space)
    left = np.full((batch.tokens + batch.sequences, chain.states), -np.inf)
    right = left.copy()
    log_alpha, log_beta = left, right
    with nogil:
        for i in range(batch.sequences):
            in_logs = _both_any(chain, batch, ws, counts, i, scaled, logs)
            for v in range(ws.tokens + 1):
                row = ws.base + i + v
                for p in range(chain.states):
                    if in_logs:
                        log_alpha[row, p], log_beta[row, p] = ws.alpha[v, p], ws.beta[v, p]
                    else:
                        log_alpha[row, p] = log(ws.alpha[v, p]) + ws.alpha_scale[v]
                        log_beta[row, p] = log(ws.beta[v, p]) + ws.beta_scale[v]
    return left, right


def _space(space):
    if space not in SPACES:
        raise ValueError(Errors.H010.format(found=space, expected=", ".join(SPACES)))
    return SPACES[space]


cdef class _Counts:
    """Expected counts of a batch, and of one sequence by body."""
    cdef double[::1] arc, arc_now  # [C] arcs taken, summed over the batch; of one sequence
    cdef double[:, ::1] start, end, token, inner  # [N, Y]
    cdef double[::1] row, span
    cdef double[:, ::1] body_length, length_now  # [K, M] segments in this very body by length; of one sequence
    cdef double[:, ::1] cover, started, ended  # [K, T + 1] of one sequence: tokens inside, first, last
    cdef object batch, chain

    def __init__(self, Chain chain not None, Batch batch not None):
        cdef Py_ssize_t T = batch.longest, K = chain.bodies
        self.batch, self.chain = batch, chain
        self.arc = np.zeros(chain.arcs)
        self.arc_now = np.zeros(chain.arcs)
        self.start = np.zeros((batch.tokens, chain.labels))
        self.end = np.zeros((batch.tokens, chain.labels))
        self.token = np.zeros((batch.tokens, chain.labels))
        self.inner = np.zeros((batch.tokens, chain.labels))
        self.row = np.zeros(batch.rows)
        self.span = np.zeros(batch.spans)
        self.body_length = np.zeros((K, batch.lengths))
        self.length_now = np.zeros((K, batch.lengths))
        self.cover = np.zeros((K, T + 1))
        self.started = np.zeros((K, T + 1))
        self.ended = np.zeros((K, T + 1))

    def expectations(self, log_partitions):
        """Sum the arcs and bodies over their suffix trees."""
        automaton, potentials = self.chain.automaton, self.batch.potentials
        arc = _sum_trees(np.asarray(self.arc), automaton.arc_suffix)
        body_length = _sum_trees(np.asarray(self.body_length), automaton.body_suffix)
        length = np.zeros(potentials.length_score.shape)
        for row, z in enumerate(potentials.length_pattern):
            if automaton.pattern_body[z] >= 0:
                length[row] = body_length[automaton.pattern_body[z]]
            else:
                length[row, 0] = arc[automaton.pattern_arc[z]]
        return Expectations(
            log_partition=log_partitions,
            const=arc[automaton.pattern_arc],
            start=np.asarray(self.start),
            end=np.asarray(self.end),
            token=np.asarray(self.token),
            inner=np.asarray(self.inner),
            row=np.asarray(self.row),
            length=length,
            span=np.asarray(self.span),
        )


cdef void _forward_any(Chain chain, Batch batch, Workspace ws, Py_ssize_t i, bint scaled, bint logs) noexcept nogil:
    """log Z in scaled space if it can be had there, else in log space, else nan."""
    load(chain, batch, ws, i)
    if scaled and batch.scalable:
        lift_arcs(<Scaled*> NULL, chain, batch, ws)
        if not forward(<Scaled*> NULL, chain, batch, ws):
            return
    if logs:
        lift_arcs(<Log*> NULL, chain, batch, ws)
        forward(<Log*> NULL, chain, batch, ws)
    else:
        ws.log_partition = NAN


cdef bint _both_any(
    Chain chain, Batch batch, Workspace ws, _Counts counts, Py_ssize_t i, bint scaled, bint logs
) noexcept nogil:
    """Forward, backward and counts of one sequence; true if they were made in log space."""
    load(chain, batch, ws, i)
    if scaled and batch.scalable:
        lift_arcs(<Scaled*> NULL, chain, batch, ws)
        if not forward(<Scaled*> NULL, chain, batch, ws):
            if not _backward(<Scaled*> NULL, chain, batch, ws, counts):
                _collect(chain, batch, ws, counts)
                return False
    if logs:
        lift_arcs(<Log*> NULL, chain, batch, ws)
        forward(<Log*> NULL, chain, batch, ws)
        _backward(<Log*> NULL, chain, batch, ws, counts)
        _collect(chain, batch, ws, counts)
    else:
        ws.log_partition = NAN
    return True


cdef inline double probability(summing* _, double value, double log_scale) noexcept nogil:
    """A product of both sides as a probability; the scale holds -log Z."""
    if summing is Scaled:
        return value * exp(log_scale)
    else:
        return exp(value + log_scale)


cdef bint _backward(summing* _, Chain chain, Batch batch, Workspace ws, _Counts counts) noexcept nogil:
    """Fill beta and the sequence's own counts; true if a live value was lost."""
    cdef Py_ssize_t T = ws.tokens, k, t, c, u, p, s
    cdef double high = -INFINITY
    for c in range(chain.arcs):
        counts.arc_now[c] = 0.0
    for k in range(chain.bodies):
        for t in range(batch.lengths):
            counts.length_now[k, t] = 0.0
        for t in range(T + 1):
            counts.cover[k, t] = counts.started[k, t] = counts.ended[k, t] = 0.0
            ws.resting[t, k] = False
    for t in range(ws.base, ws.base + T):
        for k in range(chain.labels):
            counts.start[t, k] = 0.0
    for s in range(ws.span_low, ws.span_high):
        counts.span[s] = 0.0
    for p in range(chain.states):
        high = max(high, batch.final[ws.sequence, p])
    if summing is not Scaled or high == -INFINITY:
        high = 0.0
    for p in range(chain.states):
        ws.beta[T, p] = lift(_, batch.final[ws.sequence, p] - high)
    ws.beta_scale[T] = high
    if ws.log_partition == -INFINITY:
        for u in range(T + 1):
            ws.beta_scale[u] = 0.0
            for p in range(chain.states):
                ws.beta[u, p] = zero(_)
        return False
    ws.span_next = ws.span_high - 1
    if ws.any_free and _rest(_, chain, batch, ws, counts, T):
        return True
    for u in range(T - 1, -1, -1):
        _score_starts(chain, batch, ws, u)
        if _open(_, chain, batch, ws, counts, u) or _take_arcs(_, chain, batch, ws, counts, u):
            return True
        if ws.any_free and _rest(_, chain, batch, ws, counts, u):
            return True
    return False


cdef void _score_starts(Chain chain, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Log scores, after the start, of all segments that start at u; as recursion.score_endings, with the scale of beta."""
    cdef Py_ssize_t k, d, v, y, s, i, e, bound
    cdef double run
    cdef double* scores
    for k in range(chain.bodies):
        ws.reach[k] = 0
        ws.tail_score[k] = -INFINITY
        if not ws.entering[u, k]:
            continue
        y = chain.body_label[k]
        scores = &ws.score[ws.window_offset[k]]
        bound = min(ws.window[k], ws.tokens - u)
        run = 0.0
        d = 0
        while d < bound:
            v = u + d + 1
            if d > 0:
                if not batch.allowed[ws.base + v - 1, y] & CONTINUE:
                    break
                run += ws.inner[k, v - 1]
            run += ws.token[k, v - 1]
            if batch.allowed[ws.base + v - 1, y] & LAST:
                scores[d] = run + ws.end[k, v - 1] + batch.body_length[k, min(d, batch.lengths - 1)] + ws.beta_scale[v]
            else:
                scores[d] = -INFINITY
            d += 1
        ws.reach[k] = d
        v = u + ws.window[k] + 1
        if ws.free[k] and d == ws.window[k] and v <= ws.tokens and ws.resting[v, k]:
            if batch.allowed[ws.base + v - 1, y] & CONTINUE:
                ws.tail_score[k] = run + ws.token[k, v - 1] + ws.inner[k, v - 1] + ws.rest_scale[v, k]
    for s in range(ws.span_next, ws.span_low - 1, -1):
        if batch.span_start[s] < ws.base + u:
            break
        k = chain.pattern_body[batch.span_pattern[s]]
        if k >= 0:
            d = batch.span_end[s] - batch.span_start[s]
            for i in range(chain.tree_offsets[k], chain.tree_offsets[k + 1]):
                e = chain.tree[i]
                if d <= ws.reach[e]:
                    ws.score[ws.window_offset[e] + d - 1] += batch.span_score[s]


cdef bint _open(summing* _, Chain chain, Batch batch, Workspace ws, _Counts counts, Py_ssize_t u) noexcept nogil:
    """open_u(o) into ws.total, and the marginals of the segments that start at u."""
    cdef Py_ssize_t k, d, o, v, s, i, e
    cdef double high = -INFINITY, largest = 0.0, weight, dot, value, share, scale
    cdef double* scores
    cdef double* entry = &ws.entry[u, 0]
    cdef double* total = &ws.total[0]
    cdef bint small = False
    if summing is Scaled:
        for k in range(chain.bodies):
            scores = &ws.score[ws.window_offset[k]]
            for d in range(ws.reach[k]):
                high = max(high, scores[d])
            high = max(high, ws.tail_score[k])
    if high == -INFINITY:
        high = 0.0
    scale = ws.entry_scale[u] + high - ws.log_partition
    for o in range(chain.opens):
        total[o] = zero(_)
    for k in range(chain.bodies):
        scores = &ws.score[ws.window_offset[k]]
        for d in range(ws.reach[k]):
            if scores[d] == -INFINITY:
                scores[d] = 0.0
                continue
            v = u + d + 1
            weight = lift(_, scores[d] - high)
            dot = zero(_)
            for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
                value = times(_, weight, ws.beta[v, chain.open_target[o]])
                dot = plus(_, dot, times(_, entry[o], value))
                total[o] = plus(_, total[o], value)
            share = probability(_, dot, scale)
            scores[d] = share
            counts.cover[k, u] += share
            counts.cover[k, v] -= share
            counts.started[k, u] += share
            counts.ended[k, v - 1] += share
            counts.length_now[k, min(d, batch.lengths - 1)] += share
        if ws.tail_score[k] > -INFINITY:
            v = u + ws.window[k] + 1
            weight = lift(_, ws.tail_score[k] - high)
            dot = zero(_)
            for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
                value = times(_, weight, ws.rest[v, o])
                dot = plus(_, dot, times(_, entry[o], value))
                total[o] = plus(_, total[o], value)
            share = probability(_, dot, scale)
            counts.cover[k, u] += share
            counts.cover[k, v] -= share
            counts.started[k, u] += share
    while ws.span_next >= ws.span_low and batch.span_start[ws.span_next] == ws.base + u:
        s = ws.span_next
        ws.span_next -= 1
        k = chain.pattern_body[batch.span_pattern[s]]
        if k >= 0:
            d = batch.span_end[s] - batch.span_start[s]
            for i in range(chain.tree_offsets[k], chain.tree_offsets[k + 1]):
                e = chain.tree[i]
                if d <= ws.reach[e]:
                    counts.span[s] += ws.score[ws.window_offset[e] + d - 1]
    ws.beta_scale[u] = high
    if summing is Scaled:
        for o in range(chain.opens):
            largest = max(largest, total[o])
            small |= entry[o] != 0.0 and not total[o] >= LOST
        if not largest < 1e300 or not isfinite(exp(scale)) or (small and _lost_open(chain, batch, ws, u)):
            return True
        if largest > 0.0:
            for o in range(chain.opens):
                total[o] /= largest
            ws.beta_scale[u] += log(largest)
    return False


cdef bint _lost_open(Chain chain, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Has open_u(o) vanished although an allowed segment leads from it to a live beta? As recursion._lost_alpha."""
    cdef Py_ssize_t k, d, o, v, y
    for k in range(chain.bodies):
        y = chain.body_label[k]
        for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
            if ws.entry[u, o] == 0.0 or ws.total[o] >= LOST:
                continue
            for d in range(ws.reach[k]):
                v = u + d + 1
                if batch.allowed[ws.base + v - 1, y] & LAST and ws.beta[v, chain.open_target[o]] != 0.0:
                    return True
            if ws.tail_score[k] > -INFINITY and ws.rest[u + ws.window[k] + 1, o] != 0.0:
                return True
    return False


cdef bint _take_arcs(summing* _, Chain chain, Batch batch, Workspace ws, _Counts counts, Py_ssize_t u) noexcept nogil:
    """beta_u from open_u by the adjoint of the sum program, and the counts of the arcs taken at u."""
    cdef Py_ssize_t c, o, p, i, t = ws.base + u
    cdef double value, share, least, largest = 0.0
    cdef bint small = False
    weigh_starts(_, chain, batch, ws, u)
    sum_entries(_, chain, ws, u)
    cdef double scale = ws.alpha_scale[u] + ws.first_scale + ws.beta_scale[u] - ws.log_partition
    for i in range(chain.registers):
        ws.adjoint[i] = zero(_)
    for c in range(chain.arcs):
        ws.arc_value[c] = 0.0
        o = chain.arc_open[c]
        if o < 0 or ws.x[chain.arc_register[c]] == zero(_) or ws.total[o] == zero(_):
            continue
        value = times(_, times(_, ws.total[o], ws.arc_weight[c]), ws.first[chain.arc_label[c]])
        if ws.has_rows[u]:
            if summing is Scaled and value < LOST and ws.factor[c] > 1.0:  # as in recursion._enter
                if batch.allowed[t, chain.arc_label[c]] & FIRST:
                    return True
            value = times(_, value, ws.factor[c])
        share = probability(_, times(_, ws.x[chain.arc_register[c]], value), scale)
        ws.arc_value[c] = share
        counts.arc_now[c] += share
        counts.start[t, chain.arc_label[c]] += share
        ws.adjoint[chain.arc_register[c]] = plus(_, ws.adjoint[chain.arc_register[c]], value)
    if ws.has_rows[u]:
        _count_rows(chain, batch, ws, counts, u)
    for i in range(chain.additions.shape[0] - 1, -1, -1):
        value = ws.adjoint[chain.additions[i, 0]]
        for p in range(1, 3):
            ws.adjoint[chain.additions[i, p]] = plus(_, ws.adjoint[chain.additions[i, p]], value)
    for p in range(chain.states):
        ws.beta[u, p] = ws.adjoint[p]
    ws.beta_scale[u] += ws.first_scale
    if summing is Scaled:
        for p in range(chain.states):
            largest = max(largest, ws.beta[u, p])
        least = LOST * max(1.0, largest)
        for p in range(chain.states):
            small |= ws.alpha[u, p] != 0.0 and not ws.beta[u, p] >= least
        if not largest < 1e300 or not isfinite(exp(scale)) or (small and _lost_beta(chain, batch, ws, u, least)):
            return True
        if largest > 0.0:
            for p in range(chain.states):
                ws.beta[u, p] /= largest
            ws.beta_scale[u] += log(largest)
    return False


cdef void _count_rows(Chain chain, Batch batch, Workspace ws, _Counts counts, Py_ssize_t u) noexcept nogil:
    """Counts of the rows and spans that belong to the arcs at u: sums over the suffix tree, overwriting arc_value."""
    cdef Py_ssize_t c, r, s, z, t = ws.base + u
    for c in range(chain.arcs - 1, -1, -1):
        if chain.arc_suffix[c] >= 0:
            ws.arc_value[chain.arc_suffix[c]] += ws.arc_value[c]
    for r in range(batch.row_offsets[t], batch.row_offsets[t + 1]):
        z = batch.row_pattern[r]
        if batch.row_part[r] == PART_START or (chain.pattern_folded[z] and batch.row_part[r] != PART_INNER):
            counts.row[r] = ws.arc_value[chain.pattern_arc[z]]
    for s in range(ws.span_low, ws.span_high):
        z = batch.span_pattern[s]
        if batch.span_start[s] == t and batch.span_end[s] == t + 1 and chain.pattern_body[z] < 0:
            counts.span[s] = ws.arc_value[chain.pattern_arc[z]]


cdef bint _lost_beta(Chain chain, Batch batch, Workspace ws, Py_ssize_t u, double least) noexcept nogil:
    """Has beta_u of a live state vanished although an arc leads from it to a live open state? The adjoint of 0s and 1s."""
    cdef Py_ssize_t c, o, i, p
    for i in range(chain.registers):
        ws.adjoint[i] = 0.0
    for c in range(chain.arcs):
        o = chain.arc_open[c]
        if o >= 0 and ws.x[chain.arc_register[c]] != 0.0 and ws.total[o] != 0.0:
            if batch.allowed[ws.base + u, chain.arc_label[c]] & FIRST:
                ws.adjoint[chain.arc_register[c]] = 1.0
    for i in range(chain.additions.shape[0] - 1, -1, -1):
        if ws.adjoint[chain.additions[i, 0]] != 0.0:
            ws.adjoint[chain.additions[i, 1]] = ws.adjoint[chain.additions[i, 2]] = 1.0
    for p in range(chain.states):
        if ws.alpha[u, p] != 0.0 and ws.adjoint[p] != 0.0 and not ws.beta[u, p] >= least:
            return True
    return False


cdef bint _rest(summing* _, Chain chain, Batch batch, Workspace ws, _Counts counts, Py_ssize_t v) noexcept nogil:
    """rest_v(o) = exp(end + length) beta_v + exp step(v) rest_{v+1}(o), and the counts of the tails that end or go on at v."""
    cdef Py_ssize_t k, o, y
    cdef double ending, going, high, largest, dot_end, dot_go, a, b
    for k in range(chain.bodies):
        if not ws.free[k]:
            continue
        y = chain.body_label[k]
        ending = going = -INFINITY
        if v > 0 and batch.allowed[ws.base + v - 1, y] & LAST:
            ending = ws.end[k, v - 1] + batch.body_length[k, batch.lengths - 1] + ws.beta_scale[v]
        if v < ws.tokens and ws.resting[v + 1, k] and batch.allowed[ws.base + v, y] & CONTINUE:
            going = ws.token[k, v] + ws.inner[k, v] + ws.rest_scale[v + 1, k]
        high = max(ending, going)
        if high == -INFINITY:
            continue
        if summing is not Scaled:
            high = 0.0
        largest = 0.0
        dot_end = dot_go = zero(_)
        for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
            a = b = zero(_)
            if ending > -INFINITY:
                a = times(_, lift(_, ending - high), ws.beta[v, chain.open_target[o]])
            if going > -INFINITY:
                b = times(_, lift(_, going - high), ws.rest[v + 1, o])
            ws.rest[v, o] = plus(_, a, b)
            if ws.tailing[v, k]:
                dot_end = plus(_, dot_end, times(_, ws.tail[v, o], a))
                dot_go = plus(_, dot_go, times(_, ws.tail[v, o], b))
            if summing is Scaled:
                largest = max(largest, ws.rest[v, o])
                if not ws.rest[v, o] >= LOST:
                    if ending > -INFINITY and ws.beta[v, chain.open_target[o]] != 0.0:
                        return True
                    if going > -INFINITY and ws.rest[v + 1, o] != 0.0:
                        return True
        if ws.tailing[v, k]:
            a = probability(_, dot_end, ws.tail_scale[v, k] + high - ws.log_partition)
            b = probability(_, dot_go, ws.tail_scale[v, k] + high - ws.log_partition)
            if not isfinite(a + b):
                return True
            if a > 0.0:
                counts.ended[k, v - 1] += a
                counts.length_now[k, batch.lengths - 1] += a
            if b > 0.0:
                counts.cover[k, v] += b
                counts.cover[k, v + 1] -= b
        if summing is Scaled:
            if largest == 0.0:
                continue
            for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
                ws.rest[v, o] /= largest
            high += log(largest)
        ws.rest_scale[v, k] = high
        ws.resting[v, k] = True
    return False


cdef void _collect(Chain chain, Batch batch, Workspace ws, _Counts counts) noexcept nogil:
    """Take over the sequence's counts: sum the bodies over their suffix trees, write the labels' tokens and the rows."""
    cdef Py_ssize_t T = ws.tokens, t, k, c, r, y, z
    cdef int suffix
    for c in range(chain.arcs):
        counts.arc[c] += counts.arc_now[c]
    for k in range(chain.bodies):
        for t in range(batch.lengths):
            counts.body_length[k, t] += counts.length_now[k, t]
        for t in range(1, T):
            counts.cover[k, t] += counts.cover[k, t - 1]
    for k in range(chain.bodies - 1, -1, -1):
        suffix = chain.body_suffix[k]
        if suffix >= 0:
            for t in range(T):
                counts.cover[suffix, t] += counts.cover[k, t]
                counts.started[suffix, t] += counts.started[k, t]
                counts.ended[suffix, t] += counts.ended[k, t]
    for t in range(T):
        for y in range(chain.labels):
            counts.token[ws.base + t, y] = counts.cover[y, t]
            counts.inner[ws.base + t, y] = counts.cover[y, t] - counts.started[y, t]
            counts.end[ws.base + t, y] = counts.ended[y, t]
        for r in range(batch.row_offsets[ws.base + t], batch.row_offsets[ws.base + t + 1]):
            z = batch.row_pattern[r]
            k = chain.pattern_body[z]
            if batch.row_part[r] == PART_START or k < 0:
                continue  # counted with the arcs
            if batch.row_part[r] == PART_TOKEN:
                counts.row[r] = counts.cover[k, t]
            elif batch.row_part[r] == PART_INNER:
                counts.row[r] = counts.cover[k, t] - counts.started[k, t]
            else:
                counts.row[r] = counts.ended[k, t]


def _sum_trees(values, suffixes):
    """Add to each node what is counted at the nodes that end in it; longer nodes come later."""
    sums = values.copy()
    for node in range(len(suffixes) - 1, -1, -1):
        if suffixes[node] >= 0:
            sums[suffixes[node]] += sums[node]
    return sums
