"""The spans that are probable enough, and the best set of them, against enumeration."""

from itertools import combinations, pairwise

import numpy as np
import oracle
import pytest
from builds import BUILDS, automaton_of, running
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.engine.kernels.protocol import Starts
from spacy_hocrf.engine.probable import best_subset, probable_spans
from spacy_hocrf.types import Segments

NEAR = 1e-7
"""Spans whose probability is so near the least may be found or not."""


def whole_segments(n_labels):
    """Rules by which every segment is a span."""
    return np.array([[-1, -1, -1, y, -1] for y in range(n_labels)], dtype=np.int32)


def expected_starts(problem):
    """P(a segment of each label begins at each token), and P(one has it), float64 [T, Y] each."""
    chances, covers = np.zeros((2, *problem.potentials.token.shape))
    for segmentation, p in oracle.distribution(problem.potentials, *problem[1:4]).items():
        for segment in segmentation:
            chances[segment.start, segment.label] += p
            covers[segment.start : segment.end, segment.label] += p
    return chances, covers


def starts_like(chances):
    """Of all labels, to be filled in."""
    labels = np.arange(chances.shape[1], dtype=np.int32)
    return Starts(labels, np.zeros(chances.shape), np.zeros(chances.shape))


def assert_starts(found, chances, covers):
    assert_allclose(found.chance, chances, atol=1e-9)
    assert_allclose(found.cover, covers, atol=1e-9)


def listed(found, sequence=0):
    low, high = found.spans.offsets[sequence : sequence + 2]
    spans = zip(*(column[low:high].tolist() for column in found.spans[1:]))
    return dict(zip(spans, found.probability[low:high].tolist()))


def assert_all_found(found, expected, least, message):
    """found, expected (Mapping[tuple[int, int, int], float]): probabilities of spans."""
    for span, p in expected.items():
        assert span in found or p < least + NEAR, (message, span, p)
    for span, p in found.items():
        assert p >= least
        assert p == pytest.approx(expected.get(span, 0.0), abs=1e-9), (message, span)


@given(oracle.problems(), st.sampled_from([1e-6, 0.02, 0.1, 0.3, 0.6]))
def test_all_probable_segments_are_found(problem, least):
    expected = {}
    for segmentation, p in oracle.distribution(problem.potentials, *problem[1:4]).items():
        for segment in segmentation:
            expected[tuple(segment)] = expected.get(tuple(segment), 0.0) + p
    automaton, rules = automaton_of(problem), whole_segments(len(problem.limits))
    chances, covers = expected_starts(problem)
    for build in BUILDS:
        with running(build):
            for space in ("auto", "log", "scaled"):
                settings = {"space": space, "starts": starts_like(chances)}
                probable = probable_spans(problem.potentials, automaton, rules, least, **settings)
                if space == "scaled" and np.isnan(probable.log_partition[0]):
                    assert listed(probable) == {}
                    continue
                assert_all_found(listed(probable), expected, least, (build, space))
                assert_starts(settings["starts"], chances, covers)
                total = log_partition(problem.potentials, automaton, space=space)
                assert_allclose(probable.log_partition, total, rtol=1e-12)


def runs(labels, rule):
    """The spans of one rule in a sequence of labels."""
    first, inner, last, only, before = rule
    n = len(labels)
    for start in range(n):
        if labels[start] == only:
            yield start, start + 1
        if labels[start] != first or (start > 0 and labels[start - 1] == before):
            continue
        end = start + 1
        while end < n and labels[end] == inner:
            end += 1
        if last < 0:
            yield start, end
        else:
            yield from (
                (start, at + 1)
                for at in range(start + 1, min(end, n - 1) + 1)
                if labels[at] == last and all(y == inner for y in labels[start + 1 : at])
            )


@given(
    oracle.problems().filter(lambda problem: all(limit == 1 for limit in problem.limits)),
    st.sampled_from([1e-6, 0.05, 0.3]),
    st.randoms(use_true_random=False),
)
def test_all_probable_runs_are_found(problem, least, random):
    labels = range(-1, len(problem.limits))
    rule = [random.choice(labels) for _ in range(5)]
    if (
        rule[2] < 0 or rule[2] == rule[1]
    ):  # a run of one token would be marked in two ways, or go on
        rule[2] = rule[3] = -1
    if random.random() < 0.3:  # a span of tokens with one label, as in "io"
        rule = [0, 0, -1, -1, 0]
    expected = {}
    for segmentation, p in oracle.distribution(problem.potentials, *problem[1:4]).items():
        for start, end in set(runs([segment.label for segment in segmentation], rule)):
            expected[start, end, 0] = expected.get((start, end, 0), 0.0) + p
    automaton, (chances, covers) = automaton_of(problem), expected_starts(problem)
    for build in BUILDS:
        with running(build):
            for space in ("auto", "log"):
                rules = np.array([rule], dtype=np.int32)
                settings = {"space": space, "starts": starts_like(chances)}
                probable = probable_spans(problem.potentials, automaton, rules, least, **settings)
                assert_starts(settings["starts"], chances, covers)
                assert len(listed(probable)) == len(probable.probability)
                assert_all_found(listed(probable), expected, least, (build, space, rule))


