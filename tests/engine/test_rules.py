"""Products of automata and rules, and structural zeros of segments, against enumeration of what is left."""

from dataclasses import replace
from itertools import groupby, islice, pairwise, product

import numpy as np
import oracle
import pytest
from builds import BUILDS, running
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spacy_hocrf.engine.alternatives import draws, ranked, sum_of_ways
from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.forward_backward import expectations, log_partition
from spacy_hocrf.engine.marginals import segment_marginals
from spacy_hocrf.engine.probable import probable_spans
from spacy_hocrf.engine.rules import Rule, joined_rules, product_of
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.types import START, Expectations, Potentials, Segment

TINY = 1e-9


def keeps(rule, labels):
    """Does a sequence of labels keep a rule?"""
    state = 0
    for label in labels:
        state = rule.after.tolist()[state][label]
    return rule.kept.tolist()[state]


def table(random, n_labels):
    """Any rule of up to four states; half of the labels leave a state as it is."""
    states = int(random.integers(1, 5))
    after = random.integers(0, states, (states, n_labels))
    stays = random.random((states, n_labels)) < 0.5
    after = np.where(stays, np.arange(states)[:, None], after).astype(np.int32)
    price = float(random.choice([np.inf, np.inf, 0.0, 0.7, 2.5]))
    return Rule(after, random.random(states) < 0.7, price)


@st.composite
def constrained(draw, rate=0.3):
    """A problem, rules, and the potentials with structural zeros at some spans and rows."""
    problem = draw(oracle.problems())
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = [table(random, len(problem.limits)) for _ in range(draw(st.integers(0, 4)))]
    p = problem.potentials
    span, row = p.span_score.copy(), p.row_score.copy()
    if draw(st.booleans()):
        span[random.random(len(span)) < rate] = -np.inf
        row[(random.random(len(row)) < rate) & (p.row_part == START)] = -np.inf
    return problem, found, replace(p, span_score=span, row_score=row)


def left(problem, found, potentials):
    """[(segmentation, counts, score)] of what uses no zero and keeps what must be kept, less its prices."""
    p = problem.potentials
    kept = []
    for each in oracle.segmentations(p, problem.limits, problem.forbidden):
        counts = oracle.firing(p, problem.patterns, each)
        zero = np.isneginf(potentials.span_score) & (counts["span"] > 0)
        barred = np.isneginf(potentials.row_score) & (counts["row"] > 0)
        cost = sum(0.0 if keeps(rule, [y for _, _, y in each]) else rule.price for rule in found)
        if cost < np.inf and not zero.any() and not barred.any():
            kept.append((each, counts, oracle.score(p, problem.patterns, each) - cost))
    return kept


def automaton_of(problem, found):
    carried = [z for z, flag in zip(problem.patterns, problem.carried) if flag]
    plain = compile_automaton(
        problem.patterns, problem.limits, forbidden=problem.forbidden, carried=carried
    )
    prices = np.array([rule.price for rule in found])
    return product_of(plain, joined_rules(found, len(problem.limits), 10_000), prices)


def expected_of(kept, problem):
    scores = np.array([score for _, _, score in kept])
    log_z = np.logaddexp.reduce(scores) if len(kept) else -np.inf
    mean = oracle.firing(problem.potentials, problem.patterns, ())
    for _, counts, score in kept:
        for part in oracle.PARTS:
            mean[part] += np.exp(score - log_z) * counts[part]
    return Expectations(log_partition=np.array([log_z]), **mean)


@given(constrained())
def test_sums_and_counts_are_those_of_what_keeps_the_rules(case):
    problem, found, potentials = case
    expected = expected_of(left(*case), problem)
    automaton = automaton_of(problem, found)
    for build in BUILDS:
        with running(build):
            log_z = log_partition(potentials, automaton)
            assert_allclose(log_z, expected.log_partition, rtol=TINY, atol=TINY)
            counts = expectations(potentials, automaton)
            assert_allclose(counts.log_partition, expected.log_partition, rtol=TINY, atol=TINY)
            for part in oracle.PARTS:
                near(getattr(counts, part), getattr(expected, part), f"{part}, {build}")


@given(constrained())
def test_the_best_segmentation_is_the_best_that_keeps_the_rules(case):
    problem, found, potentials = case
    kept = left(*case)
    best = max((score for *_, score in kept), default=-np.inf)
    automaton = automaton_of(problem, found)
    for build in BUILDS:
        with running(build):
            answer = viterbi(potentials, automaton)
            assert_allclose(answer.scores[0], best, rtol=TINY, atol=TINY)
            (segments,) = oracle.listed(answer.segments)
            good = [each for each, _, score in kept if score >= best - TINY]
            assert not kept or segments in [tuple(each) for each in good]


