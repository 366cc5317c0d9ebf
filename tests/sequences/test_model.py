"""What a model of sequences says, against enumeration."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from labelled_sequences import LABELS, draw, probabilities, scores

from spacy_hocrf.sequences.items import look_up, read_items
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
    for sequence in sequences:
        found = model.best(model.chain(sequence))
        every = scores(model, sequence)
        assert every[tuple(map(model.number_of.get, found))] == pytest.approx(max(every.values()))


@pytest.mark.slow
@pytest.mark.parametrize("seed, order", CASES)
def test_marginals_and_probabilities_are_those_of_enumeration(seed, order, sequences):
    model = random_model(seed, order)
    for sequence in sequences:
        found = model.chain(sequence).marginals()
        every = probabilities(model, sequence)
        expected = np.zeros((len(sequence), 3))
        for labelling, probability in every.items():
            expected[np.arange(len(sequence)), labelling] += probability
            if len(sequence) <= 3:
                numbers = np.array(labelling, dtype=np.int32)
                logged = model.chain(sequence).log_probability(numbers)
                assert math.exp(logged) == pytest.approx(probability, rel=1e-9)
        assert found == pytest.approx(expected, abs=1e-12)


def test_questions_in_any_order_have_one_answer(sequences):
    model = random_model(1, 2)
    for sequence in sequences:
        fresh = model.chain(sequence)
        marginals, best = fresh.marginals(), model.best(model.chain(sequence))
        asked = model.chain(sequence)
        numbers = asked.best()
        logged = asked.log_probability(numbers)
        assert asked.marginals() == pytest.approx(marginals) and model.best(asked) == best
        assert fresh.best().tolist() == numbers.tolist()
        assert fresh.log_probability(numbers) == logged
        for item in range(len(sequence)):
            assert asked.marginal(item, 1) == fresh.marginal(item, 1) == marginals[item, 1]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("size", [1.0, 40.0, 400.0, 4000.0])
def test_scores_that_are_far_from_each_other_are_summed_without_loss(order, size, sequences):
    model = random_model(3, order)
    far = replace(model, feature_weight=model.feature_weight * size)
    for sequence in sequences:
        every, chain = scores(far, sequence), far.chain(sequence)
        best = max(every.values())
        every = {labelling: math.exp(score - best) for labelling, score in every.items()}
        total = math.fsum(every.values())
        expected = np.zeros((len(sequence), 3))
        for labelling, probability in every.items():
            expected[np.arange(len(sequence)), labelling] += probability / total
        assert chain.marginals() == pytest.approx(expected, abs=1e-9)
        assert every[tuple(chain.best().tolist())] == pytest.approx(1.0)


def test_sequences_that_are_read_one_after_the_other(sequences):
    model = random_model(1, 2)
    found = model.label_numbers(look_up(sequences, model.attributes))
    assert found.tolist() == [y for x in sequences for y in model.chain(x).best().tolist()]
    assert model.label_numbers(look_up([], model.attributes)).tolist() == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda chain: chain.read(1),
        lambda chain: chain.read(-1),
        lambda chain: chain.log_probability(np.zeros(3, dtype=np.int32)),
        lambda chain: chain.marginal(2, 0),
        lambda chain: chain.marginal(0, 3),
    ],
)
def test_a_chain_is_asked_about_its_items_and_labels_alone(ask):
    with pytest.raises(IndexError):
        ask(random_model(1, 1).chain(read_items([["see0"], ["see1"]])))


def test_no_item_no_known_attribute():
    model = random_model(1, 1)
    nothing = model.chain([])
    assert model.best(nothing) == [] and nothing.marginals().shape == (0, 3)
    assert nothing.log_probability(np.zeros(0, dtype=np.int32)) == 0.0
    marginals = model.chain(read_items([["unheard of"]])).marginals()
    assert marginals == pytest.approx(np.full((1, 3), 1 / 3))


def test_a_model_without_labels_has_none_for_an_item():
    nothing = np.zeros(0)
    model = SequenceModel(
        (), {}, np.zeros(1, dtype=np.int64), nothing.astype(np.int32), nothing, (), nothing
    )
    assert model.best(model.chain([])) == [] and model.order == 0
    with pytest.raises(ValueError, match="H273"):
        model.chain(read_items([["a"]]))


@pytest.mark.parametrize("order", [1, 2])
def test_a_score_that_is_not_finite_is_named(order):
    model = random_model(1, order)
    model = replace(model, feature_weight=1e60 * model.feature_weight)
    with pytest.raises(ValueError, match="H420"):
        model.chain(read_items([{"see0": 1e300, "see1": 1e300}]))


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
    for sequence in sequences:
        found, expected = sparse.chain(sequence).marginals(), full.chain(sequence).marginals()
        assert found == pytest.approx(expected, abs=1e-12)


def test_pickled_models_say_the_same(sequences):
    model = random_model(1, 2)
    best = [model.best(model.chain(x)) for x in sequences]
    again = pickle.loads(pickle.dumps(model))
    assert [again.best(again.chain(x)) for x in sequences] == best
