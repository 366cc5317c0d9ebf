"""The randomization test against an enumeration of all shuffles in exact fractions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from spacy_hocrf.cli import randomization
from spacy_hocrf.cli.randomization import f1, holm, randomization_test


def enumerated_p(correct, predicted, gold):
    """Share of all 2^D shuffles with a difference at least as large as the real one; counts are
    lists, by system and document.
    """
    differences = []
    for swaps in product((0, 1), repeat=len(gold)):
        scores = []
        for system in (0, 1):
            right = sum(correct[system ^ swap][d] for d, swap in enumerate(swaps))
            total = sum(predicted[system ^ swap][d] for d, swap in enumerate(swaps)) + sum(gold)
            scores.append(Fraction(2 * right, total) if total else Fraction(0))
        differences.append(abs(scores[0] - scores[1]))
    return Fraction(
        sum(difference >= differences[0] for difference in differences), len(differences)
    )


@st.composite
def counts(draw, documents, statistics=2):
    """correct and predicted [2, D, K] and gold [D, K], with correct <= predicted and correct <=
    gold.
    """
    correct, missed, wrong = (
        np.array(
            draw(st.lists(st.integers(0, 3), min_size=n * statistics, max_size=n * statistics))
        ).reshape(*shape, statistics)
        for n, shape in (
            (2 * documents, (2, documents)),
            (documents, (documents,)),
            (2 * documents, (2, documents)),
        )
    )
    return correct, correct + wrong, correct.max(axis=0) + missed


@given(counts(documents=7))
def test_exact_p_is_that_of_the_enumeration(problem):
    correct, predicted, gold = problem
    test = randomization_test(correct, predicted, gold, trials=128)
    assert test.exact.all()
    for k in range(2):
        expected = enumerated_p(
            correct[..., k].tolist(), predicted[..., k].tolist(), gold[:, k].tolist()
        )
        assert test.p[k] == approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("block", [1 << 22, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_approximate_p_is_near_the_exact_one(monkeypatch, seed, block):
    monkeypatch.setattr(randomization, "BLOCK", block)
    rng = np.random.default_rng(seed)
    gold = rng.integers(1, 6, (12, 3))
    correct = rng.binomial(gold, np.array([0.5, 0.75])[:, None, None], (2, 12, 3))
    predicted = correct + np.array([[[2]], [[1]]])  # no document is the same for both
    exact = randomization_test(correct, predicted, gold, trials=4096)
    test = randomization_test(correct, predicted, gold, trials=4095, seed=seed)
    assert exact.exact.all() and not test.exact.any()
    assert test.shuffles.tolist() == [4095] * 3
    error = np.sqrt(exact.p * (1 - exact.p) / 4095)
    # p' counts the data themselves once more
    assert (np.abs(test.p - exact.p) <= 4 * error + 1 / 4096).all()


def test_a_statistic_of_few_documents_is_exact_beside_one_of_many():
    gold = np.ones((40, 2), dtype=int)
    correct = np.stack([np.zeros_like(gold), np.zeros_like(gold)])
    correct[1, :, 0] = 1
    correct[1, :3, 1] = 1
    test = randomization_test(correct, np.ones_like(correct), gold, trials=1000, seed=1)
    assert test.exact.tolist() == [False, True]
    assert test.documents.tolist() == [40, 3]
    assert test.shuffles.tolist() == [1000, 8]
    # no shuffle of forty comes up; of three, none swapped and all swapped
    assert test.p.tolist() == [1 / 1001, 2 / 8]


def test_identical_systems_have_p_one():
    gold = np.full((50, 2), 3)
    correct = np.full((2, 50, 2), 2)
    test = randomization_test(correct, correct, gold)
    assert test.p.tolist() == [1.0, 1.0]
    assert test.exact.all() and test.shuffles.tolist() == [1, 1]


def test_equal_f1_of_different_systems_has_p_one():
    gold = np.ones((30, 1), dtype=int)
    correct = np.zeros((2, 30, 1), dtype=int)
    correct[0, :15] = correct[1, 15:] = 1
    assert randomization_test(correct, np.ones_like(correct), gold, trials=500).p.tolist() == [1.0]


def test_the_seed_decides_the_shuffles():
    rng = np.random.default_rng(0)
    gold = np.full((100, 1), 4)
    correct = rng.binomial(4, 0.5, (2, 100, 1))
    by_seed = [
        randomization_test(correct, gold + np.zeros_like(correct), gold, trials=999, seed=seed).p[0]
        for seed in (3, 3, 4)
    ]
    assert by_seed[0] == by_seed[1] != by_seed[2]
    assert by_seed[0] * 1000 == approx(round(by_seed[0] * 1000))  # (n_c + 1) / (n_t + 1)


def test_no_documents_and_no_statistics():
    empty = np.zeros((2, 0, 1), dtype=int)
    assert randomization_test(empty, empty, empty[0]).p.tolist() == [1.0]
    empty = np.zeros((2, 5, 0), dtype=int)
    assert randomization_test(empty, empty, empty[0]).p.tolist() == []


def test_f1_of_nothing_is_zero():
    assert f1([0, 1, 2], [0, 2, 2], [0, 2, 2]).tolist() == [0.0, 0.5, 1.0]


def test_holm_corrects_step_by_step():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []
