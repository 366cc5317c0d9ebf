"""Offsets, ranges, stretches and components against the obvious loops."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.arrays import components, offsets_of, ranges, stretches

NODES = 8


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4))))
def test_ranges_are_those_of_python_end_to_end(pairs):
    first, counts = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    expected = [i for begin, count in pairs for i in range(begin, begin + count)]
    found = ranges(first, counts)
    assert found.tolist() == expected and found.dtype == np.int64


@given(st.lists(st.integers(0, 5)))
def test_offsets_bound_the_rows(sizes):
    offsets = offsets_of(sizes)
    assert offsets[0] == 0 and np.diff(offsets).tolist() == sizes and offsets.dtype == np.int64


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans())), st.integers(0, 9), st.booleans())
def test_stretches_end_where_they_are_large_enough(things, least, grouped):
    sizes = [size for size, _ in things]
    groups = np.cumsum([new for _, new in things], dtype=np.int64) if grouped else None
    cuts = list(stretches(iter(sizes), least, groups))
    ends = [0, *(end for _, end in cuts)]
    assert cuts == list(pairwise(ends)) and ends[-1] == len(sizes)
    for first, end in cuts:
        # none could have ended before, and all but the last are large enough
        could = [
            i
            for i in range(first + 1, len(sizes))
            if sum(sizes[first:i]) >= least and not (grouped and groups[i] == groups[i - 1])
        ]
        assert end == min(could, default=len(sizes))


@given(st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1))))
def test_components_are_named_after_their_smallest_node(edges):
    one, other = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    sets = [{node} for node in range(NODES)]
    for i, j in edges:
        union = sets[i] | sets[j]
        for node in union:
            sets[node] = union
    assert components(NODES, one, other).tolist() == [min(nodes) for nodes in sets]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_without_edges_every_node_is_alone(n):
    nothing = np.zeros(0, dtype=np.int64)
    assert components(n, nothing, nothing).tolist() == list(range(n))
