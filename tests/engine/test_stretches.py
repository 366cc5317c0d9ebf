"""Long sequences, worked on window by window and cut into stretches, against whole ones."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import product

import numpy as np
import oracle
import pytest
from builds import BUILDS, automaton_of, running
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from spacy_hocrf.engine import forward_backward, probable, stretches
from spacy_hocrf.engine import viterbi as engine_viterbi
from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.kernels.protocol import Starts
from spacy_hocrf.engine.marginals import segment_marginals
from spacy_hocrf.engine.probable import probable_spans
from spacy_hocrf.engine.selection import select_sequences
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.types import START, Segment

NOTHING = np.zeros(0)


def no_rows(tokens):
    """Potentials without observations on longer patterns, and without lengths."""
    return {
        **oracle.rows_of(tokens),
        "length_pattern": NOTHING.astype(np.int32),
        "length_score": np.zeros((0, 1)),
    }


WIDE = [build for build in BUILDS if build != "single"]


def limited(problem):
    """The same without spans, with limits for all labels, one of which is more than a token."""
    limits = [limit or 3 for limit in problem.limits]
    limits[0] = max(limits[0], 2)
    potentials = replace(problem.potentials, **oracle.spans_of())
    return problem._replace(
        potentials=potentials, limits=tuple(limits), carried=np.ones(len(problem.patterns))
    )


@contextmanager
def without_tails(build):
    """A build, with the lengths of a label one by one."""
    with running(build), pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward_backward, "MIN_TAIL", 16)
        yield patch


@pytest.fixture
def agreements(monkeypatch):
    """Gets, for each time that stretches are compared, which sequences' agree."""
    seen, compare = [], stretches.Stretches.compare

    def noted(self, *arguments, **settings):
        found = compare(self, *arguments, **settings)
        seen.append(found.agrees)
        return found

    monkeypatch.setattr(stretches.Stretches, "compare", noted)
    return seen


@given(oracle.batches(min_size=2), st.integers(1, 2))
def test_windows_change_no_bit(problems, rows):
    problems = [limited(problem) for problem in problems]
    automaton, rules = automaton_of(problems[0]), _all_labels(len(problems[0].limits))
    potentials = oracle.batch([problem.potentials for problem in problems])
    for build, space in product(BUILDS, ("scaled", "log")):
        with without_tails(build) as patch:
            found, starts, covers = [], [], []
            for size in (rows, 1_000):
                patch.setattr(probable, "ROWS", size)
                starts.append(np.zeros(potentials.token.shape))
                covers.append(np.zeros(potentials.token.shape))
                labels = np.arange(potentials.token.shape[1], dtype=np.int32)
                asked = Starts(labels, starts[-1], covers[-1])
                settings = {"space": space, "starts": asked}
                found.append(probable_spans(potentials, automaton, rules, 1e-4, **settings))
            _assert_same(*found)
            kept = ~np.isnan(found[0].log_partition[_sequence(potentials)])
            assert_array_equal(starts[0][kept], starts[1][kept])
            assert (covers[0][kept] <= covers[1][kept] + 1e-12).all()


@given(oracle.problems().map(limited))
def test_stretches_that_overlap_altogether_match_enumeration(problem):
    potentials = problem.potentials
    automaton, rules = automaton_of(problem), _all_labels(len(problem.limits))
    expected = oracle.expectations(potentials, problem.patterns, problem.limits, problem.forbidden)
    for build in WIDE:
        with without_tails(build) as patch:
            patch.setattr(stretches, "LONG", 2)
            patch.setattr(stretches, "SIDE_BY_SIDE", 2)
            found = probable_spans(potentials, automaton, rules, 1e-9)
        assert_allclose(found.log_partition, expected.log_partition, rtol=1e-10)
        covered = np.zeros(expected.token.shape)
        for start, end, label, p in zip(*found.spans[1:], found.probability):
            covered[start:end, label] += p
        assert_allclose(covered, expected.token, atol=1e-6)


