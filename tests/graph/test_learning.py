"""What learners see of a task, and that a task that contradicts itself is found out."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from small_tasks import random_tasks

from spacy_hocrf.graph.learning import decode

WEIGHTS = np.array([0.5, -1.0, 2.0, 0.25, 0.0, -0.5, 1.0, -0.75, 1.0])


@pytest.mark.parametrize("loss_weight", [0.0, 1.0, 2.5])
def test_decoding_compares_with_the_right_output(loss_weight):
    for task in random_tasks(1):
        found = decode(task, WEIGHTS, loss_weight)
        right = float(WEIGHTS @ task.dense(task.gold))
        scores = [
            float(WEIGHTS @ task.dense(y)) + loss_weight * task.loss(y) - right
            for y in task.outputs
        ]
        best = task.outputs[int(np.argmax(scores))]
        dense = np.zeros(task.n_features)
        dense[found.features] = found.difference
        assert_array_equal(dense, task.dense(task.gold) - task.dense(best))
        assert found.loss == task.loss(best)
        assert found.violation == pytest.approx(max(scores), abs=1e-12)
        assert found.bound == pytest.approx(max(scores), abs=1e-12)


def test_a_bound_below_the_right_output_is_as_if_it_were_that():
    [task] = random_tasks(2, n_tasks=1)
    task.decode = lambda weights, loss_weight: (task.gold, 0.0, -1e-7)  # by rounding
    found = decode(task, np.zeros(task.n_features))
    assert (found.violation, found.bound) == (0.0, 0.0)


@pytest.mark.parametrize(
    "score, bound, what",
    [
        (0.5, 0.0, "score"),
        (-0.5, 0.0, "score"),
        (0.0, -0.5, "bound"),
        (np.nan, 0.0, "score"),
        (0.0, np.nan, "bound"),
    ],
)
def test_a_task_that_contradicts_itself_is_an_error(score, bound, what):
    [task] = random_tasks(3, n_tasks=1)
    honest = task.decode

    def decoded(weights, loss_weight):
        output, right, most = honest(weights, loss_weight)
        return output, right + score, most + bound

    task.decode = decoded
    with pytest.raises(ValueError, match=rf"H106.*{what}"):
        decode(task, WEIGHTS)
