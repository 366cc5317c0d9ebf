# The small lattice of a sequence, and its paths with what they remember; for counted.pxi.


cdef void _make_small(Lattice lattice, Counting counting, double lowest) noexcept nogil:
    """The choices of all paths that are not too bad, place by place."""
    cdef Py_ssize_t at
    cdef int number, turn
    cdef Kind kind
    counting.at_count = counting.step_count = 0
    lattice.node_count = lattice.choice_count = 0
    for at in range(lattice.tokens + 1):
        lattice.at_place[at] = -1
    number = state_node(lattice, 0, 0)
    if lattice.full or not _reached(lattice, counting, number, 0.0):
        return
    for at in range(lattice.tokens + 1):
        for turn in range(4):  # a place's tails end in its states, which open its segments
            kind = IN_TAIL if turn == 0 else IN_STATE if turn == 1 else IN_SEGMENT if turn == 2 else AT_END
            number = lattice.at_place[at]
            while number >= 0 and not lattice.full:
                if lattice.nodes[number].kind == kind:
                    _take_steps(lattice, counting, number, lowest)
                number = lattice.nodes[number].following


cdef bint _reached(Lattice lattice, Counting counting, int number, double value) noexcept nogil:
    """A path of this value comes to a node. RETURNS (bool): is there memory?"""
    counting.reach = <double*> room(
        lattice, counting.reach, &counting.reach_room, number + 1, sizeof(double)
    )
    counting.place_of = <int*> room(
        lattice, counting.place_of, &counting.place_of_room, number + 1, sizeof(int)
    )
    if lattice.full:
        return False
    counting.reach[number] = value
    counting.place_of[number] = -1
    return True


cdef void _take_steps(Lattice lattice, Counting counting, int number, double lowest) noexcept nogil:
    """The good choices of a node."""
    cdef double high = -INFINITY, value
    cdef Node* node = &lattice.nodes[number]
    cdef Place* place
    cdef Step* step
    cdef Choice choice
    cdef int i, target, known
    counting.places = <Place*> room(
        lattice, counting.places, &counting.places_room, counting.at_count + 1, sizeof(Place)
    )
    if lattice.full:
        return
    place = &counting.places[counting.at_count]
    counting.place_of[number] = counting.at_count
    counting.at_count += 1
    place.node, place.keys, place.first, place.count = number, -1, counting.step_count, 0
    for i in range(node.count):
        high = max(high, lattice.choices[node.first + i].value)
    for i in range(lattice.nodes[number].count):
        choice = lattice.choices[lattice.nodes[number].first + i]
        value = counting.reach[number] + (choice.value - high)
        if value < lowest:
            continue
        known = lattice.node_count
        target = follow(lattice, number, i)
        counting.steps = <Step*> room(
            lattice, counting.steps, &counting.step_room, counting.step_count + 1, sizeof(Step)
        )
        if lattice.full:
            return
        if target >= known and not _reached(lattice, counting, target, value):
            return
        counting.reach[target] = max(counting.reach[target], value)
        step = &counting.steps[counting.step_count]
        counting.step_count += 1
        place.count += 1
        step.share, step.target = exp(choice.value - high), target
        node = &lattice.nodes[number]
        step.opens = step.ends = -1
        if node.kind == IN_STATE:
            step.opens = lattice.graph.open_label[lattice.graph.arc_open[choice.code]]
        elif node.kind == IN_SEGMENT and choice.code > 0:
            step.ends = node.place + choice.code
        elif node.kind == IN_TAIL and choice.code == 0:
            step.ends = node.place


