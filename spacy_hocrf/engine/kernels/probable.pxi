# The spans that are at least so probable: all of them, without trying every start, end and label.
#
# A span of a semi-CRF is one segment. Entries and betas of all boundaries are there, hence
#
#     P([u, v), y) = Σ_{k ends in y} Σ_{o in k} entry_u(o) exp body(u, v, k) beta_v(target o) / Z
#
# It is no more probable than that a segment of its label starts at u, that one ends at v, and that
# one goes on at each token between; nor than what is left of its start when the shorter segments
# have been taken away. As soon as one of these is below the least, so are all longer segments.
#
# A span of a CRF is a run of labels. Given the text, the labels are a Markov chain over the states,
#
#     P(q' at t+1 | q at t) = ψ_t(c) first_t(y) beta_{t+1}(q') / beta_t(q),   c = c(q, y), q' its target
#
# so a run's probability is that of its beginning times those of its steps (Nguyen et al., JMLR 15
# (2014) §2.3, divided by each other), and it only falls as the run grows.

from libc.stdlib cimport free, realloc

cdef double ROUNDING = 1e-9  # bounds are sums and differences of many probabilities

cdef enum:  # columns of Probable.rules
    FIRST_LABEL = 0
    INNER_LABEL = 1
    LAST_LABEL = 2
    ONLY_LABEL = 3
    NOT_BEFORE = 4


cdef struct Span:
    long long sequence, start, end, rule
    double probability


cdef class Probable:
    """What to look for, and what was found so far.

    ws (Workspace): of the automaton. least (float): the smallest probability.
    rules (int32 [n, 5]): what makes a span of each of n labels: engine labels of its first token,
        of further ones and of its last one; that of a span of one token; and one that must not stand
        before it; -1 for none. Without a label for the last token a span ends where it does not go
        on. A semi-CRF's span has the fourth alone.
    """
    cdef double least
    cdef const int[:, ::1] rules
    cdef double[::1] steps  # [K] scores of a segment's further tokens so far
    # [P] of the states at two boundaries: their probability; mass of a run, and one token later
    cdef double[::1] here, behind, mass, later
    cdef double[::1] marginal  # [Y] of the labels of a token
    cdef Span* spans
    cdef Py_ssize_t count, room
    cdef bint full  # there is no more memory

    def __init__(self, Workspace ws not None, least, rules):
        cdef Automaton fsa = ws.fsa
        self.least = least
        self.rules = rules
        self.steps = np.zeros(fsa.bodies)
        self.here, self.behind, self.mass, self.later = (np.zeros(fsa.states) for _ in range(4))
        self.marginal = np.zeros(fsa.labels)
        self.count = self.room = 0
        self.full = False

    def __dealloc__(self):
        free(self.spans)

    def found(self):
        """tuple[int64 [n, 4], float64 [n]]: sequence, start, end and rule of each span, by sequence,
        start and end; and its probability. RAISES (MemoryError): if there was no room for all.
        """
        if self.full:
            raise MemoryError(f"{self.count} probable spans")
        places, values = np.zeros((self.count, 4), dtype=np.int64), np.zeros(self.count)
        cdef long long[:, ::1] place = places
        cdef double[::1] value = values
        cdef Py_ssize_t i
        for i in range(self.count):
            place[i, 0] = self.spans[i].sequence
            place[i, 1] = self.spans[i].start
            place[i, 2] = self.spans[i].end
            place[i, 3] = self.spans[i].rule
            value[i] = self.spans[i].probability
        order = np.lexsort(places.T[::-1])
        return places[order], values[order]


def probable_spans(
    Workspace ws not None,
    Batch batch not None,
    const long long[::1] chosen not None,
    space,
    Probable probable not None,
    double[::1] out not None,
):
    """The probable spans of chosen sequences, into `probable`, and log Z, into `out` [D].

    space (str): "scaled" or "log".
    RETURNS (tuple[list[int], bool]): sequences in which a value was lost, and that have no spans so
        far; and whether some score is not finite.
    """
    cdef Automaton fsa = ws.fsa
    cdef Counts counts = None
    cdef Py_ssize_t group = 0
    cdef int lane
    cdef bint logs = space == "log"
    cdef unsigned char[::1] lost = np.zeros(batch.sequences, dtype=np.uint8)
    ws.reserve(_longest(batch, chosen), batch.lengths, True, True)
    ws.not_finite = False
    _clear_sums(fsa, batch, ws)
    with nogil:
        while group < chosen.shape[0]:
            load(fsa, batch, ws, &chosen[group], <int> min(LANES, chosen.shape[0] - group))
            run(logs, fsa, batch, ws, True, counts, False)
            if not fsa.one_token:
                _cover(fsa, ws)
            for lane in range(ws.count):
                out[ws.sequence[lane]] = ws.log_partition[lane]
                lost[ws.sequence[lane]] = ws.lost[lane]
                if ws.lost[lane] or ws.log_partition[lane] == -INFINITY:
                    continue
                if fsa.one_token:
                    _find_runs(logs, fsa, batch, ws, lane, probable)
                else:
                    _find_segments(logs, fsa, batch, ws, lane, probable)
            group += LANES
    return np.flatnonzero(lost).tolist(), ws.not_finite


