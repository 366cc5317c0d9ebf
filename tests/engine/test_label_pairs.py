"""CRFs of order 1, with few label patterns and with many, by products of matrices."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from builds import BUILDS, running
from numpy.testing import assert_allclose

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.forward_backward import expectations, log_partition
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.types import Potentials

LABELS = 16
LENGTHS = [7, 1, 0, 4, 9, 3, 3, 8, 5]
COUNTS = (0, 5, 30, 130, 250)
"""Patterns of two labels, of 256 pairs; some others are forbidden."""


@pytest.fixture(scope="module", params=BUILDS, autouse=True)
def instructions(request):
    with running(request.param):
        yield request.param


@pytest.mark.parametrize("count", COUNTS)
def test_log_partition_and_counts_match_products_of_matrices(count):
    automaton, potentials, weights = _model(count)
    counts = expectations(potentials, automaton)
    by_matrix = [_by_matrix(scores, weights, np.logaddexp.reduce) for scores in _split(potentials)]
    total, label, pairs = zip(*by_matrix)
    assert_allclose(counts.log_partition, total, rtol=1e-12)
    assert_allclose(log_partition(potentials, automaton), total, rtol=1e-12)
    assert_allclose(counts.token, np.concatenate(label), rtol=1e-9, atol=1e-12)
    expected = [sum(pairs)[z] for z in automaton.patterns[LABELS:]]
    assert_allclose(counts.const[LABELS:], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("count", COUNTS)
def test_the_best_labels_match_products_of_matrices(count):
    automaton, potentials, weights = _model(count)
    found = viterbi(potentials, automaton)
    best = [_by_matrix(scores, weights, np.max)[0] for scores in _split(potentials)]
    assert_allclose(found.scores, best, rtol=1e-12, atol=1e-12)
    rows = zip(_split(potentials), pairwise(found.segments.offsets), found.scores)
    for scores, (first, last), score in rows:
        labels = found.segments.label[first:last]
        total = sum(scores[t, y] for t, y in enumerate(labels))
        assert_allclose(total + sum(weights[pair] for pair in pairwise(labels)), score, atol=1e-9)


def _model(count):
    """Automaton, potentials of some sequences, and the score of each pair, float64 [Y, Y]."""
    rng = np.random.default_rng(count)
    pairs = [divmod(int(i), LABELS) for i in rng.permutation(LABELS * LABELS)]
    forbidden = pairs[count : count + 3]
    patterns = [*((y,) for y in range(LABELS)), *sorted(pairs[:count])]
    automaton = compile_automaton(patterns, [1] * LABELS, forbidden=forbidden)
    const, tokens = rng.normal(size=len(patterns)), sum(LENGTHS)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    allowed = np.full((tokens, LABELS), 7, dtype=np.uint8)
    potentials = replace(
        Potentials.zero(offsets, allowed, len(const)),
        const=const,
        token=rng.normal(0.0, 2.0, size=(tokens, LABELS)),
    )
    weights = np.zeros((LABELS, LABELS))
    for pair, score in zip(patterns[LABELS:], const[LABELS:]):
        weights[pair] = score
    for pair in forbidden:
        weights[pair] = -np.inf
    return automaton, potentials, weights


def _split(potentials):
    """Scores of the labels of each sequence, float64 [T, Y]."""
    scores = potentials.token + potentials.const[:LABELS]
    return [scores[a:b] for a, b in pairwise(potentials.offsets)]


def _by_matrix(scores, weights, total):
    """The sum in a semiring, and from it the probabilities of labels [T, Y] and, summed, pairs."""
    pairs = np.zeros((LABELS, LABELS))
    if not len(scores):
        return 0.0, scores, pairs
    left, right = [scores[0]], [np.zeros(LABELS)]
    for row in scores[1:]:
        left.append(total(left[-1][:, None] + weights, axis=0) + row)
    for row in scores[:0:-1]:
        right.append(total(weights + (row + right[-1]), axis=1))
    everything, right = total(left[-1]), right[::-1]
    for t, row in enumerate(scores[1:], 1):
        pairs += np.exp(left[t - 1][:, None] + weights + row + right[t] - everything)
    return everything, np.exp(np.array(left) + np.array(right) - everything), pairs
