import numpy as np
from numpy.typing import NDArray

__all__ = ["LocalSearch"]

class LocalSearch:
    def __init__(
        self,
        offsets: NDArray[np.int64],
        unary: NDArray[np.float64],
        pattern_offsets: NDArray[np.int64],
        cells: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> None: ...
    def improve(self, assignment: NDArray[np.int32], steps: int, seed: int) -> float: ...