cdef void _find_worth(
    Lattice lattice, Counting counting, const double[:, ::1] chances, double unlikely
) noexcept nogil:
    """The rules that are worth remembering at each place: the more probable ones of those that what follows
    may break. The others are forgotten there.
    """
    cdef Py_ssize_t t, rule, rules = counting.base.shape[0]
    cdef double rest
    counting.worth = <unsigned long long*> room(
        lattice, counting.worth, &counting.worth_room, lattice.tokens + 1, sizeof(unsigned long long)
    )
    if lattice.full:
        return
    for t in range(lattice.tokens + 1):
        counting.worth[t] = 0
    for rule in range(rules):
        rest = 0.0
        for t in range(lattice.tokens - 1, -1, -1):
            rest += chances[lattice.base + t, rule]
            if rest * rules > unlikely:
                counting.worth[t] |= (<unsigned long long> 1) << rule


cdef void _sum_after(Lattice lattice, Counting counting) noexcept nogil:
    """What may follow each place, and the rules that it is about."""
    cdef int i, s
    cdef Place* place
    cdef Place* following
    cdef Node* node
    cdef Step* step
    for i in range(counting.at_count - 1, -1, -1):
        place = &counting.places[i]
        place.after = 1.0 if lattice.nodes[place.node].kind == AT_END else 0.0
        place.later = 0
        for s in range(place.first, place.first + place.count):
            step = &counting.steps[s]
            following = &counting.places[counting.place_of[step.target]]
            place.after += step.share * following.after
            place.later |= following.later
            if step.opens >= 0 and counting.rule_of[step.opens] >= 0:
                place.later |= (<unsigned long long> 1) << counting.rule_of[step.opens]
        node = &lattice.nodes[place.node]
        place.later &= counting.worth[min(node.place + (node.kind == IN_SEGMENT), lattice.tokens)]
        place.later |= ~counting.forgettable


cdef void _follow_all(Lattice lattice, Counting counting) noexcept nogil:
    """The paths from the beginning, with what they remember."""
    cdef int i, number
    cdef double mass
    counting.key_count = counting.link_count = 0
    counting.given_up = 0.0
    for i in range(counting.at_count):
        counting.places[i].keys = -1
    for i in range(counting.table_mask + 1 if counting.table_room else 0):
        counting.table[i] = -1
    if _key_of(lattice, counting, 0, 0, 0) < 0:
        return
    counting.keys[0].forward = 1.0
    for i in range(counting.at_count):
        number = counting.places[i].keys
        while number >= 0 and not lattice.full:
            mass = counting.keys[number].forward * counting.places[i].after
            if lattice.nodes[counting.places[i].node].kind == AT_END:
                counting.keys[number].backward = _may_end(counting, counting.keys[number].memory)
            elif mass < counting.improbable:
                counting.given_up += mass
            elif counting.link_count < MOST_LINKS:
                _follow(lattice, counting, i, number)
            number = counting.keys[number].following


cdef void _follow(Lattice lattice, Counting counting, int place, int origin) noexcept nogil:
    """All steps from a key."""
    cdef Node node = lattice.nodes[counting.places[place].node]
    cdef Kind kind = node.kind
    cdef Step step
    cdef Place* following
    cdef Link* link
    cdef long long memory
    cdef int s, begin, target, segment = -1
    if kind == IN_SEGMENT or kind == IN_TAIL:
        segment = lattice.graph.open_label[node.index]
    for s in range(counting.places[place].first, counting.places[place].first + counting.places[place].count):
        step = counting.steps[s]
        memory = counting.keys[origin].memory
        following = &counting.places[counting.place_of[step.target]]
        if step.opens >= 0 and counting.rule_of[step.opens] >= 0:
            memory = _remember(counting, memory, counting.rule_of[step.opens], following.later)
            if memory < 0:
                continue
        memory = _without(counting, memory, counting.places[place].later & ~following.later)
        begin = counting.keys[origin].begin if kind == IN_TAIL else node.place
        target = _key_of(
            lattice,
            counting,
            counting.place_of[step.target],
            memory,
            begin if segment >= 0 and step.ends < 0 else 0,
        )
        counting.links = <Link*> room(
            lattice, counting.links, &counting.link_room, counting.link_count + 1, sizeof(Link)
        )
        if lattice.full:
            return
        counting.keys[target].forward += counting.keys[origin].forward * step.share
        link = &counting.links[counting.link_count]
        counting.link_count += 1
        link.origin, link.target, link.share = origin, target, step.share
        link.ending, link.gain = -1, 0.0
        link.start, link.end, link.label = begin, step.ends, segment if step.ends >= 0 else -1


