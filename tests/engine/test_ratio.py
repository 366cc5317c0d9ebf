"""Expected numbers of labelled tokens, and what it costs to leave their share, against enumeration."""

import numpy as np
import oracle
import pytest
from builds import automaton_of
from derivatives import assert_gradient
from hypothesis import assume, given
from numpy.testing import assert_allclose, assert_array_equal
from word_corpus import AUTOMATON, FORBIDDEN, LIMITS, PATTERNS, PLAIN, F, Texts, corpus

from spacy_hocrf.engine.forbidden import Observed
from spacy_hocrf.engine.forward_backward import Buffers
from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.engine.ratio import Ratio, expected_tokens


class Single:
    """A shard of one sequence; its features are the entries of the potentials."""

    copies = 3

    def __init__(self, potentials):
        self._potentials = potentials

    def potentials(self, weights, scratch):
        return self._potentials

    def add_counts_into(self, expected, scale, counts):
        for part in oracle.PARTS:
            found = getattr(expected, part)
            if found is not None:
                counts[part] = counts.get(part, 0.0) + scale * found


def moments(potentials, labels, *model):
    """Expected number of tokens with some labels, and its covariance with the count of every entry."""
    tokens, mean, product = 0.0, {}, {}
    for segmentation, p in oracle.distribution(potentials, *model).items():
        own = sum(end - start for start, end, label in segmentation if labels[label])
        tokens += p * own
        for part, fired in oracle.firing(potentials, model[0], segmentation).items():
            mean[part] = mean.get(part, 0.0) + p * fired
            product[part] = product.get(part, 0.0) + p * own * fired
    return tokens, {part: product[part] - tokens * mean[part] for part in mean}


@given(oracle.problems())
def test_tokens_and_their_covariances_match_enumeration(problem):
    potentials, patterns, limits, forbidden, _ = problem
    model = patterns, limits, forbidden
    assume(np.isfinite(oracle.log_partition(potentials, *model)))
    labels = np.arange(len(limits)) % 2 == len(potentials.token) % 2
    automaton = automaton_of(problem)
    counts = {}
    shard, buffers = Single(potentials), Buffers(automaton)
    found = expected_tokens(labels, shard, None, automaton, buffers, counts)
    tokens, covariances = moments(potentials, labels, *model)
    assert_allclose(found, 3 * tokens, rtol=1e-6, atol=1e-6)
    for part, covariance in covariances.items():
        if getattr(potentials, part, 0) is not None and part in counts:
            assert_allclose(counts[part], 3 * covariance, rtol=1e-6, atol=1e-6, err_msg=part)


LABELLED = np.array([True, True, False])


def objective_of(shards, *ratios, threads=1):
    known = np.full(F, 0.25), np.zeros(F)
    return Objective(shards, PLAIN, AUTOMATON, *known, ratios=ratios, threads=threads)


def share_expected(shards, weights):
    """Share of the tokens with a label in texts that are known in part."""
    tokens = expected = 0
    for shard in shards:
        for i, text in enumerate(shard.texts if shard.bits is not None else ()):
            found = moments(shard.single(weights, i), LABELLED, PATTERNS, LIMITS, FORBIDDEN)[0]
            expected += shard.copies * found
            tokens += shard.copies * len(text)
    return expected / tokens, tokens


@pytest.mark.parametrize("side", [-1, 1])
def test_the_penalty_is_the_square_of_what_is_beyond_the_share(side, monkeypatch):
    shards, weights = corpus()
    monkeypatch.setattr(shards[2], "copies", 3)
    expected, tokens = share_expected(shards, weights)
    ratio = Ratio(LABELLED, expected + side * 0.02, 7.0)
    gained = objective_of(shards, ratio)(weights)[0] - objective_of(shards)(weights)[0]
    assert_allclose(gained, 7.0 * tokens * 0.02**2, rtol=1e-5)


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_the_gradient_of_all_matches_central_differences(share):
    shards, weights = corpus()
    one = np.array([True, False, False])
    objective = objective_of(shards, Ratio(LABELLED, share, 50.0), Ratio(one, share / 2, 20.0))
    gradient = objective(weights)[1].copy()
    assert np.abs(gradient - objective_of(shards)(weights)[1]).max() > 1.0
    # with a smaller step, the rounding of log Z is seen
    assert_gradient(objective, weights, np.eye(F), step=1e-4, rtol=1e-6, atol=3e-6)


class Soft(Texts):
    """Texts of which somebody else says what is in them."""

    @property
    def observed(self):
        scores = self.potentials(np.linspace(-1.0, 1.0, F))
        return Observed(np.concatenate(self.bits), scores=scores)


def test_texts_that_are_known_completely_or_softly_are_not_asked():
    shards, weights = corpus()
    known = [
        shard if shard.bits is None else Soft(shard.texts, None, shard.bits) for shard in shards
    ]
    assert {type(shard) for shard in known} == {Texts, Soft}
    ratio = Ratio(LABELLED, 0.01, 1e6)
    assert objective_of(known, ratio)(weights)[0] == objective_of(known)(weights)[0]


def test_threads_change_no_bit_and_a_rest_neither():
    shards, weights = corpus(shards=11)
    ratio = Ratio(LABELLED, 0.2, 50.0)
    loss, gradient = objective_of(shards, ratio)(weights)
    for threads in (2, 5):
        objective = objective_of(shards, ratio, threads=threads)
        for _ in range(2):
            again, other = objective(weights)
            assert again == loss
            assert_array_equal(other, gradient)
            objective.release()
