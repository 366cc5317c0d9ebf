"""Rows and cells of any extent against sums over observations and features one by one."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from spacy_hocrf import dispatch
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.model.compiled import Cells
from spacy_hocrf.model.placement import VECTOR, CompiledIndex
from spacy_hocrf.model.scores import expand_rows, gather, sort_cells
from spacy_hocrf.types import END, INNER, START, TOKEN, PartRows, Rows


@pytest.fixture(params=dispatch.available())
def sums(request):
    """Each build of the kernels that this machine can run."""
    return dispatch.kernels(request.param, "model")


LABELS = [2, 7, 8, 9, 22, 40]


def index_of(rng, labels, observations=30, longer=3):
    """Features of some observations: some have many labels, some few, some none, some longer
    patterns too.
    """
    patterns = (*((y,) for y in range(labels)), *((0, y % labels) for y in range(longer)))
    index = FeatureIndex(patterns, [])
    chosen = [
        np.flatnonzero(rng.random(len(patterns)) < rng.choice([0.0, 0.1, 0.5, 1.0]))
        for _ in range(observations)
    ]
    for i, pattern in enumerate(chosen):
        chosen[i] = pattern[pattern < labels] if i % 4 else pattern
    index.feature_offsets = np.cumsum([0, *map(len, chosen)])
    index.feature_pattern = np.concatenate(chosen).astype(np.int32)
    return index


def rows_of(rng, index, tokens, *, valued, ends=False):
    """Up to 12 observations of each token; only those on single labels, or of all kinds."""
    last = np.append(index.feature_pattern, -1)[index.feature_offsets[1:] - 1]
    single = np.flatnonzero((last < index.n_labels) | (np.diff(index.feature_offsets) == 0))
    sizes = rng.integers(0, 13, tokens)
    ids = rng.choice(single if not ends else len(last), sizes.sum()).astype(np.int32)
    values = rng.normal(size=len(ids)).astype(np.float32) if valued else None
    return Rows(np.cumsum([0, *sizes]), ids, values)


def matrix(index, rows):
    """A, float64 [N, Z, F]: the value of each feature in each score."""
    a = np.zeros((len(rows.offsets) - 1, len(index.patterns), len(index.feature_pattern)))
    for t in range(len(a)):
        for r in range(rows.offsets[t], rows.offsets[t + 1]):
            for f in range(*index.feature_offsets[rows.ids[r] : rows.ids[r] + 2]):
                a[t, index.feature_pattern[f], f] += (
                    1.0 if rows.values is None else float(rows.values[r])
                )
    return a


@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("labels", LABELS)
def test_scores_and_counts_of_rows_and_cells(sums, labels, valued):
    rng = np.random.default_rng(labels)
    index = index_of(rng, labels)
    compiled = CompiledIndex(index)
    rows = rows_of(rng, index, 9, valued=valued)
    cells = Cells(
        *sort_cells(
            rows,
            compiled.feature_offsets,
            compiled.feature_pattern,
            compiled.place,
            compiled.row_place,
        )
    )
    assert len(cells.row) and len(cells.cell)
    weights, expected = rng.normal(size=len(index)), rng.normal(size=(9, labels))
    a = matrix(index, rows)[:, :labels]
    scores = np.full((9, labels), np.nan)
    sums.score_cells_into(scores, cells, compiled.place_weights(weights).values)
    assert_allclose(scores, a @ weights, rtol=1e-12, atol=1e-12)
    counts = compiled.nothing()
    for scale in (2.0, -0.5):
        sums.add_cell_counts_into(counts.values, cells, expected, scale)
    assert_allclose(
        compiled.collect(counts), 1.5 * np.einsum("tyf,ty->f", a, expected), rtol=1e-12, atol=1e-12
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
    assert has_row.any() and (~has_row).any()
    assert (compiled.row_place[has_row] % VECTOR == 0).all()
    weights = np.random.default_rng(0).normal(size=len(index))
    assert_array_equal(gather(compiled.place_weights(weights).values, compiled.place), weights)


def test_no_tokens_and_no_observations(sums):
    index = index_of(np.random.default_rng(0), 3)
    compiled = CompiledIndex(index)
    arrays = (compiled.feature_offsets, compiled.feature_pattern, compiled.place)
    for tokens in (0, 2):
        rows = Rows(np.zeros(tokens + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), None)
        cells = Cells(*sort_cells(rows, *arrays, compiled.row_place))
        scores = np.full((tokens, 3), np.nan)
        sums.score_cells_into(scores, cells, compiled.nothing().values)
        assert not scores.any()
        counts = compiled.nothing()
        sums.add_cell_counts_into(counts.values, cells, np.ones((tokens, 3)), 1.0)
        assert not counts.values.any()
        assert expand_rows(PartRows(rows, rows, rows, rows), *arrays, np.zeros(6, dtype=np.uint8))[
            0
        ].tolist() == [0] * (tokens + 1)


@pytest.mark.parametrize("valued", [(False,) * 4, (False, True, False, True)])
def test_rows_of_all_parts_are_expanded_token_by_token(valued):
    rng = np.random.default_rng(1)
    index = index_of(rng, 3, longer=5)
    compiled = CompiledIndex(index)
    parts = PartRows(*(rows_of(rng, index, 7, valued=v, ends=True) for v in valued))
    folded = rng.integers(0, 2, len(index.patterns)).astype(np.uint8)
    row_offsets, part, pattern, place, value = expand_rows(
        parts, compiled.feature_offsets, compiled.feature_pattern, compiled.place, folded
    )
    assert (value is not None) == any(valued)
    feature = np.argsort(compiled.place)[np.searchsorted(np.sort(compiled.place), place)]
    found = []
    for t in range(7):
        for r in range(row_offsets[t], row_offsets[t + 1]):
            found.append(
                (t, part[r], pattern[r], feature[r], 1.0 if value is None else float(value[r]))
            )
    expected = []
    for t in range(7):
        here = []
        for p, rows in zip((START, END, TOKEN, INNER), parts):
            for r in range(rows.offsets[t], rows.offsets[t + 1]):
                for f in range(*index.feature_offsets[rows.ids[r] : rows.ids[r] + 2]):
                    z = index.feature_pattern[f]
                    if not (folded[z] and p == INNER):
                        seen = 1.0 if rows.values is None else float(rows.values[r])
                        here.append((t, START if folded[z] else p, z, f, seen))
        expected += sorted(here, key=lambda row: row[1] != START)
    assert found == expected
    assert len(found) == row_offsets[-1] > 100


def test_more_labels_than_a_cell_can_name_are_refused():
    with pytest.raises(AssertionError):
        CompiledIndex(SimpleNamespace(n_labels=2**16 + 1, patterns=()))
