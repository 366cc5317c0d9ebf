# The forward recurrence of a high-order semi-CRF over explicit arcs, in three semirings, for LANES sequences side by side.
#
# With m_u(c) the mass of all histories that take arc c at boundary u (sums.py's program), body(u, v, k) the log score of
# the segment [u, v) after its start, o = (k, q) the open states and ψ_u(c) the weight of the arc's const and start scores:
#
#     entry_u(o) = Σ_{c in o} m_u(c) ψ_u(c)                        arcs are applied once per boundary, not once per length
#     alpha_v(q) = Σ_{o: target q} Σ_{u<v} entry_u(o) exp body(u, v, k)
#
# Nguyen et al., JMLR 15 (2014) §2.3.1, factored at the boundary. Where every segment has one token (a CRF) all of its scores are
# known at its start, body = 0, and entry_u is alpha_{u+1}. A label whose longest segments are beyond a window of W lengths that
# are summed one by one (those with a length or span score of their own) has one sum for all longer ones, since their scores add up
# token by token. Without a limit it is a recursion,
#
#     tail_v(o) = tail_{v-1}(o) exp step(v-1) + entry_{v-1-W}(o) exp body(v-1-W, v)
#
# and with a limit L a sum over the last D = L - W starts. Starts are cut into blocks of D: the sum is what has been entered in the
# current block, by the same recursion from its beginning, and what was entered in the last part of the block before, from sums over
# its ends made once when it was full. So the cost does not depend on L, and nothing is ever subtracted.
#
# exp body(u, v, k) is a product over the tokens of the segment. In scaled space the factors of every token are lifted once, each
# token's relative to its largest, and multiplied as a segment grows; only where whole segments have scores are the logs added up.
#
# Scaled space keeps one log scale per lane and boundary. A value may still underflow. Structural zeros are exact zeros, hence a
# value that is (nearly) zero although one of its sources is not has been lost; the sequence is then redone in log space. What is
# impossible has the log score -inf, and so have the tokens of a lane beyond its own sequence.

cdef extern from "lanes.h" nogil:
    enum:
        LANES
    ctypedef double lanes
    ctypedef long long flags
    lanes splat(double x)
    flags as_flags(lanes x)
    flags less(lanes a, lanes b)
    flags at_least(lanes a, lanes b)
    flags differ(lanes a, lanes b)
    int any_of "any" (flags f)
    lanes choose(flags f, lanes a, lanes b)
    lanes larger(lanes a, lanes b)
    lanes smaller(lanes a, lanes b)
    lanes lanes_exp(lanes x)
    lanes exponent(lanes x)
    lanes power_of_two(lanes e)
    lanes log_add(lanes a, lanes b)

cdef enum:
    MOST_LANES = 8

cdef struct Scaled:  # (+, ×) on probabilities, rescaled at every boundary
    int tag

cdef struct Log:  # (logaddexp, +): slower, never underflows
    int tag

cdef struct Max:  # (max, +): the best segmentation
    int tag

ctypedef fused semiring:
    Scaled
    Log
    Max

ctypedef fused summing:
    Scaled
    Log

cdef enum:  # Potentials.allowed
    FIRST = 1
    CONTINUE = 2
    LAST = 4

cdef enum:  # Potentials.row_part
    PART_END = 1
    PART_TOKEN = 2
    PART_INNER = 3

cdef Py_ssize_t FACTOR_BYTES = 2 ** 23
cdef double LOST = 1e-280
cdef double VAST = 1e300
cdef double LN2 = 0.6931471805599453
cdef double HIGH = 2.0 ** 40, LOW = 2.0 ** -40  # values are rescaled when the largest leaves this range
cdef double STEEP = 10.0  # weights of lengths up to e^this leave enough digits between the largest and what counts as lost
cdef double FAINT = 1e-300  # an allowed start whose weight is lost: no structural zero


cdef inline lanes zero(semiring* _) noexcept nogil:
    if semiring is Scaled:
        return splat(0.0)
    else:
        return splat(-INFINITY)


cdef inline lanes lift(semiring* _, lanes score) noexcept nogil:
    if semiring is Scaled:
        return lanes_exp(score)
    else:
        return score


cdef inline lanes times(semiring* _, lanes a, lanes b) noexcept nogil:
    if semiring is Scaled:
        return a * b
    else:
        return a + b


cdef inline lanes plus(semiring* _, lanes a, lanes b) noexcept nogil:
    if semiring is Scaled:
        return a + b
    elif semiring is Log:
        return log_add(a, b)
    else:
        return larger(a, b)


cdef inline lanes finite_or_zero(lanes score) noexcept nogil:
    return choose(less(splat(-INFINITY), score), score, splat(0.0))


cdef class Chain:
    """Views of an automaton; see automaton.Automaton for the extents."""
    cdef Py_ssize_t states, arcs, registers, bodies, opens, labels
    cdef Py_ssize_t least_tail  # lengths that are worth a sum of their own
    cdef readonly bint one_token  # every segment has one token: a CRF
    cdef const int[::1] limits, state_suffix, state_offsets, state_arcs
    cdef const int[::1] arc_label, arc_suffix, arc_open, arc_register
    cdef const int[:, ::1] additions
    cdef const int[::1] pattern_arc, pattern_body
    cdef const unsigned char[::1] pattern_folded
    cdef const int[::1] body_label, body_suffix, body_offsets, open_target, open_label
    cdef const int[::1] taken, taken_register, taken_open  # [n] the arcs that are not forbidden, in order of their registers
    cdef const int[::1] open_offsets, open_taken  # [O + 1], [n] their places in that order, by open state
    cdef readonly bint dense  # a CRF of order 1, where it is faster to multiply all pairs of labels than to share their sums
    cdef Py_ssize_t columns  # Y, rounded up to a multiple of 4
    cdef const int[:, ::1] pair_place  # [P, Y] place in `taken` of the arc from each state to each label, -1 if it is forbidden
    cdef const int[::1] tree_offsets, tree  # [K + 1], the bodies that end in each body, itself included

    def __init__(self, automaton, least_tail):
        self.least_tail = least_tail
        self.states = len(automaton.states)
        self.arcs = len(automaton.arcs)
        self.registers = automaton.registers
        self.bodies = len(automaton.body_label)
        self.opens = len(automaton.open_target)
        self.labels = len(automaton.limits)
        self.one_token = bool((automaton.limits == 1).all())
        self.limits = automaton.limits
        self.state_suffix = automaton.state_suffix
        self.state_offsets = automaton.state_offsets
        self.state_arcs = automaton.state_arcs
        self.arc_label = automaton.arc_label
        self.arc_suffix = automaton.arc_suffix
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
        open_of, self.open_label = automaton.arc_open, automaton.open_label
        if self.one_token:  # an open state is over with its one token: it is the forward state that it leads to
            open_of = automaton.arc_target
            self.open_label = np.array([state[len(state) - 1] if state else 0 for state in automaton.states], dtype=np.int32)
            self.opens = self.states
        taken = automaton.open_arcs[np.argsort(automaton.arc_register[automaton.open_arcs], kind="stable")]
        self.taken = taken
        self.taken_register = automaton.arc_register[taken]
        self.taken_open = open_of[taken]
        self.open_taken = np.argsort(open_of[taken], kind="stable").astype(np.int32)
        self.open_offsets = np.searchsorted(np.sort(open_of[taken]), np.arange(self.opens + 1)).astype(np.int32)
        self.tree_offsets = automaton.tree_offsets
        self.tree = automaton.tree
        self.dense = self.one_token and self.states == self.labels + 1
        self.columns = (self.labels + 3) // 4 * 4
        if self.dense:
            self.pair_place = self._pairs(taken)

    def _pairs(self, taken):
        """int32 [P, Y]; the arc of a state is its own or else that of the empty history."""
        places = np.full(self.arcs + 1, -1, dtype=np.int32)
        places[taken] = np.arange(len(taken), dtype=np.int32)
        arcs = np.full((self.states, self.labels), -1, dtype=np.int32)
        for state in range(self.states):
            for arc in self.state_arcs[self.state_offsets[state] : self.state_offsets[state + 1]]:
                arcs[state, self.arc_label[arc]] = arc
        return places[np.where(arcs < 0, arcs[0], arcs)]


