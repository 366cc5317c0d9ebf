import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.problem import Problem

__all__ = ["Counting", "Graph", "Lattice", "Scores"]

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

class Counting:
    def __init__(
        self,
        lattice: Lattice,
        rule_of: NDArray[np.int32],
        place: NDArray[np.int64],
        base: NDArray[np.int64],
        least: NDArray[np.int64],
        capped: NDArray[np.uint8],
        spans: NDArray[np.int32],
    ) -> None: ...
    def find(
        self,
        scores: Scores,
        sequences: NDArray[np.int64],
        chances: NDArray[np.float64],
        log_z: NDArray[np.float64],
        tolerance: float,
        least: float,
        cost: float,
        best: bool,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
