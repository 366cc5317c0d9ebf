# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Observations → which places of the weights they ask for: features by token, sorted for
`kernels/scores.pxi`.
"""

import numpy as np

from spacy_hocrf.types import INNER, START

__all__ = [
    "add_rows_into",
    "collect_into",
    "expand",
    "expand_rows",
    "gather",
    "sort_cells",
    "spread_into",
]


def spread_into(
    double[::1] placed not None, const int[::1] place not None, const double[::1] weights not None
):
    """placed[place[f]] = weights[f].

    placed (float64 [S]): changed in place.
    place (int32 [F]): where each feature lies.
    """
    assert place.shape[0] == weights.shape[0]
    cdef Py_ssize_t f
    with nogil:
        for f in range(place.shape[0]):
            placed[place[f]] = weights[f]


def gather(
    const double[::1] placed not None,
    const int[::1] place not None,
    const float[::1] values=None,
    result=None,
):
    """What lies at some places, times values of 1 if None.

    result (Optional[float64 [n]]): where it goes; by default an array of its own.
    RETURNS (float64 [n]): placed[place[i]] · values[i].
    """
    if result is None:
        result = np.empty(place.shape[0])
    cdef double[::1] out = result
    assert out.shape[0] == place.shape[0]
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


def collect_into(double[::1] gradient not None, double[::1] placed not None, const int[::1] place not None):
    """gradient[f] = placed[place[f]], which becomes 0.

    gradient (float64 [F]): overwritten.
    placed (float64 [S]): changed in place.
    place (int32 [F]): where each feature lies.
    """
    assert gradient.shape[0] == place.shape[0]
    cdef Py_ssize_t f
    with nogil:
        for f in range(place.shape[0]):
            gradient[f] = placed[place[f]]
            placed[place[f]] = 0.0


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
    RETURNS (tuple): int32 [N + 1] rows of each token, int32 [·] place of each row, float32 [·] its
        value, None for 1; and the same of the cells with, in front of the values, uint16 [·] label
        of each cell.
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
    """Observations on longer patterns, token by token, with all their features; those at START first.

    parts (PartRows): of N tokens.
    feature_offsets, feature_pattern, place: as in `CompiledIndex`.
    folded (uint8 [Z]): 1 for a pattern whose last segment has one token, so that all its parts are
        START, and INNER is nowhere.
    RETURNS (tuple): int64 [N + 1] rows of each token, uint8 [R] part, int32 [R] pattern,
        int32 [R] place, and float32 [R] value, None for 1.
    """
    cdef Py_ssize_t N = len(parts[0].offsets) - 1
    row_offsets = np.zeros(N + 1, dtype=np.int64)
    for part, rows in enumerate(parts):
        if len(rows.ids):
            _count_rows(row_offsets[1:], rows, part == INNER, feature_offsets, feature_pattern, folded)
    np.cumsum(row_offsets, out=row_offsets)
    cdef Py_ssize_t R = row_offsets[N]
    valued = any(rows.values is not None and len(rows.ids) for rows in parts)
    values_of_rows = np.ones(R, np.float32) if valued else None
    columns = np.empty(R, np.uint8), np.empty(R, np.int32), np.empty(R, np.int32), values_of_rows
    following = row_offsets[:N].copy()
    for starts in (True, False):  # a branch that always goes the same way for a while costs the kernels less
        for part, rows in enumerate(parts):
            if len(rows.ids):
                _fill_rows(
                    *columns, following, rows, part, starts, feature_offsets, feature_pattern, place, folded
                )
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
    bint starts,
    const long long[::1] feature_offsets,
    const int[::1] feature_pattern,
    const int[::1] place,
    const unsigned char[::1] folded,
):
    """Rows of one part, only those at START or only the others; following[t] is where the next row of token t
    belongs, and is moved on."""
    cdef const long long[::1] offsets = rows.offsets
    cdef const int[::1] ids = rows.ids
    cdef const float[::1] values = rows.values
    cdef bint valued = rows.values is not None
    cdef int start = START, inner = INNER
    cdef Py_ssize_t t, r, f, i
    cdef bint at_start
    with nogil:
        for t in range(offsets.shape[0] - 1):
            i = following[t]
            for r in range(offsets[t], offsets[t + 1]):
                for f in range(feature_offsets[ids[r]], feature_offsets[ids[r] + 1]):
                    at_start = part == start or folded[feature_pattern[f]] != 0
                    if at_start != starts or (part == inner and folded[feature_pattern[f]]):
                        continue
                    row_part[i] = <unsigned char> (start if at_start else part)
                    row_pattern[i] = feature_pattern[f]
                    row_place[i] = place[f]
                    if valued:
                        row_value[i] = values[r]
                    i += 1
            following[t] = i
