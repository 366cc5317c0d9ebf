# All spans with at least a given probability, found without trying every start, end and label; and the
# probabilities of given segments. Semi-CRFs: probable_segments.pxi, CRFs: probable_runs.pxi.

from libc.stdlib cimport free, qsort, realloc

cdef Py_ssize_t WORTH_WINDOWS = 4  # sequences of up to so many windows are faster without windows
cdef double ROUNDING = 1e-9  # bounds are sums and differences of many probabilities

cdef enum:  # columns of Probable.rules
    FIRST_LABEL = 0
    INNER_LABEL = 1
    LAST_LABEL = 2
    ONLY_LABEL = 3
    NOT_BEFORE = 4


cdef struct Span:
    long long sequence, start, end, rule
    double probability


cdef class Probable:
    """A search for probable spans, and the spans found so far.

    ws (Workspace): of the automaton. least (float): the smallest probability of a span.
    rules (int32 [n, 5]): how each of n labels is encoded: engine labels of a span's first token, of
        its inner tokens and of its last token; that of a span of one token; and one that must not
        precede the span; -1 for none. Without a label for the last token, a span ends where no inner
        token follows. In a semi-CRF only the fourth is set.
    asked (Optional[AskedSegments]): segments of a semi-CRF, which gets their probabilities.
    starts (Optional[Starts]): gets the probabilities that a segment of certain labels begins at each
        token, and that it contains the token.
    """
    cdef double least
    cdef const int[:, ::1] rules
    cdef bint asks
    cdef const long long[::1] asked_offsets  # [D + 1] segments of each sequence
    cdef const long long[:, ::1] asked  # [m, 3] start, end and label, by sequence and start
    cdef double[::1] asked_probability  # [m] gets the answers
    cdef bint has_starts
    cdef const int[::1] start_labels  # [n]
    cdef double[:, ::1] starts, covers  # [N, n]
    cdef Span* spans
    cdef Py_ssize_t count, room
    cdef bint full  # there is no more memory

    def __init__(self, Workspace ws not None, least, rules, asked, starts):
        self.least = least
        self.rules = rules
        self.count = self.room = 0
        self.full = False
        self.asks = asked is not None
        if self.asks:
            self.asked_offsets, self.asked, self.asked_probability = asked
        self.has_starts = starts is not None
        if self.has_starts:
            self.start_labels, self.starts, self.covers = starts

    def __dealloc__(self):
        free(self.spans)

    def found(self):
        """Sequence, start, end and rule of each span, int64 [n, 4], sorted in this order, and its
        probability, float64 [n]. RAISES (MemoryError): if there was no memory for all spans.
        """
        if self.full:
            raise MemoryError(f"{self.count} probable spans")
        if self.count:
            qsort(self.spans, self.count, sizeof(Span), _later)
        places, values = np.empty((self.count, 4), dtype=np.int64), np.empty(self.count)
        cdef long long[:, ::1] place = places
        cdef double[::1] value = values
        cdef Py_ssize_t i
        for i in range(self.count):
            place[i, 0] = self.spans[i].sequence
            place[i, 1] = self.spans[i].start
            place[i, 2] = self.spans[i].end
            place[i, 3] = self.spans[i].rule
            value[i] = self.spans[i].probability
        return places, values


cdef int _later(const void* one, const void* other) noexcept nogil:
    """Compare two spans for qsort: positive if `one` comes after `other`, negative if before."""
    cdef const Span* a = <const Span*> one
    cdef const Span* b = <const Span*> other
    if a.sequence != b.sequence:
        return 1 if a.sequence > b.sequence else -1
    if a.start != b.start:
        return 1 if a.start > b.start else -1
    if a.end != b.end:
        return 1 if a.end > b.end else -1
    return (a.rule > b.rule) - (a.rule < b.rule)


def probable_spans(
    Workspace ws not None,
    Batch batch not None,
    const long long[::1] chosen not None,
    space,
    Probable probable not None,
    double[::1] out not None,
    Py_ssize_t rows,
    edges,
):
    """Find the probable spans of chosen sequences, and their log Z.

    chosen (int64 [n]): numbers of the sequences. space (str): "scaled" or "log".
    probable (Probable): gets the spans. out (float64 [D]): gets log Z.
    rows (int): tokens of a window of a much longer sequence, 0 for no windows. With windows, no label
        may have a tail, and the batch may have no spans.
    edges (Optional[Edges]): gets alpha and beta where the own part of each sequence begins and ends.
    RETURNS (tuple[list[int], bool]): sequences in which a value was lost, whose spans are not in
        `probable`; and whether some score is not finite.
    """
    cdef Automaton fsa = ws.fsa
    cdef Counts counts = None
    cdef Py_ssize_t group = 0
    cdef int lane, lanes_used
    cdef bint logs = space == "log"
    cdef unsigned char[::1] lost = np.zeros(batch.sequences, dtype=np.uint8)
    cdef Py_ssize_t longest = _longest(batch, chosen), most = WORTH_WINDOWS * rows
    if 0 < most < longest:
        ws.reserve_windows(longest, rows)
        longest = max(most, rows + 2 * ws.reach)
    ws.reserve(longest, batch.lengths, True, True)
    ws.not_finite = False
    take_edges(ws, edges)
    _clear_sums(fsa, batch, ws)
    with nogil:
        while group < chosen.shape[0]:
            lanes_used = <int> min(LANES, chosen.shape[0] - group)
            _begin_windows(batch, ws, &chosen[group], lanes_used)
            if 0 < most < ws.whole_tokens:
                if LANES == 1 and logs:  # compiled away elsewhere
                    _find_in_windows(LOG, fsa, batch, ws, counts, probable)
                else:
                    _find_in_windows(SCALED, fsa, batch, ws, counts, probable)
            else:
                load(fsa, batch, ws, &chosen[group], lanes_used)
                _find_at_once(logs, fsa, batch, ws, counts, probable)
            for lane in range(ws.count):
                out[ws.sequence[lane]] = ws.log_partition[lane]
                lost[ws.sequence[lane]] = ws.lost[lane]
            group += LANES
    return _places_of(lost), ws.not_finite


cdef void _find_at_once(
    bint logs, Automaton fsa, Batch batch, Workspace ws, Counts counts, Probable probable
) noexcept nogil:
    """Find the probable spans of the loaded sequences."""
    cdef int lane
    run(logs, fsa, batch, ws, True, counts, False)
    if not fsa.one_token:
        _cover(fsa, ws)
    for lane in range(ws.count):
        if ws.lost[lane] or ws.log_partition[lane] == -INFINITY:
            continue
        if fsa.one_token:
            _find_runs(logs, fsa, batch, ws, lane, probable)
        else:
            _find_segments(logs, fsa, batch, ws, lane, 0, ws.length[lane], probable)


cdef void _add_span(
    Probable probable, Py_ssize_t sequence, Py_ssize_t start, Py_ssize_t end, Py_ssize_t rule, double p
) noexcept nogil:
    """Add a span to `probable` if its probability p is at least probable.least."""
    cdef Span* moved
    if not p >= probable.least or probable.full:
        return
    if probable.count == probable.room:
        moved = <Span*> realloc(probable.spans, (2 * probable.room + 64) * sizeof(Span))
        if moved == NULL:
            probable.full = True
            return
        probable.spans = moved
        probable.room = 2 * probable.room + 64
    probable.spans[probable.count].sequence = sequence
    probable.spans[probable.count].start = start
    probable.spans[probable.count].end = end
    probable.spans[probable.count].rule = rule
    probable.spans[probable.count].probability = min(p, 1.0)
    probable.count += 1
