"""What dual decomposition asks of its parts (Qian and Liu, TACL 2 (2014) §2.2 and §3.3)."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["FirstSlave"]


class FirstSlave(Protocol):
    """The slave that knows the structure, and whose assignments are always allowed ones: a forest, or a whole semi-CRF.

    It has a score of its own for every assignment of states to the N vertices, and can be rewarded for each of the V cells. Of
    all solutions with one assignment (a segmentation decides more than the vertices' states) it means the best.
    """

    @property
    def offsets(self) -> NDArray[np.int64]:
        """First cell of each vertex, int64 [N + 1]."""
        ...

    def maximise(self, rewards: NDArray[np.float64]) -> tuple[float, NDArray[np.int32]]:
        """The highest score, own and rewards together, and the assignment that has it.

        rewards (float64 [V]): added to the own score for every cell of the assignment; finite.
        RETURNS (tuple[float, int32 [N]]): the score in nats, and the state of each vertex, not to be changed by later calls.
        """
        ...

    def keep(self) -> None:
        """The last assignment is the best so far: keep what else belongs to it."""
        ...