cdef void _add_span(
    Probable probable, Py_ssize_t sequence, Py_ssize_t start, Py_ssize_t end, Py_ssize_t rule, double p
) noexcept nogil:
    """Note a span if it is probable enough."""
    cdef Span* moved
    if not p >= probable.least or probable.full:
        return
    if probable.count == probable.room:
        moved = <Span*> realloc(probable.spans, (2 * probable.room + 64) * sizeof(Span))
        if moved == NULL:
            probable.full = True
            return
        probable.spans = moved
        probable.room = 2 * probable.room + 64
    probable.spans[probable.count].sequence = sequence
    probable.spans[probable.count].start = start
    probable.spans[probable.count].end = end
    probable.spans[probable.count].rule = rule
    probable.spans[probable.count].probability = min(p, 1.0)
    probable.count += 1


# Segments of a semi-CRF


cdef void _find_segments(
    bint logs, Automaton fsa, Batch batch, Workspace ws, int lane, Probable probable
) noexcept nogil:
    """The probable segments of one lane."""
    cdef Py_ssize_t u, i, y
    cdef double least = probable.least - ROUNDING
    for u in range(ws.length[lane]):
        for i in range(probable.rules.shape[0]):
            y = probable.rules[i, ONLY_LABEL]
            if ws.started[u, y, lane] >= least:
                _follow_start(logs, fsa, batch, ws, lane, u, y, i, probable)


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
    """The probable segments of label y that start at u."""
    cdef Py_ssize_t v, i, k, limit = fsa.limits[y]
    cdef double p, left = ws.started[u, y, lane], least = probable.least - ROUNDING
    for i in range(fsa.tree_offsets[y], fsa.tree_offsets[y + 1]):
        probable.steps[fsa.tree[i]] = 0.0
    for v in range(u + 1, ws.length[lane] + 1):
        if limit > 0 and v - u > limit:
            return
        if v - u > 1:
            if not ws.cover[v - 1, y, lane] - ws.started[v - 1, y, lane] >= least:
                return
            for i in range(fsa.tree_offsets[y], fsa.tree_offsets[y + 1]):
                k = fsa.tree[i]
                probable.steps[k] += ws.step[v - 1, k, lane]
        if ws.ended[v - 1, y, lane] >= least:
            p = _segment_probability(logs, fsa, batch, ws, lane, u, v, y, probable)
            _add_span(probable, ws.sequence[lane], u, v, rule, p)
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
    cdef Py_ssize_t i, k, o
    cdef double total = 0.0, dot, score
    cdef double scale = ws.entry_scale[u, lane] + ws.beta_scale[v, lane] - ws.log_partition[lane]
    for i in range(fsa.tree_offsets[y], fsa.tree_offsets[y + 1]):
        k = fsa.tree[i]
        score = ws.token[u, k, lane] + probable.steps[k] + ws.end[v - 1, k, lane] + scale
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
            total += exp(log(dot) + score)  # exp(score) alone may leave the range
    return total


cdef double _whole_score(
    Automaton fsa, Batch batch, Workspace ws, int lane, Py_ssize_t u, Py_ssize_t v, Py_ssize_t k
) noexcept nogil:
    """What the potentials have for the whole segment [u, v) in body k."""
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


# Runs of labels of a CRF


cdef void _find_runs(
    bint logs, Automaton fsa, Batch batch, Workspace ws, int lane, Probable probable
) noexcept nogil:
    """The probable spans of one lane."""
    cdef Py_ssize_t t, i, p, first, only
    cdef double least = probable.least - ROUNDING
    _state_probabilities(logs, fsa, ws, lane, 0, probable.behind)
    for t in range(ws.length[lane]):
        for p in range(fsa.states):
            probable.here[p] = probable.behind[p]
        _state_probabilities(logs, fsa, ws, lane, t + 1, probable.behind)
        for i in range(fsa.labels):
            probable.marginal[i] = 0.0
        for p in range(1, fsa.states):
            probable.marginal[fsa.open_label[p]] += probable.behind[p]
        for i in range(probable.rules.shape[0]):
            only, first = probable.rules[i, ONLY_LABEL], probable.rules[i, FIRST_LABEL]
            if only >= 0:
                _add_span(probable, ws.sequence[lane], t, t + 1, i, probable.marginal[only])
            if first >= 0 and probable.marginal[first] >= least:
                _follow_run(logs, fsa, batch, ws, lane, t, i, probable)


# P(q at t) = alpha_t(q) beta_t(q) / Z
cdef void _state_probabilities(
    bint logs, Automaton fsa, Workspace ws, int lane, Py_ssize_t t, double[::1] out
) noexcept nogil:
    cdef Py_ssize_t p
    cdef double scale = -ws.log_partition[lane]
    if not logs:
        scale = exp(ws.alpha_scale[t, lane] + ws.beta_scale[t, lane] + scale)
    for p in range(fsa.states):
        if logs:
            out[p] = exp(ws.alpha[t, p, lane] + ws.beta[t, p, lane] + scale)
        else:
            out[p] = ws.alpha[t, p, lane] * ws.beta[t, p, lane] * scale


