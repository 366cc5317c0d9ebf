# Views of the kernels' arguments: an automaton, the log potentials of a batch, the arrays for counts.


cdef inline lanes* at1(double[:, ::1] buffer, Py_ssize_t i) noexcept nogil:
    """Pointer to row i of a buffer [n, LANES]; the rows after it follow."""
    return <lanes*> &buffer[i, 0]


cdef inline lanes* at2(double[:, :, ::1] buffer, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Pointer to the lanes of element (i, j) of a buffer [m, n, LANES]; (i, j + 1) comes next."""
    return <lanes*> &buffer[i, j, 0]


cdef class Automaton:
    """Views of an automaton; see automaton.Automaton for the extents."""
    cdef Py_ssize_t states, arcs, registers, bodies, opens, labels
    cdef Py_ssize_t copies, stride  # arcs c + i stride are copies of arc c < stride
    cdef Py_ssize_t least_tail  # a label with a limit has a tail if this many lengths are beyond its window
    cdef readonly bint one_token  # every segment has one token: a CRF
    cdef bint endless  # has some body's label no limit?
    cdef Py_ssize_t longest  # the largest limit of a body's label
    cdef const int[::1] limits, state_suffix, state_offsets, state_arcs
    cdef const int[::1] arc_label, arc_suffix, arc_target, arc_open, arc_register
    cdef const int[:, ::1] additions
    cdef const int[::1] pattern_arc, pattern_body
    cdef const unsigned char[::1] pattern_folded
    cdef const int[::1] body_label, body_suffix, body_offsets, open_target, open_label
    # [n] the arcs that are not forbidden, sorted by the number of arcs of their register, then by register:
    # loops over one register's arcs have the same length many times in a row, which the processor predicts
    cdef const int[::1] taken, taken_register, taken_open
    cdef const int[::1] entered, entered_offsets  # [m] their registers, [m + 1] where the arcs of each begin
    # [O + 1], [n], [n] the same arcs by open state: offsets, indices into `taken`, registers
    cdef const int[::1] open_offsets, open_taken, open_register
    cdef const int[::1] tree_offsets, tree  # [K + 1], the bodies that end in each body, itself included

    def __init__(self, automaton, least_tail):
        self.least_tail = least_tail
        self.states = len(automaton.states)
        self.arcs = len(automaton.arcs)
        self.copies, self.stride = automaton.copies, len(automaton.arcs) // automaton.copies
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
        self.arc_target = automaton.arc_target
        self.arc_open = automaton.arc_open
        self.arc_register = automaton.arc_register
        self.additions = automaton.additions
        self.pattern_arc = automaton.pattern_arc
        self.pattern_body = automaton.pattern_body
        self.pattern_folded = automaton.pattern_folded
        self.body_label = automaton.body_label
        limits = automaton.limits[automaton.body_label]
        self.endless, self.longest = bool((limits == 0).any()), int(limits.max(initial=0))
        self.body_suffix = automaton.body_suffix
        self.body_offsets = automaton.body_offsets
        self.open_target = automaton.open_target
        open_of, self.open_label = automaton.arc_open, automaton.open_label
        if self.one_token:  # a segment ends after its only token: its open state is the next forward state
            open_of = automaton.arc_target
            last_labels = [state[len(state) - 1] if state else 0 for state in automaton.states]
            self.open_label = np.array(last_labels, dtype=np.int32)
            self.opens = self.states
        register = automaton.arc_register[automaton.open_arcs]
        arcs_of = np.bincount(register, minlength=self.registers)
        taken = automaton.open_arcs[np.lexsort((register, arcs_of[register]))]
        self.taken = taken
        self.taken_register = automaton.arc_register[taken]
        self.taken_open = open_of[taken]
        begins = np.flatnonzero(np.diff(self.taken_register, prepend=-1))
        self.entered = np.asarray(self.taken_register)[begins]
        self.entered_offsets = np.append(begins, len(taken)).astype(np.int32)
        # by open state, then by register: unlike `taken`, independent of how many arcs a register has
        self.open_taken = np.lexsort((self.taken_register, self.taken_open)).astype(np.int32)
        self.open_register = automaton.arc_register[taken][self.open_taken]
        bounds = np.searchsorted(np.sort(open_of[taken]), np.arange(self.opens + 1))
        self.open_offsets = bounds.astype(np.int32)
        self.tree_offsets = automaton.tree_offsets
        self.tree = automaton.tree


cdef class Batch:
    """Views of the log potentials of a batch; see problem.Problem."""
    cdef Py_ssize_t sequences, rows, spans, lengths
    cdef bint has_start, has_end, has_inner, has_initial, has_final, has_end_rows, has_inner_rows
    cdef const long long[::1] offsets, first  # [D + 1], and [D] first token of each, as they may overlap
    cdef const long long[:, ::1] own  # [D, 2] boundaries of each sequence's own part, see stretches.py
    cdef const double[:, ::1] start, end, token, inner
    cdef const unsigned char[:, ::1] allowed
    cdef const long long[::1] row_offsets
    cdef const int[::1] row_target
    cdef const long long[::1] body_rows  # [N] see `Rows`
    cdef const double[::1] row_score
    cdef const unsigned char[::1] has_arc_rows
    cdef const long long[::1] span_offsets  # [D + 1]
    cdef const long long[::1] span_start, span_end
    cdef const int[::1] span_pattern
    cdef const double[::1] span_score
    cdef const long long[::1] span_by_end  # [S] the spans in order of their end
    cdef const double[::1] arc_const  # [C] Σ const over the patterns that end the arc
    cdef const double[:, ::1] body_length  # [K, M] length score of a body, its suffixes included
    # [D, P] log alpha before the first token, log beta after the last
    cdef const double[:, ::1] initial, final

    def __init__(self, problem):
        potentials = problem.potentials
        self.offsets, self.first, self.own = problem.offsets, problem.first, problem.own
        self.sequences = self.offsets.shape[0] - 1
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
        self.has_arc_rows = problem.has_arc_rows
        self.has_end_rows, self.has_inner_rows = problem.has_end_rows, problem.has_inner_rows
        self.span_offsets = problem.span_offsets
        if self.rows:  # most models have neither rows nor spans, and making a view takes time
            self.row_target, self.body_rows = problem.row_target, problem.body_rows
            self.row_score = potentials.row_score
        if self.spans:
            self.span_start, self.span_end = potentials.span_start, potentials.span_end
            self.span_pattern = potentials.span_pattern
            self.span_score, self.span_by_end = potentials.span_score, problem.span_by_end
        self.arc_const = problem.arc_const
        self.body_length = problem.body_length
        self.has_initial = problem.initial is not None
        self.has_final = problem.final is not None
        if self.has_initial:
            self.initial = problem.initial
        if self.has_final:
            self.final = problem.final


cdef class Counts:
    """Views of the arrays that get the expected counts of tokens, rows and spans; see types.Expectations."""
    cdef double[:, ::1] start, end, token, inner
    cdef bint wants_start, wants_end, wants_inner
    cdef double[::1] row, span
    cdef bint weighted
    cdef const double[::1] log_weight  # [D] log of each sequence's weight, if they are weighted

    def __init__(self, expected, log_weight):
        self.wants_start = expected.start is not None
        self.wants_end = expected.end is not None
        self.wants_inner = expected.inner is not None
        self.token = expected.token
        self.start = expected.start if self.wants_start else expected.token
        self.end = expected.end if self.wants_end else expected.token
        self.inner = expected.inner if self.wants_inner else expected.token
        self.row = expected.row
        self.span = expected.span
        self.weighted = log_weight is not None
        if self.weighted:
            self.log_weight = log_weight


cdef inline const int* _first_of(const int[::1] values) noexcept nogil:
    """Pointer to the first element of an array; NULL if it is empty."""
    return &values[0] if values.shape[0] else NULL


cdef struct Rows:
    const long long* offsets
    const long long* first_of_body  # the first row of each token that belongs to a body
    const int* target  # an arc, or ~(4 · body + part)
    const double* score


cdef inline Rows rows_of(Batch batch) noexcept nogil:
    """The rows of a batch as plain pointers: the compiler must assume that a store of lanes may change a
    view, and would load it again for every row.
    """
    cdef Rows rows
    rows.offsets = &batch.row_offsets[0]
    rows.first_of_body = &batch.body_rows[0] if batch.rows else NULL
    rows.target = &batch.row_target[0] if batch.rows else NULL
    rows.score = &batch.row_score[0] if batch.rows else NULL
    return rows


cdef inline Py_ssize_t first_span(Batch batch, Workspace ws, int lane, Py_ssize_t start) noexcept nogil:
    """The first span of a lane's sequence that starts at token `start` of the batch or later."""
    cdef Py_ssize_t low = ws.span_low[lane], high = ws.span_high[lane], middle
    while low < high:
        middle = (low + high) // 2
        if batch.span_start[middle] < start:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline double final_score(Batch batch, Workspace ws, int lane, Py_ssize_t p) noexcept nogil:
    """Log beta of state p after the last token of a lane's sequence; 0 if the batch has no final scores."""
    return batch.final[ws.sequence[lane], p] if batch.has_final else 0.0
