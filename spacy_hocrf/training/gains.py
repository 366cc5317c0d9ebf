"""What a weight that is 0 promises to add to the likelihood, from two counts.

Let a feature fire O times in the annotation, and E times in the expectation of a model in which its
weight is 0. With the weight w the log-likelihood changes by

    w O - log E[exp(w · count)]  =  w O - Σ_i log(1 + p_i (e^w - 1))  >=  w O - E (e^w - 1)

if the places i where it may fire are independent, with Σ p_i = E. The gain is the maximum of the last,
less what the prior takes:

    gain = max_w  w O - E (e^w - 1) - w² / 2 sigma²

After Della Pietra, Della Pietra and Lafferty, "Inducing features of random fields", PAMI 19 (1997), §4.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["gains_of"]

Vector = NDArray[np.float64]  # [F]

LEAST = 1e-12
"""Expected counts below this are rounding errors."""
STEPS = 100
ENOUGH = 1e-10
"""A step so small changes no gain that matters."""


def gains_of(observed: Vector, expected: Vector, precision: Vector) -> Vector:
    """The gain of every feature, in nats, float64 [F].

    observed (float64 [F]): how often each fires in the annotation.
    expected (float64 [F]): how often each is expected to.
    precision (float64 [F]): 1/sigma² of each, 0 for no prior.
    """
    expected = np.maximum(expected, LEAST)
    weight = np.maximum(0.0, np.log(np.maximum(observed, LEAST) / expected))
    # The derivative is concave and falls, and is not above 0 here: Newton's steps never pass its zero.
    for _ in range(STEPS):
        rate = expected * np.exp(weight)
        step = (observed - rate - precision * weight) / (rate + precision)
        weight += step
        if np.abs(step).max(initial=0.0) < ENOUGH:
            break
    gain: Vector = observed * weight - expected * np.expm1(weight) - 0.5 * precision * weight**2
    return gain
