"""The loops over cells: which patterns occur, their sum, who disagrees, and steps."""

import numpy as np
from graph_problems import assignments, instances, score
from hypothesis import given

from spacy_hocrf.graph.cells import add_up, disagree, move

ASSIGNMENT = np.array([1, 0], dtype=np.int32)
VERTEX, STATE = np.array([0, 0, 1, 1, 0], dtype=np.int32), np.array([0, 1, 0, 1, 1], dtype=np.int32)
CHOSEN = np.array([1, 1, 0, 0, 0], dtype=np.uint8)


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


def test_who_disagrees_and_how():
    gradient = np.zeros(5, dtype=np.int8)
    assert disagree(ASSIGNMENT, VERTEX, STATE, CHOSEN, gradient) == 3
    assert gradient.tolist() == [1, 0, -1, 0, -1]


def test_what_the_subproblems_lose_the_first_wins():
    scores, rewards, cells = np.zeros(5), np.zeros(4), np.array([0, 1, 2, 3, 1])
    move(scores, rewards, cells, np.array([1, 0, -1, 0, -1], dtype=np.int8), 0.5)
    assert scores.tolist() == [-0.5, 0, 0.5, 0, 0.5]
    assert rewards.tolist() == [0.5, -0.5, -0.5, 0]
