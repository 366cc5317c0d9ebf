"""Small groups of sequences with vertices on their segments and tokens, and what a segmentation
makes of the vertices.
"""

import math

import numpy as np
import oracle
from hypothesis import strategies as st

from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.joint.chain import SegmentationSubproblem
from spacy_hocrf.joint.vertices import Vertices


@st.composite
def groups(draw):
    """Problems of one model, all of which have an allowed segmentation, with vertices and a source
    of rewards.
    """
    problems = draw(oracle.batches(min_size=0, max_size=3, max_tokens=4))
    problems = [p for p in problems if any(True for _ in allowed(p))]
    places = [
        (i, u, v) for i, p in enumerate(problems) for v in range(tokens(p) + 1) for u in range(v)
    ]
    if problems:
        longest = max(limit or math.inf for limit in problems[0].limits)
        places = [place for place in places if place[2] - place[1] <= longest]
    covered = [(i, t) for i, p in enumerate(problems) for t in range(tokens(p))]
    vertices = {
        "segments": _some(draw, places, 5),
        "tokens": _some(draw, covered, 4),
        "labels": _some(
            draw, [(*at, y) for at in covered for y in range(len(problems[0].limits))], 4
        ),
    }
    return problems, vertices, np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def _some(draw, rows, most):
    return draw(st.lists(st.sampled_from(rows), max_size=most, unique=True)) if rows else []


def tokens(problem):
    return int(problem.potentials.offsets[-1])


def allowed(problem):
    return oracle.segmentations(problem.potentials, problem.limits, problem.forbidden)


def automaton_of(problem):
    carried = [z for z, flag in zip(problem.patterns, problem.carried) if flag]
    return compile_automaton(
        problem.patterns, problem.limits, forbidden=problem.forbidden, carried=carried
    )


def make_vertices(tokens_of, n_labels, *, segments=(), tokens=(), labels=()):
    """Vertices from lists of (sequence, start, end), (sequence, token) and (sequence, token, label)."""
    rows = [
        np.array(listed, dtype=np.int64).reshape(-1, width)
        for listed, width in ((segments, 3), (tokens, 2), (labels, 3))
    ]
    return Vertices(tokens_of, n_labels, *rows)


def subproblem_of(problems, vertices):
    potentials = oracle.batch([p.potentials for p in problems])
    automaton = automaton_of(problems[0])
    n_labels = len(automaton.limits)
    return SegmentationSubproblem(
        potentials, automaton, make_vertices(potentials.offsets, n_labels, **vertices)
    )


def states_of(segmentation, sequence, vertices, n_labels):
    """{number of a vertex of this sequence: its state}."""

    def label_of(token):
        return next(s.label for s in segmentation if s.start <= token < s.end)

    def exactly(start, end):
        return next((s.label for s in segmentation if (s.start, s.end) == (start, end)), n_labels)

    states = {
        "segments": exactly,
        "tokens": label_of,
        "labels": lambda token, label: int(label_of(token) != label),
    }
    rows = [(kind, row) for kind in states for row in vertices[kind]]
    return {v: states[kind](*row[1:]) for v, (kind, row) in enumerate(rows) if row[0] == sequence}


def segmentations_of(best):
    return oracle.listed(best.segments)


def plain_sequence(length, n_labels, rng):
    """Potentials of one sequence in which every label is good for every token."""
    const = rng.normal(size=n_labels)
    parts = ("start", "end", "token", "inner")
    dense = {part: rng.normal(size=(length, n_labels)) for part in parts}
    return oracle.plain(dense["token"], const=const, **dense)


def plain_subproblem(length=4, limits=(0, 2), **vertices):
    patterns = [(y,) for y in range(len(limits))]
    rng = np.random.default_rng(0)
    potentials = plain_sequence(length, len(limits), rng)
    return SegmentationSubproblem(
        potentials,
        compile_automaton(patterns, limits),
        make_vertices(potentials.offsets, len(limits), **vertices),
    )
