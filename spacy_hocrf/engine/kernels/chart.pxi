# The chart of a lattice: the value of all that may follow each choice, from right to left, in (max, +) for
# the best path and in (logaddexp, +) for the sum of all paths.
#
#     opened_u(o) = start_u(y) + (⊕_{1≤d≤W} body(u, u+d) + beta_{u+d}(q) ⊕ body(u, u+W+1) + rest_{u+W+1}(o))
#     rest_v(o)   = end(v-1) + length + beta_v(q)  ⊕  step(v) + rest_{v+1}(o)        o = (k, q), y of k
#     beta_u(p)   = ⊕_{c taken from p} ψ_u(c) + opened_u(open state of c)
#
# Nguyen et al., JMLR 15 (2014) §2.3. Windows W are as in load.pxi, but for labels with a limit, whose
# window is the limit. body(u, u+W+1) of a segment that goes on has no end or length score.


cdef void load(Lattice lattice, Py_ssize_t sequence) noexcept nogil:
    """Compute the chart of a sequence of the batch, and remove all nodes; sets `full` without memory."""
    cdef Py_ssize_t t
    lattice.base = lattice.scores.offsets[sequence]
    lattice.tokens = lattice.scores.offsets[sequence + 1] - lattice.base
    lattice.span_low = lattice.scores.span_offsets[sequence]
    lattice.span_high = lattice.scores.span_offsets[sequence + 1]
    _choose_windows(lattice)
    _lay_out(lattice)
    forget_nodes(lattice)
    if lattice.full:
        return
    for t in range(lattice.tokens):
        _load_token(lattice, t)
    if lattice.sums:
        _fill(SUM, lattice, sequence)
    else:
        _fill(MAX, lattice, sequence)


cdef void* room(Lattice lattice, void* array, size_t* has, size_t count, size_t size) noexcept nogil:
    """The address of an array of has[0] elements, grown to at least `count`; sets `full` without memory."""
    cdef void* moved
    if count <= has[0] or lattice.full:
        return array
    moved = realloc(array, (2 * count + 64) * size)
    if moved is NULL:
        lattice.full = True
        return array
    has[0] = 2 * count + 64
    return moved


cdef void _choose_windows(Lattice lattice) noexcept nogil:
    """Set windows to the limit or, without one, to the longest length with a score of its own."""
    cdef Py_ssize_t k, s, y, d, limit
    for k in range(lattice.graph.bodies):
        lattice.window[k] = max(1, lattice.scores.lengths - 1)
    for s in range(lattice.span_low, lattice.span_high):
        k = lattice.graph.pattern_body[lattice.scores.span_pattern[s]]
        if k < 0:
            continue
        y, d = lattice.graph.body_label[k], lattice.scores.span_end[s] - lattice.scores.span_start[s]
        for k in range(lattice.graph.bodies):
            if lattice.graph.body_label[k] == y:
                lattice.window[k] = max(lattice.window[k], d)
    lattice.widest = 0
    lattice.any_tail = False
    for k in range(lattice.graph.bodies):
        limit = lattice.graph.limits[lattice.graph.body_label[k]]
        if 0 < limit < lattice.tokens:
            lattice.window[k] = limit
        lattice.window[k] = min(lattice.window[k], lattice.tokens)
        lattice.has_tail[k] = not 0 < limit < lattice.tokens and lattice.window[k] < lattice.tokens
        lattice.any_tail |= lattice.has_tail[k]
        lattice.widest = max(lattice.widest, lattice.window[k])


cdef void _lay_out(Lattice lattice) noexcept nogil:
    """Place all arrays of the chart in one piece of memory."""
    cdef size_t T = lattice.tokens, K = lattice.graph.bodies, C = lattice.graph.arcs
    cdef size_t opens = lattice.graph.opens
    cdef size_t rests = (T + 2) * opens if lattice.any_tail else 0, lengths = K * (lattice.widest + 1)
    cdef size_t count = 3 * T * K + (2 * T + 1) * opens + rests + lattice.graph.registers + 2 * C + lengths
    lattice.numbers = <double*> room(lattice, lattice.numbers, &lattice.numbers_room, count, sizeof(double))
    if lattice.full:
        return
    lattice.token = lattice.numbers
    lattice.step = lattice.token + T * K
    lattice.end = lattice.step + T * K
    lattice.ended = lattice.end + T * K
    lattice.opened = lattice.ended + (T + 1) * opens
    lattice.rest = lattice.opened + T * opens
    lattice.beta = lattice.rest + rests
    lattice.own = lattice.beta + lattice.graph.registers
    lattice.summed = lattice.own + C
    lattice.extra = lattice.summed + C
    memset(lattice.own, 0, C * sizeof(double))
    memset(lattice.extra, 0, lengths * sizeof(double))