@given(constrained(), st.lists(st.integers(1, 4), max_size=2, unique=True))
def test_the_sum_over_ways_through_stretches_is_that_of_all(case, cuts):
    problem, found, potentials = case
    tokens, labels = potentials.allowed.shape
    problem = problem._replace(limits=(1,) * labels)
    cuts = [0, *(cut for cut in sorted(cuts) if cut < tokens), tokens]
    if not tokens:
        return
    ways = []  # for each stretch, one for each label of its first token
    for first, last in pairwise(cuts):
        ways.append([potentials.allowed[first:last].copy() for _ in range(labels)])
        for label, bits in enumerate(ways[-1]):
            bits[0, np.arange(labels) != label] = 0
    total = sum_of_ways(potentials, automaton_of(problem, found), cuts, ways)
    scores = [score for _, _, score in left(problem, found, potentials)]
    expected = np.logaddexp.reduce(scores) if scores else -np.inf
    assert_allclose(total, expected, rtol=TINY, atol=TINY)


@given(constrained())
def test_all_that_keep_the_rules_come_in_order_and_random_ones_keep_them(case):
    problem, found, potentials = case
    expected = {tuple(each): score for each, _, score in left(*case)}
    automaton = automaton_of(problem, found)
    listed = [(oracle.listed(each)[0], score) for score, each in ranked(potentials, automaton)]
    assert len(listed) == len(expected)
    assert {each for each, _ in listed} == set(expected)
    scores = [score for _, score in listed]
    assert_allclose(scores, [expected[each] for each, _ in listed], rtol=TINY, atol=TINY)
    assert scores == sorted(scores, reverse=True)
    random = draws(potentials, automaton, np.random.default_rng(0))
    for segments in islice(random, 3 if expected else 0):
        assert oracle.listed(segments)[0] in expected


@given(constrained())
def test_probabilities_of_segments_are_conditional_on_the_rules(case):
    problem, found, potentials = case
    kept = left(*case)
    automaton, chances = automaton_of(problem, found), {}
    scores = np.array([score for *_, score in kept])
    weights = np.exp(scores - np.logaddexp.reduce(scores)) if len(kept) else []
    for (each, _, _), weight in zip(kept, weights):
        for segment in each:
            chances[segment] = chances.get(segment, 0.0) + weight
    n, labels = problem.potentials.allowed.shape
    every = [Segment(a, b, y) for a in range(n) for b in range(a + 1, n + 1) for y in range(labels)]
    if set(problem.limits) == {1}:
        every = [segment for segment in every if segment.end - segment.start == 1]
    shape = (0, 0, -1, -1, 0) if set(problem.limits) == {1} else None
    for build in BUILDS:
        with running(build):
            marginals = segment_marginals(potentials, automaton, oracle.segments_of([every]))
            near(marginals.probability, [chances.get(segment, 0.0) for segment in every], build)
            if shape is None:
                rules_of = np.array([(-1, -1, -1, y, -1) for y in range(labels)], dtype=np.int32)
                spans = probable_spans(potentials, automaton, rules_of, 0.01)
                places = zip(*(column.tolist() for column in spans.spans[1:]))
                likely = dict(zip(places, spans.probability.tolist()))
                assert {s for s, p in chances.items() if p > 0.01 + TINY} <= likely.keys()
                near(list(likely.values()), [chances.get(Segment(*s), 0.0) for s in likely], build)


@pytest.mark.slow
@settings(max_examples=100)  # of which few are read: those whose segments have one token
@given(constrained())
def test_runs_of_labels_are_found_among_what_keeps_the_rules(case):
    """Probable spans of an io model, whose segments have one token."""
    problem, found, potentials = case
    if set(problem.limits) != {1}:
        return
    kept = left(*case)
    scores = np.array([score for *_, score in kept])
    weights = np.exp(scores - np.logaddexp.reduce(scores)) if len(kept) else []
    chances = {}
    for (each, _, _), weight in zip(kept, weights):
        at = 0
        for label, run in groupby(y for _, _, y in each):
            end = at + len(list(run))
            chances[at, end, label] = chances.get((at, end, label), 0.0) + weight
            at = end
    automaton = automaton_of(problem, found)
    rows = np.array([(y, y, -1, -1, y) for y in range(len(problem.limits))], dtype=np.int32)
    for build in BUILDS:
        with running(build):
            spans = probable_spans(potentials, automaton, rows, 0.01)
            places = zip(*(column.tolist() for column in spans.spans[1:]))
            likely = dict(zip(places, spans.probability.tolist()))
            assert {s for s, p in chances.items() if p > 0.01 + TINY} <= likely.keys()
            near(list(likely.values()), [chances.get(s, 0.0) for s in likely], build)


