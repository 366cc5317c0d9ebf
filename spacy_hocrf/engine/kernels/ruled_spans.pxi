# The segments of the paths under rules, each once, and the best path; for ruled.pxi.


cdef int _by_segment(const void* one, const void* other) noexcept nogil:
    """Compare two endings for qsort: positive if the segment of `one` comes later, 0 if it is the same."""
    cdef const Ending* a = <const Ending*> one
    cdef const Ending* b = <const Ending*> other
    if a.start != b.start:
        return 1 if a.start > b.start else -1
    if a.end != b.end:
        return 1 if a.end > b.end else -1
    return (a.label > b.label) - (a.label < b.label)


cdef void _merge(Lattice lattice, Ruling ruling, double kept) noexcept nogil:
    """List the links that end a segment of a wanted label, by segment, each with the probability of the
    segment: the sum over all links that end it, divided by `kept`, the sum of all paths.
    """
    cdef Link* link
    cdef Ending* ending
    cdef double total
    cdef int i, j, first = 0
    ruling.endings = <Ending*> room(
        lattice, ruling.endings, &ruling.ending_room, ruling.link_count, sizeof(Ending)
    )
    ruling.ending_count = 0
    if lattice.full:
        return
    for i in range(ruling.link_count):
        link = &ruling.links[i]
        if link.label < 0 or ruling.spans[link.label] < 0:
            continue
        total = ruling.keys[link.origin].forward * link.share * ruling.keys[link.target].backward
        if total > 0.0:
            ending = &ruling.endings[ruling.ending_count]
            ruling.ending_count += 1
            ending.start, ending.end, ending.label, ending.link = link.start, link.end, link.label, i
            ending.probability = total / kept
    if ruling.ending_count == 0:
        return
    qsort(ruling.endings, ruling.ending_count, sizeof(Ending), _by_segment)
    for i in range(1, ruling.ending_count + 1):
        if i < ruling.ending_count and _by_segment(&ruling.endings[i], &ruling.endings[first]) == 0:
            continue
        total = 0.0
        for j in range(first, i):
            total += ruling.endings[j].probability
        for j in range(first, i):
            ruling.endings[j].probability = total
        first = i


cdef void _note_probable(
    Lattice lattice, Ruling ruling, int sequence, double least
) noexcept nogil:
    """Add each segment with a probability of at least `least` to ruling.found."""
    cdef int i
    for i in range(ruling.ending_count):
        if ruling.endings[i].probability < least:
            continue
        if i == 0 or _by_segment(&ruling.endings[i - 1], &ruling.endings[i]) != 0:
            _note(lattice, ruling, sequence, ruling.endings[i])


cdef void _note(Lattice lattice, Ruling ruling, int sequence, Ending ending) noexcept nogil:
    """Add a span to ruling.found."""
    cdef Found* found
    ruling.found = <Found*> room(
        lattice, ruling.found, &ruling.found_room, ruling.found_count + 1, sizeof(Found)
    )
    if lattice.full:
        return
    found = &ruling.found[ruling.found_count]
    ruling.found_count += 1
    found.sequence, found.start, found.end = sequence, ending.start, ending.end
    found.label, found.probability = ruling.spans[ending.label], min(ending.probability, 1.0)


cdef void _choose(Lattice lattice, Ruling ruling, int sequence, double cost) noexcept nogil:
    """Add the spans of the path with the largest sum of P(span) - cost to ruling.found."""
    cdef Link* link
    cdef double gain
    cdef int i, number
    ruling.way = <int*> room(lattice, ruling.way, &ruling.way_room, ruling.key_count, sizeof(int))
    if lattice.full:
        return
    for i in range(ruling.ending_count):
        link = &ruling.links[ruling.endings[i].link]
        link.gain, link.ending = ruling.endings[i].probability - cost, i
    for i in range(ruling.key_count):
        ruling.way[i] = -1
        ruling.keys[i].forward = -INFINITY  # reused: the largest gain of all that may follow the key
    number = ruling.places[ruling.at_count - 1].keys
    while number >= 0:
        if ruling.keys[number].backward > 0.0:
            ruling.keys[number].forward = 0.0
        number = ruling.keys[number].following
    for i in range(ruling.link_count - 1, -1, -1):
        link = &ruling.links[i]
        gain = link.gain + ruling.keys[link.target].forward
        if gain > ruling.keys[link.origin].forward:
            ruling.keys[link.origin].forward = gain
            ruling.way[link.origin] = i
    number = ruling.way[0]
    while number >= 0:
        link = &ruling.links[number]
        if link.ending >= 0:
            _note(lattice, ruling, sequence, ruling.endings[link.ending])
        number = ruling.way[link.target]
