# The small lattice of a sequence, and its paths with their joint states; for ruled.pxi.


cdef void _make_small(Lattice lattice, Ruling ruling, double lowest) noexcept nogil:
    """Make the small lattice: the choices of all paths that score at least `lowest` + the best score."""
    cdef Py_ssize_t at
    cdef int number, turn
    cdef Kind kind
    ruling.at_count = ruling.step_count = 0
    number = state_node(lattice, 0, 0)
    _make_room(lattice, ruling, lattice.node_count)
    if lattice.full:
        return
    for at in range(lattice.node_count):  # nodes that narrower lattices have made
        ruling.reach[at] = -INFINITY
    ruling.reach[number] = 0.0
    for at in range(lattice.tokens + 1):
        for turn in range(4):  # at one boundary, tails lead to states, which lead to segments
            kind = IN_TAIL if turn == 0 else IN_STATE if turn == 1 else IN_SEGMENT if turn == 2 else AT_END
            number = lattice.at_place[at]
            while number >= 0 and not lattice.full:
                if lattice.nodes[number].kind == kind and ruling.reach[number] > -INFINITY:
                    _take_steps(lattice, ruling, number, lowest)
                number = lattice.nodes[number].following


cdef void _make_room(Lattice lattice, Ruling ruling, int nodes) noexcept nogil:
    """Grow the arrays that have an element for each node."""
    ruling.reach = <double*> room(
        lattice, ruling.reach, &ruling.reach_room, nodes, sizeof(double)
    )
    ruling.place_of = <int*> room(
        lattice, ruling.place_of, &ruling.place_of_room, nodes, sizeof(int)
    )


