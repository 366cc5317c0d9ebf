"""What an integer linear program must know of a first subproblem."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.graph.subproblems import FirstSubproblem

__all__ = ["HasPolytope", "Polytope"]


@dataclass(frozen=True)
class Polytope:
    """{x ≥ 0: Σ x = right, with signs, for each row}. Its vertices are the solutions of a first
    subproblem, scores · x their own score.

    A link says that a cell is a sum of variables, too; cells without one are settled by the others
    of their vertex. Where all cells are 0 or 1, the vertices of what is left must be solutions.
    Extents: n variables, m rows and e entries of them, l links with f variables.
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
class HasPolytope(FirstSubproblem, Protocol):
    """A first subproblem that an integer linear program can contain."""

    def polytope(
        self, rewards: NDArray[np.float64] | None = None, slack: float = np.inf
    ) -> Polytope | None:
        """Its solutions.

        rewards (Optional[float64 [V]]): of the cells.
        slack (float): solutions whose score, own and rewards together, is lower than the highest by
            more may be left out, nats.
        RETURNS (Optional[Polytope]): None if it would be too large to be of use.
        """
        ...

    def take(self, variables: NDArray[np.float64]) -> tuple[float, NDArray[np.int32]]:
        """A best solution of all those whose cells are what these variables make them; `keep` then
        keeps it.

        variables (float64 [n]): a point of the polytope that was asked for last, with cells 0 or 1;
            up to a solver's tolerance.
        RETURNS (tuple[float, int32 [N]]): its own score, and the state of each vertex.
        """
        ...
