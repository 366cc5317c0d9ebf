# Sums over the segmentations of a sequence, each less the prices of the rules that it breaks, and the best.
#
# What rules remember multiplies the lattice: 28 labels that may come once have 2^28 states. Nearly all of
# the product is improbable. The chart of the best values tells of every choice how good the best path is
# that takes it; those within `width` of the best of all make a small lattice. Its paths go on with the
# states of all rules, which are found as paths come to them, and those that are together too improbable
# in one set of states are given up. Since log Z is known, so is the probability of all that was left out,
# and the width grows until that is small. Where no label of a rule may follow, its state is of no account
# but for what it ends with, and is exchanged for the first one that ends so.
#
# With values V of the chart, a choice's share is exp(its value - V), so that the product of the shares of
# a path is its probability by that of the best one, and no sum of them is above MOST_PATHS. The last
# link multiplies by exp(-price) for each rule that is broken.

cdef enum:
    MOST_LINKS = 131072  # of a sequence; with more it is given up

cdef double FIRST_WIDTH = 8.0
cdef double LAST_WIDTH = 48.0
cdef double FIRST_IMPROBABLE = 1e-4
cdef double MOST_PATHS = 1e200  # by the best one; in text of more nothing is known, or it is very long
cdef double DECAY = 1.3  # so many nats wider, about, and a part e of what was missing still is

cdef struct Step:  # a choice of the small lattice
    double share
    int target  # node
    int opens  # label of the segment that it opens, -1 for none
    int ends  # where the segment ends that it ends, -1 for none


cdef struct Place:  # a node of the small lattice
    int node
    int first, count  # its steps
    int keys  # the first of them, -1 for none
    double after  # sum of what may follow, without rules


cdef struct Key:  # paths that meet in a node with the same states of all rules
    int joint  # number of these states
    int place
    int begin  # of the segment that is open for longer than its window, else 0
    int following  # next key of the node, -1 for none
    double forward, backward


cdef struct Link:
    int origin, target  # keys
    int start, end, label  # the segment that it ends; label is -1 if it ends none
    int ending  # its number among the endings, -1 if it is none
    double share, gain


cdef struct Ending:  # a link that ends a segment that is wanted
    int start, end, label, link
    double probability  # of all links that end this segment


cdef struct Found:
    int sequence, start, end, label
    double probability


