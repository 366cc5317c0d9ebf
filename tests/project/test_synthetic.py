"""The synthetic project: the Markov models are as the paper describes them, the sweep and its
tables count what they say.
"""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from project_checks import table_rows

PROJECT = Path(__file__).parents[2] / "project" / "synthetic"
SCRIPTS = PROJECT / "scripts"
LOADS = ("synthetic",)

pytestmark = pytest.mark.skipif(
    not PROJECT.exists(), reason="project/synthetic is not in this distribution"
)


@pytest.fixture(scope="module")
def markov(load):
    return load("markov")


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_generator_lets_r_different_states_follow_each_history(markov, k):
    generator = markov.make_generator(np.random.default_rng(0), k)
    assert generator.following.shape == generator.probability.shape == (5**k, 2)
    assert all(len(set(row)) == 2 for row in generator.following.tolist())
    assert_allclose(generator.probability.sum(axis=1), 1.0)
    assert (
        generator.mean.shape == (5, 3) and 0 <= generator.mean.min() and generator.mean.max() <= 1
    )


@pytest.mark.parametrize("k", [1, 2, 3])
def test_sequences_follow_their_generator(markov, k):
    random = np.random.default_rng(1)
    generator = markov.make_generator(random, k)
    states = markov.draw(random, generator, 10_000, length=6).states
    starts = {tuple(row) for row in states[:, :k].tolist()}
    assert len(starts) == 5**k, "a sequence begins with any states"
    for first in range(6 - k):
        for *history, state in states[:, first : first + k + 1].tolist():
            number = int("".join(map(str, history)), 5)
            assert state in generator.following[number]
    windows = np.concatenate([states[:, i : i + k + 1] for i in range(6 - k)])
    history = windows[np.random.default_rng(0).integers(len(windows)), :k].tolist()
    number = int("".join(map(str, history)), 5)
    after = windows[(windows[:, :k] == history).all(axis=1), k]
    assert len(after) > 100
    assert (after == generator.following[number, 0]).mean() == pytest.approx(
        generator.probability[number, 0], abs=0.1
    )


def test_observations_are_means_and_scaled_noise(markov):
    random = np.random.default_rng(2)
    generator = markov.make_generator(random, 2)
    sample = markov.draw(random, generator, 2000)
    near, far = (markov.observe(generator, sample, sigma) for sigma in (0.0, 0.5))
    assert_array_equal(near, generator.mean[sample.states])
    assert_allclose((far - near).std(axis=(0, 1)), 0.5, atol=0.02)
    assert_allclose((far - near).mean(axis=(0, 1)), 0.0, atol=0.02)


def test_everything_drawn_is_decided_by_the_seed(markov):
    def drawn(seed):
        random = np.random.default_rng(seed)
        generator = markov.make_generator(random, 2)
        return markov.observe(generator, markov.draw(random, generator, 3), 1.0)

    assert_array_equal(drawn(7), drawn(7))
    assert not np.array_equal(drawn(7), drawn(8))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_most_likely_states_are_those_of_enumeration(markov, k):
    random = np.random.default_rng(k)
    generator = markov.make_generator(random, k, states=3)
    length, sigma = 5, 0.3
    observations = markov.observe(generator, markov.draw(random, generator, 4, length), sigma)
    for numbers, found in zip(
        observations, markov.most_likely_states(generator, observations, sigma)
    ):
        mass = np.zeros((length, 3))
        for states in product(range(3), repeat=length):
            weight = 1.0
            for t in range(k, length):
                number = int("".join(map(str, states[t - k : t])), 3)
                places = np.flatnonzero(generator.following[number] == states[t])
                weight *= generator.probability[number, places[0]] if len(places) else 0.0
            weight *= np.exp(
                -((numbers - generator.mean[list(states)]) ** 2).sum() / (2 * sigma**2)
            )
            mass[range(length), states] += weight
        assert found.tolist() == mass.argmax(axis=1).tolist()


def test_exclusive_patterns_are_counted_as_in_table_2(markov):
    one, other = np.array([[0, 1, 2, 0], [0, 1, 2, 0]]), np.array([[1, 2, 0, 0]])
    # 01 twice; 12 and 20 are in both
    assert markov.count_exclusive(one, other, length=2) == (1, 3, 2)
    assert markov.count_exclusive(other, one, length=2) == (1, 3, 1)  # 00
    assert markov.count_exclusive(one, one, length=2) == (0, 3, 0)


@pytest.fixture(scope="module")
def small_sweep(load):
    sweep, random = load("sweep"), np.random.default_rng([0, 0, 2])
    return [
        {"draw": 0, "k": 2, **found}
        for found in sweep.sweep(random, 2, [60, 120], [0.4], [0, 1, 2, 3], 1.0)
    ]


