"""One weight for features that are always there together: the same objective, optimum and model."""

import numpy as np
import pytest
from derivatives import assert_gradient
from numpy.testing import assert_allclose, assert_array_equal

from spacy_hocrf.engine.tying import Tied, TiedObjective

GROUP = np.array([0, 1, 0, 2, 0, 2], dtype=np.int32)
PRECISION = np.array([2.0, 0.5, 2.0, 1.0, 2.0, 1.0])


def penalty(weights, precision=PRECISION):
    return 0.5 * float((precision * weights**2).sum())


class Sums:
    """A function of the sums u, with the prior of the sums."""

    def __init__(self, tied):
        self.precision = tied.precision(PRECISION)
        self.counts, self.shards = np.arange(3.0), ["shard"]
        self.curvature = self.precision + self.counts
        self.rested = False

    def __call__(self, u):
        value = float(np.cos(u) @ np.arange(1.0, 4.0)) + penalty(u, self.precision)
        return value, -np.sin(u) * np.arange(1.0, 4.0) + self.precision * u

    def release(self):
        self.rested = True


@pytest.fixture
def tied():
    return Tied([], None, GROUP)


def test_the_prior_of_a_sum_is_the_least_of_all_weights_with_that_sum(tied):
    rng = np.random.default_rng(0)
    for v in rng.normal(size=(20, 3)):
        weights = tied.outside(v)
        assert_allclose(tied.inside(weights), v, rtol=1e-12)
        least = penalty(tied.sums(weights), tied.precision(PRECISION))
        assert_allclose(penalty(weights), least, rtol=1e-12)
        for other in weights + rng.normal(size=(10, 6)):
            same = other + ((tied.sums(weights) - tied.sums(other)) / np.bincount(GROUP))[GROUP]
            assert_allclose(tied.sums(same), tied.sums(weights), atol=1e-12)
            assert penalty(same) >= least - 1e-12


def test_features_with_weights_of_their_own_have_no_groups(tied):
    assert len(tied) == 3 and len(Tied([], None, None)) == 0


def test_distances_are_those_of_the_weights(tied):
    one, other = np.random.default_rng(1).normal(size=(2, 3))
    apart = tied.outside(one) - tied.outside(other)
    assert_allclose(np.linalg.norm(apart), np.linalg.norm(one - other), rtol=1e-12)


def test_the_gradient_matches_central_differences(tied):
    objective = tied.objective(Sums(tied))
    assert isinstance(objective, TiedObjective)
    assert_array_equal(objective.counts, np.arange(3.0))
    assert_gradient(objective, np.random.default_rng(2).normal(size=3), np.eye(3), rtol=1e-6)
    objective.release()
    assert objective.shards == ["shard"]
    assert objective._sums.rested


def test_the_curvature_is_that_along_v(tied):
    """The function of u with that curvature has it, as a function of v."""
    objective, sums = tied.objective(Sums(tied)), Sums(tied)
    sizes = np.bincount(GROUP)
    assert_allclose(objective.curvature, sizes * (sums.precision + np.arange(3.0)), rtol=1e-12)
    first = [2.0, 0.5, 1.0]  # the prior's curvature is that of one weight
    assert_allclose(objective.curvature, first + sizes * np.arange(3.0), rtol=1e-12)
