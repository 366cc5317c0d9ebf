"""Several systems against the first, and several runs of one: by hand, and against `compare_counts`."""

from statistics import mean, stdev

import numpy as np
import pytest
from pytest import approx

from spacy_hocrf.cli.compare import compare_counts
from spacy_hocrf.cli.counts import Counts
from spacy_hocrf.cli.systems import compare_systems, table_of_systems


@pytest.fixture
def counts():
    """Four runs, forty documents of which thirty are annotated completely, and two labels."""
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 4, (40, 2), dtype=np.int32)
    correct = np.stack([rng.integers(0, gold + 1, dtype=np.int32) for _ in range(4)])
    correct[1] = np.maximum(correct[0], correct[1])  # the better one
    predicted = correct + rng.integers(0, 2, correct.shape, dtype=np.int32)
    return Counts(("A", "B"), correct, predicted, gold, np.arange(40) < 30)


def test_each_is_compared_with_the_first_as_a_pair_is(counts):
    systems = [("one", [0]), ("two", [1]), ("three", [2]), ("four", [3])]
    first, *others = compare_systems(counts, systems, trials=500, seed=1)
    pairs = [compare_counts(counts, 0, i, trials=500, seed=1) for i in (1, 2, 3)]
    for place in ("all", "texts"):
        assert "p_value" not in first[place]
        assert {"f": first[place]["f"]}.items() <= pairs[0][place]["a"].items()
        for system, pair in zip(others, pairs):
            same = pair[place]
            assert system[place]["f"] == same["b"]["f"] and system[place]["gold"] == same["gold"]
            assert system[place]["difference"] == approx(same["difference"])
            assert (system[place]["differ"], system[place]["p_value"]) == (
                same["differ"],
                approx(same["p_value"], abs=0.06),  # the shuffles are others
            )
        p = [system[place]["p_value"] for system in others]
        least = min(range(3), key=p.__getitem__)
        assert others[least][place]["p_holm"] == approx(min(1.0, 3 * p[least]))


def test_runs_are_averaged_and_swapped_together(counts):
    # two of one system against one of another: every count of the latter is there twice
    twice = Counts(
        counts.labels,
        np.stack([counts.correct[:2].sum(axis=0), 2 * counts.correct[2]]),
        np.stack([counts.predicted[:2].sum(axis=0), 2 * counts.predicted[2]]),
        2 * counts.gold,
        counts.complete,
    )
    one, other = compare_systems(counts, [("a,b", [0, 1]), ("one", [2])], trials=999)
    expected = compare_systems(twice, [("runs", [0]), ("one", [1])], trials=999)
    assert other["all"]["p_value"] == expected[1]["all"]["p_value"]
    assert (one["all"]["low"], one["all"]["high"]) == (
        expected[0]["all"]["low"],
        expected[0]["all"]["high"],
    )
    alone = [compare_systems(counts, [("x", [i])])[0] for i in (0, 1)]
    assert one["runs"] == [each["all"]["f"] for each in alone]
    for key in "prf":
        assert one["all"][key] == approx(mean(each["all"][key] for each in alone))
    assert one["texts"]["f"] == approx(mean(each["texts"]["f"] for each in alone))
    header, rows = table_of_systems([one, other], "system", 999)
    assert [row[0] for row in rows] == ["a, 2 runs", "one"]
    assert header[4] == "±" and [row[4] for row in rows] == [f"{100 * stdev(one['runs']):.2f}", ""]


def test_the_interval_has_f1_in_it_and_is_narrower_with_more_documents(counts):
    more = Counts(
        counts.labels,
        *(np.tile(each, (1, 9, 1)) for each in (counts.correct, counts.predicted)),
        np.tile(counts.gold, (9, 1)),
        np.tile(counts.complete, 9),
    )
    few, many = (compare_systems(each, [("x", [0])])[0]["all"] for each in (counts, more))
    assert few["low"] < few["f"] < few["high"] and few["f"] == approx(many["f"])
    assert (few["high"] - few["low"]) / (many["high"] - many["low"]) == approx(3, rel=0.15)
