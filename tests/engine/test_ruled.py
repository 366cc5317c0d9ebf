"""Spans under rules about labels, against enumeration and against the product with all rules."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import so_many
from random_constraints import Constrained

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.kernels.protocol import Starts
from spacy_hocrf.engine.probable import probable_spans
from spacy_hocrf.engine.ruled import Ruled, RuleTables, best_ruled, broken_sets, ruled_spans
from spacy_hocrf.engine.rules import Rule, joined_rules, product_of
from spacy_hocrf.types import Potentials

KINDS = ["tokens", "runs", "labelled"]
PROBLEMS = so_many(130)  # of each kind; about two in three have rules
EXACT = 1e-9
FIRST = np.zeros(1, dtype=np.int64)


def ruled(potentials, automaton, rows, rules, tolerance):
    """With log Z and the chances of a search without rules."""
    labels = np.arange(len(automaton.limits), dtype=np.int32)
    extents = len(potentials.token), len(labels)
    starts = Starts(labels, np.zeros(extents), np.zeros(extents))
    log_z = probable_spans(potentials, automaton, rows, 1.0, starts=starts).log_partition
    tables = RuleTables.of(rules, len(automaton.limits))
    violations = np.ones((len(log_z), len(rules)))
    return Ruled(potentials, automaton, tables, starts, log_z, violations, (tolerance, 0.1, 0.4))


def counting(label, least, most, n_labels, price=np.inf):
    """At least and at most so many segments of a label."""
    states = 2 + max(least, most)
    after = np.repeat(np.arange(states, dtype=np.int32)[:, None], n_labels, axis=1)
    after[:, np.atleast_1d(label)] = np.minimum(np.arange(1, states + 1), states - 1)[:, None]
    return Rule(after, (np.arange(states) >= least) & (np.arange(states) <= most), price)


class Problem:
    """A random problem with rules about numbers, and every span's probability under them."""

    def __init__(self, kind, seed, tolerance=EXACT):
        self.given = Constrained(kind, seed, "rules" if seed % 2 else "numbers")
        self.labels = self.given.scheme.labels
        self.expected = Counter()
        for p, spans in zip(self.given.p, self.given.readings()):
            self.expected.update({span: p for span in spans})
        compiled = self.given.rules
        self.rules, self.rows = compiled.rules, compiled.scheme.rules
        if self.rules:
            known = self.given.structure.potentials, compiled.automaton, self.rows
            self.ruled = ruled(*known, self.rules, tolerance)

    def named(self, found):
        """Start, end and label of each span, with its probability."""
        spans = zip(found.spans.start, found.spans.end, found.spans.label, found.probability)
        return {(int(i), int(j), self.labels[y]): p for i, j, y, p in spans}


@pytest.fixture(scope="module", params=KINDS)
def problems(request):
    found = [Problem(request.param, seed) for seed in range(PROBLEMS)]
    return [problem for problem in found if problem.rules]


def test_all_spans_have_the_probability_that_they_have_under_the_rules(problems):
    assert len(problems) > 0.6 * PROBLEMS
    for problem in problems:
        found = ruled_spans(problem.ruled, problem.rows, FIRST, 1e-12)
        if not problem.given.kept:
            assert found.log_partition == -np.inf
            assert len(found.probability) == 0
            continue
        if np.exp(problem.given.log_z - problem.ruled.log_partition[0]) < 1e-5:
            continue  # digits are lost
        assert_allclose(found.log_partition, problem.given.log_z, atol=1e-8)
        spans = problem.named(found)
        assert spans.keys() <= problem.expected.keys()
        for span, p in problem.expected.items():
            assert_allclose(spans.get(span, 0.0), p, atol=1e-8)


def test_only_probable_spans_are_listed_in_order(problems):
    for problem in problems:
        every = problem.named(ruled_spans(problem.ruled, problem.rows, FIRST, 1e-12))
        found = ruled_spans(problem.ruled, problem.rows, FIRST, 0.2)
        assert problem.named(found) == {span: p for span, p in every.items() if p >= 0.2}
        places = list(zip(found.spans.start, found.spans.end, found.spans.label))
        assert places == sorted(places)


