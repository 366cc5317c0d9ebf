"""The trainers that `[components.*.trainer]` names.

Full-batch: `LBFGS.v1` keeps the whole corpus and takes L-BFGS iterations on its exact objective;
batches only pace it, so every batcher and every loop reaches the same optimum. `MaxMargin.v1` does
so with another objective; see `margin`. Batch-wise: `SGD.v1` leaves the step to the training
config's optimizer.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.lbfgs import LBFGS
from spacy_hocrf.engine.objective import STRANDS
from spacy_hocrf.errors import Errors

__all__ = [
    "FullBatchRun",
    "FullBatchTrainer",
    "LBFGSTrainer",
    "OptimiserRun",
    "Run",
    "SGDTrainer",
    "checked_sigmas",
    "make_lbfgs",
    "make_sgd",
    "precision_of",
]

Vector = NDArray[np.float64]
Loss = Callable[[Vector], tuple[float, Vector]]

PRIORS = ("auto", "zero", "loaded")


class Run(Protocol):
    """The training of one corpus, step by step, as the component paces it."""

    @property
    def loss(self) -> float:
        """What training lowers, for the log."""
        ...

    @property
    def weights(self) -> Vector:
        """The weights so far, float64 [F]; the run's own."""
        ...

    @property
    def running(self) -> bool:
        """Can further steps change anything?"""
        ...

    @property
    def status(self) -> str:
        """Why it ended, and after how much, for the log."""
        ...

    @property
    def evaluations(self) -> int:
        """How often the corpus was gone through."""
        ...

    def step(self) -> None:
        """As much as belongs to one step of the training loop."""
        ...


@dataclass(frozen=True)
class FullBatchTrainer:
    """Settings of training on the whole corpus, with a Gaussian prior.

    RAISES (ValueError): H047 or H048 for settings out of range.
    """

    sigma: tuple[float, ...]
    iterations: int
    threads: int
    prior: str
    adapt_sigma: float

    batchwise = False
    complete_only = False

    def __post_init__(self) -> None:
        if self.prior not in PRIORS:
            raise ValueError(Errors.H047.format(found=self.prior, known=", ".join(PRIORS)))
        for name, least in (("iterations", 1), ("threads", 0)):
            if getattr(self, name) < least:
                raise ValueError(
                    Errors.H048.format(
                        name=name, found=getattr(self, name), expected=f"at least {least}"
                    )
                )
        if not self.adapt_sigma > 0:
            raise ValueError(
                Errors.H048.format(name="adapt_sigma", found=self.adapt_sigma, expected="above 0")
            )

    def precision(self, orders: NDArray[np.int32], *, adapting: bool = False) -> Vector:
        """1/sigma² of every weight, float64 [F].

        orders (int32 [F]): number of earlier segments that each feature sees; the last sigma serves
            all higher ones.
        adapting (bool): the prior is centred on loaded weights, with `adapt_sigma`.
        """
        return precision_of(self.sigma if not adapting else (self.adapt_sigma,), orders)

    @property
    def workers(self) -> int:
        """Threads, with 0 resolved to what the machine has."""
        return self.threads or min(STRANDS, os.cpu_count() or 1)

    def centre_on_loaded(self, documents: int, loaded_documents: int) -> bool:
        """Should the prior be centred on the loaded weights rather than on zero?

        documents (int): in the corpus now; loaded_documents (int): in the corpus that the loaded
        model was trained on. "auto" adapts to a corpus less than half as large, and trains on from
        the loaded weights on any other.
        """
        return self.prior == "loaded" or (self.prior == "auto" and 2 * documents < loaded_documents)


@dataclass(frozen=True)
class LBFGSTrainer(FullBatchTrainer):
    """Settings of maximum likelihood by L-BFGS; see `make_lbfgs`."""

    memory: int
    gradient_tolerance: float
    improvement_tolerance: float
    improvement_period: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("memory", "improvement_period"):
            if getattr(self, name) < 1:
                raise ValueError(
                    Errors.H048.format(name=name, found=getattr(self, name), expected="at least 1")
                )


@dataclass(frozen=True)
class SGDTrainer:
    """Settings of batch-wise training; see `make_sgd`."""

    sigma: tuple[float, ...]

    batchwise = True
    complete_only = False

    def precision(self, orders: NDArray[np.int32], *, adapting: bool = False) -> Vector:
        """1/sigma² of every weight, float64 [F]."""
        return precision_of(self.sigma, orders)


