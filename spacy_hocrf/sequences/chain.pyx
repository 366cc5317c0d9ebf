# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Inference on one sequence of items at a time: the best labels, and sums over all labellings.

With S the scores of items and labels and c the arcs of the automaton (engine/automaton.py), each with the sum
of the weights of the label patterns that it completes, the mass m of an arc is a register of the sum program,
and

    alpha[t + 1, p] = exp(S[t, label(p)]) · Σ_{c: target(c) = p} m(c, alpha[t]) · exp(weight(c))
    P(y at t)       = Σ_{p: label(p) = y} alpha[t + 1, p] · beta[t + 1, p] / Z

where label(p) is the last label of the state p. beta goes through the sum program backwards. With the maximum
instead of Σ, alpha is the score of the best labels so far. Probabilities are scaled so that alpha[t] sums to
1; a sequence whose scores differ so much that one could underflow is processed in log space, by the same
code. Arcs are weighed once for a model, or, if attributes have weights with longer patterns, for each item.
`engine/` processes many sequences side by side; for a single short one, its preparation would take longer
than all of this.
"""

import numpy as np

from libc.math cimport INFINITY, isfinite

from spacy_hocrf.sequences.errors import SequenceErrors

__all__ = ["Chain", "CompiledModel"]

include "semiring.pxi"

cdef double SAFE = 600.0  # differences up to this, in nats, do not underflow in a double, with a margin


cdef class CompiledModel:
    """Features of attributes, states and arcs, with their weights. Arcs are in the order of their targets.

    feature_offsets (int64 [A + 1]): first feature of each attribute.
    feature_pattern (int32 [F]): number of the label pattern of each feature.
    weights (float64 [F + Z - Y]): weights of the features of attributes, and of the longer patterns.
    automaton (Automaton): automaton of Z label patterns, single labels first; every segment is one item long.
    """

    cdef const long long[::1] feature_offsets
    cdef const int[::1] feature_pattern
    cdef const double[::1] weights
    cdef const int[::1] state_offsets, state_arcs, state_suffix, state_label, entering, shortest_first
    cdef const int[::1] arc_label, arc_suffix, arc_target, arc_pattern, arc_register
    cdef const int[:, ::1] additions
    cdef Py_ssize_t labels, states, arcs, registers, longest, width
    cdef bint deep  # do attributes have weights with longer patterns?
    cdef double[::1] arc_weight, arc_factor
    cdef double largest

    def __init__(
        self,
        const long long[::1] feature_offsets not None,
        const int[::1] feature_pattern not None,
        const double[::1] weights not None,
        automaton,
    ):
        self.feature_offsets, self.feature_pattern = feature_offsets, feature_pattern
        self.weights = weights
        self.labels, self.states = len(automaton.limits), len(automaton.states)
        self.arcs, self.registers = len(automaton.arcs), automaton.registers
        self.longest = max(1, max(map(len, automaton.states)))
        highest = np.asarray(feature_pattern).max(initial=-1)
        if min(automaton.arc_register, default=0) < 0:
            raise IndexError("an arc is forbidden")
        n_weights = len(feature_pattern) + len(automaton.patterns) - self.labels
        if highest >= len(automaton.patterns) or len(weights) != n_weights:
            raise IndexError((highest, len(weights)))
        self.deep = highest >= self.labels
        self.width = len(automaton.patterns) if self.deep else self.labels
        self.state_offsets, self.state_suffix = automaton.state_offsets, automaton.state_suffix
        self.additions = automaton.additions
        order = np.argsort(automaton.arc_target, kind="stable")
        place = np.empty(self.arcs, dtype=np.int32)  # of each arc of the automaton in this order
        place[order] = np.arange(self.arcs)
        suffix = automaton.arc_suffix[order]
        self.state_arcs, self.shortest_first = place[automaton.state_arcs], place
        self.arc_suffix = np.where(suffix >= 0, place[suffix], -1).astype(np.int32)
        self.arc_label, self.arc_target = automaton.arc_label[order], automaton.arc_target[order]
        self.arc_pattern, self.arc_register = automaton.arc_pattern[order], automaton.arc_register[order]
        states = np.arange(self.states + 1)
        self.entering = np.searchsorted(self.arc_target, states).astype(np.int32)
        state_label = np.full(self.states, -1, dtype=np.int32)
        state_label[self.arc_target] = self.arc_label
        self.state_label = state_label
        self.arc_weight, self.arc_factor = np.empty((2, self.arcs))
        self.largest = _weigh(self.arc_weight, self, NULL)
        _lift_arcs(self.arc_factor, self.arc_weight)


cdef class Chain:
    """Inference on the sequences of `items`, one at a time, with its buffers.

    model (CompiledModel): the features, states and arcs.
    items (Items): D sequences with N items.
    """

    cdef CompiledModel model
    cdef const long long[::1] offsets, row_offsets
    cdef const int[::1] attribute
    cdef const double[::1] value
    cdef bint plain, apart, summed, expected
    cdef double spread, total
    cdef Py_ssize_t n_items, room
    # of the current sequence
    cdef double[:, ::1] scores, lifted, alpha, chance
    cdef double[::1] norm, arc_weight, arc_factor, x, below, beta

    def __init__(self, CompiledModel model not None, items):
        self.model = model
        self.arc_weight, self.arc_factor = model.arc_weight, model.arc_factor
        if model.deep:
            self.arc_weight, self.arc_factor = np.empty((2, model.arcs))
        self.x, self.below = np.empty((2, model.registers))
        self.beta, self.room = np.empty(model.states), -1
        self.take(items)

    def take(self, items):
        """Take other items, none of which is read yet; arrays that are long enough are used again."""
        cdef CompiledModel its = self.model
        cdef const long long[::1] offsets = items.offsets
        cdef Py_ssize_t d, longest = 0
        self.n_items = 0
        for d in range(offsets.shape[0] - 1):
            longest = max(longest, offsets[d + 1] - offsets[d])
        if longest > self.room:
            self.scores, self.norm = np.empty((longest, its.width)), np.empty(longest)
            self.lifted, self.chance = np.empty((2, longest, its.labels))
            self.alpha = np.empty((longest + 1, its.states))
            self.room = longest  # last: without memory the arrays are as short as before
        self.offsets, self.row_offsets = offsets, items.row_offsets
        self.attribute, self.plain = items.attribute, items.value is None
        if not self.plain:
            self.value = items.value

    def __len__(self):
        return self.n_items

    def read(self, Py_ssize_t number):
        """Score a sequence; all other methods refer to it until the next one is read.

        RAISES (ValueError): H420 for a score that is not finite.
        """
        if not 0 <= number < self.offsets.shape[0] - 1:
            raise IndexError(number)
        with nogil:
            _score(self, self.model, number)
        if not isfinite(self.spread):
            self.n_items = 0
            raise ValueError(SequenceErrors.H420)

    def best(self):
        """Return the numbers of the most probable labels, int32 [T]; ties are broken deterministically."""
        labels = np.empty(self.n_items, dtype=np.int32)
        cdef int[::1] label = labels
        with nogil:
            _best(self, self.model, label)
        return labels

    def log_probability(self, const int[::1] label not None):
        """Return the log of the probability of labels, given by number, in nats."""
        cdef double score
        if label.shape[0] != self.n_items:
            raise IndexError(label.shape[0])
        with nogil:
            score = _score_of(self, self.model, label)
            if not self.summed:
                self.total = _sum(self, self.model)
            self.summed = True
        return min(0.0, score - self.total)

    def marginals(self):
        """Return P(label | sequence) of every item, float64 [T, Y] (a copy)."""
        _look_at_all(self)
        return np.array(self.chance[: self.n_items])

    def marginal(self, Py_ssize_t item, Py_ssize_t label):
        """Return P(label | sequence) of an item."""
        if not (0 <= item < self.n_items and 0 <= label < self.model.labels):
            raise IndexError((item, label))
        _look_at_all(self)
        return self.chance[item, label]


cdef void _score(Chain self, CompiledModel its, Py_ssize_t number) noexcept nogil:
    """Score a sequence. `spread` is the largest difference of scores in one step, in nats; infinite if
    one is not finite.
    """
    cdef Py_ssize_t t, y, row, f, a, first = self.offsets[number]
    cdef double value, low, high, largest = its.largest
    self.n_items = self.offsets[number + 1] - first
    self.summed, self.expected, self.spread = False, False, 0.0
    for t in range(self.n_items):
        for y in range(its.width):
            self.scores[t, y] = 0.0
        for row in range(self.row_offsets[first + t], self.row_offsets[first + t + 1]):
            value = 1.0 if self.plain else self.value[row]
            a = self.attribute[row]
            for f in range(its.feature_offsets[a], its.feature_offsets[a + 1]):
                self.scores[t, its.feature_pattern[f]] += value * its.weights[f]
        low, high = INFINITY, -INFINITY
        for y in range(its.labels):
            low = min(low, self.scores[t, y])
            high = max(high, self.scores[t, y])
        self.norm[t] = high
        self.spread = max(self.spread, high - low)
        if not isfinite(high - low):
            self.spread = INFINITY
            return
        if its.deep:
            largest = max(largest, _weigh(self.arc_weight, its, &self.scores[t, 0]))
    self.spread += 2.0 * largest
    self.apart = not self.spread * its.longest < SAFE


cdef double _score_of(Chain self, CompiledModel its, const int[::1] label) noexcept nogil:
    """Score of labels in nats. The arc of an item leaves the longest suffix of the history that has an arc
    with its label.
    """
    cdef Py_ssize_t t, at, c, state = 0
    cdef double score = 0.0
    for t in range(self.n_items):
        at = its.state_offsets[state]
        while at == its.state_offsets[state + 1] or its.arc_label[its.state_arcs[at]] != label[t]:
            if at == its.state_offsets[state + 1]:
                state = its.state_suffix[state]
                at = its.state_offsets[state]
            else:
                at += 1
        c = its.state_arcs[at]
        state = its.arc_target[c]
        if its.deep:
            _weigh(self.arc_weight, its, &self.scores[t, 0])
        score += self.scores[t, label[t]] + self.arc_weight[c]
    return score


cdef void _look_at_all(Chain self) noexcept:
    """Compute the probabilities of labels, once for each sequence."""
    with nogil:
        if not self.expected:
            self.total = _sum(self, self.model)
            if self.apart:
                _backward(LOG, self, self.model)
            else:
                _backward(SCALED, self, self.model)
            self.summed = self.expected = True


cdef double _sum(Chain self, CompiledModel its) noexcept nogil:
    """Return log Z."""
    return _forward(LOG, self, its) if self.apart else _forward(SCALED, self, its)


cdef double _weigh(double[::1] arc_weight, CompiledModel its, const double* scores) noexcept nogil:
    """Compute the weights of arcs without single labels, at an item with these scores of label patterns, or,
    if this is NULL, without its attributes. RETURNS: largest absolute value.
    """
    cdef Py_ssize_t i, c, z, n_features = its.feature_pattern.shape[0]
    cdef double weight, largest = 0.0
    for i in range(its.arcs):
        c = its.shortest_first[i]
        weight = arc_weight[its.arc_suffix[c]] if its.arc_suffix[c] >= 0 else 0.0
        z = its.arc_pattern[c]
        if z >= its.labels:
            weight += its.weights[n_features + z - its.labels]
            if scores is not NULL:
                weight += scores[z]
        arc_weight[c] = weight
        largest = max(largest, max(weight, -weight))
        if not isfinite(weight):
            return INFINITY
    return largest


cdef double _forward(semiring* ring, Chain self, CompiledModel its) noexcept nogil:
    """Compute alpha. RETURNS: log Z, if the semiring sums."""
    cdef Py_ssize_t t, y, c, p
    cdef double total = 0.0, mass, scale
    for p in range(its.states):
        self.alpha[0, p] = zero(ring)
    self.alpha[0, 0] = lift(ring, 0.0)
    for t in range(self.n_items):
        scale = 0.0 if semiring is Max else self.norm[t]
        total += scale
        for y in range(its.labels):
            self.lifted[t, y] = lift(ring, self.scores[t, y] - scale)
        _enter(ring, self, its, t)
        for p in range(its.states):
            mass = zero(ring)
            for c in range(its.entering[p], its.entering[p + 1]):
                mass = plus(ring, mass, times(ring, self.x[its.arc_register[c]], _arc(ring, self, c)))
            if its.state_label[p] >= 0:
                mass = times(ring, mass, self.lifted[t, its.state_label[p]])
            self.alpha[t + 1, p] = mass
        if semiring is not Max:  # CRFsuite adds up the best labels' scores in this order, too
            scale = self.alpha[t + 1, 0]
            for p in range(1, its.states):
                scale = plus(ring, scale, self.alpha[t + 1, p])
            total += logarithm(ring, scale)
            scale = inverse(ring, scale)
            for y in range(its.labels):
                self.lifted[t, y] = times(ring, self.lifted[t, y], scale)
            for p in range(its.states):
                self.alpha[t + 1, p] = times(ring, self.alpha[t + 1, p], scale)
    return total


cdef void _backward(semiring* ring, Chain self, CompiledModel its) noexcept nogil:
    """Compute the probabilities of labels."""
    cdef Py_ssize_t t, y, c, k, p
    cdef double mass
    for p in range(its.states):
        self.beta[p] = lift(ring, 0.0)
    for t in range(self.n_items - 1, -1, -1):
        _weigh_item(ring, self, its, t)
        for k in range(its.registers):
            self.below[k] = zero(ring)
        for y in range(its.labels):
            self.chance[t, y] = 0.0
        for p in range(its.states):
            y = its.state_label[p]
            if y < 0:
                continue
            self.chance[t, y] += probability(ring, times(ring, self.alpha[t + 1, p], self.beta[p]))
            mass = times(ring, self.lifted[t, y], self.beta[p])
            for c in range(its.entering[p], its.entering[p + 1]):
                k = its.arc_register[c]
                self.below[k] = plus(ring, self.below[k], times(ring, _arc(ring, self, c), mass))
        for k in range(its.additions.shape[0] - 1, -1, -1):
            mass = self.below[its.additions[k, 0]]
            for y in range(1, 3):
                p = its.additions[k, y]
                self.below[p] = plus(ring, self.below[p], mass)
        for p in range(its.states):
            self.beta[p] = self.below[p]


cdef void _best(Chain self, CompiledModel its, int[::1] label) noexcept nogil:
    """Find the best labels: back from the best last state, along the arcs that its score came from."""
    cdef Py_ssize_t t, c, k, p, i, state = 0
    cdef double score, highest
    _forward(MAX, self, its)
    for p in range(1, its.states):
        if self.alpha[self.n_items, p] > self.alpha[self.n_items, state]:
            state = p
    for t in range(self.n_items - 1, -1, -1):
        _enter(MAX, self, its, t)
        highest, k = -INFINITY, 0
        for c in range(its.entering[state], its.entering[state + 1]):
            score = self.x[its.arc_register[c]] + self.arc_weight[c] + self.lifted[t, its.arc_label[c]]
            if score > highest:
                highest, k, label[t] = score, its.arc_register[c], its.arc_label[c]
        while k >= its.states:  # x[d] = max(x[a], x[b]): go to the operand that is the maximum
            p = its.additions[k - its.states, 1]
            i = its.additions[k - its.states, 2]
            k = p if self.x[p] >= self.x[i] else i
        state = k


cdef void _weigh_item(semiring* ring, Chain self, CompiledModel its, Py_ssize_t t) noexcept nogil:
    """Weigh the arcs at item t, if its attributes have weights with longer patterns."""
    if its.deep:
        _weigh(self.arc_weight, its, &self.scores[t, 0])
        if semiring is Scaled:
            _lift_arcs(self.arc_factor, self.arc_weight)


cdef void _lift_arcs(double[::1] factor, double[::1] weight) noexcept nogil:
    cdef Py_ssize_t c
    for c in range(weight.shape[0]):
        factor[c] = exp(weight[c])


cdef inline double _arc(semiring* ring, Chain self, Py_ssize_t c) noexcept nogil:
    """The weight of an arc as an element of the semiring."""
    return self.arc_factor[c] if semiring is Scaled else self.arc_weight[c]


cdef void _enter(semiring* ring, Chain self, CompiledModel its, Py_ssize_t t) noexcept nogil:
    """Weigh the arcs, and run the sum program at item t: x[d] = x[a] + x[b]"""
    cdef Py_ssize_t p, k
    _weigh_item(ring, self, its, t)
    for p in range(its.states):
        self.x[p] = self.alpha[t, p]
    for k in range(its.additions.shape[0]):
        self.x[its.additions[k, 0]] = plus(
            ring, self.x[its.additions[k, 1]], self.x[its.additions[k, 2]]
        )
