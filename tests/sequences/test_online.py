"""The averaged perceptron, passive-aggressive learning and AROW against ones in plain Python that enumerate
all segmentations and add up all averages.
"""

import math

import numpy as np
import oracle
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from word_corpus import AUTOMATON, FORBIDDEN, LIMITS, PATTERNS, PLAIN, F, Texts, random_texts

from spacy_hocrf.sequences.online import Arow, AveragedPerceptron, PassiveAggressive
from spacy_hocrf.types import Segment

pytestmark = pytest.mark.slow


def corpus(seed):
    """Shards, the texts in them with their annotation, weights to start from, and an order of updates."""
    rng = np.random.default_rng(seed)
    shards = [random_texts(rng, 3, known=True) for _ in range(2)]
    texts = [(s.only(i), tuple(gold)) for s in shards for i, gold in enumerate(s.segmentations)]
    return shards, texts, rng.normal(size=F), rng.integers(0, 6, 40).tolist()


def counts_of(text, segmentation):
    text.segmentations = [list(segmentation)]
    counts = np.zeros(F)
    text.add_gold_into(counts)
    return counts


def assert_learns(learner, texts, weights, order, step):
    """Compared until two segmentations are the best: which of them is chosen is the engine's business.

    step (Callable): what to add, and the loss, by the difference, what was found scored more, errors and
        segments.
    """
    weights, everything, losses = weights.copy(), [], []
    for number in order:
        text, gold = texts[number]
        _, best = oracle.viterbi(text.single(weights, 0), PATTERNS, LIMITS, FORBIDDEN)
        if len(best) > 1:
            break
        [found] = best
        if tuple(found) != gold:
            difference = counts_of(text, gold) - counts_of(text, found)
            errors = len({*gold} - {*found})
            added, loss = step(difference, -float(weights @ difference), errors, len(gold))
            weights += added
            losses.append(loss)
        everything.append(weights.copy())
    assert len(losses) > 3
    assert learner.epoch(order[: len(everything)]) == len(losses)
    assert learner.loss == pytest.approx(sum(losses), rel=1e-9)
    assert_allclose(learner.weights, weights, rtol=1e-9, atol=1e-9)
    assert_allclose(learner.average, np.mean(everything, axis=0), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_perceptron_adds_the_difference_and_loses_the_share_of_what_is_wrong(seed):
    shards, texts, start, order = corpus(seed)
    learner = AveragedPerceptron(shards, PLAIN, AUTOMATON, start)
    assert len(learner) == 6 and learner.average.tolist() == start.tolist()

    def step(difference, _, wrong, length):
        return difference, wrong / length

    assert_learns(learner, texts, start, order, step)


def test_an_epoch_without_a_mistake_is_not_decoded_again_but_counts(monkeypatch):
    text = Texts([(0, 1, 2)], [[Segment(0, 1, 0), Segment(1, 2, 1), Segment(2, 3, 0)]])
    learner = AveragedPerceptron([text], PLAIN, AUTOMATON, np.zeros(F))
    mistakes = [learner.epoch([0]) for _ in range(20)]
    assert mistakes[0] == 1 and mistakes[-1] == 0
    seen, average = learner.seen, learner.average
    monkeypatch.setattr(AveragedPerceptron, "_best", lambda *arguments: 1 / 0)
    assert learner.epoch([0]) == 0
    assert learner.seen == seen + 1
    expected = (seen * average + learner.weights) / (seen + 1)
    assert_allclose(learner.average, expected, rtol=1e-12, atol=1e-12)


def test_ties_at_zero_are_mistakes_unless_the_annotation_is_what_viterbi_prefers():
    shards, _, _, _ = corpus(1)
    results = []
    for _ in range(2):
        learner = AveragedPerceptron(shards, PLAIN, AUTOMATON, np.zeros(F))
        results.append((learner.epoch(range(6)), learner.weights.copy()))
    assert results[0][0] == results[1][0] > 0
    assert_array_equal(results[0][1], results[1][1])
    assert_array_equal(results[0][1], np.round(results[0][1]))  # sums of counts


def test_weights_at_the_start_are_not_changed():
    shards, _, start, _ = corpus(2)
    before = start.copy()
    AveragedPerceptron(shards, PLAIN, AUTOMATON, start).epoch(range(6))
    assert_array_equal(start, before)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("errors", [False, True])
@pytest.mark.parametrize("power", [0, 1, 2])
def test_passive_aggressive_updates_are_as_large_as_they_must_be(seed, errors, power):
    shards, texts, start, order = corpus(seed)
    c = 0.2

    def step(difference, more, wrong, _):
        loss = more + (math.sqrt(wrong) if errors else 1.0)
        norm = sum(each**2 for each in difference)
        tau = [loss / norm, min(c, loss / norm), loss / (norm + 1 / (2 * c))][power]
        return tau * difference, loss

    data = shards, PLAIN, AUTOMATON, start
    learner = PassiveAggressive(*data, slack=power, c=c, errors=errors)
    assert_learns(learner, texts, start, order, step)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("variance, gamma", [(1.0, 1.0), (0.3, 2.5)])
def test_arow_moves_weights_less_that_have_been_moved(seed, variance, gamma):
    shards, texts, start, order = corpus(seed)
    spread = np.full(F, variance)

    def step(difference, more, wrong, _):
        loss = more + wrong
        alpha = loss / (gamma + sum(spread * difference**2))
        added = alpha * spread * difference
        spread[:] = 1 / (1 / spread + difference**2 / gamma)
        return added, loss

    learner = Arow(shards, PLAIN, AUTOMATON, start, variance=variance, gamma=gamma)
    assert_learns(learner, texts, start, order, step)


def test_without_slack_an_update_makes_the_annotation_better_by_its_loss():
    text = Texts([(0, 1, 2)], [[Segment(0, 1, 0), Segment(1, 2, 1), Segment(2, 3, 0)]])
    data = [text], PLAIN, AUTOMATON, np.zeros(F)
    learner = PassiveAggressive(*data, slack=0, c=1.0, errors=False)
    while learner.epoch([0]):
        pass
    _, best = oracle.viterbi(text.single(learner.weights, 0), PATTERNS, LIMITS, FORBIDDEN)
    assert best == {tuple(text.segmentations[0])}
