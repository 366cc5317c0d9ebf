import numpy as np
from numpy.typing import NDArray

__all__ = ["add_up"]

def add_up(
    assignment: NDArray[np.int32],
    offsets: NDArray[np.int64],
    vertices: NDArray[np.int32],
    states: NDArray[np.int32],
    weights: NDArray[np.float64],
    fires: NDArray[np.uint8] | None = None,
) -> float: ...
