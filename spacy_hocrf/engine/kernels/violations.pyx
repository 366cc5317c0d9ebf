# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""At least the probability that sequences break rules, out of where segments begin.

A sequence moves from state r to s at t if it has been in r before and a segment begins at t whose label leads
from r to s. With B_t(r), at least the probability that r was entered by a segment that had ended by t, and
c_t(y) = P(a segment of label y begins at t), the expected number of moves to s at t is no more than either of

    Σ_r min(B_t(r), Σ_{y: r → s} c_t(y))          Σ_y min(Σ_{r: r → s by y} B_t(r), c_t(y))

and B_t(s) is at most the sum of these over earlier places, and the expected number of segments of all labels
that lead to s which have begun before t and do not have t. A sequence that ends in s has no label behind
which s cannot be reached any more.
"""

import numpy as np

__all__ = ["bound_violations", "last_states"]


def bound_violations(
    const long long[::1] offsets not None,
    const double[:, ::1] chance not None,
    const double[:, ::1] cover not None,
    const long long[:, ::1] kinds not None,
    const int[:, ::1] by_state not None,
    const int[:, ::1] by_kind not None,
    const unsigned char[:, ::1] apart not None,
    const unsigned char[::1] broken not None,
):
    """Bounds for D sequences and m rules with the same S states, which the labels lead to in K ways.

    offsets (int64 [D + 1]): of the N tokens.
    chance, cover (float64 [N, L]): P(a segment of each of L labels begins at a token), P(one has it).
    kinds (int64 [m, L]): the way of each label, below K.
    by_state, by_kind (int32 [n, 4]): the moves from a state to another one: source, target and kind,
        ascending, and is it the last one with the first two? The same by kind, target and source. A sequence
        begins in state 0.
    apart (uint8 [K, S]): can the state not be reached behind a label of the kind?
    broken (uint8 [S]): does a sequence that ends in the state break the rule?
    RETURNS (float64 [D, m])
    """
    cdef Py_ssize_t D = offsets.shape[0] - 1, m = kinds.shape[0], S, K, d, j, s, t, k, y
    K, S = apart.shape[0], apart.shape[1]
    bounds = np.zeros((D, m))
    # c_t of all labels of each kind, and how many of their segments have the token
    cdef double[:, ::1] out = bounds, of_kind = np.empty((2, K)), of_state = np.empty((6, S))
    with nogil:
        for d in range(D):
            for j in range(m):
                of_state[:, :] = 0.0
                of_state[ENTERED, 0] = 1.0
                for t in range(offsets[d], offsets[d + 1]):
                    for k in range(K):
                        of_kind[0, k] = of_kind[1, k] = 0.0
                    for y in range(kinds.shape[1]):
                        of_kind[0, kinds[j, y]] += chance[t, y]
                        of_kind[1, kinds[j, y]] += cover[t, y]
                    _move(by_state, by_kind, of_kind, of_state)
                    _show(apart, broken, of_kind, of_state)
                for s in range(S):
                    if broken[s]:
                        out[d, j] += min(of_state[ENTERED, s], 1.0 - of_state[SHOWN, s])
    return bounds


cdef enum:  # rows of what is known of the states
    BEEN = 0  # B_t
    ENTERED = 1  # expected moves to the state so far
    BEGUN = 2  # expected segments of labels that lead to it so far
    BY_STATE = 3  # the two sums
    BY_KIND = 4
    SHOWN = 5  # the most probable label so far behind which it cannot be reached


cdef inline void _move(
    const int[:, ::1] by_state,
    const int[:, ::1] by_kind,
    const double[:, ::1] of_kind,
    double[:, ::1] of_state,
) noexcept nogil:
    """The moves at a token."""
    cdef Py_ssize_t i, s, n = by_kind.shape[0]
    cdef double here
    cdef double* been = &of_state[BEEN, 0]
    for s in range(of_state.shape[1]):
        been[s] = of_state[BEGUN, s]
        of_state[BY_STATE, s] = of_state[BY_KIND, s] = 0.0
    for i in range(n):
        if by_kind[i, 3]:
            been[by_kind[i, 1]] -= of_kind[1, by_kind[i, 0]] - of_kind[0, by_kind[i, 0]]
            of_state[BEGUN, by_kind[i, 1]] += of_kind[0, by_kind[i, 0]]
    for s in range(of_state.shape[1]):
        been[s] = min(of_state[ENTERED, s], max(been[s], 0.0))
    been[0] = 1.0
    here = 0.0
    for i in range(n):
        here += of_kind[0, by_state[i, 2]]
        if by_state[i, 3]:
            of_state[BY_STATE, by_state[i, 1]] += min(been[by_state[i, 0]], here)
            here = 0.0
    for i in range(n):
        here += been[by_kind[i, 2]]
        if by_kind[i, 3]:
            of_state[BY_KIND, by_kind[i, 1]] += min(here, of_kind[0, by_kind[i, 0]])
            here = 0.0
    for s in range(of_state.shape[1]):
        of_state[ENTERED, s] += min(of_state[BY_STATE, s], of_state[BY_KIND, s])


cdef inline void _show(
    const unsigned char[:, ::1] apart,
    const unsigned char[::1] broken,
    const double[:, ::1] of_kind,
    double[:, ::1] of_state,
) noexcept nogil:
    """max_t P(a segment has the token behind which the state cannot be reached)."""
    cdef Py_ssize_t s, k
    cdef double here
    for s in range(apart.shape[1]):
        if broken[s]:
            here = 0.0
            for k in range(apart.shape[0]):
                if apart[k, s]:
                    here += of_kind[1, k]
            of_state[SHOWN, s] = max(of_state[SHOWN, s], here)


def last_states(
    const long long[::1] offsets not None, const int[:] labels not None, const int[:, :, ::1] after not None
):
    """The state that the labels of each of D sequences lead to, int32 [D, n].

    offsets (int64 [D + 1]), labels (int32 [segments]): of the sequences.
    after (int32 [n, S, Y]): of n rules, the state behind a label; a sequence begins in state 0.
    """
    cdef Py_ssize_t d, j, i
    states = np.zeros((offsets.shape[0] - 1, after.shape[0]), dtype=np.int32)
    cdef int[:, ::1] state = states
    with nogil:
        for d in range(state.shape[0]):
            for j in range(after.shape[0]):
                for i in range(offsets[d], offsets[d + 1]):
                    state[d, j] = after[j, state[d, j], labels[i]]
    return states
