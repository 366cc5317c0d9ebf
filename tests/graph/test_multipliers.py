"""The loops over the cells of all subproblems."""

import numpy as np

from spacy_hocrf.graph.multipliers import disagree, move

ASSIGNMENT = np.array([1, 0], dtype=np.int32)
VERTEX, STATE = np.array([0, 0, 1, 1, 0], dtype=np.int32), np.array([0, 1, 0, 1, 1], dtype=np.int32)
CHOSEN = np.array([1, 1, 0, 0, 0], dtype=np.uint8)


def test_who_disagrees_and_how():
    gradient = np.zeros(5, dtype=np.int8)
    assert disagree(ASSIGNMENT, VERTEX, STATE, CHOSEN, gradient) == 3
    assert gradient.tolist() == [1, 0, -1, 0, -1]


def test_what_the_subproblems_lose_the_first_wins():
    scores, rewards, cells = np.zeros(5), np.zeros(4), np.array([0, 1, 2, 3, 1])
    move(scores, rewards, cells, np.array([1, 0, -1, 0, -1], dtype=np.int8), 0.5)
    assert scores.tolist() == [-0.5, 0, 0.5, 0, 0.5]
    assert rewards.tolist() == [0.5, -0.5, -0.5, 0]
