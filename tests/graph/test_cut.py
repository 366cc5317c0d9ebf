"""Minimum cuts against enumeration and against SciPy's maximum flow, cold and warm."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.graph.cut import MinimumCut


def value(x, profit, tail, head, capacity):
    """f of the module's docstring."""
    return float(profit @ x) - sum(c * x[i] * (1 - x[j]) for i, j, c in zip(tail, head, capacity))


@st.composite
def networks(draw):
    n = draw(st.integers(1, 6))
    score = st.integers(-24, 24).map(lambda i: i / 4)
    m = draw(st.integers(0, 10)) if n > 1 else 0
    ends = [draw(st.permutations(range(n)))[:2] for _ in range(m)]
    tail, head = np.array(ends, dtype=np.int32).reshape(-1, 2).T
    capacity = np.array([abs(draw(score)) for _ in range(m)])
    rounds = [np.array(draw(st.lists(score, min_size=n, max_size=n))) for _ in range(4)]
    return np.ascontiguousarray(tail), np.ascontiguousarray(head), capacity, rounds


@given(networks())
def test_maximum_is_that_of_an_enumeration_again_and_again(network):
    tail, head, capacity, rounds = network
    cut = MinimumCut(rounds[0], tail, head, capacity)
    chosen = np.zeros(len(rounds[0]), dtype=np.uint8)
    for scores in rounds:
        profit = rounds[0] + scores
        values = {
            x: value(np.array(x), profit, tail, head, capacity)
            for x in product((0, 1), repeat=len(profit))
        }
        best = max(values.values())
        assert cut.maximise(scores, chosen) == pytest.approx(best, abs=1e-9)
        assert values[tuple(chosen.tolist())] == pytest.approx(best, abs=1e-9)
        # the smallest of the best
        assert sum(chosen) == min(sum(x) for x, worth in values.items() if worth >= best - 1e-9)


@given(networks(), st.integers(0, 5))
def test_only_the_first_nodes_have_scores(network, k):
    tail, head, capacity, rounds = network
    k = min(k, len(rounds[0]))
    cut, whole = (MinimumCut(rounds[0], tail, head, capacity) for _ in range(2))
    few, all_of_them = np.zeros(k, dtype=np.uint8), np.zeros(len(rounds[0]), dtype=np.uint8)
    for scores in rounds[1:]:
        padded = np.where(np.arange(len(scores)) < k, scores, 0.0)
        assert cut.maximise(scores[:k], few) == pytest.approx(
            whole.maximise(padded, all_of_them), abs=1e-9
        )
        assert few.tolist() == all_of_them[:k].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_maximum_is_that_of_scipy(seed):
    csgraph = pytest.importorskip(
        "scipy.sparse.csgraph", reason="SciPy is not installed; see the extra 'ilp'"
    )
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 60)), int(rng.integers(1, 300))
    tail = rng.integers(0, n, m)
    head = (tail + rng.integers(1, n, m)) % n
    capacity = rng.integers(0, 30, m)
    constant = np.zeros(n)
    cut = MinimumCut(constant, tail.astype(np.int32), head.astype(np.int32), capacity.astype(float))
    chosen = np.zeros(n, dtype=np.uint8)
    profit = rng.integers(-40, 40, n)
    for _ in range(20):  # SciPy starts anew every time, ours goes on
        profit = np.where(rng.random(n) < 0.3, rng.integers(-40, 40, n), profit)
        terminals = np.concatenate([np.maximum(profit, 0), np.maximum(-profit, 0)])
        rows = np.concatenate([np.full(n, n), np.arange(n), tail])
        columns = np.concatenate([np.arange(n), np.full(n, n + 1), head])
        amounts = np.concatenate([terminals, capacity]).astype(np.int32)
        graph = sparse.csr_matrix((amounts, (rows, columns)), shape=(n + 2, n + 2), dtype=np.int32)
        flow = csgraph.maximum_flow(graph, n, n + 1).flow_value
        best = np.maximum(profit, 0).sum() - flow
        assert cut.maximise(profit.astype(float), chosen) == pytest.approx(best, abs=1e-9)
        assert value(chosen.astype(int), profit, tail, head, capacity) == best
