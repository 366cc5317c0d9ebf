# Copies the scores of a batch into the lanes, and chooses which segment lengths are summed one by one.
#
# These are the lengths 1..W up to the longest with a length or span score of its own: the *window* of a
# label. Longer segments, whose scores add up token by token, share one sum: the *tail*, see tails.pxi.

cdef enum:  # Potentials.allowed
    FIRST = 1
    CONTINUE = 2
    LAST = 4

cdef enum:  # Potentials.row_part
    PART_END = 1
    PART_TOKEN = 2
    PART_INNER = 3

# Larger length scores, positive or negative, would bring products of weights too close to LOST.
cdef double MAX_LENGTH_SCORE = 10.0


cdef void load(Automaton fsa, Batch batch, Workspace ws, const long long* chosen, int count) noexcept nogil:
    """Load the scores of `count` sequences, one per lane, and choose the windows of their labels."""
    _load_lanes(batch, ws, chosen, count)
    ws.low = 0
    load_scores(fsa, batch, ws)


cdef void load_scores(Automaton fsa, Batch batch, Workspace ws) noexcept nogil:
    """Load the scores of the lanes' tokens and choose the windows of their labels."""
    _load_tokens(fsa, batch, ws)
    _load_spans(fsa, batch, ws)
    _choose_windows(fsa, ws)


cdef void _load_lanes(Batch batch, Workspace ws, const long long* chosen, int count) noexcept nogil:
    """Note which tokens and spans of the batch belong to each lane; lanes from `count` on stay empty."""
    cdef Py_ssize_t s
    cdef int lane
    ws.count = count
    ws.tokens = 0
    for lane in range(LANES):
        ws.base[lane] = ws.length[lane] = ws.span_low[lane] = ws.span_high[lane] = 0
        ws.sequence[lane] = -1
        ws.lost[lane] = False
        if lane < count:
            s = chosen[lane]
            ws.sequence[lane] = s
            ws.base[lane] = batch.first[s]
            ws.length[lane] = batch.offsets[s + 1] - batch.offsets[s]
            ws.span_low[lane] = batch.span_offsets[s]
            ws.span_high[lane] = batch.span_offsets[s + 1]
            ws.tokens = max(ws.tokens, ws.length[lane])
        ws.extent[lane] = <double> ws.length[lane]


cdef void _load_tokens(Automaton fsa, Batch batch, Workspace ws) noexcept nogil:
    """Load the scores of all tokens; a body has its own scores and those of all of its suffixes."""
    cdef Py_ssize_t K = fsa.bodies, t, k
    cdef int lane
    for t in range(ws.tokens):
        ws.has_rows[t] = False
        if not fsa.one_token:
            for k in range(fsa.labels, K):
                at2(ws.token, t, k)[0] = splat(0.0)
                at2(ws.step, t, k)[0] = splat(0.0)
                at2(ws.end, t, k)[0] = splat(0.0)
        for lane in range(LANES):
            if t < ws.length[lane]:
                _load_token(fsa, batch, ws, t, lane)
            else:
                _load_nothing(fsa, ws, t, lane)
        if not fsa.one_token:
            for k in range(fsa.labels, K):
                _add_suffix(ws, t, k, fsa.body_suffix[k])


cdef void _load_token(Automaton fsa, Batch batch, Workspace ws, Py_ssize_t t, int lane) noexcept nogil:
    """Load the scores of one token into one lane; the suffixes of bodies are added later."""
    cdef Py_ssize_t i = ws.base[lane] + t, y, Y = fsa.labels
    cdef const unsigned char* allowed = &batch.allowed[i, 0]
    cdef unsigned char everything = FIRST | CONTINUE | LAST
    cdef double seen
    for y in range(Y):
        everything &= allowed[y]
    if fsa.one_token:
        seen = _load_labels(batch, &ws.first[t, 0, lane], i, Y)
    else:
        seen = _load_parts(batch, ws, t, i, lane, Y)
    if everything != FIRST | CONTINUE | LAST:
        _forbid(fsa.one_token, ws, allowed, t, lane, Y)
    if batch.rows:
        ws.has_rows[t] |= batch.has_arc_rows[i]
        if not fsa.one_token:
            _load_rows(rows_of(batch), ws, i, t, lane)
    ws.not_finite |= seen != 0.0


cdef inline double _load_labels(Batch batch, double* first, Py_ssize_t i, Py_ssize_t Y) noexcept nogil:
    """Load the label scores of token i of a CRF. RETURNS (double): 0, or nan if a score is not finite."""
    cdef Py_ssize_t y
    cdef bint has_start = batch.has_start, has_end = batch.has_end
    cdef const double* start = &batch.start[i, 0]
    cdef const double* token = &batch.token[i, 0]
    cdef const double* end = &batch.end[i, 0]
    cdef double score, seen = 0.0
    for y in range(Y):
        score = token[y]
        if has_start:
            score += start[y]
        if has_end:
            score += end[y]
        seen += 0.0 * score
        first[y * LANES] = score
    return seen


