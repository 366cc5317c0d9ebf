"""Value, planes and subgradient of the max-margin objective against enumeration."""

import numpy as np
import oracle
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from word_corpus import (
    ANYTHING,
    AUTOMATON,
    FORBIDDEN,
    LABELS,
    LIMITS,
    PLAIN,
    WORDS,
    F,
    Texts,
    random_texts,
)

from spacy_hocrf.engine.cutting_planes import CuttingPlanes
from spacy_hocrf.engine.margin import MarginObjective
from spacy_hocrf.types import Segment


def corpus(seed=0, shards=5, texts=3):
    rng = np.random.default_rng(seed)
    return [random_texts(rng, texts, known=True) for _ in range(shards)], rng.normal(size=F)


def objective_of(shards, *, threads=1, precision=0.25, mean=None):
    mean = np.zeros(F) if mean is None else mean
    return MarginObjective(shards, PLAIN, AUTOMATON, np.full(F, precision), mean, threads=threads)


def labels(segmentation):
    return [segment.label for segment in segmentation for _ in range(segment.start, segment.end)]


def enumerated(shards):
    """For each text and each of its segmentations: the cost, and how much more often each feature
    fires than in the annotation.
    """
    for shard in shards:
        for i, gold in enumerate(shard.segmentations):
            text = shard.only(i)
            every = list(oracle.segmentations(text.single(np.zeros(F), 0), LIMITS, FORBIDDEN))
            rows = []
            for segmentation in every:
                counts = np.zeros(F)
                text.add_segments_into(Texts([text.texts[0]], [segmentation]).gold(), 1.0, counts)
                text.add_gold_into(minus := np.zeros(F))
                rows.append(
                    (
                        sum(
                            a != b for a, b in zip(labels(segmentation), labels(gold), strict=True)
                        ),
                        counts - minus,
                    )
                )
            costs, differences = zip(*rows)
            yield np.array(costs, dtype=float), np.array(differences)


def risk(texts, weights):
    return sum((costs + differences @ weights).max() for costs, differences in texts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_plane_touches_the_risk_and_is_nowhere_above_it(seed):
    shards, weights = corpus(seed, texts=2)
    texts = list(enumerated(shards))
    offset, slope = objective_of(shards).plane(weights)
    assert_allclose(offset + slope @ weights, risk(texts, weights), rtol=1e-10)
    rng = np.random.default_rng(seed)
    for scale in (0.0, 0.1, 1.0, 10.0):
        other = scale * rng.normal(size=F)
        assert offset + slope @ other <= risk(texts, other) + 1e-9


@pytest.mark.slow
def test_the_value_is_risk_and_penalty_and_has_the_slope_of_the_plane():
    shards, weights = corpus(texts=1)
    mean = np.linspace(-1.0, 1.0, F)
    objective = objective_of(shards, precision=0.5, mean=mean)
    value, gradient = objective(weights)
    assert_allclose(
        value, risk(enumerated(shards), weights) + 0.25 * ((weights - mean) ** 2).sum(), rtol=1e-10
    )
    for f in range(F):  # differentiable at random weights
        step = np.zeros(F)
        step[f] = 1e-6
        slope = (objective(weights + step)[0] - objective(weights - step)[0]) / 2e-6
        assert_allclose(gradient[f], slope, atol=1e-6, err_msg=str(f))


def test_the_annotation_costs_nothing_and_all_else_its_wrong_tokens():
    [shard], _ = corpus(shards=1, texts=1)
    # all scores are equal: the most expensive segmentation
    offset, slope = objective_of([shard]).plane(np.zeros(F))
    [(costs, _)] = enumerated([shard])
    assert offset == costs.max() > 0
    assert slope.any()
    certain = np.zeros(F)
    # nothing comes near the annotation
    certain[: WORDS * LABELS].reshape(WORDS, LABELS)[[0, 1, 2], [0, 1, 0]] = 100.0
    right = Texts([(0, 1, 2)], [[Segment(0, 1, 0), Segment(1, 2, 1), Segment(2, 3, 0)]])
    offset, slope = objective_of([right]).plane(certain)
    assert offset == 0.0
    assert not slope.any()


@pytest.mark.parametrize("shards", [1, 3, 4, 11])
def test_the_plane_is_the_same_to_the_last_bit_for_any_number_of_threads(shards):
    data, weights = corpus(shards=shards)
    offset, slope = objective_of(data).plane(weights)
    for threads in (2, 4, 9):
        again, other = objective_of(data, threads=threads).plane(weights)
        assert again == offset
        assert_array_equal(other, slope)


def test_a_document_without_an_allowed_segmentation_is_named():
    shards, weights = corpus(shards=1)
    objective = objective_of(shards)
    whole = shards[0].potentials(weights)
    nothing = np.where(
        np.arange(len(whole.allowed))[:, None] < len(shards[0].texts[0]), 0, ANYTHING
    )
    shards[0].potentials = lambda weights, scratch: whole.__class__(
        **{
            **whole.__dict__,
            "allowed": np.broadcast_to(nothing, (len(nothing), LABELS)).astype(np.uint8),
        }
    )
    with pytest.raises(ValueError) as caught:
        objective.plane(weights)
    assert "H007" in str(caught.value) and str(shards[0].texts[0]) in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(2))
