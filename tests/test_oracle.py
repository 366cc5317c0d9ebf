"""The oracle itself, by hand: one may only compare with what has been checked."""

import math
from dataclasses import replace

import numpy as np
import oracle
import pytest
from hypothesis import given

from spacy_hocrf.types import CONTINUE, END, FIRST, INNER, LAST, START, TOKEN, Potentials, Segment

A, B = 0, 1
PATTERNS = ((A,), (B,), (A, B), (B, B, A))
FREE = (0, 0)


def potentials(tokens=2, rows=(), spans=(), **parts):
    """All zero and all allowed, but for the given parts; rows (token, part, pattern, score), spans
    (start, end, …).
    """
    parts = {**oracle.rows_of(tokens, *rows), **oracle.spans_of(*spans), **parts}
    return oracle.plain(np.zeros((tokens, 2)), **{"const": np.zeros(len(PATTERNS)), **parts})


def cuts(*segments):
    return tuple(Segment(*segment) for segment in segments)


@pytest.mark.parametrize(("tokens", "count"), [(0, 1), (1, 2), (2, 6), (3, 18), (4, 54)])
def test_two_labels_cut_t_tokens_in_two_times_three_to_the_t_minus_one_ways(tokens, count):
    """A cut or none at every inner boundary, and a label for every segment: Σ_k C(T-1, k) 2^(k+1)."""
    found = list(oracle.segmentations(potentials(tokens), FREE, set()))
    assert len(found) == len(set(found)) == count
    assert oracle.log_partition(potentials(tokens), PATTERNS, FREE, set()) == pytest.approx(
        math.log(count)
    )


@pytest.mark.parametrize(
    ("limits", "count"), [((1, 1), 8), ((1, 0), 13), ((2, 2), 16), ((3, 3), 18)]
)
def test_limits_bound_the_length(limits, count):
    assert len(list(oracle.segmentations(potentials(3), limits, set()))) == count


def test_forbidden_successions_are_those_of_neighbours():
    found = set(oracle.segmentations(potentials(2), FREE, {(A, B), (B, B)}))
    assert found == {
        cuts((0, 2, A)),
        cuts((0, 2, B)),
        cuts((0, 1, A), (1, 2, A)),
        cuts((0, 1, B), (1, 2, A)),
    }


@pytest.mark.parametrize(
    ("token", "bits", "expected"),
    [
        (0, CONTINUE | LAST, set()),
        (0, FIRST | LAST, {cuts((0, 2, A)), cuts((0, 1, A), (1, 2, A))}),
        (0, FIRST | CONTINUE, {cuts((0, 2, A))}),
        (1, FIRST | LAST, {cuts((0, 1, A), (1, 2, A))}),
        (1, CONTINUE | LAST, {cuts((0, 2, A))}),
        (1, FIRST | CONTINUE, set()),
    ],
)
def test_allowed_bits_say_what_a_token_may_be(token, bits, expected):
    allowed = np.full((2, 2), oracle.ANYTHING, dtype=np.uint8)
    allowed[:, B] = 0
    allowed[token, A] = bits
    assert set(oracle.segmentations(potentials(2, allowed=allowed), FREE, set())) == expected


def test_each_part_is_scored_at_its_tokens():
    powers = 10.0 ** np.arange(3)
    tables = {"start": 1.0, "end": 2.0, "token": 3.0, "inner": 4.0}
    parts = {name: np.outer(powers, [digit, 0.0]) for name, digit in tables.items()}
    one, two = cuts((0, 3, A)), cuts((0, 1, A), (1, 3, A))
    assert oracle.score(potentials(3, **parts), PATTERNS, one) == 1 + 200 + 333 + 440
    assert oracle.score(potentials(3, **parts), PATTERNS, two) == (1 + 2 + 3) + (
        10 + 200 + 330 + 400
    )


def test_rows_fire_with_their_pattern_at_their_part():
    rows = [
        (0, TOKEN, 2, 1e5),
        (1, START, 2, 1.0),
        (1, START, 2, 10.0),
        (1, INNER, 2, 1e6),
        (2, TOKEN, 2, 100.0),
    ]
    rows += [(2, INNER, 2, 1e3), (2, END, 2, 1e4), (2, START, 3, 1e7)]
    p = potentials(3, rows=rows)
    assert oracle.score(p, PATTERNS, cuts((0, 1, A), (1, 3, B))) == 11111 + 0
    assert oracle.score(p, PATTERNS, cuts((0, 1, A), (1, 2, B), (2, 3, B))) == 11.0
    assert oracle.score(p, PATTERNS, cuts((0, 1, B), (1, 2, B), (2, 3, A))) == 1e7
    assert oracle.score(p, PATTERNS, cuts((0, 1, B), (1, 3, A))) == 0.0
    fired = oracle.firing(p, PATTERNS, cuts((0, 1, A), (1, 3, B)))["row"]
    assert fired.tolist() == [0, 1, 1, 0, 1, 1, 1, 0]