cdef class Batch:
    """Views of the log potentials of a batch; see problem.Problem."""
    cdef Py_ssize_t sequences, tokens, rows, spans, lengths
    cdef bint has_start, has_end, has_inner, has_initial, has_final, has_end_rows, has_inner_rows
    cdef const long long[::1] offsets
    cdef const double[:, ::1] start, end, token, inner
    cdef const unsigned char[:, ::1] allowed
    cdef const long long[::1] row_offsets
    cdef const int[::1] row_target
    cdef const double[::1] row_score
    cdef const unsigned char[::1] has_arc_rows
    cdef const long long[::1] span_offsets  # [D + 1]
    cdef const long long[::1] span_start, span_end
    cdef const int[::1] span_pattern
    cdef const double[::1] span_score
    cdef const long long[::1] span_by_end  # [S] the spans in order of their end
    cdef const double[::1] arc_const  # [C] Σ const over the patterns that end the arc
    cdef const double[:, ::1] body_length  # [K, M] length score of a body, its suffixes included
    cdef const double[:, ::1] initial, final  # [D, P] log alpha before the first token, log beta after the last

    def __init__(self, problem):
        potentials = problem.potentials
        self.offsets = potentials.offsets
        self.sequences = self.offsets.shape[0] - 1
        self.tokens = self.offsets[self.sequences]
        self.rows = len(potentials.row_score)
        self.spans = len(potentials.span_score)
        self.lengths = potentials.length_score.shape[1]
        self.has_start = potentials.start is not None
        self.has_end = potentials.end is not None
        self.has_inner = potentials.inner is not None
        self.token = potentials.token
        self.start = potentials.start if self.has_start else potentials.token
        self.end = potentials.end if self.has_end else potentials.token
        self.inner = potentials.inner if self.has_inner else potentials.token
        self.allowed = potentials.allowed
        self.row_offsets = potentials.row_offsets
        self.row_target = problem.row_target
        self.has_arc_rows = problem.has_arc_rows
        self.has_end_rows, self.has_inner_rows = problem.frame.has_end_rows, problem.frame.has_inner_rows
        self.row_score = potentials.row_score
        self.span_start = potentials.span_start
        self.span_end = potentials.span_end
        self.span_pattern = potentials.span_pattern
        self.span_score = potentials.span_score
        self.span_offsets = problem.span_offsets
        self.span_by_end = problem.span_by_end
        self.arc_const = problem.arc_const
        self.body_length = problem.body_length
        self.has_initial = problem.initial is not None
        self.has_final = problem.final is not None
        if self.has_initial:
            self.initial = problem.initial
        if self.has_final:
            self.final = problem.final


cdef class Workspace:
    """Buffers for one group of sequences at a time; every call overwrites them. T tokens, W lengths of all windows together.

    The last axis of every float64 array is the lane.
    """
    cdef Chain chain
    cdef Py_ssize_t capacity, capacity_window, beta_rows, capacity_beta, capacity_lengths
    cdef Py_ssize_t tokens  # of the longest loaded sequence
    cdef int count  # sequences loaded, in lanes 0..count-1
    cdef Py_ssize_t sequence[MOST_LANES]
    cdef Py_ssize_t base[MOST_LANES]
    cdef Py_ssize_t length[MOST_LANES]
    cdef Py_ssize_t span_low[MOST_LANES]
    cdef Py_ssize_t span_high[MOST_LANES]
    cdef Py_ssize_t span_next[MOST_LANES]
    cdef double log_partition[MOST_LANES]
    cdef double extent[MOST_LANES]  # length, but 0 once a sequence is lost
    cdef unsigned char lost[MOST_LANES]  # a live value has vanished
    cdef bint strange  # a score is not finite
    cdef bint any_free
    cdef bint steep  # the score of a length is too large to be lifted apart from the rest
    cdef bint multiplies  # weights of segments are products of `lifted_*`: no whole segment has a score
    cdef Py_ssize_t widest  # largest window
    cdef double[:, :, ::1] first  # [T, Y] lifted score of starting a segment here
    cdef double[:, ::1] first_scale  # [T]
    cdef double[:, :, ::1] token, step, end  # [T, K] log scores of the bodies: first token; further ones; last one
    cdef double[:, :, ::1] lifted_token, lifted_step, lifted_end  # [T, K] the same as probabilities, but for a scale
    cdef double[:, ::1] shift, end_shift  # [T] log scales of the first two and of the third
    cdef double[:, ::1] length_weight  # [K, M] lifted scores of the lengths; no lanes
    cdef long long[::1] ring  # [T] rows of beta behind the segments of each length that start at a boundary
    cdef double[:, ::1] relative  # [T] weight of all segments of one length at a boundary, but for their products
    cdef double[:, :, ::1] opening, closing  # [T + 1, K] first token's score and scale of the entry; last one's and scale of beta
    cdef unsigned char[::1] has_faint  # [T] an allowed start has a weight that is lost
    cdef unsigned char[::1] has_rows  # [T] some score belongs to arcs that start at this token
    cdef long long[::1] window, window_offset  # [K] lengths summed one by one; their place in `score`
    cdef unsigned char[::1] free  # [K] segments longer than the window are allowed
    cdef long long[::1] block  # [K] how many of their lengths are: D, 0 for all
    cdef double[:, ::1] prefix  # [O] tails that began in this block
    cdef double[:, ::1] prefix_scale, run  # [K]; score from the end of the other block on
    cdef double[:, :, ::1] suffix  # [D + 1, O] tails that began in the other block, at this place or behind it
    cdef double[:, :, ::1] suffix_scale  # [D + 1, K]
    cdef double[:, :, ::1] alpha, beta  # [T + 1, P]; beta may be a ring of rows
    cdef double[:, :, ::1] entry  # [T + 1, O] segments that start here; none in a CRF
    cdef double[:, :, ::1] tail, rest  # [T + 1, O] segments open for longer than the window, seen from the left and the right
    cdef double[:, ::1] alpha_scale, beta_scale, entry_scale  # [T + 1] log scales
    cdef double[:, :, ::1] tail_scale, rest_scale  # [T + 1, K] -inf where nothing is open
    cdef double[:, ::1] x, adjoint  # [registers]
    cdef double[:, ::1] own, summed, arc_value  # [C] row scores of the arcs at one token, their sums; scratch
    cdef double[:, :, ::1] factor  # [T, C] the sums lifted; one row where all would take too much memory
    cdef bint keeps_factors
    cdef unsigned char[::1] touched  # [C]
    cdef double[::1] arc_weight  # [n] lifted const scores, in the order of `taken`
    cdef double[:, ::1] pair_weight  # [P, columns] lifted const score of each pair of labels; no lanes
    cdef double[:, :, ::1] pair_open  # [T, columns] opened, as a probability, if all pairs are multiplied
    cdef double[:, :, ::1] pair_now, pair_sum  # [P, columns] products of both sides without the weight: of the group, of all groups
    cdef double[:, ::1] score  # [W] log scores of the segments that meet at a boundary, -inf for impossible ones; or their weights
    cdef double[:, ::1] tail_score, inside  # [K]
    cdef double[:, ::1] total, opened  # [O] open_u, and with the score of the start
    cdef double[:, ::1] starts  # [Y]
    cdef double[:, ::1] arc_now, arc_sum  # [n] arcs taken, in the order of `taken`: of the group, of all groups
    cdef double[:, :, ::1] length_now, length_sum  # [K, M] segments in this very body by length
    cdef double[:, :, ::1] started, ended, cover  # [T + 1, K] first tokens, last tokens, all tokens of segments in this body

    def __init__(self, Chain chain not None):
        self.chain = chain
        self.capacity = self.capacity_window = self.capacity_beta = self.capacity_lengths = -1
        bodies, opens, arcs = chain.bodies, chain.opens, chain.arcs
        self.window = np.zeros(bodies, dtype=np.int64)
        self.window_offset = np.zeros(bodies, dtype=np.int64)
        self.free = np.zeros(bodies, dtype=np.uint8)
        self.block = np.zeros(bodies, dtype=np.int64)
        self.prefix = _buffer(opens)
        self.prefix_scale, self.run = _buffer(bodies), _buffer(bodies)
        self.touched = np.zeros(arcs, dtype=np.uint8)
        self.x = _buffer(chain.registers)
        self.adjoint = _buffer(chain.registers)  # zero between the boundaries
        self.own, self.summed, self.arc_value = (_buffer(arcs) for _ in range(3))
        self.arc_weight = np.zeros(arcs)
        self.tail_score, self.inside = _buffer(bodies), _buffer(bodies)
        self.total, self.opened = _buffer(opens), _buffer(max(opens, chain.columns + 1))
        self.starts = _buffer(chain.labels)
        self.arc_now, self.arc_sum = _buffer(arcs), _buffer(arcs)
        if chain.dense:
            self.pair_weight = np.zeros((chain.states, chain.columns))
            self.pair_now, self.pair_sum = _buffer(chain.states, chain.columns), _buffer(chain.states, chain.columns)

    cdef reserve(self, Py_ssize_t tokens, Py_ssize_t lengths, bint both, bint all_betas):
        """Room for sequences of so many tokens.

        both (bool): for the backward recurrence too. all_betas (bool): keep beta of every boundary.
        """
        cdef Chain chain = self.chain
        bodies, states, opens = chain.bodies, chain.states, chain.opens
        limits = np.asarray(chain.limits)[np.asarray(chain.body_label)]
        longest = int(np.where(limits == 0, tokens, np.minimum(limits, tokens)).max(initial=1))
        if tokens > self.capacity:
            self.capacity = tokens
            free = tokens if (limits != 1).any() else 0
            segments = 0 if chain.one_token else tokens
            self.first = _buffer(tokens, chain.labels)
            self.first_scale = _buffer(tokens)
            self.token, self.step, self.end = (_buffer(segments, bodies) for _ in range(3))
            self.lifted_token, self.lifted_step, self.lifted_end = (_buffer(segments, bodies) for _ in range(3))
            self.shift, self.end_shift, self.relative = (_buffer(segments) for _ in range(3))
            self.ring = np.zeros(segments, dtype=np.int64)
            self.opening, self.closing = _buffer(segments + 1, bodies), _buffer(segments + 1, bodies)
            self.has_rows = np.zeros(tokens, dtype=np.uint8)
            self.has_faint = np.zeros(tokens, dtype=np.uint8)
            self.keeps_factors = tokens * chain.arcs * LANES * 8 <= FACTOR_BYTES
            self.factor = _buffer(tokens if self.keeps_factors else 1, chain.arcs)
            self.alpha = _buffer(tokens + 1, states)
            self.entry = _buffer(segments + 1, 0 if chain.one_token else opens)
            self.tail, self.rest = _buffer(free + 1, opens), _buffer(free + 1, opens)
            block = min(free, int(limits.max(initial=0)))
            self.suffix, self.suffix_scale = _buffer(block + 1, opens), _buffer(block + 1, bodies)
            self.alpha_scale, self.beta_scale, self.entry_scale = (_buffer(tokens + 1) for _ in range(3))
            self.tail_scale, self.rest_scale = _buffer(free + 1, bodies), _buffer(free + 1, bodies)
            self.started, self.ended, self.cover = (_buffer(segments + 1, bodies) for _ in range(3))
            self.score = _buffer(int(np.where(limits == 0, tokens, np.minimum(limits, tokens)).sum()) + bodies)
            if chain.dense:
                self.pair_open = _buffer(tokens + 3, chain.columns)
        if both:
            self.beta_rows = tokens + 1 if all_betas else min(tokens, longest + 1) + 1
            if self.beta_rows > self.capacity_beta:
                self.capacity_beta = self.beta_rows
                self.beta = _buffer(self.beta_rows, states)
        if lengths > self.capacity_lengths:
            self.capacity_lengths = lengths
            self.length_now, self.length_sum = _buffer(bodies, lengths), _buffer(bodies, lengths)
            self.length_weight = np.zeros((bodies, lengths))


