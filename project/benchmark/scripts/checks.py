"""Is it the same objective? Nothing is timed before one of these has agreed.

Against CRFsuite: after a few iterations its loss and the norm of its gradient are ours at its
weights (of which it tells six decimals), and there are as many parameters; a model of a higher
order has the same value there, since its longer patterns weigh nothing. For semi-CRFs there is no
such peer: at weight 0 the objective is the logarithm of a number of segmentations, which is counted
here in another way. What no peer knows is compared with itself: the slope of the objective is that
of its gradient.
"""

from collections.abc import Callable, Sequence

import numpy as np
from models import component, weights_from
from numpy.typing import NDArray
from peers import CRFsuiteModel
from spacy.language import Language

TOLERANCE = 1e-6  # relative
Vector = NDArray[np.float64]

STEP = 1e-4  # of the central difference along the gradient


class NotTheSame(ValueError):
    """The two sides do not compute the same thing, so their times cannot be compared."""


def agree_with_crfsuite(nlp: Language, peer: CRFsuiteModel) -> str:
    """Compare the objective with CRFsuite's at its weights.

    nlp (Language): a CRF of any order.
    RETURNS (str): both values.
    RAISES (NotTheSame): if they differ, or if one side has other parameters.
    """
    pipe = component(nlp)
    shared = int((pipe.structure.index.feature_order <= 1).sum())
    if shared != peer.parameters:
        raise NotTheSame(
            f"we have {shared} features of up to two labels, CRFsuite has {peer.parameters}"
        )
    objective, weights = (
        pipe.objective(),
        weights_from(pipe, nlp.vocab, peer.observed, peer.transitions),
    )
    ours, gradient = objective(weights)
    norm = float(np.linalg.norm(gradient[pipe.structure.index.feature_order <= 1]))
    _compare("CRFsuite's loss", ours, peer.loss)
    # its weights are rounded
    _compare("the norm of CRFsuite's gradient", norm, peer.gradient_norm, tolerance=1e-4)
    values = (
        f"objective {ours:.6f}, CRFsuite {peer.loss:.6f}; norm of the gradient {norm:.4f} and "
        f"{peer.gradient_norm:.4f}"
    )
    slope = f"; {_agree_in_slope(objective, weights, gradient)}" if shared < len(gradient) else ""
    return f"{shared:,} parameters on both sides; at CRFsuite's weights {values}{slope}"


def agree_with_count(nlp: Language, lengths: Sequence[int]) -> str:
    """Compare the objective at weight 0 with a count of the segmentations, and its slope with its
    gradient.

    nlp (Language): a semi-CRF with complete annotation.
    lengths (Sequence[int]): tokens of each sequence that it learns from.
    RETURNS (str): what was compared.
    RAISES (NotTheSame): if they differ.
    """
    pipe = component(nlp)
    objective = pipe.objective()
    zero = np.zeros(len(pipe.structure.index))
    value, gradient = objective(zero)
    scheme = pipe.structure.scheme
    expected = sum(log_segmentations(lengths, scheme.limits, scheme.forbidden))
    _compare("the number of segmentations", value, expected)
    counted = (
        f"objective at weight 0 {value:.6f}, log of the number of segmentations {expected:.6f}"
    )
    return f"{counted}; {_agree_in_slope(objective, zero, gradient)}"


def log_segmentations(
    lengths: Sequence[int], limits: Sequence[int], forbidden: Sequence[tuple[int, int]]
) -> list[float]:
    """Logarithm of the number of labelled segmentations of sequences of these lengths.

    limits (Sequence[int]): longest segment of each label, 0 for none.
    forbidden (Sequence[tuple[int, int]]): labels that never follow one another.
    """
    follows = np.ones((len(limits), len(limits)))
    for earlier, later in forbidden:
        follows[earlier, later] = 0.0
    longest = max(lengths, default=0)
    # log number of segmentations of the first t tokens, by last label
    ending = np.full((longest + 1, len(limits)), -np.inf)
    total = np.zeros(longest + 1)
    # … of the first t tokens that a segment of each label may follow
    entering = np.zeros((longest + 1, len(limits)))
    for t in range(1, longest + 1):
        for y, limit in enumerate(limits):
            ending[t, y] = np.logaddexp.reduce(entering[max(0, t - limit) if limit else 0 : t, y])
        scale = ending[t].max()
        mass = np.exp(ending[t] - scale)
        with np.errstate(divide="ignore"):  # nothing may follow: log 0
            entering[t] = scale + np.log(mass @ follows)
        total[t] = scale + np.log(mass.sum())
    return [float(total[length]) for length in lengths]


def _agree_in_slope(
    objective: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    weights: NDArray[np.float64],
    gradient: NDArray[np.float64],
) -> str:
    """Compare the gradient near some weights with a central difference. gradient (float64 [F]): at
    these weights.
    """
    direction = gradient / np.linalg.norm(gradient)
    at = weights - 0.1 * direction
    slope = float(objective(at)[1] @ direction)
    rise = (objective(at + STEP * direction)[0] - objective(at - STEP * direction)[0]) / (2 * STEP)
    _compare("the slope of the objective", slope, rise, tolerance=1e-5)  # of a central difference
    return f"slope {slope:.4f}, by its difference {rise:.4f}"


def _compare(what: str, ours: float, expected: float, tolerance: float = TOLERANCE) -> None:
    if not abs(ours - expected) <= tolerance * abs(expected):
        raise NotTheSame(f"{what} is {expected!r}, we have {ours!r}")
