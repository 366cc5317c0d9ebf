# entry_u, the mass of the segments that begin at u: the first line of the forward recurrence in forward.pxi.


# entry_u(o) = first_u(y of o) Σ_{c in o} m_u(c) ψ(c)          first: weight of the label's start scores
cdef void _enter(semiring* ring, Automaton fsa, Batch batch, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Compute entry_u of all open states from alpha_u, with its scale; in a CRF this is alpha_{u+1}."""
    cdef Py_ssize_t o
    cdef lanes* entry = at2(ws.alpha, u + 1, 0) if fsa.one_token else at2(ws.entry, u, 0)
    cdef lanes* first = at2(ws.first, u, 0)
    cdef lanes* scale = at1(ws.entry_scale, u)
    cdef const int* label = _first_of(fsa.open_label)
    cdef lanes value, grown = splat(0.0), high = splat(0.0), low = splat(TOO_LARGE)
    _sum_arcs(ring, fsa, batch, ws, u, entry)
    if semiring is Scaled:
        if ws.has_lost_start[u]:
            lose(ws, _lost_starts(fsa, ws, u, entry) & within(ws, u))
    for o in range(1 if fsa.one_token else 0, fsa.opens):  # nothing enters the empty history
        value = times(ring, entry[o], first[label[o]])
        entry[o] = value
        if semiring is Scaled:
            high = larger(value, high)
            low = smaller(value, low)
    if semiring is Scaled:
        _check_entries(fsa, ws, u, entry, high, low)
        grown = rescale(entry, fsa.opens, high, within(ws, u))
    scale[0] = at1(ws.alpha_scale, u)[0] + at1(ws.first_scale, u)[0] + grown
    if fsa.one_token:
        at1(ws.alpha_scale, u + 1)[0] = scale[0]
    else:
        _open_bodies(ring, fsa, ws, u, entry, scale[0])


cdef inline void _sum_arcs(
    semiring* ring, Automaton fsa, Batch batch, Workspace ws, Py_ssize_t u, lanes* entry
) noexcept nogil:
    """entry[o] = Σ_{c in o} m_u(c) ψ_u(c), without the weight of the label's start."""
    cdef Py_ssize_t o, i
    cdef const int* register = _first_of(fsa.open_register)
    cdef const int* offset = &fsa.open_offsets[0]
    cdef lanes* x = at1(ws.x, 0)
    cdef lanes mass
    cdef double* weight = &ws.open_weight[0]
    sum_entries(ring, fsa, ws, u)
    if ws.has_rows[u]:
        weigh_rows(ring, fsa, batch, ws, u)
        _enter_with_rows(ring, fsa, ws, u, entry)
        return
    for o in range(fsa.opens):
        mass = zero(ring)
        for i in range(offset[o], offset[o + 1]):
            mass = plus(ring, mass, times(ring, x[register[i]], splat(weight[i])))
        entry[o] = mass


# x[p] = alpha_u(p),  then  x[d] = x[a] + x[b]  for the additions (d, a, b);  m_u(c) = x[register of c]
cdef void sum_entries(semiring* ring, Automaton fsa, Workspace ws, Py_ssize_t u) noexcept nogil:
    """Run the sum program on alpha_u: afterwards x[arc_register[c]] is m_u(c)."""
    cdef Py_ssize_t p, i, P = fsa.states, n = fsa.additions.shape[0]
    cdef lanes* x = at1(ws.x, 0)
    cdef lanes* alpha = at2(ws.alpha, u, 0)
    cdef const int* addition = &fsa.additions[0, 0] if n else NULL
    cdef lanes sum
    for p in range(P):
        x[p] = alpha[p]
    sum = x[P - 1]
    for i in range(n):
        if addition[1] != P + i - 1:  # else it is still in `sum`, and need not be loaded again
            sum = x[addition[1]]
        sum = plus(ring, sum, x[addition[2]])
        x[P + i] = sum
        addition += 3


# entry_u(o) = Σ_{c in o} m_u(c) ψ(c) factor_u(c)          factor: of the rows that start at u
cdef void _enter_with_rows(
    semiring* ring, Automaton fsa, Workspace ws, Py_ssize_t u, lanes* entry
) noexcept nogil:
    """Compute the sums of `_sum_arcs` where rows start at u; sets `lost` where a product has lost digits
    before a factor above 1 is applied to it.
    """
    cdef Py_ssize_t i, o
    cdef lanes* x = at1(ws.x, 0)
    cdef lanes* factor = factor_row(ws, u)
    cdef lanes mass, weighed, rows
    cdef flags lost = nowhere()
    for o in range(fsa.opens):
        entry[o] = zero(ring)
    for i in range(fsa.taken.shape[0]):
        o = fsa.taken_open[i]
        mass = x[fsa.taken_register[i]]
        rows = factor[fsa.taken[i]]
        weighed = times(ring, mass, splat(ws.arc_weight[i]))
        if semiring is Scaled:  # without mass, an infinite factor must not give nan
            lost |= less(weighed, splat(LOST)) & less(splat(1.0), rows) & differ(mass, splat(0.0))
            entry[o] = entry[o] + choose(differ(mass, splat(0.0)), weighed * rows, splat(0.0))
        else:
            entry[o] = plus(ring, entry[o], times(ring, weighed, rows))
    if semiring is Scaled:
        if any_of(lost & within(ws, u)):
            lose(ws, lost & within(ws, u))


cdef inline void _check_entries(
    Automaton fsa, Workspace ws, Py_ssize_t u, lanes* entry, lanes high, lanes low
) noexcept nogil:
    """Set `lost` in the lanes in which an entry has overflowed or underflowed; `high` and `low` are the
    largest and the smallest entry.
    """
    cdef flags active = within(ws, u), lost = ~less(high, splat(TOO_LARGE)) & active
    cdef lanes least = splat(LOST) * larger(high, splat(1.0))
    if any_of(lost):
        lose(ws, lost)
    if any_of(~at_least(low, least) & active):
        lose(ws, _lost_entries(fsa, ws, u, entry, least) & active)


cdef flags _lost_starts(Automaton fsa, Workspace ws, Py_ssize_t u, lanes* entry) noexcept nogil:
    """The lanes in which mass enters a label whose start weight is below LOST: a large factor could bring
    it back into range with the wrong digits.
    """
    cdef Py_ssize_t o
    cdef lanes weight
    cdef flags lost = nowhere()
    for o in range(fsa.opens):
        weight = at2(ws.first, u, fsa.open_label[o])[0]
        lost |= differ(entry[o], splat(0.0)) & differ(weight, splat(0.0)) & less(weight, splat(LOST))
    return lost


cdef flags _lost_entries(Automaton fsa, Workspace ws, Py_ssize_t u, lanes* entry, lanes least) noexcept nogil:
    """The lanes in which an entry is below `least` although an allowed arc with mass leads to it."""
    cdef Py_ssize_t o, i
    cdef lanes* x = at1(ws.x, 0)
    cdef lanes* first = at2(ws.first, u, 0)
    cdef flags lost = nowhere(), small
    for o in range(fsa.opens):
        small = ~at_least(entry[o], least) & differ(first[fsa.open_label[o]], splat(0.0))
        if any_of(small):
            for i in range(fsa.open_offsets[o], fsa.open_offsets[o + 1]):
                lost |= small & differ(x[fsa.taken_register[fsa.open_taken[i]]], splat(0.0))
    return lost


# opening_u(k) = token_k(u) + scale of entry_u          -inf where nothing enters body k
cdef inline void _open_bodies(
    semiring* ring, Automaton fsa, Workspace ws, Py_ssize_t u, lanes* entry, lanes scale
) noexcept nogil:
    """Log scores of the first tokens of segments that begin at u, by body, into ws.opening."""
    cdef Py_ssize_t k, o
    cdef lanes value
    for k in range(fsa.bodies):
        value = zero(ring)
        for o in range(fsa.body_offsets[k], fsa.body_offsets[k + 1]):
            value = larger(entry[o], value)
        at2(ws.opening, u, k)[0] = choose(
            less(zero(ring), value), at2(ws.token, u, k)[0] + scale, splat(-INFINITY)
        )