cdef void _take_steps(Lattice lattice, Ruling ruling, int number, double lowest) noexcept nogil:
    """Add a place for a node, and a step for each of its choices that is good enough."""
    cdef double high = -INFINITY, value
    cdef Node* node = &lattice.nodes[number]
    cdef Place* place
    cdef Step* step
    cdef Choice choice
    cdef int i, target, known
    ruling.places = <Place*> room(
        lattice, ruling.places, &ruling.places_room, ruling.at_count + 1, sizeof(Place)
    )
    if lattice.full:
        return
    place = &ruling.places[ruling.at_count]
    ruling.place_of[number] = ruling.at_count
    ruling.at_count += 1
    place.node, place.keys, place.first, place.count = number, -1, ruling.step_count, 0
    for i in range(node.count):
        high = max(high, lattice.choices[node.first + i].value)
    for i in range(lattice.nodes[number].count):
        choice = lattice.choices[lattice.nodes[number].first + i]
        value = ruling.reach[number] + (choice.value - high)
        if value < lowest:
            continue
        known = lattice.node_count
        target = follow(lattice, number, i)
        ruling.steps = <Step*> room(
            lattice, ruling.steps, &ruling.step_room, ruling.step_count + 1, sizeof(Step)
        )
        _make_room(lattice, ruling, lattice.node_count)
        if lattice.full:
            return
        ruling.reach[target] = value if target >= known else max(ruling.reach[target], value)
        step = &ruling.steps[ruling.step_count]
        ruling.step_count += 1
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
    Lattice lattice,
    Ruling ruling,
    const int[::1] labels,
    const double[:, ::1] chances,
    double unlikely,
) noexcept nogil:
    """Find the labels that matter from each token on: those of which at least unlikely / labels.shape[0]
    segments are expected. Rules look at no others from there on.
    """
    cdef Py_ssize_t t, i
    cdef double rest
    cdef size_t words = ruling.words
    ruling.worth = <unsigned long long*> room(
        lattice,
        ruling.worth,
        &ruling.worth_room,
        (lattice.tokens + 1) * words,
        sizeof(unsigned long long),
    )
    if lattice.full:
        return
    memset(ruling.worth, 0, (lattice.tokens + 1) * words * sizeof(unsigned long long))
    for i in range(labels.shape[0]):
        rest = 0.0
        for t in range(lattice.tokens - 1, -1, -1):
            rest += chances[lattice.base + t, i]
            if rest * labels.shape[0] > unlikely:
                ruling.worth[t * words + labels[i] // 64] |= bit_of(labels[i])


cdef void _sum_after(Lattice lattice, Ruling ruling) noexcept nogil:
    """Compute the sum of the paths from each place, and the labels of the segments that may follow it."""
    cdef int i, s, word
    cdef size_t words = ruling.words
    cdef Place* place
    cdef Node* node
    cdef Step* step
    cdef unsigned long long* later
    cdef unsigned long long* worth
    ruling.later = <unsigned long long*> room(
        lattice,
        ruling.later,
        &ruling.later_room,
        ruling.at_count * words,
        sizeof(unsigned long long),
    )
    if lattice.full:
        return
    for i in range(ruling.at_count - 1, -1, -1):
        place = &ruling.places[i]
        place.after = 1.0 if lattice.nodes[place.node].kind == AT_END else 0.0
        later = &ruling.later[i * words]
        memset(later, 0, words * sizeof(unsigned long long))
        for s in range(place.first, place.first + place.count):
            step = &ruling.steps[s]
            place.after += step.share * ruling.places[ruling.place_of[step.target]].after
            for word in range(ruling.words):
                later[word] |= ruling.later[ruling.place_of[step.target] * words + word]
            if step.opens >= 0:
                later[step.opens // 64] |= bit_of(step.opens)
        node = &lattice.nodes[place.node]
        worth = &ruling.worth[min(node.place + (node.kind == IN_SEGMENT), lattice.tokens) * words]
        for word in range(ruling.words):
            later[word] &= worth[word]


cdef void _follow_all(Lattice lattice, Ruling ruling) noexcept nogil:
    """Run the forward pass over keys, and set the backward value of keys at the end of the sequence."""
    cdef int i, number
    cdef double mass
    ruling.key_count = ruling.link_count = 0
    ruling.given_up = 0.0
    for i in range(ruling.at_count):
        ruling.places[i].keys = -1
    for i in range(ruling.table_mask + 1 if ruling.table_room else 0):
        ruling.table[i] = -1
    if not _begin(lattice, ruling) or _key_of(lattice, ruling, 0, 0, 0) < 0:
        return
    ruling.keys[0].forward = 1.0
    for i in range(ruling.at_count):
        number = ruling.places[i].keys
        while number >= 0 and not lattice.full:
            mass = ruling.keys[number].forward * ruling.places[i].after
            if lattice.nodes[ruling.places[i].node].kind == AT_END:
                ruling.keys[number].backward = _worth_of(ruling, ruling.keys[number].joint)
            elif mass < ruling.improbable:
                ruling.given_up += mass
            elif ruling.link_count < MAX_LINKS:
                _follow(lattice, ruling, i, number)
            number = ruling.keys[number].following


cdef void _follow(Lattice lattice, Ruling ruling, int place, int origin) noexcept nogil:
    """Add a link for each step from the key `origin`."""
    cdef Node node = lattice.nodes[ruling.places[place].node]
    cdef Kind kind = node.kind
    cdef Step step
    cdef Link* link
    cdef int s, begin, target, joint, segment = -1
    if kind == IN_SEGMENT or kind == IN_TAIL:
        segment = lattice.graph.open_label[node.index]
    for s in range(ruling.places[place].first, ruling.places[place].first + ruling.places[place].count):
        step = ruling.steps[s]
        joint = _after(
            lattice, ruling, ruling.keys[origin].joint, step.opens, place, ruling.place_of[step.target]
        )
        if joint < 0:
            continue
        begin = ruling.keys[origin].begin if kind == IN_TAIL else node.place
        target = _key_of(
            lattice,
            ruling,
            ruling.place_of[step.target],
            joint,
            begin if segment >= 0 and step.ends < 0 else 0,
        )
        ruling.links = <Link*> room(
            lattice, ruling.links, &ruling.link_room, ruling.link_count + 1, sizeof(Link)
        )
        if lattice.full:
            return
        ruling.keys[target].forward += ruling.keys[origin].forward * step.share
        link = &ruling.links[ruling.link_count]
        ruling.link_count += 1
        link.origin, link.target, link.share = origin, target, step.share
        link.ending, link.gain = -1, 0.0
        link.start, link.end, link.label = begin, step.ends, segment if step.ends >= 0 else -1


cdef int _key_of(
    Lattice lattice, Ruling ruling, int place, int joint, int begin
) noexcept nogil:
    """The number of the key of a place and a joint state, made if new. RETURNS (int): -1 without memory."""
    cdef int number, slot
    cdef Key* key
    if 2 * ruling.key_count >= <int> ruling.table_mask or not ruling.table_room:
        _make_table(lattice, ruling)
        if lattice.full:
            return -1
    slot = _slot_of(ruling, place, joint, begin)
    number = ruling.table[slot]
    if number >= 0:
        return number
    number = ruling.key_count
    ruling.keys = <Key*> room(lattice, ruling.keys, &ruling.key_room, number + 1, sizeof(Key))
    if lattice.full:
        return -1
    ruling.key_count += 1
    ruling.table[slot] = number
    key = &ruling.keys[number]
    key.joint, key.place, key.begin = joint, place, begin
    key.following = ruling.places[place].keys
    key.forward = key.backward = 0.0
    ruling.places[place].keys = number
    return number


cdef void _make_table(Lattice lattice, Ruling ruling) noexcept nogil:
    """Make a hash table of all keys with at least four slots for each."""
    cdef size_t size = 256
    cdef int i
    cdef Key* key
    while size < 4 * <size_t> ruling.key_count:
        size *= 2
    ruling.table = <int*> room(lattice, ruling.table, &ruling.table_room, size, sizeof(int))
    if lattice.full:
        return
    ruling.table_mask = <int> size - 1
    for i in range(<int> size):
        ruling.table[i] = -1
    for i in range(ruling.key_count):
        key = &ruling.keys[i]
        ruling.table[_slot_of(ruling, key.place, key.joint, key.begin)] = i


cdef int _slot_of(Ruling ruling, int place, int joint, int begin) noexcept nogil:
    """The slot of a key in the hash table, or the empty slot where it belongs."""
    cdef unsigned long long mixed = <unsigned long long> joint * 0x9E3779B97F4A7C15ULL
    cdef Key* key
    cdef int slot
    mixed = (mixed ^ (mixed >> 29) ^ <unsigned long long> place) * 0xBF58476D1CE4E5B9ULL
    mixed = (mixed ^ (mixed >> 32) ^ <unsigned long long> begin) * 0x94D049BB133111EBULL
    slot = <int> (mixed >> 33) & ruling.table_mask
    while ruling.table[slot] >= 0:
        key = &ruling.keys[ruling.table[slot]]
        if key.place == place and key.joint == joint and key.begin == begin:
            break
        slot = (slot + 1) & ruling.table_mask
    return slot


cdef bint _begin(Lattice lattice, Ruling ruling) noexcept nogil:
    """Begin with joint state 0, the first state of every rule. RETURNS (bool): whether there is memory."""
    ruling.joint_count = 0
    ruling.joint = <unsigned short*> room(
        lattice,
        ruling.joint,
        &ruling.joint_room,
        2 * <size_t> ruling.rules + 1,
        sizeof(unsigned short),
    )
    _make_joint_table(lattice, ruling)
    if lattice.full:
        return False
    memset(ruling.joint, 0, ruling.rules * sizeof(unsigned short))
    return _joint_of_last(lattice, ruling, 0) == 0


cdef int _after(
    Lattice lattice, Ruling ruling, int joint, int label, int place, int target
) noexcept nogil:
    """The joint state after a step from `place` to `target`: moved on by the label of a segment that the step
    opens, and settled for rules none of whose labels can follow any more.

    label (int): -1 for none. RETURNS (int): -1 if a rule can no longer be kept, or without memory.
    """
    cdef size_t rules = ruling.rules
    cdef unsigned short* states = &ruling.joint[ruling.joint_count * rules]
    cdef unsigned long long* before = &ruling.later[<size_t> place * ruling.words]
    cdef unsigned long long* later = &ruling.later[<size_t> target * ruling.words]
    cdef unsigned long long lost, mixed = ruling.joint_hash[joint]
    cdef int i, word, other, rule, state
    memcpy(states, &ruling.joint[joint * rules], rules * sizeof(unsigned short))
    if label >= 0:
        for i in range(ruling.affected_offsets[label], ruling.affected_offsets[label + 1]):
            rule = ruling.affected[i]
            if not ruling.matter[rule]:
                continue
            state = ruling.after[rule, states[rule], label]
            if state < 0:
                return -1
            mixed ^= _enter(states, rule, state)
        mixed ^= _settle_rules(ruling, states, label, later)
    for word in range(ruling.words):
        lost = before[word] & ~later[word]
        other = 64 * word
        while lost:
            if lost & 1 and other != label:
                mixed ^= _settle_rules(ruling, states, other, later)
            lost >>= 1
            other += 1
    return joint if mixed == ruling.joint_hash[joint] else _joint_of_last(lattice, ruling, mixed)


cdef inline unsigned long long _enter(
    unsigned short* states, int rule, int state
) noexcept nogil:
    """Set the state of a rule in `states`. RETURNS (int): the bits to flip in the hash of the joint state."""
    cdef unsigned long long before = _mixed(rule, states[rule]), after = _mixed(rule, state)
    states[rule] = <unsigned short> state
    return before ^ after


cdef inline unsigned long long _mixed(int rule, int state) noexcept nogil:
    """Hash of a rule and its state, 0 for the first state (splitmix64); a joint state's hash is their xor."""
    cdef unsigned long long x = (<unsigned long long> rule << 16) + state + 1
    if state == 0:
        return 0
    x *= 0x9E3779B97F4A7C15ULL
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL
    return x ^ (x >> 31)


cdef unsigned long long _settle_rules(
    Ruling ruling, unsigned short* states, int label, const unsigned long long* later
) noexcept nogil:
    """Settle the rules that a label, but none of the labels `later`, can change. RETURNS (int): the bits to
    flip in the hash of the joint state.
    """
    cdef const unsigned long long* own
    cdef unsigned long long mixed = 0
    cdef int i, word, rule
    cdef bint open
    for i in range(ruling.affected_offsets[label], ruling.affected_offsets[label + 1]):
        rule = ruling.affected[i]
        if not ruling.matter[rule]:
            continue
        own = &ruling.labels_of[<size_t> rule * ruling.words]
        open = False
        for word in range(ruling.words):
            open |= (own[word] & later[word]) != 0
        if not open:
            mixed ^= _enter(states, rule, ruling.settled[rule, states[rule]])
    return mixed


cdef int _joint_of_last(
    Lattice lattice, Ruling ruling, unsigned long long mixed
) noexcept nogil:
    """The number of the joint state in the scratch row, whose hash is `mixed`; if it is new, it is kept.
    RETURNS (int): -1 if there is no more memory.
    """
    cdef size_t rules = ruling.rules
    cdef int slot = _joint_slot(ruling, ruling.joint_count, mixed)
    if ruling.joint_table[slot] >= 0:
        return ruling.joint_table[slot]
    ruling.joint_hash = <unsigned long long*> room(
        lattice,
        ruling.joint_hash,
        &ruling.joint_hash_room,
        ruling.joint_count + 1,
        sizeof(unsigned long long),
    )
    if lattice.full:
        return -1
    ruling.joint_hash[ruling.joint_count] = mixed
    ruling.joint_table[slot] = ruling.joint_count
    ruling.joint_count += 1
    ruling.joint = <unsigned short*> room(
        lattice,
        ruling.joint,
        &ruling.joint_room,
        (ruling.joint_count + 1) * rules + 1,
        sizeof(unsigned short),
    )
    if not lattice.full and 2 * ruling.joint_count >= ruling.joint_mask:
        _make_joint_table(lattice, ruling)
    return -1 if lattice.full else ruling.joint_count - 1


cdef void _make_joint_table(Lattice lattice, Ruling ruling) noexcept nogil:
    """Make a hash table of all joint states with at least four slots for each."""
    cdef size_t size = 256
    cdef int i
    while size < 4 * <size_t> ruling.joint_count:
        size *= 2
    ruling.joint_table = <int*> room(
        lattice, ruling.joint_table, &ruling.joint_table_room, size, sizeof(int)
    )
    if lattice.full:
        return
    ruling.joint_mask = <int> size - 1
    for i in range(<int> size):
        ruling.joint_table[i] = -1
    for i in range(ruling.joint_count):
        ruling.joint_table[_joint_slot(ruling, i, ruling.joint_hash[i])] = i


cdef int _joint_slot(Ruling ruling, int joint, unsigned long long mixed) noexcept nogil:
    """The slot of a joint state in the hash table, or the empty slot where it belongs."""
    cdef size_t rules = ruling.rules
    cdef unsigned short* states = &ruling.joint[joint * rules]
    cdef int other, slot = <int> (mixed & ruling.joint_mask)
    while ruling.joint_table[slot] >= 0:
        other = ruling.joint_table[slot]
        if ruling.joint_hash[other] == mixed:
            if memcmp(&ruling.joint[other * rules], states, rules * sizeof(unsigned short)) == 0:
                break
        slot = (slot + 1) & ruling.joint_mask
    return slot


cdef inline double _worth_of(Ruling ruling, int joint) noexcept nogil:
    """Product of exp(-price) over the rules that are broken by a path that ends in a joint state."""
    cdef unsigned short* states = &ruling.joint[<size_t> joint * ruling.rules]
    cdef double worth = 1.0
    cdef int rule
    for rule in range(ruling.rules):
        if ruling.matter[rule] and ruling.broken[rule, states[rule]]:
            worth *= ruling.factor[rule]
    return worth
