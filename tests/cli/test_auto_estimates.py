"""F1 with its interval, and the learning curve, against other ways to have them."""

import numpy as np
import pytest
from pytest import approx

from spacy_hocrf.cli.auto import estimates
from spacy_hocrf.cli.auto.estimates import (
    MODEL,
    NEW,
    QUANTILE,
    SpanCounts,
    bootstrap,
    learning_curve,
    scores,
)


def counts(rng, texts, labels=2, skill=0.7):
    """Of texts with a few spans each, found with some probability."""
    gold = rng.integers(0, 4, (texts, labels))
    right = rng.binomial(gold, skill)
    return SpanCounts(right, right + rng.binomial(2, 0.2, (texts, labels)), gold)


def test_the_bootstrap_is_the_same_whatever_is_at_hand_at_a_time(monkeypatch):
    some = counts(np.random.default_rng(2), 30)
    expected = bootstrap(some.right, some.predicted, some.gold, 5)
    monkeypatch.setattr(estimates, "BLOCK", 100)
    draws = bootstrap(some.right, some.predicted, some.gold, 5)
    assert draws.shape == (estimates.DRAWS, 2) and (draws == expected).all()


def test_scores_are_f1_precision_and_recall():
    some = counts(np.random.default_rng(1), 50)
    total, first, second = scores(some, 0.0, seed=0)
    right, found, gold = (
        array.sum(axis=0).tolist() for array in (some.right, some.predicted, some.gold)
    )
    assert total.f == approx(2 * sum(right) / (sum(found) + sum(gold))) == approx(some.f)
    assert (first.precision, first.recall) == (right[0] / found[0], right[0] / gold[0])
    assert second.gold == gold[1] and second.texts == (some.gold[:, 1] > 0).sum()
    for score in (total, first, second):
        assert score.interval.low < score.f < score.interval.high


def test_the_interval_is_of_the_f1_of_new_texts():
    rng = np.random.default_rng(2)
    inside = 0
    for seed in range(200):
        score = scores(counts(rng, NEW), 0.0, seed)[0]
        inside += counts(rng, NEW).f in score.interval
    assert 0.88 <= inside / 200 <= 1.0  # 90 %, and what MODEL allows for besides


def test_an_interval_is_as_wide_as_that_of_a_proportion():
    nothing = np.zeros((30, 1), dtype=int)
    gold = nothing.copy()
    gold[:10] = 1
    missed = scores(SpanCounts(nothing, gold, gold), 0.0, seed=0)[1]
    square = QUANTILE**2
    assert missed.f == 0.0 and missed.interval.low == 0.0
    assert missed.interval.high == approx(square / (10 + square))
    everything = scores(SpanCounts(gold, gold, gold), 0.0, seed=0)[1]
    assert everything.interval.low == approx(1 - square / (10 + square))
    assert everything.interval.high == 1.0


def test_what_more_texts_give_is_added():
    some = counts(np.random.default_rng(3), 50)
    plain, grown = scores(some, 0.0, seed=0), scores(some, 0.02, seed=0)
    assert grown[0].f == approx(plain[0].f + 0.02)
    for one, other in zip(plain[1:], grown[1:]):
        assert other.f == approx(one.f * (1 + 0.02 / some.f))


@pytest.mark.parametrize("a, b, c", [(0.9, 1.5, 0.5), (1.0, 0.8, 0.3), (0.7, 0.0, 0.1)])
def test_a_power_law_is_found_again(a, b, c):
    texts, gold = [100, 200, 400, 800], np.full((1000, 1), 1000)
    some = []
    for n in texts:
        right = np.round(1000 * (a - b * n**-c)).astype(int) * np.ones((1000, 1), dtype=int)
        some.append(SpanCounts(right, gold, gold))
    curve = learning_curve(texts, some, 1000, seed=0)
    assert curve.at(1000) == approx(a - b * 1000**-c, abs=2e-3)  # counts are whole numbers
    assert curve.at(2000) == approx(a - b * 2000**-c, abs=4e-3)
    assert curve.gain == approx(curve.at(1000) - curve.at(800))
    assert curve.at(2000) in curve.doubled
    assert curve.doubled.high - curve.doubled.low >= min(1.9, 2 * QUANTILE) * MODEL


def test_a_curve_neither_falls_nor_exceeds_one():
    rng = np.random.default_rng(4)
    falling = learning_curve(
        [20, 40, 80], [counts(rng, 50, skill=s) for s in (0.8, 0.7, 0.6)], 100, seed=0
    )
    assert falling.gain == 0.0 and falling.b == 0.0
    steep = learning_curve(
        [20, 40, 80], [counts(rng, 50, skill=s) for s in (0.1, 0.5, 0.99)], 100, seed=0
    )
    assert steep.at(10**9) <= 1.0 and steep.doubled.high <= 1.0
    assert steep.at(80) == approx(steep.f[-1])
