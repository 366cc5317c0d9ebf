# The paths of a lattice in order of their scores, each derived from a better one.
#
# The best path takes the first choice of every node. Taking the second one instead is a *detour*, whose
# cost is the difference. The detours of a path determine it, and every path but the best one is a better
# path that makes its last detour at another node, or to a choice of lower rank, or makes one more detour
# after it. The detours on the best path from a node are in a heap that shares all but a few entries with
# that of the next node, so that the next best path is found without listing the others: Eppstein, SIAM
# Journal on Computing 28 (1998). Nodes are made on demand, as in Jiménez and Marzal, WEA 2003.


cdef void begin_paths(Lattice lattice) noexcept nogil:
    """Put the best path into the queue, if there is a path at all."""
    lattice.detour_count = lattice.path_count = lattice.queue_count = 0
    if lattice.total > -INFINITY:
        _push(lattice, -1, -1, 0, 0.0)


cdef bint next_path(Lattice lattice, double* score) noexcept nogil:
    """Write the score of the next best path, and append its segments to lattice.segments; False for none."""
    cdef int number, node, rank, detour, parent
    cdef double cost
    cdef Choice* choices
    if lattice.queue_count == 0 or lattice.full:
        return False
    number = _pop(lattice)
    cost, rank = lattice.paths[number].cost, lattice.paths[number].rank
    detour, parent = lattice.paths[number].detour, lattice.paths[number].parent
    if detour < 0:
        node = state_node(lattice, 0, 0)
    else:
        node = lattice.detours[detour].node
        if rank == 1:  # the last detour at another node instead
            cost -= lattice.detours[detour].cost
            _push_detour(lattice, parent, lattice.detours[detour].left, cost)
            _push_detour(lattice, parent, lattice.detours[detour].right, cost)
            cost = lattice.paths[number].cost
        if order_choices(lattice, node, rank + 1):
            choices = lattice.choices + lattice.nodes[node].first
            _push(lattice, parent, detour, rank + 1, cost + (choices[rank].value - choices[rank + 1].value))
        node = follow(lattice, node, rank)
    _settle(lattice, node)
    if lattice.full:
        return False
    _push_detour(lattice, number, lattice.nodes[node].detours, cost)
    _walk(lattice, number)
    score[0] = lattice.total - cost
    return True


cdef void _push_detour(Lattice lattice, int parent, int detour, double cost) noexcept nogil:
    """Put the path `parent`, whose cost is `cost`, with one more detour into the queue."""
    if detour >= 0:
        _push(lattice, parent, detour, 1, cost + lattice.detours[detour].cost)


cdef void _settle(Lattice lattice, int number) noexcept nogil:
    """Make the heap of detours of a node: follow the best choices to a node that has one, and make the heaps
    of the nodes between on the way back.
    """
    cdef int at = number, height = 0
    cdef Node* node
    while not lattice.full and lattice.nodes[at].detours == UNKNOWN:
        lattice.way = <int*> room(lattice, lattice.way, &lattice.way_room, height + 1, sizeof(int))
        if lattice.full:
            return
        lattice.way[height] = at
        height += 1
        if lattice.nodes[at].kind == AT_END:
            lattice.nodes[at].detours = -1
            break
        order_choices(lattice, at, 1)
        order_choices(lattice, at, 0)
        node = NULL
        at = follow(lattice, at, 0)
        if at >= 0:
            lattice.nodes[lattice.way[height - 1]].best = at
    while height > 0 and not lattice.full:
        height -= 1
        at = lattice.way[height]
        node = &lattice.nodes[at]
        if node.kind == AT_END:
            continue
        node.detours = lattice.nodes[node.best].detours
        if node.count > 1:
            node.detours = _with_detour(lattice, node.detours, at)


cdef int _with_detour(Lattice lattice, int heap, int number) noexcept nogil:
    """Make a heap with the detour of one more node, without changing the old heap. RETURNS (int): its root,
    -1 if there is no more memory.
    """
    cdef Choice* choices = lattice.choices + lattice.nodes[number].first
    cdef Detour detour
    detour.cost, detour.node = choices[0].value - choices[1].value, number
    detour.left, detour.right, detour.height = -1, -1, 1
    return _insert(lattice, heap, detour)


