# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Loops over cells, for the patterns of an assignment and the multipliers of dual decomposition.

A cell is a vertex in one of its states. The subproblems besides the first have copies of cells.

Letters: V vertices, E cells, M vertex patterns, I cells of all patterns in sequence, X
copies.
"""

__all__ = ["add_up", "disagree", "move"]


def add_up(
    const int[::1] assignment not None,
    const long long[::1] offsets not None,
    const int[::1] vertices not None,
    const int[::1] states not None,
    const double[::1] weights not None,
    unsigned char[::1] fires=None,
):
    """Return the sum of the weights of all patterns that occur in an assignment.

    assignment (int32 [V]): state of each vertex.
    offsets (int64 [M + 1]), vertices, states (int32 [I]), weights (float64 [M]): the patterns.
    fires (Optional[uint8 [M]]): set to 1 for patterns that occur, to 0 for others.
    RETURNS (float): the sum.
    """
    cdef Py_ssize_t p, e
    cdef double total = 0.0
    with nogil:
        for p in range(weights.shape[0]):
            e = offsets[p]
            while e < offsets[p + 1] and assignment[vertices[e]] == states[e]:
                e += 1
            if e == offsets[p + 1]:
                total += weights[p]
            if fires is not None:
                fires[p] = e == offsets[p + 1]
    return total


def disagree(
    const int[::1] assignment not None,
    const int[::1] vertex not None,
    const int[::1] state not None,
    const unsigned char[::1] chosen not None,
    signed char[::1] gradient not None,
):
    """Compute z - y, the choice of each copy minus that of the first subproblem: a subgradient
    of the bound.

    assignment (int32 [V]): y, the first subproblem's states.
    vertex, state (int32 [X]): the cells that are copied.
    chosen (uint8 [X]): z, the choices of the copies.
    gradient (int8 [X]): set to 1 where only the copy is chosen, to -1 where only the first subproblem
        has chosen the cell, to 0 elsewhere.
    RETURNS (int): number of copies that disagree.
    """
    cdef Py_ssize_t i, count = 0
    with nogil:
        for i in range(vertex.shape[0]):
            gradient[i] = <signed char> (chosen[i] - (assignment[vertex[i]] == state[i]))
            count += gradient[i] != 0
    return count


def move(
    double[::1] scores not None,
    double[::1] rewards not None,
    const long long[::1] cells not None,
    const signed char[::1] gradient not None,
    double length,
):
    """Take a step against the gradient: the copies' scores decrease, the rewards of the first subproblem's
    cells increase by the same amount.

    scores (float64 [X]), rewards (float64 [E]): scores of the copies, rewards of the cells; changed in place.
    cells (int64 [X]): the cells that are copied.
    gradient (int8 [X]), length (float): the step.
    """
    cdef Py_ssize_t i
    with nogil:
        for i in range(cells.shape[0]):
            if gradient[i]:
                scores[i] -= length * gradient[i]
                rewards[cells[i]] += length * gradient[i]
