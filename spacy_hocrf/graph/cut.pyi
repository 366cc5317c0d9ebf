import numpy as np
from numpy.typing import NDArray

__all__ = ["MinimumCut"]

class MinimumCut:
    def __init__(
        self,
        constant: NDArray[np.float64],
        tail: NDArray[np.int32],
        head: NDArray[np.int32],
        capacity: NDArray[np.float64],
    ) -> None: ...
    def maximise(self, scores: NDArray[np.float64], chosen: NDArray[np.uint8]) -> float: ...
