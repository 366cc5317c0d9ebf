"""Sparse models by OWL-QN: `spacy-hocrf.OWLQN.v1`.

In addition to an optional Gaussian prior, every weight is penalised by c1 times its absolute value: a Laplace
prior, under which most weights are exactly 0 at the optimum (lasso; with both priors, elastic net). Features
with weight 0 are not saved.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spacy_hocrf.errors import Errors
from spacy_hocrf.training.base import Trainable
from spacy_hocrf.training.lbfgs import LBFGSRun, LBFGSTrainer
from spacy_hocrf.types import Vector, is_number

if TYPE_CHECKING:
    from spacy_hocrf.engine.objective import Objective
    from spacy_hocrf.engine.tying import TiedObjective

__all__ = ["AbsoluteObjective", "OWLQNRun", "OWLQNTrainer"]


@dataclass(frozen=True)
class OWLQNTrainer(LBFGSTrainer):
    """Maximum likelihood on the whole corpus with a sparse weight vector.

    c1 (float): penalty per unit of a weight, in nats (CRFsuite's c1); loaded weights that are adapted are
        penalised by their distance from the loaded value. With 0 this is L-BFGS.
    sigma (Optional[Union[float, List[float], str]]): sigma of the additional Gaussian prior; None for no such
        prior.
    The other settings are those of `LBFGSTrainer`. Training stops earlier: the last 0.01 % of the objective
    would take most of the time.
    RAISES (ValueError): H047 or H048 for settings out of range.
    """

    candidates: ClassVar[tuple[float, ...]] = (1.0, 2.0, 5.0, 10.0)

    c1: float = 0.3
    memory: int = 10
    improvement_tolerance: float = 1e-4
    sigma: float | Sequence[float] | str | None = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if not is_number(self.c1) or not 0 <= self.c1 < math.inf:
            expected = "at least 0 and finite"
            raise ValueError(Errors.H048.format(name="c1", found=repr(self.c1), expected=expected))
        if self.sigma is None:
            object.__setattr__(self, "sigma", math.inf)
        super().__post_init__()

    def objective(self, model: Trainable) -> "AbsoluteObjective":  # type: ignore[override]
        """Return the penalised negative log-likelihood of the corpus, in nats, with the Laplace prior."""
        return AbsoluteObjective(super().objective(model), self.c1, self.mean(model))

    def begin(self, model: Trainable) -> "OWLQNRun":
        """Begin OWL-QN at the model's weights."""
        return OWLQNRun(self, super().objective(model), model.weights, self.mean(model))

    def optimiser(self, weights: Vector, objective: "Objective | TiedObjective") -> Any:
        """Create the optimiser that proposes points of the smooth part, starting from float64 weights [F]."""
        from spacy_hocrf.engine.owlqn import OWLQN

        return OWLQN(weights, self.c1, **self.convergence)


class AbsoluteObjective:
    """A smooth objective plus c1 times the absolute value of every weight.

    smooth (Objective): function of weights [F]. c1 (float): nats.
    centre (float64 [F]): point from which absolute values are measured.
    """

    def __init__(self, smooth: "Objective", c1: float, centre: Vector) -> None:
        self._smooth, self._c1, self._centre = smooth, c1, centre

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        """Return the value in nats, and the pseudo-gradient, float64 [F]."""
        from spacy_hocrf.engine.owlqn import pseudo_gradient

        value, gradient = self._smooth(weights)
        away = weights - self._centre
        return value + self._c1 * float(np.abs(away).sum()), pseudo_gradient(
            away, gradient, self._c1
        )


class OWLQNRun(LBFGSRun):
    """OWL-QN on one objective, evaluation by evaluation.

    trainer (OWLQNTrainer): settings.
    objective (Objective): the smooth part of the objective.
    weights (float64 [F]): starting point.
    centre (float64 [F]): centre of the Laplace prior; the optimiser's origin.
    """

    def __init__(
        self, trainer: OWLQNTrainer, objective: "Objective", weights: Vector, centre: Vector
    ) -> None:
        self._centre = centre
        super().__init__(trainer, objective, weights - centre)

    @property
    def weights(self) -> Vector:
        """The weights with the lowest accepted value, float64 [F]."""
        return self._centre + super().weights

    @property
    def status(self) -> str:
        """Why training ended, after how many iterations, and how many weights are not 0, for the log."""
        n_nonzero = int(np.count_nonzero(self.weights))
        return f"{super().status}, {n_nonzero:,} of {len(self._centre):,} weights are not 0"

    def _value(self, x: Vector) -> tuple[float, Vector]:
        return self._objective(self._centre + x)
