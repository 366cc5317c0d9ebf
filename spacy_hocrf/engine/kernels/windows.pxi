# Long sequences are processed in windows of some tokens, whose rows stay in the cache: the rows of a
# whole sequence would be written to and read from main memory, which takes longer than the sums.
# (These windows of tokens have nothing to do with the windows of lengths of load.pxi.)
#
# No segment is longer than L, hence
#
#     alpha_v needs alpha_u, v - L <= u < v          beta_u needs beta_v, u < v <= u + L
#
# The forward recurrence goes through all windows once and keeps alpha at the L boundaries up to the
# beginning of each. Then, from the last window to the first, it runs again from these alphas, followed
# by the backward recurrence from beta at the L boundaries from the window's end on, which the next
# window has kept. Every sum is the same as without windows, to the last bit.


cdef struct Window:
    Py_ssize_t number
    Py_ssize_t low  # its first loaded token in the sequences
    Py_ssize_t given  # where the window begins, counted from `low`; alpha is given up to this boundary
    Py_ssize_t top  # where it ends, counted from `low`; beta is given from this boundary on
    Py_ssize_t high  # one past its last loaded token in the sequences


cdef inline Window _window(Workspace ws, Py_ssize_t number, bint both) noexcept nogil:
    """The boundaries of a window; `both` loads the tokens after it that its segments may reach, too."""
    cdef Window window
    cdef Py_ssize_t begin = number * ws.rows, end = min(begin + ws.rows, ws.whole_tokens)
    window.number = number
    window.low = max(0, begin - ws.reach)
    window.given = begin - window.low
    window.top = end - window.low
    window.high = min(end + ws.reach, ws.whole_tokens) if both else end
    return window


cdef void _find_in_windows(
    summing* ring, Automaton fsa, Batch batch, Workspace ws, Counts counts, Probable probable
) noexcept nogil:
    """Find the probable segments of the lanes' whole sequences, and their log partitions."""
    cdef Py_ssize_t known = probable.count, i, end, n = (ws.whole_tokens + ws.rows - 1) // ws.rows
    cdef int lane
    cdef bint logs = summing is Log
    cdef Window window
    lift_arcs(ring, fsa, batch, ws)
    for i in range(n):
        window = _window(ws, i, False)
        _load_window(fsa, batch, ws, window)
        _forward_window(ring, fsa, batch, ws, window)
        for lane in range(ws.count):
            if i * ws.rows < ws.whole_length[lane] <= window.high or i == ws.whole_length[lane] == 0:
                _finish(ring, fsa, batch, ws, lane)
                ws.whole_log_partition[lane] = ws.log_partition[lane]
        _keep_alphas(ws, window)
    for i in range(n - 1, -1, -1):
        window = _window(ws, i, True)
        _load_window(fsa, batch, ws, window)
        _forward_window(ring, fsa, batch, ws, window)
        _backward_window(ring, fsa, batch, ws, counts, window)
        _cover(fsa, ws)
        for lane in range(ws.count):
            if not ws.lost[lane] and ws.log_partition[lane] > -INFINITY:
                end = min(window.top, ws.length[lane])
                _find_segments(logs, fsa, batch, ws, lane, window.given, end, probable)
    _drop_lost(ws, probable, known)


cdef void _drop_lost(Workspace ws, Probable probable, Py_ssize_t begin) noexcept nogil:
    """Remove the spans, from number `begin` on, of sequences that lost a value only in an earlier window,
    which is processed later.
    """
    cdef Py_ssize_t i, kept = begin
    cdef int lane
    for i in range(begin, probable.count):
        probable.spans[kept] = probable.spans[i]
        kept += 1
        for lane in range(ws.count):
            if ws.lost[lane] and ws.sequence[lane] == probable.spans[i].sequence:
                kept -= 1
    probable.count = kept


