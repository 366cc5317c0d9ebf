"""Forward, backward, log Z, expectations and marginals against enumeration and the papers' worked
example.
"""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import oracle
import pytest
import worked_example
from builds import BUILDS, automaton_of, running
from numpy.testing import assert_allclose, assert_array_equal

from spacy_hocrf.engine import forward_backward
from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.forward_backward import expectations, log_partition, log_state_scores
from spacy_hocrf.engine.kernels.protocol import engine_kernels
from spacy_hocrf.engine.marginals import Window, segment_marginals, window_marginals
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.types import END, START


@pytest.fixture(scope="module", params=BUILDS, autouse=True)
def instructions(request):
    """Everything here runs on every build of the kernels that this machine can run, in groups
    however small."""
    with running(request.param):
        yield request.param


@pytest.mark.parametrize("seed", range(oracle.so_many(100)))
def test_a_batch_with_rows_and_spans_everywhere_matches_enumeration(seed):
    """All patterns up to order 2, so that several arcs enter each open state, and sequences that
    share a workspace.
    """
    potentials, automaton, expected, bests = _dense_batch(seed)
    counts = expectations(potentials, automaton)
    totals = np.concatenate([one.log_partition for one in expected])
    assert_allclose(counts.log_partition, totals, rtol=1e-10, atol=1e-10)
    oracle.assert_counts(counts, expected, rtol=1e-9, atol=1e-9)
    best = viterbi(potentials, automaton)
    rows = zip(bests, oracle.listed(best.segments), best.scores)
    for (best, choices), segments, score in rows:
        assert_allclose(score, best, rtol=1e-10, atol=1e-10)
        assert segments in (choices or {()})


@pytest.mark.parametrize("seed", range(oracle.so_many(20)))
def test_some_sequences_of_a_batch_have_the_log_partition_that_each_has_in_it(seed):
    potentials, automaton, _, _ = _dense_batch(seed)
    every = log_partition(potentials, automaton)
    for low in range(len(every)):
        some = np.arange(low, len(every), 2)
        log_z = log_partition(potentials, automaton, among=some)
        assert_allclose(log_z[some], every[some], rtol=1e-12)
        assert not np.delete(log_z, some).any()


@cache
def _dense_batch(seed):
    """Potentials of three sequences, their automaton, and what enumeration says: the same for every
    build.
    """
    rng = np.random.default_rng(seed)
    patterns = tuple(z for n in (1, 2, 3) for z in product(range(2), repeat=n))
    limits = tuple(int(limit) for limit in rng.choice([0, 0, 1, 2], 2))
    forbidden = frozenset({(1, 1)}) if seed % 2 else frozenset()
    const, length_score = rng.normal(size=len(patterns)), rng.normal(size=(3, 2))
    sequences = [
        _dense_sequence(rng, patterns, const, length_score, tokens=int(rng.integers(1, 7)))
        for _ in range(3)
    ]
    automaton = compile_automaton(patterns, limits, forbidden=forbidden, carried=patterns)
    expected = [oracle.expectations(one, patterns, limits, forbidden) for one in sequences]
    bests = [oracle.viterbi(one, patterns, limits, forbidden) for one in sequences]
    return oracle.batch(sequences), automaton, expected, bests


