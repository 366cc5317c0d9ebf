# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Steps of stochastic gradient descent, one for each sequence of items, in one go:

    w ← (1 - eta lambda) w + eta (f_i - E_i[f]),    eta = 1 / (lambda (t0 + t)),    w = decay · v

A step touches the weights of its sequence alone, and decay. With S the scores of items and labels and c the
arcs of the automaton (engine/automaton.py), each with the sum of the weights of the label patterns that it
completes, the mass m of an arc is a register of the sum program, and

    alpha[t + 1, target(c)] = Σ_c m(c, alpha[t]) · exp(weight(c) + S[t, label(c)])
    E[c fires at t]         = m(c, alpha[t]) · exp(weight(c) + S[t, label(c)]) · beta[t + 1, target(c)] / Z

beta goes through the sum program backwards. Probabilities are scaled, alpha[t] having the sum 1; a sequence
whose scores are so far from each other that one could be lost is worked on in log space, by the same text.
"""

import numpy as np

from libc.math cimport INFINITY, exp, isfinite, log, log1p

__all__ = ["Steps"]

cdef struct Scaled:
    int never_read

cdef struct Log:
    int never_read

cdef Scaled* SCALED = NULL
cdef Log* LOG = NULL

ctypedef fused semiring:
    Scaled
    Log

cdef double SAFE = 600.0  # nats that a double can tell from 0, and some to spare


cdef class Steps:
    """The sequences of a data set, and room for one of them.

    items (Items): D sequences with N items; values of attributes are rounded to single precision.
    label (int32 [N]): of each item.
    features (Features): of attributes with single labels, and of label patterns.
    automaton (Automaton): of the same label patterns, every segment one item long.
    """

    cdef const long long[::1] offsets, row_offsets, feature_offsets
    cdef const int[::1] attribute, label, feature_label
    cdef const float[::1] value
    cdef bint plain
    cdef const int[::1] arc_label, arc_suffix, arc_target, arc_pattern, arc_register
    cdef const int[:, ::1] additions
    cdef Py_ssize_t labels, states, arcs, longest
    cdef int[::1] gold_arc
    # of one sequence
    cdef double[:, ::1] scores, lifted, alpha
    cdef double[::1] norm, arc_weight, arc_lifted, arc_count, x, below, chance, beta

    def __init__(self, items, const int[::1] label not None, features, automaton):
        self.offsets, self.row_offsets = items.offsets, items.row_offsets
        self.attribute, self.label = items.attribute, label
        self.plain = items.value is None
        self.value = np.zeros(0, np.float32) if self.plain else items.value.astype(np.float32)
        self.feature_offsets, self.feature_label = features.offsets, features.pattern
        assert len(features.pattern) == 0 or features.pattern.max() < features.n_labels
        assert self.row_offsets.shape[0] == label.shape[0] + 1
        assert self.offsets[self.offsets.shape[0] - 1] == label.shape[0]
        self.arc_label, self.arc_suffix = automaton.arc_label, automaton.arc_suffix
        self.arc_target, self.arc_pattern = automaton.arc_target, automaton.arc_pattern
        self.arc_register, self.additions = automaton.arc_register, automaton.additions
        self.labels, self.states = features.n_labels, len(automaton.states)
        self.arcs = len(automaton.arcs)
        self.longest = max(1, max(map(len, automaton.states)))
        assert min(automaton.arc_register) >= 0  # none is forbidden
        n = int(np.diff(items.offsets).max(initial=0))
        self.scores, self.lifted = np.zeros((2, n, self.labels))
        self.alpha = np.zeros((n + 1, self.states))
        self.norm = np.zeros(n)
        self.arc_weight, self.arc_lifted, self.arc_count = np.zeros((3, self.arcs))
        self.x, self.below = np.zeros((2, automaton.registers))
        self.chance = np.zeros(self.labels)
        self.beta = np.zeros(self.states)
        self.gold_arc = np.zeros(label.shape[0], dtype=np.int32)
        _locate(
            self.gold_arc, label, self.offsets, automaton.state_offsets, automaton.state_arcs,
            automaton.state_suffix, self.arc_label, self.arc_target,
        )

    def take(
        self,
        const long long[::1] order not None,
        double[::1] weights not None,
        double precision,
        double before,
    ):
        """A step for each sequence; the weights are changed in place.

        order (int64 [n]): numbers of the sequences.
        weights (float64 [F]). precision (float): lambda. before (float): t0 + t at the first step.
        RETURNS (float): the sum of the sequences' losses, each before its step; nan if a learning rate leaves
            nothing of the weights, or they are not finite: they are meaningless then.
        """
        assert weights.shape[0] >= self.feature_label.shape[0]
        cdef double loss = 0.0, decay = 1.0, eta
        cdef Py_ssize_t i, f
        with nogil:
            for i in range(order.shape[0]):
                eta = 1.0 / (precision * (before + i))
                decay *= 1.0 - eta * precision
                if not 0.0 < decay < INFINITY:
                    loss = INFINITY - INFINITY
                    break
                loss += _step(self, order[i], weights, decay, eta / decay)
                if not isfinite(loss):
                    loss = INFINITY - INFINITY
                    break
            for f in range(weights.shape[0]):
                weights[f] *= decay
        return loss


cdef void _locate(
    int[::1] found,
    const int[::1] label,
    const long long[::1] offsets,
    const int[::1] state_offsets,
    const int[::1] state_arcs,
    const int[::1] state_suffix,
    const int[::1] arc_label,
    const int[::1] arc_target,
) noexcept nogil:
    """The arc of each item: that of the longest end of the history that can go on with its label."""
    cdef Py_ssize_t i, n, state, at
    for i in range(offsets.shape[0] - 1):
        state = 0
        for n in range(offsets[i], offsets[i + 1]):
            at = state_offsets[state]
            while at == state_offsets[state + 1] or arc_label[state_arcs[at]] != label[n]:
                if at == state_offsets[state + 1]:
                    state = state_suffix[state]
                    at = state_offsets[state]
                else:
                    at += 1
            found[n] = state_arcs[at]
            state = arc_target[found[n]]


cdef double _step(
    Steps self, Py_ssize_t number, double[::1] weights, double decay, double gain
) noexcept nogil:
    """The step of a sequence. RETURNS: log Z less the score of the annotation, before it."""
    cdef Py_ssize_t first = self.offsets[number], n_items = self.offsets[number + 1] - first
    cdef Py_ssize_t t, c, n_attributes = self.feature_label.shape[0]
    cdef double loss, spread = _score(self, first, n_items, weights, decay)
    if not isfinite(spread):
        return INFINITY - INFINITY
    if spread * self.longest < SAFE:
        loss = _learn(SCALED, self, first, n_items, weights, gain)
    else:
        loss = _learn(LOG, self, first, n_items, weights, gain)
    for t in range(n_items):
        c = self.gold_arc[first + t]
        loss -= self.scores[t, self.label[first + t]] + self.arc_weight[c]
        self.arc_count[c] -= 1.0
    # what an arc counts, those that it is an end of count, too: longest first
    for c in range(self.arcs - 1, -1, -1):
        if self.arc_suffix[c] >= 0:
            self.arc_count[self.arc_suffix[c]] += self.arc_count[c]
        if self.arc_pattern[c] >= self.labels:
            weights[n_attributes + self.arc_pattern[c] - self.labels] -= gain * self.arc_count[c]
    return loss


cdef double _score(
    Steps self, Py_ssize_t first, Py_ssize_t n_items, const double[::1] weights, double decay
) noexcept nogil:
    """Scores of items and of arcs. RETURNS: how far from each other they can be in one step, in nats."""
    cdef Py_ssize_t t, c, y, row, f, a, n_attributes = self.feature_label.shape[0]
    cdef double value, spread = 0.0, low, high
    for t in range(n_items):
        for y in range(self.labels):
            self.scores[t, y] = 0.0
        for row in range(self.row_offsets[first + t], self.row_offsets[first + t + 1]):
            value = decay if self.plain else decay * self.value[row]
            a = self.attribute[row]
            for f in range(self.feature_offsets[a], self.feature_offsets[a + 1]):
                self.scores[t, self.feature_label[f]] += value * weights[f]
        low, high = INFINITY, -INFINITY
        for y in range(self.labels):
            low = min(low, self.scores[t, y])
            high = max(high, self.scores[t, y])
        self.norm[t] = high
        spread = max(spread, high - low)
        if not isfinite(high - low):
            return INFINITY
    low, high = 0.0, 0.0
    for c in range(self.arcs):  # shortest first
        value = self.arc_weight[self.arc_suffix[c]] if self.arc_suffix[c] >= 0 else 0.0
        if self.arc_pattern[c] >= self.labels:
            value += decay * weights[n_attributes + self.arc_pattern[c] - self.labels]
        self.arc_weight[c] = value
        low, high = min(low, value), max(high, value)
        if not isfinite(value):
            return INFINITY
    return spread + 2.0 * max(high, -low)


cdef double _learn(
    semiring* ring, Steps self, Py_ssize_t first, Py_ssize_t n_items, double[::1] weights, double gain
) noexcept nogil:
    """Forward, and backward with the steps of the attributes' weights; the expected counts of arcs go to
    `arc_count`. RETURNS: log Z.
    """
    cdef Py_ssize_t t, y, c, k, p
    cdef double total = 0.0, mass, scale
    for c in range(self.arcs):
        self.arc_lifted[c] = lift(ring, self.arc_weight[c])
        self.arc_count[c] = 0.0
    for t in range(n_items):
        for y in range(self.labels):
            self.lifted[t, y] = lift(ring, self.scores[t, y] - self.norm[t])
        total += self.norm[t]

    for p in range(self.states):
        self.alpha[0, p] = zero(ring)
    self.alpha[0, 0] = lift(ring, 0.0)
    for t in range(n_items):
        _enter(ring, self, t)
        for p in range(self.states):
            self.alpha[t + 1, p] = zero(ring)
        for c in range(self.arcs):
            p = self.arc_target[c]
            mass = times(ring, self.x[self.arc_register[c]], self.arc_lifted[c])
            mass = times(ring, mass, self.lifted[t, self.arc_label[c]])
            self.alpha[t + 1, p] = plus(ring, self.alpha[t + 1, p], mass)
        scale = self.alpha[t + 1, 0]
        for p in range(1, self.states):
            scale = plus(ring, scale, self.alpha[t + 1, p])
        total += logarithm(ring, scale)
        scale = inverse(ring, scale)
        self.norm[t] = scale
        for p in range(self.states):
            self.alpha[t + 1, p] = times(ring, self.alpha[t + 1, p], scale)

    for p in range(self.states):
        self.beta[p] = lift(ring, 0.0)
    for t in range(n_items - 1, -1, -1):
        _enter(ring, self, t)
        for k in range(self.below.shape[0]):
            self.below[k] = zero(ring)
        for y in range(self.labels):
            self.chance[y] = 0.0
            self.lifted[t, y] = times(ring, self.lifted[t, y], self.norm[t])
        for c in range(self.arcs):
            k, y = self.arc_register[c], self.arc_label[c]
            scale = times(ring, self.arc_lifted[c], self.lifted[t, y])
            scale = times(ring, scale, self.beta[self.arc_target[c]])
            self.below[k] = plus(ring, self.below[k], scale)
            mass = probability(ring, times(ring, self.x[k], scale))
            self.arc_count[c] += mass
            self.chance[y] += mass
        for k in range(self.additions.shape[0] - 1, -1, -1):
            scale = self.below[self.additions[k, 0]]
            for y in range(1, 3):
                p = self.additions[k, y]
                self.below[p] = plus(ring, self.below[p], scale)
        for p in range(self.states):
            self.beta[p] = self.below[p]
        self.chance[self.label[first + t]] -= 1.0
        _change(self, first + t, weights, gain)
    return total


cdef void _change(Steps self, Py_ssize_t item, double[::1] weights, double gain) noexcept nogil:
    """w_f -= gain · value · (chance of the feature's label, less 1 for that of the item)"""
    cdef Py_ssize_t row, f, a
    cdef double value
    for row in range(self.row_offsets[item], self.row_offsets[item + 1]):
        value = gain if self.plain else gain * self.value[row]
        a = self.attribute[row]
        for f in range(self.feature_offsets[a], self.feature_offsets[a + 1]):
            weights[f] -= value * self.chance[self.feature_label[f]]


cdef void _enter(semiring* ring, Steps self, Py_ssize_t t) noexcept nogil:
    """The registers of the sum program at item t: x[d] = x[a] + x[b]"""
    cdef Py_ssize_t p, k
    for p in range(self.states):
        self.x[p] = self.alpha[t, p]
    for k in range(self.additions.shape[0]):
        self.x[self.additions[k, 0]] = plus(
            ring, self.x[self.additions[k, 1]], self.x[self.additions[k, 2]]
        )


cdef inline double zero(semiring* ring) noexcept nogil:
    if semiring is Scaled:
        return 0.0
    else:
        return -INFINITY


cdef inline double lift(semiring* ring, double score) noexcept nogil:
    """Of a score in nats."""
    if semiring is Scaled:
        return exp(score)
    else:
        return score


cdef inline double logarithm(semiring* ring, double x) noexcept nogil:
    """In nats."""
    if semiring is Scaled:
        return log(x)
    else:
        return x


cdef inline double probability(semiring* ring, double x) noexcept nogil:
    if semiring is Scaled:
        return x
    else:
        return exp(x)


cdef inline double inverse(semiring* ring, double x) noexcept nogil:
    if semiring is Scaled:
        return 1.0 / x
    else:
        return -x


cdef inline double times(semiring* ring, double a, double b) noexcept nogil:
    if semiring is Scaled:
        return a * b
    else:
        return a + b


cdef inline double plus(semiring* ring, double a, double b) noexcept nogil:
    cdef double high, low
    if semiring is Scaled:
        return a + b
    else:
        high, low = max(a, b), min(a, b)
        return high + log1p(exp(low - high)) if low > -INFINITY else high