def _buffer(*extents):
    """Zeros for every lane, aligned to a cache line: float64 [*extents, LANES]."""
    size = int(np.prod(extents, dtype=np.int64)) * LANES
    raw = np.zeros(size + 8)
    skip = -(raw.ctypes.data // 8) % 8
    return raw[skip : skip + size].reshape(*extents, LANES)


cdef inline const int* _first_of(const int[::1] values) noexcept nogil:
    """Where an array begins that may be empty."""
    return &values[0] if values.shape[0] else NULL


cdef struct Rows:
    const long long* offsets
    const int* target
    const double* score


cdef inline Rows rows_of(Batch batch) noexcept nogil:
    """The rows as bare pointers: stores of lanes may change anything, so that views would be read again for every row."""
    cdef Rows rows
    rows.offsets = &batch.row_offsets[0]
    rows.target = &batch.row_target[0] if batch.rows else NULL
    rows.score = &batch.row_score[0] if batch.rows else NULL
    return rows


cdef void load(Chain chain, Batch batch, Workspace ws, const long long* chosen, int count) noexcept nogil:
    """Lay out the scores of some sequences, one a lane, and choose the windows of the labels without a limit."""
    cdef Py_ssize_t K = chain.bodies, t, k, s, y, place, limit, T = 0
    cdef int lane
    ws.count = count
    for lane in range(LANES):
        ws.base[lane] = ws.length[lane] = ws.span_low[lane] = ws.span_high[lane] = 0
        ws.sequence[lane] = -1
        ws.lost[lane] = False
        if lane < count:
            s = chosen[lane]
            ws.sequence[lane] = s
            ws.base[lane] = batch.offsets[s]
            ws.length[lane] = batch.offsets[s + 1] - batch.offsets[s]
            ws.span_low[lane] = batch.span_offsets[s]
            ws.span_high[lane] = batch.span_offsets[s + 1]
            T = max(T, ws.length[lane])
        ws.extent[lane] = <double> ws.length[lane]
    ws.tokens = T
    for t in range(T):
        ws.has_rows[t] = False
        if not chain.one_token:
            for k in range(chain.labels, K):
                (<lanes*> &ws.token[t, k, 0])[0] = splat(0.0)
                (<lanes*> &ws.step[t, k, 0])[0] = splat(0.0)
                (<lanes*> &ws.end[t, k, 0])[0] = splat(0.0)
        for lane in range(LANES):
            if t < ws.length[lane]:
                _load_token(chain, batch, ws, t, lane)
            else:
                _load_nothing(chain, ws, t, lane)
        if not chain.one_token:
            for k in range(chain.labels, K):
                _add_suffix(ws, t, k, chain.body_suffix[k])

    ws.steep = False
    for k in range(K):
        for s in range(batch.lengths):
            ws.steep |= not (-STEEP < batch.body_length[k, s] < STEEP)
    ws.multiplies = not (chain.one_token or ws.steep)
    for k in range(K):
        ws.window[k] = max(1, batch.lengths - 1)
    for lane in range(count):
        for s in range(ws.span_low[lane], ws.span_high[lane]):
            k = chain.pattern_body[batch.span_pattern[s]]
            if k < 0:
                ws.has_rows[batch.span_start[s] - ws.base[lane]] = True
                continue
            ws.multiplies = False
            y = chain.body_label[k]
            for k in range(K):
                if chain.body_label[k] == y:
                    ws.window[k] = max(ws.window[k], batch.span_end[s] - batch.span_start[s])
    place = 0
    ws.widest = 0
    ws.any_free = False
    for k in range(K):
        limit = min(<Py_ssize_t> chain.limits[chain.body_label[k]], T)
        ws.window[k] = min(ws.window[k], T)
        if limit > 0 and ws.window[k] + chain.least_tail > limit:
            ws.window[k] = limit
        ws.block[k] = limit - ws.window[k] if limit > 0 else 0
        ws.free[k] = ws.block[k] > 0 if limit > 0 else ws.window[k] < T
        ws.any_free |= ws.free[k]
        ws.window_offset[k] = place
        ws.widest = max(ws.widest, ws.window[k])
        place += ws.window[k]


cdef void _load_token(Chain chain, Batch batch, Workspace ws, Py_ssize_t t, int lane) noexcept nogil:
    """Scores of one token of one lane; those of the longer bodies without their suffixes'."""
    cdef Py_ssize_t i = ws.base[lane] + t, y, k
    cdef double* first = &ws.first[t, 0, 0] + lane
    cdef const double* token = &batch.token[i, 0]
    cdef const unsigned char* allowed = &batch.allowed[i, 0]
    cdef unsigned char everything = FIRST | CONTINUE | LAST
    cdef bint strange = False
    cdef double score
    for y in range(chain.labels):
        everything &= allowed[y]
    if chain.one_token:
        for y in range(chain.labels):
            score = token[y]
            if batch.has_start:
                score += batch.start[i, y]
            if batch.has_end:
                score += batch.end[i, y]
            strange |= not isfinite(score)
            first[y * LANES] = score
        if everything != FIRST | CONTINUE | LAST:
            for y in range(chain.labels):
                if allowed[y] & (FIRST | LAST) != FIRST | LAST:
                    first[y * LANES] = -INFINITY
    else:
        for y in range(chain.labels):
            score = batch.start[i, y] if batch.has_start else 0.0
            strange |= not isfinite(score)
            first[y * LANES] = score if allowed[y] & FIRST else -INFINITY
            strange |= not isfinite(token[y])
            ws.token[t, y, lane] = token[y]
            score = token[y] + batch.inner[i, y] if batch.has_inner else token[y]
            strange |= not isfinite(score)
            ws.step[t, y, lane] = score if allowed[y] & CONTINUE else -INFINITY
            score = batch.end[i, y] if batch.has_end else 0.0
            strange |= not isfinite(score)
            ws.end[t, y, lane] = score if allowed[y] & LAST else -INFINITY
    if batch.rows:
        ws.has_rows[t] |= batch.has_arc_rows[i]
        if not chain.one_token:
            _load_rows(rows_of(batch), ws, i, t, lane)
    ws.strange |= strange


cdef void _load_rows(Rows rows, Workspace ws, Py_ssize_t i, Py_ssize_t t, int lane) noexcept nogil:
    """Rows of one token of one lane: those on bodies."""
    cdef Py_ssize_t r, k
    cdef int target, part
    cdef double score
    cdef double* token = &ws.token[t, 0, lane]
    cdef double* step = &ws.step[t, 0, lane]
    cdef double* end = &ws.end[t, 0, lane]
    for r in range(rows.offsets[i], rows.offsets[i + 1]):
        target = rows.target[r]
        if target >= 0:
            continue  # weigh_rows
        target, score = ~target, rows.score[r]
        k, part = (target >> 2) * LANES, target & 3
        if part == PART_TOKEN:
            token[k] += score
            step[k] += score
        elif part == PART_INNER:
            step[k] += score
        elif part == PART_END:
            end[k] += score


cdef void _load_nothing(Chain chain, Workspace ws, Py_ssize_t t, int lane) noexcept nogil:
    """A token beyond the end of a lane's sequence."""
    cdef Py_ssize_t y, k
    for y in range(chain.labels):
        ws.first[t, y, lane] = -INFINITY
    if not chain.one_token:
        for k in range(chain.labels):
            ws.token[t, k, lane] = 0.0
            ws.step[t, k, lane] = ws.end[t, k, lane] = -INFINITY


cdef inline void _add_suffix(Workspace ws, Py_ssize_t t, Py_ssize_t k, Py_ssize_t suffix) noexcept nogil:
    (<lanes*> &ws.token[t, k, 0])[0] += (<lanes*> &ws.token[t, suffix, 0])[0]
    (<lanes*> &ws.step[t, k, 0])[0] += (<lanes*> &ws.step[t, suffix, 0])[0]
    (<lanes*> &ws.end[t, k, 0])[0] += (<lanes*> &ws.end[t, suffix, 0])[0]


cdef void lift_arcs(semiring* _, Chain chain, Batch batch, Workspace ws) noexcept nogil:
    """Lift the scores that are the same at every boundary, once per batch."""
    cdef Py_ssize_t i, k, p, y
    cdef lanes weight
    for k in range(chain.bodies):
        for i in range(batch.lengths):
            ws.length_weight[k, i] = exp(batch.body_length[k, i])
    for i in range(chain.taken.shape[0]):
        weight = lift(_, splat(batch.arc_const[chain.taken[i]]))
        ws.arc_weight[i] = (<double*> &weight)[0]
    if chain.dense:
        weight = zero(_)
        for p in range(chain.states):
            for y in range(chain.columns):
                i = chain.pair_place[p, y] if y < chain.labels else -1
                ws.pair_weight[p, y] = ws.arc_weight[i] if i >= 0 else (<double*> &weight)[0]


cdef void lift_starts(semiring* _, Chain chain, Batch batch, Workspace ws) noexcept nogil:
    """first[t, y] = exp(start_y(t) - shift), shift being the largest."""
    cdef Py_ssize_t t, y
    cdef lanes shift, score
    cdef lanes* first
    cdef flags allowed, faint
    for t in range(ws.tokens):
        first = <lanes*> &ws.first[t, 0, 0]
        shift = splat(-INFINITY)
        faint = differ(splat(0.0), splat(0.0))
        ws.has_faint[t] = False
        if semiring is Scaled:
            for y in range(chain.labels):
                shift = larger(first[y], shift)
        shift = finite_or_zero(shift)
        (<lanes*> &ws.first_scale[t, 0])[0] = shift
        if semiring is Scaled:
            for y in range(chain.labels):
                score = first[y]
                allowed = less(splat(-INFINITY), score)
                score = lanes_exp(score - shift)
                faint |= allowed & less(score, splat(LOST))
                first[y] = choose(allowed, larger(score, splat(FAINT)), splat(0.0))
            ws.has_faint[t] = any_of(faint)
    if semiring is Scaled:
        if ws.multiplies:
            _lift_bodies(chain, batch, ws)


cdef void _lift_bodies(Chain chain, Batch batch, Workspace ws) noexcept nogil:
    """exp(token - shift), exp(step - shift) and exp(end - end_shift), where the shifts are the largest of each token."""
    cdef Py_ssize_t t, k
    cdef bint same_steps = not (batch.has_inner or batch.has_inner_rows), no_ends = not (batch.has_end or batch.has_end_rows)
    cdef lanes shift, end_shift
    cdef lanes* token
    cdef lanes* step
    cdef lanes* end
    cdef lanes* lifted_token
    cdef lanes* lifted_step
    cdef lanes* lifted_end
    for t in range(ws.tokens):
        token, step, end = <lanes*> &ws.token[t, 0, 0], <lanes*> &ws.step[t, 0, 0], <lanes*> &ws.end[t, 0, 0]
        shift = end_shift = splat(-INFINITY)
        for k in range(chain.bodies):
            shift = larger(step[k], larger(token[k], shift))
            end_shift = larger(end[k], end_shift)
        shift, end_shift = finite_or_zero(shift), finite_or_zero(end_shift)
        (<lanes*> &ws.shift[t, 0])[0] = shift
        (<lanes*> &ws.end_shift[t, 0])[0] = end_shift
        lifted_token, lifted_step = <lanes*> &ws.lifted_token[t, 0, 0], <lanes*> &ws.lifted_step[t, 0, 0]
        lifted_end = <lanes*> &ws.lifted_end[t, 0, 0]
        for k in range(chain.bodies):
            lifted_token[k] = lanes_exp(token[k] - shift)
            if same_steps:
                lifted_step[k] = choose(less(splat(-INFINITY), step[k]), lifted_token[k], splat(0.0))
            else:
                lifted_step[k] = lanes_exp(step[k] - shift)
            if no_ends:
                lifted_end[k] = choose(less(splat(-INFINITY), end[k]), splat(1.0), splat(0.0))
            else:
                lifted_end[k] = lanes_exp(end[k] - end_shift)


cdef inline lanes* factor_row(Workspace ws, Py_ssize_t u) noexcept nogil:
    return <lanes*> &ws.factor[u if ws.keeps_factors else 0, 0, 0]


cdef void weigh_rows(semiring* _, Chain chain, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """factor[c] = exp of the rows that start at u, along the suffixes of c. Logs are added up before they are lifted: e^600 and
    e^-800 alone leave the range."""
    cdef Py_ssize_t i, c, r, s, z
    cdef int lane
    cdef lanes* own = <lanes*> &ws.own[0, 0]
    cdef lanes* summed = <lanes*> &ws.summed[0, 0]
    cdef lanes* factor = factor_row(ws, u)
    cdef Rows rows = rows_of(batch)
    cdef unsigned char* touched = &ws.touched[0]
    for c in range(chain.arcs):
        touched[c] = False
        own[c] = splat(0.0)
    for lane in range(ws.count):
        if u >= ws.length[lane]:
            continue
        i = ws.base[lane] + u
        for r in range(rows.offsets[i], rows.offsets[i + 1]):
            c = rows.target[r]
            if c >= 0:
                touched[c] = True
                (<double*> &own[c])[lane] += rows.score[r]
        for s in range(first_span(batch, ws, lane, i), ws.span_high[lane]):
            if batch.span_start[s] > i:
                break
            z = batch.span_pattern[s]
            if batch.span_end[s] == i + 1 and chain.pattern_body[z] < 0:
                c = chain.pattern_arc[z]
                touched[c] = True
                (<double*> &own[c])[lane] += batch.span_score[s]
    for c in range(chain.arcs):
        if chain.arc_suffix[c] < 0:
            summed[c] = own[c]
            factor[c] = lift(_, own[c])
        elif not touched[c]:
            summed[c] = summed[chain.arc_suffix[c]]
            factor[c] = factor[chain.arc_suffix[c]]
        else:
            summed[c] = summed[chain.arc_suffix[c]] + own[c]
            factor[c] = lift(_, summed[c])


cdef inline Py_ssize_t first_span(Batch batch, Workspace ws, int lane, Py_ssize_t start) noexcept nogil:
    """The first span of a lane's sequence that starts at this token of the batch or later."""
    cdef Py_ssize_t low = ws.span_low[lane], high = ws.span_high[lane], middle
    while low < high:
        middle = (low + high) // 2
        if batch.span_start[middle] < start:
            low = middle + 1
        else:
            high = middle
    return low


cdef void sum_entries(semiring* _, Chain chain, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Run the sum program on alpha_u: afterwards x[arc_register[c]] is m_u(c)."""
    cdef Py_ssize_t p, i, P = chain.states, n = chain.additions.shape[0]
    cdef lanes* x = <lanes*> &ws.x[0, 0]
    cdef lanes* alpha = <lanes*> &ws.alpha[u, 0, 0]
    cdef const int* addition = &chain.additions[0, 0] if n else NULL
    cdef lanes sum
    for p in range(P):
        x[p] = alpha[p]
    sum = x[P - 1]
    for i in range(n):
        if addition[1] != P + i - 1:  # else it is still in `sum`, which is much faster than to read it back
            sum = x[addition[1]]
        sum = plus(_, sum, x[addition[2]])
        x[P + i] = sum
        addition += 3


cdef inline flags within(Workspace ws, Py_ssize_t u) noexcept nogil:
    """The lanes whose sequence has a token u and has not been lost."""
    return less(splat(u), (<lanes*> &ws.extent[0])[0])


cdef void lose(Workspace ws, flags found) noexcept nogil:
    """Note the lanes in which a live value has been lost."""
    cdef int lane
    for lane in range(LANES):
        if (<long long*> &found)[lane]:
            ws.lost[lane] = True
            ws.extent[lane] = 0.0


cdef void forward(semiring* _, Chain chain, Batch batch, Workspace ws) noexcept nogil:
    """Fill alpha and entry of the loaded sequences and set their log partitions; sets `lost` where a live value was lost."""
    cdef Py_ssize_t v
    cdef int lane
    _start(_, chain, batch, ws)
    for lane in range(ws.count):
        if ws.length[lane] == 0:
            _finish(_, chain, batch, ws, lane)
    for v in range(1, ws.tokens + 1):
        _enter(_, chain, batch, ws, v - 1)
        if not chain.one_token:
            _leave(_, chain, batch, ws, v)
        for lane in range(ws.count):
            if ws.length[lane] == v:
                _finish(_, chain, batch, ws, lane)


cdef inline bint leaves_range(lanes largest, flags active) noexcept nogil:
    """Is it time to rescale?"""
    return any_of((less(splat(HIGH), largest) | less(largest, splat(LOW))) & active)


cdef void _start(semiring* _, Chain chain, Batch batch, Workspace ws) noexcept nogil:
    """alpha before the first token: all mass in the empty history, or as given."""
    cdef Py_ssize_t p
    cdef int lane
    cdef double high, score
    cdef lanes* alpha = <lanes*> &ws.alpha[0, 0, 0]
    (<lanes*> &ws.alpha_scale[0, 0])[0] = splat(0.0)
    for p in range(chain.states):
        alpha[p] = zero(_)
    if not batch.has_initial:
        alpha[0] = lift(_, splat(0.0))
        return
    for lane in range(ws.count):
        high = -INFINITY
        for p in range(chain.states):
            high = max(high, batch.initial[ws.sequence[lane], p])
        if semiring is not Scaled or high == -INFINITY:
            high = 0.0
        ws.alpha_scale[0, lane] = high
        for p in range(chain.states):
            score = batch.initial[ws.sequence[lane], p] - high
            if semiring is Scaled:
                ws.alpha[0, p, lane] = exp(score)
                if ws.alpha[0, p, lane] < LOST and score > -INFINITY:
                    ws.lost[lane] = True
                    ws.extent[lane] = 0.0
            else:
                ws.alpha[0, p, lane] = score


cdef void _finish(semiring* _, Chain chain, Batch batch, Workspace ws, int lane) noexcept nogil:
    """The log partition of a lane at the end of its sequence."""
    cdef Py_ssize_t p, v = ws.length[lane]
    cdef double last = 0.0, value, high = -INFINITY
    if batch.has_final and semiring is Scaled:
        last = -INFINITY
        for p in range(chain.states):
            last = max(last, batch.final[ws.sequence[lane], p])
        if last == -INFINITY:
            last = 0.0
    value = 0.0
    if semiring is Scaled:
        for p in range(chain.states):
            value += ws.alpha[v, p, lane] * (exp(batch.final[ws.sequence[lane], p] - last) if batch.has_final else 1.0)
        ws.log_partition[lane] = log(value) + ws.alpha_scale[v, lane] + last if value > 0.0 else -INFINITY
        if not value >= LOST:
            for p in range(chain.states):
                if ws.alpha[v, p, lane] != 0.0 and (not batch.has_final or batch.final[ws.sequence[lane], p] > -INFINITY):
                    ws.lost[lane] = True
                    ws.extent[lane] = 0.0
    else:
        for p in range(chain.states):
            high = max(high, ws.alpha[v, p, lane] + (batch.final[ws.sequence[lane], p] if batch.has_final else 0.0))
        if semiring is Log and high > -INFINITY:
            for p in range(chain.states):
                value += exp(ws.alpha[v, p, lane] + (batch.final[ws.sequence[lane], p] if batch.has_final else 0.0) - high)
            high += log(value)
        ws.log_partition[lane] = high


cdef void _enter(semiring* _, Chain chain, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """entry_u(o) = Σ_{c in o} m_u(c) ψ_u(c); in a CRF that is alpha_{u+1}."""
    cdef Py_ssize_t o, i, k
    cdef const int* register = _first_of(chain.taken_register)
    cdef const int* into = _first_of(chain.taken_open)
    cdef lanes* x = <lanes*> &ws.x[0, 0]
    cdef lanes* entry = <lanes*> &ws.alpha[u + 1, 0, 0] if chain.one_token else <lanes*> &ws.entry[u, 0, 0]
    cdef lanes* first = <lanes*> &ws.first[u, 0, 0]
    cdef const int* label = _first_of(chain.open_label)
    cdef lanes* scale = <lanes*> &ws.entry_scale[u, 0]
    cdef lanes value, shrink, least, grown = splat(0.0), high = splat(0.0), low = splat(VAST)
    cdef flags found, active
    cdef double* weight = &ws.arc_weight[0]
    if in_pairs(_, chain, ws, u):
        _enter_in_pairs(_, chain, ws, u, entry)
    else:
        sum_entries(_, chain, ws, u)
        for o in range(chain.opens):
            entry[o] = zero(_)
    if ws.has_rows[u]:
        weigh_rows(_, chain, batch, ws, u)
        _enter_with_rows(_, chain, ws, u, entry)
    elif not in_pairs(_, chain, ws, u):
        for i in range(chain.taken.shape[0]):
            o = into[i]
            entry[o] = plus(_, entry[o], times(_, x[register[i]], splat(weight[i])))
    if semiring is Scaled:
        if ws.has_faint[u]:
            lose(ws, _faint_entries(chain, ws, u, entry) & within(ws, u))
    for o in range(1 if chain.one_token else 0, chain.opens):  # nothing enters the empty history
        value = times(_, entry[o], first[label[o]])
        entry[o] = value
        if semiring is Scaled:
            high = larger(value, high)
            low = smaller(value, low)
    if semiring is Scaled:
        active = within(ws, u)
        least = splat(LOST) * larger(high, splat(1.0))
        found = ~less(high, splat(VAST)) & active
        if any_of(found):
            lose(ws, found)
        if any_of(~at_least(low, least) & active):
            if in_pairs(_, chain, ws, u):
                sum_entries(_, chain, ws, u)
            lose(ws, _lost_entries(chain, ws, u, entry, least) & active)
        if leaves_range(high, active):
            grown = exponent(high)
            shrink = power_of_two(-grown)
            for o in range(chain.opens):
                entry[o] = entry[o] * shrink
            grown = grown * splat(LN2)
    scale[0] = (<lanes*> &ws.alpha_scale[u, 0])[0] + (<lanes*> &ws.first_scale[u, 0])[0] + grown
    if chain.one_token:
        (<lanes*> &ws.alpha_scale[u + 1, 0])[0] = scale[0]
        return
    for k in range(chain.bodies):
        value = zero(_)
        for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
            value = larger(entry[o], value)
        (<lanes*> &ws.opening[u, k, 0])[0] = choose(
            less(zero(_), value), (<lanes*> &ws.token[u, k, 0])[0] + scale[0], splat(-INFINITY)
        )


cdef inline bint in_pairs(semiring* _, Chain chain, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Are the arcs at u taken pair by pair of labels?"""
    return semiring is not Log and chain.dense and not ws.has_rows[u]


cdef void _enter_in_pairs(semiring* _, Chain chain, Workspace ws, Py_ssize_t u, lanes* entry) noexcept nogil:
    """The sums of `_enter`, a row of the matrix of all pairs times alpha; four labels at a time stay in registers."""
    cdef Py_ssize_t p, y, columns = chain.columns
    cdef lanes* alpha = <lanes*> &ws.alpha[u, 0, 0]
    cdef const double* weight
    cdef lanes mass, a, b, c, d
    entry[0] = zero(_)
    for y in range(0, columns, 4):
        weight = &ws.pair_weight[0, y]
        a = b = c = d = zero(_)
        for p in range(chain.states):
            mass = alpha[p]
            a = plus(_, a, times(_, mass, splat(weight[0])))
            b = plus(_, b, times(_, mass, splat(weight[1])))
            c = plus(_, c, times(_, mass, splat(weight[2])))
            d = plus(_, d, times(_, mass, splat(weight[3])))
            weight += columns
        entry[y + 1] = a
        if y + 1 < chain.labels:
            entry[y + 2] = b
        if y + 2 < chain.labels:
            entry[y + 3] = c
        if y + 3 < chain.labels:
            entry[y + 4] = d


cdef void _enter_with_rows(semiring* _, Chain chain, Workspace ws, Py_ssize_t u, lanes* entry) noexcept nogil:
    """The sums of `_enter` where rows start; sets `lost` where digits are gone before a factor could lift them."""
    cdef Py_ssize_t i, o
    cdef lanes* x = <lanes*> &ws.x[0, 0]
    cdef lanes* factor = factor_row(ws, u)
    cdef lanes mass, weighed, rows
    cdef flags found = differ(splat(0.0), splat(0.0))
    for i in range(chain.taken.shape[0]):
        o = chain.taken_open[i]
        mass = x[chain.taken_register[i]]
        rows = factor[chain.taken[i]]
        weighed = times(_, mass, splat(ws.arc_weight[i]))
        if semiring is Scaled:  # a factor may be infinite where there is no mass
            found |= less(weighed, splat(LOST)) & less(splat(1.0), rows) & differ(mass, splat(0.0))
            entry[o] = entry[o] + choose(differ(mass, splat(0.0)), weighed * rows, splat(0.0))
        else:
            entry[o] = plus(_, entry[o], times(_, weighed, rows))
    if semiring is Scaled:
        if any_of(found & within(ws, u)):
            lose(ws, found & within(ws, u))


cdef flags _faint_entries(Chain chain, Workspace ws, Py_ssize_t u, lanes* entry) noexcept nogil:
    """Does mass enter a label whose start's weight is lost? A factor could lift it as if its digits were right."""
    cdef Py_ssize_t o
    cdef lanes weight
    cdef flags found = differ(splat(0.0), splat(0.0))
    for o in range(chain.opens):
        weight = (<lanes*> &ws.first[u, chain.open_label[o], 0])[0]
        found |= differ(entry[o], splat(0.0)) & differ(weight, splat(0.0)) & less(weight, splat(LOST))
    return found


cdef flags _lost_entries(Chain chain, Workspace ws, Py_ssize_t u, lanes* entry, lanes least) noexcept nogil:
    """Has an entry vanished, by itself or beside the largest, that an arc with mass and an allowed label leads to?"""
    cdef Py_ssize_t o, i
    cdef lanes* x = <lanes*> &ws.x[0, 0]
    cdef lanes* first = <lanes*> &ws.first[u, 0, 0]
    cdef flags found = differ(splat(0.0), splat(0.0)), small
    for o in range(chain.opens):
        small = ~at_least(entry[o], least) & differ(first[chain.open_label[o]], splat(0.0))
        if any_of(small):
            for i in range(chain.open_offsets[o], chain.open_offsets[o + 1]):
                found |= small & differ(x[chain.taken_register[chain.open_taken[i]]], splat(0.0))
    return found


cdef lanes _weigh_endings(Chain chain, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """exp of what `score_endings` gives less some scale, which is returned: the products of the tokens' factors, into ws.score."""
    cdef Py_ssize_t k, d, u, bound, last = batch.lengths - 1, K = chain.bodies
    cdef lanes high = splat(-INFINITY), run = (<lanes*> &ws.end_shift[v - 1, 0])[0], weight
    cdef lanes* relative = <lanes*> &ws.relative[0, 0]
    cdef lanes* scores
    cdef lanes* token
    cdef lanes* step
    cdef const double* length_weight
    for d in range(min(ws.widest, v)):
        u = v - 1 - d
        run = run + (<lanes*> &ws.shift[u, 0])[0]
        relative[d] = run + (<lanes*> &ws.entry_scale[u, 0])[0]
        high = larger(relative[d], high)
    for k in range(chain.bodies if ws.any_free else 0):
        if ws.free[k]:
            (<lanes*> &ws.tail_score[k, 0])[0] = _ending_tail(batch, ws, v, k)
            high = larger((<lanes*> &ws.tail_score[k, 0])[0], high)
    high = finite_or_zero(high)
    for d in range(min(ws.widest, v)):
        relative[d] = lanes_exp(relative[d] - high)
    for k in range(K):
        scores = <lanes*> &ws.score[ws.window_offset[k], 0]
        length_weight = &ws.length_weight[k, 0]
        token, step = <lanes*> &ws.lifted_token[v - 1, k, 0], <lanes*> &ws.lifted_step[v - 1, k, 0]
        weight = (<lanes*> &ws.lifted_end[v - 1, k, 0])[0]
        bound = min(ws.window[k], v)
        for d in range(bound):
            scores[d] = (weight * relative[d]) * (splat(length_weight[min(d, last)]) * token[-d * K])
            weight = weight * step[-d * K]
    return high


cdef inline lanes _ending_tail(Batch batch, Workspace ws, Py_ssize_t v, Py_ssize_t k) noexcept nogil:
    """Log score of the segments open for longer than the window that end at v, scale included."""
    cdef lanes ending = (<lanes*> &ws.tail_scale[v, k, 0])[0] + (<lanes*> &ws.end[v - 1, k, 0])[0]
    return ending + splat(batch.body_length[k, batch.lengths - 1])


cdef void score_endings(Chain chain, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Log scores, after the start, of all segments that end at v: one per body and length, and one per body for the tail.

    score[window_offset[k] + d - 1] = body(v-d, v, k) + scale of the entry; -inf for what is impossible or has no mass.
    """
    cdef Py_ssize_t k, d, e, s, i, bound, last = batch.lengths - 1, K = chain.bodies
    cdef int lane
    cdef lanes run, ending
    cdef lanes* scores
    cdef lanes* step
    cdef lanes* opening
    for k in range(K):
        scores = <lanes*> &ws.score[ws.window_offset[k], 0]
        ending = (<lanes*> &ws.end[v - 1, k, 0])[0]
        bound = min(ws.window[k], v)
        step = <lanes*> &ws.step[v - 1, k, 0]
        opening = <lanes*> &ws.opening[v - 1, k, 0]
        run = ending
        for d in range(bound):
            scores[d] = run + opening[-d * K] + splat(batch.body_length[k, min(d, last)])
            run = run + step[-d * K]
        if ws.any_free and ws.free[k]:
            (<lanes*> &ws.tail_score[k, 0])[0] = _ending_tail(batch, ws, v, k)
    for lane in range(ws.count):
        while ws.span_next[lane] < ws.span_high[lane]:
            s = batch.span_by_end[ws.span_next[lane]]
            if batch.span_end[s] != ws.base[lane] + v:
                break
            ws.span_next[lane] += 1
            k = chain.pattern_body[batch.span_pattern[s]]
            if k >= 0:
                d = batch.span_end[s] - batch.span_start[s]
                for i in range(chain.tree_offsets[k], chain.tree_offsets[k + 1]):
                    e = chain.tree[i]
                    if d <= ws.window[e]:
                        ws.score[ws.window_offset[e] + d - 1, lane] += batch.span_score[s]


cdef void _leave(semiring* _, Chain chain, Batch batch, Workspace ws, Py_ssize_t v) noexcept nogil:
    """alpha_v(q) = Σ_{o: target q} (Σ_d entry_{v-d}(o) exp body(v-d, v, k) + tail_v(o) exp(end + length))."""
    cdef Py_ssize_t k, d, o, p, low_open, high_open, bound, opens = chain.opens
    cdef int lane
    cdef lanes high, weight, grown, shrink
    cdef lanes largest = splat(0.0), low = splat(VAST)
    cdef lanes* alpha = <lanes*> &ws.alpha[v, 0, 0]
    cdef lanes* total = <lanes*> &ws.total[0, 0]
    cdef lanes* entry
    cdef lanes* scores
    cdef flags found, active
    if v == 1:
        for lane in range(ws.count):
            ws.span_next[lane] = ws.span_low[lane]
    if ws.any_free:
        _lengthen(_, chain, ws, v)
    if semiring is Scaled:
        if ws.multiplies:
            high = _weigh_endings(chain, batch, ws, v)
        else:
            score_endings(chain, batch, ws, v)
            high = _lift_segments(chain, ws, v)
    else:
        score_endings(chain, batch, ws, v)
        high = splat(0.0)
    for p in range(chain.states):
        alpha[p] = zero(_)
    for o in range(opens):
        total[o] = zero(_)
    for k in range(chain.bodies):
        scores = <lanes*> &ws.score[ws.window_offset[k], 0]
        bound = min(ws.window[k], v)
        entry = <lanes*> &ws.entry[v - 1, 0, 0]
        low_open, high_open = chain.body_offsets[k], chain.body_offsets[k + 1]
        for d in range(bound):
            weight = scores[d]
            for o in range(low_open, high_open):
                total[o] = plus(_, total[o], times(_, weight, entry[o]))
            entry -= opens
        if ws.any_free and ws.free[k]:
            entry = <lanes*> &ws.tail[v, 0, 0]
            weight = lift(_, (<lanes*> &ws.tail_score[k, 0])[0] - high)
            for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
                total[o] = plus(_, total[o], times(_, weight, entry[o]))
    for o in range(opens):
        alpha[chain.open_target[o]] = plus(_, alpha[chain.open_target[o]], total[o])
    grown = splat(0.0)
    if semiring is Scaled:
        for p in range(1, chain.states):
            largest = larger(alpha[p], largest)
            low = smaller(alpha[p], low)
        active = within(ws, v - 1)
        found = ~less(largest, splat(VAST)) & active
        if any_of(found):
            lose(ws, found)
        if any_of(~at_least(low, splat(LOST)) & active):
            score_endings(chain, batch, ws, v)
            lose(ws, _lost_alphas(chain, ws, v) & active)
        if leaves_range(largest, active):
            grown = exponent(largest)
            shrink = power_of_two(-grown)
            for p in range(chain.states):
                alpha[p] = alpha[p] * shrink
            grown = grown * splat(LN2)
    (<lanes*> &ws.alpha_scale[v, 0])[0] = high + grown


cdef lanes _lift_segments(Chain chain, Workspace ws, Py_ssize_t longest) noexcept nogil:
    """ws.score as weights beside the largest of them and of the tails, whose log score is returned.

    longest (int): lengths that there are at this boundary.
    """
    cdef Py_ssize_t k, d
    cdef lanes high = splat(-INFINITY)
    cdef lanes* scores
    for k in range(chain.bodies):
        scores = <lanes*> &ws.score[ws.window_offset[k], 0]
        for d in range(min(ws.window[k], longest)):
            high = larger(scores[d], high)
        if ws.any_free and ws.free[k]:
            high = larger((<lanes*> &ws.tail_score[k, 0])[0], high)
    high = finite_or_zero(high)
    for k in range(chain.bodies):
        scores = <lanes*> &ws.score[ws.window_offset[k], 0]
        for d in range(min(ws.window[k], longest)):
            scores[d] = lanes_exp(scores[d] - high)
    return high


cdef flags _lost_alphas(Chain chain, Workspace ws, Py_ssize_t v) noexcept nogil:
    """Has a state vanished that an allowed segment with mass leads to? Before scaling, none is much above 1."""
    cdef Py_ssize_t k, d, o
    cdef lanes* alpha = <lanes*> &ws.alpha[v, 0, 0]
    cdef lanes* scores
    cdef flags found = differ(splat(0.0), splat(0.0)), small, possible
    for k in range(chain.bodies):
        scores = <lanes*> &ws.score[ws.window_offset[k], 0]
        for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
            small = ~at_least(alpha[chain.open_target[o]], splat(LOST))
            if not any_of(small):
                continue
            for d in range(min(ws.window[k], v)):
                possible = less(splat(-INFINITY), scores[d])
                found |= small & possible & differ((<lanes*> &ws.entry[v - 1 - d, o, 0])[0], splat(0.0))
            if ws.any_free and ws.free[k]:
                possible = less(splat(-INFINITY), (<lanes*> &ws.tail_score[k, 0])[0])
                found |= small & possible & differ((<lanes*> &ws.tail[v, o, 0])[0], splat(0.0))
    return found


cdef lanes late_entry(Workspace ws, Py_ssize_t v, Py_ssize_t k) noexcept nogil:
    """Log score up to v of the segments that were open for the whole window at v - 1, scale included; -inf if there are none."""
    cdef Py_ssize_t t, u = v - 1 - ws.window[k]
    cdef lanes run
    if u < 0:
        return splat(-INFINITY)
    run = (<lanes*> &ws.opening[u, k, 0])[0]
    for t in range(u + 1, v):
        run = run + (<lanes*> &ws.step[t, k, 0])[0]
    return run


cdef flags merge(
    semiring* _, lanes* out, lanes* out_scale, lanes* a, lanes a_scale, lanes* b, lanes b_scale, Py_ssize_t low, Py_ssize_t high
) noexcept nogil:
    """out(o) = a(o) exp a_scale + b(o) exp b_scale for low <= o < high, with a scale of its own; -inf for no mass.

    RETURNS (flags): the lanes in which a live value has been lost.
    """
    cdef Py_ssize_t o
    cdef lanes top = larger(a_scale, b_scale), shift, less_weight, weight_a, weight_b, largest = splat(0.0), from_a, from_b
    cdef flags has_a = less(splat(-INFINITY), a_scale), has_b = less(splat(-INFINITY), b_scale), source
    cdef flags found = differ(splat(0.0), splat(0.0))
    if semiring is Scaled:  # the larger of both weights is 1; nan where both have no mass
        less_weight = lanes_exp(choose(less(a_scale, b_scale), a_scale - b_scale, b_scale - a_scale))
        weight_a = choose(less(a_scale, b_scale), less_weight, splat(1.0))
        weight_b = choose(less(a_scale, b_scale), splat(1.0), less_weight)
    else:
        weight_a = a_scale
        weight_b = b_scale
    for o in range(low, high):
        from_a = choose(has_a, times(_, weight_a, a[o]), zero(_))
        from_b = choose(has_b, times(_, weight_b, b[o]), zero(_))
        if semiring is Scaled:
            source = (has_a & differ(a[o], splat(0.0))) | (has_b & differ(b[o], splat(0.0)))
            out[o] = from_a + from_b
            largest = larger(out[o], largest)
            found |= source & ~at_least(out[o], splat(LOST))
        else:
            out[o] = plus(_, from_a, from_b)
    if semiring is Scaled:
        shift = exponent(largest)
        weight_a = power_of_two(-shift)
        for o in range(low, high):
            out[o] = out[o] * weight_a
        out_scale[0] = choose(less(splat(0.0), largest), top + shift * splat(LN2), splat(-INFINITY))
    else:
        out_scale[0] = choose(has_a | has_b, splat(0.0), splat(-INFINITY))
    return found


cdef void _lengthen(semiring* _, Chain chain, Workspace ws, Py_ssize_t v) noexcept nogil:
    """tail_v(o): segments open at v for more than the window; sets `lost` where one that is open has been lost."""
    cdef Py_ssize_t k, o, start
    cdef lanes old, late
    cdef lanes* entry
    cdef lanes* tail = <lanes*> &ws.tail[v, 0, 0]
    cdef lanes* scale
    cdef flags found = differ(splat(0.0), splat(0.0))
    for k in range(chain.bodies):
        if not ws.free[k]:
            continue
        scale = <lanes*> &ws.tail_scale[v, k, 0]
        start = v - 1 - ws.window[k]
        if start < 0:
            scale[0] = splat(-INFINITY)
            for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
                tail[o] = zero(_)
            continue
        if ws.block[k] > 0:
            found |= _lengthen_up_to_limit(_, chain, ws, v, k, start)
            continue
        late = late_entry(ws, v, k)
        old = splat(-INFINITY)
        if v > 1:
            old = (<lanes*> &ws.tail_scale[v - 1, k, 0])[0] + (<lanes*> &ws.step[v - 1, k, 0])[0]
        entry = <lanes*> &ws.entry[start, 0, 0]
        found |= merge(
            _, tail, scale, <lanes*> &ws.tail[v - 1, 0, 0], old, entry, late, chain.body_offsets[k], chain.body_offsets[k + 1]
        )
    if semiring is Scaled:
        if any_of(found & within(ws, v - 1)):
            lose(ws, found & within(ws, v - 1))


cdef flags _lengthen_up_to_limit(
    semiring* _, Chain chain, Workspace ws, Py_ssize_t v, Py_ssize_t k, Py_ssize_t start
) noexcept nogil:
    """tail_v(o) of a label with a limit: the starts of this block so far, and the last ones of the block before."""
    cdef Py_ssize_t u, place, low = chain.body_offsets[k], high = chain.body_offsets[k + 1], D = ws.block[k]
    cdef lanes* prefix = <lanes*> &ws.prefix[0, 0]
    cdef lanes* scale = <lanes*> &ws.prefix_scale[k, 0]
    cdef lanes* run = <lanes*> &ws.run[k, 0]
    cdef lanes* suffix
    cdef lanes* longer
    cdef lanes step = (<lanes*> &ws.step[v - 1, k, 0])[0], late, score
    cdef flags found = differ(splat(0.0), splat(0.0))
    run[0] = run[0] + step
    if start % D == 0:
        scale[0] = splat(-INFINITY)
        run[0] = step if start > 0 else splat(-INFINITY)
        (<lanes*> &ws.suffix_scale[D, k, 0])[0] = splat(-INFINITY)
        score = splat(0.0)
        if start > 0:
            for u in range(start, v - 1):
                score = score + (<lanes*> &ws.step[u, k, 0])[0]
            for u in range(start - 1, start - 1 - D, -1):
                place = u - (start - D)
                suffix = <lanes*> &ws.suffix[place, 0, 0]
                longer = <lanes*> &ws.suffix[place + 1, 0, 0]
                found |= merge(
                    _,
                    suffix,
                    <lanes*> &ws.suffix_scale[place, k, 0],
                    longer,
                    (<lanes*> &ws.suffix_scale[place + 1, k, 0])[0],
                    <lanes*> &ws.entry[u, 0, 0],
                    score + (<lanes*> &ws.opening[u, k, 0])[0],
                    low,
                    high,
                )
                score = score + (<lanes*> &ws.step[u, k, 0])[0]
    late = late_entry(ws, v, k)
    found |= merge(_, prefix, scale, prefix, scale[0] + step, <lanes*> &ws.entry[start, 0, 0], late, low, high)
    place = start % D + 1  # of v - L in the block before; D if that is none of its places
    suffix = <lanes*> &ws.suffix[place, 0, 0]
    score = (<lanes*> &ws.suffix_scale[place, k, 0])[0] + run[0]
    found |= merge(_, <lanes*> &ws.tail[v, 0, 0], <lanes*> &ws.tail_scale[v, k, 0], prefix, scale[0], suffix, score, low, high)
    return found
