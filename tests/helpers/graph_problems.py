"""Graphs small enough to enumerate, and the problems with proved optima that lie beside the
corpora.

What enumerates is slow, obvious, and shares nothing with `spacy_hocrf.graph` but its instances.
"""

import gzip
import json
import os
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from spacy_hocrf.graph.instance import GraphInstance, make_instance

ORACLE = Path(os.environ.get("HOCRF_DATA", "")).parent / "oracle" / "graph-map.json.gz"
needs_oracle = pytest.mark.skipif(
    not ORACLE.is_file(), reason="HOCRF_DATA is not set, or has no folder oracle beside it"
)


@st.composite
def instances(draw, *, sign=None, largest=4, vertices=5):
    """Random graphs of up to this many vertices with 1 to 3 states each; weights are multiples of
    1/8, so that sums are exact.

    sign: 1 for positive weights, -1 for negative, None for both; largest: cells of a pattern.
    """
    n_states = draw(st.lists(st.integers(1, 3), min_size=1, max_size=vertices))
    score = st.integers(-40, 40).map(lambda i: i / 8)
    unary = [draw(st.lists(score, min_size=n, max_size=n)) for n in n_states]
    weight = {None: score, 1: score.map(abs), -1: score.map(lambda w: -abs(w))}[sign]
    patterns = []
    for _ in range(draw(st.integers(0, 8)) if len(n_states) > 1 else 0):
        size = draw(st.integers(2, min(largest, len(n_states))))
        chosen = draw(st.permutations(range(len(n_states))))[:size]
        patterns.append(
            (chosen, [draw(st.integers(0, n_states[v] - 1)) for v in chosen], draw(weight))
        )
    return make_instance(unary, patterns)


def assignments(instance: GraphInstance):
    """All of them, int32 [V] each."""
    for states in product(*(range(n) for n in instance.n_states)):
        yield np.array(states, dtype=np.int32)


def score(instance: GraphInstance, assignment) -> float:
    """φ, pattern by pattern."""
    total = sum(instance.unary[instance.offsets[v] + s] for v, s in enumerate(assignment))
    for p, weight in enumerate(instance.weights):
        cells = range(instance.pattern_offsets[p], instance.pattern_offsets[p + 1])
        if all(assignment[instance.vertices[e]] == instance.states[e] for e in cells):
            total += weight
    return float(total)


def optimum(instance: GraphInstance) -> float:
    """The highest score of all assignments."""
    return max(score(instance, assignment) for assignment in assignments(instance))


@cache
def proved():
    """The problems with proved optima: their descriptions, and their instances."""
    with gzip.open(ORACLE, "rt", encoding="utf8") as file:
        listed = json.load(file)["instances"]
    return [
        (
            each,
            make_instance(
                each["unary"], [(p["vertices"], p["states"], p["weight"]) for p in each["patterns"]]
            ),
        )
        for each in listed
    ]
