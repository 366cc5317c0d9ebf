"""Weights for successions of labels that training never shows."""

from itertools import pairwise, product

import numpy as np
import pytest
from small_corpus import documents, examples, learn_from, trained, untrained
from spacy.training import Example

from spacy_hocrf.model.architectures import weights_of
from spacy_hocrf.saving import schema

ALL = {"unseen_transitions": True}
LABELS_ALONE = {
    "@misc": "spacy-hocrf.Features.v1",
    "*": {f"order {k}": {"@misc": "spacy-hocrf.Transition.v1", "order": k} for k in (0, 1)},
}
KINDS = {
    "semi-CRF": {},
    "no repeats": {"repeats": False},
    "repeats": {"repeats": True},
    "runs": {"outside": "run", "order": 2},
    "bio": {"encoding": "bio"},
    "bieso": {"encoding": "bieso", "order": 2},
}


def pairs_of(pipe):
    """Names of the two labels → number of the weight of the pair alone."""
    index, names = pipe.structure.index, pipe.structure.scheme.names
    return {
        tuple(names[y] for y in index.patterns[index.feature_pattern[f]]): f
        for f in index.constants()
        if index.feature_order[f] == 1
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_that_the_scheme_allows_has_a_weight(kind):
    nlp = trained(model={**KINDS[kind], **ALL}, rows=documents(5))
    pipe = nlp.get_pipe("hocrf")
    names, forbidden = pipe.structure.scheme.names, pipe.structure.scheme.forbidden
    allowed = {
        (names[a], names[b])
        for a, b in product(range(len(names)), repeat=2)
        if (a, b) not in forbidden
    }
    assert {*pairs_of(pipe)} == allowed
    seen = pairs_of(trained(model=KINDS[kind], rows=documents(5)).get_pipe("hocrf"))
    assert {*seen} < allowed
    counts = pipe.structure.index.feature_count
    assert {pair for pair, f in pairs_of(pipe).items() if counts[f]} == {*seen}


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{"order": 0}, {"features": {"@misc": "spacy-hocrf.Window.v1", "order": 0}}]
)
def test_a_model_without_weights_of_pairs_has_no_more_patterns(settings):
    patterns = [
        trained(model={**KINDS["semi-CRF"], **settings, **more}, rows=documents(5))
        .get_pipe("hocrf")
        .structure.patterns
        for more in ({}, ALL)
    ]
    assert patterns[0] == patterns[1]


def tagged(*rows):
    """A tagger with nothing but labels and their pairs, at its optimum for these tags."""
    model = {"encoding": "tags", "features": LABELS_ALONE, **ALL}
    nlp = untrained("hocrf_tagger", model=model)
    data = [Example.from_dict(nlp.make_doc("x " * len(tags)), {"tags": [*tags]}) for tags in rows]
    learn_from(nlp, data, steps=300)
    return nlp.get_pipe("hocrf")


@pytest.mark.parametrize("rows", [["ABC"], ["AB", "CCA", "B"]])
def test_the_weights_are_those_of_the_optimum_by_enumeration(rows):
    """At the optimum a weight is sigma² (its count - the expectation of its count); sigma is 10."""
    pipe = tagged(*rows)
    weights, names = weights_of(pipe.model), pipe.structure.scheme.names
    index, pairs = pipe.structure.index, pairs_of(pipe)
    assert {*pairs} == {*product("ABC", repeat=2)}
    biases = {
        names[index.patterns[index.feature_pattern[f]][0]]: weights[f]
        for f in index.constants()
        if index.feature_order[f] == 0
    }
    difference = dict.fromkeys(pairs, 0.0)
    for tags in rows:
        sequences = [*product("ABC", repeat=len(tags))]
        scores = [
            sum(biases[y] for y in sequence) + sum(weights[pairs[p]] for p in pairwise(sequence))
            for sequence in sequences
        ]
        probabilities = np.exp(scores) / np.exp(scores).sum()
        for pair in pairs:
            expected = [
                probability * [*pairwise(sequence)].count(pair)
                for probability, sequence in zip(probabilities, sequences)
            ]
            difference[pair] += [*pairwise(tags)].count(pair) - sum(expected)
    for pair, f in pairs.items():
        assert weights[f] == pytest.approx(100 * difference[pair], abs=0.05), pair
    assert weights[pairs["B", "A"]] < 0  # which training never shows


@pytest.mark.slow
def test_a_label_that_comes_later_has_its_pairs_when_texts_come():
    nlp = trained(model={**KINDS["semi-CRF"], **ALL}, rows=documents(5))
    pipe = nlp.get_pipe("hocrf")
    before = pairs_of(pipe)
    pipe.add_label("FOOD")
    assert {*pairs_of(pipe)} == {*before}
    more = examples(nlp, [("Nobody eats green apples", [(12, 24, "FOOD")])])
    for _ in range(2):  # a step on all that has come begins when it comes again
        nlp.update(more, sgd=nlp.create_optimizer())
    assert {("FOOD", "PERSON"), ("PLACE", "FOOD")} <= {*pairs_of(pipe)} - {*before}


def test_too_many_labels_are_refused(monkeypatch):
    monkeypatch.setitem(schema.LIMITS, "label patterns", schema.Limit(8, "in this test"))
    nlp = untrained(model={**KINDS["semi-CRF"], **ALL})
    with pytest.raises(ValueError, match=r"^\[H143\].* 3 labels with 9 pairs, at most 8"):
        nlp.initialize(lambda: examples(nlp, documents(5)))
