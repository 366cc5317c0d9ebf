# The memory of one thread: buffers for the sequences that it processes side by side.

cdef Py_ssize_t FACTOR_BYTES = 2 ** 23


cdef class Workspace:
    """Buffers for one group of sequences, one per lane; the next group overwrites them.

    T tokens, W lengths of all windows together. Reals are float64; their last axis, which the comments
    leave out, is the lane unless they say otherwise.
    """
    cdef Automaton fsa
    cdef Py_ssize_t capacity, beta_rows, capacity_beta, capacity_lengths
    cdef Py_ssize_t tokens  # T: tokens of the longest loaded sequence
    cdef int count  # sequences loaded, in lanes 0..count-1
    cdef Py_ssize_t sequence[MAX_LANES]
    cdef Py_ssize_t base[MAX_LANES]
    cdef Py_ssize_t length[MAX_LANES]
    cdef Py_ssize_t span_low[MAX_LANES]
    cdef Py_ssize_t span_high[MAX_LANES]
    cdef Py_ssize_t span_next[MAX_LANES]
    cdef double log_partition[MAX_LANES]
    cdef double extent[MAX_LANES]  # length, but 0 once a value of the sequence is lost
    # The whole sequences while the lanes hold a window of each (windows.pxi): `rows` tokens, 0 without
    # windows, and `reach` more on either side, one less than the longest segment has.
    cdef Py_ssize_t whole_base[MAX_LANES]
    cdef Py_ssize_t whole_length[MAX_LANES]
    cdef double whole_log_partition[MAX_LANES]
    cdef Py_ssize_t whole_tokens, rows, reach, capacity_windows
    cdef Py_ssize_t low  # first token of the window in its sequence
    # [windows × (reach + 1), P] alpha at the last boundaries up to where each window begins;
    # [reach + 1, P] beta at the first boundaries from where the current window ends
    cdef double[:, :, ::1] kept_alpha, kept_beta
    # [D, 4, n, P], [D, 4, n] alpha and beta at some boundaries, without lanes: see edges.pxi
    cdef double[:, :, :, ::1] edges
    cdef double[:, :, ::1] edge_scales
    cdef bint has_edges
    cdef double[:, ::1] kept_alpha_scale, kept_beta_scale
    cdef unsigned char lost[MAX_LANES]  # a live value has left the range of a double, see lost.pxi
    cdef bint not_finite  # a score is not finite
    cdef bint any_tail
    cdef bint multiplies  # weights of segments are products of `lifted_*`: no whole segment has a score
    cdef Py_ssize_t widest  # largest window
    cdef double[:, :, ::1] first  # [T, Y] lifted score of starting a segment at a token
    cdef double[:, ::1] first_scale  # [T]
    # [T, K] log score of a body's token: if it is the segment's first; a further one; of ending with it
    cdef double[:, :, ::1] token, step, end
    # [T, K] exp of these less the scales `shift` (of the first two) and `end_shift`
    cdef double[:, :, ::1] lifted_token, lifted_step, lifted_end
    cdef double[:, ::1] shift, end_shift  # [T] log scales
    cdef double[:, ::1] length_weight  # [K, M] lifted length scores; no lanes
    cdef long long[::1] beta_row  # [T] by length, index in `beta` of the row where the segment ends
    # [T] by length, the part of the weight that all segments at a boundary have in common
    cdef double[:, ::1] relative
    cdef double[:, ::1] meeting  # [T] by length, Σ_o entry_u(o) beta_v(target o) over one body
    cdef double[:, :, ::1] opening  # [T + 1, K] log score of the first token, with the scale of the entry
    cdef double[:, :, ::1] closing  # [T + 1, K] log score of ending with the token before, with beta's scale
    cdef unsigned char[::1] has_lost_start  # [T] an allowed start has a weight below LOST
    cdef unsigned char[::1] has_rows  # [T] the token has rows or spans whose scores belong to arcs
    cdef long long[::1] window, window_offset  # [K] lengths summed one by one; where they are in `score`
    cdef unsigned char[::1] has_tail  # [K] segments longer than the window are allowed
    cdef long long[::1] block  # [K] D: how many lengths beyond the window are allowed, 0 for all
    # Tails of labels with a limit: starts of the forward recurrence and ends of the backward one use
    # the same memory.
    cdef double[:, ::1] starts_in_block, ends_in_block  # [O] tails that begin, or end, in this block
    cdef double[:, ::1] starts_scale, ends_scale  # [K]
    cdef double[:, ::1] starts_run, ends_run  # [K] log score of the steps between here and the block's edge
    cdef double[:, :, ::1] starts_before, ends_behind  # [D + 1, O] partial sums of the neighbouring block
    cdef double[:, :, ::1] starts_before_scale, ends_behind_scale  # [D + 1, K]
    cdef double[:, :, ::1] alpha, beta  # [T + 1, P]; beta may be a ring of rows
    cdef double[:, :, ::1] entry  # [T + 1, O] mass of the segments that start here; unused in a CRF
    # [T + 1, O] forward and backward values of segments open for longer than the window
    cdef double[:, :, ::1] tail, rest
    cdef double[:, ::1] alpha_scale, beta_scale, entry_scale  # [T + 1] log scales
    cdef double[:, :, ::1] tail_scale, rest_scale  # [T + 1, K] -inf where nothing is open
    cdef double[:, ::1] x, adjoint  # [registers] of the sum program
    cdef double[:, ::1] own, summed, arc_value  # [C] scores of an arc's own rows, its suffixes' too; scratch
    cdef double[:, :, ::1] factor  # [T, C] `summed`, lifted; a single row if all would take too much memory
    cdef bint keeps_factors
    cdef bint has_arcs  # this call has computed arc_weight, open_weight and length_weight already
    cdef unsigned char[::1] touched  # [C]
    # [n] lifted const scores of the arcs, in the order of `taken` and by open state; no lanes
    cdef double[::1] arc_weight, open_weight
    # [W] of all segments at a boundary: log scores, -inf for impossible ones; then weights relative to the
    # largest (in log space the scores themselves); then probabilities. The three share their memory:
    # each overwrites the one before.
    cdef double[:, ::1] score, weight, share
    cdef double[:, ::1] tail_score, inside  # [K]
    cdef double[:, ::1] leaving  # [O] mass of the segments that end at a boundary
    cdef double[:, ::1] open_value, open_weighted  # [O] open_u; times the weight of the label's start
    cdef double[:, ::1] closed, closed_later  # [O] beta by open state, at this boundary and at a later one
    cdef double[:, ::1] starts  # [Y]
    # [n] expected number of times an arc is taken, in the order of `taken`: in this group, in all groups
    cdef double[:, ::1] arc_now, arc_sum
    cdef double[:, :, ::1] length_now, length_sum  # [K, M] expected segments of exactly this body by length
    # [T + 1, K] expected segments of a body that begin with, end with and contain a token
    cdef double[:, :, ::1] started, ended, cover
    # for the search for probable spans, which has one lane at a time:
    cdef double[::1] steps  # [K] summed step scores of the segment so far
    # [P] probabilities of the states at two boundaries; mass of a run's states; the same one token later
    cdef double[::1] here, behind, mass, later
    cdef double[::1] marginal  # [Y] probabilities of a token's labels

    def __init__(self, Automaton fsa not None):
        self.fsa = fsa
        self.capacity = self.capacity_beta = self.capacity_lengths = self.capacity_windows = -1
        bodies, arcs = fsa.bodies, fsa.arcs
        opens = max(1, fsa.opens)  # a product without open states has a first row to point at, too
        self.window = np.zeros(bodies, dtype=np.int64)
        self.window_offset = np.zeros(bodies, dtype=np.int64)
        self.has_tail = np.zeros(bodies, dtype=np.uint8)
        self.block = np.zeros(bodies, dtype=np.int64)
        self.starts_in_block = self.ends_in_block = _vector(opens)
        self.starts_scale = self.ends_scale = _vector(bodies)
        self.starts_run = self.ends_run = _vector(bodies)
        self.touched = np.zeros(arcs, dtype=np.uint8)
        self.x = _vector(fsa.registers)
        self.adjoint = _vector(fsa.registers)  # zero between the boundaries
        self.own = _vector(arcs)
        self.summed = _vector(arcs)
        self.arc_value = _vector(arcs)
        self.arc_weight = np.zeros(arcs)
        self.open_weight = np.zeros(arcs)
        self.tail_score = _vector(bodies)
        self.inside = _vector(bodies)
        self.leaving = _vector(opens)
        self.open_value = _vector(opens)
        self.closed = _vector(opens)
        self.closed_later = _vector(opens)
        self.open_weighted = _vector(opens)
        self.starts = _vector(fsa.labels)
        self.steps = np.zeros(bodies)
        self.here, self.behind, self.mass, self.later = (np.zeros(fsa.states) for _ in range(4))
        self.marginal = np.zeros(fsa.labels)
        self.arc_now = _vector(arcs)
        self.arc_sum = _vector(arcs)

    cdef reserve(self, Py_ssize_t tokens, Py_ssize_t lengths, bint both, bint all_betas):
        """Grow the buffers for up to `tokens` tokens and `lengths` length scores, when a call begins. Each
        capacity is set after its buffers are made, so that it is right even if memory runs out.

        both (bool): for the backward recurrence too. all_betas (bool): keep beta of every boundary.
        """
        cdef Automaton fsa = self.fsa
        bodies, states, opens = fsa.bodies, fsa.states, max(1, fsa.opens)
        longest = tokens if fsa.endless else max(1, min(fsa.longest, tokens))
        self.has_arcs = False
        if tokens > self.capacity:
            limits = np.asarray(fsa.limits)[np.asarray(fsa.body_label)]
            free = tokens if (limits != 1).any() else 0
            segments = 0 if fsa.one_token else tokens
            self.first = _table(tokens, fsa.labels)
            self.first_scale = _vector(tokens)
            self.token = _table(segments, bodies)
            self.step = _table(segments, bodies)
            self.end = _table(segments, bodies)
            self.lifted_token = _table(segments, bodies)
            self.lifted_step = _table(segments, bodies)
            self.lifted_end = _table(segments, bodies)
            self.shift = _vector(segments)
            self.end_shift = _vector(segments)
            self.relative = _vector(segments)
            self.meeting = _vector(segments)
            self.beta_row = np.zeros(segments, dtype=np.int64)
            self.opening = _table(segments + 1, bodies)
            self.closing = _table(segments + 1, bodies)
            self.has_rows = np.zeros(tokens, dtype=np.uint8)
            self.has_lost_start = np.zeros(tokens, dtype=np.uint8)
            self.keeps_factors = tokens * fsa.arcs * LANES * 8 <= FACTOR_BYTES
            self.factor = _table(tokens if self.keeps_factors else 1, fsa.arcs)
            self.alpha = _table(tokens + 1, states)
            self.entry = _table(segments + 1, 0 if fsa.one_token else opens)
            self.tail = _table(free + 1, opens)
            self.rest = _table(free + 1, opens)
            block = min(free, int(limits.max(initial=0)))
            self.starts_before = self.ends_behind = _table(block + 1, opens)
            self.starts_before_scale = self.ends_behind_scale = _table(block + 1, bodies)
            self.alpha_scale = _vector(tokens + 1)
            self.beta_scale = _vector(tokens + 1)
            self.entry_scale = _vector(tokens + 1)
            self.tail_scale = _table(free + 1, bodies)
            self.rest_scale = _table(free + 1, bodies)
            self.started = _table(segments + 1, bodies)
            self.ended = _table(segments + 1, bodies)
            self.cover = _table(segments + 1, bodies)
            windows = int(np.where(limits == 0, tokens, np.minimum(limits, tokens)).sum())
            self.score = self.weight = self.share = _vector(windows + bodies)
            self.capacity = tokens
        if both:
            self.beta_rows = tokens + 1 if all_betas else min(tokens, longest + 1) + 1
            if self.beta_rows > self.capacity_beta:
                self.beta = _table(self.beta_rows, states)
                self.capacity_beta = self.beta_rows
        if lengths > self.capacity_lengths:
            self.length_now = _table(bodies, lengths)
            self.length_sum = _table(bodies, lengths)
            self.length_weight = np.zeros((bodies, lengths))
            self.capacity_lengths = lengths

    cdef reserve_windows(self, Py_ssize_t tokens, Py_ssize_t rows):
        """Grow the buffers that pass alpha and beta between windows of `rows` of at most `tokens` tokens."""
        self.rows, self.reach = rows, int(np.asarray(self.fsa.limits).max()) - 1
        needed = (tokens // rows + 2) * (self.reach + 1)
        if needed > self.capacity_windows:
            self.kept_alpha = _table(needed, self.fsa.states)
            self.kept_alpha_scale = _vector(needed)
            self.kept_beta = _table(self.reach + 1, self.fsa.states)
            self.kept_beta_scale = _vector(self.reach + 1)
            self.capacity_windows = needed


# Cython's code that converts an array to a view is long, so these functions keep it in one place
cdef double[:, ::1] _vector(Py_ssize_t n):
    return _buffer(n)


cdef double[:, :, ::1] _table(Py_ssize_t m, Py_ssize_t n):
    return _buffer(m, n)


def _buffer(*extents):
    """Allocate float64 zeros [*extents, LANES], aligned to a cache line."""
    size = int(np.prod(extents, dtype=np.int64)) * LANES
    raw = np.zeros(size + 8)
    skip = -(raw.ctypes.data // 8) % 8
    return raw[skip : skip + size].reshape(*extents, LANES)


cdef inline lanes* beta_row(Workspace ws, Py_ssize_t v) noexcept nogil:
    """Pointer to beta_v of all states in the ring of rows."""
    return at2(ws.beta, v % ws.beta_rows, 0)
