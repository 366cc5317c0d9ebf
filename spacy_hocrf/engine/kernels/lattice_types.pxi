# What a lattice is made of, and the two semirings of its chart.

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

ctypedef fused semiring:  # as in semiring.pxi, for one sequence
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
    double value  # of this choice and the best, or all, that may follow
    int code  # arc; length, 0 for longer ones; 0 to end, 1 to go on


cdef enum Kind:
    AT_END
    IN_STATE
    IN_SEGMENT  # just opened
    IN_TAIL  # open for longer than the window


cdef struct Node:
    Kind kind
    int place  # boundary; of a segment where it begins
    int index  # state or open state
    int following  # next node at the same place, -1 for none
    int first, count  # its choices
    int ordered  # of them are the best ones, in order
    int best  # the node that the first choice leads to, -1 if it is not known yet
    int detours  # heap of those from here on, -1 for none, UNKNOWN if no path has come by


cdef struct Detour:
    double cost  # of the second choice of the node instead of the first
    int node
    int left, right  # dearer ones, -1 for none
    int height  # of the right spine


cdef struct Path:
    double cost  # how much lower it scores than the best one
    int parent  # the path that it has all but its last detour from, -1 for none
    int detour  # -1 for the best path
    int rank  # which choice it takes there