@given(oracle.batches(min_size=2))
def test_sequences_of_a_batch_have_the_spans_that_each_has_alone(problems):
    automaton = automaton_of(problems[0])
    rules = whole_segments(len(problems[0].limits))
    together = oracle.batch([problem.potentials for problem in problems])
    chances, covers = map(np.concatenate, zip(*map(expected_starts, problems)))
    for build in BUILDS:
        with running(build):
            starts = starts_like(chances)
            probable = probable_spans(together, automaton, rules, 0.05, starts=starts)
            assert_starts(starts, chances, covers)
            for i, problem in enumerate(problems):
                mine, alone = (
                    listed(probable, i),
                    listed(probable_spans(problem.potentials, automaton, rules, 0.05)),
                )
                assert mine.keys() == alone.keys()
                assert_allclose(list(mine.values()), list(alone.values()), rtol=1e-9)


@given(oracle.batches(min_size=2))
def test_spans_are_in_the_order_of_sequences_starts_and_ends(problems):
    automaton = automaton_of(problems[0])
    together = oracle.batch([problem.potentials for problem in problems])
    for build in BUILDS:
        with running(build):
            rules = whole_segments(len(problems[0].limits))
            spans = probable_spans(together, automaton, rules, 1e-3).spans
            sequence = np.repeat(np.arange(len(problems)), np.diff(spans.offsets))
            rows = list(zip(sequence, spans.start, spans.end, spans.label))
            assert rows == sorted(rows)


def test_starts_that_do_not_fit_are_an_error():
    automaton = compile_automaton([(0,), (1,)], limits=[2, 2])
    known = oracle.plain(np.zeros((3, 2))), automaton, whole_segments(2), 0.1
    fitting = starts_like(np.zeros((3, 2)))
    probable_spans(*known, starts=fitting)
    for name in ("chance", "cover"):
        short = fitting._replace(**{name: getattr(fitting, name)[1:]})
        with pytest.raises(ValueError, match=r"H004.*starts"):
            probable_spans(*known, starts=short)
    with pytest.raises(ValueError, match=r"H138.*starts"):
        probable_spans(*known, starts=fitting._replace(labels=fitting.labels + 1))


@pytest.mark.parametrize(
    "rules", [[[0, 0, 0, 0]], [[-1, -1, -1, 7, -1]], [[-1, -1, -1, -2, -1]], [[0, 0, 0, -1, 0]]]
)
def test_rules_that_do_not_fit_are_an_error(rules):
    automaton = compile_automaton([(0,), (1,)], limits=[2, 2])
    with pytest.raises(ValueError, match=r"H138.*rules"):
        probable_spans(oracle.plain(np.zeros((3, 2))), automaton, np.array(rules), 0.1)


@given(st.data())
def test_the_best_subset_is_that_of_all_subsets(data):
    lengths = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3))
    spans, gains, offsets = [], [], [0]
    for length in lengths:
        pairs = st.tuples(st.integers(0, length), st.integers(0, length))
        ranges = pairs.filter(lambda pair: pair[0] < pair[1])
        drawn = data.draw(st.lists(ranges, max_size=7)) if length else []
        spans += sorted(drawn)
        offsets.append(len(spans))
        gains += [data.draw(st.integers(-2, 5)) / 4 for _ in drawn]
    columns = np.array(spans, dtype=np.int32).reshape(-1, 2)
    table = Segments(
        np.array(offsets), columns[:, 0], columns[:, 1], np.zeros(len(spans), dtype=np.int32)
    )
    chosen = best_subset(table, np.array(gains)).tolist()
    total = 0.0
    for low, high in pairwise(offsets):
        mine = [i for i in chosen if low <= i < high]
        assert disjoint([spans[i] for i in mine])
        every = (
            some
            for n in range(high - low + 1)
            for some in combinations(range(low, high), n)
            if disjoint([spans[i] for i in some])
        )
        best = max(sum(gains[i] for i in some) for some in every)
        assert sum(gains[i] for i in mine) == pytest.approx(best)
        total += best
    assert all(gains[i] > 0 for i in chosen)


def disjoint(spans):
    return all(a[1] <= b[0] or b[1] <= a[0] for a, b in combinations(spans, 2))
