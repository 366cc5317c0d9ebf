"""How the documents of a corpus are divided among shards, and compiled."""

import math
from collections import Counter
from dataclasses import fields
from itertools import chain

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_corpus import documents, examples, initialize, learner_of, untrained, words
from spacy.training import Example

from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.engine.reduction import MIN_PARTS
from spacy_hocrf.learning.shards import SHARD_TOKENS, make_shards
from spacy_hocrf.types import Scratch


def documents_of(shard):
    return shard._documents


@pytest.mark.slow
def test_a_shard_that_has_rested_is_compiled_again():
    nlp = untrained()
    initialize(nlp, documents(24))
    learner = learner_of(nlp.get_pipe("hocrf"))
    [shard] = learner.shards()
    weights = np.random.default_rng(0).normal(size=learner.structure.size)
    placed = learner.layout.place_weights(weights)
    before = shard.compiled.potentials(placed, Scratch())
    shard.release()
    assert shard._compiled is None
    after = shard.compiled.potentials(placed, Scratch())
    for field in fields(before):
        assert_array_equal(getattr(after, field.name), getattr(before, field.name))


@pytest.mark.parametrize("size", [9, SHARD_TOKENS])
def test_copies_are_weighted_instead_of_repeated(monkeypatch, size):
    monkeypatch.setattr("spacy_hocrf.learning.shards.SHARD_TOKENS", size)
    nlp = untrained()
    partial = Example.from_dict(words(nlp, "Emmy", "slept"), {"entities": ["U-PERSON", "-"]})
    some = examples(nlp, documents(6))
    data = [example for i, example in enumerate(some) for _ in range(2 * i + 1)] + [partial] * 6
    nlp.initialize(lambda: data)
    learner = learner_of(nlp.get_pipe("hocrf"))
    model = learner.structure, learner.corpus
    weighted = make_shards(*model)
    with monkeypatch.context() as patch:
        patch.setattr("spacy_hocrf.learning.shards._copies", lambda weight: [1] * int(weight))
        repeated = make_shards(*model)
    expected = Counter(document.text for shard in repeated for document in documents_of(shard))
    found = Counter()
    for shard in weighted:
        assert len(set(map(id, documents_of(shard)))) == len(documents_of(shard))
        for document in documents_of(shard):
            found[document.text] += shard.copies
    assert found == expected
    assert found.total() == 42
    assert sum(len(documents_of(shard)) for shard in weighted) == 15
    weights = np.random.default_rng(0).normal(size=learner.structure.size)
    layout, nothing = learner.layout, np.zeros(len(weights))
    (loss, gradient), (once, other) = (
        Objective(shards, layout, learner.automaton, nothing, nothing)(weights)
        for shards in (repeated, weighted)
    )
    assert once == pytest.approx(loss, rel=1e-12)
    assert_allclose(other, gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("trainer", ["LBFGS", "SGD"])
def test_the_objective_of_a_trainer_sees_each_text_once(trainer):
    nlp = untrained(trainer={"@misc": f"spacy-hocrf.{trainer}.v1"})
    nlp.initialize(lambda: examples(nlp, documents(6)) * 8)
    shards = nlp.get_pipe("hocrf").objective().shards
    assert [(shard.copies, len(documents_of(shard))) for shard in shards] == [(8, 6)]


@pytest.mark.slow
def test_long_documents_come_after_short_ones_and_incomplete_ones_after_all(monkeypatch):
    nlp = untrained()
    data = examples(nlp, documents(24))
    partial = [
        Example.from_dict(words(nlp, "Emmy", f"slept{i}"), {"entities": ["U-PERSON", "-"]})
        for i in range(3)
    ]
    nlp.initialize(lambda: [*partial, *data])
    learner = learner_of(nlp.get_pipe("hocrf"))
    whole, _ = learner.objective()(np.zeros(len(learner.structure.index)))
    monkeypatch.setattr("spacy_hocrf.learning.shards.SHARD_TOKENS", 9)
    assert SHARD_TOKENS > 9
    shards = make_shards(learner.structure, learner.corpus)
    sizes = [[len(document) for document in documents_of(shard)] for shard in shards]
    complete = [[document.complete for document in documents_of(shard)] for shard in shards]
    lengths = list(chain.from_iterable(sizes))[:-3]
    assert lengths == sorted(lengths)
    assert [part for part in complete if not all(part)] == [[False] * 3]
    rounds = math.ceil(sum(lengths) / (9 * MIN_PARTS))
    # all parts get shards of one size, not above 9 tokens
    size = math.ceil(sum(lengths) / (rounds * MIN_PARTS))
    assert all(sum(part) >= size for part in sizes[:-2]) and all(
        sum(part[:-1]) < size <= 9 for part in sizes[:-1]
    )
    assert len(shards) > 5
    parts, _ = learner.objective()(np.zeros(len(learner.structure.index)))
    assert parts == pytest.approx(whole, rel=1e-12)