cdef int _key_of(
    Lattice lattice, Counting counting, int place, long long memory, int begin
) noexcept nogil:
    """The key of a place and what is remembered. RETURNS (int): -1 if there is no more memory."""
    cdef int number, slot
    cdef Key* key
    if 2 * counting.key_count >= <int> counting.table_mask or not counting.table_room:
        _make_table(lattice, counting)
        if lattice.full:
            return -1
    slot = _slot_of(counting, place, memory, begin)
    number = counting.table[slot]
    if number >= 0:
        return number
    number = counting.key_count
    counting.keys = <Key*> room(lattice, counting.keys, &counting.key_room, number + 1, sizeof(Key))
    if lattice.full:
        return -1
    counting.key_count += 1
    counting.table[slot] = number
    key = &counting.keys[number]
    key.memory, key.place, key.begin = memory, place, begin
    key.following = counting.places[place].keys
    key.forward = key.backward = 0.0
    counting.places[place].keys = number
    return number


cdef void _make_table(Lattice lattice, Counting counting) noexcept nogil:
    """One with room for four times the keys."""
    cdef size_t size = 256
    cdef int i
    cdef Key* key
    while size < 4 * <size_t> counting.key_count:
        size *= 2
    counting.table = <int*> room(lattice, counting.table, &counting.table_room, size, sizeof(int))
    if lattice.full:
        return
    counting.table_mask = <int> size - 1
    for i in range(<int> size):
        counting.table[i] = -1
    for i in range(counting.key_count):
        key = &counting.keys[i]
        counting.table[_slot_of(counting, key.place, key.memory, key.begin)] = i


cdef int _slot_of(Counting counting, int place, long long memory, int begin) noexcept nogil:
    """Where a key is in the table, or may be put."""
    cdef unsigned long long mixed = <unsigned long long> memory * 0x9E3779B97F4A7C15ULL
    cdef Key* key
    cdef int slot
    mixed = (mixed ^ (mixed >> 29) ^ <unsigned long long> place) * 0xBF58476D1CE4E5B9ULL
    mixed = (mixed ^ (mixed >> 32) ^ <unsigned long long> begin) * 0x94D049BB133111EBULL
    slot = <int> (mixed >> 33) & counting.table_mask
    while counting.table[slot] >= 0:
        key = &counting.keys[counting.table[slot]]
        if key.place == place and key.memory == memory and key.begin == begin:
            break
        slot = (slot + 1) & counting.table_mask
    return slot


cdef inline long long _remember(
    Counting counting, long long memory, int rule, unsigned long long later
) noexcept nogil:
    """What is remembered behind one more segment of a rule; -1 if there must be no more."""
    cdef long long number = memory // counting.place[rule] % counting.base[rule]
    if number < counting.base[rule] - 1:
        return memory + counting.place[rule] if later >> rule & 1 else memory
    return -1 if counting.capped[rule] else memory


cdef inline long long _without(
    Counting counting, long long memory, unsigned long long rules
) noexcept nogil:
    """What is remembered but for some rules."""
    cdef int rule = 0
    while rules:
        if rules & 1:
            memory -= memory // counting.place[rule] % counting.base[rule] * counting.place[rule]
        rules >>= 1
        rule += 1
    return memory


cdef inline double _may_end(Counting counting, long long memory) noexcept nogil:
    """1 if there are enough segments of each label, else 0."""
    cdef Py_ssize_t rule
    for rule in range(counting.base.shape[0]):
        if memory // counting.place[rule] % counting.base[rule] < counting.least[rule]:
            return 0.0
    return 1.0