def near(found, expected, name):
    assert_allclose(found, expected, rtol=1e-8, atol=TINY, err_msg=name)


def at_most_once(label, n_labels):
    after = np.repeat(np.arange(3, dtype=np.int32)[:, None], n_labels, axis=1)
    after[:, label] = [1, 2, 2]
    return Rule(after, np.array([True, True, False]))


@pytest.mark.slow
@pytest.mark.parametrize("once", [1, 2, 3, 4])
def test_each_of_some_labels_at_most_once(once):
    """Of five labels, in texts of up to five tokens; order 2."""
    found = [at_most_once(y, 5) for y in range(1, once + 1)]
    for seed in range(oracle.so_many(20)):
        rng = np.random.default_rng([seed, once])
        limits = tuple(int(limit) for limit in rng.integers(1, 3, 5))
        patterns = (*((y,) for y in range(5)), (1, 2), (2, 1), (1, 0, 2))
        length = int(rng.integers(1, 6))
        allowed = np.full((length, 5), oracle.ANYTHING, dtype=np.uint8)
        const = rng.normal(size=len(patterns))
        dense = {
            part: rng.normal(size=(length, 5)) * 3 for part in ("start", "end", "token", "inner")
        }
        nothing = Potentials.zero(np.array([0, length]), allowed, len(patterns))
        potentials = replace(nothing, const=const, **dense)
        carried = np.zeros(len(patterns), dtype=bool)
        problem = oracle.Problem(potentials, patterns, limits, frozenset(), carried)
        kept = left(problem, found, potentials)
        expected = expected_of(kept, problem)
        automaton = automaton_of(problem, found)
        assert automaton.copies == 2**once
        counts = expectations(potentials, automaton)
        near(counts.log_partition, expected.log_partition, "log Z")
        near(counts.token, expected.token, "tokens")
        near(viterbi(potentials, automaton).scores[0], max(score for *_, score in kept), "best")


def test_a_product_has_the_states_that_a_sequence_comes_to_and_what_ends_them():
    patterns = [(0,), (1,), (2,)]
    once = joined_rules([at_most_once(0, 3)], 3, 2)
    automaton = product_of(compile_automaton(patterns, [1] * 3), once, np.array([np.inf]))
    assert automaton.states == ((), (1,), (2,), (), (0,), (1,), (2,))
    assert automaton.state_copy.tolist() == [0] * 3 + [1] * 4


def test_a_product_with_one_state_more_than_labels_still_remembers_two_of_them():
    """Label 1 never comes, and (3, 3) is remembered: that is no CRF of order 1."""
    patterns = [(0,), (1,), (2,), (3,), (3, 3, 0)]
    never = Rule(np.array([[0, 1, 0, 0], [1, 1, 1, 1]], dtype=np.int32), np.array([True, False]))
    plain = compile_automaton(patterns, [1] * 4)
    automaton = product_of(plain, joined_rules([never], 4, 1), np.array([np.inf]))
    assert automaton.states == ((), (0,), (2,), (3,), (3, 3))
    allowed = np.full((5, 4), oracle.ANYTHING, dtype=np.uint8)
    potentials = Potentials.zero(np.array([0, 5]), allowed, 5)
    potentials.const[4] = 2.0
    found = [log_partition(potentials, automaton, space=space)[0] for space in ("scaled", "log")]
    ways = product([0, 2, 3], repeat=5)
    total = sum(np.exp(2.0 * sum(way[i : i + 3] == (3, 3, 0) for i in range(3))) for way in ways)
    assert_allclose(found, np.log(total), rtol=1e-12)


def test_rules_together_break_what_each_of_them_breaks():
    random = np.random.default_rng(0)
    for _ in range(40):
        found = [table(random, 3) for _ in range(int(random.integers(1, 4)))]
        together = joined_rules(found, 3, 10_000)
        reached = {0}
        for labels in product(range(3), repeat=4):
            state = 0
            for n, y in enumerate(labels, 1):
                state = int(together.after[state, y])
                if state < 0:
                    after = [labels[:n] + more for more in product(range(3), repeat=4)]
                    hard = [rule for rule in found if rule.price == np.inf]
                    assert not any(all(keeps(rule, each) for rule in hard) for each in after)
                    break
                reached.add(state)
                broken = [not keeps(rule, labels[:n]) for rule in found]
                assert together.broken[state].tolist() == broken
        assert reached == set(range(len(together))) or len(together) > len(reached)
        assert len(together) == 1 or joined_rules(found, 3, len(together) - 1) is None
        assert len(joined_rules(found, 3, len(together))) == len(together)
