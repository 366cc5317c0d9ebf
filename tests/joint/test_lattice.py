"""The lattice of all segmentations: its paths are they, and their scores are the potentials'."""

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from segmented_groups import automaton_of

from spacy_hocrf.joint.lattice import build_lattice
from spacy_hocrf.types import Segment


def paths(lattice, node):
    """(edges, score) of all paths from a node to the last boundary."""
    if lattice.is_last[node]:
        yield (), 0.0
        return
    for edge in np.flatnonzero(lattice.tail == node).tolist():
        for rest, score in paths(lattice, int(lattice.head[edge])):
            yield (edge, *rest), score + lattice.scores[edge]


@given(oracle.batches(min_size=1, max_size=3, max_tokens=4))
def test_paths_are_the_segmentations_and_have_their_scores(problems):
    batch = oracle.batch([problem.potentials for problem in problems])
    lattice = build_lattice(batch, automaton_of(problems[0]))
    assert (lattice.tail < lattice.head).all()
    for i, problem in enumerate(problems):
        found = {}
        for edges, score in paths(lattice, int(lattice.offsets[i])):
            here = [e for e in edges if lattice.label[e] >= 0]
            first = int(batch.offsets[i])
            key = tuple(
                Segment(
                    int(lattice.start[e]) - first,
                    int(lattice.end[e]) - first,
                    int(lattice.label[e]),
                )
                for e in here
            )
            assert key not in found, "one path for each segmentation"
            found[key] = score
        every = oracle.segmentations(problem.potentials, problem.limits, problem.forbidden)
        expected = {s: oracle.score(problem.potentials, problem.patterns, s) for s in every}
        assert found.keys() == expected.keys()
        for segmentation, score in expected.items():
            assert_allclose(found[segmentation], score, rtol=1e-9, atol=1e-9)


@given(oracle.batches(min_size=1, max_size=2, max_tokens=4))
def test_the_best_along_a_path_is_that_path(problems):
    batch = oracle.batch([problem.potentials for problem in problems])
    lattice = build_lattice(batch, automaton_of(problems[0]))
    listed = [list(paths(lattice, int(first))) for first in lattice.offsets[:-1]]
    if not all(listed):
        return  # a sequence that nothing covers
    chosen = [each[len(each) // 2] for each in listed]
    flow = np.zeros(len(lattice.scores))
    for edges, _ in chosen:
        flow[list(edges)] = 1.0
    best = lattice.best_along(flow, batch.offsets)
    assert_allclose(best.scores, [score for _, score in chosen], rtol=1e-12, atol=1e-12)
    edges = [e for path, _ in chosen for e in path if lattice.label[e] >= 0]
    assert best.segments.label.tolist() == lattice.label[edges].tolist()
    assert np.diff(best.segments.offsets).tolist() == [
        sum(lattice.label[e] >= 0 for e in path) for path, _ in chosen
    ]


@given(oracle.batches(min_size=1, max_size=2, max_tokens=4), st.floats(0.0, 20.0))
def test_edges_are_good_enough_if_a_path_with_them_is(problems, slack):
    batch = oracle.batch([problem.potentials for problem in problems])
    lattice = build_lattice(batch, automaton_of(problems[0]))
    scores = lattice.scores + np.random.default_rng(len(lattice.scores)).normal(
        0, 5, len(lattice.scores)
    )
    losses = np.full(len(scores), np.inf)  # of the best path with each edge
    for first in lattice.offsets[:-1]:
        listed = [
            (list(edges), scores[list(edges)].sum()) for edges, _ in paths(lattice, int(first))
        ]
        best = max((score for _, score in listed), default=0.0)
        for edges, score in listed:
            losses[edges] = np.minimum(losses[edges], best - score)
    found = lattice.good_enough(scores, slack)
    assert found[losses < slack - 1e-9].all()
    assert not found[losses > slack + 1e-9].any()
    best_left = lattice.only(np.flatnonzero(lattice.good_enough(scores, 0.0)))
    assert_allclose(best_left.scores, lattice.scores[lattice.good_enough(scores, 0.0)])


@pytest.mark.slow
@given(oracle.batches(min_size=2, max_size=3, max_tokens=4), st.floats(0.0, 20.0))
def test_what_is_not_wanted_is_left_out_and_does_not_count(problems, slack):
    batch, automaton = (
        oracle.batch([problem.potentials for problem in problems]),
        automaton_of(problems[0]),
    )
    sizes = []

    def good(lattice):
        sizes.append(len(lattice.scores))
        return np.flatnonzero(lattice.good_enough(lattice.scores, slack))

    whole = build_lattice(batch, automaton)
    expected = whole.only(good(whole))
    found = build_lattice(batch, automaton, wanted=good)
    for name in ("offsets", "levels", "is_last", "tail", "head", "scores", "start", "end", "label"):
        assert_array_equal(getattr(found, name), getattr(expected, name))
    most = len(expected.scores) + max(sizes[1:])  # one whole sequence at a time
    assert build_lattice(batch, automaton, most_edges=most, wanted=good) is not None
    assert sum(sizes[1 : len(problems) + 1]) == len(whole.scores)
    if len(whole.scores):
        assert build_lattice(batch, automaton, most_edges=len(whole.scores) - 1) is None
