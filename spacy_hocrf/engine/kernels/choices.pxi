# The nodes of a lattice, each with its choices. A node is made when the first path reaches it.


cdef int state_node(Lattice lattice, Py_ssize_t place, Py_ssize_t state) noexcept nogil:
    """The node of a state between two segments, or that of the end of the sequence."""
    if place == lattice.tokens:
        return node_of(lattice, AT_END, place, 0)
    return node_of(lattice, IN_STATE, place, state)


cdef void forget_nodes(Lattice lattice) noexcept nogil:
    """Remove all nodes. Each place has a slot for each state, for each open state and, if segments may be
    longer than their window, another one for each open state.
    """
    cdef Py_ssize_t i, places = lattice.tokens + 1
    lattice.kinds = <int> (lattice.graph.states + (2 if lattice.any_tail else 1) * lattice.graph.opens)
    lattice.at_place = <int*> room(
        lattice, lattice.at_place, &lattice.place_room, places, sizeof(int)
    )
    lattice.node_at = <int*> room(
        lattice, lattice.node_at, &lattice.node_at_room, places * lattice.kinds, sizeof(int)
    )
    lattice.node_count = lattice.choice_count = 0
    if lattice.full:
        return
    for i in range(places):
        lattice.at_place[i] = -1
    for i in range(places * lattice.kinds):
        lattice.node_at[i] = -1


cdef int node_of(Lattice lattice, Kind kind, Py_ssize_t place, Py_ssize_t index) noexcept nogil:
    """The number of a node, which is made with its choices if it is new; -1 if there is no more memory."""
    cdef Py_ssize_t at = place * lattice.kinds + index
    cdef int number
    cdef Node* node
    if kind == IN_SEGMENT or kind == IN_TAIL:
        at += lattice.graph.states
    if kind == IN_TAIL:
        at += lattice.graph.opens
    number = lattice.node_at[at]
    if number >= 0:
        return number
    number = lattice.node_at[at] = lattice.node_count
    lattice.nodes = <Node*> room(lattice, lattice.nodes, &lattice.node_room, number + 1, sizeof(Node))
    if lattice.full:
        return -1
    lattice.node_count += 1
    node = &lattice.nodes[number]
    node.kind, node.place, node.index = kind, <int> place, <int> index
    node.following = lattice.at_place[place]
    lattice.at_place[place] = number
    node.first, node.count, node.ordered = lattice.choice_count, 0, 0
    node.best, node.detours = -1, UNKNOWN
    if kind == IN_STATE:
        _find_arcs(lattice, node)
    elif kind == IN_SEGMENT:
        _find_ends(lattice, node)
    elif kind == IN_TAIL:
        _find_end_of_tail(lattice, node)
    return number


cdef void _find_arcs(Lattice lattice, Node* node) noexcept nogil:
    """Add the choices of a state: ψ_u(c) + opened_u(open state of c) of each arc from it."""
    cdef const double* opened = lattice.opened + node.place * lattice.graph.opens
    cdef bint rows = note_rows(lattice, node.place)
    cdef Py_ssize_t i, c, suffix
    cdef double value
    for i in range(lattice.graph.exit_offsets[node.index], lattice.graph.exit_offsets[node.index + 1]):
        c = suffix = lattice.graph.exits[i]
        value = lattice.scores.arc_const[c] + opened[lattice.graph.arc_open[c]]
        while rows and suffix >= 0:
            value += lattice.own[suffix]
            suffix = lattice.graph.arc_suffix[suffix]
        _add_choice(lattice, node, value, c)
    if rows:
        forget_rows(lattice, node.place)


cdef void _find_ends(Lattice lattice, Node* node) noexcept nogil:
    """Add the choices of a segment: body(u, v) + beta_v(q) of each end, and one for all beyond the window."""
    cdef Py_ssize_t u = node.place, o = node.index, k = lattice.graph.open_body[o], d
    cdef Py_ssize_t bodies = lattice.graph.bodies, opens = lattice.graph.opens
    cdef Py_ssize_t bound = min(lattice.window[k], lattice.tokens - u)
    cdef double run = begin_segment(lattice, u, k), score
    note_spans(lattice, u)
    for d in range(1, bound + 1):
        score = run + score_of_end(lattice, u, d, k)
        _add_choice(lattice, node, score + lattice.ended[(u + d) * opens + o], d)
        run = run + lattice.step[(u + d) * bodies + k] if u + d < lattice.tokens else -INFINITY
        if run == -INFINITY:
            break
    forget_spans(lattice, u)
    if lattice.has_tail[k] and run > -INFINITY:
        _add_choice(lattice, node, run + lattice.rest[(u + bound + 1) * opens + o], 0)


