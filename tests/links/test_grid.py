"""The grid of pairs against pairs taken one by one, its scores against tables read cell by cell."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from link_documents import assignments, has_one_each

from spacy_hocrf.links.grid import STEPS, make_grid, pattern_of
from spacy_hocrf.links.one_each import OneEach, thinned


@st.composite
def grids(draw, largest=4):
    """Grids of a few items, some of whose pairs are possible."""
    rows = sorted(draw(st.sets(st.integers(0, 5), max_size=largest)))
    columns = sorted(draw(st.sets(st.integers(0, 5), max_size=largest)))
    possible = np.array([[draw(st.booleans()) for _ in columns] for _ in rows], dtype=bool).reshape(
        len(rows), len(columns)
    )
    return make_grid(np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64), possible)


def tables(grid, order, seed=0):
    """Random scores of all patterns."""
    random = np.random.default_rng(seed)
    sizes = zip(grid.sections(order), (1, 4, 8))
    return tuple(random.normal(size=(len(section.vertices), n)) for section, n in sizes)


def score(grid, found, y):
    """What the tables say of states, factor by factor."""
    total = sum(found[0][v, 0] for v in range(grid.n_vertices) if y[v])
    for section, table in zip(grid.sections(len(found))[1:], found[1:]):
        for vertices, row in zip(section.vertices, table):
            total += row[int("".join(str(y[v]) for v in vertices), 2)]
    return total


def triangle(n):
    """All pairs of n items with earlier ones and themselves."""
    every = np.arange(n)
    return make_grid(every, every, np.tri(n, dtype=bool))


def test_vertices_are_the_possible_pairs_row_by_row():
    grid = triangle(3)
    pairs = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert list(zip(grid.source.tolist(), grid.target.tolist())) == pairs
    assert sorted(map(sorted, grid.edges.vertices.tolist())) == [
        [0, 1], [1, 2], [1, 3], [2, 4], [3, 4], [4, 5],
    ]  # fmt: skip
    assert grid.row_edges.tolist() == [[1, 2], [3, 4], [4, 5]]


@given(grids(6))
def test_edges_join_neighbours_in_rows_and_columns(grid):
    rows, columns = (sorted(set(each.tolist())) for each in (grid.source, grid.target))
    cells = list(zip(grid.source.tolist(), grid.target.tolist()))
    for (v, w), shape, first, second, common in zip(*map(np.ndarray.tolist, grid.edges)):
        (i, j), (k, m) = cells[v], cells[w]
        assert v < w
        assert (first, second, common) == ((j, m, i) if shape == 0 else (i, k, j))
        assert (i == k) if shape == 0 else (j == m)
    # of neighbours in both lists of items there is none that has no edge
    found = {frozenset(pair) for pair in grid.edges.vertices.tolist()}
    for v, w in combinations(range(len(cells)), 2):
        (i, j), (k, m) = cells[v], cells[w]
        beside = (i == k and abs(columns.index(j) - columns.index(m)) == 1) or (
            j == m and abs(rows.index(i) - rows.index(k)) == 1
        )
        assert frozenset((v, w)) not in found or beside


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_triples_are_all_pairs_of_edges_that_share_a_vertex(size):
    grid = triangle(size)
    edges = [set(edge) for edge in grid.edges.vertices.tolist()]
    pairs = [one | other for k, one in enumerate(edges) for other in edges[:k] if one & other]
    triples = grid.triples.vertices.tolist()
    assert sorted(map(sorted, pairs)) == sorted(map(sorted, triples))
    shapes = list(combinations(range(4), 2))
    for triple, shape in zip(triples, grid.triples.shape.tolist()):
        for end, step in zip(triple[1:], shapes[shape]):
            down, right = STEPS[step]
            assert grid.source[end] == grid.source[triple[0]] + down
            assert grid.target[end] == grid.target[triple[0]] + right


@given(grids(3), st.integers(1, 3))
def test_instances_score_every_assignment_by_their_tables(grid, order):
    found = tables(grid, order)
    instance = grid.instance(found)
    one = OneEach(grid)
    rows = one.instance(found)
    seen = 0
    for y in assignments(grid.n_vertices):
        assert instance.score(y) == pytest.approx(score(grid, found, y), abs=1e-9)
        if has_one_each(grid, y):
            states = np.zeros(rows.n_vertices, dtype=np.int32)
            states[one.rows[y == 1]] = one.states[y == 1]
            assert (one.on(states) == y).all()
            assert rows.score(states) == pytest.approx(score(grid, found, y), abs=1e-9)
            seen += 1
    assert seen == np.prod(rows.n_states, initial=1)


@given(grids(5), st.randoms(use_true_random=False))
def test_thinned_states_keep_the_nearest_link_of_each_source(grid, random):
    states = np.array([random.randrange(2) for _ in range(grid.n_vertices)], dtype=np.int32)
    found = thinned(grid, states)
    assert has_one_each(grid, found) and (found <= states).all()
    for i in set(grid.source[states == 1].tolist()):
        targets = grid.target[(states == 1) & (grid.source == i)]
        (kept,) = grid.target[(found == 1) & (grid.source == i)].tolist()
        assert abs(i - kept) == np.abs(i - targets).min()


def test_patterns_read_states_as_binary_numbers():
    vertices = np.array([[0, 1, 2], [2, 1, 0]])
    assert pattern_of(vertices, np.array([1, 1, 0], dtype=np.int32)).tolist() == [6, 3]
