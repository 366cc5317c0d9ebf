"""The papers' worked examples, and the NIPS paper's formulation against enumeration."""

import functools
import math
from dataclasses import replace

import numpy as np
import oracle
import prefix_suffix
import pytest
import worked_example as example
from hypothesis import given
from worked_example import MISPRINTS, PATTERNS, TOLERANCE, L, O

NOTHING = frozenset()


@pytest.fixture(scope="module")
def paper():
    return prefix_suffix.from_potentials(example.potentials(), PATTERNS)


@pytest.fixture(scope="module")
def enumerated():
    return oracle.expectations(example.potentials(), PATTERNS, example.LIMITS, NOTHING)


def log(x):
    return math.log(x) if x else -math.inf


def corrected(table, t, state, printed):
    wrong, right = MISPRINTS.get((table, t, state), (printed, printed))
    assert printed == wrong
    return right


def test_the_states_are_those_of_the_supplement(paper):
    assert paper.prefixes == set(example.FORWARD_STATES)
    assert paper.suffixes == set(example.BACKWARD_STATES)


@pytest.mark.parametrize("t", range(9))
def test_alpha_is_that_of_table_3(paper, t):
    for state, printed in zip(example.FORWARD_STATES, example.LOG_ALPHA[t], strict=True):
        expected = corrected("NIPS 3", t, state, printed)
        assert log(paper.alpha[t][state]) == pytest.approx(expected, abs=TOLERANCE), state


@pytest.mark.parametrize("t", range(1, 10))
def test_beta_is_that_of_table_4(paper, t):
    for state, printed in zip(example.BACKWARD_STATES, example.LOG_BETA[t - 1], strict=True):
        expected = corrected("NIPS 4", t, state, printed)
        assert log(paper.beta[t][state]) == pytest.approx(expected, abs=TOLERANCE), state


@pytest.mark.parametrize("t", range(1, 9))
def test_marginals_are_those_of_table_5(paper, t):
    for pattern, printed in zip(PATTERNS, example.MARGINALS[t - 1], strict=True):
        expected = corrected("NIPS 5", t, pattern, printed)
        assert paper.marginal(t, pattern) == pytest.approx(expected, abs=0.001), pattern


def test_the_partition_function_is_e_to_the_12_696(paper, enumerated):
    assert log(paper.partition) == pytest.approx(example.LOG_PARTITION, abs=0.0005)
    assert math.fsum(paper.beta[1].values()) == pytest.approx(paper.partition, rel=1e-14)
    assert enumerated.log_partition == pytest.approx(log(paper.partition), rel=1e-14)


def test_the_only_pair_of_states_around_lol_is_the_supplements(paper):
    """P(y_4..6 = LOL) = alpha(5, LO) beta(5, OL) e^1 / (Z e^1)."""
    expected = paper.alpha[5][L, O] * paper.beta[5][O, L] * math.e / (paper.partition * math.e)
    assert paper.marginal(6, (L, O, L)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("j", range(1, 9))
def test_log_beta_is_that_of_jmlr_table_13(j):
    for state, printed in zip(
        example.JMLR_BACKWARD_STATES, example.JMLR_LOG_BETA[j - 1], strict=True
    ):
        expected = corrected("JMLR 13", j, state, printed)
        assert math.log(score_of_the_rest(j, state[-2:])) == pytest.approx(
            expected, abs=TOLERANCE
        ), state


@functools.cache
def score_of_the_rest(j, previous):
    """Σ over the labels of tokens j..8 of exp(what they score), given the labels before them; LOL
    scores at j = 6.
    """
    if j == 9:
        return 1.0
    total = 0.0
    for label in range(3):
        history = (*previous, label)
        score = example.potentials().start[j - 1, label] + (j == 6 and history[-3:] == (L, O, L))
        total += math.exp(score) * score_of_the_rest(j + 1, history[-2:])
    return total


@pytest.mark.parametrize("j", range(1, 9))
def test_marginals_are_those_of_jmlr_table_14(paper, enumerated, j):
    for pattern, printed in zip(PATTERNS, example.JMLR_MARGINALS[j - 1], strict=True):
        assert paper.marginal(j, pattern) == pytest.approx(
            corrected("JMLR 14", j, pattern, printed), abs=TOLERANCE
        )
    assert enumerated.start[j - 1] == pytest.approx(
        [paper.marginal(j, (y,)) for y in range(3)], rel=1e-12
    )


def test_the_marginal_of_lol_at_france_is_0_391(paper, enumerated):
    assert enumerated.row[0] == pytest.approx(0.391, abs=0.0005)
    assert enumerated.const[3] == pytest.approx(
        math.fsum(paper.marginal(t, (L, O, L)) for t in range(3, 9)), rel=1e-12
    )


@given(oracle.problems(max_tokens=4))
def test_prefixes_and_suffixes_agree_with_enumeration(problem):
    p, patterns = as_crf(problem.potentials), problem.patterns
    model = (1,) * len(problem.limits), NOTHING
    paper = prefix_suffix.from_potentials(p, patterns)
    assert log(paper.partition) == pytest.approx(
        oracle.log_partition(p, patterns, *model), rel=1e-10, abs=1e-10
    )
    assert math.fsum(paper.beta[1].values()) == pytest.approx(paper.partition, rel=1e-10)
    tokens = range(1, len(p.start) + 1)
    for pattern, expected in zip(
        patterns, oracle.expectations(p, patterns, *model).const, strict=True
    ):
        found = math.fsum(paper.marginal(t, pattern) for t in tokens)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def as_crf(potentials):
    return replace(potentials, allowed=np.full_like(potentials.allowed, oracle.ANYTHING))
