# Scores of observations with features on single labels, and the transpose: expected counts → gradient.
#
# The score of a dense entry (part, token, label) is Σ weight · value over the features of the token's
# observations. Observations of one kind have features at the same K parts of a segment; the weights of one
# label at these parts are next to each other in a *cell*. An observation with features on many labels has
# a *row* instead: all labels of the first part, then all of the next part, with zeros where it has no
# feature, so that it can be added as one vector. `model/placement.py` lays out rows and cells; the size and
# the place of a row are multiples of 8, so that it consists of whole vectors of any width. The functions
# here need sorted observations (`sort_cells`); those that are scored only once are not, see observed.pxi.

cdef extern from *:
    """
    typedef double *__restrict hocrf_own;
    #ifdef _MSC_VER
    #define hocrf_prefetch(p)
    #else  /* without the asm, gcc removes calls of functions that do nothing but prefetch */
    #define hocrf_prefetch(p) do { __builtin_prefetch(p); __asm__ __volatile__(""); } while (0)
    #endif
    """
    # a pointer without aliases, so that the compiler can vectorise loops that write through it
    ctypedef double* own "hocrf_own"
    void hocrf_prefetch(const void*) noexcept nogil

ctypedef fused value_type:  # of the observations' values; char if there is no array, as all are 1
    char
    float

cdef extern from "rows.h" nogil:
    Py_ssize_t place_of(const unsigned short* short_rows, const int* rows, Py_ssize_t r)
    void sum_rows(
        double* sums,
        Py_ssize_t width,
        const double* placed,
        const unsigned short* short_rows,
        const int* rows,
        Py_ssize_t step,
        const float* values,
        Py_ssize_t begin,
        Py_ssize_t end,
    )
    void count_rows(
        const double* counts,
        Py_ssize_t width,
        double* placed,
        const unsigned short* short_rows,
        const int* rows,
        Py_ssize_t step,
        const float* values,
        Py_ssize_t begin,
        Py_ssize_t end,
    )

cdef enum:
    MAX_PARTS = 4
    AHEAD = 2  # rows are prefetched so many tokens ahead (measured)
    CELLS_AHEAD = 16  # and cells so many cells ahead (measured)
    FAR = 1 << 18  # more weights than this do not fit a fast cache (measured)
    NARROW = 24  # size of rows up to which to prefetch; the processor itself prefetches wider ones (measured)

cdef struct Sorted:
    Py_ssize_t tokens, labels, size, width  # N, Y, K, and K·Y rounded up to a multiple of 8
    bint far  # prefetch rows and cells
    const int* row_offsets
    const unsigned short* short_row  # NULL if rows are int32
    const int* row
    const float* row_value
    const int* cell_offsets
    const int* cell
    const unsigned short* cell_label
    const float* cell_value


cdef struct Scores:  # output arrays of the K parts
    double* part[MAX_PARTS]  # NULL for none
    bint anew[MAX_PARTS]  # overwrite the array instead of adding to it


def add_cell_scores_into(parts, cells, const double[::1] placed not None, bint anew=False):
    """parts[k][t, y] += Σ weight · value, over the observations of token t and their features on label
    y at the k-th part.

    parts (Sequence[Optional[float64 [N, Y]]]): an array for each of the K parts, changed in place; several
        parts may share one; None for parts that are not needed.
    cells (Cells): the sorted observations.
    placed (float64 [S]): the weights, by place.
    anew (bool): overwrite the arrays instead of adding to them.
    """
    cdef Sorted these
    cdef Scores scores
    cdef bint plain
    shape = next(part.shape for part in parts if part is not None)
    if not shape[0] or not shape[1]:
        return
    assert len(parts) <= MAX_PARTS
    these = _sorted(cells, shape[0], shape[1], len(parts), placed.shape[0])
    scores = _scores_of(parts, these.tokens, these.labels, anew)
    cdef double[::1] sums = np.empty(these.width)
    cdef const double* places = &placed[0] if placed.shape[0] else NULL
    plain = these.row_value == NULL and these.cell_value == NULL
    with nogil:
        if plain:
            _add_cell_scores_into(<char*> NULL, &scores, &sums[0], places, these)
        else:
            _add_cell_scores_into(<float*> NULL, &scores, &sums[0], places, these)