@pytest.mark.parametrize("seed", range(oracle.so_many(50)))
def test_sequences_in_which_no_segment_has_a_score_match_enumeration(seed):
    """Rows are at all parts."""
    potentials, automaton, expected = _plain_batch(seed)
    counts = expectations(potentials, automaton)
    totals = np.concatenate([one.log_partition for one in expected])
    assert_allclose(counts.log_partition, totals, rtol=1e-12, atol=1e-12)
    oracle.assert_counts(counts, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("space", ["auto", "log"])
@pytest.mark.parametrize("seed", range(oracle.so_many(20)))
def test_counts_are_multiplied_by_the_weights_of_sequences(seed, space):
    for potentials, automaton, expected, *_ in (_dense_batch(seed), _plain_batch(seed)):
        weights = np.random.default_rng(seed).choice([0.0, 0.3, 1.0, 2.5], len(expected))
        counts = expectations(potentials, automaton, space=space, weights=weights)
        alone = expectations(potentials, automaton, space=space)
        assert_array_equal(counts.log_partition, alone.log_partition)
        oracle.assert_counts(counts, expected, rtol=1e-9, atol=1e-9, weights=weights.tolist())


@pytest.mark.parametrize("tokens", [17, 40, 127, 128, 129, 150])
@pytest.mark.parametrize("scale", [1.0, 50.0])
@pytest.mark.parametrize("constrained", [False, True])
def test_short_and_long_sequences_without_scores_of_segments_equal_log_space(
    tokens, scale, constrained
):
    rng = np.random.default_rng(tokens)
    problem = _random_problem(rng, tokens=tokens, scale=scale, constrained=constrained)
    potentials, automaton = _without_segments(problem.potentials), automaton_of(problem)
    counts = expectations(potentials, automaton)
    expected = expectations(potentials, automaton, space="log")
    assert_allclose(counts.log_partition, expected.log_partition, rtol=1e-12)
    oracle.assert_counts(counts, [expected])


@pytest.mark.parametrize("least", [-100.0, -200.0, -450.0])
@pytest.mark.parametrize("most", [100.0, 690.0, 800.0])
def test_a_factor_that_lifts_a_small_mass_of_a_segment_is_right(least, most):
    """The mass that enters the arc and its weight are small, and the row's factor is large, or beyond a
    double; what has a large mass leads nowhere.
    """
    patterns, limits, forbidden = ((0,), (1,), (0, 1)), (2, 1), frozenset({(1, 1)})
    token = np.array([[least, 0.0], [0.0, 0.0]])
    potentials = replace(
        oracle.plain(token, n_patterns=3),
        const=np.array([0.0, 0.0, 0.65 * least]),
        **oracle.rows_of(2, (1, START, 2, most)),
    )
    potentials.allowed[1, 0] = 1
    automaton = compile_automaton(patterns, limits, forbidden=forbidden)
    for copies in (1, 3):  # a single sequence has kernels of its own
        counts = expectations(oracle.batch([potentials] * copies), automaton)
        expected = np.full(copies, 1.65 * least + most)
        assert_allclose(counts.log_partition, expected, rtol=1e-12)
        assert_allclose(counts.token, [[1.0, 0.0], [0.0, 1.0]] * copies, rtol=1e-10, atol=1e-10)
        assert_allclose(counts.row, np.ones(copies), rtol=1e-10)


@cache
def _plain_batch(seed):
    """As `_dense_batch`, without spans and scores of lengths."""
    rng = np.random.default_rng(seed)
    patterns = tuple(z for n in (1, 2, 3) for z in product(range(2), repeat=n))
    limits = tuple(int(limit) for limit in rng.choice([0, 1, 2, 3], 2))
    forbidden = frozenset({(1, 1)}) if seed % 2 else frozenset()
    carried = patterns if seed % 3 else patterns[2:6]
    const, length_score = rng.normal(size=len(patterns)), rng.normal(size=(3, 2))
    sequences = [
        _without_segments(_dense_sequence(rng, patterns, const, length_score, tokens=tokens))
        for tokens in rng.integers(1, 7, 5).tolist()
    ]
    if not seed % 3:  # what is not carried has scores at the start of its segments only
        sequences = [replace(one, row_part=np.zeros_like(one.row_part)) for one in sequences]
    automaton = compile_automaton(patterns, limits, forbidden=forbidden, carried=carried)
    expected = [oracle.expectations(one, patterns, limits, forbidden) for one in sequences]
    return oracle.batch(sequences), automaton, expected


def _without_segments(potentials):
    """The same without spans and scores of lengths."""
    names = ("span_start", "span_end", "span_pattern", "span_score", "length_pattern")
    nothing = {name: getattr(potentials, name)[:0] for name in names}
    return replace(potentials, length_score=np.zeros((0, 1)), **nothing)


def test_gradient_of_log_partition_matches_central_differences():
    rng = np.random.default_rng(0)
    problem = _random_problem(rng, tokens=6, scale=1.0)
    automaton = automaton_of(problem)
    expected = expectations(problem.potentials, automaton)
    names = {"row": "row_score", "length": "length_score", "span": "span_score"}
    for name in oracle.PARTS:
        field = names.get(name, name)
        values = getattr(problem.potentials, field)
        for where in np.ndindex(values.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = values.copy()
                moved[where] += step
                ends.append(
                    log_partition(replace(problem.potentials, **{field: moved}), automaton)[0]
                )
            slope = (ends[0] - ends[1]) / 2e-5
            count = getattr(expected, name)[where]
            assert_allclose(count, slope, rtol=1e-6, atol=1e-8, err_msg=f"{name}{where}")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [1.0, 50.0])
@pytest.mark.parametrize("constrained", [False, True])
def test_scaled_equals_log_space_on_long_sequences(seed, scale, constrained):
    rng = np.random.default_rng(seed)
    problem = _random_problem(rng, tokens=200, scale=scale, constrained=constrained)
    automaton = automaton_of(problem)
    counts = expectations(problem.potentials, automaton)
    expected = expectations(problem.potentials, automaton, space="log")
    assert_allclose(counts.log_partition, expected.log_partition, rtol=1e-10)
    oracle.assert_counts(counts, [expected])


def test_a_live_state_lost_beside_a_huge_factor_is_detected():
    """A row lifts a dead end by e^690; what leads on, at e^-100, is no small number until it is
    divided by that.
    """
    potentials = oracle.plain(np.array([[0.0, 0.0], [-100.0, 0.0]]), n_patterns=3)
    rows = oracle.rows_of(2, (1, START, 2, 690.0))
    potentials = replace(potentials, start=potentials.token, token=potentials.inner, **rows)
    potentials.allowed[1, 1] = 3
    automaton = compile_automaton([(0,), (1,), (0, 1)], [1, 1])
    assert_allclose(log_partition(potentials, automaton), [-100.0 + np.log(2.0)], rtol=1e-12)
    assert_allclose(expectations(potentials, automaton).token, [[0.5, 0.5], [1.0, 0.0]], rtol=1e-12)


def test_a_live_state_far_below_a_steep_length_is_kept():
    """The lengths of one label add e^397 a token, those of the other take e^-41: both states are
    live.
    """
    potentials = replace(
        oracle.plain(np.zeros((2, 2)), n_patterns=4),
        length_pattern=np.array([0, 1], dtype=np.int32),
        length_score=np.array([[-41.0], [397.0]]),
    )
    automaton = compile_automaton([(0,), (1,), (0, 0), (0, 0, 0)], [0, 0])
    for found, expected in zip(
        log_state_scores(potentials, automaton),
        log_state_scores(potentials, automaton, space="log"),
    ):
        assert_allclose(found, expected, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("limit", [2, 0])
def test_an_open_segment_lost_beside_another_labels_is_detected(limit):
    """Label 2 leads to label 1 alone, e^900 below label 0, to which label 3 leads; going forward
    they are only e^300 apart.
    """
    end = np.zeros((4, 4))
    end[0, 3], end[2, 1] = -600.0, -900.0
    potentials = replace(oracle.plain(np.zeros((4, 4))), end=end)
    potentials.allowed[:] = [[0, 0, 7, 7], [1, 1, 0, 0], [6, 6, 0, 0], [0, 0, 7, 0]]
    automaton = compile_automaton(
        [(0,), (1,), (2,), (3,)], [limit, limit, 1, 1], forbidden=[(2, 0), (3, 1)]
    )
    alpha, beta = log_state_scores(potentials, automaton)
    assert_allclose(
        beta[1, [automaton.states.index((y,)) for y in (2, 3)]], [-900.0, 0.0], rtol=1e-12
    )
    assert_allclose(
        alpha[3, [automaton.states.index((y,)) for y in (0, 1)]], [-600.0, -900.0], rtol=1e-12
    )
    # what the abandoned pass has counted is not counted twice
    asked = oracle.segments_of([[(3, 4, 2), (0, 1, 3)]])
    marginals = segment_marginals(potentials, automaton, asked).probability
    assert_allclose(marginals, [1.0, 1.0], rtol=1e-12)
    watched = replace(potentials, **oracle.spans_of((3, 4, 2, 0.0)))
    assert_allclose(expectations(watched, automaton).span, [1.0], rtol=1e-12)


def test_a_beta_lost_beside_a_huge_one_is_detected():
    rows = oracle.rows_of(2, (1, START, 2, 690.0), (1, START, 3, -100.0))
    potentials = replace(oracle.plain(np.zeros((2, 2)), n_patterns=4), **rows)
    potentials.allowed[1, 0] = 0
    automaton = compile_automaton([(0,), (1,), (0, 1), (1, 1)], [1, 1])
    _, beta = log_state_scores(potentials, automaton)
    assert_allclose(
        beta[1, [automaton.states.index((y,)) for y in range(2)]], [690.0, -100.0], rtol=1e-12
    )


def test_a_long_segment_lost_beside_one_that_began_earlier_is_detected():
    """Both are open in label 0 for long, e^900 apart; a pattern that only the later one completes
    makes up for it.
    """
    potentials = replace(
        oracle.plain(np.zeros((5, 3)), n_patterns=4),
        end=np.array([[0.0, -900.0, 0.0], *np.zeros((4, 3))]),
        **oracle.rows_of(5, (4, START, 3, 900.0)),
        allowed=np.array([[1, 7, 0], [3, 0, 0], [2, 0, 0], [6, 0, 0], [0, 0, 7]], dtype=np.uint8),
    )
    automaton = compile_automaton([(0,), (1,), (2,), (1, 0, 2)], [0, 1, 1], forbidden=[(0, 0)])
    assert_allclose(log_partition(potentials, automaton), [np.log(2.0)], rtol=1e-12)
    assert_allclose(expectations(potentials, automaton).token[0], [0.5, 0.5, 0.0], rtol=1e-12)


def test_a_long_segment_lost_beside_others_that_end_there_is_detected():
    """Label 1 ends there too, and is a dead end."""
    end = np.zeros((4, 3))
    end[2, 0] = -900.0
    potentials = replace(
        oracle.plain(np.zeros((4, 3))),
        end=end,
        allowed=np.array([[3, 7, 0], [2, 7, 0], [6, 7, 0], [0, 0, 7]], dtype=np.uint8),
    )
    automaton = compile_automaton([(0,), (1,), (2,)], [0, 1, 1], forbidden=[(1, 2)])
    assert_allclose(log_partition(potentials, automaton), [-900.0], rtol=1e-12)
    assert_allclose(
        expectations(potentials, automaton).inner[:, 0], [0.0, 1.0, 1.0, 0.0], rtol=1e-12
    )


@pytest.mark.parametrize("part", ["start", "token", "end"])
@pytest.mark.parametrize("limit", [1, 2, 0])
def test_a_live_state_lost_in_one_step_is_detected(part, limit):
    """The label that wins at the first token is a dead end; the other's e^-900 is all that there
    is.
    """
    potentials = replace(
        oracle.plain(np.zeros((2, 2))), **{part: np.array([[0.0, -900.0], [0.0, 0.0]])}
    )
    potentials.allowed[1, 0] = 0
    automaton = compile_automaton([(0,), (1,)], [limit, limit], forbidden=[(0, 1)])
    potentials.allowed[1, 1] &= 5  # no segment of two tokens
    assert_allclose(log_partition(potentials, automaton), [-900.0], rtol=1e-12)
    assert_allclose(expectations(potentials, automaton).token, [[0.0, 1.0], [0.0, 1.0]], rtol=1e-12)


def test_a_lost_live_state_is_detected():
    """One forbidden succession and scores of ±50: no scale is suspicious, yet the scaled sum would
    be wrong by hundreds.
    """
    tokens = 18
    scores = np.zeros((tokens, 2))
    scores[:, 0], scores[:, 1] = 50.0, -50.0
    scores[-1] = -50.0, 50.0
    potentials = oracle.plain(scores)
    automaton = compile_automaton([(0,), (1,)], [1, 1], forbidden=[(0, 1)])
    assert np.isnan(log_partition(potentials, automaton, space="scaled")[0])
    expected = oracle.log_partition(potentials, ((0,), (1,)), (1, 1), {(0, 1)})
    assert_allclose(log_partition(potentials, automaton), [expected], rtol=1e-12)


def test_a_live_state_lost_beside_the_final_scores_is_detected():
    """A window's right end brings log betas hundreds apart: beta alone would forget the state that
    has the mass.
    """
    patterns = ((0,), (1,), (1, 0), (1, 1))
    rows = oracle.rows_of(2, (1, START, 2, -900.0), (1, START, 3, -900.0))
    scores = np.array([[0.0, 900.0], [0.0, 0.0]])
    potentials = replace(oracle.plain(scores, n_patterns=4), **rows)
    automaton = compile_automaton(patterns, [1, 1])
    [found] = window_marginals(
        potentials, automaton, [Window(0, 0, np.array([[0, 7]], dtype=np.uint8))]
    )
    assert_allclose(found, 0.5, rtol=1e-10)


def test_a_live_state_lost_among_the_initial_scores_is_detected():
    """A window's left end brings log alphas hundreds apart, and only a later score makes up for
    that.
    """
    rows = oracle.rows_of(2, (1, START, 2, 900.0), (1, START, 3, 900.0))
    potentials = replace(oracle.plain(np.array([[0.0, -900.0], [0.0, 0.0]]), n_patterns=4), **rows)
    automaton = compile_automaton(((0,), (1,), (1, 0), (1, 1)), [1, 1])
    [found] = window_marginals(
        potentials, automaton, [Window(0, 1, np.array([[0, 7]], dtype=np.uint8))]
    )
    assert_allclose(found, 0.5, rtol=1e-10)


@pytest.mark.parametrize("short, long", [(-800.0, 600.0), (600.0, -800.0)])
def test_row_scores_that_cancel_lose_nothing(short, long):
    """Two arcs enter one open state; the factors of the heavier one cannot be held by doubles one
    by one, their product can.
    """
    patterns = ((0,), (1,), (0, 1), (1, 1), (0, 0, 1))
    scores = enumerate((short, -205.0, long), 2)
    rows = oracle.rows_of(3, *((2, START, pattern, score) for pattern, score in scores))
    potentials = replace(oracle.plain(np.zeros((3, 2)), n_patterns=5), **rows)
    potentials.allowed[0, 1] = potentials.allowed[2, 0] = 0
    expected = oracle.expectations(potentials, patterns, (1, 1), frozenset())
    automaton = compile_automaton(patterns, [1, 1])
    counts = expectations(potentials, automaton)
    assert_allclose(log_partition(potentials, automaton), expected.log_partition, rtol=1e-12)
    assert_allclose(counts.log_partition, expected.log_partition, rtol=1e-12)
    assert_allclose(counts.row, expected.row, rtol=1e-10)


def test_a_small_mass_keeps_its_digits_until_a_large_factor_lifts_it():
    """e^-620 · e^-120 · e^400 is a good number, but the first product is a denormal."""
    patterns = ((0,), (1,), (2,), (0, 2), (1, 2))
    start = np.zeros((2, 3))
    start[0, 1], start[1, 2] = -620.0, -120.0
    rows = oracle.rows_of(2, (1, START, 3, -221.0), (1, START, 4, 400.0))
    potentials = replace(oracle.plain(np.zeros((2, 3)), n_patterns=5), start=start, **rows)
    potentials.allowed[0, 2] = 0
    potentials.allowed[1, :2] = 3  # may start, and set the scale, but lead nowhere
    expected = oracle.expectations(potentials, patterns, (1, 1, 1), frozenset())
    automaton = compile_automaton(patterns, [1, 1, 1])
    counts = expectations(potentials, automaton)
    assert_allclose(log_partition(potentials, automaton), expected.log_partition, rtol=1e-12)
    assert_allclose(counts.log_partition, expected.log_partition, rtol=1e-12)
    assert_allclose(counts.row, expected.row, rtol=1e-10)


def test_a_faint_start_that_a_span_lifts_is_detected():
    """e^-700 is no double; with the span's e^600 the state is alive again, but its digits would be
    made up.
    """
    potentials = replace(
        oracle.plain(np.array([[0.0, -700.0], [0.0, 0.0]])), **oracle.spans_of((0, 1, 1, 600.0))
    )
    automaton = compile_automaton([(0,), (1,)], [1, 1])
    assert np.isnan(log_partition(potentials, automaton, space="scaled"))
    log_alpha, _ = log_state_scores(potentials, automaton)
    assert log_alpha[1, 2] == pytest.approx(-100.0, rel=1e-12)


def test_worked_example_of_jmlr_appendix_b():
    automaton = compile_automaton(worked_example.PATTERNS, worked_example.LIMITS)
    potentials = worked_example.potentials()
    alpha, beta = log_state_scores(potentials, automaton)
    order = [automaton.states.index(state) for state in worked_example.FORWARD_STATES]
    checked = 0
    for t, row in enumerate(worked_example.LOG_ALPHA):
        for state, number, printed in zip(worked_example.FORWARD_STATES, order, row):
            _, value = worked_example.MISPRINTS.get(("JMLR 12", t, state), (None, printed))
            assert_allclose(alpha[t, number], value, atol=worked_example.TOLERANCE)
    # from token j + 1 on, that is at boundary j
    for j, row in enumerate(worked_example.JMLR_LOG_BETA):
        for state, printed in zip(worked_example.JMLR_BACKWARD_STATES, row):
            if state in automaton.states and np.isfinite(alpha[j, automaton.states.index(state)]):
                assert_allclose(
                    beta[j, automaton.states.index(state)], printed, atol=worked_example.TOLERANCE
                )
                checked += 1
    assert checked == 27  # P, O and L at the seven inner boundaries, LO at six of them
    assert_allclose(log_partition(potentials, automaton), [worked_example.LOG_PARTITION], atol=0.01)
    watched = _watch(potentials, worked_example.PATTERNS.index((2, 1, 2)))
    rows = expectations(watched, automaton).row[watched.row_offsets[:-1]]
    dense = expectations(potentials, automaton).start
    for t, row in enumerate(worked_example.JMLR_MARGINALS):
        assert_allclose([*dense[t], rows[t]], row, atol=worked_example.TOLERANCE)


@pytest.mark.parametrize("limits", [[1, 1], [0, 0], [3, 0]])
def test_an_empty_sequence_has_log_partition_zero(limits):
    potentials = oracle.plain(np.zeros((0, 2)))
    automaton = compile_automaton([(0,), (1,)], limits)
    assert log_partition(potentials, automaton).tolist() == [0.0]
    assert oracle.listed(viterbi(potentials, automaton).segments) == [()]


@pytest.mark.parametrize("seed", range(oracle.so_many(30)))
def test_the_best_long_segments_of_unlimited_labels_begin_where_they_should(seed):
    """Long segments pay, some tokens cannot go on; a limit of the whole length is the same model
    without a tail.
    """
    rng = np.random.default_rng(seed)
    tokens, patterns = 30, [(0,), (1,), (0, 1), (1, 0)]
    potentials = replace(
        oracle.plain(np.repeat(rng.normal(size=(10, 2)), 3, axis=0), len(patterns)),
        inner=rng.normal(0.4, 1.0, size=(tokens, 2)),
        length_pattern=np.zeros(1, dtype=np.int32),
        length_score=rng.normal(size=(1, 1 + seed % 5)),
    )
    potentials.allowed[rng.random((tokens, 2)) < 0.1] &= 5
    potentials.allowed[rng.random((tokens, 2)) < 0.3] &= 6
    potentials.allowed[0] |= 1
    free, limited = (compile_automaton(patterns, [limit, limit]) for limit in (0, tokens))
    found, [score] = viterbi(potentials, free)
    [segments] = oracle.listed(found)
    expected, [best] = viterbi(potentials, limited)
    assert [segments] == oracle.listed(expected)
    assert_allclose(score, best, rtol=1e-10)
    if segments:
        assert_allclose(oracle.score(potentials, patterns, segments), score, rtol=1e-10)


@pytest.mark.parametrize("seed", range(12))
def test_lengths_summed_together_equal_lengths_summed_one_by_one(seed, monkeypatch):
    """Limits of every kind beside each other, blocks that do not divide the sequence, spans and
    length bins that widen windows.
    """
    rng = np.random.default_rng(seed)
    patterns = tuple(z for n in (1, 2, 3) for z in product(range(2), repeat=n))
    limits = tuple(int(limit) for limit in rng.choice([2, 3, 4, 5, 7, 11, 40], 2))
    const, length_score = (
        rng.normal(size=len(patterns)),
        rng.normal(size=(3, int(rng.integers(1, 5)))),
    )
    sizes = rng.integers(1, 40, size=11)
    sequences = [
        _dense_sequence(rng, patterns, const, length_score, tokens=int(size)) for size in sizes
    ]
    potentials = oracle.batch(sequences)
    automaton = compile_automaton(patterns, limits, carried=patterns)
    found = {}
    for least in (1, 1000):
        monkeypatch.setattr(forward_backward, "MIN_TAIL", least)
        found[least] = expectations(potentials, automaton), viterbi(potentials, automaton)
    (one, best), (other, same) = found.values()
    assert_allclose(one.log_partition, other.log_partition, rtol=1e-9, atol=1e-10)
    oracle.assert_counts(one, [other], rtol=1e-9)
    assert_same_segments(best.segments, same.segments)
    assert_allclose(best.scores, same.scores, rtol=1e-12)


def test_kept_buffers_notice_another_batch_with_the_same_offsets():
    potentials = oracle.plain(np.array([[0.3, -0.2], [1.0, 0.5]]))
    asked = replace(potentials, **oracle.spans_of((0, 2, 1, 2.0)))
    assert asked.offsets is potentials.offsets
    automaton = compile_automaton([(0,), (1,)], [0, 0])
    buffers = forward_backward.Buffers(automaton)
    for each in (potentials, asked, potentials):
        counts = expectations(each, automaton, buffers=buffers)
        assert_allclose(counts.log_partition, log_partition(each, automaton), rtol=1e-14)
        assert len(counts.span) == len(each.span_score)


def test_kept_buffers_know_constants_again_only_if_they_cannot_have_changed():
    automaton = compile_automaton([(0,), (1,)], [1, 1])
    buffers = forward_backward.Buffers(automaton)
    potentials = oracle.plain(np.zeros((3, 2)))
    assert buffers.constants(potentials).arc.tolist() == [0.0, 0.0]
    potentials.const[1] = 2.0
    assert buffers.constants(potentials).arc.tolist() == [0.0, 2.0]
    potentials.const.flags.writeable = potentials.length_score.flags.writeable = False
    fixed = buffers.constants(potentials)
    assert buffers.constants(replace(potentials, token=potentials.token + 1)) is fixed
    other = replace(potentials, const=np.array([3.0, 0.0]))
    assert buffers.constants(other).arc.tolist() == [3.0, 0.0]


def test_kept_buffers_that_could_not_grow_are_not_taken_for_large(monkeypatch):
    automaton = compile_automaton([(0,), (1,)], [3, 0])
    small, large = (oracle.plain(np.zeros((n, 2))) for n in (2, 4000))
    module, expected = engine_kernels("single"), expectations(large, automaton)
    allocate, left = module._buffer, []

    def limited(*extents):
        if not left:
            raise MemoryError(extents)
        left.pop()
        return allocate(*extents)

    for limit in (0, 1, 15, 30):
        buffers = forward_backward.Buffers(automaton)
        expectations(small, automaton, buffers=buffers)
        left += range(limit)
        with monkeypatch.context() as patch, pytest.raises(MemoryError):
            patch.setattr(module, "_buffer", limited)
            expectations(large, automaton, buffers=buffers)
        counts = expectations(large, automaton, buffers=buffers)
        assert_array_equal(counts.log_partition, expected.log_partition)
        oracle.assert_counts(counts, [expected], rtol=0)


def test_an_empty_batch_has_no_results():
    potentials = replace(oracle.plain(np.zeros((0, 2))), offsets=np.array([0]))
    automaton = compile_automaton([(0,), (1,)], [1, 0])
    assert log_partition(potentials, automaton).tolist() == []
    assert expectations(potentials, automaton).const.tolist() == [0.0, 0.0]
    assert oracle.listed(viterbi(potentials, automaton).segments) == []
    assert segment_marginals(potentials, automaton, oracle.segments_of([]))[0].tolist() == []
    assert window_marginals(potentials, automaton, []).tolist() == []


def test_without_an_allowed_segmentation_every_probability_is_zero():
    potentials = oracle.plain(np.zeros((3, 2)))
    potentials.allowed[1] = 0
    automaton = compile_automaton([(0,), (1,)], [1, 1])
    window = Window(0, 0, np.full((1, 2), 7, dtype=np.uint8))
    assert window_marginals(potentials, automaton, [window]).tolist() == [0.0]
    asked = oracle.segments_of([[(0, 1, 0)]])
    assert segment_marginals(potentials, automaton, asked)[0].tolist() == [0.0]


def test_unlimited_labels_cost_no_accuracy_on_long_sequences():
    rng = np.random.default_rng(1)
    tokens = 300
    patterns = [(0,), (1,), (2,), (0, 1), (1, 2), (2, 0, 1)]
    inner, end = rng.normal(size=(2, tokens, 3))
    potentials = replace(
        oracle.plain(rng.normal(size=(tokens, 3)), len(patterns)), inner=inner, end=end
    )
    free = compile_automaton(patterns, [0, 0, 0], forbidden=[(0, 0)])
    limited = compile_automaton(patterns, [tokens] * 3, forbidden=[(0, 0)])
    found, expected = expectations(potentials, free), expectations(potentials, limited)
    assert_allclose(found.log_partition, expected.log_partition, rtol=1e-12)
    oracle.assert_counts(found, [expected])
    assert_same_segments(viterbi(potentials, free).segments, viterbi(potentials, limited).segments)


@pytest.mark.parametrize(
    "change, code",
    [
        ({"token": np.zeros((2, 3))}, "H004"),
        ({"token": np.full((3, 2), np.nan)}, "H006"),
        ({"const": np.array([0.0, np.inf])}, "H006"),
        (oracle.spans_of((0, 1, 7, 0.0)), "H138"),
        (oracle.spans_of((2, 5, 0, 0.0)), "H009"),
        (oracle.spans_of((5, 6, 0, 0.0)), "H009"),
        (oracle.spans_of((-1, 0, 0, 0.0)), "H009"),
    ],
)
def test_bad_potentials_are_refused(change, code):
    potentials = replace(oracle.plain(np.zeros((3, 2))), **change)
    with pytest.raises(ValueError, match=code):
        log_partition(potentials, compile_automaton([(0,), (1,)], [1, 1]))


@pytest.mark.parametrize("weights", [np.ones(2), np.ones((1, 1)), np.array([-1.0]), [np.nan], 1.0])
def test_weights_of_sequences_are_one_each_and_not_negative(weights):
    with pytest.raises(ValueError, match=r"H139.*1 sequences, each with a weight"):
        potentials, automaton = oracle.plain(np.zeros((3, 1))), compile_automaton([(0,)], [1])
        expectations(potentials, automaton, weights=weights)


def test_an_uncarried_pattern_cannot_look_behind_the_start():
    potentials = oracle.plain(np.zeros((3, 2)), n_patterns=3)
    row = replace(potentials, **oracle.rows_of(3, (1, END, 2, 1.0)))
    with pytest.raises(ValueError, match=r"H005"):
        log_partition(row, compile_automaton([(0,), (1,), (0, 1)], [2, 2]))
    log_partition(row, compile_automaton([(0,), (1,), (0, 1)], [2, 2], carried=[(0, 1)]))


def test_an_unknown_space_is_refused():
    with pytest.raises(ValueError, match=r"H010"):
        log_partition(
            oracle.plain(np.zeros((1, 1))), compile_automaton([(0,)], [1]), space="linear"
        )


def assert_same_segments(one, other):
    for mine, theirs in zip(one, other):
        assert_array_equal(mine, theirs)


def _dense_sequence(rng, patterns, const, length_score, *, tokens):
    """Five rows at every token, three short spans; a tenth of the bits is missing."""
    spans = sorted(
        (int(u), int(rng.integers(u + 1, min(u + 2, tokens) + 1)))
        for u in rng.integers(0, tokens, 3)
    )
    allowed = np.zeros((tokens, 2), dtype=np.uint8)
    for bit in (1, 2, 4):
        allowed += np.where(rng.random((tokens, 2)) < 0.9, bit, 0).astype(np.uint8)
    return replace(
        oracle.plain(rng.normal(size=(tokens, 2))),
        const=const,
        start=rng.normal(size=(tokens, 2)),
        end=rng.normal(size=(tokens, 2)),
        inner=rng.normal(size=(tokens, 2)),
        row_offsets=5 * np.arange(tokens + 1),
        row_part=rng.integers(0, 4, 5 * tokens).astype(np.uint8),
        row_pattern=rng.integers(2, len(patterns), 5 * tokens).astype(np.int32),
        row_score=2 * rng.normal(size=5 * tokens),
        length_pattern=np.array([0, 3, 9], dtype=np.int32),
        length_score=length_score,
        span_start=np.array([start for start, _ in spans]),
        span_end=np.array([end for _, end in spans]),
        span_pattern=rng.integers(0, len(patterns), 3).astype(np.int32),
        span_score=rng.normal(size=3),
        allowed=allowed,
    )


def _random_problem(rng, *, tokens, scale, constrained=False):
    """A semi-CRF with a one-token label, a limited and a free one, observed patterns, lengths,
    spans and forbidden successions.
    """
    patterns = ((0,), (1,), (2,), (0, 1), (1, 2), (2, 0), (0, 2, 1), (1, 0, 2, 1))
    limits, forbidden = (1, 7, 0), {(2, 2), (0, 2)} if constrained else {(2, 2)}
    n = 2 * tokens
    row_token = np.sort(rng.integers(0, tokens, n))
    span_start = np.sort(rng.integers(0, tokens - 5, 10))
    span_end = span_start + rng.integers(1, 5, 10)
    order = np.lexsort((span_end, span_start))

    def score(*extents: int) -> np.ndarray:
        return rng.choice([-1.0, 1.0], extents) * scale if scale > 1 else rng.normal(size=extents)

    allowed = np.full((tokens, 3), 7, dtype=np.uint8)
    if constrained:  # a forced long span of label 2, and one of label 1
        for label, start, end in (
            (2, tokens // 4, tokens // 2),
            (1, tokens // 2 + 3, tokens // 2 + 8),
        ):
            allowed[start:end] = 0
            allowed[start, label] = 1
            allowed[start + 1 : end, label] = 2
            allowed[end - 1, label] |= 4
            allowed[end] &= 5
    potentials = replace(
        oracle.plain(score(tokens, 3), n_patterns=len(patterns)),
        const=score(len(patterns)),
        start=score(tokens, 3),
        end=score(tokens, 3),
        inner=score(tokens, 3),
        row_offsets=np.searchsorted(row_token, np.arange(tokens + 1)),
        row_part=rng.integers(0, 4, n).astype(np.uint8),
        row_pattern=rng.integers(3, len(patterns), n).astype(np.int32),
        row_score=score(n),
        length_pattern=np.array([1, 2, 6], dtype=np.int32),
        length_score=score(3, 4),
        span_start=span_start[order],
        span_end=span_end[order],
        span_pattern=rng.integers(0, len(patterns), 10).astype(np.int32),
        span_score=score(10),
        allowed=allowed,
    )
    return oracle.Problem(
        potentials, patterns, limits, forbidden, np.ones(len(patterns), dtype=bool)
    )


def _watch(potentials, pattern):
    """A row of score 0 on the pattern at every token, in front of the potentials' own."""
    tokens = int(potentials.offsets[-1])
    at = np.append(np.arange(tokens), np.repeat(np.arange(tokens), np.diff(potentials.row_offsets)))
    order = np.argsort(at, kind="stable")
    return replace(
        potentials,
        row_offsets=np.searchsorted(at[order], np.arange(tokens + 1)),
        row_part=np.append(np.zeros(tokens, dtype=np.uint8), potentials.row_part)[order],
        row_pattern=np.append(np.full(tokens, pattern, dtype=np.int32), potentials.row_pattern)[
            order
        ],
        row_score=np.append(np.zeros(tokens), potentials.row_score)[order],
    )
