"""Maximum likelihood of labelled sequences: the gradient of enumeration is 0 at what is learnt."""

from dataclasses import replace

import numpy as np
import pytest
from labelled_sequences import EXACT, dataset, draw, learnt, probabilities

from spacy_hocrf.sequences import learning
from spacy_hocrf.sequences.features import FeatureSettings, features_of
from spacy_hocrf.sequences.items import read_items
from spacy_hocrf.sequences.learning import learn_online, sequence_model


def counts(model, sequence, labelling):
    """How often each feature fires: of attributes, then of patterns."""
    states = dict.fromkeys(model.state_features(), 0.0)
    patterns = dict.fromkeys(model.patterns, 0.0)
    for t, (names, values) in enumerate(sequence):
        for first in range(t + 1):
            pattern = labelling[first : t + 1]
            for name, value in zip(names, values or [1.0] * len(names)):
                if (key := (name, *(model.labels[y] for y in pattern))) in states:
                    states[key] += value
            if pattern in patterns:
                patterns[pattern] += 1
    return np.array([*states.values(), *patterns.values()])


def gradient(model, items, names, c2):
    """Of the loss, by enumeration."""
    weights = np.concatenate([model.feature_weight, model.pattern_weight])
    total = 2 * c2 * weights
    for x, y in zip(items, names):
        sequence = read_items(x)
        total -= counts(model, sequence, tuple(model.number_of[name] for name in y))
        for labelling, probability in probabilities(model, sequence).items():
            total += probability * counts(model, sequence, labelling)
    return total


@pytest.mark.parametrize(
    "settings",
    [
        FeatureSettings(),
        FeatureSettings(order=2),
        FeatureSettings(order=3, min_freq=2.0),
        FeatureSettings(order=0),
        FeatureSettings(all_states=True, all_transitions=True),
        FeatureSettings(attribute_orders={"word": [0, 1], "": [1]}),
        FeatureSettings(order=3, attribute_orders={"see": [0, 2, 3]}, min_freq=2.0),
        FeatureSettings(order=2, attribute_orders={"": []}),
    ],
)
def test_the_gradient_is_0_at_the_optimum(settings):
    items, names = draw(3, n=12, longest=4)
    model, _ = learnt(items, names, settings)
    # values are rounded to single precision for training
    assert np.abs(gradient(model, items, names, EXACT.c2)).max() < 1e-5


def test_a_repeated_attribute_counts_each_time():
    models = [learnt([x], [["X", "Y"]])[0] for x in ([["a", "a"], ["b"]], [{"a": 2.0}, ["b"]])]
    assert models[0].state_features() == pytest.approx(models[1].state_features(), rel=1e-9)
    twice, two = (models[0].chain(read_items(x)) for x in ([["a", "a"]], [{"a": 2.0}]))
    assert twice.marginals() == pytest.approx(two.marginals(), rel=1e-9)


@pytest.mark.parametrize("settings", [FeatureSettings(), FeatureSettings(order=2)])
def test_the_gradient_is_0_where_attributes_always_go_together(settings):
    items, names = draw(3, n=12, longest=4)
    for item in (item for sequence in items for item in sequence):
        item.update({f"{name} {i}": value for name, value in [*item.items()] for i in range(2)})
    model, _ = learnt(items, names, settings)
    assert np.abs(gradient(model, items, names, EXACT.c2)).max() < 1e-5
    weights = model.state_features()
    twins = [
        (key, (f"{key[0]} 1", *key[1:])) for key in weights if f"{key[0]} 1" in model.attributes
    ]
    assert len(twins) == 9  # those of the words are named by their values, too
    assert all(weights[one] == weights[other] for one, other in twins)


@pytest.mark.parametrize(
    "features", [FeatureSettings(order=2), FeatureSettings(attribute_orders={"": [0, 1]})]
)
def test_no_weight_can_lower_the_loss_with_l1(features):
    items, names = draw(3, n=12, longest=4)
    model, _ = learnt(items, names, features, replace(EXACT, c1=0.4))
    weights = np.concatenate([model.feature_weight, model.pattern_weight])
    slope = gradient(model, items, names, EXACT.c2)
    zero = weights == 0.0
    assert min(zero.sum(), (~zero).sum()) > 5
    assert (np.abs(slope[zero]) <= 0.4 + 1e-4).all()
    assert slope[~zero] == pytest.approx(-0.4 * np.sign(weights[~zero]), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("threads, size", [(2, 4000), (1, 7), (2, 7)])
def test_threads_and_shards_change_no_more_than_rounding(threads, size, monkeypatch):
    items, names = draw(4)
    model, _ = learnt(items, names)
    monkeypatch.setattr(learning, "SHARD_ITEMS", size)
    other, _ = learnt(items, names, settings=replace(EXACT, threads=threads))
    assert other.feature_weight == pytest.approx(model.feature_weight, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_each_iteration_is_told_and_the_loss_falls(seed):
    told = []
    _, status = learnt(*draw(seed), watch=lambda at: told.append((at.iteration, at.loss)))
    assert status.startswith("converged")
    assert [number for number, _ in told] == list(range(1, len(told) + 1))
    losses = [loss for _, loss in told]
    assert (np.diff(losses) < 1e-9).all()


def test_so_many_iterations_and_no_more():
    told = []
    _, status = learnt(*draw(4), settings=replace(EXACT, max_iterations=3), watch=told.append)
    assert len(told) == 3 and status == "stopped: max_iterations"


def test_values_that_single_precision_does_not_have_are_named():
    with pytest.raises(ValueError, match=r"\[H285\] .* 1e\+300"):
        learnt([[{"a": 1e300}, ["b"]]], [["X", "Y"]])


def test_nothing_is_learnt_from_nothing():
    model, status = learnt([], [])
    assert model.labels == () and status.startswith("converged")
    model, _ = learnt([[[]]], [["x"]])
    assert model.labels == ("x",) and model.best(model.chain(read_items([["a"], []]))) == ["x", "x"]


def test_the_averaged_perceptron_comes_to_the_last_weights_when_nothing_is_wrong():
    items, names = draw(4, n=12)
    data = dataset(items, names)
    labelled, told = data.take(-1), []
    features = features_of(labelled, data.attributes, len(data.labels), FeatureSettings(order=2))
    weights = learn_online(labelled, features, told.append, epochs=2000)
    # the shares of wrong items of twelve sequences
    assert 12 > told[0].loss > 4 and told[-1].loss == 0 and len(told) == 2000
    model = sequence_model(data.labels, data.attributes, features, weights)
    assert [model.best(model.chain(read_items(x))) for x in items] == names
    assert weights == pytest.approx(
        np.round(weights * 2) / 2, abs=0.3
    )  # updates are of whole values