@pytest.mark.parametrize("build", WIDE)
@pytest.mark.parametrize("seed", range(3))
def test_stretches_match_the_whole_sequence(build, seed, agreements, monkeypatch):
    automaton, potentials = _long([3_000, 0, 700, 40, 2_000], seed)
    starts = [np.zeros(potentials.token.shape) for _ in range(2)]
    labels = np.arange(3, dtype=np.int32)
    with without_tails(build):
        whole = probable_spans(
            potentials,
            automaton,
            _all_labels(3),
            0.01,
            starts=Starts(labels, starts[0], 0 * starts[0]),
        )
        assert not agreements
        monkeypatch.setattr(stretches, "LONG", 500)
        cut = probable_spans(
            potentials,
            automaton,
            _all_labels(3),
            0.01,
            starts=Starts(labels, starts[1], 0 * starts[1]),
        )
    assert_allclose(*starts, rtol=1e-8, atol=1e-12)
    assert [good.tolist() for good in agreements] == [[True] * 5]
    for mine, other in zip(cut.spans, whole.spans):
        assert_array_equal(mine, other)
    assert_allclose(cut.probability, whole.probability, rtol=1e-9)
    assert_allclose(cut.log_partition, whole.log_partition, rtol=1e-12)


@pytest.mark.parametrize("build", WIDE)
def test_a_long_sequence_has_the_same_spans_in_any_batch(build, monkeypatch):
    automaton, potentials = _long([3_000, 600, 40], 0)
    first = select_sequences(potentials, np.array([0]))
    monkeypatch.setattr(stretches, "LONG", 500)
    with without_tails(build):
        together = probable_spans(potentials, automaton, _all_labels(3), 0.01)
        alone = probable_spans(first, automaton, _all_labels(3), 0.01)
    n = alone.spans.offsets[-1]
    for mine, other in zip(alone.spans[1:], together.spans[1:]):
        assert_array_equal(mine, other[:n])
    assert_array_equal(alone.probability, together.probability[:n])


@pytest.mark.parametrize("build", WIDE)
def test_what_a_sequence_never_forgets_is_not_lost_at_a_cut(build, agreements, monkeypatch):
    """The first token decides between two labels that never follow one another."""
    automaton = compile_automaton([(0,), (1,), (2,)], [2, 2, 1], forbidden=[(0, 1), (1, 0), (2, 2)])
    _, potentials = _long([2_000], 0)
    token = np.zeros((2_000, 3))
    token[0, 0] = 2.0
    rows = no_rows(2_000)
    potentials = replace(potentials, token=token, const=np.zeros(3), start=None, end=None, **rows)
    potentials.allowed[:, 2] = 0
    with without_tails(build):
        whole = probable_spans(potentials, automaton, _all_labels(3), 0.01)
        monkeypatch.setattr(stretches, "LONG", 500)
        cut = probable_spans(potentials, automaton, _all_labels(3), 0.01)
    assert [good.tolist() for good in agreements] == [[False]]
    _assert_same(cut, whole)


@pytest.mark.parametrize("build", BUILDS)
def test_spans_are_found_once_where_a_value_is_lost_in_the_first_window(build):
    """Only the backward recurrence loses one, at token 1, when the windows behind it are done."""
    _, potentials = _long([12], 0)
    automaton = compile_automaton([(0,), (1,), (0, 1), (1, 1)], [1, 2], carried=[(0, 1), (1, 1)])
    start = np.zeros((12, 2))
    start[0, 1] = -300.0
    rows = {
        **no_rows(12),
        **oracle.rows_of(12, (1, START, 2, 690.0), (1, START, 3, 690.0)),
        "allowed": np.full((12, 2), 5, dtype=np.uint8),
    }
    rows["allowed"][1, 0] = 0
    potentials = replace(
        potentials, const=np.zeros(4), token=np.zeros((12, 2)), start=start, end=None, **rows
    )
    with without_tails(build) as patch:
        patch.setattr(probable, "ROWS", 2)
        assert np.isnan(
            probable_spans(potentials, automaton, _all_labels(2), 0.01, space="scaled")[2]
        )
        found = probable_spans(potentials, automaton, _all_labels(2), 0.01)
        expected = probable_spans(potentials, automaton, _all_labels(2), 0.01, space="log")
    _assert_same(found, expected)


