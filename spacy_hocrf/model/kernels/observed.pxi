# Scores of observations that are scored only once, as in prediction: their places are looked up token by
# token instead of being sorted first (`sort_cells`). Sums have the same order as in scores.pxi.

cdef enum:
    EARLIER = 4  # entries are prefetched so many tokens before they are looked up (measured)

cdef struct Entry:  # a row of `CompiledIndex.entries`
    int kind, place, cell, cells

cdef struct Observed:
    Py_ssize_t tokens, labels, size, width  # N, Y, K, and K·Y rounded up, as in `Sorted`
    bint far
    int kind
    const long long* offsets
    const int* ids
    const float* values
    const Entry* entries
    const unsigned short* cell_label

cdef struct Lookahead:  # a ring of AHEAD + 1 tokens with their observations, at most `most` of each
    Py_ssize_t most
    Py_ssize_t rows[AHEAD + 1]  # number of observations with a row
    Py_ssize_t others[AHEAD + 1]  # number of observations with cells
    int* row_place  # [AHEAD + 1, most] places of the rows
    float* row_value
    int* other  # [AHEAD + 1, most] indices into `ids` of the observations with cells


def add_observed_scores_into(
    parts, rows, int kind, index, const double[::1] placed not None, bint anew=False
):
    """Add scores of unsorted observations, bit for bit as `add_cell_scores_into` does.

    parts (Sequence[Optional[float64 [N, Y]]]), anew (bool): as for `add_cell_scores_into`.
    rows (Rows): observations of N tokens; only those of kind `kind` are used.
    index (CompiledIndex): places of their features. placed (float64 [S]): the weights, by place.
    """
    cdef Py_ssize_t t, most = 0
    cdef Observed observed
    cdef Scores scores
    cdef const long long[::1] offsets = rows.offsets
    cdef const int[::1] ids = rows.ids
    cdef const float[::1] values = rows.values
    cdef const int[:, ::1] entries = index.entries
    cdef const unsigned short[::1] labels = index.cell_label
    shape = next(part.shape for part in parts if part is not None)
    if not shape[0] or not shape[1]:
        return
    assert len(parts) <= MAX_PARTS and entries.shape[1] == 4 and offsets.shape[0] == shape[0] + 1
    observed.tokens, observed.labels, observed.size = shape[0], shape[1], len(parts)
    observed.width = (observed.size * observed.labels + 7) // 8 * 8
    observed.far = placed.shape[0] > FAR
    observed.kind, observed.offsets, observed.ids = kind, &offsets[0], NULL
    if ids.shape[0]:
        observed.ids = &ids[0]
    observed.values = &values[0] if values is not None and values.shape[0] else NULL
    observed.entries = <const Entry*> &entries[0, 0] if entries.shape[0] else NULL
    observed.cell_label = &labels[0] if labels.shape[0] else NULL
    scores = _scores_of(parts, observed.tokens, observed.labels, anew)
    for t in range(observed.tokens):
        most = max(most, offsets[t + 1] - offsets[t])
    cdef double[::1] sums = np.empty(observed.width)
    cdef Py_ssize_t room = max((AHEAD + 1) * most, 1)
    cdef int[:, ::1] numbers = np.empty((2, room), dtype=np.int32)
    cdef float[::1] row_values = np.empty(room, dtype=np.float32)
    cdef Lookahead ahead
    ahead.most, ahead.row_place, ahead.other = most, &numbers[0, 0], &numbers[1, 0]
    ahead.row_value = &row_values[0]
    cdef const double* places = &placed[0] if placed.shape[0] else NULL
    with nogil:
        if observed.values == NULL:
            _add_observed_scores_into(<char*> NULL, &scores, &sums[0], places, ahead, observed)
        else:
            _add_observed_scores_into(<float*> NULL, &scores, &sums[0], places, ahead, observed)


cdef void _add_observed_scores_into(
    value_type* _, Scores* scores, own sums, const double* placed, Lookahead ahead, Observed observed
) noexcept nogil:
    """Sum the scores of each token; its observations are looked up, and prefetched, AHEAD tokens before."""
    cdef Py_ssize_t t, r, Y = observed.labels, K = observed.size, W = observed.width, at
    cdef const float* values
    for t in range(-AHEAD, observed.tokens):
        if t + AHEAD < observed.tokens:
            _look_up(placed, t + AHEAD, &ahead, observed)
        if t < 0:
            continue
        at = t % (AHEAD + 1)
        r = at * ahead.most
        values = NULL if value_type is char else ahead.row_value
        sum_rows(sums, W, placed, NULL, ahead.row_place, 1, values, r, r + ahead.rows[at])
        if K == 3:
            _add_others_into(_, sums, placed, ahead, at, observed, 3)
        elif K == 2:
            _add_others_into(_, sums, placed, ahead, at, observed, 2)
        elif K == 1:
            _add_others_into(_, sums, placed, ahead, at, observed, 1)
        else:
            _add_others_into(_, sums, placed, ahead, at, observed, K)
        _write_scores(scores, sums, t, Y, K)


cdef inline void _look_up(
    const double* placed, Py_ssize_t t, Lookahead* ahead, Observed observed
) noexcept nogil:
    """Write the observations of token t to `ahead`, and prefetch their weights if they are far."""
    cdef Py_ssize_t i, y, at = t % (AHEAD + 1)
    cdef Py_ssize_t row = at * ahead.most, other = row
    cdef Entry entry
    if observed.far and t + EARLIER < observed.tokens:
        for i in range(observed.offsets[t + EARLIER], observed.offsets[t + EARLIER + 1]):
            hocrf_prefetch(observed.entries + observed.ids[i])
    for i in range(observed.offsets[t], observed.offsets[t + 1]):
        entry = observed.entries[observed.ids[i]]
        if entry.kind != observed.kind or entry.place < 0:
            continue
        if observed.far:
            hocrf_prefetch(placed + entry.place)
        if entry.cells:
            ahead.other[other] = <int> i
            other += 1
            continue
        if observed.far and observed.width <= NARROW:
            for y in range(8, observed.width, 8):
                hocrf_prefetch(placed + entry.place + y)
        ahead.row_place[row] = entry.place
        if observed.values != NULL:
            ahead.row_value[row] = observed.values[i]
        row += 1
    ahead.rows[at], ahead.others[at] = row - at * ahead.most, other - at * ahead.most


cdef inline void _add_others_into(
    value_type* _, own sums, const double* placed, Lookahead ahead, Py_ssize_t at, Observed observed,
    Py_ssize_t K
) noexcept nogil:
    """Add the cells of one token to `sums`, observation by observation; `at` is its place in the ring."""
    cdef Py_ssize_t i, c, k, y, Y = observed.labels
    cdef Entry entry
    cdef const double* a
    cdef double value
    for i in range(at * ahead.most, at * ahead.most + ahead.others[at]):
        entry = observed.entries[observed.ids[ahead.other[i]]]
        value = value_at(_, observed.values, ahead.other[i])
        a = placed + entry.place
        for c in range(entry.cell, entry.cell + entry.cells):
            y = observed.cell_label[c]
            for k in range(K):
                sums[k * Y + y] += value * a[k]
            a += K
