import numpy as np
from numpy.typing import NDArray

__all__ = ["FactorMaxima"]

class FactorMaxima:
    def __init__(
        self,
        vertex_offsets: NDArray[np.int64],
        cell_offsets: NDArray[np.int64],
        pattern_offsets: NDArray[np.int64],
        states: NDArray[np.int32],
        weights: NDArray[np.float64],
    ) -> None: ...
    def maximise(self, scores: NDArray[np.float64], chosen: NDArray[np.uint8]) -> float: ...
