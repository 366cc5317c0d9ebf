"""What runs over the whole corpus have in common that ask an optimiser for points."""

from abc import ABC, abstractmethod
from typing import Any

from spacy_hocrf.errors import Errors
from spacy_hocrf.training.base import Vector

__all__ = ["OptimiserRun"]


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
        """The weights with the lowest value that was accepted, float64 [F]; the optimiser's own."""
        weights: Vector = self._optimiser.best_x
        return weights

    @property
    def running(self) -> bool:
        """Not converged and not stuck?"""
        return bool(self._optimiser.status == "running")

    @property
    @abstractmethod
    def iterations(self) -> int:
        """What the trainer's setting counts."""

    @property
    def evaluations(self) -> int:
        """Evaluations of the objective."""
        return int(self._optimiser.evaluations)

    def step(self) -> None:
        """The trainer's number of iterations, or fewer if it converges.

        RAISES (ValueError): H046 if the optimiser has met values that are not finite.
        """
        self.loss  # noqa: B018 - the start is no iteration
        goal = self.iterations + self._iterations
        while self.running and self.iterations < goal:
            self._evaluate()
        if self._optimiser.status.startswith("failed"):
            raise ValueError(Errors.H046.format(status=self._optimiser.status))

    def rest(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give back memory that the next step takes again."""

    @abstractmethod
    def _evaluate(self) -> None:
        """Ask for the next point, and tell about it."""