def add_cell_counts_into(double[::1] placed not None, cells, parts, double scale):
    """placed[feature] += scale · expected[t, y] · value: the transpose of `add_cell_scores_into`.

    placed (float64 [S]): the gradient, by place; changed in place.
    cells (Cells): the sorted observations.
    parts (Sequence[Optional[float64 [N, Y]]]): expected counts of each of the K parts, None for zeros.
    scale (float): a factor for all of them.
    """
    cdef const double* expected[MAX_PARTS]
    cdef Py_ssize_t k
    cdef const double[:, ::1] part
    cdef Sorted these
    cdef bint plain
    shape = next(part.shape for part in parts if part is not None)
    if not shape[0] or not shape[1]:
        return
    assert len(parts) <= MAX_PARTS
    these = _sorted(cells, shape[0], shape[1], len(parts), placed.shape[0])
    for k in range(these.size):
        expected[k] = NULL
        if parts[k] is not None:
            part = parts[k]
            assert part.shape[0] == these.tokens and part.shape[1] == these.labels
            expected[k] = &part[0, 0]
    cdef double[::1] counts = np.zeros(these.width)
    cdef double* places = &placed[0] if placed.shape[0] else NULL
    plain = these.row_value == NULL and these.cell_value == NULL
    with nogil:
        if plain:
            _add_cell_counts_into(<char*> NULL, places, &counts[0], expected, scale, these)
        else:
            _add_cell_counts_into(<float*> NULL, places, &counts[0], expected, scale, these)


cdef Scores _scores_of(parts, Py_ssize_t tokens, Py_ssize_t labels, bint anew):
    """Pointers to the output arrays of K parts; a shared array is overwritten by its first part only."""
    cdef Scores scores
    cdef Py_ssize_t k, j
    cdef double[:, ::1] part
    for k in range(len(parts)):
        scores.part[k], scores.anew[k] = NULL, anew
        if parts[k] is not None:
            part = parts[k]
            assert part.shape[0] == tokens and part.shape[1] == labels
            scores.part[k] = &part[0, 0]
            for j in range(k):
                scores.anew[k] &= scores.part[j] != scores.part[k]
    return scores


cdef Sorted _sorted(
    cells, Py_ssize_t tokens, Py_ssize_t labels, Py_ssize_t size, Py_ssize_t places
):
    """Pointers to the arrays of `cells` (Cells): N tokens, Y labels, K = size, S = places."""
    cdef const int[::1] row_offsets = cells.row_offsets, row
    cdef const unsigned short[::1] short_row
    cdef const int[::1] cell_offsets = cells.cell_offsets, cell = cells.cell
    cdef const unsigned short[::1] cell_label = cells.cell_label
    cdef const float[::1] row_value = cells.row_value, cell_value = cells.cell_value
    cdef Sorted these
    assert row_offsets.shape[0] == cell_offsets.shape[0] == tokens + 1
    these.tokens, these.labels, these.size = tokens, labels, size
    these.width = (size * labels + 7) // 8 * 8
    these.far = places > FAR
    these.row_offsets, these.cell_offsets = &row_offsets[0], &cell_offsets[0]
    these.short_row = these.row = NULL
    if cells.row.dtype.itemsize == sizeof(short):
        short_row = cells.row
        these.short_row = &short_row[0] if short_row.shape[0] else NULL
    else:
        row = cells.row
        these.row = &row[0] if row.shape[0] else NULL
    these.cell = &cell[0] if cell.shape[0] else NULL
    these.cell_label = &cell_label[0] if cell.shape[0] else NULL
    these.row_value = &row_value[0] if row_value is not None and row_value.shape[0] else NULL
    these.cell_value = &cell_value[0] if cell_value is not None and cell.shape[0] else NULL
    return these


cdef inline double value_at(value_type* _, const float* values, Py_ssize_t i) noexcept nogil:
    if value_type is char:
        return 1.0
    else:
        return values[i]


cdef inline void _fetch(const double* placed, Py_ssize_t t, Sorted these) noexcept nogil:
    """Prefetch the rows of token t, if it exists and `far` and NARROW ask for it."""
    cdef Py_ssize_t r, y
    cdef const double* row
    if these.far and these.width <= NARROW and t < these.tokens:
        for r in range(these.row_offsets[t], these.row_offsets[t + 1]):
            row = placed + 8 * place_of(these.short_row, these.row, r)
            for y in range(0, these.width, 8):
                hocrf_prefetch(row + y)