def test_cutting_planes_find_the_optimum_of_the_programme_with_every_segmentation(seed, sigma):
    minimize = pytest.importorskip("scipy.optimize").minimize
    rng = np.random.default_rng(seed)
    words = [tuple(map(int, rng.integers(0, 4, 3))) for _ in range(6)]
    shards = []
    for text in words:
        every = list(oracle.segmentations(Texts([text]).potentials(np.zeros(F)), LIMITS, FORBIDDEN))
        shards.append(Texts([text], [every[rng.integers(len(every))]]))
    mean = 0.1 * rng.normal(size=F)
    objective = objective_of(shards, precision=sigma**-2, mean=mean)
    optimiser = CuttingPlanes(rng.normal(size=F), objective.precision, mean, tolerance=1e-9)
    while optimiser.status == "running":
        optimiser.tell(*objective.plane(optimiser.x))

    # one slack variable for each text, one constraint for each segmentation
    texts = list(enumerated(shards))
    owner = np.repeat(np.arange(len(texts)), [len(costs) for costs, _ in texts])
    costs, differences = (
        np.concatenate([c for c, _ in texts]),
        np.concatenate([d for _, d in texts]),
    )
    jacobian = np.hstack([-differences, np.eye(len(texts))[owner]])
    slacks = [(c + d @ mean).max() for c, d in texts]
    found = minimize(
        lambda x: 0.5 / sigma**2 * ((x[:F] - mean) ** 2).sum() + x[F:].sum(),
        np.concatenate([mean, slacks]),
        jac=lambda x: np.concatenate([(x[:F] - mean) / sigma**2, np.ones(len(texts))]),
        constraints={
            "type": "ineq",
            "fun": lambda x: jacobian @ x - costs,
            "jac": lambda x: jacobian,
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    assert found.success
    assert_allclose(optimiser.best_f, found.fun, rtol=1e-6)
    assert_allclose(objective(optimiser.best_x)[0], optimiser.best_f, rtol=1e-9)
    assert optimiser.gap <= 1e-9
    assert_allclose(optimiser.best_x, found.x[:F], atol=2e-3 * sigma)


def test_a_boundary_between_segments_of_one_label_costs_nothing():
    text = (0, 0)
    whole, cut = [Segment(0, 2, 1)], [Segment(0, 1, 1), Segment(1, 2, 1)]
    counts = np.zeros(F)
    Texts([text], [cut]).add_gold_into(counts)
    Texts([text]).add_segments_into(Texts([text], [whole]).gold(), -1.0, counts)
    plane = objective_of([Texts([text], [whole])]).plane(100.0 * counts)
    assert plane.offset == 0.0
    assert_array_equal(plane.slope, counts)
