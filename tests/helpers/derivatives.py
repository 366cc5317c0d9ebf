"""Gradients against central differences."""

import numpy as np
from numpy.testing import assert_allclose


def assert_gradient(objective, x, directions, *, step=1e-5, rtol=1e-5, atol=1e-6):
    """The gradient of an objective, x -> (value, gradient), is that of central differences along the rows of
    `directions`, or so many random ones.
    """
    if isinstance(directions, int):
        directions = np.random.default_rng(1).normal(size=(directions, len(x)))
    gradient = objective(x)[1].copy()
    for number, direction in enumerate(directions):
        move = step * direction
        slope = (objective(x + move)[0] - objective(x - move)[0]) / (2 * step)
        message = f"direction {number}"
        assert_allclose(gradient @ direction, slope, rtol=rtol, atol=atol, err_msg=message)
