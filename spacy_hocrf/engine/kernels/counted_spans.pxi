# The segments of the paths that were found, each once, and the path that is worth most; for counted.pxi.


cdef int _by_segment(const void* one, const void* other) noexcept nogil:
    """Above 0 if a segment comes after another one, below if before."""
    cdef const Ending* a = <const Ending*> one
    cdef const Ending* b = <const Ending*> other
    if a.start != b.start:
        return 1 if a.start > b.start else -1
    if a.end != b.end:
        return 1 if a.end > b.end else -1
    return (a.label > b.label) - (a.label < b.label)


cdef void _merge(Lattice lattice, Counting counting, double kept) noexcept nogil:
    """The probability of each segment that is wanted: paths come to its end in several states."""
    cdef Link* link
    cdef Ending* ending
    cdef double total
    cdef int i, j, first = 0
    counting.endings = <Ending*> room(
        lattice, counting.endings, &counting.ending_room, counting.link_count, sizeof(Ending)
    )
    counting.ending_count = 0
    if lattice.full:
        return
    for i in range(counting.link_count):
        link = &counting.links[i]
        if link.label < 0 or counting.spans[link.label] < 0:
            continue
        total = counting.keys[link.origin].forward * link.share * counting.keys[link.target].backward
        if total > 0.0:
            ending = &counting.endings[counting.ending_count]
            counting.ending_count += 1
            ending.start, ending.end, ending.label, ending.link = link.start, link.end, link.label, i
            ending.probability = total / kept
    if counting.ending_count == 0:
        return
    qsort(counting.endings, counting.ending_count, sizeof(Ending), _by_segment)
    for i in range(1, counting.ending_count + 1):
        if i < counting.ending_count and _by_segment(&counting.endings[i], &counting.endings[first]) == 0:
            continue
        total = 0.0
        for j in range(first, i):
            total += counting.endings[j].probability
        for j in range(first, i):
            counting.endings[j].probability = total
        first = i


cdef void _note_probable(
    Lattice lattice, Counting counting, int sequence, double least
) noexcept nogil:
    """Each probable segment once."""
    cdef int i
    for i in range(counting.ending_count):
        if counting.endings[i].probability < least:
            continue
        if i == 0 or _by_segment(&counting.endings[i - 1], &counting.endings[i]) != 0:
            _note(lattice, counting, sequence, counting.endings[i])


cdef void _note(Lattice lattice, Counting counting, int sequence, Ending ending) noexcept nogil:
    """One more span that was found."""
    cdef Found* found
    counting.found = <Found*> room(
        lattice, counting.found, &counting.found_room, counting.found_count + 1, sizeof(Found)
    )
    if lattice.full:
        return
    found = &counting.found[counting.found_count]
    counting.found_count += 1
    found.sequence, found.start, found.end = sequence, ending.start, ending.end
    found.label, found.probability = counting.spans[ending.label], min(ending.probability, 1.0)


cdef void _choose(Lattice lattice, Counting counting, int sequence, double cost) noexcept nogil:
    """The spans of the path with the largest sum of P(span) - cost."""
    cdef Link* link
    cdef double gain
    cdef int i, number
    counting.way = <int*> room(lattice, counting.way, &counting.way_room, counting.key_count, sizeof(int))
    if lattice.full:
        return
    for i in range(counting.ending_count):
        link = &counting.links[counting.endings[i].link]
        link.gain, link.ending = counting.endings[i].probability - cost, i
    for i in range(counting.key_count):
        counting.way[i] = -1
        counting.keys[i].forward = -INFINITY  # from here on the gain of what follows
    number = counting.places[counting.at_count - 1].keys
    while number >= 0:
        if counting.keys[number].backward > 0.0:
            counting.keys[number].forward = 0.0
        number = counting.keys[number].following
    for i in range(counting.link_count - 1, -1, -1):
        link = &counting.links[i]
        gain = link.gain + counting.keys[link.target].forward
        if gain > counting.keys[link.origin].forward:
            counting.keys[link.origin].forward = gain
            counting.way[link.origin] = i
    number = counting.way[0]
    while number >= 0:
        link = &counting.links[number]
        if link.ending >= 0:
            _note(lattice, counting, sequence, counting.endings[link.ending])
        number = counting.way[link.target]