def test_sweep_has_every_size_and_order(load, small_sweep):
    trained = [found for found in small_sweep if found["what"] == "CRF"]
    assert [(found["size"], found["order"]) for found in trained] == [
        (size, k) for size in (60, 120) for k in range(4)
    ]
    patterns = [found["patterns"] for found in trained[4:]]
    assert (
        patterns[0] == 5
        and patterns[1] == 5 + 25
        and 40 < patterns[2] - patterns[1] <= 50
        and patterns[3] - patterns[2] <= 100
    )
    assert all(found["features"] == 5 * 9 + found["patterns"] for found in trained)


def test_accuracy_rises_up_to_the_generators_order(small_sweep):
    accuracy = [
        found["accuracy"]
        for found in small_sweep
        if found.get("size") == 120 and found["what"] == "CRF"
    ]
    (ceiling,) = (found["accuracy"] for found in small_sweep if found["what"] == "ceiling")
    assert accuracy[2] > accuracy[1] + 5 > accuracy[0] + 5
    assert accuracy[3] < accuracy[2] + 1
    assert max(accuracy) < ceiling + 1


def test_report_has_a_table_for_each_generator_and_draws_a_plot(
    load, small_sweep, tmp_path, check_plot
):
    again = [{**found, "draw": 1} for found in small_sweep]
    for found in again:
        if "accuracy" in found:
            found["accuracy"] = found["accuracy"] + 1
    (tmp_path / "sweep.jsonl").write_text(
        "\n".join(json.dumps(found) for found in [*small_sweep, *again])
    )
    load("report").main(tmp_path / "sweep.jsonl", tmp_path / "results.md")
    text = (tmp_path / "results.md").read_text(encoding="utf8")
    assert text in check_plot(tmp_path / "results.png")
    rows = table_rows(text)
    accuracy = [
        found["accuracy"]
        for found in small_sweep
        if found.get("size") == 60 and found["what"] == "CRF"
    ]
    row, gain = (row for row in rows if row[:2] == ["0.4", "60"])
    assert row[2:6] == [f"{value + 0.5:.2f}" for value in accuracy]
    assert gain[2:4] == [f"{accuracy[2] - accuracy[1]:+.2f} ± 0.00", "2 of 2"]
    assert gain[4] == gain[5] == f"{accuracy[3] - accuracy[2]:+.2f} ± 0.00"
    (patterns,) = (
        found for found in small_sweep if found["what"] == "patterns" and found["size"] == 60
    )
    (row,) = (row for row in rows if row[:2] == ["2", "60"])
    exclusive, every, _ = patterns["train"]
    assert row[2] == f"{exclusive}/{every} ({100 * exclusive / every:.1f}%)" and row[4:6] == [
        "",
        "",
    ]


def test_papers_table_is_beside_ours(load):
    counts = [
        {
            "what": "patterns",
            "draw": 0,
            "k": 3,
            "size": 400,
            "train": (1, 10, 2),
            "test": (2, 20, 3),
        }
    ]
    assert load("report").pattern_rows(counts) == [
        ("3", "400", "1/10 (10.0%)", "2/20 (10.0%)", "37/406", "48/417", "3")
    ]


def accuracy(draw, k, noise, order):
    """Order k makes half of the errors of those below it; beyond it there are a few more."""
    errors = 100 * noise * (2 if order < k else 1) + noise * max(0, order - k)
    return 100 + draw - errors


def test_figure_1_is_compared_from_its_results_alone(load, tmp_path, check_plot):
    lines = [
        {"what": what, "draw": draw, "k": k, "noise": noise, "seconds": 0.5, **more}
        for draw in (0, 1)
        for k in (2, 3)
        for noise in (0.01, 0.05, 0.1)
        for what, more in [
            ("ceiling", {"accuracy": 99.0}),
            *(
                ("CRF", {"size": 500, "order": order, "accuracy": accuracy(draw, k, noise, order)})
                for order in (1, 2, 3, 4)
            ),
        ]
    ]
    (tmp_path / "paper.jsonl").write_text("\n".join(map(json.dumps, lines)))
    load("paper").main(tmp_path / "paper.jsonl", tmp_path / "paper.md")
    text = (tmp_path / "paper.md").read_text(encoding="utf8")
    assert text in check_plot(tmp_path / "paper.png")
    rows = table_rows(text)
    assert ["2", "0.1", "80.50 ± 0.71", "90.50 ± 0.71"] in [row[:4] for row in rows]
    ours = {row[0]: row[2:] for row in rows}
    assert ours["accuracies, k = 2"][0] == (
        "means from 80.5 to 99.5, single models from 80.0 to 100.0"
    )
    assert ours["order 3 less order 2 at σ = 0.1"] == [
        "+10.00 ± 0.00, a gain in 2 of 2; the first model +10.00",
        "order 2 leaves 19.50 to be gained",
    ]
    assert ours["order 2 less order 1 at σ = 0.05"][0].startswith("+5.00 ± 0.00, ")
    assert ours["orders above 2 less order 2, k = 2"][0] == "means of -0.20 to -0.01"