def test_the_last_length_score_is_for_all_longer_segments():
    lengths = np.array([[1.0, 20.0, 300.0], [7000.0, 0.0, 0.0]])
    p = potentials(4, length_pattern=np.array([0, 2], dtype=np.int32), length_score=lengths)
    for length, expected in enumerate([1.0, 20.0, 300.0, 300.0], 1):
        assert oracle.score(p, PATTERNS, cuts((0, length, A))) == expected
    assert oracle.score(p, PATTERNS, cuts((0, 3, A), (3, 4, B))) == 7300.0


def test_spans_fire_at_exactly_their_segment_and_as_often_as_listed():
    p = potentials(2, spans=[(0, 1, 0, 1.0), (0, 2, 0, 10.0), (0, 2, 0, 10.0), (1, 2, 2, 500.0)])
    assert oracle.score(p, PATTERNS, cuts((0, 2, A))) == 20.0
    assert oracle.score(p, PATTERNS, cuts((0, 1, A), (1, 2, B))) == 501.0
    assert oracle.score(p, PATTERNS, cuts((0, 1, B), (1, 2, B))) == 0.0


def test_expectations_of_one_token_are_a_softmax():
    p = potentials(
        1, token=np.array([[math.log(3.0), 0.0]]), const=np.array([0.0, math.log(2.0), 9.0, 9.0])
    )
    expected = oracle.expectations(p, PATTERNS, FREE, set())
    assert expected.log_partition == pytest.approx([math.log(5.0)])
    assert expected.const == pytest.approx([0.6, 0.4, 0.0, 0.0])
    for part in (expected.start, expected.end, expected.token):
        assert part == pytest.approx(np.array([[0.6, 0.4]]))
    assert expected.inner == pytest.approx(np.zeros((1, 2)))


def test_expectations_of_two_tokens_by_hand():
    """AB has weight 4, the other five segmentations 1: total 9."""
    p = potentials(
        2, const=np.array([0.0, 0.0, math.log(4.0), 0.0]), spans=[(0, 2, 1, 0.0), (1, 2, 2, 0.0)]
    )
    expected = oracle.expectations(p, PATTERNS, FREE, set())
    assert expected.log_partition == pytest.approx([math.log(9.0)])
    assert expected.const * 9 == pytest.approx([1 + 2 + 4 + 1, 1 + 4 + 1 + 2, 4, 0])
    assert expected.inner * 9 == pytest.approx(np.array([[0, 0], [1, 1]]))
    assert expected.start * 9 == pytest.approx(np.array([[6, 3], [2, 5]]))
    assert expected.span * 9 == pytest.approx([1, 4])
    assert oracle.segment_marginal(p, PATTERNS, FREE, set(), 0, 2, B) == pytest.approx(1 / 9)
    assert oracle.segment_marginal(p, PATTERNS, FREE, set(), 1, 2, B) == pytest.approx(5 / 9)
    assert oracle.viterbi(p, PATTERNS, FREE, set()) == (math.log(4.0), {cuts((0, 1, A), (1, 2, B))})


def test_viterbi_returns_all_of_the_best():
    best, found = oracle.viterbi(potentials(1), PATTERNS, FREE, set())
    assert (best, found) == (0.0, {cuts((0, 1, A)), cuts((0, 1, B))})


def test_large_scores_neither_overflow_nor_vanish():
    p = potentials(1, token=np.array([[1e4, 1e4 - 1.0]]))
    assert oracle.log_partition(p, PATTERNS, FREE, set()) == pytest.approx(
        1e4 + math.log1p(math.exp(-1.0)), rel=1e-14
    )
    p = potentials(1, token=np.array([[-1e4, -1e4]]))
    assert oracle.log_partition(p, PATTERNS, FREE, set()) == pytest.approx(
        -1e4 + math.log(2.0), rel=1e-14
    )


