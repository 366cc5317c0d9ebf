# Scores of observations on single labels, and the transpose: expected counts → gradient.
#
# The score of a dense entry (token, label) is Σ weight · value over the features of the token's
# observations. An observation with features on many labels has a row of weights, one for each label
# and zeros where it has no feature, so that it is added as a vector; the others have cells, single
# weights each with its label. Where they lie among the places: `model/placement.py`. A row has a
# multiple of 8 places, so that vectors of any width divide it.

cdef extern from *:
    """
    typedef double *__restrict hocrf_own;
    """
    # nothing else points there, so that loops over it become vector instructions
    ctypedef double* own "hocrf_own"

ctypedef fused value_type:  # of the values; char where all are 1 and there is no array
    char
    float

cdef struct Sorted:
    Py_ssize_t tokens, labels, width  # N, Y, and Y rounded up to a multiple of 8
    const int* row_offsets
    const int* row
    const float* row_value
    const int* cell_offsets
    const int* cell
    const unsigned short* cell_label
    const float* cell_value


def score_cells_into(double[:, ::1] scores not None, cells, const double[::1] placed not None):
    """scores[t, y] = Σ weight · value, over the observations of token t and their features on label y.

    scores (float64 [N, Y]): overwritten.
    cells (Cells): the observations.
    placed (float64 [S]): the weights.
    """
    cdef Sorted these = _sorted(cells, scores.shape[0], scores.shape[1])
    cdef double[::1] sums = np.empty(max(1, these.width))
    cdef bint plain = these.row_value == NULL and these.cell_value == NULL
    cdef const double* places = &placed[0] if placed.shape[0] else NULL
    if scores.shape[0] == 0 or scores.shape[1] == 0:
        return
    with nogil:
        if plain:
            _score_cells_into(<char*> NULL, &scores[0, 0], &sums[0], places, these)
        else:
            _score_cells_into(<float*> NULL, &scores[0, 0], &sums[0], places, these)


def add_cell_counts_into(
    double[::1] placed not None, cells, const double[:, ::1] expected not None, double scale
):
    """placed[feature] += scale · expected[t, y] · value: the transpose of `score_cells_into`.

    placed (float64 [S]): the gradient; changed in place.
    cells (Cells): the observations.
    expected (float64 [N, Y]): expected counts of the dense entries.
    """
    cdef Sorted these = _sorted(cells, expected.shape[0], expected.shape[1])
    cdef double[::1] counts = np.zeros(max(1, these.width))
    cdef bint plain = these.row_value == NULL and these.cell_value == NULL
    cdef double* places = &placed[0] if placed.shape[0] else NULL
    if expected.shape[0] == 0 or expected.shape[1] == 0:
        return
    with nogil:
        if plain:
            _add_cell_counts_into(<char*> NULL, places, &counts[0], &expected[0, 0], scale, these)
        else:
            _add_cell_counts_into(<float*> NULL, places, &counts[0], &expected[0, 0], scale, these)


cdef Sorted _sorted(cells, Py_ssize_t tokens, Py_ssize_t labels):
    """Where the arrays of some cells are."""
    cdef const int[::1] row_offsets = cells.row_offsets, row = cells.row
    cdef const int[::1] cell_offsets = cells.cell_offsets, cell = cells.cell
    cdef const unsigned short[::1] cell_label = cells.cell_label
    cdef const float[::1] row_value = cells.row_value, cell_value = cells.cell_value
    cdef Sorted these
    assert row_offsets.shape[0] == cell_offsets.shape[0] == tokens + 1
    these.tokens, these.labels, these.width = tokens, labels, (labels + 7) // 8 * 8
    these.row_offsets, these.cell_offsets = &row_offsets[0], &cell_offsets[0]
    these.row = &row[0] if row.shape[0] else NULL
    these.cell = &cell[0] if cell.shape[0] else NULL
    these.cell_label = &cell_label[0] if cell.shape[0] else NULL
    these.row_value = &row_value[0] if row_value is not None and row.shape[0] else NULL
    these.cell_value = &cell_value[0] if cell_value is not None and cell.shape[0] else NULL
    return these


cdef inline double value_at(value_type* _, const float* values, Py_ssize_t i) noexcept nogil:
    if value_type is char:
        return 1.0
    else:
        return values[i]


cdef void _score_cells_into(
    value_type* _, double* scores, own sums, const double* placed, Sorted these
) noexcept nogil:
    """Four rows at a time: a sum is written once for four that are read."""
    cdef Py_ssize_t t, r, end, y, Y = these.labels, W = these.width
    cdef const double* a
    cdef const double* b
    cdef const double* c
    cdef const double* d
    cdef double i, j, k, m
    for t in range(these.tokens):
        for y in range(W):
            sums[y] = 0.0
        r, end = these.row_offsets[t], these.row_offsets[t + 1]
        while r + 4 <= end:
            a, b = placed + these.row[r], placed + these.row[r + 1]
            c, d = placed + these.row[r + 2], placed + these.row[r + 3]
            i, j = value_at(_, these.row_value, r), value_at(_, these.row_value, r + 1)
            k, m = value_at(_, these.row_value, r + 2), value_at(_, these.row_value, r + 3)
            for y in range(W):
                sums[y] += (i * a[y] + j * b[y]) + (k * c[y] + m * d[y])
            r += 4
        while r < end:
            a, i = placed + these.row[r], value_at(_, these.row_value, r)
            for y in range(W):
                sums[y] += i * a[y]
            r += 1
        for r in range(these.cell_offsets[t], these.cell_offsets[t + 1]):
            sums[these.cell_label[r]] += value_at(_, these.cell_value, r) * placed[these.cell[r]]
        for y in range(Y):
            scores[t * Y + y] = sums[y]


cdef void _add_cell_counts_into(
    value_type* _, double* placed, own counts, const double* expected, double scale, Sorted these
) noexcept nogil:
    """counts[Y:] is 0, so that the places of a row beyond Y stay 0."""
    cdef Py_ssize_t t, r, y, Y = these.labels, W = these.width
    cdef double* row
    cdef double value
    for t in range(these.tokens):
        for y in range(Y):
            counts[y] = scale * expected[t * Y + y]
        for r in range(these.row_offsets[t], these.row_offsets[t + 1]):
            row, value = placed + these.row[r], value_at(_, these.row_value, r)
            for y in range(W):
                row[y] += value * counts[y]
        for r in range(these.cell_offsets[t], these.cell_offsets[t + 1]):
            placed[these.cell[r]] += value_at(_, these.cell_value, r) * counts[these.cell_label[r]]
