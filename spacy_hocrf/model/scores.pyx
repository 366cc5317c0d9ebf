# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Weights × observations → scores, and the transpose: expected counts × observations → gradient.

The score of a dense entry (token, label) is Σ weight · value over the features of the token's observations. An observation with
features on many labels has a row of weights, one for each label and zeros where it has no feature, so that it is added as a
vector; the others have cells, single weights each with its label. Where they lie among the S places: `model/placement.py`. A row
has a multiple of 8 places, so that vectors of any width divide it.
"""

import numpy as np

from spacy_hocrf.types import INNER, START

__all__ = [
    "add_cell_counts_into",
    "add_rows_into",
    "expand",
    "expand_rows",
    "gather",
    "score_cells_into",
    "sort_cells",
    "spread_into",
]

cdef extern from *:
    """
    typedef double *__restrict hocrf_own;
    """
    ctypedef double* own "hocrf_own"  # nothing else points there, so that loops over it become vector instructions

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


def spread_into(double[::1] placed not None, const int[::1] place not None, const double[::1] weights not None):
    """placed[place[f]] = weights[f].

    placed (float64 [S]): changed in place.
    place (int32 [F]): where each feature lies.
    """
    assert place.shape[0] == weights.shape[0]
    cdef Py_ssize_t f
    with nogil:
        for f in range(place.shape[0]):
            placed[place[f]] = weights[f]


def gather(const double[::1] placed not None, const int[::1] place not None, const float[::1] values=None):
    """What lies at some places, times values of 1 if None.

    RETURNS (float64 [n]): placed[place[i]] · values[i].
    """
    result = np.empty(place.shape[0])
    cdef double[::1] out = result
    cdef bint plain = values is None
    cdef Py_ssize_t i
    with nogil:
        if plain:
            for i in range(place.shape[0]):
                out[i] = placed[place[i]]
        else:
            for i in range(place.shape[0]):
                out[i] = placed[place[i]] * values[i]
    return result


def sort_cells(
    rows,
    const long long[::1] feature_offsets not None,
    const int[::1] feature_pattern not None,
    const int[::1] place not None,
    const int[::1] row_place not None,
):
    """Observations on single labels, token by token, as rows and cells.

    rows (Rows): of N tokens.
    feature_offsets, feature_pattern, place, row_place: as in `CompiledIndex`.
    RETURNS (tuple): int32 [N + 1] rows of each token, int32 [·] place of each row, float32 [·] its value, None for 1; and the
        same of the cells with, in front of the values, uint16 [·] label of each cell.
    """
    cdef const long long[::1] offsets = rows.offsets
    cdef const int[::1] ids = rows.ids
    cdef bint valued = rows.values is not None
    cdef const float[::1] values = rows.values
    cdef Py_ssize_t N = offsets.shape[0] - 1, t, r, f, n_rows = 0, n_cells = 0
    for r in range(ids.shape[0]):
        if row_place[ids[r]] >= 0:
            n_rows += 1
        else:
            n_cells += feature_offsets[ids[r] + 1] - feature_offsets[ids[r]]
    assert max(n_rows, n_cells) < 2**31
    result = (
        np.empty(N + 1, dtype=np.int32),
        np.empty(n_rows, dtype=np.int32),
        np.empty(n_rows, dtype=np.float32) if valued else None,
        np.empty(N + 1, dtype=np.int32),
        np.empty(n_cells, dtype=np.int32),
        np.empty(n_cells, dtype=np.uint16),
        np.empty(n_cells, dtype=np.float32) if valued else None,
    )
    cdef int[::1] row_offsets = result[0], row = result[1], cell_offsets = result[3], cell = result[4]
    cdef float[::1] row_value = result[2], cell_value = result[6]
    cdef unsigned short[::1] cell_label = result[5]
    n_rows = n_cells = 0
    with nogil:
        for t in range(N):
            row_offsets[t] = <int> n_rows
            cell_offsets[t] = <int> n_cells
            for r in range(offsets[t], offsets[t + 1]):
                if row_place[ids[r]] >= 0:
                    row[n_rows] = row_place[ids[r]]
                    if valued:
                        row_value[n_rows] = values[r]
                    n_rows += 1
                    continue
                for f in range(feature_offsets[ids[r]], feature_offsets[ids[r] + 1]):
                    cell[n_cells] = place[f]
                    cell_label[n_cells] = <unsigned short> feature_pattern[f]
                    if valued:
                        cell_value[n_cells] = values[r]
                    n_cells += 1
        row_offsets[N] = <int> n_rows
        cell_offsets[N] = <int> n_cells
    return result


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


def add_cell_counts_into(double[::1] placed not None, cells, const double[:, ::1] expected not None, double scale):
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


def add_rows_into(
    double[::1] placed not None,
    const int[::1] places not None,
    const double[::1] expected not None,
    double scale,
    const float[::1] values=None,
):
    """placed[places[r]] += scale · expected[r] · values[r], values of 1 if None.

    placed (float64 [S]): the gradient; changed in place.
    """
    assert places.shape[0] == expected.shape[0]
    cdef Py_ssize_t r
    cdef bint plain = values is None
    with nogil:
        if plain:
            for r in range(places.shape[0]):
                placed[places[r]] += scale * expected[r]
        else:
            for r in range(places.shape[0]):
                placed[places[r]] += scale * expected[r] * values[r]


def expand(const int[::1] ids not None, const long long[::1] feature_offsets not None):
    """Every feature of every observation of a list.

    ids (int32 [n]): observations.
    RETURNS (tuple[int64 [m], int32 [m]]): position in the list and feature, in the list's order.
    """
    cdef Py_ssize_t i, f, m = 0
    for i in range(ids.shape[0]):
        m += feature_offsets[ids[i] + 1] - feature_offsets[ids[i]]
    position, feature = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int32)
    cdef long long[::1] positions = position
    cdef int[::1] features = feature
    m = 0
    with nogil:
        for i in range(ids.shape[0]):
            for f in range(feature_offsets[ids[i]], feature_offsets[ids[i] + 1]):
                positions[m] = i
                features[m] = <int> f
                m += 1
    return position, feature


def expand_rows(
    parts,
    const long long[::1] feature_offsets not None,
    const int[::1] feature_pattern not None,
    const int[::1] place not None,
    const unsigned char[::1] folded not None,
):
    """Observations on longer patterns, token by token, with all their features.

    parts (PartRows): of N tokens.
    feature_offsets, feature_pattern, place: as in `CompiledIndex`.
    folded (uint8 [Z]): 1 for a pattern whose last segment has one token, so that all its parts are START, and INNER is nowhere.
    RETURNS (tuple): int64 [N + 1] rows of each token, uint8 [R] part, int32 [R] pattern, int32 [R] place, and float32 [R] value,
        None for 1.
    """
    cdef Py_ssize_t N = len(parts[0].offsets) - 1
    row_offsets = np.zeros(N + 1, dtype=np.int64)
    for part, rows in enumerate(parts):
        if len(rows.ids):
            _count_rows(row_offsets[1:], rows, part == INNER, feature_offsets, feature_pattern, folded)
    np.cumsum(row_offsets, out=row_offsets)
    cdef Py_ssize_t R = row_offsets[N]
    valued = any(rows.values is not None and len(rows.ids) for rows in parts)
    columns = np.empty(R, np.uint8), np.empty(R, np.int32), np.empty(R, np.int32), np.ones(R, np.float32) if valued else None
    following = row_offsets[:N].copy()
    for part, rows in enumerate(parts):
        if len(rows.ids):
            _fill_rows(*columns, following, rows, part, feature_offsets, feature_pattern, place, folded)
    return row_offsets, *columns


def _count_rows(
    long long[::1] count,
    rows,
    bint inner,
    const long long[::1] feature_offsets,
    const int[::1] feature_pattern,
    const unsigned char[::1] folded,
):
    """count[t] += number of rows of token t."""
    cdef const long long[::1] offsets = rows.offsets
    cdef const int[::1] ids = rows.ids
    cdef Py_ssize_t t, r, f
    with nogil:
        for t in range(offsets.shape[0] - 1):
            for r in range(offsets[t], offsets[t + 1]):
                for f in range(feature_offsets[ids[r]], feature_offsets[ids[r] + 1]):
                    count[t] += not (inner and folded[feature_pattern[f]])


def _fill_rows(
    unsigned char[::1] row_part,
    int[::1] row_pattern,
    int[::1] row_place,
    float[::1] row_value,
    long long[::1] following,
    rows,
    int part,
    const long long[::1] feature_offsets,
    const int[::1] feature_pattern,
    const int[::1] place,
    const unsigned char[::1] folded,
):
    """Rows of one part; following[t] is where the next row of token t belongs, and is moved on."""
    cdef const long long[::1] offsets = rows.offsets
    cdef const int[::1] ids = rows.ids
    cdef const float[::1] values = rows.values
    cdef bint valued = rows.values is not None
    cdef int start = START, inner = INNER
    cdef Py_ssize_t t, r, f, i
    with nogil:
        for t in range(offsets.shape[0] - 1):
            i = following[t]
            for r in range(offsets[t], offsets[t + 1]):
                for f in range(feature_offsets[ids[r]], feature_offsets[ids[r] + 1]):
                    if folded[feature_pattern[f]] and part == inner:
                        continue
                    row_part[i] = <unsigned char> (start if folded[feature_pattern[f]] else part)
                    row_pattern[i] = feature_pattern[f]
                    row_place[i] = place[f]
                    if valued:
                        row_value[i] = values[r]
                    i += 1
            following[t] = i


cdef Sorted _sorted(cells, Py_ssize_t tokens, Py_ssize_t labels):
    """Where the arrays of some cells are."""
    cdef const int[::1] row_offsets = cells.row_offsets, row = cells.row, cell_offsets = cells.cell_offsets, cell = cells.cell
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


cdef void _score_cells_into(value_type* _, double* scores, own sums, const double* placed, Sorted these) noexcept nogil:
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
