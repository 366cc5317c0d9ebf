"""The synthetic project: the Markov models are as the paper describes them, the sweep and its
tables count what they say.
"""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from project_checks import table_rows

LOADS = ("synthetic",)


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


def test_exclusive_patterns_of_many_models_are_beside_the_papers(load, tmp_path):
    path = tmp_path / "exclusive.md"
    load("exclusive").main(draws=3, output=path)
    rows = table_rows(path.read_text(encoding="utf8"))[2:]
    assert [row[:4] for row in rows[::6]] == [
        ["2", "300", "training", "9.2%"],
        ["3", "300", "training", "8.7%"],
    ]
    assert all(0 < float(row[4].rstrip("%")) <= float(row[5].rstrip("%")) for row in rows)
