# Scores that few tokens have, noted where they are asked for and forgotten afterwards: rows of arcs, and
# spans by body and length. All else of these arrays is 0.


cdef bint note_rows(Lattice lattice, Py_ssize_t u) noexcept nogil:
    """The rows of arcs at a token, and its spans of one token that no body has, into `own`. RETURNS
    (bool): whether there is any.
    """
    return _add_rows(lattice, u, False)


cdef void forget_rows(Lattice lattice, Py_ssize_t u) noexcept nogil:
    """Zeros again."""
    _add_rows(lattice, u, True)


cdef bint _add_rows(Lattice lattice, Py_ssize_t u, bint forget) noexcept nogil:
    cdef Py_ssize_t i = lattice.base + u, r, s
    cdef int z
    cdef bint found = False
    if lattice.scores.rows:
        for r in range(lattice.scores.row_offsets[i], lattice.scores.row_offsets[i + 1]):
            if lattice.scores.row_target[r] >= 0:
                found = True
                _add_own(lattice, lattice.scores.row_target[r], lattice.scores.row_score[r], forget)
    for s in range(first_span(lattice, i), lattice.span_high):
        if lattice.scores.span_start[s] > i:
            break
        z = lattice.scores.span_pattern[s]
        if lattice.scores.span_end[s] == i + 1 and lattice.graph.pattern_body[z] < 0:
            found = True
            _add_own(lattice, lattice.graph.pattern_arc[z], lattice.scores.span_score[s], forget)
    return found


cdef inline void _add_own(Lattice lattice, Py_ssize_t arc, double score, bint forget) noexcept nogil:
    """To an arc and its copies."""
    while arc < lattice.graph.arcs:
        lattice.own[arc] = 0.0 if forget else lattice.own[arc] + score
        arc += lattice.graph.stride


cdef void note_spans(Lattice lattice, Py_ssize_t u) noexcept nogil:
    """The scores of spans that begin at a token, by body and length, into `extra`."""
    _add_spans(lattice, u, False)


cdef void forget_spans(Lattice lattice, Py_ssize_t u) noexcept nogil:
    """Zeros again."""
    _add_spans(lattice, u, True)


cdef void _add_spans(Lattice lattice, Py_ssize_t u, bint forget) noexcept nogil:
    cdef Py_ssize_t i = lattice.base + u, s, k, e, d, place
    for s in range(first_span(lattice, i), lattice.span_high):
        if lattice.scores.span_start[s] > i:
            break
        k, d = lattice.graph.pattern_body[lattice.scores.span_pattern[s]], lattice.scores.span_end[s] - i
        if k < 0:
            continue  # note_rows
        for e in range(lattice.graph.tree_offsets[k], lattice.graph.tree_offsets[k + 1]):
            if d <= lattice.window[lattice.graph.tree[e]]:
                place = lattice.graph.tree[e] * (lattice.widest + 1) + d
                lattice.extra[place] = 0.0 if forget else lattice.extra[place] + lattice.scores.span_score[s]


cdef inline Py_ssize_t first_span(Lattice lattice, Py_ssize_t start) noexcept nogil:
    """The first span of the sequence that begins at this token of the batch or later."""
    cdef Py_ssize_t low = lattice.span_low, high = lattice.span_high, middle
    while low < high:
        middle = (low + high) // 2
        if lattice.scores.span_start[middle] < start:
            low = middle + 1
        else:
            high = middle
    return low
