"""Simulated workers in project/benchmark: sums that never change, and the times of `hocrf plan`."""

import pytest
from project_checks import PROJECTS, table_rows

from spacy_hocrf.cli.plan.costs import Cluster, Rates, Scale, evaluation

LOADS = ("benchmark",)

pytestmark = pytest.mark.skipif(
    not PROJECTS.exists(), reason="project/ is not in this distribution"
)

RATES = Rates(1e-6, 5e-10, 1e-9, 2e-9, 3e-9, 4e-8)
SCALE = Scale(1e8, 2e6, 3e6)


@pytest.fixture(scope="module")
def team(load):
    return load("simulated_team")


def simulated(team, workers, chances, parts=128, cores=4, keeps=True, seed=0, bandwidth=1e10):
    cluster = Cluster(workers, parts, cores, bandwidth)
    return team.simulate(cluster, RATES, SCALE, chances, keeps, seed)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("workers", [1, 7, 32, 100, 300])
def test_sums_are_the_same_to_the_last_bit_whoever_is_slow_or_dies(team, workers, keeps):
    expected = simulated(team, 1, team.CALM).digest
    deaths = 0
    for seed in range(4):
        chances = team.Chances(failure=min(0.2, 0.01 * workers), back=1.0)
        found = simulated(team, workers, chances, keeps=keeps, seed=seed)
        assert found.digest == expected
        deaths += found.deaths
    assert deaths


def test_sums_depend_on_the_order_of_additions(team):
    """So that equal ones say something: other parts have other sums, and other orders would."""
    assert simulated(team, 1, team.CALM).digest != simulated(team, 1, team.CALM, parts=64).digest
    numbers = team.SimulatedTeam(Cluster(1, 8, 1, 1e9), RATES, SCALE, team.CALM)
    leaves = [numbers._hands(None)[0].leaf(i).counts.numbers for i in range(8)]
    assert (sum(leaves) != sum(leaves[::-1])).any()


@pytest.mark.parametrize("workers", [1, 4, 32, 128])
def test_without_delays_it_takes_what_the_formula_says(team, workers):
    cluster = Cluster(workers, 128, 4, 1e10)
    predicted = evaluation(RATES, SCALE, cluster).seconds
    assert simulated(team, workers, team.CALM).seconds == pytest.approx(predicted, rel=0.1)


def test_parts_of_their_own_save_traffic(team):
    some = {keeps: simulated(team, 32, team.USUAL, keeps=keeps) for keeps in (False, True)}
    assert some[True].sent < 0.5 * some[False].sent
    assert some[True].digest == some[False].digest


def test_the_tables_and_the_plot(load, tmp_path, check_plot, monkeypatch):
    script = load("simulation")
    monkeypatch.setattr(script, "measured", lambda *_: (RATES, SCALE))
    script.main(tmp_path / "simulation.md", tmp_path, sentences=1000, sample=100, parts=64)
    check_plot(tmp_path / "simulation.png")
    rows = table_rows((tmp_path / "simulation.md").read_text(encoding="utf8"))
    runs = [row for row in rows if len(row) == len(script.HEADER)][1:]
    assert {row[-1] for row in runs if row[0][0].isdigit()} == {"the same"}
    assert [row[1] for row in runs if row[0] == "1.25"] == ["1", "10"]
    assert ["sentences", "1,000"] in rows
