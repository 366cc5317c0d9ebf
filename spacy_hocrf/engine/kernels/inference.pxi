# The functions for Python: log Z, expected counts and state scores of chosen sequences, LANES at a time.


cdef void run(
    bint logs, Automaton fsa, Batch batch, Workspace ws, bint both, Counts counts, bint counting
) noexcept nogil:
    """Run the forward recurrence on the loaded sequences and, if `both`, the backward recurrence.

    logs (bool): in log space, which only the build with one lane has, else in scaled space.
    counting (bool): the backward recurrence also writes the counts of labels, rows and spans.
    """
    if LANES == 1 and logs:  # compiled away elsewhere
        run_forward(LOG, fsa, batch, ws)
        if both:
            backward(LOG, fsa, batch, ws, counts, counting)
    else:
        run_forward(SCALED, fsa, batch, ws)
        if both:
            backward(SCALED, fsa, batch, ws, counts, counting)


def log_partitions(
    Workspace ws not None,
    Batch batch not None,
    const long long[::1] chosen not None,
    space,
    double[::1] out not None,
):
    """Compute log Z of chosen sequences, LANES at a time in their order, into `out`, float64 [D].

    chosen (int64 [n]): numbers of the sequences.
    space (str): "scaled" or "log".
    RETURNS (tuple[list[int], bool]): sequences in which a value was lost, and whether some
        score is not finite.
    """
    cdef Automaton fsa = ws.fsa
    cdef Counts counts = None
    cdef Py_ssize_t group = 0
    cdef int lane
    cdef bint logs = space == "log"
    cdef unsigned char[::1] lost = np.zeros(batch.sequences, dtype=np.uint8)
    ws.reserve(_longest(batch, chosen), batch.lengths, False, False)
    ws.not_finite = False
    with nogil:
        while group < chosen.shape[0]:
            load(fsa, batch, ws, &chosen[group], <int> min(LANES, chosen.shape[0] - group))
            run(logs, fsa, batch, ws, False, counts, False)
            for lane in range(ws.count):
                out[ws.sequence[lane]] = ws.log_partition[lane]
                lost[ws.sequence[lane]] = ws.lost[lane]
            group += LANES
    return _places_of(lost), ws.not_finite


def count(
    Workspace ws not None,
    Batch batch not None,
    Counts counts not None,
    const long long[::1] chosen not None,
    space,
    double[::1] out not None,
    double[::1] arc not None,
    double[:, ::1] body_length not None,
    edges,
):
    """Compute log Z and expected counts of chosen sequences, LANES at a time in their order.

    chosen (int64 [n]): numbers of the sequences. space (str): "scaled" or "log".
    out (float64 [D]), counts (Counts): get log Z and the counts of these sequences; those of a lost
        sequence are meaningless.
    arc (float64 [C]), body_length (float64 [K, M]): the counts of arcs, and of each body's segments
        by length, are added to them.
    edges (Optional[Edges]): gets alpha and beta where the own part of each sequence begins and ends.
    RETURNS (tuple[list[int], bool]): sequences in which a value was lost, and whether some
        score is not finite.
    """
    cdef Automaton fsa = ws.fsa
    cdef Py_ssize_t group = 0
    cdef int lane
    cdef bint logs = space == "log"
    cdef unsigned char[::1] lost = np.zeros(batch.sequences, dtype=np.uint8)
    ws.reserve(_longest(batch, chosen), batch.lengths, True, edges is not None)
    ws.not_finite = False
    take_edges(ws, edges)
    _clear_sums(fsa, batch, ws)
    with nogil:
        while group < chosen.shape[0]:
            load(fsa, batch, ws, &chosen[group], <int> min(LANES, chosen.shape[0] - group))
            run(logs, fsa, batch, ws, True, counts, True)
            _collect(fsa, batch, ws, counts)
            for lane in range(ws.count):
                out[ws.sequence[lane]] = ws.log_partition[lane]
                lost[ws.sequence[lane]] = ws.lost[lane]
                if ws.has_edges:
                    note_edges(fsa, batch, ws, lane, 0, ws.length[lane], True)
            group += LANES
        _add_sums_into(fsa, batch, ws, arc, body_length)
    return _places_of(lost), ws.not_finite


def state_scores(
    Workspace ws not None,
    Batch batch not None,
    const long long[::1] chosen not None,
    space,
    double[:, ::1] log_alpha not None,
    double[:, ::1] log_beta not None,
):
    """Compute log alpha and log beta at every boundary of chosen sequences, into float64 [N + D, P].

    chosen (int64 [n]): numbers of the sequences. space (str): "scaled" or "log".
    RETURNS (tuple[list[int], bool]): sequences in which a value was lost, and whether some
        score is not finite.
    """
    cdef Automaton fsa = ws.fsa
    cdef Py_ssize_t group, v, p, row
    cdef int lane
    cdef bint logs = space == "log"
    cdef Counts counts = None
    ws.reserve(_longest(batch, chosen), batch.lengths, True, True)
    ws.not_finite = False
    _clear_sums(fsa, batch, ws)
    lost = []
    for group in range(0, chosen.shape[0], LANES):
        with nogil:
            load(fsa, batch, ws, &chosen[group], <int> min(LANES, chosen.shape[0] - group))
            run(logs, fsa, batch, ws, True, counts, False)
            for lane in range(ws.count):
                for v in range(ws.length[lane] + 1):
                    row = ws.base[lane] + ws.sequence[lane] + v
                    for p in range(fsa.states):
                        if logs:
                            log_alpha[row, p], log_beta[row, p] = ws.alpha[v, p, lane], ws.beta[v, p, lane]
                        else:
                            log_alpha[row, p] = log(ws.alpha[v, p, lane]) + ws.alpha_scale[v, lane]
                            log_beta[row, p] = log(ws.beta[v, p, lane]) + ws.beta_scale[v, lane]
        for lane in range(ws.count):
            if ws.lost[lane]:
                lost.append(ws.sequence[lane])
    return lost, ws.not_finite


cdef Py_ssize_t _longest(Batch batch, const long long[::1] chosen):
    cdef Py_ssize_t i, longest = 0
    for i in range(chosen.shape[0]):
        longest = max(longest, batch.offsets[chosen[i] + 1] - batch.offsets[chosen[i]])
    return longest


cdef list _places_of(const unsigned char[::1] flags):
    """The indices of the flags that are set."""
    cdef Py_ssize_t i
    return [i for i in range(flags.shape[0]) if flags[i]]