cdef inline double _load_parts(
    Batch batch, Workspace ws, Py_ssize_t t, Py_ssize_t i, int lane, Py_ssize_t Y
) noexcept nogil:
    """Load the scores of all parts of token i of the batch. RETURNS (double): 0, nan if one is not finite."""
    cdef Py_ssize_t y
    cdef bint has_start = batch.has_start, has_inner = batch.has_inner, has_end = batch.has_end
    cdef const double* start = &batch.start[i, 0]
    cdef const double* token = &batch.token[i, 0]
    cdef const double* inner = &batch.inner[i, 0]
    cdef const double* end = &batch.end[i, 0]
    cdef double* first = &ws.first[t, 0, lane]
    cdef double* into_token = &ws.token[t, 0, lane]
    cdef double* into_step = &ws.step[t, 0, lane]
    cdef double* into_end = &ws.end[t, 0, lane]
    cdef double begun, step, ended, seen = 0.0
    for y in range(Y):
        begun = start[y] if has_start else 0.0
        step = token[y] + inner[y] if has_inner else token[y]
        ended = end[y] if has_end else 0.0
        seen += 0.0 * token[y] + (0.0 * begun + (0.0 * step + 0.0 * ended))
        first[y * LANES] = begun
        into_token[y * LANES] = token[y]
        into_step[y * LANES] = step
        into_end[y * LANES] = ended
    return seen


cdef void _forbid(
    bint one_token, Workspace ws, const unsigned char* allowed, Py_ssize_t t, int lane, Py_ssize_t Y
) noexcept nogil:
    """Set the scores of what is not allowed at a token to -inf."""
    cdef Py_ssize_t y
    for y in range(Y):
        if one_token:
            if allowed[y] & (FIRST | LAST) != FIRST | LAST:
                ws.first[t, y, lane] = -INFINITY
            continue
        if not allowed[y] & FIRST:
            ws.first[t, y, lane] = -INFINITY
        if not allowed[y] & CONTINUE:
            ws.step[t, y, lane] = -INFINITY
        if not allowed[y] & LAST:
            ws.end[t, y, lane] = -INFINITY


cdef void _load_rows(Rows rows, Workspace ws, Py_ssize_t i, Py_ssize_t t, int lane) noexcept nogil:
    """Add the rows of token i of the batch that belong to bodies to one lane's scores."""
    cdef Py_ssize_t r, k
    cdef int target, part
    cdef double score
    cdef double* token = &ws.token[t, 0, lane]
    cdef double* step = &ws.step[t, 0, lane]
    cdef double* end = &ws.end[t, 0, lane]
    for r in range(rows.first_of_body[i], rows.offsets[i + 1]):
        target = rows.target[r]
        if target >= 0:
            continue  # the row of an arc, see weigh_rows
        target, score = ~target, rows.score[r]
        k, part = (target >> 2) * LANES, target & 3
        if part == PART_TOKEN:
            token[k] += score
            step[k] += score
        elif part == PART_INNER:
            step[k] += score
        elif part == PART_END:
            end[k] += score


cdef void _load_nothing(Automaton fsa, Workspace ws, Py_ssize_t t, int lane) noexcept nogil:
    """Make a token beyond the end of a lane's sequence impossible."""
    cdef Py_ssize_t y, k
    for y in range(fsa.labels):
        ws.first[t, y, lane] = -INFINITY
    if not fsa.one_token:
        for k in range(fsa.labels):
            ws.token[t, k, lane] = 0.0
            ws.step[t, k, lane] = ws.end[t, k, lane] = -INFINITY


cdef inline void _add_suffix(Workspace ws, Py_ssize_t t, Py_ssize_t k, Py_ssize_t suffix) noexcept nogil:
    """Add the scores of a body's suffix at a token to its own."""
    at2(ws.token, t, k)[0] += at2(ws.token, t, suffix)[0]
    at2(ws.step, t, k)[0] += at2(ws.step, t, suffix)[0]
    at2(ws.end, t, k)[0] += at2(ws.end, t, suffix)[0]


cdef void _load_spans(Automaton fsa, Batch batch, Workspace ws) noexcept nogil:
    """Set ws.window to the longest length with a span or length score of its own, and set ws.multiplies."""
    cdef Py_ssize_t k, s, y
    cdef int lane
    cdef bint liftable = True
    for k in range(fsa.bodies):
        for s in range(batch.lengths):
            liftable &= -MAX_LENGTH_SCORE < batch.body_length[k, s] < MAX_LENGTH_SCORE
    ws.multiplies = liftable and not fsa.one_token
    for k in range(fsa.bodies):
        ws.window[k] = max(1, batch.lengths - 1)
    for lane in range(ws.count):
        for s in range(ws.span_low[lane], ws.span_high[lane]):
            k = fsa.pattern_body[batch.span_pattern[s]]
            if k < 0:
                ws.has_rows[batch.span_start[s] - ws.base[lane]] = True
                continue
            ws.multiplies = False
            y = fsa.body_label[k]
            for k in range(fsa.bodies):
                if fsa.body_label[k] == y:
                    ws.window[k] = max(ws.window[k], batch.span_end[s] - batch.span_start[s])


cdef void _choose_windows(Automaton fsa, Workspace ws) noexcept nogil:
    """Choose, for each body, between all L lengths one by one, and W of them and a tail for the D = L - W
    longer ones (if it has no limit, for all longer ones), which must be worth it.
    """
    cdef Py_ssize_t k, limit, place = 0
    ws.widest = 0
    ws.any_tail = False
    for k in range(fsa.bodies):
        limit = min(<Py_ssize_t> fsa.limits[fsa.body_label[k]], ws.tokens)
        ws.window[k] = min(ws.window[k], ws.tokens)
        if limit > 0 and ws.window[k] + fsa.least_tail > limit:
            ws.window[k] = limit
        ws.block[k] = limit - ws.window[k] if limit > 0 else 0
        ws.has_tail[k] = ws.block[k] > 0 if limit > 0 else ws.window[k] < ws.tokens
        ws.any_tail |= ws.has_tail[k]
        ws.window_offset[k] = place
        ws.widest = max(ws.widest, ws.window[k])
        place += ws.window[k]
