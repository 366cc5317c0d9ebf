"""The loss of one batch at given log potentials: what a trainer lowers that learns batch by batch.

    loss = log Z − log Z(observed),    its derivative by a log potential: E[count] − E[count | observed]

Z sums over all allowed segmentations, Z(observed) over those that agree with the annotation.
"""

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.forward_backward import expectations
from spacy_hocrf.types import Expectations, Potentials

__all__ = ["negative_log_likelihood"]


def negative_log_likelihood(
    potentials: Potentials, observed: NDArray[np.uint8], automaton: Automaton
) -> tuple[NDArray[np.float64], Expectations]:
    """Minus the log probability of what is known of each sequence.

    observed (uint8 [N, Y]): what `potentials.allowed` is where the annotation is agreed with.
    RETURNS (tuple[float64 [D], Expectations]): nats, inf where no allowed segmentation agrees; and
        expected minus observed counts, which mean nothing there.
    """
    free = expectations(potentials, automaton)
    known = expectations(replace(potentials, allowed=observed), automaton)
    with np.errstate(invalid="ignore"):  # inf - inf
        difference: dict[str, Any] = {
            field.name: _minus(getattr(free, field.name), getattr(known, field.name))
            for field in fields(Expectations)
        }
    losses = np.where(np.isneginf(known.log_partition), np.inf, difference["log_partition"])
    return losses, Expectations(**difference)


def _minus(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one - other
