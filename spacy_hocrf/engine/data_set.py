"""What an objective asks of the data set that it is of: its shards, and how they want the weights."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.types import Expectations, Potentials, Scratch, Segments

__all__ = ["Compiled", "Layout", "Shard"]


class Layout(Protocol):
    """How the shards of a data set want the weights, and give the counts: an arrangement made once
    for all of them.
    """

    @property
    def extent(self) -> int:
        """How many numbers are placed."""
        ...

    def merge(self, counts: Any, others: Any) -> None:
        """Add other counts to counts, and make them zero."""
        ...

    def place_weights(self, weights: NDArray[np.float64], placed: Any = None) -> Any:
        """Arrange float64 weights [F] in the form that `Shard.potentials` takes.

        placed (Any): what was returned before, to be overwritten.
        """
        ...

    def nothing(self, collected: Any = None) -> Any:
        """Zeros that shards add counts to.

        collected (Any): counts that have been collected, to be used again.
        """
        ...

    def add_collected_into(self, gradient: NDArray[np.float64], counts: Any) -> None:
        """Add such counts, which are used up, to a vector, float64 [F]."""
        ...


class Shard(Protocol):
    """A fixed part of a data set, which is compiled when an objective first asks for it."""

    @property
    def compiled(self) -> "Compiled":
        """What objectives ask for."""
        ...

    def rest(self) -> None:
        """Give back memory that the next use may take again."""
        ...


class Compiled(Protocol):
    """A shard as objectives see it, all but the inference."""

    @property
    def copies(self) -> int:
        """How often each sequence is in the data set."""
        ...

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """What each sequence's loss is multiplied by besides, float64 [D]; None for 1."""
        ...

    def potentials(self, weights: Any, scratch: Scratch) -> Potentials:
        """Log potentials of all sequences of the shard under weights that the layout has placed.

        scratch (Scratch): for large arrays; they are done with before the same scratch is given
            again.
        """
        ...

    @property
    def observed(self) -> Any:
        """The segmentations that agree with incomplete annotation, as `engine.forbidden.Observed`; None if
        all is known.
        """
        ...

    def gold(self) -> Segments:
        """The complete annotation; no segments if something is unknown."""
        ...

    def add_gold_into(self, counts: Any) -> None:
        """Add how often each feature fires in the complete annotation, copies and weights included, to
        the layout's counts; asked once.
        """
        ...

    def add_counts_into(self, expected: Expectations, scale: float, counts: Any) -> None:
        """Add scale times the expected count of every feature to the layout's counts."""
        ...

    def describe(self, sequence: int) -> str:
        """A sequence's text, for error messages."""
        ...
