"""Which observations always occur together, against sets of tokens; and one weight for all of them."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from random_index import index_of

from spacy_hocrf import dispatch
from spacy_hocrf.features.rows import add_signatures_into
from spacy_hocrf.model.placement import CompiledIndex
from spacy_hocrf.model.tying import inseparable, tie
from spacy_hocrf.types import Rows

LABELS = 3


def corpus_of(rng, index, *, valued, parts=3, tokens=9, kinds=12):
    """Parts in which some observations go together: each token has a few of some sets of them."""
    sets = np.array_split(rng.permutation(len(index.table) - 3), kinds)  # three are made nowhere
    found = []
    for _ in range(parts):
        ids, sizes, values = [], [], []
        for _ in range(tokens):
            chosen = rng.choice(kinds, rng.integers(0, 4), replace=False)
            some = [int(i) for kind in chosen for i in sets[kind]]
            ids += some
            sizes.append(len(some))
            values += [0.5 + (i % 2) for i in some]  # not all of a set have one value
        numbers = np.array(values, dtype=np.float32) if valued else None
        found.append(Rows(np.cumsum([0, *sizes]), np.array(ids, dtype=np.int32), numbers))
    return found


def made_at(corpus, size):
    """Of each observation, the tokens and values that it is made with, sorted."""
    places, first = [[] for _ in range(size)], 0
    for rows in corpus:
        for t in range(len(rows.offsets) - 1):
            for r in range(rows.offsets[t], rows.offsets[t + 1]):
                value = 1.0 if rows.values is None else float(rows.values[r])
                places[rows.ids[r]].append((first + t, value))
        first += len(rows.offsets) - 1
    return [tuple(sorted(each)) for each in places]


def features_of(index):
    parts, bounds = index.feature_part, index.feature_offsets
    return [
        tuple(zip(index.feature_pattern[i:j].tolist(), parts[i:j].tolist()))
        for i, j in pairwise(bounds.tolist())
    ]


@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_observations_are_inseparable_that_have_the_same_tokens_and_features(seed, valued):
    rng = np.random.default_rng(seed)
    index = index_of(rng, LABELS, observations=90)
    corpus = corpus_of(rng, index, valued=valued)
    groups = inseparable(index, corpus)
    expected, first = [], {}
    for i, key in enumerate(zip(made_at(corpus, len(index.table)), features_of(index))):
        expected.append(first.setdefault(key, i) if key[0] else i)
    assert groups.tolist() == expected
    assert groups.dtype == np.int32 and 3 < len(set(expected)) < len(expected)


def test_a_signature_tells_one_token_from_another_and_one_value_from_another():
    one, twice = (np.zeros((2, 2), dtype=np.uint64) for _ in range(2))
    rows = Rows(np.array([0, 1]), np.zeros(1, dtype=np.int32), None)
    for first in (0, 1):
        add_signatures_into(one, rows, first)
        add_signatures_into(twice, rows, 0)
    assert not one[1].any() and (one[0] != twice[0]).all()
    for value in (1.0, 2.0):
        valued = np.zeros_like(one)
        add_signatures_into(valued, rows._replace(values=np.full(1, value, np.float32)), 0)
        assert (2 * valued[0] != twice[0]).all()


@pytest.mark.parametrize("valued", [False, True])
def test_tied_features_have_the_scores_and_the_counts_of_their_sum(valued):
    rng = np.random.default_rng(7)
    index = index_of(rng, LABELS, observations=90)
    corpus, compiled = corpus_of(rng, index, valued=valued), CompiledIndex(index)
    arranged, group = tie(index, inseparable(index, corpus))
    assert len(group) == len(index) > len(arranged.place) == group.max() + 1
    weights = rng.normal(size=len(index))
    sums = np.bincount(group, weights=weights)
    folded = np.zeros(LABELS, dtype=bool)
    for rows in corpus:
        (at, *plain), (tied_at, *tied) = (
            _scores(each, rows, w, folded) for each, w in ((compiled, weights), (arranged, sums))
        )
        assert tied_at == at
        assert_allclose(np.concatenate(tied), np.concatenate(plain), rtol=1e-12, atol=1e-12)
    expected = rng.normal(size=(len(corpus), 4, 9, LABELS))
    counts, fewer = (_counts(each, corpus, expected) for each in (compiled, arranged))
    assert_allclose(fewer[group], counts, rtol=1e-12, atol=1e-12)


def _scores(compiled, rows, weights, folded):
    """Where rows of longer patterns are; scores of single labels by kind; sums of those rows."""
    placed, found = compiled.place_weights(weights), []
    sums = _kernels()
    for kind, places in enumerate(compiled.kinds):
        parts = [np.zeros((len(rows.offsets) - 1, LABELS)) for _ in places]
        sums.add_cell_scores_into(parts, compiled.cells_of(rows, kind), placed.values)
        found.append(np.concatenate(parts).ravel())
    offsets, part, pattern, place, value = compiled.rows_of(rows, folded)
    scores = placed.values[place] * (1.0 if value is None else value)
    token = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys, number = np.unique([token, part, pattern], axis=1, return_inverse=True)
    return keys.tolist(), *found, np.bincount(number.ravel(), weights=scores)


def _counts(compiled, corpus, expected):
    counts, sums = compiled.nothing(), _kernels()
    for rows, parts in zip(corpus, expected):
        for kind, places in enumerate(compiled.kinds):
            cells = compiled.cells_of(rows, kind)
            some = [parts[place] for place in places]
            sums.add_cell_counts_into(counts.values, cells, some, 1.0)
    found = compiled.collect(counts)
    found[compiled.feature_pattern >= LABELS] = 0.0
    return found


def _kernels():
    return dispatch.kernels(dispatch.active(), "model")


def test_what_is_made_at_no_token_stays_alone():
    index = index_of(np.random.default_rng(0), 3)
    assert_array_equal(inseparable(index, []), np.arange(len(index.table)))
    arranged, group = tie(index, inseparable(index, []))
    assert_array_equal(group, np.arange(len(index)))
    assert_array_equal(arranged.place, CompiledIndex(index).place)