def test_nothing_allowed_has_no_mass():
    p = potentials(2, allowed=np.zeros((2, 2), dtype=np.uint8), spans=[(0, 2, 1, 3.0)])
    assert oracle.log_partition(p, PATTERNS, FREE, set()) == -math.inf
    assert oracle.viterbi(p, PATTERNS, FREE, set()) == (-math.inf, set())
    expected = oracle.expectations(p, PATTERNS, FREE, set())
    assert expected.log_partition == [-math.inf]
    assert all((getattr(expected, part) == 0.0).all() for part in oracle.PARTS)
    assert oracle.segment_marginal(p, PATTERNS, FREE, set(), 0, 2, B) == 0.0


def test_no_tokens_have_the_empty_segmentation():
    assert oracle.log_partition(potentials(0), PATTERNS, FREE, set()) == 0.0
    assert oracle.viterbi(potentials(0), PATTERNS, FREE, set()) == (0.0, {()})


@pytest.mark.slow
@given(oracle.problems(max_tokens=3))
def test_expectations_are_the_derivatives_of_log_partition(problem):
    p, model = problem.potentials, problem[1:4]
    expected = oracle.expectations(p, *model)
    names = {"row": "row_score", "length": "length_score", "span": "span_score"}
    for part in oracle.PARTS:
        name = names.get(part, part)
        for place in list(np.ndindex(getattr(p, name).shape))[:4]:
            lower, upper = (
                oracle.log_partition(_nudged(p, name, place, step), *model)
                for step in (-1e-4, 1e-4)
            )
            slope = (upper - lower) / 2e-4 if upper > -math.inf else 0.0
            # the difference quotient is off by step² · f''' and by the rounding of log Z over the
            # step
            assert getattr(expected, part)[place] == pytest.approx(slope, abs=1e-6)


def _nudged(potentials, name, place, step):
    changed = getattr(potentials, name).copy()
    changed[place] += step
    return replace(potentials, **{name: changed})


@given(oracle.batches())
def test_problems_keep_the_promises_of_types(problems):
    for p, patterns, limits, forbidden, carried in problems:
        check_problem(p, patterns, limits, forbidden, carried)
    if problems:
        check_batch([problem.potentials for problem in problems])


DTYPES = {
    "offsets": np.int64,
    "row_offsets": np.int64,
    "row_part": np.uint8,
    "row_pattern": np.int32,
    "length_pattern": np.int32,
    "span_start": np.int64,
    "span_end": np.int64,
    "span_pattern": np.int32,
    "allowed": np.uint8,
}  # of the others: float64


def check_problem(p, patterns, limits, forbidden, carried):
    tokens, labels = p.start.shape
    assert len(limits) == labels and len(carried) == len(p.const) == len(patterns)
    assert patterns[:labels] == tuple((y,) for y in range(labels))
    assert len(set(patterns)) == len(patterns) and all(len(z) > 1 for z in patterns[labels:])
    assert all(0 <= a < labels and 0 <= b < labels for a, b in forbidden)
    for name in Potentials.__annotations__:
        assert getattr(p, name).dtype == DTYPES.get(name, np.float64), name
        assert getattr(p, name).flags.c_contiguous, name
    assert list(p.offsets) == [0, tokens]
    assert (
        p.row_offsets[0] == 0
        and p.row_offsets[-1] == len(p.row_score)
        and len(p.row_offsets) == tokens + 1
    )
    assert (np.diff(p.row_offsets) >= 0).all() and (p.row_pattern >= labels).all()
    places = list(zip(p.span_start, p.span_end, strict=True))
    assert places == sorted(places) and all(0 <= start < end <= tokens for start, end in places)
    late = {*p.row_pattern[p.row_part != START], *p.length_pattern, *p.span_pattern}
    assert all(carried[z] for z in late if len(patterns[z]) > 1 and limits[patterns[z][-1]] != 1)


def check_batch(sequences):
    joined = oracle.batch(sequences)
    for i, p in enumerate(sequences):
        begin, end = joined.offsets[i : i + 2]
        assert (joined.token[begin:end] == p.token).all() and (
            joined.allowed[begin:end] == p.allowed
        ).all()
        rows = slice(joined.row_offsets[begin], joined.row_offsets[end])
        assert (
            joined.row_offsets[begin : end + 1] - joined.row_offsets[begin] == p.row_offsets
        ).all()
        assert (joined.row_score[rows] == p.row_score).all() and (
            joined.row_pattern[rows] == p.row_pattern
        ).all()
    assert (np.diff(joined.span_start) >= 0).all() and (joined.span_end > joined.span_start).all()
    assert len(joined.row_offsets) == joined.offsets[-1] + 1 == len(joined.token) + 1
    for name in Potentials.__annotations__:
        assert getattr(joined, name).dtype == DTYPES.get(name, np.float64), name
