"""The objective of a small corpus against enumeration and central differences."""

from dataclasses import replace

import numpy as np
import oracle
import pytest
from derivatives import assert_gradient
from numpy.testing import assert_allclose, assert_array_equal
from word_corpus import (
    ANYTHING,
    AUTOMATON,
    FORBIDDEN,
    LABELS,
    LIMITS,
    PATTERNS,
    PLAIN,
    F,
    Plain,
    Texts,
    corpus,
)

from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.engine.vectors import CHUNK
from spacy_hocrf.types import Segment


def objective_of(shards, *, threads=1, precision=0.25, mean=None):
    mean = np.zeros(F) if mean is None else mean
    return Objective(shards, PLAIN, AUTOMATON, np.full(F, precision), mean, threads=threads)


def enumerated_loss(shards, weights):
    """Σ log Z - log Z(segmentations that agree with what is known)."""
    model = (PATTERNS, LIMITS, FORBIDDEN)
    loss = 0.0
    for shard in shards:
        for i in range(len(shard.texts)):
            potentials = shard.single(weights, i)
            loss += oracle.log_partition(potentials, *model)
            if shard.bits is None:
                loss -= oracle.score(potentials, PATTERNS, shard.segmentations[i])
            else:
                loss -= oracle.log_partition(replace(potentials, allowed=shard.bits[i]), *model)
    return loss


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_log_z_minus_log_z_of_what_agrees(seed):
    shards, weights = corpus(seed)
    assert {shard.bits is None for shard in shards} == {True, False}
    loss, _ = objective_of(shards, precision=0.0)(weights)
    assert_allclose(loss, enumerated_loss(shards, weights), rtol=1e-10)


def test_the_gradient_matches_central_differences():
    shards, weights = corpus()
    objective = objective_of(shards, mean=np.linspace(-1.0, 1.0, F))
    assert_gradient(objective, weights, np.eye(F), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("precision", [0.25, np.linspace(0.0, 2.0, F)], ids=["one", "many"])
def test_the_curvature_is_the_precision_and_the_counts(precision):
    objective = objective_of(corpus()[0], precision=precision)
    most = precision + objective.counts
    assert objective.counts.any()
    assert_allclose(objective.curvature, np.where(most == 0.0, 1.0, most), rtol=1e-15)
    assert (objective.curvature > 0.0).all()


def test_the_curvature_of_many_weights_with_one_precision():
    """Objectives keep a chunk of it only."""
    size = CHUNK + 3

    class Large(Plain):
        extent = size

        def nothing(self, collected=None):
            return np.ones(size)

    objective = Objective([], Large(), AUTOMATON, np.full(size, 0.5), np.zeros(size))
    assert_array_equal(objective.curvature, np.full(size, 1.5))


def test_a_shard_counts_as_often_as_it_has_copies(monkeypatch):
    shards, weights = corpus()
    repeated = [shard for i, shard in enumerate(shards) for _ in range(1 + i % 3)]
    loss, gradient = objective_of(repeated)(weights)
    for i, shard in enumerate(shards):
        monkeypatch.setattr(shard, "copies", 1 + i % 3)
    once, other = objective_of(shards)(weights)
    assert_allclose(once, loss, rtol=1e-12)
    assert_allclose(other, gradient, rtol=1e-10, atol=1e-12)


def test_nothing_known_is_no_loss():
    text = (0, 1, 2)
    shard = Texts([text], None, [np.full((3, LABELS), ANYTHING, dtype=np.uint8)])
    loss, gradient = objective_of([shard], precision=0.0)(np.random.default_rng(0).normal(size=F))
    assert_allclose(loss, 0.0, atol=1e-12)
    assert_allclose(gradient, np.zeros(F), atol=1e-12)


def test_one_sigma_for_all_weights_gives_what_as_many_equal_ones_do():
    size = 2 * CHUNK + 5
    weights = np.random.default_rng(0).normal(size=size)
    for mean in (np.zeros(size), weights[::-1].copy()):
        objective = Objective([], Empty(size), AUTOMATON, np.full(size, 3.0), mean)
        loss, gradient = objective(weights)
        assert_allclose(gradient, 3.0 * (weights - mean), rtol=1e-15)
        assert_allclose(loss, 1.5 * ((weights - mean) ** 2).sum(), rtol=1e-12)


class Empty(Plain):
    """A layout of so many weights for a data set without shards."""

    def __init__(self, size):
        self.size = size

    def nothing(self, collected=None):
        return np.zeros(self.size)

    @property
    def extent(self):
        return self.size


def test_the_penalty_is_zero_at_its_mean():
    shards, weights = corpus()
    precision = np.random.default_rng(1).random(F)
    free, free_gradient = objective_of(shards, precision=0.0)(weights)
    centred = Objective(shards, PLAIN, AUTOMATON, precision, weights.copy())
    loss, gradient = centred(weights)
    assert_allclose(loss, free, rtol=1e-12)
    assert_allclose(gradient, free_gradient, rtol=1e-12, atol=1e-12)
    elsewhere = weights + np.linspace(0.0, 1.0, F)
    loss, gradient = centred(elsewhere)
    free, free_gradient = objective_of(shards, precision=0.0)(elsewhere)
    assert_allclose(loss - free, 0.5 * (precision * np.linspace(0.0, 1.0, F) ** 2).sum(), rtol=1e-9)
    assert_allclose(
        gradient - free_gradient, precision * np.linspace(0.0, 1.0, F), rtol=1e-9, atol=1e-12
    )


def test_an_evaluation_that_fails_leaves_nothing_behind(monkeypatch):
    shards, weights = corpus()
    objective = objective_of(shards)
    loss, gradient = objective(weights)
    gradient = gradient.copy()
    monkeypatch.setattr(shards[-1], "add_counts_into", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        objective(weights)
    monkeypatch.undo()
    for _ in range(2):
        again, other = objective(weights)
        assert again == loss
        assert_array_equal(other, gradient)


@pytest.mark.parametrize("threads", [1, 2])
def test_after_a_rest_the_results_are_the_same(threads):
    shards, weights = corpus()
    objective = objective_of(shards, threads=threads)
    loss, gradient = objective(weights)
    gradient = gradient.copy()
    objective.release()
    assert all(shard.rested for shard in shards)
    assert objective._sum._placed is None and not objective._sum._spare
    for _ in range(2):
        again, other = objective(weights)
        assert again == loss
        assert_array_equal(other, gradient)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_document_without_an_allowed_segmentation_is_named(threads):
    good = Texts([(0,)], [[Segment(0, 1, 0)]])
    nothing = np.zeros((2, LABELS), dtype=np.uint8)
    bad = Texts([(1, 1), (3, 2)], None, [nothing + np.uint8(ANYTHING), nothing])
    with pytest.raises(ValueError, match=r"H007.*\(3, 2\).*max_length"):
        objective_of([good, bad], threads=threads)(np.zeros(F))
