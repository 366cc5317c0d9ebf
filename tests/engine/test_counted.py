"""Spans under rules about numbers of segments, against enumeration and against a memory of all rules."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from random_constraints import Constrained

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.counted import Ruled, best_counted, can_count, counted_spans
from spacy_hocrf.engine.kernels.protocol import Starts
from spacy_hocrf.engine.memory import Count, counting, remembering
from spacy_hocrf.engine.probable import probable_spans
from spacy_hocrf.types import Potentials

KINDS = ["tokens", "runs", "labelled"]
PROBLEMS = 130  # of each kind; about two in three have rules
EXACT = 1e-9
FIRST = np.zeros(1, dtype=np.int64)


def ruled(potentials, automaton, rules, counts, tolerance):
    """With log Z and the chances of a search without rules about numbers."""
    labels = np.arange(len(automaton.limits), dtype=np.int32)
    extents = len(potentials.token), len(labels)
    starts = Starts(labels, np.zeros(extents), np.zeros(extents))
    log_z = probable_spans(potentials, automaton, rules, 1.0, starts=starts).log_partition
    chances = np.stack([starts.chance[:, sorted(c.labels)].sum(axis=1) for c in counts], axis=1)
    return Ruled(potentials, automaton, rules, counts, log_z, chances, tolerance)


class Problem:
    """A random problem with rules about numbers, and every span's probability under them."""

    def __init__(self, kind, seed, tolerance=EXACT):
        self.given = Constrained(kind, seed, "numbers")
        self.labels = self.given.scheme.labels
        self.expected = Counter()
        for p, spans in zip(self.given.p, self.given.readings()):
            self.expected.update({span: p for span in spans})
        rules = self.given.rules
        self.counts = rules.counts
        if self.counts:
            known = self.given.structure.potentials, rules.automaton, rules.scheme.rules
            self.ruled = ruled(*known, self.counts, tolerance)

    def named(self, found):
        """Start, end and label of each span, with its probability."""
        spans = zip(found.spans.start, found.spans.end, found.spans.label, found.probability)
        return {(int(i), int(j), self.labels[y]): p for i, j, y, p in spans}


@pytest.fixture(scope="module", params=KINDS)
def problems(request):
    found = [Problem(request.param, seed) for seed in range(PROBLEMS)]
    return [problem for problem in found if problem.counts]


def test_all_spans_have_the_probability_that_they_have_under_the_rules(problems):
    assert len(problems) > 80
    for problem in problems:
        found = counted_spans(problem.ruled, FIRST, 1e-12)
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
        every = problem.named(counted_spans(problem.ruled, FIRST, 1e-12))
        found = counted_spans(problem.ruled, FIRST, 0.2)
        assert problem.named(found) == {span: p for span, p in every.items() if p >= 0.2}
        places = list(zip(found.spans.start, found.spans.end, found.spans.label))
        assert places == sorted(places)


def test_the_best_segmentation_is_worth_most_of_those_that_keep_the_rules(problems):
    for problem in problems:
        found = best_counted(problem.ruled, FIRST, 0.3)
        if found.log_partition == -np.inf:
            continue

        def worth(spans, p=problem.expected):
            return sum(p[span] - 0.3 for span in spans)

        readings = problem.given.readings()
        assert frozenset(problem.named(found)) in readings
        assert_allclose(worth(problem.named(found)), max(map(worth, readings)), atol=1e-7)


@pytest.mark.parametrize("tolerance", [0.02, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_wrong_by_the_tolerance_at_most(kind, tolerance):
    worst = 0.0
    for problem in (Problem(kind, seed, tolerance) for seed in range(PROBLEMS)):
        if not problem.counts or not problem.given.kept:
            continue
        found = counted_spans(problem.ruled, FIRST, 0.0)
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


def whole_segments(n_labels):
    rules = np.full((n_labels, 5), -1, dtype=np.int32)
    rules[:, 3] = np.arange(n_labels)
    return rules


def test_many_rules_are_those_of_one_memory_of_all():
    rng = np.random.default_rng(3)
    potentials = random_texts(rng, [7, 1, 9, 4], 8)
    automaton = compile_automaton([(y,) for y in range(8)], [0, 2, 1, 3, 0, 2, 1, 1])
    counts = [Count(frozenset([y]), int(y == 2), 1 + y % 2) for y in range(7)]
    product = remembering(automaton, counting(counts, 8))
    expected = probable_spans(potentials, product, whole_segments(8), 0.01)
    known = ruled(potentials, automaton, whole_segments(8), counts, 1e-7)
    chosen = np.array([2, 0, 3])
    found = counted_spans(known, chosen, 0.01)
    assert_allclose(found.log_partition, expected.log_partition[chosen], atol=1e-6)
    for i, sequence in enumerate(chosen):
        mine = slice(*found.spans.offsets[i : i + 2])
        others = slice(*expected.spans.offsets[sequence : sequence + 2])
        for one, other in zip(found.spans[1:], expected.spans[1:]):
            assert one[mine].tolist() == other[others].tolist()
        assert_allclose(found.probability[mine], expected.probability[others], atol=1e-7)


def test_rules_that_no_segmentation_keeps_find_nothing():
    potentials = random_texts(np.random.default_rng(5), [3], 2)
    automaton = compile_automaton([(0,), (1,)], [1, 1])
    known = ruled(potentials, automaton, whole_segments(2), [Count(frozenset([0]), 4, None)], 0.01)
    assert counted_spans(known, FIRST, 0.0).log_partition == -np.inf
    assert best_counted(known, FIRST, 0.2).log_partition == -np.inf


def test_a_text_with_too_many_ways_is_left_to_others():
    rng = np.random.default_rng(7)
    potentials = random_texts(rng, [40], 30)
    potentials.token[:] *= 0.01
    automaton = compile_automaton([(y,) for y in range(30)], [1] * 30)
    counts = [Count(frozenset([y]), 0, 2) for y in range(30)]
    known = ruled(potentials, automaton, whole_segments(30), counts, 1e-6)
    assert counted_spans(known, FIRST, 0.1).log_partition == -np.inf


def test_a_long_text_of_which_nothing_is_known_is_left_to_others():
    """All its paths together are worth more times the best one than a double can say."""
    potentials = random_texts(np.random.default_rng(9), [2000, 5], 3)
    potentials.token[:2000] = 0.0
    automaton = compile_automaton([(y,) for y in range(3)], [1] * 3)
    counts = [Count(frozenset([y]), 0, 1500) for y in range(3)]
    known = ruled(potentials, automaton, whole_segments(3), counts, 0.01)
    found = counted_spans(known, np.arange(2), 0.1).log_partition
    assert found[0] == -np.inf
    assert found[1] > -np.inf


def test_what_cannot_be_counted():
    one = Count(frozenset([0]), 0, 1)
    assert can_count([one, Count(frozenset([1, 2]), 1, None)])
    assert not can_count([one, Count(frozenset([0, 1]), 0, 1)])
    assert not can_count([Count(frozenset([0]), 0, 1, runs=True)])
    assert not can_count([Count(frozenset([y]), 0, 9) for y in range(19)])
    assert not can_count([Count(frozenset([y]), 0, 0) for y in range(65)])
