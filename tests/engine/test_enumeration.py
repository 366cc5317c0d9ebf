"""Log Z, expectations, best segmentations and marginals against enumeration, and laws that hold
between them: every problem on every build of the kernels.
"""

from dataclasses import replace

import numpy as np
import oracle
from builds import BUILDS, automaton_of, running
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spacy_hocrf.engine.forward_backward import expectations, log_partition, log_state_scores
from spacy_hocrf.engine.marginals import Window, segment_marginals, window_marginals
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.types import Segment


def model_of(problem):
    return problem.patterns, problem.limits, problem.forbidden


@given(oracle.problems())
def test_log_partition_and_expectations_match_enumeration(problem):
    automaton = automaton_of(problem)
    expected = oracle.expectations(problem.potentials, *model_of(problem))
    for build in BUILDS:
        with running(build):
            for space in ("auto", "log", "scaled"):
                log_z = log_partition(problem.potentials, automaton, space=space)
                if space == "scaled" and np.isnan(log_z[0]):
                    continue  # a live value was lost, and the scaled pass said so
                assert_near(log_z, expected.log_partition, f"log Z, {build}, {space}")
            for space in ("auto", "log"):
                counts = expectations(problem.potentials, automaton, space=space)
                assert_near(counts.log_partition, expected.log_partition, f"{build}, {space}")
                oracle.assert_counts(counts, [expected], f"{build}, {space}")


@given(oracle.problems(), st.sampled_from([6.0, 20.0]))
def test_whatever_a_step_loses_is_noticed(problem, factor):
    """Gaps of a thousand nats at one token: what vanishes at once is an exact zero, not a
    suspiciously small number.
    """
    potentials, automaton = steeper(problem.potentials, factor), automaton_of(problem)
    expected = oracle.expectations(potentials, *model_of(problem))
    for build in BUILDS:
        with running(build):
            alone = log_partition(potentials, automaton)
            counts = expectations(potentials, automaton)
        assert_near(alone, expected.log_partition, build, atol=1e-9)
        assert_near(counts.log_partition, expected.log_partition, build, atol=1e-9)
        oracle.assert_counts(counts, [expected], build, rtol=1e-8)


@given(oracle.problems(), st.sampled_from([6.0, 20.0]))
def test_live_states_have_the_log_scores_that_log_space_gives_them(problem, factor):
    """A live state's beta counts however far it lies below the others: a window may exclude those."""
    potentials, automaton = steeper(problem.potentials, factor), automaton_of(problem)
    for build in BUILDS:
        with running(build):
            alpha, beta = log_state_scores(potentials, automaton)
            expected_alpha, expected_beta = log_state_scores(potentials, automaton, space="log")
        live = np.isfinite(expected_alpha)
        assert_near(alpha, expected_alpha, build, atol=1e-9)
        assert_near(beta[live], expected_beta[live], build, atol=1e-9)


@given(oracle.problems())
def test_viterbi_finds_a_best_segmentation(problem):
    automaton = automaton_of(problem)
    best, choices = oracle.viterbi(problem.potentials, *model_of(problem))
    for build in BUILDS:
        with running(build):
            found, [score] = viterbi(problem.potentials, automaton)
            [segments] = oracle.listed(found)
            total = log_partition(problem.potentials, automaton)[0]
        assert_near(score, best, build)
        if np.isfinite(best):
            assert segments in {tuple(choice) for choice in choices}, build
            assert score <= total + 1e-9 * max(1.0, abs(total)), build
        else:
            assert segments == (), build
            assert np.isneginf(total), build


@given(oracle.batches(min_size=1, max_size=4))
def test_a_batch_is_the_sum_of_its_sequences(problems):
    together = oracle.batch([problem.potentials for problem in problems])
    automaton = automaton_of(problems[0])
    for build in BUILDS:
        with running(build):
            counts = expectations(together, automaton)
            alone = [expectations(problem.potentials, automaton) for problem in problems]
        totals = np.concatenate([one.log_partition for one in alone])
        assert_near(counts.log_partition, totals, build, rtol=1e-12, atol=1e-12)
        oracle.assert_counts(counts, alone, build, rtol=1e-9, atol=1e-9)


@given(oracle.problems())
def test_segment_marginals_match_enumeration(problem):
    potentials, automaton = problem.potentials, automaton_of(problem)
    length = int(potentials.offsets[-1])
    asked = [
        Segment(u, v, y)
        for u in range(length)
        for v in range(u + 1, length + 1)
        for y in range(len(problem.limits))
    ]
    scored = [
        (set(segmentation), oracle.score(potentials, problem.patterns, segmentation))
        for segmentation in oracle.segmentations(potentials, problem.limits, problem.forbidden)
    ]
    best = max((score for _, score in scored), default=0.0)
    total = sum(np.exp(score - best) for _, score in scored)
    expected = [
        sum(np.exp(score - best) for those, score in scored if segment in those) / (total or 1.0)
        for segment in asked
    ]
    for build in BUILDS:
        with running(build):
            marginals = segment_marginals(potentials, automaton, oracle.segments_of([asked]))
        assert_near(marginals.probability, expected, build)
        with np.errstate(divide="ignore"):
            assert_near(marginals.log_partition, [best + np.log(total)], build)


@given(oracle.problems())
def test_state_scores_sum_to_log_partition_at_every_boundary(problem):
    if any(limit != 1 for limit in problem.limits):
        return  # with longer segments only the ends are covered by states
    automaton = automaton_of(problem)
    for build in BUILDS:
        with running(build):
            total = log_partition(problem.potentials, automaton)[0]
            alpha, beta = log_state_scores(problem.potentials, automaton)
        if np.isfinite(total):
            sums = np.logaddexp.reduce(alpha + beta, axis=1)
            assert_near(sums, np.full(len(sums), total), build, atol=1e-9)


@given(oracle.problems())
def test_window_marginals_match_constrained_partitions(problem):
    if any(limit != 1 for limit in problem.limits):
        return
    potentials, automaton = problem.potentials, automaton_of(problem)
    length = int(potentials.offsets[-1])
    total = oracle.log_partition(potentials, *model_of(problem))
    if length == 0 or np.isneginf(total):
        return
    windows = [
        Window(0, start, _all_but_a_first_label(end - start, len(problem.limits)))
        for start in range(length)
        for end in range(start + 1, length + 1)
    ]
    expected = []
    for window in windows:
        allowed = potentials.allowed.copy()
        allowed[window.start : window.start + len(window.allowed)] &= window.allowed
        inside = oracle.log_partition(replace(potentials, allowed=allowed), *model_of(problem))
        expected.append(np.exp(inside - total))
    for build in BUILDS:
        with running(build):
            marginals = window_marginals(potentials, automaton, windows)
        assert_near(marginals, expected, build, rtol=1e-9)


def steeper(potentials, factor):
    names = ("start", "end", "token", "inner", "row_score", "length_score", "span_score")
    return replace(potentials, **{name: factor * getattr(potentials, name) for name in names})


def assert_near(found, expected, what, rtol=1e-10, atol=1e-10):
    assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=what)


def _all_but_a_first_label(tokens, labels):
    """uint8 [tokens, labels] that forbids one label at the first token."""
    allowed = np.full((tokens, labels), 7, dtype=np.uint8)
    allowed[0, 0] = 0
    return allowed
