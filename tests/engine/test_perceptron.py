"""The averaged perceptron against one in plain Python that enumerates all segmentations and adds up
all averages.
"""

import numpy as np
import oracle
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from word_corpus import AUTOMATON, FORBIDDEN, LIMITS, PATTERNS, PLAIN, F, Texts, random_texts

from spacy_hocrf.engine.perceptron import AveragedPerceptron
from spacy_hocrf.types import Segment


def corpus(seed, shards=3):
    rng = np.random.default_rng(seed)
    return [random_texts(rng, 3, known=True) for _ in range(shards)], rng.normal(size=F)


def texts_of(shards):
    return [
        (shard.only(i), tuple(gold))
        for shard in shards
        for i, gold in enumerate(shard.segmentations)
    ]


def counts_of(text, segmentation):
    text.segmentations = [list(segmentation)]
    counts = np.zeros(F)
    text.add_gold_into(counts)
    return counts


def best_of(text, weights):
    """How often each feature fires in the best segmentation, or in all of the best."""
    _, best = oracle.viterbi(text.single(weights, 0), PATTERNS, LIMITS, FORBIDDEN)
    [counts] = {tuple(counts_of(text, segmentation)) for segmentation in best}
    return np.array(counts)


def plain_perceptron(shards, weights, orders):
    """The weights after the last sequence, the average, and the updates of each epoch."""
    texts, weights = texts_of(shards), weights.copy()
    everything, mistakes = [], []
    for order in orders:
        mistakes.append(0)
        for number in order:
            text, gold = texts[number]
            update = counts_of(text, gold) - best_of(text, weights)
            mistakes[-1] += update.any()
            weights += update
            everything.append(weights.copy())
    return weights, np.mean(everything, axis=0), mistakes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_it_makes_the_updates_and_the_average_of_a_plain_perceptron(seed):
    shards, start = corpus(seed)
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(9).tolist() for _ in range(4)]
    weights, average, updates = plain_perceptron(shards, start, orders)
    perceptron = AveragedPerceptron(shards, PLAIN, AUTOMATON, start)
    assert len(perceptron) == 9
    assert_array_equal(perceptron.average, start)
    mistakes = [perceptron.mistakes(), *(perceptron.epoch(order) for order in orders)]
    wrong = sum(
        (best_of(text, start) != counts_of(text, gold)).any() for text, gold in texts_of(shards)
    )
    assert all(found >= needed > 0 for found, needed in zip(mistakes, [wrong, *updates]))
    assert_allclose(perceptron.weights, weights, rtol=1e-12, atol=1e-12)
    assert_allclose(perceptron.average, average, rtol=1e-12, atol=1e-12)
    assert perceptron.seen == 36


def test_an_epoch_without_a_mistake_is_not_decoded_again_but_counts(monkeypatch):
    text = Texts([(0, 1, 2)], [[Segment(0, 1, 0), Segment(1, 2, 1), Segment(2, 3, 0)]])
    perceptron = AveragedPerceptron([text], PLAIN, AUTOMATON, np.zeros(F))
    mistakes = [perceptron.epoch([0]) for _ in range(20)]
    assert mistakes[0] == 1 and mistakes[-1] == 0
    seen, average = perceptron.seen, perceptron.average
    monkeypatch.setattr(AveragedPerceptron, "_best", lambda *arguments: 1 / 0)
    assert perceptron.epoch([0]) == 0
    assert perceptron.seen == seen + 1
    assert_allclose(
        (seen * average + perceptron.weights) / (seen + 1),
        perceptron.average,
        rtol=1e-12,
        atol=1e-12,
    )


def test_ties_at_zero_are_mistakes_unless_the_annotation_is_what_viterbi_prefers():
    shards, _ = corpus(1)
    results = []
    for _ in range(2):
        perceptron = AveragedPerceptron(shards, PLAIN, AUTOMATON, np.zeros(F))
        results.append((perceptron.epoch(range(9)), perceptron.weights.copy()))
    assert results[0][0] == results[1][0] > 0
    assert_array_equal(results[0][1], results[1][1])
    assert_array_equal(results[0][1], np.round(results[0][1]))  # sums of counts


def test_weights_at_the_start_are_not_changed():
    shards, start = corpus(2)
    before = start.copy()
    AveragedPerceptron(shards, PLAIN, AUTOMATON, start).epoch(range(9))
    assert_array_equal(start, before)
