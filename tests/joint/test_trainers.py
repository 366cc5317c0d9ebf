"""The trainer of joint weights on tasks that are enumerated: the local score counts once, and
useless features nothing.
"""

import numpy as np
import pytest
from small_tasks import GraphTask

from spacy_hocrf.joint.trainers import JointMaxMargin

TRAINER = JointMaxMargin(tolerance=1e-4)

AGREE = np.ones(2, dtype=bool)


def agreement(gold, base):
    """Three vertices, of which the third is paired with the others."""
    return GraphTask([0, 0, 0], gold, [(0, 2), (1, 2)], 1, 2, base, only_patterns=True)


def tasks_where_equal_states_are_right(seed=0, count=40):
    """Three vertices of one state; the local score knows two of them, and is a little wrong about
    the third.
    """
    rng = np.random.default_rng(seed)
    tasks = []
    for _ in range(count):
        state = int(rng.integers(2))
        base = np.zeros((3, 2))
        base[:2, state] = 4.0
        base[2, 1 - state] = rng.uniform(0.2, 1.0)
        tasks.append(agreement((state,) * 3, base))
    return tasks


def tasks_where_patterns_say_nothing(seed=0, count=100):
    """The local score is right about most vertices, whatever the others."""
    rng = np.random.default_rng(seed)
    tasks = []
    for _ in range(count):
        gold = rng.integers(2, size=3)
        base = np.zeros((3, 2))
        base[np.arange(3), gold] = rng.normal(2.0, 1.0, size=3)
        tasks.append(agreement(gold.tolist(), base))
    return tasks


def right(tasks, weights):
    return np.mean([task.decode(np.append(weights, 1.0))[0] == task.gold for task in tasks])


def test_agreement_is_learnt_where_it_helps():
    learnt = TRAINER.fit(tasks_where_equal_states_are_right(), AGREE)
    unseen = tasks_where_equal_states_are_right(seed=1)
    assert right(unseen, np.zeros(2)) == 0.0
    assert right(unseen, learnt.weights) == 1.0
    assert learnt.weights[0] > 0.5
    assert learnt.weights[1] < 0.1 * learnt.weights[0]  # ascending states are never right


@pytest.mark.slow
@pytest.mark.parametrize("nonnegative", [False, True])
def test_weights_of_patterns_that_say_nothing_stay_near_zero(nonnegative):
    learnt = JointMaxMargin(nonnegative=nonnegative).fit(tasks_where_patterns_say_nothing(), AGREE)
    assert np.abs(learnt.weights).max() < 0.1
    unseen = tasks_where_patterns_say_nothing(seed=1, count=300)
    assert right(unseen, learnt.weights) >= right(unseen, np.zeros(2)) - 0.02


def test_weights_below_zero_are_learnt_only_if_they_may_be():
    tasks = tasks_where_equal_states_are_right()
    for task in tasks:  # now the third one is never like the others
        task.gold = (task.gold[0], task.gold[1], 1 - task.gold[2])
        task.base[2] = -task.base[2]
    free = JointMaxMargin(nonnegative=False).fit(tasks, AGREE).weights
    kept = JointMaxMargin(nonnegative=True).fit(tasks, AGREE).weights
    assert free.min() < -0.1
    assert kept.min() == 0.0
    assert right(tasks, free) > right(tasks, kept) or right(tasks, kept) == 0.0


def test_what_places_do_not_agree_in_may_weigh_less_than_nothing():
    tasks = tasks_where_equal_states_are_right()
    for task in tasks:
        task.gold = (task.gold[0], task.gold[1], 1 - task.gold[2])
        task.base[2] = -task.base[2]
    free = JointMaxMargin(nonnegative=False).fit(tasks, AGREE).weights
    stated = JointMaxMargin(nonnegative=True).fit(tasks, ~AGREE).weights
    assert stated.tolist() == free.tolist()
    half = JointMaxMargin(nonnegative=True).fit(tasks, np.array([True, False])).weights
    assert half[0] == 0.0


def test_the_summary_says_how_it_ended():
    assert "converged" in TRAINER.fit(tasks_where_equal_states_are_right(), AGREE).summary


@pytest.mark.parametrize(
    "setting, value",
    [
        ("sigma", 0.0),
        ("sigma", float("inf")),
        ("sigma", 1e200),
        ("sigma", 1e-200),
        ("sigma", 10**400),
        ("sigma", [1.0]),
        ("tolerance", 0.0),
        ("epochs", 0),
        ("folds", 1),
        ("seed", -1),
        ("sigma", "1.0"),
        ("folds", "5"),
        ("folds", 2.5),
        ("tolerance", "0.1"),
    ],
)
def test_settings_out_of_range_are_errors(setting, value):
    with pytest.raises(ValueError, match=rf"H108.*{setting}"):
        JointMaxMargin(**{setting: value})
