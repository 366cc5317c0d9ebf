"""The objective of a small corpus against enumeration and central differences, and its independence of the threads."""

from dataclasses import replace

import numpy as np
import oracle
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.types import START, Expectations, Potentials, Segment

PATTERNS = ((0,), (1,), (2,), (0, 1), (1, 0, 2))
LIMITS, FORBIDDEN = (1, 3, 0), frozenset({(2, 2)})
AUTOMATON = compile_automaton(PATTERNS, LIMITS, forbidden=FORBIDDEN)
WORDS, LABELS = 4, 3
# features: a word in a segment of a label; a label pattern; a word at the start of a segment that ends in (0, 1)
F = WORDS * LABELS + len(PATTERNS) + WORDS
ANYTHING = oracle.ANYTHING


class Texts:
    """A shard of texts of words 0..3; each comes with its segments, or with bits [T, Y] if it is known in part."""

    def __init__(self, texts, segmentations=None, bits=None):
        self.texts, self.segmentations, self.bits = texts, segmentations, bits
        self.words = np.array([word for text in texts for word in text], dtype=np.int64)

    def potentials(self, weights, scratch=None):
        n = len(self.words)
        word = weights[: WORDS * LABELS].reshape(WORDS, LABELS)
        nothing = np.zeros((n, LABELS))
        return Potentials(
            offsets=np.cumsum([0, *map(len, self.texts)]),
            const=weights[WORDS * LABELS :][: len(PATTERNS)].copy(),
            start=nothing,
            end=nothing,
            token=word[self.words],
            inner=nothing,
            row_offsets=np.arange(n + 1),
            row_part=np.full(n, START, dtype=np.uint8),
            row_pattern=np.full(n, 3, dtype=np.int32),
            row_score=weights[-WORDS:][self.words],
            length_pattern=np.zeros(0, dtype=np.int32),
            length_score=np.zeros((0, 1)),
            span_start=np.zeros(0, dtype=np.int64),
            span_end=np.zeros(0, dtype=np.int64),
            span_pattern=np.zeros(0, dtype=np.int32),
            span_score=np.zeros(0),
            allowed=np.full((n, LABELS), ANYTHING, dtype=np.uint8),
        )

    def observed(self, potentials):
        return None if self.bits is None else replace(potentials, allowed=np.concatenate(self.bits))

    def add_gold_into(self, counts):
        for i, segments in enumerate(self.segmentations or ()):
            fired = oracle.firing(self.single(np.zeros(F), i), PATTERNS, segments)
            self.add_counts_into(Expectations(log_partition=np.zeros(1), **fired), 1.0, counts, [self.texts[i]])

    def add_counts_into(self, expected, scale, counts, texts=None):
        words = self.words if texts is None else np.array(texts[0], dtype=np.int64)
        np.add.at(counts[: WORDS * LABELS].reshape(WORDS, LABELS), words, scale * expected.token)
        counts[WORDS * LABELS :][: len(PATTERNS)] += scale * expected.const
        np.add.at(counts[-WORDS:], words, scale * expected.row)

    def describe(self, sequence):
        return str(self.texts[sequence])

    def single(self, weights, i):
        """The potentials of one text, as the oracle takes them."""
        return Texts([self.texts[i]]).potentials(weights)


class Plain:
    """The layout that leaves everything where it is."""

    def place_weights(self, weights, placed=None):
        return weights

    def nothing(self, collected=None):
        return np.zeros(F) if collected is None else collected

    def collect_into(self, gradient, counts):
        gradient[:] = counts
        counts.fill(0.0)


PLAIN = Plain()


def random_texts(rng, count, *, known):
    texts = [tuple(map(int, rng.integers(0, WORDS, rng.integers(1, 6)))) for _ in range(count)]
    segmentations, bits = [], []
    for i, text in enumerate(texts):
        every = list(oracle.segmentations(Texts([text]).potentials(np.zeros(F)), LIMITS, FORBIDDEN))
        segmentations.append(every[rng.integers(len(every))])
        allowed = np.full((len(text), LABELS), ANYTHING, dtype=np.uint8)
        if i % 3:  # nothing is known of the first text, something of the others
            segment = segmentations[-1][-1]
            allowed[segment.start : segment.end] = 0
            allowed[segment.start : segment.end, segment.label] = ANYTHING
        bits.append(allowed)
    return Texts(texts, segmentations) if known else Texts(texts, None, bits)


def corpus(seed=0, shards=7):
    rng = np.random.default_rng(seed)
    return [random_texts(rng, 3, known=number % 3 != 2) for number in range(shards)], rng.normal(size=F)


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
    gradient = objective(weights)[1].copy()
    for f in range(F):
        step = np.zeros(F)
        step[f] = 1e-5
        slope = (objective(weights + step)[0] - objective(weights - step)[0]) / 2e-5
        assert_allclose(gradient[f], slope, rtol=1e-6, atol=1e-7, err_msg=str(f))


def test_nothing_known_is_no_loss():
    text = (0, 1, 2)
    shard = Texts([text], None, [np.full((3, LABELS), ANYTHING, dtype=np.uint8)])
    loss, gradient = objective_of([shard], precision=0.0)(np.random.default_rng(0).normal(size=F))
    assert_allclose(loss, 0.0, atol=1e-12)
    assert_allclose(gradient, np.zeros(F), atol=1e-12)


@pytest.mark.parametrize("shards", [1, 3, 4, 11])
def test_the_result_is_the_same_to_the_last_bit_for_any_number_of_threads(shards):
    data, weights = corpus(shards=shards)
    loss, gradient = objective_of(data, threads=1)(weights)
    for threads in (2, 4, 9):
        for _ in range(3):
            again, other = objective_of(data, threads=threads)(weights)
            assert again == loss
            assert_array_equal(other, gradient)


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
    assert_allclose(gradient - free_gradient, precision * np.linspace(0.0, 1.0, F), rtol=1e-9, atol=1e-12)


def test_without_data_there_is_the_penalty_alone():
    loss, gradient = objective_of([], precision=2.0)(np.ones(F))
    assert loss == F
    assert_array_equal(gradient, np.full(F, 2.0))


def test_an_evaluation_that_fails_leaves_nothing_behind(monkeypatch):
    shards, weights = corpus()
    objective = objective_of(shards)
    loss, gradient = objective(weights)
    gradient = gradient.copy()
    monkeypatch.setattr(shards[-1], "observed", lambda potentials: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        objective(weights)
    monkeypatch.undo()
    for _ in range(2):
        again, other = objective(weights)
        assert again == loss
        assert_array_equal(other, gradient)


def test_the_weights_are_not_changed():
    shards, weights = corpus()
    before = weights.copy()
    objective_of(shards)(weights)
    assert_array_equal(weights, before)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_document_without_an_allowed_segmentation_is_named(threads):
    good = Texts([(0,)], [[Segment(0, 1, 0)]])
    nothing = np.zeros((2, LABELS), dtype=np.uint8)
    bad = Texts([(1, 1), (3, 2)], None, [nothing + np.uint8(ANYTHING), nothing])
    with pytest.raises(ValueError, match=r"H007.*\(3, 2\).*max_length"):
        objective_of([good, bad], threads=threads)(np.zeros(F))
