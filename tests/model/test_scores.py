"""Rows and cells of any extent against sums over observations and features one by one."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from random_index import KINDS, index_of

from spacy_hocrf import dispatch
from spacy_hocrf.model import placement
from spacy_hocrf.model.placement import SPARSE, VECTOR, CompiledIndex
from spacy_hocrf.model.scores import kinds_among
from spacy_hocrf.types import END, INNER, START, TOKEN, Rows


@pytest.fixture(params=dispatch.instruction_sets())
def sums(request):
    """Each build of the kernels that this machine can run."""
    return dispatch.kernels(request.param, "model")


LABELS = [2, 7, 8, 9, 14, 22, 40]  # with 1 to 4 parts: 1 to 20 vectors of 8, and more of fewer


def rows_of(rng, index, tokens, *, valued):
    """Up to 12 observations of each token."""
    sizes = rng.integers(0, 13, tokens)
    ids = rng.choice(len(index.table), sizes.sum()).astype(np.int32)
    values = rng.normal(size=len(ids)).astype(np.float32) if valued else None
    return Rows(np.cumsum([0, *sizes]), ids, values)


def matrix(index, rows):
    """A, float64 [parts, N, Z, F]: the value of each feature in each score."""
    a = np.zeros((4, len(rows.offsets) - 1, len(index.patterns), len(index)))
    for t in range(a.shape[1]):
        for r in range(rows.offsets[t], rows.offsets[t + 1]):
            for f in range(*index.feature_offsets[rows.ids[r] : rows.ids[r] + 2]):
                value = 1.0 if rows.values is None else float(rows.values[r])
                a[index.feature_part[f], t, index.feature_pattern[f], f] += value
    return a


@pytest.mark.parametrize("short, dtype", [(placement.SHORT, np.uint16), (1, np.int32)])
@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("labels", LABELS)
def test_scores_and_counts_of_rows_and_cells(sums, labels, valued, short, dtype, monkeypatch):
    monkeypatch.setattr(placement, "SHORT", short)
    rng = np.random.default_rng(labels)
    index = index_of(rng, labels)
    compiled = CompiledIndex(index)
    assert set(compiled.kinds) == set(KINDS)
    rows = rows_of(rng, index, 9, valued=valued)
    kinds = [compiled.cells_of(rows, kind) for kind in range(len(KINDS))]
    assert any(len(cells.row) for cells in kinds)
    assert {cells.row.dtype for cells in kinds} == {np.dtype(dtype)}
    assert any(len(cells.cell) for cells in kinds) == (labels > min(SPARSE))
    weights, expected = rng.normal(size=len(index)), rng.normal(size=(4, 9, labels))
    a = matrix(index, rows)[:, :, :labels]
    scores = np.zeros((4, 9, labels))
    placed, counts = compiled.place_weights(weights), compiled.nothing()
    for parts, cells in zip(compiled.kinds, kinds):
        sums.add_cell_scores_into([scores[part] for part in parts], cells, placed.values)
        for scale in (2.0, -0.5):
            some = [expected[part] for part in parts]
            sums.add_cell_counts_into(counts.values, cells, some, scale)
    assert_allclose(scores, a @ weights, rtol=1e-12, atol=1e-12)
    assert_allclose(
        compiled.collect(counts),
        1.5 * np.einsum("ptyf,pty->f", a, expected),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("labels", LABELS)
def test_what_is_not_sorted_has_the_same_scores(sums, labels, valued, far):
    """Without values bit by bit; with some, compilers may fuse products and sums otherwise."""
    rng = np.random.default_rng(labels)
    index = index_of(rng, labels)
    compiled, rows = CompiledIndex(index), rows_of(rng, index, 9, valued=valued)
    values = compiled.place_weights(rng.normal(size=len(compiled.place))).values
    if far:  # places that are asked for ahead of time
        values = np.concatenate([values, np.zeros(1 << 18)])
    for kind, places in enumerate(compiled.kinds):
        shared = rng.normal(size=(len(places), 9, labels))
        sorted_parts, parts = list(shared.copy()), list(shared.copy())
        if len(parts) > 2:
            sorted_parts[1] = parts[1] = None
        sums.add_cell_scores_into(sorted_parts, compiled.cells_of(rows, kind), values)
        sums.add_observed_scores_into(parts, rows, kind, compiled, values)
        assert any(part is not None and part.any() for part in parts)
        for one, other in zip(parts, sorted_parts):
            if one is None or not valued:
                assert_array_equal(one, other)
            else:
                assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("some", [True, False])
def test_scores_may_be_written_instead_of_added(sums, some):
    """Whatever was there; a part that shares the array of another one is added to it."""
    rng = np.random.default_rng(7)
    index = index_of(rng, 9)
    compiled = CompiledIndex(index)
    rows = rows_of(rng, index, 9, valued=False)
    if not some:
        rows = Rows(np.zeros_like(rows.offsets), rows.ids[:0], None)
    values = compiled.place_weights(rng.normal(size=len(index))).values
    for kind, places in enumerate(compiled.kinds):
        cells = compiled.cells_of(rows, kind)
        zeros, shared = list(np.zeros((len(places), 9, 9))), np.zeros((9, 9))
        sums.add_cell_scores_into(zeros, cells, values)
        sums.add_cell_scores_into([shared for _ in places], cells, values)
        assert all(part.any() for part in zeros) == some
        for add, known in [
            (sums.add_cell_scores_into, (cells,)),
            (sums.add_observed_scores_into, (rows, kind, compiled)),
        ]:
            parts, together = list(np.full((len(places), 9, 9), np.nan)), np.full((9, 9), np.nan)
            add(parts, *known, values, True)
            add([together for _ in places], *known, values, True)
            assert_array_equal(parts, zeros)
            assert_array_equal(together, shared)


def test_kinds_that_have_a_row_or_cells_are_known():
    compiled = CompiledIndex(index_of(np.random.default_rng(3), 9))
    kinds = np.where(compiled.entries[:, 1] >= 0, compiled.observation_kind, -1)
    for ids in ([], [0], *([i] for i in range(len(kinds))), [3, 8], range(len(kinds))):
        rows = Rows(np.array([0, len(ids)]), np.array(ids, dtype=np.int32), None)
        found = kinds_among(rows.ids, compiled.entries, len(compiled.kinds))
        assert found == sorted({*kinds[list(ids)].tolist()} - {-1})
    assert len({*kinds.tolist()}) == len(KINDS) + 1


def test_parts_may_share_an_array_and_parts_that_nobody_asks_for_are_left_out(sums):
    rng = np.random.default_rng(5)
    index = index_of(rng, 9)
    compiled = CompiledIndex(index)
    rows = rows_of(rng, index, 9, valued=False)
    kind = compiled.kinds.index((START, END, TOKEN, INNER))
    cells = compiled.cells_of(rows, kind)
    weights, expected = rng.normal(size=len(index)), rng.normal(size=(9, 9))
    a = matrix(index, rows)[:3, :, :9].sum(axis=0)
    a[:, :, compiled.observation_kind[index.feature_observation] != kind] = 0.0
    scores, counts = np.zeros((9, 9)), compiled.nothing()
    sums.add_cell_scores_into([scores] * 3 + [None], cells, compiled.place_weights(weights).values)
    sums.add_cell_counts_into(counts.values, cells, [expected] * 3 + [None], 1.0)
    assert_allclose(scores, a @ weights, rtol=1e-12, atol=1e-12)
    assert_allclose(
        compiled.collect(counts), np.einsum("tyf,ty->f", a, expected), rtol=1e-12, atol=1e-12
    )


def test_what_is_collected_is_used_up_and_arrays_are_used_again():
    rng = np.random.default_rng(0)
    index = index_of(rng, 9)
    compiled = CompiledIndex(index)
    one, other = rng.normal(size=(2, len(index)))
    placed = compiled.place_weights(one)
    assert compiled.place_weights(other, placed) is placed
    assert_array_equal(compiled.collect(placed), other)
    placed.const[:] = 1.0
    placed.length[:] = 1.0
    assert compiled.nothing(placed) is placed
    assert not any(array.any() for array in (placed.values, placed.const, placed.length))


@pytest.mark.parametrize("labels", LABELS)
def test_every_feature_has_a_place_of_its_own_and_rows_begin_at_cache_lines(labels):
    index = index_of(np.random.default_rng(labels), labels)
    compiled = CompiledIndex(index)
    assert len(np.unique(compiled.place)) == len(index) <= compiled.places
    assert compiled.place.min(initial=0) >= 0 and compiled.place.max(initial=0) < compiled.places
    for _ in range(3):
        assert compiled.nothing().values.ctypes.data % 64 == 0
    has_row = compiled.row_place >= 0
    assert has_row.any() and (len(compiled.cell_label) > 0) == (labels > min(SPARSE))
    assert (compiled.row_place[has_row] % VECTOR == 0).all()
    weights = np.random.default_rng(0).normal(size=len(index))
    assert_array_equal(compiled.place_weights(weights).values[compiled.place], weights)


def test_the_places_of_an_observation_lie_side_by_side():
    index = index_of(np.random.default_rng(3), 22)
    compiled = CompiledIndex(index)
    for i, kind in enumerate(compiled.observation_kind):
        features = np.arange(*index.feature_offsets[i : i + 2])
        dense = features[index.feature_pattern[features] < 22]
        for f in dense:
            slot = compiled.kinds[kind].index(index.feature_part[f])
            if compiled.row_place[i] >= 0:
                assert (
                    compiled.place[f]
                    == compiled.row_place[i] + slot * 22 + index.feature_pattern[f]
                )
            else:
                cells = slice(*compiled.cell_offsets[i : i + 2])
                at = compiled.cell_label[cells].tolist().index(index.feature_pattern[f])
                assert compiled.place[f] == compiled.cell_place[cells][at] + slot


def test_no_tokens_and_no_observations(sums):
    index = index_of(np.random.default_rng(0), 3)
    compiled = CompiledIndex(index)
    for tokens in (0, 2):
        rows = Rows(np.zeros(tokens + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), None)
        cells = compiled.cells_of(rows, 0)
        parts = [np.zeros((tokens, 3)) for _ in compiled.kinds[0]]
        sums.add_cell_scores_into(parts, cells, compiled.nothing().values)
        sums.add_observed_scores_into(parts, rows, 0, compiled, compiled.nothing().values)
        assert not np.any(parts)
        counts = compiled.nothing()
        ones = [np.ones((tokens, 3)) for _ in compiled.kinds[0]]
        sums.add_cell_counts_into(counts.values, cells, ones, 1.0)
        assert not counts.values.any()
        offsets = compiled.rows_of(rows, np.zeros(3, dtype=bool))[0]
        assert offsets.tolist() == [0] * (tokens + 1)


@pytest.mark.parametrize("valued", [False, True])
def test_longer_patterns_are_expanded_token_by_token(valued):
    rng = np.random.default_rng(1)
    index = index_of(rng, 3, longer=3)
    compiled = CompiledIndex(index)
    rows = rows_of(rng, index, 20, valued=valued)
    folded = np.array([True, False, True])
    row_offsets, part, pattern, place, value = compiled.rows_of(rows, folded)
    assert (value is not None) == valued
    feature = np.argsort(compiled.place)[np.searchsorted(np.sort(compiled.place), place)]
    found = []
    for t in range(20):
        for r in range(row_offsets[t], row_offsets[t + 1]):
            found.append(
                (t, part[r], pattern[r], feature[r], 1.0 if value is None else float(value[r]))
            )
    expected = []
    for t in range(20):
        here = []
        for r in range(rows.offsets[t], rows.offsets[t + 1]):
            for f in range(*index.feature_offsets[rows.ids[r] : rows.ids[r] + 2]):
                z, p = index.feature_pattern[f], index.feature_part[f]
                fold = folded[index.patterns[z][-1]]
                if z >= 3 and not (fold and p == INNER):
                    seen = 1.0 if rows.values is None else float(rows.values[r])
                    here.append((t, START if fold else p, z, f, seen))
        expected += sorted(here, key=lambda row: row[1] != START)
    assert found == expected
    assert len(found) == row_offsets[-1] > 100


def test_more_labels_than_a_cell_can_name_are_refused():
    with pytest.raises(AssertionError):
        CompiledIndex(SimpleNamespace(n_labels=2**16 + 1, patterns=()))
