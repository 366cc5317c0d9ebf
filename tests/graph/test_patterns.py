"""Which patterns occur, and their sum."""

import numpy as np
from graph_problems import assignments, instances, score
from hypothesis import given

from spacy_hocrf.graph.patterns import add_up


@given(instances())
def test_sum_and_mask_are_those_of_the_definition(instance):
    arrays = (instance.pattern_offsets, instance.vertices, instance.states, instance.weights)
    fires = np.full(len(instance.weights), 7, dtype=np.uint8)
    for assignment in assignments(instance):
        unary = instance.unary[instance.offsets[:-1] + assignment].sum()
        assert (
            add_up(assignment, *arrays, fires)
            == add_up(assignment, *arrays)
            == score(instance, assignment) - unary
        )
        assert set(fires.tolist()) <= {0, 1}
        assert instance.weights[fires == 1].sum() == add_up(assignment, *arrays)