cdef void _find_end_of_tail(Lattice lattice, Node* node) noexcept nogil:
    """Add the choices of a segment that is longer than the window: to end at v, or to go on."""
    cdef Py_ssize_t v = node.place, o = node.index, k = lattice.graph.open_body[o]
    cdef Py_ssize_t opens = lattice.graph.opens
    cdef double step
    _add_choice(lattice, node, end_of_tail(lattice, v, k) + lattice.ended[v * opens + o], 0)
    if v < lattice.tokens:
        step = lattice.step[v * lattice.graph.bodies + k]
        _add_choice(lattice, node, step + lattice.rest[(v + 1) * opens + o], 1)


cdef void _add_choice(Lattice lattice, Node* node, double value, Py_ssize_t code) noexcept nogil:
    """Add a choice to the node that was made last, unless it is impossible."""
    cdef int number = lattice.choice_count
    if value == -INFINITY:
        return
    lattice.choices = <Choice*> room(
        lattice, lattice.choices, &lattice.choice_room, number + 1, sizeof(Choice)
    )
    if lattice.full:
        return
    lattice.choices[number].value, lattice.choices[number].code = value, <int> code
    lattice.choice_count += 1
    node.count += 1


cdef bint order_choices(Lattice lattice, int number, int rank) noexcept nogil:
    """Sort the best choices of a node up to rank `rank`, counted from 0; among equals by ascending code.
    RETURNS (bool): whether there is a choice of this rank.
    """
    cdef Node* node = &lattice.nodes[number]
    cdef Choice* choices = lattice.choices + node.first
    cdef Choice best
    cdef int i, at
    if rank >= node.count:
        return False
    while node.ordered <= rank:
        at = node.ordered
        for i in range(node.ordered + 1, node.count):
            if choices[i].value > choices[at].value or (
                choices[i].value == choices[at].value and choices[i].code < choices[at].code
            ):
                at = i
        best = choices[at]
        choices[at] = choices[node.ordered]
        choices[node.ordered] = best
        node.ordered += 1
    return True


cdef int follow(Lattice lattice, int number, int rank) noexcept nogil:
    """The node that the choice of a rank leads to; -1 if there is no more memory."""
    cdef Kind kind = lattice.nodes[number].kind
    cdef Py_ssize_t place = lattice.nodes[number].place, index = lattice.nodes[number].index
    cdef int code = lattice.choices[lattice.nodes[number].first + rank].code
    if kind == IN_STATE:
        return node_of(lattice, IN_SEGMENT, place, lattice.graph.arc_open[code])
    if kind == IN_SEGMENT:
        if code > 0:
            return state_node(lattice, place + code, lattice.graph.open_target[index])
        return node_of(lattice, IN_TAIL, place + lattice.window[lattice.graph.open_body[index]] + 1, index)
    if code > 0:
        return node_of(lattice, IN_TAIL, place + 1, index)
    return state_node(lattice, place, lattice.graph.open_target[index])


cdef void note_segment(Lattice lattice, int number, int rank, int* begin) noexcept nogil:
    """Append the segment that a choice ends, if any, to lattice.segments.

    begin (int*): where the open segment begins; updated by the choices of a segment.
    """
    cdef Node* node = &lattice.nodes[number]
    cdef int code = lattice.choices[node.first + rank].code, end = -1
    cdef int* out
    if node.kind == IN_SEGMENT:
        begin[0] = node.place
        if code > 0:
            end = node.place + code
    elif node.kind == IN_TAIL and code == 0:
        end = node.place
    if end < 0:
        return
    lattice.segments = <int*> room(
        lattice, lattice.segments, &lattice.segment_room, 3 * (lattice.segment_count + 1), sizeof(int)
    )
    if lattice.full:
        return
    out = lattice.segments + 3 * lattice.segment_count
    out[0], out[1], out[2] = begin[0], end, lattice.graph.open_label[node.index]
    lattice.segment_count += 1
