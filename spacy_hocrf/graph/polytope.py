"""What an integer linear program must know of a first slave."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.graph.slaves import FirstSlave

__all__ = ["HasPolytope", "Polytope"]


@dataclass(frozen=True)
class Polytope:
    """{x ≥ 0: Σ x = right, with signs, for each row}. Its vertices are the solutions of a first slave, scores · x their own score.

    A link says that a cell is a sum of variables, too; cells without one are settled by the others of their vertex. Where all cells
    are 0 or 1, the vertices of what is left must be solutions. Extents: n variables, m rows and e entries of them, l links with f
    variables.
    """

    scores: NDArray[np.float64]  # [n]
    rows: NDArray[np.int64]  # [e]
    columns: NDArray[np.int64]  # [e]
    signs: NDArray[np.float64]  # [e]
    right: NDArray[np.float64]  # [m]
    cells: NDArray[np.int64]  # [l] the cell that each link is about
    links: NDArray[np.int64]  # [f] the number of a link,
    linked: NDArray[np.int64]  # [f] and a variable in its sum


@runtime_checkable
class HasPolytope(FirstSlave, Protocol):
    """A first slave that an integer linear program can contain."""

    def polytope(self) -> Polytope:
        """Its solutions."""
        ...

    def take(self, variables: NDArray[np.float64]) -> tuple[float, NDArray[np.int32]]:
        """A best solution of all those whose cells are what these variables make them; `keep` then keeps it.

        variables (float64 [n]): a point of the polytope, up to a solver's tolerance, with cells that are 0 or 1.
        RETURNS (tuple[float, int32 [N]]): its own score, and the state of each vertex.
        """
        ...