class OptimiserRun(ABC):
    """What runs over the whole corpus have in common: an optimiser is asked for points and told
    about them.

    iterations (int): of each step.
    optimiser (Any): has `best_x`, `best_f`, `evaluations`, and a `status` that is "running" until
        there is nothing to gain.
    """

    def __init__(self, iterations: int, optimiser: Any) -> None:
        self._iterations = iterations
        self._optimiser = optimiser

    @property
    def loss(self) -> float:
        """The lowest value of the objective that was accepted; that of the start, evaluated if need
        be, if there is no other.
        """
        if self._optimiser.evaluations == 0:
            self._evaluate()
        return float(self._optimiser.best_f)

    @property
    def weights(self) -> Vector:
        """Those with that value, float64 [F]; the optimiser's own."""
        return self._optimiser.best_x

    @property
    def running(self) -> bool:
        """Not converged and not stuck?"""
        return self._optimiser.status == "running"

    @property
    @abstractmethod
    def iterations(self) -> int:
        """What the trainer's setting counts."""

    @property
    def evaluations(self) -> int:
        """Evaluations of the objective."""
        return int(self._optimiser.evaluations)

    def step(self) -> None:
        """The trainer's number of iterations, or fewer if it converges."""
        self.loss  # noqa: B018 - the start is no iteration
        goal = self.iterations + self._iterations
        while self.running and self.iterations < goal:
            self._evaluate()
        if self._optimiser.status.startswith("failed"):
            raise ValueError(Errors.H046.format(status=self._optimiser.status))

    @abstractmethod
    def _evaluate(self) -> None:
        """Ask for the next point, and tell about it."""


class FullBatchRun(OptimiserRun):
    """L-BFGS on one objective, evaluation by evaluation.

    trainer (LBFGSTrainer): settings.
    objective (Loss): value and gradient at float64 weights [F].
    weights (float64 [F]): where to start.
    """

    def __init__(self, trainer: LBFGSTrainer, objective: Loss, weights: Vector) -> None:
        self._objective = objective
        optimiser = LBFGS(
            weights,
            memory=trainer.memory,
            gradient_tolerance=trainer.gradient_tolerance,
            improvement_tolerance=trainer.improvement_tolerance,
            improvement_period=trainer.improvement_period,
            threads=trainer.workers,
        )
        super().__init__(trainer.iterations, optimiser)

    @property
    def status(self) -> str:
        """Why it ended, and after how much, for the log."""
        return f"{self._optimiser.status} after {self.iterations} iterations ({self.evaluations} evaluations)"

    @property
    def iterations(self) -> int:
        """Accepted steps."""
        return int(self._optimiser.iterations)

    def _evaluate(self) -> None:
        self._optimiser.tell(*self._objective(self._optimiser.x))


def make_lbfgs(
    sigma: float | Sequence[float] = 1.0,
    iterations: int = 1,
    memory: int = 10,
    gradient_tolerance: float = 1e-5,
    improvement_tolerance: float = 1e-9,
    improvement_period: int = 10,
    threads: int = 0,
    prior: str = "auto",
    adapt_sigma: float = 0.1,
) -> LBFGSTrainer:
    """`spacy-hocrf.LBFGS.v1`: exact maximum penalised likelihood on the whole corpus.

    sigma (Union[float, List[float]]): standard deviation of the Gaussian prior of the weights
        (CRFsuite's c2 = 1/(2 sigma²)); a list gives one for each order, the last for all higher
        ones.
    iterations (int): L-BFGS iterations for each step of the training loop.
    memory (int): pairs of steps and gradients kept.
    gradient_tolerance (float): converged when ||gradient|| <= this · max(1, ||weights||).
    improvement_tolerance, improvement_period: converged when the objective fell by less than this
        share of itself in so many iterations.
    threads (int): 0 for as many as the machine has, at most 4. The result does not depend on it.
    prior (str): what the prior is centred on when training goes on from a loaded model: "zero";
        "loaded", its weights; or "auto", which adapts ("loaded") to a corpus less than half as
        large as the model's own, else is "zero".
    adapt_sigma (float): sigma of a prior centred on loaded weights; small values forget less.
    RETURNS (LBFGSTrainer): the trainer.
    RAISES (ValueError): H047 or H048 for settings out of range.
    """
    return LBFGSTrainer(
        sigma=checked_sigmas(sigma),
        iterations=iterations,
        memory=memory,
        gradient_tolerance=gradient_tolerance,
        improvement_tolerance=improvement_tolerance,
        improvement_period=improvement_period,
        threads=threads,
        prior=prior,
        adapt_sigma=adapt_sigma,
    )


def make_sgd(sigma: float | Sequence[float] = 1.0) -> SGDTrainer:
    """`spacy-hocrf.SGD.v1`: the training config's optimizer, batch by batch; for streamed or
    augmented corpora.

    sigma (Union[float, List[float]]): as in `make_lbfgs`; each batch gets its share of the penalty.
    RETURNS (SGDTrainer): the trainer.
    RAISES (ValueError): H048 for a sigma out of range.
    """
    return SGDTrainer(checked_sigmas(sigma))


def checked_sigmas(sigma: float | Sequence[float]) -> tuple[float, ...]:
    """One sigma, or one for each order. RAISES (ValueError): H048 unless all are above 0."""
    sigmas = (
        (float(sigma),)
        if isinstance(sigma, (int, float))
        else tuple(float(value) for value in sigma)
    )
    if not sigmas or not all(value > 0 for value in sigmas):
        raise ValueError(Errors.H048.format(name="sigma", found=sigma, expected="above 0"))
    return sigmas


def precision_of(sigmas: tuple[float, ...], orders: NDArray[np.int32]) -> Vector:
    """1/sigma² of features of these orders, float64 [F]; the last sigma serves all higher ones."""
    return np.asarray(sigmas)[np.minimum(orders, len(sigmas) - 1)] ** -2.0
