# The structs of a lattice, and the two semirings of its chart.

cdef enum:
    UNKNOWN = -2

cdef enum:  # Potentials.allowed
    FIRST = 1
    CONTINUE = 2
    LAST = 4

cdef enum:  # Potentials.row_part
    PART_END = 1
    PART_TOKEN = 2
    PART_INNER = 3

cdef struct Max:
    int never_read

cdef struct Sum:
    int never_read

cdef Max* MAX = NULL
cdef Sum* SUM = NULL

ctypedef fused semiring:  # as in semiring.pxi, but for one sequence at a time
    Max
    Sum


cdef inline double plus(semiring* ring, double a, double b) noexcept nogil:
    cdef double high = a if a > b else b, low
    if semiring is Sum:
        low = b if a > b else a
        if low > -INFINITY:
            return high + log1p(exp(low - high))
    return high


cdef struct Choice:
    double value  # log score of this choice and the best continuation, or of the sum of all continuations
    int code  # in a state the arc; in a segment the length, 0 for a tail; in a tail 0 to end, 1 to go on


cdef enum Kind:
    AT_END
    IN_STATE
    IN_SEGMENT  # just opened
    IN_TAIL  # in a segment that is already longer than the window


cdef struct Node:
    Kind kind
    int place  # boundary between tokens; IN_SEGMENT: where the segment begins
    int index  # state or open state
    int following  # next node at the same place, -1 for none
    int first, count  # its choices
    int ordered  # the first so many choices are the best ones, in order
    int best  # the node that the first choice leads to, -1 if it is not known yet
    int detours  # heap of the detours on the best path from here, -1 for none, UNKNOWN before it is made


cdef struct Detour:
    double cost  # score of the node's first choice minus that of its second
    int node
    int left, right  # children in the heap, which cost at least as much; -1 for none
    int height  # of the right spine


cdef struct Path:
    double cost  # score of the best path minus that of this one
    int parent  # the path with the same detours but for the last, -1 for none
    int detour  # the last detour, -1 for the best path
    int rank  # the choice that it takes at the detour's node
