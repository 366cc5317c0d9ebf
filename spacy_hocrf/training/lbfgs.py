"""Maximum likelihood by L-BFGS: `spacy-hocrf.LBFGS.v1`.

The trainer keeps the whole corpus and takes L-BFGS iterations on its exact objective; batches only set the
pace, so every batcher and every loop reaches the same optimum. `add_pipe` creates the settings; the engine is
imported when training begins.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spacy_hocrf.errors import Errors
from spacy_hocrf.training.base import (
    DEFAULT_SIGMA,
    BaseTrainer,
    Trainable,
    checked_sigma,
    precision_of,
)
from spacy_hocrf.types import AUTO, SIGMA_RANGE, Vector, is_number, is_sigma

if TYPE_CHECKING:
    from spacy_hocrf.engine.objective import Objective
    from spacy_hocrf.engine.ratio import Ratio
    from spacy_hocrf.engine.tying import Tied, TiedObjective

__all__ = ["LBFGSRun", "LBFGSTrainer", "TiedRun"]

MAX_PAIRS = 1000
"""Limit on `memory`: each pair stores two numbers per weight."""
PRIORS = ("loaded", "zero")

QUICK = 1e-3
"""Improvement tolerance of runs that are only compared with each other."""
QUICK_MEMORY = 20
"""Minimum number of pairs for these runs: parts of a corpus are small."""
QUICK_PERIOD = 10
"""Minimum improvement period for these runs; with a shorter one, weak priors end before their loss shows."""


@dataclass(frozen=True)
class LBFGSTrainer(BaseTrainer):
    """Exact penalised maximum likelihood on the whole corpus, with a Gaussian prior on the weights.

    sigma (Union[float, List[float], str]): standard deviation of the prior (CRFsuite's c2 = 1/(2 sigma²)); a
        list gives one for each order, the last for all higher ones; "auto" lets the component choose one when
        it is initialised.
    iterations (int): L-BFGS iterations in each step of the training loop.
    threads (int): number of threads; 0 for all CPUs. The result does not depend on it.
    prior (str): centre of the prior when the training of a loaded model continues: "loaded", its weights; or
        "zero", where the loaded weights are only the starting point.
    adapt_sigma (float): sigma of a prior centred on loaded weights; with smaller values the model forgets
        less. Features that the loaded model did not have keep `sigma`.
    memory (int): number of pairs of steps and gradients kept.
    gradient_tolerance (float): converged when ||gradient|| <= this · max(1, ||weights||).
    improvement_tolerance, improvement_period: converged when the objective fell by less than this share of
        itself in this many iterations.
    ratio (Union[float, Dict[str, float]]): expected share of the tokens that are in spans, in total or for
        each label; used if the corpus has positives only.
    ratio_weight (float): penalty on the squared difference between the model's expected share and `ratio`, in
        nats per token.
    RAISES (ValueError): H047, H048, H146 or H530 for settings out of range.
    """

    candidates: ClassVar[tuple[float, ...]] = (0.5, 1.0, 2.0, 5.0, 10.0)
    """Values that "auto" chooses from, ascending."""

    sigma: float | Sequence[float] | str = AUTO
    iterations: int = 1
    threads: int = 0
    prior: str = "loaded"
    adapt_sigma: float = 0.3
    memory: int = 30
    gradient_tolerance: float = 1e-5
    improvement_tolerance: float = 1e-6
    improvement_period: int = 10
    ratio: float | Mapping[str, float] = 0.15
    ratio_weight: float = 10.0

    def __post_init__(self) -> None:
        if self.sigma != AUTO:
            object.__setattr__(self, "sigma", checked_sigma(self.sigma))
        if self.prior not in PRIORS:
            raise ValueError(Errors.H047.format(found=self.prior, known=", ".join(PRIORS)))
        _check_least(self, iterations=1, threads=0, memory=1, improvement_period=1)
        adapt = self.adapt_sigma  # one number, whatever the order
        if not is_sigma(adapt) and adapt != math.inf:
            text = Errors.H048.format(name="adapt_sigma", found=adapt, expected=SIGMA_RANGE)
            raise ValueError(text)
        if self.memory > MAX_PAIRS:
            expected = f"at most {MAX_PAIRS}"
            raise ValueError(
                Errors.H048.format(name="memory", found=self.memory, expected=expected)
            )
        for name in ("ratio_weight", "gradient_tolerance", "improvement_tolerance"):
            value, negative = getattr(self, name), name == "improvement_tolerance"
            number = is_number(value) and math.isfinite(value)
            if not number or (value < 0 and not negative):
                expected = "a finite number" if negative else "at least 0 and finite"
                raise ValueError(
                    Errors.H048.format(name=name, found=repr(value), expected=expected)
                )
        _check_ratio(self.ratio)

    @property
    def n_threads(self) -> int:
        """Number of threads, with 0 replaced by the number of CPUs."""
        return self.threads or os.cpu_count() or 1

    @property
    def sigmas(self) -> tuple[float, ...]:
        """One sigma, or one for each order."""
        return checked_sigma(DEFAULT_SIGMA if self.sigma == AUTO else self.sigma)

    @property
    def choices(self) -> Sequence[float]:
        """`candidates`, if sigma is "auto"."""
        return self.candidates if self.sigma == AUTO else ()

    def with_sigma(self, sigma: float | None) -> "LBFGSTrainer":
        """Return a trainer with this sigma if its own is "auto", and one was chosen."""
        return self if sigma is None or self.sigma != AUTO else replace(self, sigma=sigma)

    def precision(self, model: Trainable) -> Vector:
        """Return 1/sigma² of every weight, float64 [F]: `adapt_sigma` for loaded weights that are adapted."""
        precision = precision_of(self.sigmas, model.orders)
        if not self.adapts(model):
            return precision
        return np.where(model.new_features, precision, self.adapt_sigma**-2.0)

    def mean(self, model: Trainable) -> Vector:
        """Return the centre of the prior, float64 [F]."""
        loaded = model.loaded_weights
        return loaded if loaded is not None and self.adapts(model) else np.zeros(len(model.orders))

    def adapts(self, model: Trainable) -> bool:
        """Is the prior centred on loaded weights rather than on zero?"""
        return model.loaded_weights is not None and self.prior == "loaded"

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Is the optimum that of the penalised likelihood? Not if a subclass overrides the objective."""
        return type(self).objective is LBFGSTrainer.objective

    def objective(self, model: Trainable) -> "Objective":
        """Return the penalised negative log-likelihood of the corpus, in nats."""
        from spacy_hocrf.engine.objective import Objective

        return Objective(
            model.shards(),
            model.layout,
            model.automaton,
            self.precision(model),
            self.mean(model),
            ratios=self.ratios(model),
            threads=self.n_threads,
        )

    def ratios(self, model: Trainable) -> "Sequence[Ratio]":
        """Return the ratios that the model should expect if the texts have positives only; else none.

        RAISES (ValueError): H531 for an unknown label.
        """
        positives = model.positives
        if positives is None:
            return ()
        from spacy_hocrf.engine.ratio import Ratio

        weight = self.ratio_weight
        if not isinstance(self.ratio, Mapping):
            return [Ratio(np.any([*positives.values()], axis=0), self.ratio, weight)]
        if unknown := sorted({*self.ratio} - {*positives}):
            found, known = ", ".join(unknown), ", ".join(positives)
            raise ValueError(Errors.H531.format(found=found, known=known))
        return [Ratio(positives[label], share, weight) for label, share in self.ratio.items()]

    def quick(self) -> "LBFGSTrainer":
        """Return settings for a part of the corpus, with which a run ends as soon as progress is slow."""
        return replace(
            self,
            memory=max(self.memory, QUICK_MEMORY),
            improvement_tolerance=max(self.improvement_tolerance, QUICK),
            improvement_period=max(self.improvement_period, QUICK_PERIOD),
        )

    def begin(self, model: Trainable) -> "LBFGSRun":
        """Begin L-BFGS at the model's weights."""
        if not self.exact:
            return LBFGSRun(self, self.objective(model), model.weights)
        tied = model.tied(self.n_threads)
        from spacy_hocrf.engine.objective import Objective

        prior = self.precision(model), self.mean(model)
        if tied.group is not None:  # no model is adapted: the mean is 0
            prior = tied.precision(prior[0]), np.zeros(len(tied))
        objective = Objective(
            tied.shards,
            tied.layout,
            model.automaton,
            *prior,
            ratios=self.ratios(model),
            threads=self.n_threads,
        )
        if tied.group is None:
            return LBFGSRun(self, objective, model.weights)
        return TiedRun(self, tied.objective(objective), model.weights, tied)

    def optimiser(self, weights: Vector, objective: "Objective | TiedObjective") -> Any:
        """Create the optimiser that proposes points of an objective, starting from float64 weights [F]."""
        from spacy_hocrf.engine.lbfgs import LBFGS

        # With the curvature, L-BFGS descends so fast that it is farther from the optimum when
        # progress becomes slow: too far to compare runs that end there.
        curvature = objective.curvature if self.improvement_tolerance < QUICK else None
        return LBFGS(weights, **self.convergence, threads=self.n_threads, curvature=curvature)

    @property
    def convergence(self) -> dict[str, Any]:
        """The optimiser's memory and convergence settings."""
        return {
            "memory": self.memory,
            "gradient_tolerance": self.gradient_tolerance,
            "improvement_tolerance": self.improvement_tolerance,
            "improvement_period": self.improvement_period,
        }


class LBFGSRun:
    """L-BFGS on one objective, evaluation by evaluation.

    trainer (LBFGSTrainer): settings.
    objective (Union[Objective, TiedObjective]): objective to minimise.
    weights (float64 [F]): starting point.
    """

    def __init__(
        self, trainer: LBFGSTrainer, objective: "Objective | TiedObjective", weights: Vector
    ) -> None:
        self._objective = objective
        self._iterations = trainer.iterations
        self._optimiser = trainer.optimiser(weights, objective)

    @property
    def loss(self) -> float:
        """The lowest accepted value of the objective; before the first step, the value at the start, which is
        evaluated if necessary.

        RAISES (ValueError): H046 if value or gradient are not finite there.
        """
        if self._optimiser.evaluations == 0:
            self._evaluate()
        if self._optimiser.status.startswith("failed"):
            raise ValueError(Errors.H046.format(status=self._optimiser.status))
        return float(self._optimiser.best_f)

    @property
    def weights(self) -> Vector:
        """The weights with the lowest accepted value, float64 [F]; owned by the optimiser."""
        weights: Vector = self._optimiser.best_x
        return weights

    @property
    def running(self) -> bool:
        """Is it neither converged nor stuck?"""
        return bool(self._optimiser.status == "running")

    @property
    def status(self) -> str:
        """Why training ended, and after how many iterations and evaluations, for the log."""
        evaluations = f"({self.evaluations} evaluations)"
        return f"{self._optimiser.status} after {self.iterations} iterations {evaluations}"

    @property
    def iterations(self) -> int:
        """Number of accepted steps."""
        return int(self._optimiser.iterations)

    @property
    def evaluations(self) -> int:
        """Number of evaluations of the objective."""
        return int(self._optimiser.evaluations)

    @property
    def gradient_norm(self) -> float:
        """Norm of the objective's gradient at the weights; 0 before it is known."""
        return float(np.linalg.norm(self._optimiser.best_g))

    def step(self) -> None:
        """Take the trainer's number of iterations, or fewer if it converges.

        RAISES (ValueError): H046 if value or gradient are not finite at the start.
        """
        self.loss  # noqa: B018 - evaluates the start, which is no iteration
        goal = self.iterations + self._iterations
        while self.running and self.iterations < goal:
            self._evaluate()

    def release(self) -> None:
        """Release memory that the next step allocates again."""
        self._objective.release()

    def _value(self, x: Vector) -> tuple[float, Vector]:
        """Return value and gradient of the objective at a point of the optimiser."""
        return self._objective(x)

    def _evaluate(self) -> None:
        self._optimiser.tell(*self._value(self._optimiser.x))


class TiedRun(LBFGSRun):
    """L-BFGS with tied weights: features that the corpus cannot distinguish share one.

    trainer (LBFGSTrainer): settings.
    objective (TiedObjective): objective to minimise.
    weights (float64 [F]): starting point.
    tied (Tied): which features share a weight.
    """

    def __init__(
        self,
        trainer: LBFGSTrainer,
        objective: "TiedObjective",
        weights: Vector,
        tied: "Tied",
    ) -> None:
        self._tied = tied
        super().__init__(trainer, objective, tied.inside(weights))

    @property
    def weights(self) -> Vector:
        """The weights with the lowest accepted value, float64 [F]."""
        return self._tied.outside(super().weights)


def _check_least(settings: "LBFGSTrainer", **bounds: int) -> None:
    """Check that settings are whole numbers with at least these values.

    RAISES (ValueError): H048 for the first one that is not.
    """
    for name, bound in bounds.items():
        value = getattr(settings, name)
        if type(value) is not int or value < bound:
            expected = "a whole number" if type(value) is not int else f"at least {bound}"
            raise ValueError(Errors.H048.format(name=name, found=repr(value), expected=expected))


def _check_ratio(ratio: float | Mapping[str, float]) -> None:
    """Check that ratios are shares between 0 and 1 with a sum below 1. RAISES (ValueError): H530 if not."""
    shares = list(ratio.values()) if isinstance(ratio, Mapping) else [ratio]
    numbers = all(type(share) in (int, float) and 0 < share < 1 for share in shares)
    if not shares or not numbers or sum(shares) >= 1:
        raise ValueError(Errors.H530.format(found=repr(ratio)))
