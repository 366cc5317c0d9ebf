"""project/benchmark/scripts/growth.py: its patterns, its exponents and the paper's bound; no time."""

import pytest
from project_checks import PROJECTS, table_rows

LOADS = ("benchmark",)

pytestmark = pytest.mark.skipif(
    not PROJECTS.exists(), reason="project/ is not in this distribution"
)


@pytest.fixture(scope="module")
def growth(load):
    return load("growth")


def test_patterns_are_as_many_as_they_say(growth):
    assert growth.all_pairs(3) == [(a, b) for a in range(3) for b in range(3)]
    pairs = growth.sparse_pairs(20)
    assert len(set(pairs)) == 20 * growth.FOLLOWERS
    assert {first for first, _ in pairs} == set(range(20))
    assert growth.sparse_pairs(2) == growth.all_pairs(2)
    found = growth.triples(100)
    assert sum(len(each) == 3 for each in found) == len({*found} - {each[:2] for each in found})
    assert {each for each in found if len(each) == 2} == {
        each[:2] for each in found if len(each) == 3
    }


@pytest.mark.parametrize(
    "limit, longest", [(1, 1), (4, 4), (0, 30)], ids=["tokens", "limit", "any length"]
)
def test_the_bound_is_that_of_the_paper(growth, limit, longest):
    """Forward T L Y P, backward T L Y S with S = P Y, marginals T L Z P."""
    problem = growth.Problem(30, 5, growth.all_pairs(5), limit)
    expected = 30 * longest * (5 * 6 + 5 * 5 * 6 + 30 * 6)
    assert growth.bound(problem, 6, 30) == growth.TEXTS * expected
    _, automaton, _ = growth.prepare(problem)
    assert (len(automaton.states), len(automaton.patterns)) == (6, 30)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_exponents_are_those_of_the_larger_half(growth, power):
    """What is small may cost something else."""
    points = [growth.Point(size, 1, 1, float(size) ** power, 1.0) for size in (8, 16, 32, 64)]
    points = [growth.Point(2, 1, 1, 7.0, 5.0), growth.Point(4, 1, 1, 9.0, 3.0), *points]
    assert growth.exponent(points, "seconds") == pytest.approx(power)
    assert growth.exponent(points, "bound") == 0.0


def test_every_curve_has_its_row_and_is_drawn(growth, tmp_path, check_plot):
    growth.main(tmp_path / "growth.md", rounds=1, points=2)
    check_plot(tmp_path / "growth.png")
    _, _, *rows = table_rows((tmp_path / "growth.md").read_text(encoding="utf8"))
    assert [row[:2] for row in rows] == [[curve.letter, curve.name] for curve in growth.CURVES]
    first = growth.CURVES[0]
    assert rows[0][2] == f"{first.sizes[0]} to {first.sizes[1]}"
    assert rows[0][-2:] == ["2", "1.00"]