def test_the_best_segmentation_is_worth_most_of_those_that_keep_the_rules(problems):
    for problem in problems:
        found = best_ruled(problem.ruled, problem.rows, FIRST, 0.3)
        if found.log_partition == -np.inf:
            continue

        def worth(spans, p=problem.expected):
            return sum(p[span] - 0.3 for span in spans)

        readings = problem.given.readings()
        assert frozenset(problem.named(found)) in readings
        assert_allclose(worth(problem.named(found)), max(map(worth, readings)), atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [0.02, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_wrong_by_the_tolerance_at_most(kind, tolerance):
    worst = 0.0
    for problem in (Problem(kind, seed, tolerance) for seed in range(PROBLEMS)):
        if not problem.rules or not problem.given.kept:
            continue
        found = ruled_spans(problem.ruled, problem.rows, FIRST, 0.0)
        if found.log_partition > -np.inf:
            spans = problem.named(found)
            errors = [abs(spans.get(span, 0.0) - p) for span, p in problem.expected.items()]
            worst = max([worst, *errors])
    assert 1e-6 < worst <= tolerance


def random_texts(rng, lengths, n_labels):
    """Log potentials of texts in which labels repeat more often than they may."""
    n, offsets = sum(lengths), np.cumsum([0, *lengths])
    allowed = np.full((n, n_labels), 7, dtype=np.uint8)
    allowed[offsets[:-1]] &= 5
    return replace(
        Potentials.zero(offsets, allowed, n_labels),
        const=rng.normal(size=n_labels),
        token=rng.normal(size=(n, n_labels)) * 2,
    )


def whole(n_labels):
    """Every segment is a span."""
    rows = np.full((n_labels, 5), -1, dtype=np.int32)
    rows[:, 3] = np.arange(n_labels)
    return rows


def test_many_rules_are_those_of_one_product_with_all():
    rng = np.random.default_rng(3)
    potentials = random_texts(rng, [7, 1, 9, 4], 8)
    automaton, rows = (
        compile_automaton([(y,) for y in range(8)], [0, 2, 1, 3, 0, 2, 1, 1]),
        whole(8),
    )
    rules = [counting(y, int(y == 2), 1 + y % 2, 8, [np.inf, 0.8][y % 2]) for y in range(7)]
    prices = np.array([rule.price for rule in rules])
    product = product_of(automaton, joined_rules(rules, 8, 10_000), prices)
    expected = probable_spans(potentials, product, rows, 0.01)
    known = ruled(potentials, automaton, rows, rules, 1e-7)
    chosen = np.array([2, 0, 3])
    found = ruled_spans(known, rows, chosen, 0.01)
    assert_allclose(found.log_partition, expected.log_partition[chosen], atol=1e-6)
    for i, sequence in enumerate(chosen):
        mine = slice(*found.spans.offsets[i : i + 2])
        others = slice(*expected.spans.offsets[sequence : sequence + 2])
        for one, other in zip(found.spans[1:], expected.spans[1:]):
            assert one[mine].tolist() == other[others].tolist()
        assert_allclose(found.probability[mine], expected.probability[others], atol=1e-7)


def test_hundreds_of_rules_of_many_states_and_labels():
    """Labels beyond 64, and rules about several of them."""
    rng = np.random.default_rng(4)
    potentials = random_texts(rng, [5], 70)
    potentials.token[:] *= 4.0
    automaton, rows = compile_automaton([(y,) for y in range(70)], [2] * 70), whole(70)
    few = [counting(y, 0, 300, 70) for y in range(0, 70, 7)]
    many = [counting([y, (y + 9) % 70], 0, 1, 70, 0.01 * y) for y in range(70)] * 2
    known = ruled(potentials, automaton, rows, [*few, *many], 1e-3)
    found = ruled_spans(known, rows, FIRST, 0.0)
    none = ruled_spans(ruled(potentials, automaton, rows, few, 1e-3), rows, FIRST, 0.0)
    assert_allclose(none.log_partition, known.log_partition, atol=1.2 * none.tolerance[0])
    sets = broken_sets(known, 0)
    assert_allclose(sets.probability.sum(), 1.0)
    paid = sets.broken @ np.array([0.0] * len(few) + [rule.price for rule in many])
    free = np.log((sets.probability * np.exp(paid)).sum())
    assert_allclose(found.log_partition + free, known.log_partition, atol=1.2 * found.tolerance[0])


def test_which_rules_are_broken_together(problems):
    compared = 0
    for problem in problems:
        given = problem.given
        if not given.kept or np.exp(given.log_z - problem.ruled.log_partition[0]) < 1e-5:
            continue
        expected = Counter()
        labels = [[y for *_, y in segments] for segments in given.kept]
        for p, own in zip(given.p, labels):
            expected[tuple(not rule.keeps(own) for rule in problem.rules)] += p
        found = broken_sets(problem.ruled, 0)
        assert {tuple(row) for row in found.broken.tolist()} <= set(expected)
        for row, p in zip(found.broken.tolist(), found.probability):
            assert_allclose(p, expected.pop(tuple(row)), atol=1e-8)
        assert sum(expected.values()) < 1e-8
        compared += len(found.probability) > 1
    assert compared > 10


@pytest.mark.parametrize("share", [0.2, 0.3, 0.4, 0.49, 0.6])
def test_rules_that_are_left_out_take_their_part_of_the_tolerance(share, problems):
    """An end is found, whatever part of the tolerance is theirs."""
    for problem in problems:
        given, tolerance = problem.given, 0.3
        if not given.kept or len(problem.rules) < 2:
            continue
        kept = np.exp(given.log_z - problem.ruled.log_partition[0])
        violations = np.ones((1, len(problem.rules)))
        # the last one is left out, as if it were broken so improbably
        violations[0, -1] = min(share * tolerance * kept, 0.02 * tolerance)
        ruled_spans(
            problem.ruled._replace(violations=violations, tolerances=(tolerance,)),
            problem.rows,
            FIRST,
            0.0,
        )


def test_rules_that_no_segmentation_keeps_find_nothing():
    potentials = random_texts(np.random.default_rng(5), [3], 2)
    automaton = compile_automaton([(0,), (1,)], [1, 1])
    known = ruled(potentials, automaton, whole(2), [counting(0, 4, 9, 2)], 0.01)
    assert ruled_spans(known, whole(2), FIRST, 0.0).log_partition == -np.inf
    assert best_ruled(known, whole(2), FIRST, 0.2).log_partition == -np.inf
    assert broken_sets(known, 0) is None


def test_a_text_with_too_many_ways_is_left_to_others():
    rng = np.random.default_rng(7)
    potentials = random_texts(rng, [40], 30)
    potentials.token[:] *= 0.01
    automaton = compile_automaton([(y,) for y in range(30)], [1] * 30)
    rules = [counting(y, 0, 2, 30) for y in range(30)]
    known = ruled(potentials, automaton, whole(30), rules, 1e-6)
    assert ruled_spans(known, whole(30), FIRST, 0.1).log_partition == -np.inf


@pytest.mark.slow
def test_a_long_text_of_which_nothing_is_known_is_left_to_others():
    """All its paths together are worth more times the best one than a double can say."""
    potentials = random_texts(np.random.default_rng(9), [2000, 5], 3)
    potentials.token[:2000] = 0.0
    automaton = compile_automaton([(y,) for y in range(3)], [1] * 3)
    known = ruled(
        potentials, automaton, whole(3), [counting(y, 0, 1500, 3) for y in range(3)], 0.01
    )
    found = ruled_spans(known, whole(3), np.arange(2), 0.1).log_partition
    assert found[0] == -np.inf
    assert found[1] > -np.inf