cdef void _follow_run(
    bint logs,
    Automaton fsa,
    Batch batch,
    Workspace ws,
    int lane,
    Py_ssize_t start,
    Py_ssize_t rule,
    Probable probable,
) noexcept nogil:
    """The probable spans that start here, but for those that a label of their own marks as a whole."""
    cdef Py_ssize_t t, p, n = ws.length[lane]
    cdef int inner = probable.rules[rule, INNER_LABEL], last = probable.rules[rule, LAST_LABEL]
    cdef int before = probable.rules[rule, NOT_BEFORE]
    cdef double open_here, longer, least = probable.least - ROUNDING
    for p in range(fsa.states):
        probable.mass[p] = 0.0 if p > 0 and fsa.open_label[p] == before else probable.here[p]
    open_here = _advance(
        logs, fsa, batch, ws, lane, start, probable.rules[rule, FIRST_LABEL], probable
    )
    for t in range(start + 1, n + 1):
        _take_later(probable)
        if not open_here >= least:
            return
        if t < n and last >= 0:
            longer = _advance(logs, fsa, batch, ws, lane, t, last, probable)
            _add_span(probable, ws.sequence[lane], start, t + 1, rule, longer)
        longer = _advance(logs, fsa, batch, ws, lane, t, inner, probable) if t < n else 0.0
        if last < 0:
            _add_span(probable, ws.sequence[lane], start, t, rule, open_here - longer)
        open_here = longer


cdef inline void _take_later(Probable probable) noexcept nogil:
    cdef Py_ssize_t p
    for p in range(probable.mass.shape[0]):
        probable.mass[p] = probable.later[p]


# later(q') = Σ_q mass(q) P(q' at t+1 | q at t)          over the arcs of one label
cdef double _advance(
    bint logs,
    Automaton fsa,
    Batch batch,
    Workspace ws,
    int lane,
    Py_ssize_t t,
    int label,
    Probable probable,
) noexcept nogil:
    """Let token t have this label. RETURNS (float): the sum of `later`."""
    cdef Py_ssize_t p, q, c
    cdef double score, value, total = 0.0
    for p in range(fsa.states):
        probable.later[p] = 0.0
    for p in range(fsa.states):
        c = _arc_of(fsa, p, label) if probable.mass[p] > 0.0 else -1
        if c < 0:
            continue
        q = fsa.arc_target[c]
        score = _log_of(logs, ws.first[t, label, lane], ws.first_scale[t, lane])
        score += _log_of(logs, ws.beta[t + 1, q, lane], ws.beta_scale[t + 1, lane])
        if score > -INFINITY:
            score -= _log_of(logs, ws.beta[t, p, lane], ws.beta_scale[t, lane])
            value = probable.mass[p] * exp(score + _arc_score(fsa, batch, ws, lane, t, c))
            probable.later[q] += value
            total += value
    return total


cdef inline double _log_of(bint logs, double value, double scale) noexcept nogil:
    return value if logs else log(value) + scale


cdef inline Py_ssize_t _arc_of(Automaton fsa, Py_ssize_t state, int label) noexcept nogil:
    """The arc of a state by a label, that of its longest suffix which has one; -1 if the succession
    is forbidden.
    """
    cdef Py_ssize_t i, c
    while state >= 0:
        for i in range(fsa.state_offsets[state], fsa.state_offsets[state + 1]):
            c = fsa.state_arcs[i]
            if fsa.arc_label[c] == label:
                return c if fsa.arc_register[c] >= 0 else -1
        state = fsa.state_suffix[state]
    return -1


cdef double _arc_score(
    Automaton fsa, Batch batch, Workspace ws, int lane, Py_ssize_t t, Py_ssize_t arc
) noexcept nogil:
    """Log score of an arc at a token: its const, and the rows and spans of the arcs that end it."""
    cdef Py_ssize_t i = ws.base[lane] + t, r, s, z
    cdef double score = batch.arc_const[arc]
    cdef Rows rows = rows_of(batch)
    if not ws.has_rows[t]:
        return score
    for r in range(rows.offsets[i], rows.offsets[i + 1]):
        if _ends_in(fsa, arc, rows.target[r]):
            score += rows.score[r]
    for s in range(first_span(batch, ws, lane, i), ws.span_high[lane]):
        if batch.span_start[s] > i:
            break
        z = batch.span_pattern[s]
        if batch.span_end[s] == i + 1 and fsa.pattern_body[z] < 0:
            if _ends_in(fsa, arc, fsa.pattern_arc[z]):
                score += batch.span_score[s]
    return score


cdef inline bint _ends_in(Automaton fsa, Py_ssize_t arc, Py_ssize_t suffix) noexcept nogil:
    while arc >= 0:
        if arc == suffix:
            return True
        arc = fsa.arc_suffix[arc]
    return False
