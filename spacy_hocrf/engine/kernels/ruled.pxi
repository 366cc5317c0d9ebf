# Sums over segmentations, less the prices of the rules they break; probable spans; the best segmentation.
#
# The product of a lattice and rules is large: 28 labels that may occur once have 2^28 states. But nearly
# all of its paths are improbable. From the chart of best values follows the score of the best path through
# each choice; choices within `width` nats of the best path of all make a *small lattice*. Its paths are
# followed together with the *joint state*, the states of all rules, which are numbered as they occur; the
# paths of one joint state at one place are dropped if together they are too improbable. Since log Z is
# known, so is the probability of all paths left out, and the width grows until it is small enough. Once
# no label of a rule can follow, only whether its state is broken matters, so it is replaced by the first
# state that is broken, or kept, like it: it is *settled*.
#
# With the values V of the chart, the share of a choice is exp(its value - V of its node). The product of
# a path's shares is the ratio of its probability to that of the best path; sums of them stay below
# MAX_PATHS. The end of a path multiplies by exp(-price) for each broken rule.

cdef enum:
    MAX_LINKS = 131072  # a sequence that needs more links is given up

cdef double FIRST_WIDTH = 8.0
cdef double LAST_WIDTH = 48.0
cdef double FIRST_IMPROBABLE = 1e-4
cdef double MAX_PATHS = 1e200  # largest Z / exp(best score); very long or undecided texts exceed it
cdef double DECAY = 1.3  # about this many nats more width divide the missing probability by e

cdef struct Step:  # a choice of the small lattice
    double share
    int target  # node
    int opens  # label of the segment that it opens, -1 for none
    int ends  # end of the segment that it ends, -1 for none


cdef struct Place:  # a node of the small lattice
    int node
    int first, count  # its steps
    int keys  # its first key, -1 for none
    double after  # sum of the shares of all that may follow, without rules


cdef struct Key:  # the paths that reach a place in the same joint state
    int joint  # number of the joint state
    int place
    int begin  # start of the open segment, if it is longer than its window, else 0
    int following  # next key of the place, -1 for none
    double forward, backward


cdef struct Link:  # a step from one key to another
    int origin, target  # keys
    int start, end, label  # the segment that it ends; label is -1 if it ends none
    int ending  # its index in `endings`, -1 if it has none
    double share, gain


cdef struct Ending:  # a link that ends a segment of a wanted label
    int start, end, label, link
    double probability  # of the segment: of all links that end it


cdef struct Found:
    int sequence, start, end, label
    double probability


