"""Maximum likelihood by L-BFGS: `spacy-hocrf.LBFGS.v1`.

It keeps the whole corpus and takes L-BFGS iterations on its exact objective; batches only pace it,
so every batcher and every loop reaches the same optimum. `add_pipe` makes the settings; the engine is
imported by what begins to train.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spacy_hocrf.errors import Errors
from spacy_hocrf.training.base import (
    AUTO,
    FullBatchTrainer,
    Trainable,
    Vector,
    check_least,
)
from spacy_hocrf.training.checkpoints import Checkpoint, fingerprint
from spacy_hocrf.training.optimiser import OptimiserRun

if TYPE_CHECKING:
    from spacy_hocrf.engine.data_set import Shard
    from spacy_hocrf.engine.objective import Objective
    from spacy_hocrf.engine.tying import Tied, TiedObjective

__all__ = ["LBFGSRun", "LBFGSTrainer", "TiedRun"]

MOST_PAIRS = 1000
"""Each has two numbers for each weight."""
QUICK = 1e-3
"""Improvement tolerance of runs that are only compared."""
QUICK_PERIOD = 10
"""In so many iterations, at least. With fewer, weak priors end before they have shown what they lose."""


@dataclass(frozen=True)
class LBFGSTrainer(FullBatchTrainer):
    """Exact maximum penalised likelihood on the whole corpus; `iterations` are those of L-BFGS, and
    `sigma` is "auto" by default.

    memory (int): pairs of steps and gradients kept.
    gradient_tolerance (float): converged when ||gradient|| <= this · max(1, ||weights||).
    improvement_tolerance, improvement_period: converged when the objective fell by less than this
        share of itself in so many iterations.
    checkpoint (Optional[str]): file for what training has come to, from which the same training goes on if
        it was ended; it is removed at the end. null for none.
    checkpoint_every (int): iterations after which it is written anew.
    The other settings are those of `FullBatchTrainer`.
    RAISES (ValueError): H047 or H048 for settings out of range.
    """

    sigma: float | Sequence[float] | str = AUTO
    memory: int = 30
    gradient_tolerance: float = 1e-5
    improvement_tolerance: float = 1e-6
    improvement_period: int = 10
    checkpoint: str | None = None
    checkpoint_every: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, memory=1, improvement_period=1, checkpoint_every=1)
        if self.memory > MOST_PAIRS:
            found = {"name": "memory", "found": self.memory, "expected": f"at most {MOST_PAIRS}"}
            raise ValueError(Errors.H048.format(**found))

    def objective(self, model: Trainable) -> "Objective":
        """The penalised negative log-likelihood of the corpus, in nats."""
        from spacy_hocrf.engine.objective import Objective

        return Objective(
            model.shards(weighted=True),
            model.layout,
            model.automaton,
            self.precision(model),
            self.mean(model),
            threads=self.n_threads,
            workers=self.workers,
        )

    def quick(self) -> "LBFGSTrainer":
        """The same settings, but a run ends when it has become slow."""
        return replace(
            self,
            improvement_tolerance=max(self.improvement_tolerance, QUICK),
            improvement_period=max(self.improvement_period, QUICK_PERIOD),
        )

    def risk(self, model: Trainable, shards: Sequence["Shard"]) -> float:
        """Minus the log-likelihood of some documents, in nats."""
        from spacy_hocrf.engine.objective import Objective

        nothing = np.zeros(len(model.orders))
        loss = Objective(
            shards, model.layout, model.automaton, nothing, nothing, threads=self.n_threads
        )
        return loss(model.weights)[0]

    def begin(self, model: Trainable) -> "LBFGSRun":
        """L-BFGS from the model's weights on."""
        tied = model.tied(self.n_threads) if type(self) is LBFGSTrainer else None
        if tied is None:
            return LBFGSRun(self, self.objective(model), model.weights)
        from spacy_hocrf.engine.objective import Objective

        precision, mean = self.precision(model), self.mean(model)
        prior = precision, mean
        if tied.group is not None:
            prior = tied.precision(precision), tied.sums(mean)
        objective = Objective(
            tied.shards,
            tied.layout,
            model.automaton,
            *prior,
            threads=self.n_threads,
            workers=self.workers,
        )
        if tied.group is None:
            return LBFGSRun(self, objective, model.weights)
        return TiedRun(self, tied.objective(objective), model.weights, tied, mean)

    def optimiser(self, weights: Vector, objective: "Objective | TiedObjective") -> Any:
        """What asks for points of an objective, from float64 weights [F] on."""
        from spacy_hocrf.engine.lbfgs import LBFGS

        # Told the curvature, L-BFGS goes down so fast that it is farther from the optimum when it
        # becomes slow: too far to compare runs that end there.
        curvature = objective.curvature if self.improvement_tolerance < QUICK else None
        return LBFGS(weights, **self.convergence, threads=self.n_threads, curvature=curvature)

    def here(self) -> "LBFGSTrainer":
        """The same settings without workers and without a checkpoint, for a small part of a corpus."""
        return replace(super().here(), checkpoint=None)

    @property
    def plain(self) -> "LBFGSTrainer":
        """What of the settings decides about the weights."""
        return replace(self.here(), threads=0, iterations=1, checkpoint_every=1)

    @property
    def convergence(self) -> dict[str, Any]:
        """What an optimiser remembers, and when it has converged."""
        return {
            "memory": self.memory,
            "gradient_tolerance": self.gradient_tolerance,
            "improvement_tolerance": self.improvement_tolerance,
            "improvement_period": self.improvement_period,
        }


