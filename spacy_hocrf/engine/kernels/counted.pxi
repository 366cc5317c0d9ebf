# Sums over the segmentations of a sequence that keep rules about numbers of segments, and the best one.
#
# What is remembered multiplies the lattice: 28 labels that may come once have 2^28 states. Nearly all of
# the product is improbable. The chart of the best values tells of every choice how good the best path is
# that takes it; those within `width` of the best of all make a small lattice. Its paths go on with what
# they remember, and those that are together too improbable in one memory are given up. Since log Z is
# known, so is the probability of all that was left out, and the width grows until that is small.
#
# With values V of the chart, a choice's share is exp(its value - V), so that the product of the shares of
# a path is its probability by that of the best one, and no sum of them is above MOST_PATHS.

cdef enum:
    MOST_LINKS = 524288  # of a sequence; with more it is given up

cdef double FIRST_WIDTH = 8.0
cdef double LAST_WIDTH = 48.0
cdef double FIRST_IMPROBABLE = 1e-5
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
    unsigned long long later  # rules that what follows may break, by bits


cdef struct Key:  # paths that meet in a node and remember the same
    long long memory
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


cdef class Counting:
    """Rules about numbers of segments, and what is found about sequences that keep them.

    lattice (Lattice): of best values.
    rule_of (int32 [Y]): rule of each label, -1 for none.
    place, base (int64 [R]): what one segment adds to the memory, and how many numbers are told apart.
    least (int64 [R]): numbers of segments. capped (uint8 [R]): may there be no more than base - 1?
    spans (int32 [Y]): number that is given to segments of each label; -1 for those that are not wanted.
    """
    cdef Lattice lattice
    cdef const int[::1] rule_of, spans
    cdef const long long[::1] place, base, least
    cdef const unsigned char[::1] capped
    cdef unsigned long long forgettable  # rules that do not matter when no label of theirs may follow
    cdef double improbable  # a key that is less probable is given up
    cdef double given_up  # sum of all of these
    cdef int* place_of  # [nodes] place of each, -1 if it has none yet
    cdef double* reach  # [nodes] value of the best path to it, at most 0
    cdef unsigned long long* worth  # [T + 1] rules that matter from each place on, by bits
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
    cdef size_t worth_room, table_room
    cdef Found* found
    cdef size_t found_room
    cdef int found_count

    def __init__(self, Lattice lattice not None, rule_of, place, base, least, capped, spans):
        self.lattice = lattice
        self.rule_of, self.place, self.base = rule_of, place, base
        self.least, self.capped, self.spans = least, capped, spans
        cdef Py_ssize_t rule
        self.forgettable = 0
        for rule in range(self.base.shape[0]):
            if self.least[rule] == 0:
                self.forgettable |= (<unsigned long long> 1) << rule

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
        free(self.table)
        free(self.found)

    def find(
        self,
        Scores scores not None,
        const long long[::1] sequences not None,
        const double[:, ::1] chances not None,
        double[::1] log_z not None,
        double tolerance,
        double least,
        double cost,
        bint best,
    ):
        """The probable spans of some sequences, or of the best segmentation of each.

        chances (float64 [N, R]): that a segment of a rule's labels begins at each token of the batch.
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
        cdef double kept, total
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
                kept = _count(self.lattice, self, chances, exp(total - self.lattice.total), tolerance)
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


cdef double _count(
    Lattice lattice,
    Counting counting,
    const double[:, ::1] chances,
    double every,
    double tolerance,
) noexcept nogil:
    """The paths that keep the rules, in a lattice that grows until it is large enough.

    every (float): sum of all paths by the best one. RETURNS (float): of those that keep the rules; 0 if
        there is none, or it takes too much to find them.
    """
    cdef double width = FIRST_WIDTH, missing, kept, enough
    cdef double left_out = 0.25 * tolerance * every  # paths that are kept though they break a rule
    counting.improbable = every * FIRST_IMPROBABLE
    if every > MOST_PATHS:
        return 0.0
    while width < LAST_WIDTH:
        _make_small(lattice, counting, -width)
        if lattice.full:
            return 0.0
        _find_worth(lattice, counting, chances, left_out / every)
        _sum_after(lattice, counting)
        missing = max(0.0, every - counting.places[0].after)
        enough = tolerance * counting.places[0].after
        if missing <= enough:
            kept = _sum_kept(lattice, counting)
            enough = tolerance * kept
            if kept > 0.0 and missing + counting.given_up + left_out <= enough:
                return kept
            if lattice.full or counting.link_count >= MOST_LINKS:
                return 0.0
            if missing + counting.given_up + left_out == 0.0:
                return 0.0
            if left_out > 0.25 * enough:
                left_out = 0.1 * enough
            if counting.given_up > 0.25 * enough:
                counting.improbable /= min(max(8.0 * counting.given_up / enough, 4.0), 1e4)
        if missing > 0.5 * enough:
            width += min(max(DECAY * log(2.0 * missing / enough), 1.0), 8.0)
    return 0.0


cdef double _sum_kept(Lattice lattice, Counting counting) noexcept nogil:
    """Both passes over the small lattice and what is remembered. RETURNS (float): sum of the paths that
    keep the rules.
    """
    cdef int i
    cdef Link* link
    _follow_all(lattice, counting)
    if lattice.full or counting.link_count >= MOST_LINKS:
        return 0.0
    for i in range(counting.link_count - 1, -1, -1):
        link = &counting.links[i]
        counting.keys[link.origin].backward += link.share * counting.keys[link.target].backward
    return counting.keys[0].backward