cdef class Ruling:
    """R rules on the labels of segments, and buffers to decode sequences under them.

    lattice (Lattice): a lattice of best values (sums=False).
    affected_offsets (int32 [Y + 1]), affected (int32 [n]): the rules whose state a segment of a label can
        change.
    after (int32 [R, S, Y]): state after a segment of a label, -1 where the rule can no longer be kept.
    settled (int32 [R, S]): the first state that is broken, or kept, like this one.
    broken (uint8 [R, S]): is the rule broken if a sequence ends in the state?
    factor (float64 [R]): exp(-price). spans (int32 [Y]): row of each label's spans, -1 if not wanted.
    """
    cdef Lattice lattice
    cdef const int[::1] affected_offsets, affected, spans
    cdef const int[:, :, ::1] after
    cdef const int[:, ::1] settled
    cdef const unsigned char[:, ::1] broken
    cdef double[::1] factor  # [R] exp(-price)
    cdef int rules, words  # R; words of 64 bits for a set of labels
    cdef unsigned long long* labels_of  # [R, words] set of labels that can change each rule's state
    cdef unsigned short* joint  # [joint_count + 1, R] joint states; the last row is scratch
    cdef unsigned long long* joint_hash  # [joint_count]
    cdef int* joint_table  # number of joint states by hash, -1 for none
    cdef int joint_count, joint_mask
    cdef size_t joint_room, joint_hash_room, joint_table_room
    cdef const unsigned char* matter  # [R] is the sequence decoded under the rule?
    cdef double improbable  # keys whose paths sum to less are dropped
    cdef double given_up  # sum of the paths of the dropped keys
    cdef int* place_of  # [nodes] place of each node that is reached
    cdef double* reach  # [nodes] score of the best path through it less that of the best path; -inf for none
    cdef unsigned long long* worth  # [T + 1, words] labels that are probable enough from a token on
    cdef unsigned long long* later  # [places, words] such labels that may follow each place
    cdef Place* places
    cdef Step* steps
    cdef Key* keys
    cdef Link* links
    cdef int* table  # number of keys by hash, -1 for none
    cdef int table_mask
    cdef Ending* endings
    cdef int* way  # [keys] the best link from each key, -1 for none
    cdef int at_count, step_count, key_count, link_count, ending_count
    cdef size_t place_of_room, reach_room, places_room, step_room, key_room, link_room, ending_room, way_room
    cdef size_t worth_room, later_room, table_room
    cdef Found* found
    cdef size_t found_room
    cdef int found_count

    def __init__(
        self, Lattice lattice not None, affected_offsets, affected, after, settled, broken, factor, spans
    ):
        cdef Py_ssize_t label, i
        self.lattice = lattice
        self.affected_offsets, self.affected, self.after = affected_offsets, affected, after
        self.settled, self.broken, self.factor, self.spans = settled, broken, factor, spans
        self.rules, self.words = self.broken.shape[0], (self.spans.shape[0] + 63) // 64
        self.labels_of = <unsigned long long*> calloc(
            self.rules * self.words + 1, sizeof(unsigned long long)
        )
        if self.labels_of == NULL:
            raise MemoryError(f"{self.rules} rules")
        for label in range(self.spans.shape[0]):
            for i in range(self.affected_offsets[label], self.affected_offsets[label + 1]):
                self.labels_of[self.affected[i] * self.words + label // 64] |= bit_of(label)

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
        """Find the probable spans of some sequences, or the spans of the best segmentation of each.

        sequences (int64 [n]): their numbers in the batch `scores`.
        labels (int32 [m]), chances (float64 [N, m]): the labels that rules are about, and the probability
            that a segment of each begins at each token of the batch, without rules.
        matter (uint8 [n, R]): the rules under which each sequence is decoded.
        left_out (float64 [n]): bound on the probability that it breaks one of the other rules.
        log_z (float64 [n]): log Z without rules; replaced by log Z under the rules, -inf if there is no
            segmentation, or if finding the spans would take too much time.
        tolerance (float): bound on the errors of probabilities. least (float): least probability of a span.
        best (bool): find the segmentation with the largest sum of P(span) - cost instead.
        RETURNS (tuple[int64 [s, 4], float64 [s]]): index in `sequences`, start, end and `spans` row of each
            span, in this order, and its probability.
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
        """Find which sets of rules one sequence may break, and how probably; arguments as for `find`.

        RETURNS (Optional[tuple[uint8 [m, R], float64 [m]]]): the broken rules of each set, and the set's
            probability under the rules. None if that would take too much time.
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
    """Follow the paths and their joint states in a small lattice that grows until it is large enough. Sums
    are relative to the best path.

    every (float): sum of all paths without rules. ignored (float): bound on the sum of those that break rules
        which do not matter. RETURNS (float): sum of the paths under the rules; 0 if all paths break a rule of
        infinite price, or if finding them would take too much time.
    """
    cdef double width = FIRST_WIDTH, missing, kept, enough
    cdef double left_out = 0.25 * tolerance * every  # bound on paths whose broken rules go unnoticed
    ruling.improbable = every * FIRST_IMPROBABLE
    if every > MAX_PATHS:
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
            enough = tolerance * kept - ignored  # bound for missing + given_up + left_out
            if kept > 0.0 and missing + ruling.given_up + left_out <= enough:
                return kept
            if lattice.full or ruling.link_count >= MAX_LINKS or ignored > 0.5 * tolerance * kept:
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
    """Run the forward and the backward pass over keys. RETURNS (float): sum of the paths under the rules."""
    cdef int i
    cdef Link* link
    _follow_all(lattice, ruling)
    if lattice.full or ruling.link_count >= MAX_LINKS:
        return 0.0
    for i in range(ruling.link_count - 1, -1, -1):
        link = &ruling.links[i]
        ruling.keys[link.origin].backward += link.share * ruling.keys[link.target].backward
    return ruling.keys[0].backward