cdef void _load_token(Lattice lattice, Py_ssize_t t) noexcept nogil:
    """Load the scores of one token in a segment of each body, with those of the body's suffixes."""
    cdef Py_ssize_t i = lattice.base + t, K = lattice.graph.bodies, k, r
    cdef double* token = lattice.token + t * K
    cdef double* step = lattice.step + t * K
    cdef double* end = lattice.end + t * K
    cdef int target, part
    for k in range(lattice.graph.labels):
        token[k] = lattice.scores.token[i, k]
        step[k] = token[k] + (lattice.scores.inner[i, k] if lattice.scores.has_inner else 0.0)
        end[k] = lattice.scores.end[i, k] if lattice.scores.has_end else 0.0
        if not lattice.scores.allowed[i, k] & CONTINUE:
            step[k] = -INFINITY
        if not lattice.scores.allowed[i, k] & LAST:
            end[k] = -INFINITY
    for k in range(lattice.graph.labels, K):
        token[k] = step[k] = end[k] = 0.0
    if lattice.scores.rows:
        for r in range(lattice.scores.row_offsets[i], lattice.scores.row_offsets[i + 1]):
            target = ~lattice.scores.row_target[r]
            if target < 0:
                continue  # the row of an arc, see _sum_rows
            k, part = target >> 2, target & 3
            if part == PART_TOKEN:
                token[k] += lattice.scores.row_score[r]
            if part == PART_TOKEN or part == PART_INNER:
                step[k] += lattice.scores.row_score[r]
            elif part == PART_END:
                end[k] += lattice.scores.row_score[r]
    for k in range(lattice.graph.labels, K):
        token[k] += token[lattice.graph.body_suffix[k]]
        step[k] += step[lattice.graph.body_suffix[k]]
        end[k] += end[lattice.graph.body_suffix[k]]


cdef void _fill(semiring* ring, Lattice lattice, Py_ssize_t sequence) noexcept nogil:
    """Run the recurrences from right to left, and set lattice.total."""
    cdef Py_ssize_t u, o, T = lattice.tokens
    cdef double* ended = lattice.ended + T * lattice.graph.opens
    for o in range(lattice.graph.opens):
        ended[o] = final_score(lattice, sequence, lattice.graph.open_target[o])
    lattice.total = final_score(lattice, sequence, 0)
    for u in range(T - 1, -1, -1):
        if lattice.any_tail:
            _go_on(ring, lattice, u + 1)
        note_spans(lattice, u)
        _open(ring, lattice, u)
        forget_spans(lattice, u)
        _take_arcs(ring, lattice, u)
        ended = lattice.ended + u * lattice.graph.opens
        for o in range(lattice.graph.opens):
            ended[o] = lattice.beta[lattice.graph.open_target[o]]
        lattice.total = lattice.beta[0]


cdef inline double final_score(Lattice lattice, Py_ssize_t sequence, Py_ssize_t state) noexcept nogil:
    return lattice.scores.final[sequence, state] if lattice.scores.has_final else 0.0


# opened_u(o) = start_u(y) + (⊕_{1≤d≤W} body(u, u+d) + beta_{u+d}(q) ⊕ body(u, u+W+1) + rest_{u+W+1}(o))
cdef void _open(semiring* ring, Lattice lattice, Py_ssize_t u) noexcept nogil:
    """Compute opened_u of all open states; -inf where no segment may start at u."""
    cdef Py_ssize_t k, o, d, low, high, y, bound, K = lattice.graph.bodies, opens = lattice.graph.opens
    cdef double run, score
    cdef double* opened = lattice.opened + u * opens
    cdef const double* after
    cdef const double* step
    for k in range(K):
        y = lattice.graph.body_label[k]
        low, high = lattice.graph.body_offsets[k], lattice.graph.body_offsets[k + 1]
        for o in range(low, high):
            opened[o] = -INFINITY
        if not lattice.scores.allowed[lattice.base + u, y] & FIRST:
            continue
        bound = min(lattice.window[k], lattice.tokens - u)
        run = begin_segment(lattice, u, k)
        step = lattice.step + u * K + k  # [d * K]: token u+d
        for d in range(1, bound + 1):
            score = run + score_of_end(lattice, u, d, k)
            if score > -INFINITY:
                after = lattice.ended + (u + d) * opens
                for o in range(low, high):
                    opened[o] = plus(ring, opened[o], score + after[o])
            run = run + step[d * K] if u + d < lattice.tokens else -INFINITY
            if run == -INFINITY:
                break
        if lattice.has_tail[k] and run > -INFINITY:
            after = lattice.rest + (u + bound + 1) * opens
            for o in range(low, high):
                opened[o] = plus(ring, opened[o], run + after[o])