cdef void _add_cell_scores_into(
    value_type* _, Scores* scores, own sums, const double* placed, Sorted these
) noexcept nogil:
    """Sum rows and cells of each token into `sums`, [K·Y], and write them to the arrays of the parts."""
    cdef Py_ssize_t t, begin, end, Y = these.labels, K = these.size, W = these.width
    for t in range(these.tokens):
        _fetch(placed, t + AHEAD, these)
        begin, end = these.row_offsets[t], these.row_offsets[t + 1]
        sum_rows(sums, W, placed, these.short_row, these.row, 8, these.row_value, begin, end)
        if K == 3:  # a constant K lets the compiler unroll the loop
            _add_cells_into(_, sums, placed, t, these, 3)
        elif K == 2:
            _add_cells_into(_, sums, placed, t, these, 2)
        elif K == 1:
            _add_cells_into(_, sums, placed, t, these, 1)
        else:
            _add_cells_into(_, sums, placed, t, these, K)
        _write_scores(scores, sums, t, Y, K)


cdef inline void _add_cells_into(
    value_type* _, own sums, const double* placed, Py_ssize_t t, Sorted these, Py_ssize_t K
) noexcept nogil:
    """Add the cells of token t to `sums`."""
    cdef Py_ssize_t r, k, Y = these.labels
    cdef Py_ssize_t ahead = these.cell_offsets[these.tokens] - CELLS_AHEAD if these.far else 0
    cdef const double* a
    cdef double* sum
    cdef double value
    for r in range(these.cell_offsets[t], these.cell_offsets[t + 1]):
        if r < ahead:
            hocrf_prefetch(placed + these.cell[r + CELLS_AHEAD])
        a, value = placed + these.cell[r], value_at(_, these.cell_value, r)
        sum = sums + these.cell_label[r]
        for k in range(K):
            sum[k * Y] += value * a[k]


cdef inline void _write_scores(
    Scores* scores, own sums, Py_ssize_t t, Py_ssize_t Y, Py_ssize_t K
) noexcept nogil:
    """Write or add `sums`, the scores of token t, to the arrays of the parts."""
    cdef Py_ssize_t k, y
    cdef own into
    for k in range(K):
        if scores.part[k] == NULL:
            continue
        into = scores.part[k] + t * Y
        if scores.anew[k]:
            for y in range(Y):
                into[y] = sums[k * Y + y]
        else:
            for y in range(Y):
                into[y] += sums[k * Y + y]


cdef void _add_cell_counts_into(
    value_type* _, double* placed, own counts, const double** expected, double scale, Sorted these
) noexcept nogil:
    """Add each token's scaled counts to its rows and cells; counts[K * Y:] is 0, as the padding of rows."""
    cdef Py_ssize_t t, begin, end, k, Y = these.labels, K = these.size, W = these.width
    for t in range(these.tokens):
        _fetch(placed, t + AHEAD, these)
        for k in range(K):
            if expected[k] != NULL:
                _scale_into(counts + k * Y, expected[k] + t * Y, scale, Y)
        begin, end = these.row_offsets[t], these.row_offsets[t + 1]
        count_rows(counts, W, placed, these.short_row, these.row, 8, these.row_value, begin, end)
        if K == 3:
            _count_cells(_, placed, counts, t, these, 3)
        elif K == 2:
            _count_cells(_, placed, counts, t, these, 2)
        elif K == 1:
            _count_cells(_, placed, counts, t, these, 1)
        else:
            _count_cells(_, placed, counts, t, these, K)


cdef inline void _scale_into(own into, const double* values, double scale, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        into[i] = scale * values[i]


cdef inline void _count_cells(
    value_type* _, double* placed, const double* counts, Py_ssize_t t, Sorted these, Py_ssize_t K
) noexcept nogil:
    """Add the counts of token t to its cells."""
    cdef Py_ssize_t r, k, Y = these.labels
    cdef double* cell
    cdef const double* count
    cdef double value
    cdef Py_ssize_t ahead = these.cell_offsets[these.tokens] - CELLS_AHEAD if these.far else 0
    for r in range(these.cell_offsets[t], these.cell_offsets[t + 1]):
        if r < ahead:
            hocrf_prefetch(placed + these.cell[r + CELLS_AHEAD])
        cell, value = placed + these.cell[r], value_at(_, these.cell_value, r)
        count = counts + these.cell_label[r]
        for k in range(K):
            cell[k] += value * count[k * Y]
