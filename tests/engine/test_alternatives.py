"""The best segmentations in order, and random ones, against enumeration."""

from dataclasses import fields, replace
from itertools import islice, pairwise

import numpy as np
import oracle
import pytest
from builds import automaton_of
from chi_square import chi_square_is_high
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from spacy_hocrf.engine.alternatives import best_segmentations, draws, ranked
from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.forward_backward import Buffers, log_partition
from spacy_hocrf.engine.kernels.lattice import Graph, Lattice, Scores
from spacy_hocrf.engine.problem import Problem
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.types import Potentials

ALL = 10**6


def listed(potentials, automaton, n=None):
    """Score and segmentation of all, or of the n best."""
    found = islice(ranked(potentials, automaton), n)
    return [(score, *oracle.listed(segments)) for score, segments in found]


def zeros(potentials):
    """The same without a score: all segmentations are equals."""
    scores = {
        f.name: np.zeros_like(getattr(potentials, f.name))
        for f in fields(Potentials)
        if f.name in ("const", "start", "end", "token", "inner")
        or f.name in ("row_score", "length_score", "span_score")
    }
    return replace(potentials, **scores)


def assert_ranked(found, expected):
    """found (list[tuple[float, Segmentation]]); expected (dict[Segmentation, float])."""
    assert len(found) == len({s for _, s in found})
    assert {s for _, s in found} <= set(expected)
    for score, segmentation in found:
        assert score == pytest.approx(expected[segmentation], rel=1e-10, abs=1e-9)
    assert all(a >= b for (a, _), (b, _) in pairwise(found))
    best = sorted(expected.values(), reverse=True)[: len(found)]
    assert_allclose([score for score, _ in found], best, rtol=1e-10, atol=1e-9)


@given(oracle.problems())
def test_all_segmentations_come_in_order_each_once(problem):
    expected = oracle.scored(problem.potentials, *problem[1:4])
    found = listed(problem.potentials, automaton_of(problem))
    assert len(found) == len(expected)
    assert_ranked(found, expected)


