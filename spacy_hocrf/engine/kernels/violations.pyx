# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Upper bounds on the probability that sequences break rules, from the probabilities of segment starts.

A sequence moves from state r to s at t if it has been in r before and a segment begins at t whose label leads
from r to s. Let B_t(r) bound the probability that r was entered by a segment that has ended by t, and let
c_t(y) = P(a segment of label y begins at t). Then the expected number of moves to s at t is at most each of

    Σ_r min(B_t(r), Σ_{y: r → s} c_t(y))          Σ_y min(Σ_{r: r → s by y} B_t(r), c_t(y))

B_t(s) is the smaller of the sum of these bounds over earlier tokens and the expected number of segments with
labels that lead to s which begin before t and do not contain t. A sequence that ends in s has no segment
after which s can no longer be reached, which is another bound.
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
    """Bound the probability that each of D sequences breaks each of m rules, which have the same S states and
    the same moves between them for labels of K kinds.

    offsets (int64 [D + 1]): first token of each sequence.
    chance, cover (float64 [N, L]): P(a segment of each of L labels begins at a token), P(it contains it).
    kinds (int64 [m, L]): kind of each label, below K, for each rule.
    by_state, by_kind (int32 [n, 4]): moves to another state, ascending: source, target, kind, and whether it
        is the last with these first two; kind, target, source, and the same. Sequences begin in state 0.
    apart (uint8 [K, S]): can the state no longer be reached after a label of the kind?
    broken (uint8 [S]): does a sequence that ends in the state break the rule?
    RETURNS (float64 [D, m]): upper bounds; they may be above 1.
    """
    cdef Py_ssize_t D = offsets.shape[0] - 1, m = kinds.shape[0], S, K, d, j, s, t, k, y
    K, S = apart.shape[0], apart.shape[1]
    bounds = np.zeros((D, m))
    # by kind: sums of c_t, and expected segments that contain t, over the labels of the kind
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


cdef enum:  # rows of of_state
    BEEN = 0  # B_t
    ENTERED = 1  # bound on the expected moves to the state so far
    BEGUN = 2  # expected segments so far of labels that lead to the state
    BY_STATE = 3  # the first and
    BY_KIND = 4  # the second bound on the moves to the state at t
    SHOWN = 5  # largest probability so far of a segment after which the state cannot be reached


cdef inline void _move(
    const int[:, ::1] by_state,
    const int[:, ::1] by_kind,
    const double[:, ::1] of_kind,
    double[:, ::1] of_state,
) noexcept nogil:
    """Compute B_t of all states, and add token t to BEGUN and ENTERED."""
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
    """Update SHOWN: max_t P(token t is in a segment after which the state can no longer be reached)."""
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
    """The state of n rules at the end of each of D sequences. Sequences begin in state 0.

    offsets (int64 [D + 1]), labels (int32 [segments]): labels of the segments of all sequences.
    after (int32 [n, S, Y]): state of each rule after a segment of a label.
    RETURNS (int32 [D, n])
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
