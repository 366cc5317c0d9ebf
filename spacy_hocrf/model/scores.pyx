# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Compiles observations into the places of their weights: features by token, sorted for
`kernels/scores.pxi`.
"""

import numpy as np

from spacy_hocrf.types import INNER, START

__all__ = [
    "expand_rows",
    "kinds_among",
    "place_cells",
    "sort_cells",
    "token_bits",
]


def token_bits(const unsigned char[:, ::1] bits not None, const long long[::1] offsets not None):
    """Return what is allowed at every token, given its position in its sequence.

    bits (uint8 [3, Y]): bits for the first token, for others and for the last one; a token that is several
        of these gets their intersection.
    offsets (int64 [D + 1]): first token of each sequence.
    RETURNS (uint8 [N, Y]): the bits of every token.
    """
    cdef Py_ssize_t d, t, y, n = offsets[offsets.shape[0] - 1], labels = bits.shape[1]
    result = np.empty((n, labels), dtype=np.uint8)
    cdef unsigned char[:, ::1] out = result
    with nogil:
        for d in range(offsets.shape[0] - 1):
            for t in range(offsets[d], offsets[d + 1]):
                for y in range(labels):
                    out[t, y] = bits[1, y]
                    if t == offsets[d]:
                        out[t, y] &= bits[0, y]
                    if t == offsets[d + 1] - 1:
                        out[t, y] &= bits[2, y]
    return result


def place_cells(
    const long long[::1] feature_offsets not None,
    const int[::1] slot not None,
    const int[::1] feature_pattern not None,
    const int[::1] kind not None,
    const int[::1] sizes not None,
    const int[::1] sparse not None,
    Py_ssize_t n_labels,
    Py_ssize_t vector,
):
    """Assign a place to the number of every feature; see `placement.py`.

    feature_offsets (int64 [M + 1]): features of each observation.
    slot (int32 [F]): place of a feature within the cell of its label, -1 if it has none.
    feature_pattern (int32 [F]): label pattern of each feature.
    kind (int32 [M]): kind of each observation, -1 for none.
    sizes (int32 [kinds]): places in a cell of each kind.
    sparse (int32 [kinds]): an observation of each kind has a row if it has features on at least 1/sparse of
        the labels.
    vector (int): row sizes are rounded up to a multiple of this.
    RETURNS (tuple): int32 [M] first place of each row, -1 for none; int64 [M + 1] cells of each
        observation; uint16 and int32 [cells] label and first place of each; int32 [F] place of every
        feature; int S places in all.
    """
    cdef Py_ssize_t M = kind.shape[0], F = slot.shape[0], o, f, y, n, c, size, places = 0
    rows, offsets = np.full(M, -1, dtype=np.int32), np.zeros(M + 1, dtype=np.int64)
    place = np.full(F, -1, dtype=np.int32)
    cdef int[::1] row_place = rows, place_of = place
    cdef long long[::1] cell_offsets = offsets
    cdef long long[::1] seen = np.full(n_labels, -1, dtype=np.int64)  # last observation with the label
    cdef int[::1] cell_of = np.zeros(n_labels, dtype=np.int32)
    for o in range(M):
        n = 0
        if kind[o] >= 0:
            for f in range(feature_offsets[o], feature_offsets[o + 1]):
                if slot[f] >= 0 and seen[feature_pattern[f]] != o:
                    seen[feature_pattern[f]] = o
                    n += 1
        if n > 0 and n * sparse[kind[o]] >= n_labels:
            n = 0
            size = sizes[kind[o]]
            assert places + size * n_labels + vector < 2**31
            row_place[o] = <int> places
            for f in range(feature_offsets[o], feature_offsets[o + 1]):
                if slot[f] >= 0:
                    place_of[f] = <int> (places + slot[f] * n_labels + feature_pattern[f])
            places += (size * n_labels + vector - 1) // vector * vector
        cell_offsets[o + 1] = cell_offsets[o] + n
    labels, firsts = np.empty(offsets[M], dtype=np.uint16), np.empty(offsets[M], dtype=np.int32)
    cdef unsigned short[::1] cell_label = labels
    cdef int[::1] cell_place = firsts
    seen[:] = -1
    for o in range(M):
        c = cell_offsets[o]
        if c == cell_offsets[o + 1]:
            continue
        size = sizes[kind[o]]
        for f in range(feature_offsets[o], feature_offsets[o + 1]):
            if slot[f] < 0:
                continue
            y = feature_pattern[f]
            if seen[y] != o:
                seen[y], cell_of[y] = o, <int> c
                cell_label[c], cell_place[c] = <unsigned short> y, <int> places
                places += size
                c += 1
            place_of[f] = cell_place[cell_of[y]] + slot[f]
        assert places < 2**31
    for f in range(F):
        if place_of[f] < 0:
            place_of[f] = <int> places
            places += 1
    assert places < 2**31
    return rows, offsets, labels, firsts, place, places


def sort_cells(
    rows,
    int kind,
    const int[::1] observation_kind not None,
    const int[::1] row_place not None,
    const long long[::1] cell_offsets not None,
    const unsigned short[::1] cell_label not None,
    const int[::1] cell_place not None,
    bint short_rows,
):
    """Split the observations of one kind into rows and cells, token by token.

    rows (Rows): observations of N tokens.
    observation_kind, row_place, cell_offsets, cell_label, cell_place, short_rows: as in
        `CompiledIndex`.
    RETURNS (tuple): int32 [N + 1] rows of each token, uint16 or int32 [·] place of each row in steps of
        8, float32 [·] its value, None for 1; and the same for cells, with int32 places and, before the
        values, uint16 [·] label of each cell, ascending for each token.
    """
    cdef const long long[::1] offsets = rows.offsets
    cdef const int[::1] ids = rows.ids
    cdef bint valued = rows.values is not None
    cdef const float[::1] values = rows.values
    cdef Py_ssize_t N = offsets.shape[0] - 1, t, r, c, i, n_rows = 0, n_cells = 0
    for r in range(ids.shape[0]):
        if observation_kind[ids[r]] == kind:
            n_rows += row_place[ids[r]] >= 0
            n_cells += cell_offsets[ids[r] + 1] - cell_offsets[ids[r]]
    assert max(n_rows, n_cells) < 2**31
    result = (
        np.empty(N + 1, dtype=np.int32),
        np.empty(n_rows, dtype=np.uint16 if short_rows else np.int32),
        np.empty(n_rows, dtype=np.float32) if valued else None,
        np.empty(N + 1, dtype=np.int32),
        np.empty(n_cells, dtype=np.int32),
        np.empty(n_cells, dtype=np.uint16),
        np.empty(n_cells, dtype=np.float32) if valued else None,
    )
    cdef int[::1] row_firsts = result[0], row = None, cell_firsts = result[3], cell = result[4]
    cdef unsigned short[::1] short_row = None
    cdef float[::1] row_value = result[2], cell_value = result[6]
    cdef unsigned short[::1] label = result[5]
    if short_rows:
        short_row = result[1]
    else:
        row = result[1]
    n_rows = n_cells = 0
    with nogil:
        for t in range(N):
            row_firsts[t] = <int> n_rows
            cell_firsts[t] = <int> n_cells
            for r in range(offsets[t], offsets[t + 1]):
                if observation_kind[ids[r]] != kind:
                    continue
                if row_place[ids[r]] >= 0:
                    if short_rows:
                        short_row[n_rows] = <unsigned short> (row_place[ids[r]] // 8)
                    else:
                        row[n_rows] = row_place[ids[r]] // 8
                    if valued:
                        row_value[n_rows] = values[r]
                    n_rows += 1
                    continue
                for c in range(cell_offsets[ids[r]], cell_offsets[ids[r] + 1]):
                    i = n_cells  # insertion sort by label, stable: measured, 1 to 2 % faster
                    while i > cell_firsts[t] and label[i - 1] > cell_label[c]:
                        cell[i], label[i] = cell[i - 1], label[i - 1]
                        if valued:
                            cell_value[i] = cell_value[i - 1]
                        i -= 1
                    cell[i], label[i] = cell_place[c], cell_label[c]
                    if valued:
                        cell_value[i] = values[r]
                    n_cells += 1
        row_firsts[N] = <int> n_rows
        cell_firsts[N] = <int> n_cells
    return result


def kinds_among(const int[::1] ids not None, const int[:, ::1] entries not None, Py_ssize_t kinds):
    """Return the kinds of those observations that have a row or cells.

    ids (int32 [n]): observations.
    entries (int32 [M, 4]): as in `CompiledIndex`.
    kinds (int): number of kinds; the search stops when all are found.
    RETURNS (list[int]): the kinds, ascending.
    """
    cdef Py_ssize_t i
    occurring = set()
    for i in range(ids.shape[0]):
        if entries[ids[i], 1] >= 0 and entries[ids[i], 0] not in occurring:
            occurring.add(entries[ids[i], 0])
            if len(occurring) == kinds:
                break
    return sorted(occurring)


def expand_rows(
    rows,
    const long long[::1] feature_offsets not None,
    const int[::1] feature_pattern not None,
    const unsigned char[::1] feature_part not None,
    const int[::1] place not None,
    const unsigned char[::1] folded not None,
    int n_labels,
):
    """Expand observations into their features on longer patterns, token by token; those at START first.

    rows (Rows): observations of N tokens.
    feature_offsets, feature_pattern, feature_part, place: as in `CompiledIndex`.
    folded (uint8 [Z]): 1 for a pattern whose last segment has one token, so that all its parts are
        START, and INNER does not exist.
    n_labels (int): number of labels Y; patterns from this number on are longer.
    RETURNS (tuple): int64 [N + 1] rows of each token, uint8 [R] part, int32 [R] pattern,
        int32 [R] place, and float32 [R] value, None for 1.
    """
    cdef const long long[::1] offsets = rows.offsets
    cdef const int[::1] ids = rows.ids
    cdef const float[::1] values = rows.values
    cdef bint valued = rows.values is not None
    cdef int start = START, inner = INNER
    cdef Py_ssize_t N = offsets.shape[0] - 1, t, r, f, i, R = 0
    cdef bint starts, at_start, fold
    for r in range(ids.shape[0]):
        for f in range(feature_offsets[ids[r]], feature_offsets[ids[r] + 1]):
            R += feature_pattern[f] >= n_labels and not (
                feature_part[f] == inner and folded[feature_pattern[f]]
            )
    row_offsets = np.zeros(N + 1, dtype=np.int64)
    part, pattern, places = np.empty(R, np.uint8), np.empty(R, np.int32), np.empty(R, np.int32)
    values_of_rows = np.empty(R, np.float32) if valued else None
    cdef long long[::1] firsts = row_offsets
    cdef unsigned char[::1] row_part = part
    cdef int[::1] row_pattern = pattern, row_place = places
    cdef float[::1] row_value = values_of_rows
    i = 0
    with nogil:
        for t in range(N if R else 0):
            for starts in (True, False):  # two passes make branches in later loops predictable
                for r in range(offsets[t], offsets[t + 1]):
                    for f in range(feature_offsets[ids[r]], feature_offsets[ids[r] + 1]):
                        if feature_pattern[f] < n_labels:
                            continue
                        fold = folded[feature_pattern[f]] != 0
                        at_start = fold or feature_part[f] == start
                        if at_start != starts or (fold and feature_part[f] == inner):
                            continue
                        row_part[i] = <unsigned char> (start if at_start else feature_part[f])
                        row_pattern[i] = feature_pattern[f]
                        row_place[i] = place[f]
                        if valued:
                            row_value[i] = values[r]
                        i += 1
            firsts[t + 1] = i
    return row_offsets, part, pattern, places, values_of_rows
