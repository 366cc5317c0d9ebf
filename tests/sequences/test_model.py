"""What a model of sequences says, against enumeration."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from labelled_sequences import LABELS, draw, probabilities, scores

from spacy_hocrf.sequences import model as module
from spacy_hocrf.sequences.items import read_items
from spacy_hocrf.sequences.model import SequenceModel


def random_model(seed, order, n_labels=3, density=0.6):
    """Weights of some patterns of up to order + 1 labels, and of some attributes with some of them."""
    rng = np.random.default_rng(seed)
    names = [f"see{y}" for y in range(n_labels)] + [f"word:w{i}" for i in range(12)] + ["warm"]
    patterns = tuple(
        z
        for length in range(2, order + 2)
        for z in np.ndindex(*[n_labels] * length)
        if rng.random() < density
    )
    kept = rng.random((len(names), n_labels + len(patterns))) < density
    kept[:, n_labels:] &= rng.random((len(names), 1)) < 0.5
    return SequenceModel(
        labels=LABELS[:n_labels],
        attributes={name: i for i, name in enumerate(names)},
        feature_offsets=np.append(0, np.cumsum(kept.sum(axis=1))),
        feature_pattern=np.nonzero(kept)[1].astype(np.int32),
        feature_weight=rng.normal(size=kept.sum()),
        patterns=patterns,
        pattern_weight=rng.normal(size=len(patterns)),
    )


CASES = [(seed, order) for seed in range(3) for order in (0, 1, 2, 3)]


@pytest.fixture(scope="module")
def sequences():
    return [read_items(x) for x in draw(5, n=12, longest=5)[0]]


@pytest.mark.parametrize("seed, order", CASES)
def test_best_labels_are_those_of_the_highest_score(seed, order, sequences):
    model = random_model(seed, order)
    for sequence, found in zip(sequences, model.best(sequences)):
        every = scores(model, sequence)
        assert every[tuple(map(model.number_of.get, found))] == pytest.approx(max(every.values()))


@pytest.mark.parametrize("seed, order", CASES)
def test_marginals_and_probabilities_are_those_of_enumeration(seed, order, sequences):
    model = random_model(seed, order)
    for sequence, found in zip(sequences, model.marginals(sequences)):
        every = probabilities(model, sequence)
        expected = np.zeros((len(sequence), 3))
        for labelling, probability in every.items():
            expected[np.arange(len(sequence)), labelling] += probability
            names = [model.labels[y] for y in labelling]
            if len(sequence) <= 3:
                logged = model.log_probability(sequence, names)
                assert math.exp(logged) == pytest.approx(probability, rel=1e-9)
        assert found == pytest.approx(expected, abs=1e-12)


def test_batches_change_nothing(sequences, monkeypatch):
    model = random_model(1, 2)
    best, marginals = model.best(sequences), model.marginals(sequences)
    monkeypatch.setattr(module, "BATCH_ITEMS", 3)
    assert model.best(sequences) == best
    assert np.concatenate(model.marginals(sequences)) == pytest.approx(np.concatenate(marginals))


def test_no_sequence_no_item_no_known_attribute():
    model = random_model(1, 1)
    assert model.best([]) == [] and model.best([[]]) == [[]]
    assert model.marginals([[]])[0].shape == (0, 3)
    assert model.log_probability([], []) == 0.0
    (marginals,) = model.marginals([read_items([["unheard of"]])])
    assert marginals == pytest.approx(np.full((1, 3), 1 / 3))


def test_a_model_without_labels_has_none_for_an_item():
    nothing = np.zeros(0)
    model = SequenceModel(
        (), {}, np.zeros(1, dtype=np.int64), nothing.astype(np.int32), nothing, (), nothing
    )
    assert model.best([[]]) == [[]] and model.order == 0
    with pytest.raises(ValueError, match="H273"):
        model.best([read_items([["a"]])])


def test_labels_that_a_sequence_cannot_have(sequences):
    model, sequence = random_model(1, 1), read_items([["see0"], ["see1"]])
    with pytest.raises(ValueError, match="H272"):
        model.log_probability(sequence, ["sun"])
    with pytest.raises(ValueError, match="H273"):
        model.log_probability(sequence, ["sun", "hail"])


def test_weights_by_name():
    model = random_model(1, 2)
    assert model.order == 2
    assert len(model.transitions()) == len(model.patterns)
    assert (
        model.transitions()[tuple(LABELS[y] for y in model.patterns[-1])]
        == model.pattern_weight[-1]
    )
    every = [(label,) for label in LABELS] + list(model.transitions())
    last = model.feature_pattern[model.feature_offsets[-2] :]
    assert [z for a, *z in model.state_features() if a == "warm"] == [list(every[i]) for i in last]


@pytest.mark.parametrize("seed, order", CASES)
def test_a_model_without_its_zeros_says_the_same(seed, order, sequences):
    model, rng = random_model(seed, order), np.random.default_rng(seed)
    states = model.feature_weight * (rng.random(len(model.feature_weight)) < 0.3)
    transitions = model.pattern_weight * (rng.random(len(model.patterns)) < 0.3)
    full = replace(model, feature_weight=states, pattern_weight=transitions)
    sparse = full.without_zeros()
    assert sparse.state_features() == {k: v for k, v in full.state_features().items() if v}
    kept = {k: v for k, v in full.transitions().items() if v}
    assert {k: v for k, v in sparse.transitions().items() if v} == kept
    used = {z[0] for z in sparse.state_features()}
    assert list(sparse.attributes) == [name for name in model.attributes if name in used]
    assert list(sparse.attributes.values()) == list(range(len(used)))
    for found, expected in zip(sparse.marginals(sequences), full.marginals(sequences)):
        assert found == pytest.approx(expected, abs=1e-12)


def test_pickled_models_say_the_same(sequences):
    model = random_model(1, 2)
    model.best(sequences)
    again = pickle.loads(pickle.dumps(model))
    assert again.best(sequences) == model.best(sequences)
