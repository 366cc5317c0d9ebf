# Random paths of a lattice whose chart has sums: each choice with its share of what may follow.


cdef void draw_path(Lattice lattice, const double[:, ::1] uniform) noexcept nogil:
    """The segments of a random path."""
    cdef int number, begin = 0, choice
    lattice.found_count = 0
    number = state_node(lattice, 0, 0)
    while not lattice.full and lattice.nodes[number].kind != AT_END:
        choice = _chosen(lattice, number, uniform)
        note_segment(lattice, number, choice, &begin)
        number = follow(lattice, number, choice)


cdef int _chosen(Lattice lattice, int number, const double[:, ::1] uniform) noexcept nogil:
    """A choice; every node has a random number of its own."""
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
    return node.count - 1  # digits were lost
