"""Weights of named features that graphs share: scores, and learning."""

from itertools import product

import numpy as np
import pytest
import srsly
from numpy.testing import assert_allclose

from spacy_hocrf.api import DualSettings, FeatureGraph, dual_decompose, learn_graphs

STATES = (2, 3, 2, 2)
TRUE = {"a": 1.5, "b": -1.0, "same": 2.0, "never": -3.0}


def random_graph(rng):
    """Vertices with observations, pairs that like to agree, and a triple."""
    cells = [(v, s) for v, n in enumerate(STATES) for s in range(n)]
    events = [((v,), (s,), str(rng.choice(["a", "b"])), rng.normal()) for v, s in cells]
    pairs = [(0, 2), (2, 3), (0, 3)]
    events += [(pair, (s, s), "same", 1.0) for pair in pairs for s in (0, 1)]
    events.append(((0, 1, 3), (1, 2, 0), "never", 1.0))
    return FeatureGraph(STATES, events)


def every(graph, weights):
    """The score of each assignment, by definition."""
    return {
        y: sum(weights.get(name, 0.0) * count for name, count in graph.counts(y).items())
        for y in product(*map(range, STATES))
    }


def corpus(n, seed=0):
    rng = np.random.default_rng(seed)
    graphs = [random_graph(rng) for _ in range(n)]
    return graphs, [max(scores := every(graph, TRUE), key=scores.get) for graph in graphs]


def test_an_instance_scores_what_the_features_count():
    rng = np.random.default_rng(1)
    for _ in range(20):
        graph, weights = random_graph(rng), {name: rng.normal() for name in ("a", "b", "same")}
        instance, scores = graph.instance(weights), every(graph, weights)
        for y, score in scores.items():
            assert instance.score(np.array(y, dtype=np.int32)) == pytest.approx(score, abs=1e-9)
        decoding = dual_decompose(instance)
        assert decoding.primal <= max(scores.values()) + 1e-9 <= decoding.bound + 2e-9


@pytest.mark.slow
def test_weights_are_learnt_saved_and_used_again(tmp_path):
    graphs, annotated = corpus(60)
    weights = learn_graphs(graphs, annotated, sigma=10.0)
    srsly.write_json(tmp_path / "weights.json", weights)
    weights = srsly.read_json(tmp_path / "weights.json")
    unseen, right = corpus(40, seed=7)
    wrong = 0
    for graph, y in zip(unseen, right):
        wrong += (dual_decompose(graph.instance(weights)).assignment != np.array(y)).sum()
    assert wrong <= 8  # of 160 vertices
    assert weights["same"] > 0 > weights["b"]


@pytest.mark.slow
def test_the_largest_margin_is_the_minimum_of_its_objective():
    graphs, annotated = corpus(8)
    sigma = 0.7
    names = sorted({name for graph in graphs for name in graph.names})

    def value(w):
        weights, total = dict(zip(names, w)), 0.5 * float(w @ w) / sigma**2
        for graph, y in zip(graphs, annotated):
            scores = every(graph, weights)
            losses = {z: sum(a != b for a, b in zip(y, z)) for z in scores}
            total += max(losses[z] + scores[z] - scores[tuple(y)] for z in scores)
        return total

    found = learn_graphs(graphs, annotated, sigma=sigma, settings=DualSettings(max_iterations=2000))
    w = np.array([found[name] for name in names])
    rng, here = np.random.default_rng(0), value(w)
    for scale in (0.3, 0.1, 0.03):
        nearby = [value(w + scale * rng.normal(size=len(w))) for _ in range(50)]
        assert here <= min(nearby) * 1.01
    assert here < value(np.zeros(len(w)))


def test_weights_that_must_not_fall_below_0_do_not():
    graphs, annotated = corpus(30)
    flipped = [[1 - y[0], *y[1:]] for y in annotated]
    free = learn_graphs(graphs, flipped)
    kept = learn_graphs(graphs, flipped, nonnegative=["same"])
    assert free["same"] < 0 and kept["same"] == 0.0


def test_a_feature_without_a_weight_scores_nothing():
    graph = FeatureGraph([2], [((0,), (1,), "new", 5.0), ((0,), (0,), "old", 1.0)])
    assert_allclose(graph.instance({"old": 0.5}).unary, [0.5, 0.0])


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("H107.*sigma", {"sigma": 0.0}),
        ("H107.*sigma.*1e-09", {"sigma": 1e200}),
        ("H107.*sigma", {"sigma": 10**400}),
        ("H107.*sigma", {"sigma": [1.0]}),
        ("H107.*epochs", {"epochs": 0}),
        ("H107.*epochs", {"epochs": 1.5}),
        ("H107.*seed", {"seed": -1}),
        ("H107.*nonnegative", {"nonnegative": "agree"}),
        ("H107.*annotation", {"annotated": []}),
        ("H107.*annotation", {"annotated": [[0, 3, 0, 0]]}),
        ("H107.*annotation", {"annotated": [[0, 0, 0]]}),
        ("H107.*annotation", {"annotated": [[0, 0.5, 0, 0]]}),
        ("H085.*same", {"graphs": [FeatureGraph(STATES, [((0, 1), (1,), "same", 1.0)])]}),
        ("H082", {"graphs": [FeatureGraph(STATES, [((9,), (1,), "same", 1.0)])]}),
    ],
)
def test_bad_input_is_named(code, change):
    graphs, annotated = corpus(1)
    given = {"graphs": graphs, "annotated": annotated, **change}
    with pytest.raises(ValueError, match=code):
        learn_graphs(given.pop("graphs"), given.pop("annotated"), **given)


@pytest.mark.parametrize(
    "event",
    [
        ((0,), (1,), "same"),
        ((0,), "same", 1.0, 1),
        *(((0,), (1,), "same", value) for value in (10**400, "1", None)),
    ],
)
def test_an_event_of_another_form_is_named(event):
    with pytest.raises(ValueError, match=r"H085.*event 1.*the name of a feature"):
        FeatureGraph(STATES, [((0,), (1,), "same", 1.0), event])
