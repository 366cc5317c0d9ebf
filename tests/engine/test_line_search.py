"""The line search on functions of one step: where it ends, and that it ends."""

import math

import pytest

from spacy_hocrf.engine.line_search import CURVATURE, DECREASE, Probe, strong_wolfe


def search(function, first_step, max_probes=40):
    """Steps of one line search on a function of the step that returns (value, derivative), and
    whether it succeeded.
    """
    steps = strong_wolfe(*function(0.0), first_step, max_probes)
    tried = [next(steps)]
    while True:
        try:
            tried.append(steps.send(Probe(tried[-1], *function(tried[-1]))))
        except StopIteration as end:
            return tried, end.value


# Functions 1 and 2 of Moré and Thuente, Line search algorithms with guaranteed sufficient decrease
# (ACM TOMS 20, 1994); a wave whose trend falls, so that the bracket holds many minima; and a cliff,
# a stair and a wall behind the minimum.
LINES = {
    "more-thuente 1": lambda a: (-a / (a * a + 2), (a * a - 2) / (a * a + 2) ** 2),
    "more-thuente 2": lambda a: (
        (a + 0.004) ** 5 - 2 * (a + 0.004) ** 4,
        5 * (a + 0.004) ** 4 - 8 * (a + 0.004) ** 3,
    ),
    "wave": lambda a: (0.02 * a * a - a - 2 * math.sin(3 * a), 0.04 * a - 1 - 6 * math.cos(3 * a)),
    "cliff": lambda a: (a**50 - a, 50 * a**49 - 1),
    "stair": lambda a: (
        -a + 5e5 * (1 + math.tanh(9 * a - 432)),
        -1 + 45e5 / math.cosh(min(abs(9 * a - 432), 300)) ** 2,
    ),
    "wall": lambda a: (
        (math.inf, math.nan) if a >= 0.7 else (-a - math.log(0.7 - a) * 0.01, -1 + 0.01 / (0.7 - a))
    ),
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("first_step", [1e-3, 1e-1, 1.0, 10.0, 50.0, 1e3])
def test_line_search_ends_in_a_step_that_satisfies_the_strong_wolfe_conditions(name, first_step):
    function = LINES[name]
    tried, found = search(function, first_step)
    (f, slope), (end_f, end_slope) = function(0.0), function(tried[-1])
    assert found
    assert tried[0] == first_step
    assert len(set(tried)) == len(tried) <= 24
    assert end_f <= f + DECREASE * tried[-1] * slope
    assert end_f == min(function(a)[0] for a in tried if function(a)[0] <= f + DECREASE * a * slope)
    assert abs(end_slope) <= CURVATURE * abs(slope)


@pytest.mark.parametrize("max_probes", [1, 2, 7])
def test_line_search_gives_up_after_max_probes(max_probes):
    never_low, never_flat = (lambda a: (a, -1.0)), (lambda a: (-a, -1.0))
    valley = lambda a: (-a, -1.0) if a < 0.6 else (a - 1.2, 1.0)  # noqa: E731
    for line in (never_low, never_flat, valley):
        tried, found = search(line, 1.0, max_probes)
        assert (len(tried), found) == (max_probes, False)
