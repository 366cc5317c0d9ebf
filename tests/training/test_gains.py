"""The gain of a weight that is 0: against a search for the best weight, and exact likelihoods."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spacy_hocrf.training.gains import gains_of

COUNTS = st.floats(0.0, 1e4)
PRECISIONS = st.sampled_from([0.0, 0.01, 1.0, 25.0])


def promised(weight, observed, expected, precision):
    return observed * weight - expected * np.expm1(weight) - 0.5 * precision * weight**2


def highest(function, low, high):
    """The maximum of a concave function, by thirds of an interval."""
    for _ in range(300):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (a, high) if function(a) < function(b) else (low, b)
    return function(0.5 * (low + high))


@given(st.lists(st.tuples(COUNTS, st.floats(1e-9, 1e4), PRECISIONS), min_size=1, max_size=5))
def test_the_gain_is_that_of_the_best_weight(features):
    observed, expected, precision = np.array(features).T
    gains = gains_of(observed, expected, precision)
    for gain, feature in zip(gains, features):
        best = highest(lambda weight, feature=feature: promised(weight, *feature), -60.0, 60.0)
        assert gain == pytest.approx(best, rel=1e-6, abs=1e-6)
        assert gain >= 0.0


def test_what_is_expected_as_often_as_it_is_seen_promises_nothing():
    assert gains_of(*np.array([[3.0], [3.0], [1.0]])) == pytest.approx(0.0, abs=1e-12)


def test_what_is_never_expected_is_limited_by_the_prior():
    gains = gains_of(np.array([2.0, 2.0]), np.zeros(2), np.array([1.0, 0.25]))
    # the likelihood alone would rise without end by 2 w: 2 w - w² / 2 sigma² is 2 and 8 at most
    assert gains == pytest.approx([2.0, 8.0], rel=1e-9)


@given(
    st.lists(st.floats(0.001, 0.999), min_size=1, max_size=8),
    st.integers(0, 8),
    st.sampled_from([0.0, 1.0]),
)
def test_it_is_no_more_than_places_that_do_not_know_of_each_other_gain(
    chances, observed, precision
):
    observed = min(observed, len(chances))
    p = np.array(chances)

    def exact(weight):
        return (
            observed * weight - np.log1p(p * np.expm1(weight)).sum() - 0.5 * precision * weight**2
        )

    gain = gains_of(*np.array([[observed], [p.sum()], [precision]], dtype=float))[0]
    assert gain <= highest(exact, -60.0, 60.0) + 1e-6


@given(
    st.integers(0, 9),
    st.integers(1, 40),
    st.sampled_from([0.5, 0.3, 0.01]),
    st.integers(0, 40),
    st.sampled_from([0.01, 1.0]),
)
def test_with_how_uncertain_places_are_it_is_what_they_gain(certain, n, p, observed, precision):
    """Places of one probability, 1/2 if there are certain ones too."""
    p = 0.5 if certain else p
    observed = certain + min(observed, n)
    expected, uncertain = certain + n * p, n * p * (1 - p)
    agreed = 0.5 * (observed + expected) - uncertain
    assume(0 <= agreed <= min(observed, expected))

    def exact(weight):
        rest = n * np.log1p(p * np.expm1(weight)) + certain * weight
        return observed * weight - rest - 0.5 * precision * weight**2

    features = np.array([[observed], [expected], [precision], [agreed]], dtype=float)
    assert gains_of(*features)[0] == pytest.approx(highest(exact, -60.0, 60.0), rel=1e-5, abs=1e-5)


@given(st.tuples(COUNTS, COUNTS, st.sampled_from([0.01, 1.0]), st.floats(0.0, 1.0)))
def test_the_gain_is_finite_and_not_negative(feature):
    observed, expected, precision, share = feature
    agreed = share * min(observed, expected)
    gain = gains_of(*np.array([[observed], [expected], [precision], [agreed]]))[0]
    assert np.isfinite(gain) and gain >= -1e-6


def test_no_features():
    assert gains_of(*np.zeros((3, 0))).shape == (0,)
