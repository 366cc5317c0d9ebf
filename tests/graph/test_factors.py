"""Factors by themselves against enumeration, whatever the signs, and again for other scores."""

from itertools import pairwise

import numpy as np
from graph_problems import assignments, instances
from hypothesis import given
from hypothesis import strategies as st

from spacy_hocrf.graph.decomposition import decompose
from spacy_hocrf.graph.factors import FactorMaxima


@st.composite
def factors(draw):
    """Widths of the vertices, listed patterns, and scores to be tried one after the other."""
    widths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    everything = [()]
    for width in widths:
        everything = [(*states, s) for states in everything for s in range(width)]
    listed = sorted(
        draw(
            st.lists(st.sampled_from(everything), unique=True, min_size=1, max_size=len(everything))
        )
    )
    score = st.integers(-24, 24).map(lambda i: i / 4)
    weights = draw(st.lists(score, min_size=len(listed), max_size=len(listed)))
    if draw(st.booleans()):
        weights = [abs(weight) for weight in weights]
    rounds = [draw(st.lists(score, min_size=sum(widths), max_size=sum(widths))) for _ in range(3)]
    return widths, everything, listed, weights, rounds


@given(st.lists(factors(), min_size=1, max_size=3))
def test_best_states_are_those_of_an_enumeration(listed_factors):
    widths = [width for factor in listed_factors for width in factor[0]]
    maxima = FactorMaxima(
        np.cumsum([0, *(len(factor[0]) for factor in listed_factors)]),
        np.cumsum([0, *widths]),
        np.cumsum([0, *(len(factor[2]) for factor in listed_factors)]),
        np.array(
            [s for factor in listed_factors for states in factor[2] for s in states], dtype=np.int32
        ),
        np.array([weight for factor in listed_factors for weight in factor[3]]),
    )
    chosen = np.zeros(sum(widths), dtype=np.uint8)
    for round_ in (0, 1, 1, 2):
        scores = np.array([score for factor in listed_factors for score in factor[4][round_]])
        total, expected, found, first = maxima.maximise(scores, chosen), 0.0, 0.0, 0
        for shape, everything, listed, weights, _ in listed_factors:
            starts = first + np.cumsum([0, *shape])
            table = {
                states: sum(scores[start + s] for start, s in zip(starts, states))
                + dict(zip(listed, weights)).get(states, 0.0)
                for states in everything
            }
            on = [np.flatnonzero(chosen[a:b]).tolist() for a, b in pairwise(starts)]
            assert all(len(one) == 1 for one in on)
            found += table[tuple(one[0] for one in on)]
            expected += max(table.values())
            first = int(starts[-1])
        assert total == found == expected


@given(instances())
def test_what_is_alone_in_a_hybrid_is_negative_or_shares_a_cell(instance):
    decomposition = decompose(instance, "hybrid", None, np.zeros((0, 2)))
    assert sum(len(subproblem.cells) for subproblem in decomposition.subproblems) >= len(
        np.unique(instance.cells)
    )
    assert len(decomposition.outside) == len(instance.weights)
    assert next(assignments(instance)).dtype == np.int32
