# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops of dual decomposition over the cells of all subproblems: who disagrees, and what follows from it.

Extents: N vertices, V cells of the instance, L cells of all subproblems but the first.
"""

__all__ = ["disagree", "move"]


def disagree(
    const int[::1] assignment not None,
    const int[::1] vertex not None,
    const int[::1] state not None,
    const unsigned char[::1] chosen not None,
    signed char[::1] gradient not None,
):
    """What each subproblem's choice of each cell is more than that of the first subproblem: a subgradient of the bound.

    assignment (int32 [N]): the first subproblem's states.
    vertex, state (int32 [L]): the cells of the others.
    chosen (uint8 [L]): their choice.
    gradient (int8 [L]): gets 1 where only the other subproblem has chosen the cell, -1 where only the first has, 0 elsewhere.
    RETURNS (int): at how many cells they disagree.
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
    double size,
):
    """A step against the gradient: what the subproblems' cells lose, the first subproblem's win.

    scores (float64 [L]), rewards (float64 [V]): changed in place; they are the subproblems' and the first subproblem's.
    cells (int64 [L]): of the instance.
    gradient (int8 [L]), size (float): the step.
    """
    cdef Py_ssize_t i
    with nogil:
        for i in range(cells.shape[0]):
            if gradient[i]:
                scores[i] -= size * gradient[i]
                rewards[cells[i]] += size * gradient[i]
