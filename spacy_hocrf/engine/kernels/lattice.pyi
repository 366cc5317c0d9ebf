import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.problem import Problem

__all__ = ["Graph", "Lattice", "Ruling", "Scores"]

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

class Ruling:
    def __init__(
        self,
        lattice: Lattice,
        affected_offsets: NDArray[np.int32],
        affected: NDArray[np.int32],
        after: NDArray[np.int32],
        settled: NDArray[np.int32],
        broken: NDArray[np.uint8],
        factor: NDArray[np.float64],
        spans: NDArray[np.int32],
    ) -> None: ...
    def find(
        self,
        scores: Scores,
        sequences: NDArray[np.int64],
        labels: NDArray[np.int32],
        chances: NDArray[np.float64],
        matter: NDArray[np.uint8],
        left_out: NDArray[np.float64],
        log_z: NDArray[np.float64],
        tolerance: float,
        least: float,
        cost: float,
        best: bool,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
    def broken_together(
        self,
        scores: Scores,
        sequence: int,
        labels: NDArray[np.int32],
        chances: NDArray[np.float64],
        log_z: float,
        tolerance: float,
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64]] | None: ...
