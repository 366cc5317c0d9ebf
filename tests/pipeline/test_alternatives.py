"""Other readings of a text: the best ones and random ones, against enumeration of all segmentations."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from chi_square import chi_square_is_high
from numpy.testing import assert_allclose
from random_readings import KINDS, Enumerated

from spacy_hocrf.pipeline import blanks

PROBLEMS = 50  # of each kind


@pytest.fixture(scope="module")
def of_every_kind():
    found = {
        kind: [
            problem
            for seed in range(PROBLEMS)
            for problem in [Enumerated(kind, seed)]
            if len(problem.every)
        ]
        for kind in KINDS
    }
    assert sum(map(len, found.values())) >= 300
    return found


@pytest.fixture(params=KINDS)
def problems(request, of_every_kind):
    return of_every_kind[request.param]


def readings_of(problem):
    """Probability of each reading, and that of its most probable segmentation."""
    together, best = Counter(), Counter()
    for spans, p in zip(problem.shown(), problem.p):
        together[spans] += p
        best[spans] = max(best[spans], p)
    return together, best


def logs(readings):
    return [each.log_probability for each in readings]


def test_all_readings_come_each_once_with_their_probabilities(problems):
    several = 0
    for problem in problems:
        expected, best = readings_of(problem)
        found = list(problem.reading.alternatives())
        assert len(found) == len(expected)
        assert {frozenset(each.spans) for each in found} == set(expected)
        for each in found:
            assert list(each.spans) == sorted(each.spans)
            assert each.probability == pytest.approx(expected[frozenset(each.spans)], rel=1e-9)
        order = np.array([best[frozenset(each.spans)] for each in found])
        assert (order[1:] <= order[:-1] * (1 + 1e-9)).all()
        several += len(expected) < len(problem.every)
    assert several > 5 or not any(problem.blank.any() for problem in problems)


@pytest.mark.parametrize("n", [1, 2, 7, 10**4])
def test_the_n_best_are_the_first_n(problems, n):
    for problem in problems:
        every = list(problem.reading.alternatives())
        best = problem.reading.best(n)
        assert [each.spans for each in best] == [each.spans for each in every[:n]]
        assert_allclose(logs(best), logs(every[:n]), atol=1e-9)


def test_random_readings_have_their_probabilities(problems):
    for seed, problem in enumerate(problems):
        expected, _ = readings_of(problem)
        drawn = Counter(map(frozenset, problem.reading.sample(500, seed)))
        assert set(drawn) <= set(expected)
        readings = list(expected)
        counts, p = [drawn[each] for each in readings], [expected[each] for each in readings]
        assert not chi_square_is_high(counts, p)


def test_a_seed_determines_the_sample(of_every_kind):
    problem = max(of_every_kind["bio"], key=lambda problem: len(problem.every))
    one = problem.reading.sample(20, seed=3)
    assert problem.reading.sample(20, seed=3) == one
    assert problem.reading.sample(5, seed=3) == one[:5]
    assert problem.reading.sample(20, seed=4) != one


def with_white_space_between(problem):
    """Are there readings with two spans of one label and nothing but white space between them?"""
    blank = problem.blank
    return any(
        a[2] == b[2] and a[1] < b[0] and blank[a[1] : b[0]].all()
        for spans in problem.shown()
        for a in spans
        for b in spans
    )


@pytest.mark.parametrize("kind", ["io", "bio", "bieso", "labelled"])
def test_too_much_white_space_to_sum_over_ends_the_readings(kind, monkeypatch, of_every_kind):
    problem = next(filter(with_white_space_between, of_every_kind[kind]))
    every = list(problem.reading.alternatives())
    monkeypatch.setattr(blanks, "MOST_VARIANTS", 1)
    with pytest.raises(ValueError, match="H201"):
        list(problem.reading.alternatives())
    with pytest.raises(ValueError, match="H201"):
        problem.reading.best(len(every))
    alternatives = problem.reading._together.alternatives
    # as predictions do, which must not fail
    found = alternatives.best(0, len(every), problem.reading.log_partition)
    assert logs(found) == logs(every[: len(found)])
    assert len(found) < len(every)


@pytest.mark.parametrize("n", [0, -1, 2.0, None])
def test_how_many_readings_must_be_a_number(n, of_every_kind):
    reading = of_every_kind["tokens"][0].reading
    with pytest.raises(ValueError, match=r"H210.*n = "):
        reading.best(n)
    with pytest.raises(ValueError, match=r"H210.*n = "):
        reading.sample(n)


def test_readings_are_found_when_they_are_asked_for(of_every_kind):
    problem = max(of_every_kind["tokens"], key=lambda problem: len(problem.every))
    found = problem.reading.alternatives()
    first = list(islice(found, 2))
    assert [each.spans for each in first] == [each.spans for each in problem.reading.best(2)]
    assert next(found).spans == problem.reading.best(3)[2].spans
