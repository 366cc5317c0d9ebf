"""What an index without some of its features still knows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from small_corpus import FEATURES, documents, trained

from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.pruning import pruned
from spacy_hocrf.features.tokens import TokenBatch

MODEL = {"order": 3, "features": FEATURES}


@pytest.fixture(scope="module")
def nlp():
    return trained(model=MODEL, rows=documents(30))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
def test_features_that_are_left_are_what_they_were(nlp, share):
    index = nlp.get_pipe("hocrf").structure.index
    kept = np.random.default_rng(2).random(len(index)) < share
    found = pruned(index, kept)
    names = ["O", "PERSON", "PLACE"]
    before = [index.describe(i, nlp.vocab.strings, names) for i in np.flatnonzero(kept).tolist()]
    assert [found.describe(i, nlp.vocab.strings, names) for i in range(len(found))] == before
    assert_array_equal(found.feature_count, index.feature_count[kept])
    assert_array_equal(found.feature_order, index.feature_order[kept])
    used = {index.patterns[z] for z in index.feature_pattern[kept].tolist()}
    assert used <= set(found.patterns) <= set(index.patterns)
    assert found.patterns[:3] == ((0,), (1,), (2,))
    assert all(z[1:] in found.patterns and z[:-1] in found.patterns for z in used if len(z) > 1)
    ends = {z[i:j] for z in used for i in range(len(z)) for j in range(i + 1, len(z) + 1)}
    assert set(found.patterns) == ends | {(0,), (1,), (2,)}
    # what a saved model is checked for
    again = FeatureIndex.from_arrays(found.patterns, found.templates, found.arrays())
    assert_array_equal(again.feature_offsets, found.feature_offsets)


def test_observations_that_are_left_are_found_where_they_were(nlp):
    index = nlp.get_pipe("hocrf").structure.index
    kept = np.random.default_rng(3).random(len(index)) < 0.1
    found = pruned(index, kept)
    left = np.unique(index.feature_observation[kept])
    batch = TokenBatch([nlp.make_doc("Ada Lovelace was born in Paris ."), nlp.make_doc("New !")])
    before, after = (each.observe(batch).tokens for each in (index, found))
    tokens = [np.repeat(np.arange(9), np.diff(rows.offsets)) for rows in (before, after)]
    pairs = [
        (token, i)
        for token, i in zip(tokens[0].tolist(), before.ids.tolist())
        if i in set(left.tolist())
    ]
    assert sorted(zip(tokens[1].tolist(), left[after.ids].tolist())) == sorted(pairs)
    assert len(pairs) > 10
