# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Steps of stochastic gradient descent, one for each sequence of items, in one go:

    w ← (1 - eta lambda) w + eta (f_i - E_i[f]),    eta = 1 / (lambda (t0 + t)),    w = decay · v

A step touches the weights of its sequence alone, and decay. Expectations are those of `chain.pyx`.
"""

import numpy as np

from libc.math cimport INFINITY, isfinite

from spacy_hocrf.sequences.chain cimport Chain, Structure

__all__ = ["Steps"]


cdef class Steps:
    """The sequences of a data set.

    items (Items): D sequences with N items; values of attributes are rounded to single precision.
    label (int32 [N]): of each item.
    features (Features): of attributes with single labels, and of label patterns.
    automaton (Automaton): of the same label patterns, every segment one item long.
    """

    cdef Chain chain
    cdef const int[::1] label

    def __init__(self, items, const int[::1] label not None, features, automaton):
        if items.value is not None:
            items = items._replace(value=items.value.astype(np.float32).astype(np.float64))
        self.label = label
        self.chain = Chain(Structure(features.offsets, features.pattern, automaton), items)
        assert not self.chain.deep
        assert self.chain.row_offsets.shape[0] == label.shape[0] + 1
        assert self.chain.offsets[self.chain.offsets.shape[0] - 1] == label.shape[0]

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
        assert weights.shape[0] >= self.chain.structure.feature_pattern.shape[0]
        cdef double loss = 0.0, decay = 1.0, eta
        cdef Py_ssize_t i, f
        self.chain.weights = weights
        with nogil:
            for i in range(order.shape[0]):
                eta = 1.0 / (precision * (before + i))
                decay *= 1.0 - eta * precision
                if not 0.0 < decay < INFINITY:
                    loss = INFINITY - INFINITY
                    break
                loss += _step(
                    self, self.chain, self.chain.structure, order[i], weights, decay, eta / decay
                )
                if not isfinite(loss):
                    loss = INFINITY - INFINITY
                    break
            for f in range(weights.shape[0]):
                weights[f] *= decay
        return loss


cdef double _step(
    Steps self,
    Chain chain,
    Structure its,
    Py_ssize_t number,
    double[::1] weights,
    double decay,
    double gain,
) noexcept nogil:
    """The step of a sequence. RETURNS: log Z less the score of the annotation, before it."""
    cdef Py_ssize_t t, c, z, first, n_features = its.feature_pattern.shape[0]
    cdef double loss
    chain.score(number, decay)
    if not isfinite(chain.spread):
        return INFINITY - INFINITY
    first = chain.first
    loss = chain.expect() - chain.score_of(self.label[first : first + chain.n_items])
    for t in range(chain.n_items):
        chain.arc_count[chain.gold_arc[t]] -= 1.0
        chain.chance[t, self.label[first + t]] -= 1.0
        _change(chain, its, t, weights, gain)
    # what an arc counts, those that it is an end of count, too: longest first
    for c in range(its.arcs - 1, -1, -1):
        if its.arc_suffix[c] >= 0:
            chain.arc_count[its.arc_suffix[c]] += chain.arc_count[c]
        z = its.arc_pattern[c]
        if z >= its.labels:
            weights[n_features + z - its.labels] -= gain * chain.arc_count[c]
    return loss


cdef void _change(Chain chain, Structure its, Py_ssize_t t, double[::1] weights, double gain) noexcept nogil:
    """w_f -= gain · value · (chance of the feature's label, less 1 for that of the item)"""
    cdef Py_ssize_t row, f, a
    cdef double value
    for row in range(chain.row_offsets[chain.first + t], chain.row_offsets[chain.first + t + 1]):
        value = gain if chain.plain else gain * chain.value[row]
        a = chain.attribute[row]
        for f in range(its.feature_offsets[a], its.feature_offsets[a + 1]):
            weights[f] -= value * chain.chance[t, its.feature_pattern[f]]
