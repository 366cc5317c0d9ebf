# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The best segmentation: the forward recurrence in (max, +), then the arg max again along the best path only.

Nguyen et al., JMLR 15 (2014) §2.4. No back-pointers are kept: from the best last state, the segment that reached it is found by
scoring the segments that end there once more, then the arc, then the state before.
"""

import numpy as np

from libc.math cimport INFINITY

from spacy_hocrf.engine.recursion cimport (
    Batch,
    Chain,
    Max,
    Workspace,
    forward,
    lift_arcs,
    load,
    score_endings,
    sum_entries,
    weigh_starts,
)

from spacy_hocrf.types import Segment

__all__ = ["viterbi"]


def viterbi(potentials, automaton):
    """Best segmentation of each sequence (Nguyen et al., JMLR 15, §2.4). Exact for scores of any sign.

    potentials (Potentials): log potentials of D sequences.
    automaton (Automaton): the arcs of the same Z patterns.
    RETURNS (tuple[list[list[Segment]], float64 [D]]): segments with positions inside their own sequence, and their scores in
        nats. A sequence without an allowed segmentation gets an empty list and -inf. Among equals the choice is always the
        same: from the right, the first forward state, then the shortest segment.
    RAISES (ValueError): H004, H005, H006 or H009 for potentials that do not fit.
    """
    cdef Chain chain = Chain(automaton)
    cdef Batch batch = Batch(potentials, chain)
    cdef Workspace ws = Workspace(chain, batch)
    cdef Py_ssize_t i, s, count, most = batch.longest
    cdef int[:, ::1] found = np.zeros((most, 3), dtype=np.int32)
    segmentations = []
    scores = np.zeros(batch.sequences)
    with nogil:
        lift_arcs(<Max*> NULL, chain, batch, ws)
    for i in range(batch.sequences):
        with nogil:
            load(chain, batch, ws, i)
            forward(<Max*> NULL, chain, batch, ws)
            count = _trace(chain, batch, ws, found) if ws.log_partition > -INFINITY else 0
        scores[i] = ws.log_partition
        segmentations.append([Segment(found[s, 0], found[s, 1], found[s, 2]) for s in range(count - 1, -1, -1)])
    return segmentations, scores


cdef Py_ssize_t _trace(Chain chain, Batch batch, Workspace ws, int[:, ::1] found) noexcept nogil:
    """Write the best segments, last one first; RETURNS their number."""
    cdef Py_ssize_t v = ws.tokens, u = 0, count = 0, p, q = 0, o
    cdef double best = -INFINITY
    for p in range(chain.states):
        if ws.alpha[v, p] + batch.final[ws.sequence, p] > best:
            best = ws.alpha[v, p] + batch.final[ws.sequence, p]
            q = p
    while v > 0:
        o = -1
        _last_segment(chain, batch, ws, v, q, &u, &o)
        q = _state_before(chain, batch, ws, u, o)
        found[count, 0] = u
        found[count, 1] = v
        found[count, 2] = chain.arc_label[_state_arc(chain, chain.open_target[o])]
        count += 1
        v = u
    return count


cdef void _last_segment(
    Chain chain, Batch batch, Workspace ws, Py_ssize_t v, Py_ssize_t q, Py_ssize_t* start, Py_ssize_t* open_state
) noexcept nogil:
    """Start and open state of the best segment that ends at v in state q."""
    cdef Py_ssize_t k, d, o, s
    cdef double best = -INFINITY, value
    cdef bint in_tail = False
    s = ws.span_low
    while s < ws.span_high and batch.span_end[batch.span_by_end[s]] < ws.base + v:
        s += 1
    ws.span_next = s
    score_endings(chain, batch, ws, v)
    for k in range(chain.bodies):
        for o in range(chain.body_offsets[k], chain.body_offsets[k + 1]):
            if chain.open_target[o] != q:
                continue
            for d in range(ws.reach[k]):
                value = ws.score[ws.window_offset[k] + d]
                if value > -INFINITY and value + ws.entry[v - 1 - d, o] > best:
                    best = value + ws.entry[v - 1 - d, o]
                    start[0] = v - 1 - d
                    open_state[0] = o
                    in_tail = False
            if ws.any_free and ws.tail_score[k] > -INFINITY and ws.tail_score[k] + ws.tail[v, o] > best:
                best = ws.tail_score[k] + ws.tail[v, o]
                open_state[0] = o
                in_tail = True
    if in_tail:
        start[0] = _tail_start(chain, ws, v, open_state[0])


cdef Py_ssize_t _tail_start(Chain chain, Workspace ws, Py_ssize_t v, Py_ssize_t o) noexcept nogil:
    """Where the best tail that is open at v in state o began: walk left while going on from v - 1 beats starting.

    Since it is open at v, all tokens after its start may CONTINUE, whichever of the two it was.
    """
    cdef Py_ssize_t k = 0, u, t
    cdef double old, new
    while o >= chain.body_offsets[k + 1]:
        k += 1
    while True:
        old = new = -INFINITY
        u = v - 1 - ws.window[k]
        if ws.tailing[v - 1, k]:
            old = ws.tail[v - 1, o] + ws.token[k, v - 1] + ws.inner[k, v - 1]
        if u >= 0 and ws.entering[u, k]:
            new = ws.entry[u, o] + ws.token[k, u]
            for t in range(u + 1, v):
                new += ws.token[k, t] + ws.inner[k, t]
        if new >= old:
            return u
        v -= 1


cdef Py_ssize_t _state_before(Chain chain, Batch batch, Workspace ws, Py_ssize_t u, Py_ssize_t o) noexcept nogil:
    """The best state at u from which an arc enters open state o."""
    cdef Py_ssize_t c, p, arc = -1, state = -1
    cdef double best = -INFINITY, value
    weigh_starts(<Max*> NULL, chain, batch, ws, u)
    sum_entries(<Max*> NULL, chain, ws, u)
    for c in range(chain.arcs):
        if chain.arc_open[c] == o:
            value = ws.x[chain.arc_register[c]] + ws.arc_weight[c] + ws.first[chain.arc_label[c]]
            if ws.has_rows[u]:
                value += ws.factor[c]
            if value > best:
                best = value
                arc = c
    best = -INFINITY
    for p in range(chain.states):
        if ws.alpha[u, p] > best and _arc_of(chain, p, chain.arc_label[arc]) == arc:
            best = ws.alpha[u, p]
            state = p
    return state


cdef Py_ssize_t _arc_of(Chain chain, Py_ssize_t p, int y) noexcept nogil:
    """c(p, y): the arc of the longest suffix of p that has one for y."""
    cdef Py_ssize_t i
    while True:
        for i in range(chain.state_offsets[p], chain.state_offsets[p + 1]):
            if chain.arc_label[chain.state_arcs[i]] == y:
                return chain.state_arcs[i]
        p = chain.state_suffix[p]


cdef Py_ssize_t _state_arc(Chain chain, Py_ssize_t q) noexcept nogil:
    """Any arc that enters state q, for its last label."""
    cdef Py_ssize_t c
    for c in range(chain.arcs):
        if chain.arc_target[c] == q:
            return c
    return -1