@pytest.mark.parametrize("build", WIDE)
@pytest.mark.parametrize("seed", range(3))
def test_given_segments_of_stretches_have_the_probabilities_of_the_whole(
    build, seed, agreements, monkeypatch
):
    automaton, potentials = _long([3_000, 0, 700, 40, 2_000], seed)
    rng = np.random.default_rng(seed)
    asked = []
    for length in np.diff(potentials.offsets).tolist():
        starts = rng.integers(0, max(1, length - 5), length // 3).tolist()
        asked.append(
            [Segment(u, u + int(rng.integers(1, 6)), int(rng.integers(3))) for u in starts]
        )
    with without_tails(build):
        segments = oracle.segments_of(asked)
        whole = segment_marginals(potentials, automaton, segments).probability
        assert not agreements
        monkeypatch.setattr(stretches, "LONG", 500)
        cut = segment_marginals(potentials, automaton, segments).probability
    assert [good.tolist() for good in agreements] == [[True] * 5]
    assert_allclose(cut, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("build", WIDE)
@pytest.mark.parametrize("seed", range(3))
def test_best_segmentations_of_stretches_join(build, seed, agreements, monkeypatch):
    automaton, potentials = _long([3_000, 0, 700, 40, 2_000], seed)
    with running(build):
        whole = viterbi(potentials, automaton)
        assert not agreements
        monkeypatch.setattr(stretches, "LONG", 500)
        monkeypatch.setattr(engine_viterbi, "MAX_STRETCH", 200)
        cut = viterbi(potentials, automaton)
    assert [good.tolist() for good in agreements] == [[True] * 5]
    for mine, other in zip(cut.segments, whole.segments):
        assert_array_equal(mine, other)
    assert_allclose(cut.scores, whole.scores, rtol=1e-12)


@given(oracle.batches(min_size=1).map(lambda problems: [limited(p) for p in problems]))
def test_best_segmentations_of_stretches_that_overlap_altogether_are_the_best(problems):
    automaton = automaton_of(problems[0])
    potentials = oracle.batch([problem.potentials for problem in problems])
    model = problems[0][1:4]
    bests = [oracle.viterbi(problem.potentials, *model) for problem in problems]
    for build in WIDE:
        with without_tails(build) as patch:
            patch.setattr(stretches, "LONG", 2)
            patch.setattr(stretches, "SIDE_BY_SIDE", 2)
            found = viterbi(potentials, automaton)
        rows = zip(bests, oracle.listed(found.segments), found.scores)
        for (best, choices), segments, score in rows:
            assert_allclose(score, best, rtol=1e-10, atol=1e-10)
            assert segments in (choices or {()})


@pytest.mark.parametrize("build", WIDE)
def test_best_paths_that_never_meet_are_those_of_the_whole_sequence(build, monkeypatch):
    """The last token decides between two labels that never follow one another."""
    automaton = compile_automaton([(0,), (1,)], [1, 1], forbidden=[(0, 1), (1, 0)])
    scores = np.zeros((2_000, 2))
    scores[0, 0], scores[-1, 1] = 1.0, 2.0
    _, potentials = _long([2_000], 0)
    rows = no_rows(2_000) | {"allowed": np.full((2_000, 2), 7, dtype=np.uint8)}
    potentials = replace(potentials, token=scores, const=np.zeros(2), start=None, end=None, **rows)
    monkeypatch.setattr(stretches, "LONG", 500)
    with running(build):
        best = viterbi(potentials, automaton)
    assert best.segments.label.tolist() == [1] * 2_000 and best.scores.tolist() == [2.0]


def _all_labels(labels):
    return np.array([[-1, -1, -1, y, -1] for y in range(labels)], dtype=np.int32)


def _sequence(potentials):
    """Number of the sequence of each token."""
    lengths = np.diff(potentials.offsets)
    return np.repeat(np.arange(len(lengths)), lengths)


def _assert_same(mine, other):
    for a, b in zip([*mine.spans, *mine[1:]], [*other.spans, *other[1:]]):
        assert_array_equal(a, b)


def _long(lengths, seed):
    """A semi-CRF of order 2, three labels of up to 4 tokens, and sequences of these lengths."""
    rng = np.random.default_rng(seed)
    patterns = [z for n in (1, 2, 3) for z in product(range(3), repeat=n)]
    tokens = sum(lengths)
    potentials = oracle.Potentials(
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        const=rng.normal(size=len(patterns)),
        start=rng.normal(size=(tokens, 3)),
        end=rng.normal(size=(tokens, 3)),
        token=rng.normal(size=(tokens, 3)),
        inner=None,
        row_offsets=2 * np.arange(tokens + 1),
        row_part=rng.integers(0, 4, 2 * tokens).astype(np.uint8),
        row_pattern=rng.integers(3, len(patterns), 2 * tokens).astype(np.int32),
        row_score=rng.normal(size=2 * tokens),
        length_pattern=np.arange(3, dtype=np.int32),
        length_score=rng.normal(size=(3, 4)),
        **oracle.spans_of(),
        allowed=np.full((tokens, 3), 7, dtype=np.uint8),
    )
    return compile_automaton(patterns, [4, 2, 3], carried=patterns), potentials
