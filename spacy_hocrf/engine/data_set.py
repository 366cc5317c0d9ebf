"""The interface between an objective and its data set: shards, and the layout of weights and counts."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.types import Expectations, Potentials, Scratch, Segments

__all__ = ["Compiled", "Layout", "Shard"]


class Layout(Protocol):
    """How the shards of a data set arrange weights and counts, fixed once for all of
    them.
    """

    @property
    def extent(self) -> int:
        """Total count of numbers in the arrangement."""
        ...

    def merge(self, counts: Any, others: Any) -> None:
        """Add `others` to `counts`, and reset `others` to zero."""
        ...

    def place_weights(self, weights: NDArray[np.float64], placed: Any = None) -> Any:
        """Arrange float64 weights [F] in the form that `Shard.potentials` takes.

        placed (Any): an earlier result to overwrite.
        """
        ...

    def nothing(self, collected: Any = None) -> Any:
        """Return zeros to which shards add counts.

        collected (Any): collected counts to reuse.
        """
        ...

    def add_collected_into(self, gradient: NDArray[np.float64], counts: Any) -> None:
        """Add counts to a vector, float64 [F], and reset them."""
        ...


class Shard(Protocol):
    """A fixed part of a data set, compiled on first use by an objective."""

    @property
    def compiled(self) -> "Compiled":
        """The compiled shard."""
        ...

    def release(self) -> None:
        """Free memory that the next use may allocate again."""
        ...


class Compiled(Protocol):
    """A compiled shard: all that objectives need besides inference."""

    @property
    def copies(self) -> int:
        """How often each sequence is in the data set."""
        ...

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """A further factor of each sequence's loss, float64 [D]; None for 1."""
        ...

    def potentials(self, weights: Any, scratch: Scratch) -> Potentials:
        """Return log potentials of all sequences of the shard under weights that the layout has placed.

        scratch (Scratch): for large arrays, which are no longer used when the same scratch is passed
            again.
        """
        ...

    @property
    def observed(self) -> Any:
        """The segmentations that agree with incomplete annotation, as `engine.forbidden.Observed`; None if
        everything is known.
        """
        ...

    def gold(self) -> Segments:
        """The complete annotation; no segments if something is unknown."""
        ...

    def add_gold_into(self, counts: Any) -> None:
        """Add the counts of each feature in the complete annotation, copies and weights included, to
        the layout's counts; called once.
        """
        ...

    def add_counts_into(self, expected: Expectations, scale: float, counts: Any) -> None:
        """Add `scale` times the expected count of every feature to the layout's counts."""
        ...

    def describe(self, sequence: int) -> str:
        """A sequence's text, for error messages."""
        ...