cdef int _insert(Lattice lattice, int heap, Detour detour) noexcept nogil:
    """Insert a detour into a leftist heap, copying its right spine. RETURNS (int): the new root."""
    cdef Detour root
    cdef int right
    if heap < 0:
        return _add_detour(lattice, detour)
    root = lattice.detours[heap]
    if detour.cost <= root.cost:
        detour.left = heap
        return _add_detour(lattice, detour)
    right = _insert(lattice, root.right, detour)
    root.right = right
    if root.left < 0 or lattice.detours[root.left].height < lattice.detours[right].height:
        root.left, root.right = right, root.left
    root.height = 1 + (lattice.detours[root.right].height if root.right >= 0 else 0)
    return _add_detour(lattice, root)


cdef int _add_detour(Lattice lattice, Detour detour) noexcept nogil:
    cdef int number = lattice.detour_count
    lattice.detours = <Detour*> room(
        lattice, lattice.detours, &lattice.detour_room, number + 1, sizeof(Detour)
    )
    if lattice.full:
        return -1
    lattice.detours[number] = detour
    lattice.detour_count += 1
    return number


cdef void _walk(Lattice lattice, int number) noexcept nogil:
    """Append the segments of a path to lattice.segments."""
    cdef int height = 0, node, rank, begin = 0
    cdef Path* path
    while number >= 0 and lattice.paths[number].detour >= 0:
        lattice.way = <int*> room(lattice, lattice.way, &lattice.way_room, height + 1, sizeof(int))
        if lattice.full:
            return
        lattice.way[height] = number
        height += 1
        number = lattice.paths[number].parent
    node = state_node(lattice, 0, 0)
    while not lattice.full and lattice.nodes[node].kind != AT_END:
        rank = 0
        if height > 0:
            path = &lattice.paths[lattice.way[height - 1]]
            if lattice.detours[path.detour].node == node:
                rank = path.rank
                height -= 1
        note_segment(lattice, node, rank, &begin)
        node = follow(lattice, node, rank) if rank else lattice.nodes[node].best


cdef void _push(Lattice lattice, int parent, int detour, int rank, double cost) noexcept nogil:
    """Put a path into the queue, a binary heap by cost."""
    cdef int number = lattice.path_count, at = lattice.queue_count, above
    cdef Path* path
    lattice.paths = <Path*> room(lattice, lattice.paths, &lattice.path_room, number + 1, sizeof(Path))
    lattice.queue = <int*> room(lattice, lattice.queue, &lattice.queue_room, at + 1, sizeof(int))
    if lattice.full:
        return
    path = &lattice.paths[number]
    path.parent, path.detour, path.rank, path.cost = parent, detour, rank, cost
    lattice.path_count += 1
    lattice.queue_count += 1
    while at > 0:
        above = (at - 1) // 2
        if lattice.paths[lattice.queue[above]].cost <= cost:
            break
        lattice.queue[at] = lattice.queue[above]
        at = above
    lattice.queue[at] = number


cdef int _pop(Lattice lattice) noexcept nogil:
    """Take the path of least cost out of the queue; among equals the one that was put in first."""
    cdef int first = lattice.queue[0], last, at = 0, below, n
    lattice.queue_count -= 1
    n = lattice.queue_count
    last = lattice.queue[n]
    while 2 * at + 1 < n:
        below = 2 * at + 1
        if below + 1 < n and _sooner(lattice, lattice.queue[below + 1], lattice.queue[below]):
            below += 1
        if not _sooner(lattice, lattice.queue[below], last):
            break
        lattice.queue[at] = lattice.queue[below]
        at = below
    lattice.queue[at] = last
    return first


cdef inline bint _sooner(Lattice lattice, int one, int other) noexcept nogil:
    """Whether a path comes before another: by cost, then by number."""
    cdef double a = lattice.paths[one].cost, b = lattice.paths[other].cost
    return a < b or (a == b and one < other)
