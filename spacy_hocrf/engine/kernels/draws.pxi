# Random paths of a lattice whose chart has sums: each choice is made with its share of the node's sum.


cdef void draw_path(Lattice lattice, const double[:, ::1] uniform) noexcept nogil:
    """Draw a path, with random numbers [T + 1, 3] in [0, 1), and write its segments to lattice.segments."""
    cdef int number, begin = 0, choice
    lattice.segment_count = 0
    number = state_node(lattice, 0, 0)
    while not lattice.full and lattice.nodes[number].kind != AT_END:
        choice = _chosen(lattice, number, uniform)
        note_segment(lattice, number, choice, &begin)
        number = follow(lattice, number, choice)


cdef int _chosen(Lattice lattice, int number, const double[:, ::1] uniform) noexcept nogil:
    """Draw a choice of a node by the random number of its place and kind. RETURNS (int): its rank."""
    cdef Node* node = &lattice.nodes[number]
    cdef Choice* choices = lattice.choices + node.first
    cdef double high = -INFINITY, total = 0.0, left
    cdef int i
    for i in range(node.count):
        high = max(high, choices[i].value)
    for i in range(node.count):
        total += exp(choices[i].value - high)
    left = uniform[node.place, <int> node.kind - 1] * total
    for i in range(node.count):
        left -= exp(choices[i].value - high)
        if left < 0.0:
            return i
    return node.count - 1  # only after rounding