cdef class Ruling:
    """R rules about labels, and what is found about sequences under them.

    lattice (Lattice): of best values.
    told_offsets (int32 [Y + 1]), told (int32 [n]): the rules that a segment of each label tells something.
    after (int32 [R, S, Y]): state after a segment of a label, -1 where the rule cannot be kept any more.
    settled (int32 [R, S]): the first state that is broken just as this one is.
    broken (uint8 [R, S]): is the rule broken by a sequence that ends in the state?
    spans (int32 [Y]): number that is given to segments of each label; -1 for those that are not wanted.
    """
    cdef Lattice lattice
    cdef const int[::1] told_offsets, told, spans
    cdef const int[:, :, ::1] after
    cdef const int[:, ::1] settled
    cdef const unsigned char[:, ::1] broken
    cdef double[::1] factor  # [R] exp(-price)
    cdef int rules, words  # R; of 64 labels each
    cdef unsigned long long* labels_of  # [R, words] labels that tell each rule something, by bits
    cdef unsigned short* joint  # [joints, R] states of all rules; the last one is being made
    cdef unsigned long long* joint_hash  # [joints]
    cdef int* joint_table  # by their hash, -1 for none
    cdef int joint_count, joint_mask
    cdef size_t joint_room, joint_hash_room, joint_table_room
    cdef const unsigned char* matter  # [R] which rules the sequence is read under
    cdef double improbable  # a key that is less probable is given up
    cdef double given_up  # sum of all of these
    cdef int* place_of  # [nodes] place of each that is reached
    cdef double* reach  # [nodes] value of the best path to it, at most 0; -inf for one that is not reached
    cdef unsigned long long* worth  # [T + 1, words] labels that are not too improbable from a place on
    cdef unsigned long long* later  # [places, words] labels of them that may follow each place
    cdef Place* places
    cdef Step* steps
    cdef Key* keys
    cdef Link* links
    cdef int* table  # keys by their hash, -1 for none
    cdef int table_mask
    cdef Ending* endings
    cdef int* way  # [keys] the best link of each, -1 for none
    cdef int at_count, step_count, key_count, link_count, ending_count
    cdef size_t place_of_room, reach_room, places_room, step_room, key_room, link_room, ending_room, way_room
    cdef size_t worth_room, later_room, table_room
    cdef Found* found
    cdef size_t found_room
    cdef int found_count

    def __init__(
        self, Lattice lattice not None, told_offsets, told, after, settled, broken, factor, spans
    ):
        cdef Py_ssize_t label, i
        self.lattice = lattice
        self.told_offsets, self.told, self.after = told_offsets, told, after
        self.settled, self.broken, self.factor, self.spans = settled, broken, factor, spans
        self.rules, self.words = self.broken.shape[0], (self.spans.shape[0] + 63) // 64
        self.labels_of = <unsigned long long*> calloc(
            self.rules * self.words + 1, sizeof(unsigned long long)
        )
        if self.labels_of == NULL:
            raise MemoryError(f"{self.rules} rules")
        for label in range(self.spans.shape[0]):
            for i in range(self.told_offsets[label], self.told_offsets[label + 1]):
                self.labels_of[self.told[i] * self.words + label // 64] |= bit_of(label)

    def __dealloc__(self):
        free(self.place_of)
        free(self.reach)
        free(self.places)
        free(self.steps)
        free(self.keys)
        free(self.links)
        free(self.endings)
        free(self.way)
        free(self.worth)
        free(self.later)
        free(self.labels_of)
        free(self.joint)
        free(self.joint_table)
        free(self.joint_hash)
        free(self.table)
        free(self.found)

    def find(
        self,
        Scores scores not None,
        const long long[::1] sequences not None,
        const int[::1] labels not None,
        const double[:, ::1] chances not None,
        const unsigned char[:, ::1] matter not None,
        const double[::1] left_out not None,
        double[::1] log_z not None,
        double tolerance,
        double least,
        double cost,
        bint best,
    ):
        """The probable spans of some sequences, or of the best segmentation of each.

        labels (int32 [n]), chances (float64 [N, n]): that a segment of each of these labels, of all that
            rules are about, begins at each token of the batch.
        matter (uint8 [n, R]): the rules that each sequence is read under.
        left_out (float64 [n]): probability that one breaks another rule, at most.
        log_z (float64 [n]): log Z of each without rules; becomes that with them, -inf where they were not
            found.
        tolerance (float): probabilities are wrong by no more. least (float): of a span that is wanted.
        best (bool): the spans of the segmentation with the largest sum of P(span) - cost, instead of all
            probable ones.
        RETURNS (tuple[int64 [s, 4], float64 [s]]): number among `sequences`, start, end and number of the
            label of each span, by sequence, start, end and label; and its probability.
        RAISES (MemoryError)
        """
        cdef Py_ssize_t i
        cdef double kept, total, every
        self.found_count = 0
        self.lattice.scores = scores
        self.lattice._clear()
        with nogil:
            for i in range(sequences.shape[0]):
                load(self.lattice, sequences[i])
                total = log_z[i]
                log_z[i] = -INFINITY
                if self.lattice.total == -INFINITY:
                    continue
                self.matter = &matter[i, 0]
                every = exp(total - self.lattice.total)
                kept = _weigh(
                    self.lattice, self, labels, chances, every, left_out[i] * every, tolerance
                )
                if kept == 0.0:
                    continue
                log_z[i] = self.lattice.total + log(kept)
                _merge(self.lattice, self, kept)
                if best:
                    _choose(self.lattice, self, <int> i, cost)
                else:
                    _note_probable(self.lattice, self, <int> i, least)
        self.lattice._check()
        places, values = np.empty((self.found_count, 4), dtype=np.int64), np.empty(self.found_count)
        cdef long long[:, ::1] row = places
        cdef double[::1] value = values
        for i in range(self.found_count):
            row[i, 0], row[i, 1] = self.found[i].sequence, self.found[i].start
            row[i, 2], row[i, 3] = self.found[i].end, self.found[i].label
            value[i] = self.found[i].probability
        return places, values

    def broken_together(
        self,
        Scores scores not None,
        long long sequence,
        const int[::1] labels not None,
        const double[:, ::1] chances not None,
        double log_z,
        double tolerance,
    ):
        """How probable each set of broken rules is in one sequence; arguments as `find` has them.

        RETURNS (Optional[tuple[uint8 [m, R], float64 [m]]]): which rules are broken, and the probability,
            by those of all segmentations together. None where they were not found.
        RAISES (MemoryError)
        """
        cdef double kept
        cdef int number, i, rule
        cdef unsigned short* states
        cdef const unsigned char[::1] all_matter = np.ones(self.rules + 1, dtype=np.uint8)
        self.matter = &all_matter[0]
        self.lattice.scores = scores
        self.lattice._clear()
        with nogil:
            load(self.lattice, sequence)
            kept = _weigh(
                self.lattice, self, labels, chances, exp(log_z - self.lattice.total), 0.0, tolerance
            )
        self.lattice._check()
        if kept == 0.0:
            return None
        broken, mass = [], []
        number = self.places[self.at_count - 1].keys
        while number >= 0:
            if self.keys[number].backward > 0.0:
                states = &self.joint[<size_t> self.keys[number].joint * self.rules]
                broken.append([self.broken[rule, states[rule]] for rule in range(self.rules)])
                mass.append(self.keys[number].forward * self.keys[number].backward / kept)
            number = self.keys[number].following
        sets = np.array(broken, dtype=np.uint8).reshape(len(broken), self.rules)
        return sets, np.array(mass, dtype=np.float64)


cdef inline unsigned long long bit_of(Py_ssize_t label) noexcept nogil:
    """The bit of a label in its word."""
    return (<unsigned long long> 1) << (label & 63)


cdef double _weigh(
    Lattice lattice,
    Ruling ruling,
    const int[::1] labels,
    const double[:, ::1] chances,
    double every,
    double ignored,
    double tolerance,
) noexcept nogil:
    """The paths with what they break, in a lattice that grows until it is large enough.

    every (float): sum of all paths by the best one. ignored (float): of those that may break rules that do
        not matter. RETURNS (float): of all, each less what it breaks; 0 if there is none, or it takes too
        much to find them.
    """
    cdef double width = FIRST_WIDTH, missing, kept, enough
    cdef double left_out = 0.25 * tolerance * every  # paths that may break a rule unnoticed
    ruling.improbable = every * FIRST_IMPROBABLE
    if every > MOST_PATHS:
        return 0.0
    while width < LAST_WIDTH:
        _make_small(lattice, ruling, -width)
        if lattice.full:
            return 0.0
        _find_worth(lattice, ruling, labels, chances, left_out / every)
        _sum_after(lattice, ruling)
        missing = max(0.0, every - ruling.places[0].after)
        enough = tolerance * ruling.places[0].after
        if missing <= enough:
            kept = _sum_kept(lattice, ruling)
            enough = tolerance * kept - ignored  # of the parts below one is too large where their sum is
            if kept > 0.0 and missing + ruling.given_up + left_out <= enough:
                return kept
            if lattice.full or ruling.link_count >= MOST_LINKS or ignored > 0.5 * tolerance * kept:
                return 0.0
            if missing + ruling.given_up + left_out == 0.0:
                return 0.0
            if left_out > 0.25 * enough:
                left_out = 0.1 * enough
            if ruling.given_up > 0.25 * enough:
                ruling.improbable /= min(max(8.0 * ruling.given_up / enough, 4.0), 1e4)
        if missing > 0.5 * enough:
            width += min(max(DECAY * log(2.0 * missing / enough), 1.0), 8.0)
    return 0.0


cdef double _sum_kept(Lattice lattice, Ruling ruling) noexcept nogil:
    """Both passes over the small lattice and the states of the rules. RETURNS (float): sum of the paths, each
    less what it breaks.
    """
    cdef int i
    cdef Link* link
    _follow_all(lattice, ruling)
    if lattice.full or ruling.link_count >= MOST_LINKS:
        return 0.0
    for i in range(ruling.link_count - 1, -1, -1):
        link = &ruling.links[i]
        ruling.keys[link.origin].backward += link.share * ruling.keys[link.target].backward
    return ruling.keys[0].backward
