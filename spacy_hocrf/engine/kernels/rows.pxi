# Scores that few tokens have: rows by arc, and spans by body and length. They are added to arrays of zeros
# when the token is processed, and set to zero again afterwards.


cdef bint note_rows(Lattice lattice, Py_ssize_t u) noexcept nogil:
    """Add the scores at u that belong to arcs, of rows and of one-token spans, to `own`. RETURNS (bool):
    whether there are any.
    """
    return _add_rows(lattice, u, False)


cdef void forget_rows(Lattice lattice, Py_ssize_t u) noexcept nogil:
    """Set what `note_rows` has added to zero."""
    _add_rows(lattice, u, True)


cdef bint _add_rows(Lattice lattice, Py_ssize_t u, bint forget) noexcept nogil:
    cdef Py_ssize_t i = lattice.base + u, r, s
    cdef int z
    cdef bint noted = False
    if lattice.scores.rows:
        for r in range(lattice.scores.row_offsets[i], lattice.scores.row_offsets[i + 1]):
            if lattice.scores.row_target[r] >= 0:
                noted = True
                _add_own(lattice, lattice.scores.row_target[r], lattice.scores.row_score[r], forget)
    for s in range(first_span(lattice, i), lattice.span_high):
        if lattice.scores.span_start[s] > i:
            break
        z = lattice.scores.span_pattern[s]
        if lattice.scores.span_end[s] == i + 1 and lattice.graph.pattern_body[z] < 0:
            noted = True
            _add_own(lattice, lattice.graph.pattern_arc[z], lattice.scores.span_score[s], forget)
    return noted


cdef inline void _add_own(Lattice lattice, Py_ssize_t arc, double score, bint forget) noexcept nogil:
    """Add a score to an arc and its copies, or `forget` it."""
    while arc < lattice.graph.arcs:
        lattice.own[arc] = 0.0 if forget else lattice.own[arc] + score
        arc += lattice.graph.stride


cdef void note_spans(Lattice lattice, Py_ssize_t u) noexcept nogil:
    """Add the scores of the spans that begin at u to `extra`, by body and length."""
    _add_spans(lattice, u, False)


cdef void forget_spans(Lattice lattice, Py_ssize_t u) noexcept nogil:
    """Set what `note_spans` has added to zero."""
    _add_spans(lattice, u, True)


cdef void _add_spans(Lattice lattice, Py_ssize_t u, bint forget) noexcept nogil:
    cdef Py_ssize_t i = lattice.base + u, s, k, e, d, place
    for s in range(first_span(lattice, i), lattice.span_high):
        if lattice.scores.span_start[s] > i:
            break
        k, d = lattice.graph.pattern_body[lattice.scores.span_pattern[s]], lattice.scores.span_end[s] - i
        if k < 0:
            continue  # the span of an arc, see note_rows
        for e in range(lattice.graph.tree_offsets[k], lattice.graph.tree_offsets[k + 1]):
            if d <= lattice.window[lattice.graph.tree[e]]:
                place = lattice.graph.tree[e] * (lattice.widest + 1) + d
                lattice.extra[place] = 0.0 if forget else lattice.extra[place] + lattice.scores.span_score[s]


cdef inline Py_ssize_t first_span(Lattice lattice, Py_ssize_t start) noexcept nogil:
    """The first span of the sequence that starts at token `start` of the batch or later."""
    cdef Py_ssize_t low = lattice.span_low, high = lattice.span_high, middle
    while low < high:
        middle = (low + high) // 2
        if lattice.scores.span_start[middle] < start:
            low = middle + 1
        else:
            high = middle
    return low