@given(oracle.problems())
def test_equals_come_each_once_in_an_order_that_is_always_the_same(problem):
    tied = problem._replace(potentials=zeros(problem.potentials))
    found, expected = (
        listed(tied.potentials, automaton_of(tied)),
        oracle.scored(tied.potentials, *tied[1:4]),
    )
    assert len(found) == len(expected)
    assert_ranked(found, expected)
    for n in (1, 3, len(found) // 2):
        assert listed(tied.potentials, automaton_of(tied), n) == found[:n]


@given(oracle.batches(), st.sampled_from([1, 2, 5, ALL]))
def test_a_batch_has_the_n_best_of_each_sequence(problems, n):
    if not problems:
        return
    automaton = automaton_of(problems[0])
    together = oracle.batch([problem.potentials for problem in problems])
    found = best_segmentations(together, automaton, min(n, 2000))
    paths = oracle.listed(found.segments)
    for i, problem in enumerate(problems):
        mine = slice(*found.offsets[i : i + 2].tolist())
        one = list(zip(found.scores[mine].tolist(), paths[mine]))
        assert one == listed(problem.potentials, automaton, min(n, 2000))
        if problem.carried.tolist() == problems[0].carried.tolist():
            assert len(one) == min(n, 2000, len(oracle.scored(problem.potentials, *problem[1:4])))


@given(oracle.problems(max_tokens=3), st.integers(0, 2**32 - 1))
def test_random_segmentations_have_their_probabilities(problem, seed):
    expected = oracle.scored(problem.potentials, *problem[1:4])
    if not expected:
        return
    log_z = np.logaddexp.reduce(list(expected.values()))
    random, drawn = np.random.default_rng(seed), dict.fromkeys(expected, 0)
    for segments in islice(draws(problem.potentials, automaton_of(problem), random), 400):
        drawn[oracle.listed(segments)[0]] += 1
    p = np.exp(np.array(list(expected.values())) - log_z)
    assert not chi_square_is_high(list(drawn.values()), p)


def test_a_seed_determines_what_is_drawn():
    potentials, automaton = long_text(50)
    one, same, other = (
        [oracle.listed(s) for s in islice(draws(potentials, automaton, random), 5)]
        for random in map(np.random.default_rng, (1, 1, 2))
    )
    assert one == same
    assert one != other


def long_text(tokens, limits=(0, 3, 40), seed=0):
    """Potentials of one text without forbidden segments, and an automaton of order 2."""
    random = np.random.default_rng(seed)
    patterns = [(y,) for y in range(3)] + [(0, 1), (1, 0), (2, 0, 1)]
    automaton = compile_automaton(patterns, limits, forbidden=[(0, 0)], carried=[(2, 0, 1)])
    row_token = np.sort(random.integers(0, tokens, tokens // 2))
    nothing = np.zeros(0, dtype=np.int64)

    def scores(*extents):
        return random.normal(size=extents)

    return Potentials(
        offsets=np.array([0, tokens]),
        const=scores(6),
        start=scores(tokens, 3),
        end=scores(tokens, 3),
        token=scores(tokens, 3),
        inner=scores(tokens, 3),
        row_offsets=np.searchsorted(row_token, np.arange(tokens + 1)).astype(np.int64),
        row_part=random.integers(0, 4, len(row_token)).astype(np.uint8),
        row_pattern=np.full(len(row_token), 5, dtype=np.int32),
        row_score=scores(len(row_token)),
        length_pattern=np.array([0], dtype=np.int32),
        length_score=scores(1, 4),
        span_start=nothing,
        span_end=nothing,
        span_pattern=nothing.astype(np.int32),
        span_score=np.zeros(0),
        allowed=np.full((tokens, 3), 7, dtype=np.uint8),
    ), automaton


@pytest.mark.slow
def test_long_texts_have_the_best_segmentation_first_and_the_same_sum():
    potentials, automaton = long_text(700)
    best = viterbi(potentials, automaton)
    (first, path), *others = listed(potentials, automaton, 300)
    assert path == oracle.listed(best.segments)[0]
    assert first == pytest.approx(best.scores[0], rel=1e-12)
    assert len({s for _, s in others}) == 299
    graph = Graph(automaton)
    lattice = Lattice(graph, True)
    lattice.load(Scores(Problem(potentials, automaton), graph), 0)
    assert lattice.total == pytest.approx(log_partition(potentials, automaton)[0], rel=1e-10)


def test_of_a_long_text_few_choices_are_looked_at():
    potentials, automaton = long_text(10_000)
    graph = Graph(automaton)
    lattice = Lattice(graph, False)
    lattice.load(Scores(Problem(potentials, automaton), graph), 0)
    _, first = lattice.next()
    looked_at = lattice.node_count
    assert looked_at < 3 * 10_000
    for _ in range(99):
        lattice.next()
    assert lattice.node_count < looked_at + 99 * 50
    assert len(first) > 1000


def test_lattices_are_used_again():
    potentials, automaton = long_text(60)
    short = potentials.only(0)
    other, _ = long_text(7, seed=1)
    graph = Graph(automaton)
    lattice = Lattice(graph, False)
    for each in (short, other, short):
        lattice.load(Scores(Problem(each, automaton), graph), 0)
        for _ in range(20):
            lattice.next()
        lattice.load(Scores(Problem(each, automaton), graph), 0)
        score, segments = lattice.next()
        expected, path = listed(each, automaton, 1)[0]
        assert score == expected
        assert_array_equal(segments, np.array(path))


def test_a_text_without_an_allowed_segmentation_has_none():
    potentials, automaton = long_text(5)
    barred = replace(potentials, allowed=np.zeros((5, 3), dtype=np.uint8))
    assert listed(barred, automaton) == []
    found = best_segmentations(barred, automaton, 3, buffers=Buffers(automaton))
    assert found.offsets.tolist() == [0, 0]


def test_a_score_that_is_not_finite_is_refused():
    potentials, automaton = long_text(5)
    potentials.token[2, 1] = np.nan
    with pytest.raises(ValueError, match="H006"):
        best_segmentations(potentials, automaton, 2)
    with pytest.raises(ValueError, match="H006"):
        ranked(potentials, automaton)