class LBFGSRun(OptimiserRun):
    """L-BFGS on one objective, evaluation by evaluation.

    trainer (LBFGSTrainer): settings.
    objective (Union[Objective, TiedObjective]): what is minimised.
    weights (float64 [F]): where to start.
    """

    def __init__(
        self, trainer: LBFGSTrainer, objective: "Objective | TiedObjective", weights: Vector
    ) -> None:
        self._objective = objective
        super().__init__(trainer.iterations, trainer.optimiser(weights, objective))
        self._checkpoint: Checkpoint | None = None
        if trainer.checkpoint is not None:
            of = fingerprint(trainer.plain, objective.counts, weights)
            path = Path(trainer.checkpoint)
            self._checkpoint = Checkpoint(path, trainer.checkpoint_every, of)
            self._checkpoint.read_into(self._optimiser, lambda x: self._value(x)[1])

    @property
    def status(self) -> str:
        """Why it ended, and after how much, for the log."""
        evaluations = f"({self.evaluations} evaluations)"
        return f"{self._optimiser.status} after {self.iterations} iterations {evaluations}"

    @property
    def iterations(self) -> int:
        """Accepted steps."""
        return int(self._optimiser.iterations)

    @property
    def gradient_norm(self) -> float:
        """Of the objective at the weights; 0 before it is known."""
        return float(np.linalg.norm(self._optimiser.best_g))

    def rest(self) -> None:
        """Give back memory that the next step takes again."""
        self._objective.rest()

    def _value(self, x: Vector) -> tuple[float, Vector]:
        """Of the objective, and its gradient, at a point of the optimiser's."""
        return self._objective(x)

    def _evaluate(self) -> None:
        accepted = self._optimiser.tell(*self._value(self._optimiser.x))
        if accepted and self._checkpoint is not None:
            self._checkpoint.note(self._optimiser)


class TiedRun(LBFGSRun):
    """L-BFGS with one weight for features that the corpus does not tell apart.

    trainer (LBFGSTrainer): settings.
    objective (TiedObjective): what is minimised.
    weights (float64 [F]): where to start.
    tied (Tied): which features have one weight.
    mean (float64 [F]): of the prior.
    """

    def __init__(
        self,
        trainer: LBFGSTrainer,
        objective: "TiedObjective",
        weights: Vector,
        tied: "Tied",
        mean: Vector,
    ) -> None:
        self._tied, self._mean = tied, mean if mean.any() else None
        super().__init__(trainer, objective, tied.inside(weights))

    @property
    def weights(self) -> Vector:
        """The weights with the lowest value that was accepted, float64 [F]."""
        return self._tied.outside(super().weights, self._mean)
