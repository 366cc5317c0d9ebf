"""Twenty problems whose answers are stated: what decoding finds, what it proves, and what it leaves
open.

Ten are written down here, small enough for enumeration; ten are of the problems with proved optima
that lie beside the corpora. A change that makes a relaxation looser, or a search worse, fails here
even where bound ≥ optimum ≥ primal still holds.
"""

from itertools import combinations

import pytest
from graph_problems import needs_oracle, optimum, proved

from spacy_hocrf.graph.dual import dual_decompose
from spacy_hocrf.graph.instance import make_instance
from spacy_hocrf.graph.settings import DualSettings

BOUND = 1e-3  # nats; processors that fuse products and sums round otherwise


def agreeing(pairs, states, weight):
    return [(pair, (s, s), weight) for pair in pairs for s in range(states)]


PAIRS_OF_SIX = [(v, (v + 1) % 6) for v in range(6)]
GRID = [(v, v + 1) for v in range(9) if v % 3 < 2] + [(v, v + 3) for v in range(6)]
PHRASES = [((0, 1, 4, 5), (b, i, b, i), 3.0) for b, i in ((1, 2), (2, 1))]

KINDS = ("hybrid", "two_slave", "naive")
# unary scores, patterns, the optimum, and the bounds of KINDS where no vertex is eliminated: those
# that equal the optimum are certificates, the others the limits of their relaxations
OURS = {
    "a chain": (
        [[0.0, 1.0, 0.5], [0.5, 0.0, 0.0], [0.0, 0.25, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.75]],
        agreeing([(v, v + 1) for v in range(4)], 3, 0.75),
        5.25,
        (5.25, 5.25, 5.25),
    ),
    "a triangle that cannot disagree": (
        [[0.0, 0.0]] * 3,
        agreeing(combinations(range(3), 2), 2, -1.0),
        -1.0,
        (0.0, 1.0, 0.0),
    ),
    "a ring that likes to agree": (
        [[0.0, 1.0], [1.5, 0.0], [0.0, 0.5], [0.0, 0.25], [2.0, 0.0], [0.0, 1.25]],
        agreeing(PAIRS_OF_SIX, 2, 0.625),
        8.25,
        (8.25, 8.25, 8.25),
    ),
    "a phrase that occurs twice": (
        [
            [1.0, 0.0, 0.0],
            [1.0, 0.5, 0.0],
            [0.0] * 3,
            [0.5, 0.0, 0.25],
            [0.0, 2.0, 0.0],
            [0.0, 0.0, 1.0],
        ],
        [*PHRASES, *agreeing([(2, 3)], 3, 0.5)],
        7.0,
        (7.0, 7.0, 7.0),
    ),
    "three that must not agree": (
        [[0.0, 1.0], [0.25, 1.0], [0.0, 0.5], [1.0, 0.0]],
        [*agreeing([(0, 3), (1, 3)], 2, 0.5), ((0, 1, 2), (1, 1, 1), -4.0)],
        3.25,
        (3.25, 13.25, 3.25),
    ),
    "four that must not agree": (
        [[0.0, 2.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.5, 0.0]],
        [*agreeing([(0, 4), (3, 4)], 2, 1.0), ((0, 1, 2, 3), (1, 1, 1, 1), -8.0)],
        6.0,
        (6.0, 48.75, 6.0),
    ),
    "friends and enemies": (
        [[0.0, 0.125], [0.0, 0.25], [0.5, 0.0], [0.0, 0.0], [0.75, 0.0], [0.0, 1.0]],
        [*agreeing([(0, 3), (1, 4), (2, 5)], 2, -1.25), *agreeing(PAIRS_OF_SIX, 2, 0.75)],
        5.625,
        (5.8125, 5.8125, 5.8125),
    ),
    "vertices of one, two and three states": (
        [[0.5], [0.0, 1.0], [0.0, 0.5, 0.0], [0.25], [1.0, 0.0, 0.0]],
        [((0, 2), (0, 2), 1.5), ((1, 2, 4), (0, 2, 1), 2.25), ((2, 4), (2, 0), -0.5)],
        4.5,
        (4.5, 4.5, 4.5),
    ),
    "a grid": (
        [[0.0, s / 8] for s in (5, -7, 3, -2, 6, -5, 1, 4, -3)],
        [*agreeing(GRID, 2, 0.5), *[((v, v + 1, v + 3), (0, 1, 0), -0.75) for v in (0, 1, 3, 4)]],
        6.25,
        (6.25, 9.875, 6.25),
    ),
    "patterns that share cells": (
        [[0.0, 0.5, 0.0], [0.25, 0.0, 0.0], [0.0, 0.0, 0.5], [0.0] * 3],
        [
            ((0, 1, 2), (0, 0, 0), 1.5),
            ((0, 1, 2), (0, 0, 1), 1.0),
            ((0, 1, 2), (0, 1, 1), 1.75),
            ((1, 2, 3), (2, 2, 2), 1.25),
            ((0, 3), (1, 2), 0.5),
        ],
        2.75,
        (2.75, 2.861, 2.75),
    ),
}

# beside the corpora: primal, bound and certificate of hybrid with its own settings
THEIRS = {
    "skip-110-0": (81.09375, 81.09375, True),
    "skip-114-0": (84.859375, 85.5115, False),
    "phrase-110-0": (39.375, 39.375, True),
    "phrase-118-0": (94.625, 95.6973, False),
    "mixed-102-0": (38.859375, 38.8745, False),
    "mixed-110-0": (37.96875, 37.96875, True),
    "neg-108-0": (14.53125, 14.53125, True),
    "neg-112-0": (56.90625, 56.9716, False),
    "grid-118-0": (50.125, 50.125, True),
    "hard-116-0": (42.140625, 45.1941, False),
}


@pytest.mark.parametrize("name", OURS)
def test_the_stated_optimum_is_that_of_enumeration(name):
    unary, patterns, best, _ = OURS[name]
    assert optimum(make_instance(unary, patterns)) == best


@pytest.mark.parametrize("name", OURS)
def test_elimination_finds_and_proves_it(name):
    unary, patterns, best, _ = OURS[name]
    found = dual_decompose(make_instance(unary, patterns))
    assert (found.primal, found.bound, found.certificate, found.iterations) == (best, best, True, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OURS)
def test_bounds_are_those_of_the_relaxation(name, kind):
    unary, patterns, best, bounds = OURS[name]
    bound = bounds[KINDS.index(kind)]
    settings = DualSettings(kind=kind, local_search=True)
    found = dual_decompose(make_instance(unary, patterns), settings, most_entries=0)
    assert found.primal == best
    assert found.bound == pytest.approx(bound, abs=BOUND)
    assert found.certificate == (bound == best)


@pytest.mark.slow
@needs_oracle
def test_proved_problems_have_the_stated_bounds_and_certificates():
    seen = set()
    for problem, instance in proved():
        if problem["id"] in THEIRS:
            primal, bound, certificate = THEIRS[problem["id"]]
            found = dual_decompose(instance)
            assert found.primal == primal == problem["optimum"], problem["id"]
            assert found.bound == pytest.approx(bound, abs=BOUND), problem["id"]
            assert found.certificate == certificate, problem["id"]
            seen.add(problem["id"])
    assert seen == set(THEIRS)