cdef void _begin_windows(Batch batch, Workspace ws, const long long* chosen, int count) noexcept nogil:
    """Note where the lanes' whole sequences are in the batch."""
    cdef int lane
    _load_lanes(batch, ws, chosen, count)
    ws.whole_tokens = ws.tokens
    for lane in range(LANES):
        ws.whole_base[lane], ws.whole_length[lane] = ws.base[lane], ws.length[lane]
        ws.whole_log_partition[lane] = -INFINITY


cdef void _load_window(Automaton fsa, Batch batch, Workspace ws, Window window) noexcept nogil:
    """Load the scores of a window's tokens."""
    cdef Py_ssize_t length
    cdef int lane
    ws.low, ws.tokens = window.low, window.high - window.low
    for lane in range(LANES):
        length = ws.whole_length[lane]
        ws.base[lane] = ws.whole_base[lane] + min(window.low, length)
        ws.length[lane] = max(0, min(length, window.high) - window.low)
        ws.extent[lane] = 0.0 if ws.lost[lane] else <double> ws.length[lane]
        ws.log_partition[lane] = ws.whole_log_partition[lane]
        ws.span_next[lane] = ws.span_low[lane]  # only batches without spans are processed in windows
    load_scores(fsa, batch, ws)


cdef void _forward_window(
    semiring* ring, Automaton fsa, Batch batch, Workspace ws, Window window
) noexcept nogil:
    """Compute alpha up to the window's end, and entry up to the token before it."""
    cdef Py_ssize_t v, place = window.number * (ws.reach + 1)
    lift_starts(ring, fsa, batch, ws)
    if window.number == 0:
        _start(ring, fsa, batch, ws)
    for v in range(window.given + 1 if window.number else 0):
        _copy(at2(ws.alpha, v, 0), at2(ws.kept_alpha, place + v, 0), 0, fsa.states)
        at1(ws.alpha_scale, v)[0] = at1(ws.kept_alpha_scale, place + v)[0]
    for v in range(1, window.top + 1):
        _enter(ring, fsa, batch, ws, v - 1)
        if v > window.given:
            _leave(ring, fsa, batch, ws, v)


cdef void _keep_alphas(Workspace ws, Window window) noexcept nogil:
    """Keep alpha for the next window."""
    cdef Py_ssize_t v, place = (window.number + 1) * (ws.reach + 1)
    for v in range(max(0, window.low + window.top - ws.reach) - window.low, window.top + 1):
        _copy(at2(ws.kept_alpha, place, 0), at2(ws.alpha, v, 0), 0, ws.fsa.states)
        at1(ws.kept_alpha_scale, place)[0] = at1(ws.alpha_scale, v)[0]
        place += 1


cdef void _backward_window(
    summing* ring, Automaton fsa, Batch batch, Workspace ws, Counts counts, Window window
) noexcept nogil:
    """Compute beta from the window's end to its beginning, and keep it for the window before."""
    cdef Py_ssize_t v
    cdef lanes log_z = known_log_partition(ws)
    _clear_group(ring, fsa, batch, ws, counts, False)
    if window.low + window.top == ws.whole_tokens:
        _end(ring, fsa, batch, ws, window.top)
    else:
        for v in range(window.top, ws.tokens + 1):
            _copy(beta_row(ws, v), at2(ws.kept_beta, v - window.top, 0), 0, fsa.states)
            at1(ws.beta_scale, v)[0] = at1(ws.kept_beta_scale, v - window.top)[0]
    for v in range(window.top, ws.tokens + 1):
        _close(fsa, ws, v)
    for v in range(window.top - 1, window.given - 1, -1):
        _open(ring, fsa, batch, ws, counts, v, log_z, False)
        _take_arcs(ring, fsa, batch, ws, counts, v, log_z, False)
        _end(ring, fsa, batch, ws, v)
        _close(fsa, ws, v)
    for v in range(window.given, min(window.given + ws.reach, ws.tokens) + 1):
        _copy(at2(ws.kept_beta, v - window.given, 0), beta_row(ws, v), 0, fsa.states)
        at1(ws.kept_beta_scale, v - window.given)[0] = at1(ws.beta_scale, v)[0]