cdef inline double begin_segment(Lattice lattice, Py_ssize_t u, Py_ssize_t k) noexcept nogil:
    """Score of starting a segment in body k at u, first token included."""
    cdef double start = 0.0
    if lattice.scores.has_start:
        start = lattice.scores.start[lattice.base + u, lattice.graph.body_label[k]]
    return start + lattice.token[u * lattice.graph.bodies + k]


cdef inline double score_of_end(Lattice lattice, Py_ssize_t u, Py_ssize_t d, Py_ssize_t k) noexcept nogil:
    """Score of ending a segment [u, u + d) in body k: end, length and spans; d must be within the window."""
    cdef double end = lattice.end[(u + d - 1) * lattice.graph.bodies + k]
    cdef double length = lattice.scores.body_length[k, min(d, lattice.scores.lengths) - 1]
    return end + length + lattice.extra[k * (lattice.widest + 1) + d]


# rest_v(o) = end(v-1) + length + beta_v(q)  ⊕  step(v) + rest_{v+1}(o)
cdef void _go_on(semiring* ring, Lattice lattice, Py_ssize_t v) noexcept nogil:
    """Compute rest_v of all open states that have a tail."""
    cdef Py_ssize_t k, o, opens = lattice.graph.opens
    cdef double* rest = lattice.rest + v * opens
    cdef const double* ended = lattice.ended + v * opens
    cdef double end, step
    for k in range(lattice.graph.bodies):
        if not lattice.has_tail[k]:
            continue
        end = end_of_tail(lattice, v, k)
        for o in range(lattice.graph.body_offsets[k], lattice.graph.body_offsets[k + 1]):
            rest[o] = end + ended[o]
        if v < lattice.tokens:
            step = lattice.step[v * lattice.graph.bodies + k]
            for o in range(lattice.graph.body_offsets[k], lattice.graph.body_offsets[k + 1]):
                rest[o] = plus(ring, rest[o], step + rest[opens + o])


cdef inline double end_of_tail(Lattice lattice, Py_ssize_t v, Py_ssize_t k) noexcept nogil:
    """Score of ending a segment in body k at v that is longer than the window."""
    cdef double end = lattice.end[(v - 1) * lattice.graph.bodies + k]
    return end + lattice.scores.body_length[k, lattice.scores.lengths - 1]


# beta_u(p) = ⊕_{c taken from p} ψ_u(c) + opened_u(open state of c)
cdef void _take_arcs(semiring* ring, Lattice lattice, Py_ssize_t u) noexcept nogil:
    """Compute beta_u by the sum program run backwards."""
    cdef Py_ssize_t i, r, n = lattice.graph.taken.shape[0]
    cdef const int* entered = &lattice.graph.taken_open[0] if n else NULL
    cdef const int* register = &lattice.graph.taken_register[0] if n else NULL
    cdef const double* weight = &lattice.scores.weight[0] if n else NULL
    cdef const double* opened = lattice.opened + u * lattice.graph.opens
    cdef double value
    cdef double* beta = lattice.beta
    cdef bint rows = _sum_rows(lattice, u)
    for r in range(lattice.graph.registers):
        beta[r] = -INFINITY
    for i in range(n):
        value = weight[i] + opened[entered[i]]
        if rows:
            value += lattice.summed[lattice.graph.taken[i]]
        beta[register[i]] = plus(ring, beta[register[i]], value)
    _reverse_sums(ring, lattice)


# x[d] = x[a] + x[b]   backwards:   beta[a] ⊕= beta[d],  beta[b] ⊕= beta[d]
cdef void _reverse_sums(semiring* ring, Lattice lattice) noexcept nogil:
    cdef Py_ssize_t i = lattice.graph.additions.shape[0]
    cdef const int* addition = &lattice.graph.additions[0, 0] + 3 * i if i else NULL
    cdef double* beta = lattice.beta
    cdef double value = -INFINITY
    cdef bint held = False  # `value` is the adjoint of the next iteration's sum, not stored yet
    while i > 0:
        i -= 1
        addition -= 3
        value = plus(ring, value, beta[addition[0]]) if held else beta[addition[0]]
        beta[addition[2]] = plus(ring, beta[addition[2]], value)
        held = i > 0 and addition[1] == (addition - 3)[0]
        if not held:
            beta[addition[1]] = plus(ring, beta[addition[1]], value)


cdef bint _sum_rows(Lattice lattice, Py_ssize_t u) noexcept nogil:
    """Sum the rows of every arc and of its suffixes at u. RETURNS (bool): whether there are any rows."""
    cdef Py_ssize_t c, suffix
    if not note_rows(lattice, u):
        return False
    for c in range(lattice.graph.arcs):
        suffix = lattice.graph.arc_suffix[c]
        lattice.summed[c] = lattice.own[c] + (lattice.summed[suffix] if suffix >= 0 else 0.0)
    forget_rows(lattice, u)
    return True
