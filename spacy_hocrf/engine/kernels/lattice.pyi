import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.problem import Problem

__all__ = ["Graph", "Lattice", "Scores"]

class Graph:
    def __init__(self, automaton: Automaton) -> None: ...

class Scores:
    def __init__(self, problem: Problem, graph: Graph) -> None: ...

class Lattice:
    sums: bool
    tokens: int
    total: float
    node_count: int

    def __init__(self, graph: Graph, sums: bool) -> None: ...
    def load(self, scores: Scores, sequence: int) -> None: ...
    def values(self) -> NDArray[np.float64]: ...
    def next(self) -> tuple[float, NDArray[np.int32]] | None: ...
    def best(
        self, scores: Scores, n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int32]]: ...
    def draw(self, uniform: NDArray[np.float64]) -> NDArray[np.int32]: ...
