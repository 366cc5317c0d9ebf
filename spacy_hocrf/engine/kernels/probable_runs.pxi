# The probable spans of a CRF, for probable.pxi.
#
# A span of a CRF is a run of labels. Given the sequence, the labels are a Markov chain over the states,
#
#     P(q' at t+1 | q at t) = ψ_t(c) first_t(y) beta_{t+1}(q') / beta_t(q),   c = c(q, y), q' its target
#
# so the probability of a run is that of its first state times those of its steps (a quotient of the
# marginals of Nguyen et al., JMLR 15 (2014) §2.3), and it never increases as the run grows.


cdef void _find_runs(
    bint logs, Automaton fsa, Batch batch, Workspace ws, int lane, Probable probable
) noexcept nogil:
    """Find the probable spans of one lane and, if wanted, write the probabilities of its labels."""
    cdef Py_ssize_t t, i, p, first, only
    cdef double least = probable.least - ROUNDING
    _state_probabilities(logs, fsa, ws, lane, 0, ws.behind)
    for t in range(ws.length[lane]):
        for p in range(fsa.states):
            ws.here[p] = ws.behind[p]
        _state_probabilities(logs, fsa, ws, lane, t + 1, ws.behind)
        for i in range(fsa.labels):
            ws.marginal[i] = 0.0
        for p in range(1, fsa.states):
            ws.marginal[fsa.open_label[p]] += ws.behind[p]
        if probable.has_starts:
            for i in range(probable.start_labels.shape[0]):
                probable.starts[ws.base[lane] + t, i] = ws.marginal[probable.start_labels[i]]
                probable.covers[ws.base[lane] + t, i] = ws.marginal[probable.start_labels[i]]
        for i in range(probable.rules.shape[0]):
            only, first = probable.rules[i, ONLY_LABEL], probable.rules[i, FIRST_LABEL]
            if only >= 0:
                _add_span(probable, ws.sequence[lane], t, t + 1, i, ws.marginal[only])
            if first >= 0 and ws.marginal[first] >= least:
                _follow_run(logs, fsa, batch, ws, lane, t, i, probable)


# P(q at t) = alpha_t(q) beta_t(q) / Z
cdef void _state_probabilities(
    bint logs, Automaton fsa, Workspace ws, int lane, Py_ssize_t t, double[::1] out
) noexcept nogil:
    """Write the probability of each state at boundary t of one lane into `out`, float64 [P]."""
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
    """Find the probable spans of a rule that start at token `start`, except for spans with ONLY_LABEL."""
    cdef Py_ssize_t t, p, n = ws.length[lane]
    cdef int inner = probable.rules[rule, INNER_LABEL], last = probable.rules[rule, LAST_LABEL]
    cdef int before = probable.rules[rule, NOT_BEFORE]
    cdef double open_here, longer, least = probable.least - ROUNDING
    for p in range(fsa.states):
        ws.mass[p] = 0.0 if p > 0 and fsa.open_label[p] == before else ws.here[p]
    open_here = _advance(
        logs, fsa, batch, ws, lane, start, probable.rules[rule, FIRST_LABEL], probable
    )
    for t in range(start + 1, n + 1):
        _take_later(ws)
        if not open_here >= least:
            return
        if t < n and last >= 0:
            longer = _advance(logs, fsa, batch, ws, lane, t, last, probable)
            _add_span(probable, ws.sequence[lane], start, t + 1, rule, longer)
        longer = _advance(logs, fsa, batch, ws, lane, t, inner, probable) if t < n else 0.0
        if last < 0:
            _add_span(probable, ws.sequence[lane], start, t, rule, open_here - longer)
        open_here = longer


cdef inline void _take_later(Workspace ws) noexcept nogil:
    cdef Py_ssize_t p
    for p in range(ws.mass.shape[0]):
        ws.mass[p] = ws.later[p]


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
    """Give token t a label: ws.mass, by state at t, becomes ws.later, by state at t + 1. RETURNS: its sum."""
    cdef Py_ssize_t p, q, c
    cdef double score, value, total = 0.0
    for p in range(fsa.states):
        ws.later[p] = 0.0
    for p in range(fsa.states):
        c = _arc_of(fsa, p, label) if ws.mass[p] > 0.0 else -1
        if c < 0:
            continue
        q = fsa.arc_target[c]
        score = _log_of(logs, ws.first[t, label, lane], ws.first_scale[t, lane])
        score += _log_of(logs, ws.beta[t + 1, q, lane], ws.beta_scale[t + 1, lane])
        if score > -INFINITY:
            score -= _log_of(logs, ws.beta[t, p, lane], ws.beta_scale[t, lane])
            value = ws.mass[p] * exp(score + _arc_score(fsa, batch, ws, lane, t, c))
            ws.later[q] += value
            total += value
    return total


cdef inline double _log_of(bint logs, double value, double scale) noexcept nogil:
    """The log of a value, given with a log scale if not `logs`."""
    return value if logs else log(value) + scale


cdef inline Py_ssize_t _arc_of(Automaton fsa, Py_ssize_t state, int label) noexcept nogil:
    """The arc by a label from a state, or from its longest suffix that has one; -1 if it is forbidden."""
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
    """Log score of an arc at token t: its const, and the rows and one-token spans of the arc's suffixes."""
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
    """Whether `suffix` is a suffix of an arc, or of the arc that it is a copy of."""
    arc = arc % fsa.stride
    while arc >= 0:
        if arc == suffix:
            return True
        arc = fsa.arc_suffix[arc]
    return False
