"""The semi-CRF as a subproblem against enumeration: both kinds of vertices, and rewards of any
sign.
"""

from dataclasses import replace

import numpy as np
import oracle
import pytest
from hypothesis import given
from numpy.testing import assert_allclose
from segmented_groups import (
    allowed,
    groups,
    make_vertices,
    plain_sequence,
    plain_subproblem,
    segmentations_of,
    states_of,
    subproblem_of,
)

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.joint.chain import SegmentationSubproblem


@given(groups())
def test_maximise_matches_enumeration(group):
    problems, vertices, rng = group
    if not problems:
        return
    subproblem = subproblem_of(problems, vertices)
    n_labels = len(problems[0].limits)
    assert np.diff(subproblem.offsets).tolist() == [
        *[n_labels + 1] * len(vertices["segments"]),
        *[n_labels] * len(vertices["tokens"]),
        *[2] * len(vertices["labels"]),
    ]
    for scale in (0.0, 1.0, 30.0):
        rewards = rng.normal(0, scale, subproblem.offsets[-1])
        score, states = subproblem.maximise(rewards)
        subproblem.keep()
        best = 0.0
        for i, problem in enumerate(problems):
            scored = {}
            for segmentation in allowed(problem):
                chosen = states_of(segmentation, i, vertices, n_labels)
                scored[segmentation] = oracle.score(
                    problem.potentials, problem.patterns, segmentation
                ) + sum(rewards[subproblem.offsets[v] + s] for v, s in chosen.items())
            found = segmentations_of(subproblem.best)[i]
            assert scored[found] == pytest.approx(max(scored.values()), rel=1e-9, abs=1e-9)
            for v, s in states_of(found, i, vertices, n_labels).items():
                assert states[v] == s
            best += max(scored.values())
        assert_allclose(score, best, rtol=1e-9, atol=1e-9)


def test_a_span_that_has_a_score_keeps_it():
    rng = np.random.default_rng(1)
    potentials = plain_sequence(3, 2, rng)
    one = np.ones(1, dtype=np.int64)
    potentials = replace(
        potentials,
        span_start=0 * one,
        span_end=2 * one,
        span_pattern=one.astype(np.int32),
        span_score=np.array([50.0]),
    )
    automaton = compile_automaton([(0,), (1,)], (0, 0))
    free, subproblem = (
        SegmentationSubproblem(
            potentials, automaton, make_vertices(potentials.offsets, 2, segments=segments)
        )
        for segments in ([], [(0, 0, 2)])
    )
    score, states = subproblem.maximise(np.zeros(3))
    assert states.tolist() == [1]
    assert score == pytest.approx(free.maximise(np.zeros(0))[0])
    assert subproblem.maximise(np.array([0.0, 2.5, 0.0]))[0] == pytest.approx(score + 2.5)


def test_without_vertices_it_is_viterbi():
    score, states = plain_subproblem().maximise(np.zeros(0))
    assert states.shape == (0,)
    assert score == pytest.approx(plain_subproblem(tokens=[(0, 1)]).maximise(np.zeros(2))[0])


def test_without_sequences_the_score_is_zero():
    potentials = replace(
        plain_sequence(0, 2, np.random.default_rng(0)), offsets=np.zeros(1, dtype=np.int64)
    )
    score, states = SegmentationSubproblem(
        potentials, compile_automaton([(0,), (1,)], (0, 0)), make_vertices(potentials.offsets, 2)
    ).maximise(np.zeros(0))
    assert (score, states.tolist()) == (0.0, [])


def test_states_are_not_changed_by_later_calls():
    subproblem = plain_subproblem(tokens=[(0, 2)])
    _, before = subproblem.maximise(np.array([50.0, 0.0]))
    _, after = subproblem.maximise(np.array([0.0, 50.0]))
    assert (before.tolist(), after.tolist()) == ([0], [1])


@pytest.mark.parametrize(
    "segments, limits", [([(0, 1, 2), (0, 0, 3)], (1, 2)), ([(0, 0, 2)], (1, 1))]
)
def test_segments_longer_than_any_label_allows_are_refused(segments, limits):
    with pytest.raises(ValueError, match="H092"):
        plain_subproblem(segments=segments, limits=limits)


def test_a_sequence_that_nothing_covers_is_refused():
    potentials = plain_sequence(3, 1, np.random.default_rng(0))
    potentials.allowed[1] = 0
    with pytest.raises(ValueError, match="H093"):
        SegmentationSubproblem(
            potentials, compile_automaton([(0,)], (0,)), make_vertices(potentials.offsets, 1)
        )


def test_rewards_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="H006"):
        plain_subproblem(segments=[(0, 0, 2)]).maximise(np.array([np.nan, 0.0, 0.0]))
    with pytest.raises(ValueError, match="H006"):
        plain_subproblem(tokens=[(0, 1)]).maximise(np.array([np.nan, 0.0]))
