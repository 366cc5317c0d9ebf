"""What a weight that is 0 promises to add to the likelihood, from three counts.

Let a feature fire O times in the annotation, and at place i with probability p_i in a model in which
its weight is 0. With the weight w the log-likelihood changes by

    w O - log E[exp(w · count)]  =  w O - Σ_i log(1 + p_i (e^w - 1)),

if the places are independent; the gain is the maximum over w, less w² / 2 sigma² for the prior. Of the
p_i the sum E is known, and D = Σ p_i (1 - p_i), how uncertain they are. The places are taken to be of two
kinds. Those of the first are certain and change with no weight; the n others have all the same
probability p = 1 - D / E', with E' = n p = min(E, 2 D), so that E and D come out right:

    gain = max_w  w (O - E + E') - n log(1 + p (e^w - 1)) - w² / 2 sigma²

Where nothing is certain, D = E, this is w O - E (e^w - 1), a lower bound for any p_i.

After Della Pietra, Della Pietra and Lafferty, "Inducing features of random fields", PAMI 19 (1997), §4.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["gains_of"]

Vector = NDArray[np.float64]  # [F]

LEAST = 1e-12
"""Expected counts below this are rounding errors."""
RAREST = 1e-6
"""Probability of a place; below it the sum is its limit, E' (e^w - 1)."""
STEPS = 200
ENOUGH = 1e-10
"""A step so small changes no gain that matters."""
LONGEST = 1.0
"""Step of a weight: the second derivative may fall so far in so much."""


def gains_of(
    observed: Vector, expected: Vector, precision: Vector, agreed: Vector | None = None
) -> Vector:
    """The gain of every feature, in nats, float64 [F].

    observed (float64 [F]): how often each fires in the annotation.
    expected (float64 [F]): how often each is expected to.
    precision (float64 [F]): 1/sigma² of each, 0 for no prior.
    agreed (Optional[float64 [F]]): how often each fires in a random segmentation of the model and in
        the annotation at the same place, on average; None for never.
    """
    expected = np.maximum(expected, LEAST)
    if agreed is None:
        uncertain = expected
    else:
        # of either side, what the other one has not, which is D for both if the model is right
        both = np.minimum(agreed, np.minimum(observed, expected))
        uncertain = np.maximum(0.5 * (expected + observed) - both, LEAST)
    rest = np.minimum(expected, 2 * uncertain)
    chance = np.clip(1 - uncertain / rest, 0.0, 0.5)
    chance[chance < RAREST] = 0.0
    fired = observed - (expected - rest)
    weight = np.where(chance, 0.0, np.maximum(0.0, np.log(np.maximum(fired, LEAST) / rest)))
    for _ in range(STEPS):
        # the derivative of what the places take away, and by how much it grows
        share = chance * np.exp(weight) / (1 + chance * np.expm1(weight))
        rate = rest * np.exp(weight) / (1 + chance * np.expm1(weight))
        slope = fired - rate - precision * weight
        step = slope / (rate * (1 - share) + precision)
        weight += np.clip(step, -LONGEST, LONGEST)
        if np.abs(step).max(initial=0.0) < ENOUGH:
            break
    taken = np.log1p(chance * np.expm1(weight)) / np.where(chance, chance, 1.0)
    taken = rest * np.where(chance, taken, np.expm1(weight))
    gain: Vector = fired * weight - taken - 0.5 * precision * weight**2
    return gain
